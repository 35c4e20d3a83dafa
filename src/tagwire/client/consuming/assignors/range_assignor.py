"""Range: of each topic every member has one stretch of partitions, so that equal numbers of different topics meet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from tagwire.client.consuming.assignors.assignor import RebalanceProtocol, TopicRacks
from tagwire.client.consuming.assignors.hash_order import in_hash_order
from tagwire.client.consuming.assignors.member_order import in_member_order
from tagwire.client.consuming.assignors.rack_awareness import racks_matter
from tagwire.client.consuming.consumer_protocol import Assignment, Subscription
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.partitions import TopicPartition


class RangeAssignor:
    """Gives each member of a topic as many neighbouring partitions as the others, the first members one more where it
    does not come out even. Where racks matter, members first get partitions that have a replica in their rack; topics
    with equal members and equally many partitions are kept together then, too.

    Source: Kafka's RangeAssignor, KIP-881.
    """

    name = "range"
    protocols = frozenset((RebalanceProtocol.EAGER,))

    def subscription_user_data(self, topics: Collection[str], owned_partitions: Collection[TopicPartition]) -> None:
        """Nothing."""

    def assign(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        racks = {member: subscription.rack for member, subscription in subscriptions.items() if subscription.rack}
        subscribers: dict[str, list[str]] = {}
        for member in in_member_order(subscriptions):
            for topic in subscriptions[member].topics:
                subscribers.setdefault(topic, []).append(member)
        named = (topic for member in in_hash_order(subscriptions) for topic in subscriptions[member].topics)
        known = in_hash_order(topic for topic in in_hash_order(named) if topics.get(topic))
        states = [_Topic(topic, topics[topic], subscribers[topic], racks) for topic in known]
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        by_racks = any(state.racks_matter for state in states)
        if by_racks:
            _assign_within_racks(states, assigned)
        for state in states:
            state.assign_ranges(assigned)
        if by_racks:
            for partitions in assigned.values():
                partitions.sort()
        return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Nothing is remembered."""


class _Topic:
    """One topic while it is assigned.

    Attributes:
        racks_matter: whether its partitions are to be matched with racks.
        racks_known: of as many partitions it is known where they are: none, where no member says where it is.
    """

    def __init__(
        self, topic: str, partitions: Mapping[int, frozenset[str]], members: Sequence[str], racks: Mapping[str, str]
    ) -> None:
        self.topic, self.members = topic, tuple(members)
        self._racks = {member: racks.get(member) for member in members}
        self._partitions = {TopicPartition(topic, index): partitions[index] for index in sorted(partitions)}
        self._unassigned = dict.fromkeys(self._partitions)
        self._count = dict.fromkeys(members, 0)
        self._quota, self._extra = divmod(len(partitions), len(members))
        known = {rack for rack in self._racks.values() if rack}
        self.racks_matter = racks_matter(known, partitions.values())
        self.racks_known = len(partitions) if known else 0

    def matches(self, member: str, partition: TopicPartition) -> bool:
        """Whether it has a replica in the member's rack; one without a rack is at home everywhere."""
        rack = self._racks[member]
        return rack is None or rack in self._partitions.get(partition, ())

    def room(self, member: str) -> int:
        """How many partitions it may still get."""
        return max(0, self._quota + (self._extra > 0) - self._count[member])

    def give(
        self, member: str, partitions: Sequence[TopicPartition], assigned: dict[str, list[TopicPartition]]
    ) -> None:
        assigned[member] += partitions
        self._count[member] += len(partitions)
        self._extra -= self._count[member] > self._quota
        for partition in partitions:
            self._unassigned.pop(partition, None)

    def assign_ranges(self, assigned: dict[str, list[TopicPartition]]) -> None:
        """Gives each member in turn what it has room for."""
        for member in self.members:
            if not self._unassigned:
                return
            if taken := list(islice(self._unassigned, self.room(member))):
                self.give(member, taken, assigned)

    def assign_ranges_within_racks(self, assigned: dict[str, list[TopicPartition]]) -> None:
        """Gives each member in turn what it has room for and is in its rack."""
        nearby: dict[str | None, Iterator[TopicPartition]] = {
            rack: iter(
                [partition for partition in self._partitions if rack is None or rack in self._partitions[partition]]
            )
            for rack in set(self._racks.values())
        }
        for member in self.members:
            left = (partition for partition in nearby[self._racks[member]] if partition in self._unassigned)
            if taken := list(islice(left, self.room(member))):
                self.give(member, taken, assigned)


def _assign_within_racks(states: Sequence[_Topic], assigned: dict[str, list[TopicPartition]]) -> None:
    together: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for state in states:
        together.setdefault((state.members, state.racks_known), []).append(state)
    for (members, count), alike in together.items():
        if len(alike) > 1:
            _assign_co_partitioned(members, count, alike, assigned)
        elif alike[0].racks_matter:
            alike[0].assign_ranges_within_racks(assigned)


def _assign_co_partitioned(
    members: Sequence[str], count: int, states: Sequence[_Topic], assigned: dict[str, list[TopicPartition]]
) -> None:
    """Gives each partition of all the topics to the first member whose rack has them all."""
    remaining = dict.fromkeys(members)
    for index in range(count):
        partitions = [TopicPartition(state.topic, index) for state in states]
        pairs = list(zip(states, partitions, strict=True))
        found = next(
            (
                member
                for member in remaining
                if all(state.matches(member, partition) and state.room(member) > 0 for state, partition in pairs)
            ),
            None,
        )
        if found is None:
            continue
        for state, partition in pairs:
            state.give(found, [partition], assigned)
        if not any(state.room(found) for state in states):
            del remaining[found]
            if not remaining:
                return
