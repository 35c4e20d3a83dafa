"""The sticky algorithm for members that all want the same topics.

Everyone keeps what it had up to its share. The rest goes to those that have less: first, where racks matter, to members
in a rack of the partition, then in turn. Shares differ by one at most. Source: Kafka's AbstractStickyAssignor,
ConstrainedAssignmentBuilder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tagwire.client.consuming.assignors.assignor import TopicRacks
from tagwire.client.consuming.assignors.hash_order import string_order
from tagwire.client.consuming.assignors.sticky_racks import StickyRacks
from tagwire.partitions import TopicPartition


class ConstrainedAssignment:
    """One run of the algorithm.

    Args:
        topics: those that are wanted.
        owned: what each member had, by member id, in the order in which members keep what they had.
        disputed: what several members claim, and none of them had.

    Attributes:
        transferring: partitions that moved from a member that still has them, with their new member.
    """

    def __init__(
        self,
        topics: TopicRacks,
        racks: StickyRacks,
        owned: Mapping[str, list[TopicPartition]],
        disputed: set[TopicPartition],
    ) -> None:
        self.transferring: dict[TopicPartition, str] = {}
        self._racks, self._owned, self._disputed = racks, owned, disputed
        self._all = [TopicPartition(topic, index) for topic in sorted(topics) for index in sorted(topics[topic])]
        self._least, self._larger_shares = divmod(len(self._all), len(owned))
        self._most = self._least + (self._larger_shares > 0)
        self._assigned: dict[str, list[TopicPartition]] = {member: [] for member in owned}
        self._revoked: dict[TopicPartition, str] = {}
        self._below_least: list[str] = []
        self._at_least: list[str] = []

    def build(self) -> dict[str, list[TopicPartition]]:
        """Partitions by member id."""
        for member in self._owned:
            self._keep_owned(member)
        kept = {partition for partitions in self._assigned.values() for partition in partitions}
        self._below_least.sort(key=string_order)
        self._at_least.sort(key=string_order)
        left = self._racks.fewest_neighbours_first([partition for partition in self._all if partition not in kept])
        if self._racks.members:
            left = self._assign_within_racks(left)
        self._assign_in_turn(left)
        return self._assigned

    def _keep_owned(self, member: str) -> None:
        for partition in self._owned[member]:
            if self._racks.mismatch(member, partition):
                self._revoked[partition] = member
        owned = [
            partition
            for partition in self._owned[member]
            if partition not in self._disputed and not self._racks.mismatch(member, partition)
        ]
        owned.sort(key=lambda partition: (partition.partition, partition.topic))
        if len(owned) < self._least:
            share = len(owned)
            self._below_least.append(member)
        elif len(owned) >= self._most and self._larger_shares > 0:
            share = self._most
            self._take_larger_share()
        else:
            share = self._least
            if self._larger_shares > 0:
                self._at_least.append(member)
        self._assigned[member] += owned[:share]
        self._revoked.update(dict.fromkeys(owned[share:], member))

    def _take_larger_share(self) -> None:
        self._larger_shares -= 1
        if self._larger_shares == 0:
            self._at_least.clear()

    def _assign_within_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns what a member with room has in its rack; what is left."""
        start, left = 0, []
        below, at = self._racks.count(self._below_least), self._racks.count(self._at_least)
        for partition in partitions:
            index = self._racks.next_neighbour(partition, self._below_least, start, below)
            if index >= 0:
                start = self._fill(partition, index, below, at)
                continue
            index = self._racks.next_neighbour(partition, self._at_least, 0, at)
            if index < 0:
                left.append(partition)
                continue
            member = self._at_least.pop(index)
            at[self._racks.members[member]] -= 1
            self._give(partition, member)
            self._take_larger_share()
            if not self._at_least:
                at.clear()
        return left

    def _fill(self, partition: TopicPartition, index: int, below: Counter[str], at: Counter[str]) -> int:
        """Gives a partition to a member below the least share; where to look for the next member."""
        member = self._below_least[index]
        if self._give(partition, member) >= self._least:
            del self._below_least[index]
            below[self._racks.members[member]] -= 1
            if self._least < self._most and self._larger_shares > 0:
                self._at_least.append(member)
                at[self._racks.members[member]] += 1
        else:
            index += 1
        return index % len(self._below_least) if self._below_least else 0

    def _assign_in_turn(self, partitions: list[TopicPartition]) -> None:
        turn = 0
        for partition in partitions:
            if turn >= len(self._below_least):
                turn = 0
            if not self._below_least:
                self._give(partition, self._at_least.pop(0))
            elif self._give(partition, self._below_least[turn]) == self._least:
                self._at_least.append(self._below_least.pop(turn))
            else:
                turn += 1

    def _give(self, partition: TopicPartition, member: str) -> int:
        """Assigns a partition that nobody kept; how many the member has then."""
        self._assigned[member].append(partition)
        if self._revoked.get(partition, member) != member or partition in self._disputed:
            self.transferring[partition] = member
        return len(self._assigned[member])
