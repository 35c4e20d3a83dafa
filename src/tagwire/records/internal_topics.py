"""What Kafka keeps in topics of its own, decoded by the catalog: Kafka's specs of coordinator and metadata records.

    decode_key("__consumer_offsets", record.key)        # OffsetCommitKey(group='g', topic='t', partition=3)
    decode_value("__consumer_offsets", record.key, record.value)

Coordinators' topics: the key is int16 record type and the key's message, the value int16 version and the value's
message. __cluster_metadata: no key; the value is a frame of varints, frame version 1, record id and version, and the
message. Ids mean different messages in different topics, so each topic has its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from tagwire.codec.classes import MessageObject, class_at
from tagwire.codec.secrets import SECRET_FIELDS, SETTING_VALUES, SETTINGS, is_secret
from tagwire.errors import ConfigError, DecodeError, TagwireError, UnsupportedVersionError
from tagwire.spec import Struct, catalog

OFFSETS, TRANSACTIONS, SHARE_STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"

_FRAME_VERSION = 1
_MOST = 32767
HIDDEN = "<secret>"

_OF_SHARE_STATE = ("ShareSnapshot", "ShareUpdate")
_OF_TRANSACTIONS = ("TransactionLog",)
_OF_TIERED_STORAGE = ("RemoteLog", "RemotePartition")


class Decoded(NamedTuple):
    """One side of a record: its message and the version it was written at."""

    message: MessageObject
    version: int


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """A record of an internal topic.

    Attributes:
        type: the record type without Key, Value or Record, such as OffsetCommit; None where it is unknown.
        key, value: what they hold; None where there is nothing, or nothing that can be read. A null value deletes.
        error: why something could not be read; None where all was.
    """

    type: str | None
    key: Decoded | None
    value: Decoded | None
    error: str | None

    def to_json(self) -> dict[str, Any]:
        """The record for people and programs, in Kafka's JSON form, secrets left out."""
        document: dict[str, Any] = {"type": self.type}
        for side, decoded in (("key", self.key), ("value", self.value)):
            document[side] = None if decoded is None else shown(*decoded)
        if self.value is not None:
            document["version"] = self.value.version
        if self.error is not None:
            document["error"] = self.error
        return document


def decode_key(topic: str, key: bytes | None) -> MessageObject | None:
    """The key of a record of an internal topic; None where the topic's records have no key.

    Raises:
        ConfigError: the topic is none of Kafka's own.
        UnsupportedVersionError: the record type is not known.
        DecodeError: the bytes hold no such key.
    """
    if topic == CLUSTER_METADATA:
        if key is not None:
            raise DecodeError(f"{topic}: a record has a key of {len(key)} bytes, and none of them should")
        return None
    name, body = _typed(topic, key)
    return class_at(f"{name}Key").decode(body, 0, lenient=True)


def decode_value(topic: str, key: bytes | None, value: bytes | None) -> Decoded | None:
    """The value of a record of an internal topic and its version; None for a tombstone. `key` says what it holds.

    Raises:
        ConfigError: the topic is none of Kafka's own.
        UnsupportedVersionError: the record type or its version is not known.
        DecodeError: the bytes hold no such value.
    """
    if topic == CLUSTER_METADATA:
        if value is None:
            raise DecodeError(f"{topic}: a record has no value, and each of them should")
        return _framed(topic, value)
    name, _ = _typed(topic, key)
    if value is None:
        return None
    version = _int16(value, f"{name}Value")
    # Coordinators ignore what follows a value, so that later Kafkas may add to it.
    return Decoded(class_at(f"{name}Value").decode(memoryview(value)[2:], version, lenient=True), version)


def decode_record(topic: str, key: bytes | None, value: bytes | None) -> InternalRecord:
    """A record of an internal topic, as far as it can be read: what is unknown or broken is told in it, not raised.

    Raises:
        ConfigError: the topic is none of Kafka's own.
    """
    _table(topic)
    found_key = found_value = name = error = None
    try:
        if topic != CLUSTER_METADATA:
            name = _typed(topic, key)[0]
        message = decode_key(topic, key)
        found_key = None if message is None else Decoded(message, 0)
        found_value = decode_value(topic, key, value)
        if topic == CLUSTER_METADATA and found_value is not None:
            name = found_value.message.spec.name.removesuffix("Record")
    except TagwireError as failed:
        error = str(failed)
    return InternalRecord(name, found_key, found_value, error)


def shown(message: MessageObject, version: int) -> dict[str, Any]:
    """Kafka's JSON form of an internal record's key or value, for people: secrets are left out, and the bytes that a
    consumer put into its group's metadata are decoded."""
    document = message.to_json(version)
    _hide(message.spec.root, message, document)
    name = message.spec.name
    if name == "GroupMetadataValue" and document["protocolType"] == "consumer":
        members: Any = message
        for member, shown_member in zip(members.members, document["members"]):
            for field, kind in (
                ("subscription", "ConsumerProtocolSubscription"),
                ("assignment", "ConsumerProtocolAssignment"),
            ):
                shown_member[field] = _of_consumer(bytes(getattr(member, field)), kind, shown_member[field])
    return document


def _of_consumer(data: bytes, kind: str, undecoded: Any) -> Any:
    """int16 version and a message of the consumer protocol, read by the newest layout that is known."""
    if not data:
        return undecoded
    try:
        version = _int16(data, kind)
        known = class_at(kind)
        version = min(version, known.valid_versions.highest)
        return {"version": version, **known.decode(memoryview(data)[2:], version, lenient=True).to_json(version)}
    except TagwireError:
        return undecoded


def _hide(struct: Struct, value: Any, document: dict[str, Any]) -> None:
    """Puts `HIDDEN` in the place of every secret in `document`, the JSON form of `value`, which is a `struct`."""
    is_setting = struct.name in SETTINGS and is_secret(value)
    for field in struct.fields:
        name, attribute = field.json_name, field.attribute
        if document.get(name) is None:
            continue
        if (struct.name, field.name) in SECRET_FIELDS or (is_setting and attribute in SETTING_VALUES):
            document[name] = HIDDEN
        elif field.struct is not None:
            inner = getattr(value, attribute)
            pairs = zip(inner, document[name]) if field.type.is_array else [(inner, document[name])]
            for each, shown_each in pairs:
                _hide(field.struct, each, shown_each)


def _typed(topic: str, key: bytes | None) -> tuple[str, memoryview]:
    """Of a coordinator's record, the name of its type and the rest of its key."""
    table = _table(topic)
    if key is None:
        raise DecodeError(f"{topic}: a record has no key, and each of them should")
    number = _int16(key, f"{topic} key")
    if number not in table:
        raise UnsupportedVersionError(f"{topic} has no record type {number} that is known")
    return table[number], memoryview(key)[2:]


def _framed(topic: str, value: bytes) -> Decoded:
    at = 0
    numbers = []
    for what in ("frame version", "record id", "version"):
        number, at = _uvarint(value, at, what)
        numbers.append(number)
    frame, number, version = numbers
    if frame != _FRAME_VERSION:
        raise UnsupportedVersionError(f"{topic}: frame version {frame} is not read, only {_FRAME_VERSION}")
    table = _table(topic)
    if number not in table:
        raise UnsupportedVersionError(f"{topic} has no record id {number} that is known")
    return Decoded(class_at(table[number]).decode(memoryview(value)[at:], version), version)


def _uvarint(data: bytes, at: int, what: str) -> tuple[int, int]:
    number = shift = 0
    start = at
    while at < len(data) and shift <= 14:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number > _MOST:
                break
            return number, at
        shift += 7
    if at == len(data) and shift <= 14:
        raise DecodeError(f"the {what} is cut short", path=CLUSTER_METADATA, offset=start)
    raise DecodeError(f"the {what} is above {_MOST}", path=CLUSTER_METADATA, offset=start)


def _int16(data: bytes, what: str) -> int:
    if len(data) < 2:
        raise DecodeError(f"{len(data)} bytes do not hold the int16 it begins with", path=what, offset=0)
    return int.from_bytes(data[:2], "big", signed=True)


def _table(topic: str) -> Mapping[int, str]:
    if topic not in _CHOSEN:
        raise ConfigError(f"{topic!r} is no topic of Kafka's own; known are {', '.join(_CHOSEN)}")
    return record_types(topic)


_CHOSEN: Final[dict[str, Callable[[str], bool]]] = {
    OFFSETS: lambda name: not name.startswith((*_OF_SHARE_STATE, *_OF_TRANSACTIONS)),
    TRANSACTIONS: lambda name: name.startswith(_OF_TRANSACTIONS),
    SHARE_STATE: lambda name: name.startswith(_OF_SHARE_STATE),
    CLUSTER_METADATA: lambda name: not name.startswith(_OF_TIERED_STORAGE),
}
"""Which of the catalog's keys, or metadata records, are a topic's: the same ids stand in several."""


@cache
def record_types(topic: str) -> Mapping[int, str]:
    """Of a topic of `INTERNAL_TOPICS`, record type or id -> the message's name, without Key where there is a value
    too. Raises KeyError for another topic."""
    of_metadata = topic == CLUSTER_METADATA
    suffix, kind = ("Record", "metadata") if of_metadata else ("Key", "coordinator-key")
    found = {}
    for name in catalog.names():
        if name.endswith(suffix) and _CHOSEN[topic](name) and (message := catalog.message(name)).type == kind:
            found[message.api_key] = name if of_metadata else name.removesuffix(suffix)
    return found


INTERNAL_TOPICS: Final = tuple(_CHOSEN)
