"""Members of a group of KIP-848 that speak the classic protocol: they join, synchronize, heartbeat and leave as ever.

Nobody leads: what a member is to have comes from the group's targets. JoinGroup is the heartbeat that says what the
member has and takes it a step further; its generation is its epoch; SyncGroup tells what it may have. It is told to
join again when its epoch is not the group's, when it has to give up partitions, and when others have given up what it
waits for. Source: KIP-848, Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from tagwire.broker.groups import embedded_protocol
from tagwire.broker.groups.consumer_changes import Change
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import (
    ClassicMember,
    ConsumerMember,
    MemberState,
    Partitions,
    TopicIdPartition,
)
from tagwire.broker.groups.consumer_records import TopicsView
from tagwire.broker.groups.consumer_steps import Step
from tagwire.broker.groups.membership import Joining, JoinResult, SyncResult, differs
from tagwire.errors import Error, KafkaError


def join(group: ConsumerGroup, joining: Joining, new_id: str) -> Step[JoinResult]:
    """A classic member joins, or joins again. `new_id` is its member id if it has none.

    Raises:
        KafkaError: as `ConsumerGroup.heartbeat`; INCONSISTENT_GROUP_PROTOCOL.
    """
    member_id = joining.member_id or new_id
    group.check_size(member_id)
    if joining.protocol_type != embedded_protocol.TYPE or not _shared(group, joining):
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL, "no protocol is spoken by all classic members")
    if not joining.member_id and joining.takes_id and joining.instance_id is None:
        return Step(JoinResult(Error.MEMBER_ID_REQUIRED, member_id))
    said = embedded_protocol.read_subscription(joining.protocols[0][1])
    changes: list[Change] = []
    if joining.instance_id is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
    elif joining.member_id:
        member = group.check_member(member_id, joining.instance_id)
    else:
        member = group.take_instance(member_id, joining.instance_id, changes, is_classic=True)
    before = member.subscription
    subscription = replace(
        before,
        instance_id=joining.instance_id or before.instance_id,
        rack_id=(said.rack_id if said.rack_id is not None else before.rack_id) or None,
        client_id=joining.client_id,
        client_host=joining.client_host,
        topics=frozenset(said.topics),
        regex=None,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        classic=ClassicMember(joining.session_timeout_ms, joining.protocols),
    )
    updated = group.advance(member, subscription, partitions_of(said.owned_partitions, group.topics), changes)

    def then(now_ms: int) -> None:
        group.heard_of(updated, now_ms)
        group.expect_sync(updated, now_ms)

    result = JoinResult(Error.NONE, member_id, updated.current.epoch, embedded_protocol.TYPE, joining.protocols[0][0])
    return Step(result, changes, then=then)


def _shared(group: ConsumerGroup, joining: Joining) -> set[str]:
    """The protocols of a member that all classic members speak, and it has spoken before."""
    shared = {name for name, _ in joining.protocols}
    for member in group.members.values():
        classic = member.subscription.classic
        if classic is not None:
            shared &= {name for name, _ in classic.protocols}
    return shared


def sync(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    protocol_type: str | None,
    protocol: str | None,
    now_ms: int,
) -> SyncResult:
    """What a classic member may have; `protocol` is the one that it takes to be chosen, None where it does not say.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
            REBALANCE_IN_PROGRESS: it has to join again.
    """
    member, classic = _classic_member(group, member_id, instance_id, generation)
    chosen, subscription = classic.protocols[0]
    if differs(protocol_type, embedded_protocol.TYPE) or differs(protocol, chosen):
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
    current = member.current
    if (group.epoch or 0) > current.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
        group.expect_join(member, now_ms)
        raise KafkaError(Error.REBALANCE_IN_PROGRESS)
    group.synchronized(member)
    group.heard_of(member, now_ms)
    assignment = embedded_protocol.write_assignment(names_of(current.assigned, group.topics), subscription)
    return SyncResult(Error.NONE, embedded_protocol.TYPE, chosen, assignment)


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> Error:
    """A classic member says that it is there: whether it has to join again.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member, _ = _classic_member(group, member_id, instance_id, generation)
    group.heard_of(member, now_ms)
    current = member.current
    if (
        current.epoch < (group.epoch or 0)
        or current.state is MemberState.UNREVOKED_PARTITIONS
        or (current.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
    ):
        group.expect_join(member, now_ms)
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether others still have what a member is to get."""
    missing = group.targets.get(member.member_id, frozenset()) - member.current.assigned
    return any(group.is_owned(partition) for partition in missing)


def leave(group: ConsumerGroup, members: Iterable[tuple[str, str | None]]) -> Step[list[Error]]:
    """Members leave, or are made to, whatever they speak: by an instance id alone, where the member id is "". Of each:
    NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID. Source: Kafka's GroupMetadataManager."""
    gone: dict[str, ConsumerMember] = {}
    errors = []
    for member_id, instance_id in members:
        found = group.static_member(instance_id) if member_id == "" and instance_id is not None else None
        try:
            member = group.check_member(found.member_id if found is not None else member_id, instance_id)
        except KafkaError as refusal:
            errors.append(refusal.error)
            continue
        gone[member.member_id] = member
        errors.append(Error.NONE)
    return group.without(gone.values(), errors) if gone else Step(errors)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMember]:
    member = group.check_member(member_id, instance_id)
    classic = member.subscription.classic
    if classic is None:
        raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"member {member_id!r} does not speak the classic protocol")
    if generation != member.current.epoch:
        raise KafkaError(Error.ILLEGAL_GENERATION, f"{generation} is not the member's, {member.current.epoch}")
    return member, classic


class TopicPartitions(Protocol):
    """A topic and its partitions, as several messages of the classic protocol list them."""

    topic: str
    partitions: list[int]


def partitions_of(topics: Iterable[TopicPartitions], known: TopicsView) -> Partitions:
    """Partitions that a message of the classic protocol lists by `topic` and `partitions`; of topics that exist."""
    found = [(known.get(listed.topic), listed.partitions) for listed in topics]
    return frozenset(
        TopicIdPartition(topic.topic_id, index) for topic, indexes in found if topic is not None for index in indexes
    )


def names_of(partitions: Partitions, known: TopicsView) -> dict[str, list[int]]:
    """Partitions by the names of their topics; of topics that exist."""
    found: dict[str, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topic = known.by_id(topic_id)
        if topic is not None:
            found.setdefault(topic.name, []).append(index)
    return found
