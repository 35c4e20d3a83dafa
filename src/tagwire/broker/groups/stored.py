"""Groups and offsets as records of __consumer_offsets, in Kafka's own formats.

A null value deletes. Source: facts/kafka_protocol.md 6.
"""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.groups.group import Group
from tagwire.broker.groups.membership import Member
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


def group_record(group: Group, now_ms: int) -> Record:
    """The record of a group's members and their assignments."""
    value = messages.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=now_ms,
        members=[_stored_member(member, group.protocol) for member in group.members.values()],
    )
    return Record(_group_key(group.group_id), value_bytes(value, GROUP_VERSION), timestamp=now_ms)


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


def restore_group(group: Group, value: Any, now_ms: int) -> None:
    """Make a group what a value says; its members get their session timeouts anew."""
    protocol = value.protocol
    group.restore(
        value.generation,
        value.protocol_type or None,
        protocol,
        value.leader,
        [_member(stored, protocol, now_ms) for stored in value.members],
    )


def _group_key(group_id: str) -> bytes:
    return key_bytes(messages.GroupMetadataKey(group=group_id))


def _stored_member(member: Member, protocol: str | None) -> Any:
    return messages.GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=member.assignment,
    )


def _member(stored: Any, protocol: str | None, now_ms: int) -> Member:
    session_ms = stored.session_timeout
    rebalance_ms = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else session_ms
    return Member(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        session_ms,
        rebalance_ms,
        ((protocol or "", bytes(stored.subscription)),),
        now_ms + session_ms,
        bytes(stored.assignment),
        synced=True,
    )
