"""What consumers tell each other in the classic protocol, inside of JoinGroup and SyncGroup: int16 version, then the
message of that version, and maybe what later versions add. Source: Kafka's ConsumerProtocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tagwire import messages
from tagwire.codec.classes import MessageObject
from tagwire.errors import DecodeError, Error, KafkaError, UnsupportedVersionError

TYPE = "consumer"
"""The protocol type of consumers."""

NEWEST = 3

Message = TypeVar("Message", bound=MessageObject)


def read_subscription(data: bytes) -> messages.ConsumerProtocolSubscription:
    """What a member subscribes to, and owns: KafkaError INCONSISTENT_GROUP_PROTOCOL for bytes that are no such."""
    return _read(messages.ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> messages.ConsumerProtocolAssignment:
    """What a member is assigned, nothing for no bytes: KafkaError INCONSISTENT_GROUP_PROTOCOL for others."""
    return _read(messages.ConsumerProtocolAssignment, data) if data else messages.ConsumerProtocolAssignment()


def _read(kind: type[Message], data: bytes) -> Message:
    try:
        if len(data) < 2:
            raise DecodeError(f"{len(data)} bytes hold no version")
        return kind.decode(data[2:], min(_version(data), NEWEST), lenient=True)
    except (DecodeError, UnsupportedVersionError) as error:
        problem = f"a {kind.spec.name} that cannot be read: {error}"
        raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL, problem) from None


def _version(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)


def write_assignment(partitions: Mapping[str, list[int]], subscription: bytes) -> bytes:
    """The bytes of an assignment, in the version of a member's subscription."""
    version = max(min(_version(subscription), NEWEST), 0)
    assigned = [
        messages.ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=indexes)
        for name, indexes in sorted(partitions.items())
    ]
    message = messages.ConsumerProtocolAssignment(assigned_partitions=assigned)
    return version.to_bytes(2, "big") + message.encode(version)
