"""Which member of a group of KIP-848 is to have which partitions: Kafka's own assignors, `uniform` and `range`.

Pure functions: members and topics come in the order in which they are to be served, and the same input gives the same
target. Both leave racks out of account, as Kafka's do. Source: Kafka's UniformAssignor and RangeAssignor in
org.apache.kafka.coordinator.group.assignor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from tagwire.broker.groups.uneven_members import spread_over_uneven_members

Partitions: TypeAlias = Mapping[UUID, Set[int]]
"""Partitions of topics, by topic id; no topic without any."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """What an assignor is told of a member (Kafka's MemberSubscription and MemberAssignment).

    Attributes:
        topics: ids of the topics that it is subscribed to.
        target: what it is to have so far. No partition is of two members.
        instance_id: a static member's.
    """

    topics: Set[UUID]
    target: Partitions = field(default_factory=dict)
    instance_id: str | None = None


Target: TypeAlias = dict[str, dict[UUID, frozenset[int]]]
"""What each member is to have, by member id; a member without partitions is there as well."""


def assign_uniform(topics: Mapping[UUID, int], members: Mapping[str, MemberSpec]) -> Target:
    """As evenly as it goes over all topics, each partition with its member if that comes out as even.

    Args:
        topics: how many partitions each has. What members are subscribed to or have besides is left out.
        members: by member id; where not all can have equally many, those that have one more keep it.
    """
    wishes = {frozenset(topic for topic in member.topics if topic in topics) for member in members.values()}
    if len(wishes) > 1:
        kept = {
            member: {topic: set(partitions) for topic, partitions in _kept(topics, spec).items()}
            for member, spec in members.items()
        }
        spread_over_uneven_members(topics, {member: spec.topics for member, spec in members.items()}, kept)
        return {member: _frozen(partitions) for member, partitions in kept.items()}
    return _spread_evenly([topic for topic in topics if topic in next(iter(wishes), ())], topics, members)


def assign_range(topics: Mapping[UUID, int], members: Mapping[str, MemberSpec]) -> Target:
    """Of each topic one stretch for each member, static members first; equal numbers of different topics meet where
    members and partitions are as many. What members had does not count.

    Args: as of `assign_uniform`.
    """

    def order(member: str) -> tuple[bool, str]:
        instance = members[member].instance_id
        return instance is None, member if instance is None else instance

    target: Target = {member: {} for member in members}
    in_order = sorted(members, key=order)
    for topic, count in topics.items():
        subscribers = [member for member in in_order if topic in members[member].topics]
        quota, extra = divmod(count, max(len(subscribers), 1))
        start = 0
        for number, member in enumerate(subscribers):
            end = start + quota + (number < extra)
            if start < end:
                target[member][topic] = frozenset(range(start, end))
            start = end
    return target


ASSIGNORS: Final[dict[str, Callable[[Mapping[UUID, int], Mapping[str, MemberSpec]], Target]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
"""By the names in `group.consumer.assignors`, the default first."""


def _kept(topics: Mapping[UUID, int], spec: MemberSpec) -> dict[UUID, list[int]]:
    """What a member has of the topics that it is subscribed to, in ascending order."""
    kept = {
        topic: sorted(one for one in partitions if 0 <= one < topics[topic])
        for topic, partitions in spec.target.items()
        if topic in topics and topic in spec.topics
    }
    return {topic: partitions for topic, partitions in kept.items() if partitions}


def _spread_evenly(wanted: list[UUID], topics: Mapping[UUID, int], members: Mapping[str, MemberSpec]) -> Target:
    """For members that are all subscribed to the same topics. Source: Kafka's UniformHomogeneousAssignmentBuilder."""
    kept = {member: _kept(topics, spec) for member, spec in members.items()}
    assigned = {(topic, one) for had in kept.values() for topic, partitions in had.items() for one in partitions}
    left = [(topic, one) for topic in wanted for one in range(topics[topic]) if (topic, one) not in assigned]
    quota, extra = divmod(sum(topics[topic] for topic in wanted), max(len(members), 1))
    room: dict[str, int] = {}
    for number, (member, had) in enumerate(kept.items()):
        free = quota + (extra > 0)
        for topic, partitions in had.items():
            left += ((topic, one) for one in partitions[free:])
            del partitions[free:]
            free -= len(partitions)
        # Who does not have the one more already leaves it to those that may, as long as enough of them follow.
        if extra > 0 and free > 0 and len(members) - number > extra:
            free -= 1
        elif extra > 0:
            extra -= 1
        room[member] = free
    start = 0
    for member, free in room.items():
        for topic, one in left[start : start + free]:
            kept[member].setdefault(topic, []).append(one)
        start += free
    return {member: _frozen(partitions) for member, partitions in kept.items()}


def _frozen(partitions: Mapping[UUID, list[int]] | Mapping[UUID, set[int]]) -> dict[UUID, frozenset[int]]:
    return {topic: frozenset(numbers) for topic, numbers in partitions.items() if numbers}
