"""Fields meet by number: what a reader makes of another schema's values, and when it cannot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import ValueSchemaError
from tagwire.values.schemas import Schema

from .protobuf_schemas import FORMAT, decoded, message_class, proto, proto2, proto3


def read(reader: Schema, writer: Schema, **fields: Any) -> Any:
    body = message_class(writer)(**fields).SerializeToString()
    values, bad = FORMAT.reader_schema(reader).decoder(writer, None, (0,)).decode(pa.array([body], pa.binary()))
    assert bad.to_pylist() == [False]
    return values[0].as_py()


def test_values_of_an_older_and_a_newer_schema_are_read_by_the_readers() -> None:
    older = proto3("int32 a = 1; string b = 2;")
    newer = proto3("int64 a = 1; string renamed = 2; repeated int32 c = 3; N n = 4;", "message N { int32 x = 1; }")
    assert read(newer, older, a=5, b="x") == {"a": 5, "renamed": "x", "c": [], "n": None}
    assert read(older, newer, a=2**33 + 5, renamed="x", c=[1], n={"x": 1}) == {"a": 5, "b": "x"}


# As it was, as it is, and what is told of it.
OTHER_BYTES = [
    ("int32 a = 1;", "string a = 1;", "field 1 of t.C (a) is string, and was written as int32"),
    ("int32 a = 1;", "sint32 a = 1;", "is sint32, and was written as int32"),
    ("fixed32 a = 1;", "float a = 1;", "is float, and was written as fixed32"),
    ("N a = 1;", "string a = 1;", "is string, and was written as message t.N"),
    ("N a = 1;", "O a = 1;", "field 1 of t.O (x) is string, and was written as int32"),
    ("map<string, int32> a = 1;", "map<string, string> a = 1;", "field 2 of t.C.AEntry (value) is string"),
    ("N a = 1;", "map<string, int32> a = 1;", "is message t.C.AEntry, and was written as message t.N"),
]
ALIKE = [
    ("int32 a = 1;", "uint64 a = 1;"),
    ("bool a = 1;", "E a = 1;"),
    ("string a = 1;", "bytes a = 1;"),
    ("sint32 a = 1;", "sint64 a = 1;"),
    ("fixed64 a = 1;", "sfixed64 a = 1;"),
    ("N a = 1;", "bytes a = 1;"),
    ("int32 a = 1;", "int32 renamed = 1; string new = 2;"),
    ("int32 a = 1; int32 b = 2;", "int32 a = 1;"),
    ("string a = 1;", "repeated string a = 1;"),
    ("int32 a = 1; int32 b = 2;", "oneof one { int32 a = 1; string new = 3; } int32 b = 2;"),
    ("oneof one { int32 a = 1; int32 b = 2; }", "oneof other { int32 a = 1; int32 b = 2; }"),
    ("N a = 1;", "P a = 1;"),
]
NOT_ALIKE = [
    ("optional int32 a = 1;", "repeated int32 a = 1;", "field 1 of t.C (a) was single and is repeated"),
    ("optional int32 a = 1;", "required int32 a = 1;", "is required, and was optional: older values may lack it"),
    ("optional int32 b = 2;", "required int32 a = 1;", "is required, and is new: older values may lack it"),
    ("required int32 a = 1; optional int32 b = 2;", "optional int32 b = 2;", "was required and is removed"),
    (
        "optional int32 a = 1; optional int32 b = 2;",
        "oneof one { int32 a = 1; int32 b = 2; }",
        "a, b are in the oneof one, and could be set together before",
    ),
    (
        "oneof one { int32 a = 1; int32 b = 2; int32 c = 3; }",
        "oneof one { int32 a = 1; int32 b = 2; }",
        "field 3 of t.C (c) is gone from the oneof one: which one was set is lost",
    ),
]
BESIDES = """
    enum E { Z = 0; } message N { int32 x = 1; } message O { string x = 1; }
    message P { int64 x = 1; string more = 2; }
"""


def cases(build: Any, fields: list[str], besides: str = "") -> Schema:
    """A schema of a message for each case, C0 and so on: compiling costs more than all else here."""
    made: Schema = build("", besides + "".join(f"message C{n} {{ {each} }}" for n, each in enumerate(fields)))
    return made


def test_a_number_whose_type_has_other_bytes_makes_a_writers_schema_unreadable() -> None:
    writer = cases(proto3, [older for older, _, _ in OTHER_BYTES], BESIDES)
    reader = cases(proto3, [newer for _, newer, _ in OTHER_BYTES], BESIDES)
    compared = FORMAT.compatibility(writer, reader)
    for place, (_, _, told) in enumerate(OTHER_BYTES):
        expected = told.replace("t.C", f"t.C{place}")
        name = f"t.C{place}"
        with pytest.raises(ValueSchemaError) as caught:
            FORMAT.reader_schema(reader, name).decoder(writer, None, FORMAT.message_indexes(writer, name))
        assert expected in str(caught.value)
        assert any(expected in line for line in compared)


def test_what_protobuf_reads_alike_is_compatible() -> None:
    older = cases(proto3, [older for older, _ in ALIKE], BESIDES)
    newer = cases(proto3, [newer for _, newer in ALIKE], BESIDES)
    assert FORMAT.compatibility(older, newer) == []


def test_what_protobuf_may_not_read_alike_is_told() -> None:
    older = cases(proto2, [older for older, _, _ in NOT_ALIKE])
    newer = cases(proto2, [newer for _, newer, _ in NOT_ALIKE])
    found = FORMAT.compatibility(older, newer)
    assert len(found) == len(NOT_ALIKE)
    for place, ((_, _, told), line) in enumerate(zip(NOT_ALIKE, found)):
        assert told.replace("t.C", f"t.C{place}") in line
        assert f"t.C{place}" in line


def test_entries_that_hold_more_than_a_key_and_a_value_are_read_as_a_map() -> None:
    besides = "message E { string key = 1; N value = 2; string note = 3; } message N { int32 x = 1; }"
    writer = proto3("repeated E m = 1; string s = 2;", besides)
    reader = proto3("map<string, N> m = 1; string s = 2;", "message N { int32 x = 1; }")
    entries = [{"key": "a", "value": {"x": 7}, "note": "n"}, {"key": "b", "value": {"x": 8}}]
    body = message_class(writer)(m=entries).SerializeToString()
    decoder = FORMAT.reader_schema(reader).decoder(writer, None, (0,))
    rows = decoder.decode(pa.array([body] * 3 + [b"\x12\x01\xff"], pa.binary()))[0].to_pylist()  # read alone, too
    assert [None if row is None else sorted(row["m"]) for row in rows] == [[("a", {"x": 7}), ("b", {"x": 8})]] * 3 + [
        None
    ]
    closed = proto2("map<string, E> m = 1;", "enum E { A = 0; }")
    of_another_number = b"\x0a\x05\x0a\x01k\x10\x07"
    assert decoded(closed, of_another_number, b"\x0a\x05\x0a\x01k\x18\x07") == [{"m": []}, {"m": [("k", "A")]}]


def test_a_message_that_is_removed_is_told() -> None:
    older = proto3("int32 a = 1;", "message N { message O { int32 x = 1; } int32 x = 1; }")
    assert FORMAT.compatibility(older, proto3("int32 a = 1;")) == [
        "the message t.N is no longer there",
        "the message t.N.O is no longer there",
    ]


def test_messages_that_contain_themselves_or_are_a_thousand_long_chain_are_compared() -> None:
    chain = " ".join(f"message A{n} {{ A{n + 1} next = 1; }}" for n in range(3000)) + "message A3000 {{ {0} x = 1; }}"
    older = proto3("A0 a = 1; M self = 2;", chain.replace("{{", "{").replace("}}", "}").replace("{0}", "int32"))
    newer = proto3("A0 a = 1; M self = 2;", chain.replace("{{", "{").replace("}}", "}").replace("{0}", "string"))
    assert FORMAT.compatibility(older, older) == []
    assert FORMAT.compatibility(older, newer) == ["field 1 of t.A3000 (x) is string, and was written as int32"]


def test_a_writers_schema_that_does_not_compile_or_lacks_the_message_is_told_each_time() -> None:
    reader = FORMAT.reader_schema(proto3("int32 a = 1;"))
    for _ in range(2):
        with pytest.raises(ValueSchemaError, match="does not compile"):
            reader.decoder(proto("nonsense"))
        with pytest.raises(ValueSchemaError, match=r"the value is a u\.M, and t\.M is read"):
            reader.decoder(proto('syntax = "proto3"; package u; message M { int32 a = 1; }'), None, (0,))
