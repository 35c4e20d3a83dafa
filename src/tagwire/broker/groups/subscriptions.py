"""Which topics the members of a group are subscribed to, whichever protocol they speak."""

from __future__ import annotations

from tagwire.broker.groups import embedded_protocol
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.group_table import AnyGroup
from tagwire.errors import KafkaError


def subscribed_topics(group: AnyGroup) -> set[str] | None:
    """The topics that members are subscribed to; None where that cannot be known."""
    if isinstance(group, ConsumerGroup):
        return group.subscribed_topics()
    if group.members and group.protocol_type != embedded_protocol.TYPE:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        for _, data in member.protocols:
            try:
                topics.update(embedded_protocol.read_subscription(data).topics)
            except KafkaError:
                return None
    return topics
