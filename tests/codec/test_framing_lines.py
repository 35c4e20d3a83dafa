"""What Kafka's own code does at the edges: the encode, decode and coordinator lines of tests/vectors/framing.jsonl.gz.

Strict reading refuses what Kafka's reader lets pass; `lenient=True` reads as Kafka does.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tagwire import message_class, messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError

VECTORS = Path(__file__).parents[1] / "vectors"
GROUP = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")


def lines() -> dict[str, str]:
    """Line name -> what Kafka's code wrote, or how it ended."""
    with gzip.open(VECTORS / "framing.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return {line["name"]: line.get("result", line.get("hex", "")) for line in found}


LINES = lines()
COORDINATOR = sorted(name for name in LINES if name.startswith("coordinator/"))
ENCODE = sorted(name for name in LINES if name.startswith("encode/"))
DECODE = sorted(name for name in LINES if name.startswith("decode/"))


def class_called(name: str) -> type[MessageObject]:
    if name in ("SimpleExampleMessage", "NullableStructMessage"):
        return message_class(VECTORS / "specs" / f"{name}.json")
    return getattr(messages, name)  # type: ignore[no-any-return]


def test_the_lines_are_all_there() -> None:
    assert (len(COORDINATOR), len(ENCODE), len(DECODE)) == (9, 13, 10)
    assert set(COORDINATOR) == set(COORDINATED)
    assert set(ENCODE) == {*ENCODED, *UNENCODABLE, UNORDERED}
    assert set(DECODE) == {*READ, *QUIRKS, *UNREADABLE}


# -- coordinator records: int16 type or version, then the message

COORDINATED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "coordinator/LegacyOffsetCommitKey": ("LegacyOffsetCommitKey", 0, {"group": "g", "topic": "t", "partition": 3}),
    "coordinator/GroupMetadataKey": ("GroupMetadataKey", 0, {"group": "g"}),
    "coordinator/ShareSnapshotKey": ("ShareSnapshotKey", 0, {"group_id": "g", "topic_id": GROUP, "partition": 1}),
    "coordinator/ConsumerGroupMemberMetadataValue default": ("ConsumerGroupMemberMetadataValue", 0, {}),
    "coordinator/ConsumerGroupMemberMetadataValue classicMemberMetadata=null": (
        "ConsumerGroupMemberMetadataValue",
        0,
        {"classic_member_metadata": None},
    ),
    **{
        f"coordinator/OffsetCommitValue/v{version}": (
            "OffsetCommitValue",
            version,
            {"offset": 100, "metadata": "m", "commit_timestamp": 1000} | ({"leader_epoch": 5} if version > 2 else {}),
        )
        for version in range(4)
    },
}


@pytest.mark.parametrize("name", sorted(COORDINATED))
def test_coordinator_records_are_written_and_read_as_kafka_does(name: str) -> None:
    message, version, values = COORDINATED[name]
    kind = class_called(message)
    prefix = version if message.endswith("Value") else kind.api_key
    record = bytes.fromhex(LINES[name])
    assert record[:2] == prefix.to_bytes(2, "big")
    assert kind(**values).encode(version) == record[2:]
    assert kind.decode(record[2:], version) == kind(**values)
    assert kind.decode_prefix(record, version, start=2) == (kind(**values), len(record))


# -- encoding

ENCODED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "encode/CreateTopics unknownTag1000/v7": (
        "CreateTopicsRequest",
        7,
        {"timeout_ms": 60000, "unknown_tags": {1000: b"\1\2\3"}},
    ),
    "encode/Heartbeat groupInstanceId set/v3": (
        "HeartbeatRequest",
        3,
        {"group_id": "g", "member_id": "m", "group_instance_id": "i"},
    ),
    "encode/Simple myBytes=null(tagged,nullable,default empty)/v1": ("SimpleExampleMessage", 1, {"my_bytes": None}),
    "encode/Simple myFloat64=1.0,taggedUuid zero,taggedLong=0/v1": (
        "SimpleExampleMessage",
        1,
        {"my_float64": 1.0, "tagged_uuid": UUID(int=0), "tagged_long": 0},
    ),
    "encode/Simple myNullableString=''/v1": ("SimpleExampleMessage", 1, {"my_nullable_string": ""}),
    "encode/Simple same/v2": (
        "SimpleExampleMessage",
        2,
        {"my_int16": 5, "my_string": "z", "unknown_tags": {30: b"", 20: b"\1"}},
    ),
    "encode/Simple taggedLongFlexibleVersionSubset=15 ignorable/v1": (
        "SimpleExampleMessage",
        1,
        {"tagged_long_flexible_version_subset": 15},
    ),
    "encode/Simple taggedLongFlexibleVersionSubset=15/v2": (
        "SimpleExampleMessage",
        2,
        {"tagged_long_flexible_version_subset": 15},
    ),
    "encode/string 32767/v3": ("FindCoordinatorRequest", 3, {"key": "xxx"}),
}
UNENCODABLE: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "encode/FindCoordinator key of 32768 bytes/v3": (
        "FindCoordinatorRequest",
        3,
        {"key": "x" * 32768},
        "key: 32768 bytes of UTF-8: the limit is 32767",
    ),
    "encode/Metadata topics null v0/v0": ("MetadataRequest", 0, {"topics": None}, "topics: cannot be null"),
    # Kafka writes this tag twice, and could not read it back as it was.
    "encode/Simple unknown tag 3 collides/v1": (
        "SimpleExampleMessage",
        1,
        {"unknown_tags": {3: b"\1"}},
        "unknown tag 3 collides with a declared one",
    ),
}
UNORDERED = "encode/Simple unknown out of order 30,20/v1"


@pytest.mark.parametrize("name", sorted(ENCODED))
def test_values_are_encoded_as_kafka_does(name: str) -> None:
    message, version, values = ENCODED[name]
    assert f"hex {class_called(message)(**values).encode(version).hex()}" == LINES[name]


@pytest.mark.parametrize("name", sorted(UNENCODABLE))
def test_values_that_would_not_be_read_back_are_refused(name: str) -> None:
    message, version, values, said = UNENCODABLE[name]
    with pytest.raises(EncodeError, match=said):
        class_called(message)(**values).encode(version)


def test_unknown_tags_are_sorted_where_kafka_refuses_an_unsorted_list() -> None:
    assert "tag 20 comes after tag 30" in LINES[UNORDERED]
    simple = class_called("SimpleExampleMessage")
    sorted_tags = simple(unknown_tags={20: b"", 30: b""}).encode(1)
    assert simple(unknown_tags={30: b"", 20: b""}).encode(1) == sorted_tags


# -- decoding

QUIRKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "decode/Heartbeat v4 trailing bytes/v4/026700000001026d0000ffff": (
        "HeartbeatRequest",
        "HeartbeatRequest v4 at byte 10: 2 bytes follow the message",
        {"group_id": "g", "generation_id": 1, "member_id": "m"},
    ),
    "decode/Heartbeat v4 unknown tags out of order/v4/026700000001026d000209000502aabb": (
        "HeartbeatRequest",
        "HeartbeatRequest v4 at byte 12: tag 5 comes after tag 9",
        {"group_id": "g", "generation_id": 1, "member_id": "m", "unknown_tags": {9: b"", 5: b"\xaa\xbb"}},
    ),
    "decode/Metadata v1 array -2/v1/fffffffe": (
        "MetadataRequest",
        "MetadataRequest v1, topics at byte 0: count -2 is negative",
        {"topics": None},
    ),
    "decode/bool 2 is true/v4/ffffffff02": (
        "MetadataRequest",
        "MetadataRequest v4, allow_auto_topic_creation at byte 4: a bool is 0 or 1, not 2",
        {"topics": None, "allow_auto_topic_creation": True},
    ),
    "decode/Simple v1 tag2 wrong size(3)/v1/"
    "0000000000000000000000000000000001010000007b0000007b000000007b0000007b0080e80012d6870102030005": (
        "SimpleExampleMessage",
        "SimpleExampleMessage v1, my_int16 at byte 45: claims 3 bytes, 2 are left",
        {"my_int16": 5},
    ),
}
READ: dict[str, tuple[str, dict[str, Any]]] = {
    "decode/Heartbeat v4/v4/026700000001026d0000": (
        "HeartbeatRequest",
        {"group_id": "g", "generation_id": 1, "member_id": "m"},
    ),
    "decode/NullableStruct tag1 null (01 01 00)/v1/ffff01010100": (
        "NullableStructMessage",
        {"nullable_struct2": None, "nullable_struct4": None},
    ),
}
UNREADABLE: dict[str, tuple[str, str]] = {
    "decode/Heartbeat v4 nonnull group null/v4/00000000000200": (
        "HeartbeatRequest",
        "HeartbeatRequest v4, group_id at byte 0: null where the field is not nullable",
    ),
    "decode/Heartbeat v4 truncated tag/v4/026700000001026d00010502aa": (
        "HeartbeatRequest",
        "HeartbeatRequest v4 at byte 12: tag 5 claims 2 bytes, 1 are left",
    ),
    "decode/Metadata v0 array -1/v0/ffffffff": (
        "MetadataRequest",
        "MetadataRequest v0, topics at byte 0: null where the field is not nullable",
    ),
}


def input_of(name: str) -> tuple[int, bytes]:
    """Version and bytes, which a line's name ends in: `.../v4/026700`."""
    *_, version, data = name.split("/")
    return int(version[1:]), bytes.fromhex(data)


@pytest.mark.parametrize("name", sorted(READ))
def test_good_bytes_are_read_either_way(name: str) -> None:
    message, values = READ[name]
    kind, (version, data) = class_called(message), input_of(name)
    assert kind.decode(data, version) == kind.decode(data, version, lenient=True) == kind(**values)
    assert LINES[name].endswith(f"reser={kind(**values).encode(version).hex()}")


@pytest.mark.parametrize("name", sorted(QUIRKS))
def test_what_kafka_lets_pass_is_refused_unless_lenient(name: str) -> None:
    message, said, values = QUIRKS[name]
    kind, (version, data) = class_called(message), input_of(name)
    with pytest.raises(DecodeError) as caught:
        kind.decode(data, version)
    assert str(caught.value) == said
    lenient = kind.decode(data, version, lenient=True)
    assert lenient == kind(**values)
    if "tag 5 comes after tag 9" not in LINES[name]:  # read by Kafka, then refused when it is written again
        assert LINES[name].endswith(f"reser={lenient.encode(version).hex()}")


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_kafka_cannot_read_is_refused_either_way(name: str, lenient: bool) -> None:
    message, said = UNREADABLE[name]
    version, data = input_of(name)
    assert LINES[name].startswith("RuntimeException")
    with pytest.raises(DecodeError) as caught:
        class_called(message).decode(data, version, lenient=lenient)
    assert str(caught.value) == said
