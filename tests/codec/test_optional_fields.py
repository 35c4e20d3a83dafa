"""The optional fields of the first KIP-482: bytes both ways, and what is refused (docs/dialects.md#optional-fields)."""

from __future__ import annotations

import json

import pytest

from tagwire import message_class
from tagwire.errors import DecodeError, EncodeError, UnsupportedVersionError

FOO = """
{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "0-9", "versionsWithOptional": "9+",
  "optionalFields": [
    { "name": "UserAgent", "type": "string", "nullable": true, "tag": "0x0001" },
  ],
  "fields": [
    { "name": "Foos", "type": "[]Foo", "versions": "0+",
      "optionalFields": [
        { "name": "Bar", "type": "string", "nullable": false, "tag": "0x0001", "default": "hello world" },
      ],
      "fields": [ { "name": "Baz", "type": "int16", "versions": "0+" }, ] }, ] }
"""
Foo = message_class(FOO)

WIDE = """
{ "apiKey": 9001, "type": "request", "name": "WideRequest", "validVersions": "0", "versionsWithOptional": "0+",
  "fields": [ { "name": "Id", "type": "int32", "versions": "0+" } ],
  "optionalFields": [
    { "name": "Flag", "type": "bool", "tag": 0 },
    { "name": "Count", "type": "int64", "tag": 2, "default": -1 },
    { "name": "Ratio", "type": "float64", "tag": 3 },
    { "name": "Key", "type": "uuid", "tag": 4 },
    { "name": "Text", "type": "string", "tag": 5, "nullable": true, "default": "x" },
    { "name": "Data", "type": "bytes", "tag": 6, "nullable": true },
    { "name": "Names", "type": "[]string", "tag": 7 },
    { "name": "Owner", "type": "Owner", "tag": 8, "nullable": true,
      "fields": [ { "name": "Name", "type": "string", "versions": "0+" } ],
      "optionalFields": [ { "name": "Mail", "type": "string", "tag": 65535, "nullable": true } ] },
    { "name": "Batch", "type": "records", "tag": 9, "nullable": true },
    { "name": "Plain", "type": "Plain", "tag": 10,
      "fields": [ { "name": "N", "type": "int8", "versions": "0+" } ] }
  ] }
"""
Wide = message_class(WIDE)
ID = "00000007"

BYTES = [
    ("nothing but its default", {}, "00" + ID),
    ("a bool", {"flag": True}, "02 0000 01 00" + ID),
    ("a number", {"count": 5}, "10 0002 0000000000000005 00" + ID),
    ("a null whose default is not null", {"text": None}, "04 0005 ffff 00" + ID),
    ("an empty text whose default is not empty", {"text": ""}, "04 0005 0000 00" + ID),
    ("bytes", {"data": b"\x01"}, "0a 0006 00000001 01 00" + ID),
    ("an array", {"names": ["a"]}, "0e 0007 00000001 0001 61 00" + ID),
    ("a struct", {"owner": Wide.Owner(name="n")}, "0a 0008 01 00 0001 6e 00" + ID),
    (
        "a struct with an optional field of its own",
        {"owner": Wide.Owner(name="n", mail="m")},
        "16 0008 01 06 ffff 0001 6d 00 0001 6e 00" + ID,
    ),
    ("a struct that cannot be null", {"plain": Wide.Plain(n=3)}, "04 000a 00 03 00" + ID),
    ("two, in the order of their tags", {"data": b"", "flag": True}, "02 0000 01 08 0006 00000000 00" + ID),
    ("unknown ones between", {"flag": True, "unknown_tags": {1: b"\xaa"}}, "02 0000 01 02 0001 aa 00" + ID),
]


@pytest.mark.parametrize(("values", "data"), [case[1:] for case in BYTES], ids=[case[0] for case in BYTES])
def test_a_message_is_written_and_read_as(values: dict[str, object], data: str) -> None:
    message = Wide(id=7, **values)
    assert message.encode(0).hex() == data.replace(" ", "")
    assert Wide.decode(bytes.fromhex(data), 0) == message


SEED = [
    ("defaults", Foo(foos=[Foo.Foo(baz=7)]), 9, "00 00000001 00 0007"),
    (
        "both set",
        Foo(user_agent="x/1", foos=[Foo.Foo(bar="hey", baz=7)]),
        9,
        "0a 0001 0003782f31 00 00000001 0a 0001 0003686579 00 0007",
    ),
    ("before optional fields", Foo(foos=[Foo.Foo(baz=7)]), 8, "00000001 0007"),
]


@pytest.mark.parametrize(("message", "version", "data"), [case[1:] for case in SEED], ids=[case[0] for case in SEED])
def test_the_seeds_example_gives_the_bytes_of_its_document(message: object, version: int, data: str) -> None:
    assert message.encode(version).hex() == data.replace(" ", "")  # type: ignore[attr-defined]
    assert Foo.decode(bytes.fromhex(data), version) == message


def test_a_default_that_was_spelled_out_is_read_and_not_written_again() -> None:
    spelled = bytes.fromhex("00 00000001 1a 0001 000b" + b"hello world".hex() + "00 0007")
    message = Foo.decode(spelled, 9)
    assert message == Foo(foos=[Foo.Foo(baz=7)])
    assert message.encode(9).hex() == "0000000001000007"


def test_a_long_value_takes_a_longer_length() -> None:
    message = Foo(user_agent="x" * 1000, foos=[])
    data = message.encode(9)
    assert data[:4].hex() == "d40f0001"
    assert Foo.decode(data, 9) == message


def test_a_set_optional_field_cannot_be_written_where_there_are_none() -> None:
    with pytest.raises(UnsupportedVersionError, match="FooResponse v8, user_agent is not at its default"):
        Foo(user_agent="x").encode(8)
    with pytest.raises(UnsupportedVersionError, match="tagged fields"):
        Foo(unknown_tags={3: b"x"}).encode(8)


@pytest.mark.parametrize(
    ("unknown", "said"),
    [({65536: b"x"}, "0 to 65535"), ({1: b"x"}, "collides"), ({2: b""}, "holds no bytes")],
)
def test_an_unknown_tag_is_refused_when(unknown: dict[int, bytes], said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        Foo(unknown_tags=unknown).encode(9)


REFUSED = [
    ("the terminator takes two bytes", "8000" + ID, "more bytes than it needs"),
    ("a length takes more bytes than it needs", "828000 0000 01 00" + ID, "more bytes than it needs"),
    ("a length is negative", "01" + ID, "length -1 is negative"),
    ("a length runs past the end", "7e 0000 01 00", "claims 63 bytes"),
    ("a value is shorter than its length", "04 0000 01 00 00" + ID, "its value takes 1"),
    ("a value is longer than its length", "02 0005 0000 00" + ID, "its value takes 2"),
    ("a tag comes twice", "02 0000 01 02 0000 01 00" + ID, "tag 0 comes after tag 0"),
    ("tags descend", "02 0001 aa 02 0000 01 00" + ID, "tag 0 comes after tag 1"),
    ("there is no terminator", "02 0000 01", "ends inside a varint"),
    ("the tag is cut off", "02 00", "needs 2 bytes"),
    ("null where the field is not nullable", "08 0007 ffffffff 00" + ID, "not nullable"),
    ("an unknown tag runs past the end", "7e 0001 01", "tag 1 claims 63 bytes"),
]


@pytest.mark.parametrize(("data", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
@pytest.mark.parametrize("lenient", [False, True])
def test_bytes_are_refused_when(data: str, said: str, lenient: bool) -> None:
    with pytest.raises(DecodeError, match=said):
        Wide.decode(bytes.fromhex(data), 0, lenient=lenient)


@pytest.mark.parametrize("prefix", ["02", "7f", "8100", "8000", "ff01"])
def test_a_nullable_structs_prefix_is_one_byte_0_or_1_when_strict(prefix: str) -> None:
    value = bytes.fromhex(prefix + "00 0001 6e")
    data = bytes([2 * len(value)]) + bytes.fromhex("0008") + value + bytes.fromhex("00" + ID)
    with pytest.raises(DecodeError, match="a nullable struct's prefix is one byte, 0 or 1"):
        Wide.decode(data, 0)


def test_unknown_tags_are_merged_into_the_gaps_between_declared_ones() -> None:
    """The data of Kafka's RawTaggedFieldWriterTest: 2 and 5 among 1, 4 and 7."""
    fields = [{"name": f"F{tag}", "type": "int8", "tag": tag} for tag in (1, 4, 7)]
    spec = {"type": "data", "name": "Gaps", "validVersions": "0", "versionsWithOptional": "0+", "fields": []}
    gaps = message_class(json.dumps(spec | {"optionalFields": fields}))
    unknown = {5: b"\4\5", 2: b"\1\2\3"}
    for values, data in [
        ({}, "06 0002 010203 04 0005 0405 00"),
        ({"f1": 9}, "02 0001 09 06 0002 010203 04 0005 0405 00"),
        ({"f1": 9, "f4": 8, "f7": 7}, "02 0001 09 06 0002 010203 02 0004 08 04 0005 0405 02 0007 07 00"),
    ]:
        message = gaps(**values, unknown_tags=unknown)
        assert message.encode(0) == bytes.fromhex(data)
        assert gaps.decode(bytes.fromhex(data), 0) == message
    for taken in (1, 4, 7):
        with pytest.raises(EncodeError, match=f"unknown tag {taken} collides with a declared one"):
            gaps(unknown_tags=unknown | {taken: b"\1"}).encode(0)
