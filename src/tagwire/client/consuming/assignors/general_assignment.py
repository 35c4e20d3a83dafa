"""The sticky algorithm for members that want different topics.

What is not assigned goes to whoever has the least and wants it; then partitions move from who has more to who has less
until nobody is better off, or back where they were if that is as even. Source: Kafka's AbstractStickyAssignor,
GeneralAssignmentBuilder. The result is Kafka's; what is looked up for it is kept, where Kafka searches each time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping

from tagwire.client.consuming.assignors.assignor import TopicRacks
from tagwire.client.consuming.assignors.hash_order import string_order
from tagwire.client.consuming.assignors.partition_movements import PartitionMovements
from tagwire.client.consuming.assignors.sticky_racks import StickyRacks
from tagwire.client.consuming.consumer_protocol import Subscription
from tagwire.partitions import TopicPartition


class GeneralAssignment:
    """One run of the algorithm.

    Args:
        topics: those that are wanted.
        owned: what each member had, by member id; becomes the result.
        outdated: who had a partition before, of those that were not in the newest generation.
    """

    def __init__(
        self,
        topics: TopicRacks,
        racks: StickyRacks,
        owned: dict[str, list[TopicPartition]],
        subscriptions: Mapping[str, Subscription],
        outdated: Mapping[TopicPartition, str],
    ) -> None:
        self._topics, self._racks, self._assigned, self._outdated = topics, racks, owned, outdated
        self._wanted = {
            member: frozenset(topic for topic in subscriptions[member].topics if topic in topics) for member in owned
        }
        self._subscribers: dict[str, list[str]] = {topic: [] for topic in topics}
        for member, wanted in self._wanted.items():
            for topic in wanted:
                self._subscribers[topic].append(member)
        by_choice = sorted(topics, key=lambda topic: (len(self._subscribers[topic]), topic))
        self._all = [TopicPartition(topic, index) for topic in by_choice for index in sorted(topics[topic])]
        self._owner = {partition: member for member, partitions in owned.items() for partition in partitions}
        self._rank = {member: rank for rank, member in enumerate(sorted(owned, key=string_order))}
        self._by_size: list[tuple[int, int, str]] = []
        self._movements = PartitionMovements()
        self._revoked = False
        self._uneven_topic: str | None = None

    def build(self) -> dict[str, list[TopicPartition]]:
        """Partitions by member id."""
        self._keep_owned()
        kept = {partition for partitions in self._assigned.values() for partition in partitions}
        unassigned = [partition for partition in self._all if partition not in kept]
        self._by_size = sorted(map(self._place, self._assigned))
        begins = not kept
        self._assign(unassigned)
        self._balance(unassigned, begins=begins)
        return self._assigned

    def _keep_owned(self) -> None:
        for member, partitions in self._assigned.items():
            kept = [
                partition
                for partition in partitions
                if partition.topic in self._wanted[member] and not self._racks.mismatch(member, partition)
            ]
            if len(kept) < len(partitions):
                self._revoked = True
                partitions[:] = kept

    # Members by what they have -------------------------------------------------------------------------------------

    def _place(self, member: str) -> tuple[int, int, str]:
        return len(self._assigned[member]), self._rank[member], member

    def _take_out(self, member: str) -> None:
        del self._by_size[bisect_left(self._by_size, self._place(member))]

    def _put_back(self, member: str) -> None:
        insort(self._by_size, self._place(member))

    def _smallest(self, topic: str) -> str:
        """The member with the least partitions that wants a topic."""
        return next(member for _, _, member in self._by_size if topic in self._wanted[member])

    # Assigning what nobody has -------------------------------------------------------------------------------------

    def _assign(self, unassigned: Iterable[TopicPartition]) -> None:
        left = list(unassigned)
        if self._racks.members:
            left = [partition for partition in left if not self._assign_one(partition, within_rack=True)]
        for partition in left:
            self._assign_one(partition, within_rack=False)

    def _assign_one(self, partition: TopicPartition, *, within_rack: bool) -> bool:
        for _, _, member in self._by_size:
            if partition.topic in self._wanted[member] and not (
                within_rack and self._racks.mismatch(member, partition)
            ):
                self._take_out(member)
                self._assigned[member].append(partition)
                self._owner[partition] = member
                self._put_back(member)
                return True
        return False

    # Moving partitions to who has less -----------------------------------------------------------------------------

    def _balance(self, unassigned: Iterable[TopicPartition], *, begins: bool) -> None:
        shared = {topic for topic, members in self._subscribers.items() if len(members) > 1}
        fixed = {}
        for member in [member for member in self._assigned if not self._can_change(member, shared)]:
            self._take_out(member)
            fixed[member] = self._assigned.pop(member)
        before = {member: list(partitions) for member, partitions in self._assigned.items()}
        if not self._revoked:
            self._move([partition for partition in unassigned if partition.topic in shared])
        moved = self._move([partition for partition in self._all if partition.topic in shared])
        if not begins and moved and _unevenness(self._assigned) >= _unevenness(before):
            self._assigned.update(before)
        self._assigned.update(fixed)

    def _can_change(self, member: str, shared: set[str]) -> bool:
        """Whether it lacks something that it wants, or has something that another wants."""
        partitions = self._assigned[member]
        wanted = sum(len(self._topics[topic]) for topic in self._wanted[member])
        return len(partitions) < wanted or any(partition.topic in shared for partition in partitions)

    def _move(self, partitions: list[TopicPartition]) -> bool:
        """Moves partitions until none can move; whether one has."""
        moved = False
        even = self._is_even()
        while True:
            changed = False
            for partition in partitions:
                if even:
                    break
                if (receiver := self._receiver(partition)) is not None:
                    self._move_one(partition, receiver)
                    even, changed = self._is_even(), True
            if not changed:
                return moved
            moved = True

    def _receiver(self, partition: TopicPartition) -> str | None:
        """Who should rather have a partition: who had it before, or who has the least; None if its member should."""
        most = len(self._assigned[self._owner[partition]])
        before = self._outdated.get(partition)
        if (
            before in self._assigned
            and partition.topic in self._wanted[before]
            and most > len(self._assigned[before]) + 1
        ):
            return before
        smallest = self._smallest(partition.topic)
        return smallest if most > len(self._assigned[smallest]) + 1 else None

    def _move_one(self, partition: TopicPartition, receiver: str) -> None:
        partition = self._movements.instead_of(partition, self._owner[partition], receiver)
        owner = self._owner[partition]
        self._take_out(owner)
        self._take_out(receiver)
        self._movements.move(partition, owner, receiver)
        self._assigned[owner].remove(partition)
        self._assigned[receiver].append(partition)
        self._owner[partition] = receiver
        self._put_back(owner)
        self._put_back(receiver)

    def _is_even(self) -> bool:
        """Whether no partition would be better off with another member that wants it."""
        if not self._by_size or self._by_size[0][0] >= self._by_size[-1][0] - 1:
            return True
        if self._uneven_topic is not None and self._is_uneven(self._uneven_topic):
            return False
        self._uneven_topic = next((topic for topic in self._topics if self._is_uneven(topic)), None)
        return self._uneven_topic is None

    def _is_uneven(self, topic: str) -> bool:
        least = next((size for size, _, member in self._by_size if topic in self._wanted[member]), None)
        if least is None:
            return False
        owners = (self._owner[TopicPartition(topic, index)] for index in self._topics[topic])
        return any(len(self._assigned[owner]) > least + 1 for owner in owners)


def _unevenness(assigned: Mapping[str, list[TopicPartition]]) -> int:
    """The sum of the differences in size between any two members."""
    sizes = sorted(map(len, assigned.values()))
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
