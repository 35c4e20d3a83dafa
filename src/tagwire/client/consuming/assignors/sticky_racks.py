"""Racks of members and partitions, as the sticky algorithms ask for them (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tagwire.client.consuming.assignors.assignor import TopicRacks
from tagwire.client.consuming.assignors.rack_awareness import racks_matter
from tagwire.client.consuming.consumer_protocol import Subscription
from tagwire.partitions import TopicPartition


class StickyRacks:
    """Where members and partitions are.

    Attributes:
        members: rack of each member that has one; empty where racks do not matter.
        partitions: racks of each partition's replicas; empty where racks do not matter.

    Source: Kafka's AbstractStickyAssignor.RackInfo.
    """

    def __init__(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> None:
        members = {member: told.rack for member, told in subscriptions.items() if told.rack}
        self._members_in = Counter(members.values())
        partitions: dict[TopicPartition, frozenset[str]] = {}
        if members:
            partitions = {
                TopicPartition(topic, index): racks
                for topic, all_racks in topics.items()
                for index, racks in all_racks.items()
            }
        matter = racks_matter(self._members_in, partitions.values())
        self._neighbours = {partition: self._members_near(racks) for partition, racks in partitions.items()}
        self.members: dict[str, str] = members if matter else {}
        self.partitions: dict[TopicPartition, frozenset[str]] = partitions if matter else {}

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Whether a member is in a rack that has no replica of a partition."""
        rack = self.members.get(member)
        return rack is not None and rack not in self.partitions.get(partition, ())

    def fewest_neighbours_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Partitions by how many members are in their racks; otherwise in their order."""
        return sorted(partitions, key=lambda partition: self._neighbours.get(partition, 0))

    def next_neighbour(self, partition: TopicPartition, members: list[str], start: int, unfilled: Counter[str]) -> int:
        """Index of the first member from `start` on, around the end, in a rack of a partition; -1 where none is.

        Args:
            unfilled: how many of `members` are in each rack.
        """
        racks = self.partitions.get(partition, frozenset())
        if not any(unfilled[rack] for rack in racks):
            return -1
        for step in range(len(members)):
            index = (start + step) % len(members)
            if self.members.get(members[index]) in racks:
                return index
        return -1

    def count(self, members: Iterable[str]) -> Counter[str]:
        """How many of these members are in each rack."""
        return Counter(self.members[member] for member in members if member in self.members)

    def _members_near(self, racks: frozenset[str]) -> int:
        return sum(self._members_in[rack] for rack in racks)
