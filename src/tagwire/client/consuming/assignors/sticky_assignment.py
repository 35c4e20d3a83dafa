"""Spreading partitions evenly while each stays where it was if it can.

Members tell what they had, and in which generation; where two claim one partition, the later generation has it, and of
the same generation neither. Members that all want the same topics are served by one algorithm, all others by another.
Source: Kafka's AbstractStickyAssignor, KIP-54, KIP-341, KIP-881. A claim to a partition that does not exist is ignored
here; Kafka's leader would give such a partition out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tagwire.client.consuming.assignors.assignor import TopicRacks
from tagwire.client.consuming.assignors.constrained_assignment import ConstrainedAssignment
from tagwire.client.consuming.assignors.general_assignment import GeneralAssignment
from tagwire.client.consuming.assignors.hash_order import in_hash_order
from tagwire.client.consuming.assignors.sticky_racks import StickyRacks
from tagwire.client.consuming.consumer_protocol import NO_GENERATION, Subscription
from tagwire.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Previous:
    """What a member had before (Kafka's AbstractStickyAssignor.MemberData).

    Attributes:
        generation: in which one; None where it does not say.
    """

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class StickyAssignment:
    """Who gets what.

    Attributes:
        partitions: by member id.
        transferring: partitions that another member has until it gives them up, with their new member; None where that
            is still to be found out.
    """

    partitions: dict[str, list[TopicPartition]]
    transferring: dict[TopicPartition, str] | None


@dataclass(slots=True)
class _Claims:
    """What members had before, each partition with one of them at most.

    Attributes:
        owned: what each keeps a right to, in the order in which it told.
        disputed: what several members of one generation claimed.
    """

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    disputed: set[TopicPartition] = field(default_factory=set)


def assign_sticky(
    topics: TopicRacks, subscriptions: Mapping[str, Subscription], previous: Mapping[str, Previous]
) -> StickyAssignment:
    """Spreads partitions.

    Args:
        topics: those that exist.
        subscriptions: by member id.
        previous: what each of these members had.
    """
    if not subscriptions:
        return StickyAssignment({}, {})
    ordered = {member: subscriptions[member] for member in in_hash_order(subscriptions)}
    wanted = [frozenset(subscription.topics) for subscription in ordered.values()]
    known = {topic: topics[topic] for topic in sorted(frozenset().union(*wanted)) if topics.get(topic)}
    claims = _claims(known, ordered, previous)
    racks = StickyRacks(known, ordered)
    if len(set(wanted)) == 1:
        constrained = ConstrainedAssignment(known, racks, claims.owned, claims.disputed)
        return StickyAssignment(constrained.build(), constrained.transferring)
    general = GeneralAssignment(known, racks, claims.owned, ordered, _outdated(ordered, previous))
    return StickyAssignment(general.build(), None)


def _claims(topics: TopicRacks, subscriptions: Mapping[str, Subscription], previous: Mapping[str, Previous]) -> _Claims:
    claims, owner = _Claims(), dict[TopicPartition, str]()
    for member in subscriptions:
        told = previous[member]
        generation = NO_GENERATION if told.generation is None else told.generation
        owned = claims.owned[member] = []
        for partition in told.partitions:
            if partition.partition not in topics.get(partition.topic, ()):
                continue
            other = owner.get(partition)
            if other is None:
                owned.append(partition)
                owner[partition] = member
                continue
            generation_of_other = subscriptions[other].generation
            if generation < generation_of_other:
                continue
            if partition in claims.owned[other]:
                claims.owned[other].remove(partition)
            owner[partition] = member
            if generation == generation_of_other:
                claims.disputed.add(partition)
            else:
                owned.append(partition)
    return claims


def _outdated(subscriptions: Mapping[str, Subscription], previous: Mapping[str, Previous]) -> dict[TopicPartition, str]:
    """Who had a partition last, of those that were not in the newest generation."""
    generations = {member: previous[member].generation for member in subscriptions}
    newest = max((generation for generation in generations.values() if generation is not None), default=NO_GENERATION)
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member, told in generations.items():
        generation = NO_GENERATION if told is None else told
        if generation >= newest:
            continue
        for partition in previous[member].partitions:
            if partition not in latest or generation > latest[partition][0]:
                latest[partition] = generation, member
    return {partition: member for partition, (_, member) in latest.items()}
