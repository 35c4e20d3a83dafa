"""Groups and offsets as records of __consumer_offsets, in Kafka's own formats.

A null value deletes. Source: GroupMetadataValue, OffsetCommitValue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tagwire import messages
from tagwire.broker.clock import wall_ms
from tagwire.broker.coordinator_log import record_of, tombstone_of
from tagwire.broker.groups.consumer_changes import Change
from tagwire.broker.groups.membership import GroupMetadata, MemberMetadata
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.broker.groups.stored_changes import StoredChange, change_record, read_change
from tagwire.codec.classes import MessageObject
from tagwire.errors import UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.internal_topics import OFFSETS, decode_key, decode_value

OFFSET_VERSION = 3
EXPIRING_VERSION = 1
"""Of an offset that says when it is too old: later versions cannot, and this one has no leader epoch."""
GROUP_VERSION = 3


def offset_record(group_id: str, partition: TopicPartition, offset: OffsetAndMetadata | None, now_ms: int) -> Record:
    """The record of a committed offset; None deletes it."""
    topic, index = partition
    key = messages.OffsetCommitKey(group=group_id, topic=topic, partition=index)
    if offset is None:
        return tombstone_of(key, now_ms)
    value = messages.OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.committed_ms,
        expire_timestamp=-1 if offset.expires_ms is None else offset.expires_ms,
    )
    return record_of(key, value, OFFSET_VERSION if offset.expires_ms is None else EXPIRING_VERSION, now_ms)


def group_record(group_id: str, group: GroupMetadata, now_ms: int) -> Record:
    """The record of a group's members and their assignments."""
    value = messages.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=now_ms,
        members=[_stored_member(member) for member in group.members],
    )
    return record_of(messages.GroupMetadataKey(group=group_id), value, GROUP_VERSION, now_ms)


def no_group_record(group_id: str, now_ms: int) -> Record:
    """The record that deletes a group."""
    return tombstone_of(messages.GroupMetadataKey(group=group_id), now_ms)


class StoredGroup(NamedTuple):
    """A group's members and assignments; None where it is deleted. And when that was stored, -1 for unknown."""

    group_id: str
    metadata: GroupMetadata | None
    stored_ms: int = -1


class StoredOffset(NamedTuple):
    """A committed offset; None where it is deleted."""

    group_id: str
    partition: TopicPartition
    offset: OffsetAndMetadata | None


def change_records(group_id: str, changes: Iterable[Change]) -> list[Record]:
    """The records of what changes in a group of KIP-848."""
    now = wall_ms()
    return [change_record(group_id, change, now) for change in changes]


def read_record(record: Record) -> StoredGroup | StoredOffset | StoredChange | None:
    """What a record says; None for a record of a type that is not kept here: of share groups, streams groups, or one
    that newer brokers write.

    Raises:
        DecodeError: the bytes are not such a record; UnsupportedVersionError for a value of a newer version.
    """
    try:
        key = decode_key(OFFSETS, record.key)
    except UnsupportedVersionError:
        return None
    if isinstance(key, messages.GroupMetadataKey):
        decoded = decode_value(OFFSETS, record.key, record.value)
        return StoredGroup(key.group, None) if decoded is None else _group(key.group, decoded.message)
    if isinstance(key, messages.OffsetCommitKey | messages.LegacyOffsetCommitKey):
        decoded = decode_value(OFFSETS, record.key, record.value)
        offset = None if decoded is None else _offset(decoded.message)
        return StoredOffset(key.group, TopicPartition(key.topic, key.partition), offset)
    return None if key is None else read_change(key, record)


def _offset(value: MessageObject) -> OffsetAndMetadata:
    assert isinstance(value, messages.OffsetCommitValue | messages.LegacyOffsetCommitValue)
    epoch = value.leader_epoch if isinstance(value, messages.OffsetCommitValue) else -1
    expires_ms = value.expire_timestamp if isinstance(value, messages.OffsetCommitValue) else -1
    expires = expires_ms if expires_ms >= 0 else None
    return OffsetAndMetadata(value.offset, epoch, value.metadata, value.commit_timestamp, expires)


def _group(group_id: str, value: MessageObject) -> StoredGroup:
    assert isinstance(value, messages.GroupMetadataValue)
    members = tuple(_member(stored) for stored in value.members)
    metadata = GroupMetadata(value.generation, value.protocol_type or None, value.protocol, value.leader, members)
    return StoredGroup(group_id, metadata, value.current_state_timestamp)


def _stored_member(member: MemberMetadata) -> messages.GroupMetadataValue.MemberMetadata:
    return messages.GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.subscription,
        assignment=member.assignment,
    )


def _member(stored: messages.GroupMetadataValue.MemberMetadata) -> MemberMetadata:
    session_ms = stored.session_timeout
    return MemberMetadata(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        session_ms,
        stored.rebalance_timeout if stored.rebalance_timeout >= 0 else session_ms,
        bytes(stored.subscription),
        bytes(stored.assignment),
    )
