"""What members of a classic group tell their leader, and what it assigns to them, as bytes.

A version of two bytes, then the message. Whoever reads a version that is newer than it knows reads it as the newest it
knows: fields are only ever added at the end. Source: Kafka's ConsumerProtocol, KIP-429, KIP-792, KIP-881.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from tagwire import messages
from tagwire.errors import DecodeError
from tagwire.partitions import TopicPartition

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of a group of consumers in JoinGroup and SyncGroup."""

NEWEST: Final = 3
"""The newest version of both messages, in which they are written."""

NO_GENERATION: Final = -1
"""The generation of a member that has been in none."""

_VERSION_BYTES: Final = 2

_Message = TypeVar("_Message", messages.ConsumerProtocolSubscription, messages.ConsumerProtocolAssignment)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants, and what it has (Kafka's ConsumerPartitionAssignor.Subscription).

    Attributes:
        user_data: the assignor's own, None for none.
        owned_partitions: what it has not given up before it joins; an eager member has none.
        generation: the last one it was in, -1 for none.
        rack: its `client.rack`.
        instance_id: a static member's; not in the bytes, JoinGroup has it.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member gets (Kafka's ConsumerPartitionAssignor.Assignment).

    Attributes:
        user_data: the assignor's own, None for none.
    """

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST) -> bytes:
    """Its bytes; topics and partitions are sorted, and what the version does not have is left out, as Java does.

    Raises EncodeError: a topic, a partition or the user data cannot be written.
    """
    kind = messages.ConsumerProtocolSubscription
    message = kind(topics=sorted(subscription.topics), user_data=subscription.user_data)
    if version >= 1:
        message.owned_partitions = [
            kind.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(sorted(subscription.owned_partitions)).items()
        ]
    if version >= 2:
        message.generation_id = subscription.generation
    if version >= 3:
        message.rack_id = subscription.rack
    return version.to_bytes(_VERSION_BYTES, "big") + message.encode(version)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """A subscription of any version from 0 on. Topics named twice are taken once.

    Args:
        instance_id: the member's, which JoinGroup has beside these bytes.

    Raises:
        DecodeError: they are none.
    """
    message = _decode(messages.ConsumerProtocolSubscription, data)
    return Subscription(
        tuple(dict.fromkeys(message.topics)),
        message.user_data,
        tuple(TopicPartition(topic.topic, index) for topic in message.owned_partitions for index in topic.partitions),
        max(message.generation_id, NO_GENERATION),
        message.rack_id or None,
        instance_id,
    )


def encode_assignment(assignment: Assignment, version: int = NEWEST) -> bytes:
    """Its bytes; topics come in the order of their first partition, as Java has them.

    Raises EncodeError: a partition or the user data cannot be written.
    """
    kind = messages.ConsumerProtocolAssignment
    message = kind(
        assigned_partitions=[
            kind.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return version.to_bytes(_VERSION_BYTES, "big") + message.encode(version)


def decode_assignment(data: bytes) -> Assignment:
    """An assignment of any version from 0 on. No bytes at all are an assignment of nothing, which a coordinator sends
    to a member that the leader has left out.

    Raises:
        DecodeError: they are none.
    """
    if not data:
        return Assignment()
    message = _decode(messages.ConsumerProtocolAssignment, data)
    partitions = (
        TopicPartition(topic.topic, index) for topic in message.assigned_partitions for index in topic.partitions
    )
    return Assignment(tuple(partitions), message.user_data)


def _decode(kind: type[_Message], data: bytes) -> _Message:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("the version is cut off", path=kind.__name__, offset=len(data))
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise DecodeError(f"version {version}; the lowest is 0", path=kind.__name__, offset=0)
    try:
        return kind.decode(data[_VERSION_BYTES:], min(version, NEWEST), lenient=True)
    except DecodeError as error:
        raise error.behind(_VERSION_BYTES) from None


def _by_topic(partitions: list[TopicPartition] | tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
