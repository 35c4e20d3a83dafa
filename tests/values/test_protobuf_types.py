"""Which column each type of Protobuf becomes: Spark's from_protobuf says it, docs/values.md has it as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import ValueSchemaError
from tagwire.values.schemas import Schema

from .protobuf_schemas import FORMAT, decoded, message_class, proto, proto2, proto3

IMPORTS = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'

SCALARS = [
    ("int32", pa.int32(), -5),
    ("sint32", pa.int32(), -5),
    ("sfixed32", pa.int32(), -5),
    ("uint32", pa.int32(), 5),
    ("fixed32", pa.int32(), 5),
    ("int64", pa.int64(), -(2**62)),
    ("sint64", pa.int64(), -(2**62)),
    ("sfixed64", pa.int64(), -(2**62)),
    ("uint64", pa.int64(), 2**62),
    ("fixed64", pa.int64(), 2**62),
    ("bool", pa.bool_(), True),
    ("float", pa.float32(), 1.5),
    ("double", pa.float64(), 1.5),
    ("string", pa.string(), "Grüße"),
    ("bytes", pa.binary(), b"\x00\xff"),
]


def written(schema: Schema, **fields: Any) -> bytes:
    body: bytes = message_class(schema)(**fields).SerializeToString()
    return body


@pytest.fixture(scope="module")
def scalars() -> tuple[Schema, Schema]:
    """Each scalar type by itself, repeated, as a value of a map, without presence and with."""
    fields = " ".join(
        f"{kind} a_{kind} = {n * 10 + 1}; repeated {kind} r_{kind} = {n * 10 + 2}; "
        f"map<string, {kind}> m_{kind} = {n * 10 + 3}; optional {kind} o_{kind} = {n * 10 + 4};"
        for n, (kind, _, _) in enumerate(SCALARS)
    )
    plain = " ".join(f"optional {kind} a_{kind} = {n * 10 + 1};" for n, (kind, _, _) in enumerate(SCALARS))
    return proto3(fields), proto2(plain)


def test_fields_may_be_called_like_what_messages_of_python_can_do() -> None:
    fields = "optional string HasField = 1; required int32 IsInitialized = 2; repeated int32 SerializeToString = 4;"
    schema = proto2(f"{fields} optional group G = 3 {{ optional int32 SetInParent = 1; }}")
    rows = decoded(schema, b"\x0a\x01x\x10\x01\x1b\x08\x07\x1c", b"\x0a\x01x")
    row = {"HasField": "x", "IsInitialized": 1, "g": {"SetInParent": 7}, "SerializeToString": []}
    assert rows == [row, "bad"]
    encoder = FORMAT.encoder(schema, FORMAT.reader_schema(schema).type)
    bodies, bad = encoder.encode(pa.array([row], FORMAT.reader_schema(schema).type))
    assert (decoded(schema, *bodies.to_pylist()), bad.to_pylist()) == ([row], [False])


@pytest.mark.parametrize(("kind", "column", "value"), SCALARS, ids=lambda value: str(value))
def test_a_scalar_has_the_type_and_the_value_that_spark_gives_it(
    kind: str, column: pa.DataType, value: Any, scalars: tuple[Schema, Schema]
) -> None:
    schema, older = scalars
    type_ = FORMAT.reader_schema(schema).type
    assert type_.field(f"a_{kind}").type == type_.field(f"o_{kind}").type == column
    assert type_.field(f"r_{kind}").type == pa.list_(pa.field("element", column, nullable=False))
    assert type_.field(f"m_{kind}").type == pa.map_(pa.string(), pa.field("value", column, nullable=False))
    given = {f"a_{kind}": value, f"r_{kind}": [value, value], f"m_{kind}": {"k": value}, f"o_{kind}": value}
    row = decoded(schema, written(schema, **given))[0]
    assert row[f"a_{kind}"] == row[f"o_{kind}"] == value
    assert row[f"r_{kind}"] == [value, value]
    assert row[f"m_{kind}"] == [("k", value)]
    assert decoded(older, written(older, **{f"a_{kind}": value}))[0][f"a_{kind}"] == value


def test_what_is_absent_is_null_and_a_default_counts_only_where_presence_is_told(
    scalars: tuple[Schema, Schema],
) -> None:
    schema, _ = scalars
    defaults: dict[str, Any] = {kind: type(value)() for kind, _, value in SCALARS}
    empty, explicit = decoded(schema, b"", written(schema, **{f"o_{kind}": value for kind, value in defaults.items()}))
    for kind, default in defaults.items():
        assert empty[f"a_{kind}"] is None
        assert empty[f"o_{kind}"] is None
        assert empty[f"r_{kind}"] == empty[f"m_{kind}"] == []
        assert explicit[f"o_{kind}"] == default
    on_the_wire = proto3("optional int32 x = 1; optional string s = 2; optional double d = 3;")
    without = proto3("int32 x = 1; string s = 2; double d = 3;")
    zeros = written(on_the_wire, x=0, s="", d=0.0)
    assert zeros
    assert decoded(without, zeros) == [{"x": None, "s": None, "d": None}]
    assert str(decoded(without, written(without, d=-0.0))[0]["d"]) == "-0.0"


def test_unsigned_numbers_have_the_bits_of_signed_ones_as_in_spark() -> None:
    schema = proto3("uint32 a = 1; fixed32 b = 2; uint64 c = 3; fixed64 d = 4;")
    largest = written(schema, a=2**32 - 1, b=2**32 - 1, c=2**64 - 1, d=2**64 - 1)
    assert decoded(schema, largest) == [{"a": -1, "b": -1, "c": -1, "d": -1}]


def test_proto2_gives_its_own_defaults_for_what_is_absent() -> None:
    schema = proto2(
        'optional int32 i = 1 [default = 7]; optional string s = 2 [default = "x"]; optional E e = 3 [default = B]; '
        "optional uint32 u = 4 [default = 4294967295]; optional int32 none = 5;",
        "enum E { A = 1; B = 2; }",
    )
    assert decoded(schema, b"") == [{"i": 7, "s": "x", "e": "B", "u": -1, "none": None}]


def test_enums_are_their_names_and_an_unknown_number_is_what_protobuf_calls_it() -> None:
    enum = "enum E { A = 0; B = 1; }"
    open_, closed = proto3("E e = 1; repeated E r = 2;", enum), proto2("optional E e = 1; repeated E r = 2;", enum)
    numbers = proto3("int32 e = 1; repeated int32 r = 2;")
    known = written(numbers, e=1, r=[0, 1])
    unknown = written(numbers, e=9, r=[1, 9])
    assert decoded(open_, known, unknown) == [
        {"e": "B", "r": ["A", "B"]},
        {"e": "UNKNOWN_ENUM_VALUE_E_9", "r": ["B", "UNKNOWN_ENUM_VALUE_E_9"]},
    ]
    assert decoded(closed, known, unknown) == [{"e": "B", "r": ["A", "B"]}, {"e": None, "r": ["B"]}]
    aliases = proto3("E e = 1;", "enum E { option allow_alias = true; Z = 0; A = 1; B = 1; }")
    assert decoded(aliases, written(numbers, e=1)) == [{"e": "A"}]


def test_timestamps_and_durations_are_microseconds() -> None:
    schema = proto3("google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2;", IMPORTS)
    message = message_class(schema)()
    message.t.seconds, message.t.nanos = -1, 999_999_999
    message.d.seconds, message.d.nanos = -1, -999
    far = message_class(schema)()
    far.t.seconds = 2**62
    assert FORMAT.reader_schema(schema).type == pa.struct({"t": pa.timestamp("us", "UTC"), "d": pa.duration("us")})
    assert decoded(schema, message.SerializeToString(), b"", far.SerializeToString()) == [
        {"t": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "d": timedelta(seconds=-1)},
        {"t": None, "d": None},
        "bad",
    ]


def test_of_a_oneof_the_field_that_is_set_has_a_value() -> None:
    schema = proto3("oneof one { int32 a = 1; string b = 2; N c = 3; } int32 z = 4;", "message N { int32 x = 1; }")
    rows = [written(schema, a=0), written(schema, b="x"), written(schema, c={}), b""]
    assert [{k: v for k, v in row.items() if v is not None} for row in decoded(schema, *rows)] == [
        {"a": 0},
        {"b": "x"},
        {"c": {"x": None}},
        {},
    ]
    # Who appends a message to another one has set two: the last one counts, whichever of the fields are read.
    both = written(schema, a=5) + written(schema, b="x")
    assert decoded(schema, both, fields=["a", "b"]) == [{"a": None, "b": "x"}]
    assert decoded(schema, both, fields=["a"]) == [{"a": None}]


def test_protobufs_own_messages_are_structs_as_spark_has_them_by_default() -> None:
    schema = proto3(
        "google.protobuf.Int32Value i = 1; google.protobuf.Any a = 2;",
        'import "google/protobuf/wrappers.proto"; import "google/protobuf/any.proto";',
    )
    row = decoded(schema, written(schema, i={"value": 5}, a={"type_url": "t/u", "value": b"x"}))
    assert row == [{"i": {"value": 5}, "a": {"type_url": "t/u", "value": b"x"}}]


@pytest.mark.parametrize(
    ("fields", "besides", "reason"),
    [
        ("N n = 1;", "message N { N next = 1; }", "n.next has the type t.N, which contains it"),
        ("map<string, M> m = 1;", "", "m.value has the type t.M, which contains it"),
        ("google.protobuf.Struct s = 1;", 'import "google/protobuf/struct.proto";', "which contains it"),
        ("", "", "has no field that could be a column"),
        ("N n = 1;", "message N {}", "has no field that could be a column"),
    ],
)
def test_a_message_without_a_column_type_is_refused(fields: str, besides: str, reason: str) -> None:
    with pytest.raises(ValueSchemaError, match=reason):
        FORMAT.reader_schema(proto3(fields, besides))


def test_a_message_in_a_message_without_fields_is_no_column_as_in_spark() -> None:
    schema = proto3("int32 x = 1; N n = 2; map<int32, N> m = 3; repeated N r = 4;", "message N {}")
    assert FORMAT.reader_schema(schema).type == pa.struct({"x": pa.int32()})


def test_groups_are_read_and_written() -> None:
    schema = proto2("optional group G = 1 { optional int32 x = 1; } repeated group R = 2 { optional string s = 1; }")
    body = written(schema, g={"x": 5}, r=[{"s": "a"}, {"s": "b"}])
    row = {"g": {"x": 5}, "r": [{"s": "a"}, {"s": "b"}]}
    assert decoded(schema, body, b"\x0b", body) == [row, "bad", row]
    encoder = FORMAT.encoder(schema, FORMAT.reader_schema(schema).type)
    assert encoder.encode(pa.array([row], encoder.columns))[0].to_pylist() == [body]


def test_required_fields_are_not_null_and_a_value_without_them_is_bad_whatever_is_read() -> None:
    schema = proto2(
        "optional int32 a = 1; repeated N n = 2;", "message N { required int32 x = 1; optional int32 y = 2; }"
    )
    type_ = FORMAT.reader_schema(schema).type
    assert not type_.field("n").type.value_type.field("x").nullable
    good, lacking = written(schema, a=1, n=[{"x": 0}]), b"\x08\x01\x12\x02\x10\x05"
    assert decoded(schema, good, lacking) == [{"a": 1, "n": [{"x": 0, "y": None}]}, "bad"]
    assert decoded(schema, good, lacking, fields=["a"]) == [{"a": 1}, "bad"]
    decoder = FORMAT.reader_schema(schema).decoder(schema)
    assert decoder.refusal(lacking) == "required fields are missing: n[0].x"


def test_a_schema_of_another_edition_is_read_by_its_own_presence() -> None:
    schema = proto(
        'edition = "2023"; package t; message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; }'
    )
    assert decoded(schema, b"\x08\x00\x10\x00") == [{"a": 0, "b": None}]
