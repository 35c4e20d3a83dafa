"""Groups and offsets as records of __consumer_offsets, in Kafka's own formats.

A null value deletes. Source: GroupMetadataValue, OffsetCommitValue.
"""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.groups.membership import GroupMetadata, MemberMetadata
from tagwire.broker.groups.offsets import CommittedOffset, TopicPartition
from tagwire.broker.state_log import key_bytes, value_bytes
from tagwire.errors import UnsupportedVersionError
from tagwire.records import Record
from tagwire.records.internal_topics import OFFSETS, decode_key, decode_value

OFFSET_VERSION = 3
GROUP_VERSION = 3


def offset_record(group_id: str, partition: TopicPartition, offset: CommittedOffset | None, now_ms: int) -> Record:
    """The record of a committed offset; None deletes it."""
    topic, index = partition
    key = key_bytes(messages.OffsetCommitKey(group=group_id, topic=topic, partition=index))
    if offset is None:
        return Record(key, None, timestamp=now_ms)
    value = messages.OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.committed_ms,
    )
    return Record(key, value_bytes(value, OFFSET_VERSION), timestamp=now_ms)


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
    return Record(_group_key(group_id), value_bytes(value, GROUP_VERSION), timestamp=now_ms)


def no_group_record(group_id: str, now_ms: int) -> Record:
    """The record that deletes a group."""
    return Record(_group_key(group_id), None, timestamp=now_ms)


def read_record(record: Record) -> tuple[Any, Any] | None:
    """A record's key message and value message, None for the value of one that deletes; None for a record of a type
    that newer brokers write.

    Raises:
        DecodeError: the bytes are not such a record; UnsupportedVersionError for a value of a newer version.
    """
    try:
        key = decode_key(OFFSETS, record.key)
    except UnsupportedVersionError:
        return None
    value = decode_value(OFFSETS, record.key, record.value)
    return key, None if value is None else value.message


def offset_of(value: Any) -> CommittedOffset:
    """The offset in a value."""
    return CommittedOffset(value.offset, getattr(value, "leader_epoch", -1), value.metadata, value.commit_timestamp)


def metadata_of(value: Any) -> GroupMetadata:
    """The group in a value."""
    members = tuple(_member(stored) for stored in value.members)
    return GroupMetadata(value.generation, value.protocol_type or None, value.protocol, value.leader, members)


def _group_key(group_id: str) -> bytes:
    return key_bytes(messages.GroupMetadataKey(group=group_id))


def _stored_member(member: MemberMetadata) -> Any:
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


def _member(stored: Any) -> MemberMetadata:
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
