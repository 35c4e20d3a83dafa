"""Round robin: all partitions of all topics, dealt to the members in turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tagwire.client.consuming.assignors.assignor import RebalanceProtocol, TopicRacks
from tagwire.client.consuming.assignors.member_order import in_member_order
from tagwire.client.consuming.consumer_protocol import Assignment, Subscription
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.partitions import TopicPartition


class RoundRobinAssignor:
    """Deals partitions by topic and number; a member that has not subscribed to a topic is passed over.

    Source: Kafka's RoundRobinAssignor.
    """

    name = "roundrobin"
    protocols = frozenset((RebalanceProtocol.EAGER,))

    def subscription_user_data(self, topics: Collection[str], owned_partitions: Collection[TopicPartition]) -> None:
        """Nothing."""

    def assign(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        members = in_member_order(subscriptions)
        wanted = [frozenset(subscriptions[member].topics) for member in members]
        dealt: list[list[TopicPartition]] = [[] for _ in members]
        turn = 0
        for topic in sorted(frozenset().union(*wanted) & topics.keys()):
            for partition in sorted(topics[topic]):
                while topic not in wanted[turn]:
                    turn = (turn + 1) % len(members)
                dealt[turn].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(members)
        return {member: Assignment(tuple(partitions)) for member, partitions in zip(members, dealt, strict=True)}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Nothing is remembered."""
