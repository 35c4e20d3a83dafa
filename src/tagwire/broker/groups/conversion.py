"""Groups that change their protocol while their members go on: to KIP-848's when the first member of it joins, back to
the classic one when the last has gone.

Source: KIP-848; Kafka's ConsumerGroup, ClassicGroup.
"""

from __future__ import annotations

from collections import Counter

from tagwire.broker.groups import embedded_protocol
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.classic_members import names_of, partitions_of
from tagwire.broker.groups.consumer_changes import (
    Change,
    CurrentChange,
    EpochChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
)
from tagwire.broker.groups.consumer_group import MAX_MEMBERS, ConsumerGroup
from tagwire.broker.groups.consumer_member import ClassicMember, CurrentAssignment, Subscription, TopicIdPartition
from tagwire.broker.groups.consumer_records import TopicsView
from tagwire.broker.groups.consumer_steps import NOBODY
from tagwire.broker.groups.membership import GroupMetadata, MemberMetadata, Protocols
from tagwire.errors import Error, KafkaError


def upgraded(group: ClassicGroup, topics: TopicsView) -> list[Change]:
    """What makes a group of KIP-848 of a classic one with members; they have what they were assigned last, and are
    told at their next heartbeat to join again. In the midst of a rebalance, a member has what it says it still owns.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND: its members are no consumers, are too many, or said what cannot be read.
    """
    if group.protocol_type != embedded_protocol.TYPE or len(group.members) > MAX_MEMBERS:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"group {group.group_id!r} cannot become one of KIP-848")
    changes: list[Change] = [EpochChange(group.generation), TargetEpochChange(group.generation)]
    taken: set[TopicIdPartition] = set()
    for member in group.members.values():
        name, data = next(((n, d) for n, d in member.protocols if n == group.protocol), member.protocols[0])
        try:
            said = embedded_protocol.read_subscription(data)
            assigned = embedded_protocol.read_assignment(member.assignment).assigned_partitions
        except KafkaError as error:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND, error.message) from None
        has = partitions_of(assigned if member.assignment else said.owned_partitions, topics) - taken
        taken |= has
        ordered = ((name, data), *(protocol for protocol in member.protocols if protocol[0] != name))
        subscription = Subscription(
            member.instance_id,
            said.rack_id,
            member.client_id,
            member.client_host,
            frozenset(said.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMember(member.session_timeout_ms, ordered),
        )
        current = CurrentAssignment(group.generation, group.generation, assigned=has)
        changes += [
            SubscriptionChange(member.member_id, subscription),
            TargetChange(member.member_id, has),
            CurrentChange(member.member_id, current),
        ]
    return changes


def downgraded(group: ConsumerGroup, gone: frozenset[str] = NOBODY) -> tuple[GroupMetadata, dict[str, Protocols]]:
    """What a group of KIP-848 is as a classic one, all of whose members speak the classic protocol, but maybe those
    that are gone; and what each of them speaks. They have what their targets are."""
    spoken = {
        member.member_id: member.subscription.classic.protocols
        for member in group.members.values()
        if member.subscription.classic is not None and member.member_id not in gone
    }
    shared = set.intersection(*({name for name, _ in protocols} for protocols in spoken.values()))
    votes = Counter(
        next((name for name, _ in protocols if name in shared), protocols[0][0]) for protocols in spoken.values()
    )
    ((chosen, _),) = votes.most_common(1)
    members = tuple(_stored(group, member_id, chosen, protocols) for member_id, protocols in spoken.items())
    leader = next(iter(spoken))
    return GroupMetadata(group.epoch or 0, embedded_protocol.TYPE, chosen, leader, members), spoken


def _stored(group: ConsumerGroup, member_id: str, protocol: str, spoken: Protocols) -> MemberMetadata:
    said = group.members[member_id].subscription
    data = dict(spoken).get(protocol, b"")
    targets = names_of(group.targets.get(member_id, frozenset()), group.topics)
    return MemberMetadata(
        member_id,
        said.instance_id,
        said.client_id,
        said.client_host,
        said.classic.session_timeout_ms if said.classic is not None else 0,
        said.rebalance_timeout_ms,
        data,
        embedded_protocol.write_assignment(targets, data),
    )
