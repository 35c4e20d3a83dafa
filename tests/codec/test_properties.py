"""What must hold of any value and of any bytes."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import message_class, messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError
from tagwire.spec import Absent, Versions
from tagwire.spec.model import INTEGER_RANGES

from .generated import objects, read_or_refused, without_unknown_tags

VECTORS = Path(__file__).parents[1] / "vectors"
CATALOG = (
    "ApiVersionsResponse",
    "ConsumerGroupMemberMetadataValue",
    "CreateTopicsRequest",
    "FetchRequest",
    "FetchResponse",
    "JoinGroupRequest",
    "MetadataResponse",
    "OffsetFetchResponse",
    "ProduceRequest",
    "TransactionLogValue",
)
OWN = ("AllTypeMessage", "NullableStructMessage", "SimpleExampleMessage")


def class_called(name: str) -> type[MessageObject]:
    if name in OWN:
        return message_class(VECTORS / "specs" / f"{name}.json")
    return getattr(messages, name)  # type: ignore[no-any-return]


def every_version(names: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(name, version, id=f"{name} v{version}")
        for name in names
        for version in class_called(name).valid_versions
    ]


@pytest.mark.parametrize(("name", "version"), every_version(CATALOG + OWN))
def test_every_value_is_read_back_as_it_was_written(name: str, version: int) -> None:
    kind = class_called(name)

    @settings(max_examples=6, database=None)
    @given(objects(kind.spec.root, version, kind))
    def check(message: Any) -> None:
        data = message.encode(version)
        read = kind.decode(data, version)
        assert read == message
        assert read.encode(version) == data
        assert kind.decode(bytearray(data), version, lenient=True) == message
        assert kind.decode_prefix(b"__" + data + b"__", version, start=2) == (message, len(data) + 2)
        document = json.loads(json.dumps(message.to_json(version)))
        assert without_unknown_tags(kind.from_json(document, version)) == without_unknown_tags(message)

    check()


# -- bytes


@pytest.mark.parametrize("name", CATALOG + OWN)
@given(st.data(), st.binary(max_size=80), st.booleans())
@settings(max_examples=40, database=None)
def test_any_bytes_are_a_message_or_a_decode_error(name: str, data: st.DataObject, raw: bytes, lenient: bool) -> None:
    kind = class_called(name)
    version = data.draw(st.integers(kind.valid_versions.lowest, kind.valid_versions.highest))
    read_or_refused(kind, raw, version, lenient)


@pytest.mark.parametrize("name", CATALOG)
@given(st.data())
@settings(max_examples=40, database=None)
def test_a_message_with_bytes_changed_is_a_message_or_a_decode_error(name: str, data: st.DataObject) -> None:
    version, raw = data.draw(st.sampled_from(FULL[name]))
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 254, 255]))
    for lenient in (False, True):
        try:
            message = class_called(name).decode(damaged, version, lenient=lenient)
        except DecodeError:
            continue
        if not lenient:  # nothing may be lost: what was read is what is written, but for varints of spare bytes
            assert len(message.encode(version)) <= len(damaged)


def full_messages() -> dict[str, list[tuple[int, bytes]]]:
    """Name -> (version, bytes) of Kafka's own vectors, every field set."""
    found: dict[str, list[tuple[int, bytes]]] = {name: [] for name in CATALOG}
    with gzip.open(VECTORS / "messages.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["message"] in found and line["variant"] == "full":
                found[line["message"]].append((line["version"], bytes.fromhex(line["hex"])))
    return found


FULL = full_messages()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("ApiVersionsResponse", 3),
        ("CreateTopicsRequest", 4),
        ("CreateTopicsRequest", 7),
        ("JoinGroupRequest", 9),
        ("MetadataResponse", 4),
        ("MetadataResponse", 12),
        ("TransactionLogValue", 1),
    ],
)
def test_a_message_cut_at_any_byte_is_refused(name: str, version: int) -> None:
    kind = class_called(name)
    raw = dict(FULL[name])[version]
    for size in range(len(raw)):
        with pytest.raises(DecodeError) as caught:
            kind.decode(raw[:size], version)
        assert caught.value.offset is not None
        assert caught.value.offset <= size
        with pytest.raises(DecodeError):
            kind.decode(raw[:size], version, lenient=True)
    assert kind.decode(raw, version).encode(version) == raw


@pytest.mark.parametrize(("name", "version"), [("FetchResponse", 12), ("ProduceRequest", 9), ("FetchResponse", 4)])
def test_records_cut_at_any_byte_are_refused(name: str, version: int) -> None:
    kind = class_called(name)
    raw = dict(FULL[name])[version]
    for size in range(len(raw)):
        with pytest.raises(DecodeError):
            kind.decode(memoryview(raw)[:size], version)


@pytest.mark.parametrize("name", CATALOG)
def test_a_byte_too_many_is_refused_unless_lenient(name: str) -> None:
    kind = class_called(name)
    for version, raw in FULL[name]:
        with pytest.raises(DecodeError, match="bytes follow the message") as caught:
            kind.decode(raw + b"\0", version)
        assert caught.value.offset == len(raw)
        assert kind.decode(raw + b"\0", version, lenient=True) == kind.decode(raw, version)


@given(st.integers(0, 2**64 - 1))
@settings(database=None)
def test_every_pattern_of_bits_is_a_float_and_stays_one(bits: int) -> None:
    kind = class_called("AllTypeMessage")
    message = kind(my_records=b"", my_float64=struct.unpack(">d", bits.to_bytes(8, "big"))[0])
    data = message.encode(0)
    assert kind.decode(data, 0).encode(0) == data


def test_the_walk_covers_every_kind_of_field() -> None:
    """The messages above have every type, tags, nullable structs and defaults of every kind."""
    fields = [field for name in CATALOG + OWN for s in class_called(name).spec.all_structs() for field in s.fields]
    elements = {field.type.element for field in fields if not field.type.is_struct}
    assert elements == {*INTEGER_RANGES, "bool", "float64", "uuid", "string", "bytes", "records"}
    assert any(field.tag is not None and field.type.is_struct and field.nullable_versions for field in fields)
    assert any(field.default is None and field.type.is_array for field in fields)
    assert any(field.default is Absent.STRUCT for field in fields)
    assert any(field.flexible_versions is None and field.versions == Versions(1, 1) for field in fields)
