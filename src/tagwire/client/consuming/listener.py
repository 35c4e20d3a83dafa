"""What a consumer tells of its partitions coming and going. Kafka's ConsumerRebalanceListener."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tagwire.partitions import TopicPartition


class RebalanceListener:
    """Override what you want to hear of. Each method is called inside of `poll`, by whoever calls that, and may use
    the consumer: commit, seek, pause. What it raises is raised from that `poll`, after the rebalance; an
    `AsyncConsumer` awaits what is returned, if that can be awaited.

    With a cooperative assignor or KIP-848's protocol, only what comes or goes is named; with an eager one everything
    is revoked, and then assigned anew. A rebalance that changes nothing is told as an assignment of nothing.
    """

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> Any:
        """These have come. Nothing of them was fetched: `seek` says where to begin instead of where the group is."""

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
        """These are about to go, and still are this consumer's until this returns: it may commit. Automatic commits
        have been made already."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> Any:
        """These are gone, and may be another consumer's already: committing them fails. Does what
        `on_partitions_revoked` does, if this is not overridden."""
        return self.on_partitions_revoked(partitions)


class RebalanceKind(Enum):
    """What has become of partitions, by the listener's method for it."""

    ASSIGNED = "on_partitions_assigned"
    REVOKED = "on_partitions_revoked"
    LOST = "on_partitions_lost"


class RebalanceEvent:
    """Partitions that come or go, for the application's next `poll`.

    Attributes:
        is_done: whether the application has done its part. is_settled: whether the core has, after that.
    """

    __slots__ = ("is_done", "is_settled", "kind", "partitions")

    def __init__(self, kind: RebalanceKind, partitions: Sequence[TopicPartition]) -> None:
        self.kind = kind
        self.partitions = partitions
        self.is_done = self.is_settled = False
