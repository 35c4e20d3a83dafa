"""Assignors of classic groups: who of the members gets which partitions."""

from collections.abc import Callable
from typing import Final

from tagwire.client.consuming.assignors.assignor import Assignor, RebalanceProtocol, TopicRacks, topic_racks
from tagwire.client.consuming.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from tagwire.client.consuming.assignors.range_assignor import RangeAssignor
from tagwire.client.consuming.assignors.round_robin_assignor import RoundRobinAssignor
from tagwire.client.consuming.assignors.sticky_assignor import StickyAssignor

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "TopicRacks",
    "topic_racks",
]

ASSIGNORS: Final[dict[str, Callable[[], Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
"""Kafka's assignors by their names in JoinGroup. Each member makes its own: the sticky ones remember."""
