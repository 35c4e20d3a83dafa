"""What changes in a group of KIP-848 as records of __consumer_offsets, in Kafka's own formats.

A null value deletes. Source: Kafka's GroupCoordinatorRecordHelpers, ConsumerGroupMetadataValue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol
from uuid import UUID

from tagwire import messages
from tagwire.broker.coordinator_log import record_of, tombstone_of
from tagwire.broker.groups.consumer_changes import (
    Change,
    CurrentChange,
    EpochChange,
    KnownTopic,
    RegexChange,
    ResolvedRegex,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    TopicsChange,
)
from tagwire.broker.groups.consumer_member import (
    ClassicMember,
    CurrentAssignment,
    MemberState,
    Partitions,
    Subscription,
    TopicIdPartition,
    by_topic,
)
from tagwire.codec.classes import MessageObject
from tagwire.records import Record
from tagwire.records.internal_topics import OFFSETS, decode_value

VERSION = 0

_MemberValue = messages.ConsumerGroupMemberMetadataValue
_TopicsValue = messages.ConsumerGroupPartitionMetadataValue
_TargetValue = messages.ConsumerGroupTargetAssignmentMemberValue
_CurrentValue = messages.ConsumerGroupCurrentMemberAssignmentValue
_RegexValue = messages.ConsumerGroupRegularExpressionValue


class StoredChange(NamedTuple):
    """What changes in a group."""

    group_id: str
    change: Change


def change_record(group_id: str, change: Change, now_ms: int) -> Record:
    """The record of a change."""
    key, value = _key(group_id, change), _value(change, now_ms)
    return tombstone_of(key, now_ms) if value is None else record_of(key, value, VERSION, now_ms)


def _key(group_id: str, change: Change) -> MessageObject:
    match change:
        case EpochChange():
            return messages.ConsumerGroupMetadataKey(group_id=group_id)
        case TopicsChange():
            return messages.ConsumerGroupPartitionMetadataKey(group_id=group_id)
        case SubscriptionChange():
            return messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
        case TargetEpochChange():
            return messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
        case TargetChange():
            return messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=change.member_id)
        case CurrentChange():
            return messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=change.member_id)
        case RegexChange():
            return messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=change.regex)


def _value(change: Change, now_ms: int) -> MessageObject | None:
    match change:
        case EpochChange(int() as epoch):
            return messages.ConsumerGroupMetadataValue(epoch=epoch)
        case TopicsChange(topics) if topics is not None:
            return _TopicsValue(
                topics=[
                    _TopicsValue.TopicMetadata(
                        topic_id=topic.topic_id, topic_name=name, num_partitions=topic.partitions
                    )
                    for name, topic in sorted(topics.items())
                ]
            )
        case SubscriptionChange(_, Subscription() as subscription):
            return _subscription_value(subscription)
        case TargetEpochChange(int() as epoch):
            return messages.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
        case TargetChange(_, frozenset() as partitions):
            return _TargetValue(
                topic_partitions=[
                    _TargetValue.TopicPartition(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in by_topic(partitions)
                ]
            )
        case CurrentChange(_, CurrentAssignment() as current):
            return _CurrentValue(
                member_epoch=current.epoch,
                previous_member_epoch=current.previous_epoch,
                state=current.state,
                assigned_partitions=_current_topics(current, current.assigned),
                partitions_pending_revocation=_current_topics(current, current.revoking),
            )
        case RegexChange(_, ResolvedRegex() as resolved):
            return _RegexValue(topics=sorted(resolved.topics), version=resolved.version, timestamp=now_ms)
    return None


def _current_topics(current: CurrentAssignment, partitions: Partitions) -> list[_CurrentValue.TopicPartitions]:
    return [
        _CurrentValue.TopicPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=[current.granted[TopicIdPartition(topic_id, index)] for index in indexes],
        )
        for topic_id, indexes in by_topic(partitions)
    ]


def _subscription_value(subscription: Subscription) -> _MemberValue:
    classic = subscription.classic
    return _MemberValue(
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topics),
        subscribed_topic_regex=subscription.regex,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        server_assignor=subscription.assignor,
        classic_member_metadata=None
        if classic is None
        else _MemberValue.ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                _MemberValue.ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols
            ],
        ),
    )


def read_change(key: MessageObject, record: Record) -> StoredChange | None:
    """What a record with this key changes; None for a key of something else.

    Raises:
        DecodeError: the value is no such one; UnsupportedVersionError where it is of a newer version.
    """
    if not isinstance(key, _KEYS):
        return None
    decoded = decode_value(OFFSETS, record.key, record.value)
    return StoredChange(key.group_id, _change(key, None if decoded is None else decoded.message))


_KEYS = (
    messages.ConsumerGroupMetadataKey,
    messages.ConsumerGroupPartitionMetadataKey,
    messages.ConsumerGroupMemberMetadataKey,
    messages.ConsumerGroupTargetAssignmentMetadataKey,
    messages.ConsumerGroupTargetAssignmentMemberKey,
    messages.ConsumerGroupCurrentMemberAssignmentKey,
    messages.ConsumerGroupRegularExpressionKey,
)


def _change(key: MessageObject, value: MessageObject | None) -> Change:
    match key, value:
        case messages.ConsumerGroupMetadataKey(), (messages.ConsumerGroupMetadataValue() | None) as group:
            return EpochChange(None if group is None else group.epoch)
        case messages.ConsumerGroupPartitionMetadataKey(), (_TopicsValue() | None) as known:
            if known is None:
                return TopicsChange(None)
            return TopicsChange(
                {topic.topic_name: KnownTopic(topic.topic_id, topic.num_partitions) for topic in known.topics}
            )
        case messages.ConsumerGroupMemberMetadataKey(), (_MemberValue() | None) as member:
            return SubscriptionChange(key.member_id, None if member is None else _subscription(member))
        case (
            messages.ConsumerGroupTargetAssignmentMetadataKey(),
            (messages.ConsumerGroupTargetAssignmentMetadataValue() | None) as target,
        ):
            return TargetEpochChange(None if target is None else target.assignment_epoch)
        case messages.ConsumerGroupTargetAssignmentMemberKey(), (_TargetValue() | None) as assigned:
            return TargetChange(key.member_id, None if assigned is None else partitions_of(assigned.topic_partitions))
        case messages.ConsumerGroupCurrentMemberAssignmentKey(), (_CurrentValue() | None) as current:
            return CurrentChange(key.member_id, None if current is None else _current(current))
        case messages.ConsumerGroupRegularExpressionKey(), (_RegexValue() | None) as regex:
            resolved = None if regex is None else ResolvedRegex(frozenset(regex.topics), regex.version)
            return RegexChange(key.regular_expression, resolved)
    raise AssertionError(key)


class TopicPartitions(Protocol):
    """A topic and its partitions, as several messages list them."""

    topic_id: UUID
    partitions: list[int]


def partitions_of(topics: Iterable[TopicPartitions]) -> Partitions:
    """The partitions that a message lists, by `topic_id` and `partitions`."""
    return frozenset(TopicIdPartition(topic.topic_id, index) for topic in topics for index in topic.partitions)


def _current(value: _CurrentValue) -> CurrentAssignment:
    state = MemberState(value.state) if value.state in set(MemberState) else MemberState.UNKNOWN
    granted = {
        TopicIdPartition(topic.topic_id, index): epoch
        for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
        for index, epoch in zip(topic.partitions, topic.assignment_epochs or ())
    }
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        state,
        partitions_of(value.assigned_partitions),
        partitions_of(value.partitions_pending_revocation),
        granted,
    )


def _subscription(value: _MemberValue) -> Subscription:
    classic = value.classic_member_metadata
    return Subscription(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        frozenset(value.subscribed_topic_names),
        value.subscribed_topic_regex,
        value.rebalance_timeout_ms,
        value.server_assignor,
        None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
        ),
    )
