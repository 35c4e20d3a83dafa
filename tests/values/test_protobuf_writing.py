"""Columns become messages that Protobuf's library reads. What does not fit is refused: columns at once, rows alone."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import ValueSchemaError
from tagwire.values.schemas import Schema

from .protobuf_schemas import FORMAT, decoded, message_class, proto2, proto3

TIMES = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'


def written(schema: Schema, column: pa.Array) -> list[Any]:
    """Rows as Protobuf's library reads them; None for null, a text for what is bad."""
    encoder = pickle.loads(pickle.dumps(FORMAT.encoder(schema, column.type)))
    bodies, bad = encoder.encode(column)
    message = message_class(schema)
    return [
        encoder.refusal(row) if wrong else None if body is None else message.FromString(body)
        for body, wrong, row in zip(bodies.to_pylist(), bad.to_pylist(), column.to_pylist())
    ]


def test_rows_are_written_as_protobufs_library_would_and_nulls_are_null() -> None:
    schema = proto3(
        "int32 a = 1; optional int32 b = 2; repeated string r = 3; map<string, N> m = 4; N n = 5; E e = 6; "
        "google.protobuf.Timestamp t = 7; google.protobuf.Duration d = 8; oneof one { int32 x = 9; bytes y = 10; }",
        TIMES + "message N { double z = 1; } enum E { A = 0; B = 5; }",
    )
    type_ = FORMAT.reader_schema(schema).type
    row = {
        "a": 0,
        "b": 0,
        "r": ["", "x"],
        "m": [("k", {"z": 1.5})],
        "n": {"z": None},
        "e": "B",
        "t": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        "d": timedelta(seconds=-1, microseconds=-1),
        "y": b"\xff",
    }
    expected = message_class(schema)(b=0, r=["", "x"], n={}, e=5, y=b"\xff")
    expected.m["k"].z = 1.5
    expected.t.seconds, expected.t.nanos = -1, 999_999_000
    expected.d.seconds, expected.d.nanos = -1, -1000
    assert written(schema, pa.array([row, None, {}], type_)) == [expected, None, message_class(schema)()]


@pytest.mark.parametrize(
    ("field", "column", "value", "expected"),
    [
        ("int64 f = 1;", pa.int8(), -5, -5),
        ("uint32 f = 1;", pa.int32(), -1, 2**32 - 1),
        ("uint64 f = 1;", pa.int64(), -1, 2**64 - 1),
        ("uint32 f = 1;", pa.int64(), 2**32 - 1, 2**32 - 1),
        ("uint64 f = 1;", pa.uint64(), 2**64 - 1, 2**64 - 1),
        ("fixed32 f = 1;", pa.uint16(), 7, 7),
        ("double f = 1;", pa.float32(), 1.5, 1.5),
        ("double f = 1;", pa.float64(), -0.0, -0.0),
        ("int32 f = 1;", pa.date32(), date(1970, 1, 3), 2),
        ("string f = 1;", pa.large_string(), "x", "x"),
        ("string f = 1;", pa.dictionary(pa.int8(), pa.string()), "x", "x"),
        ("bytes f = 1;", pa.binary(2), b"ab", b"ab"),
        ("repeated int32 f = 1;", pa.large_list(pa.int64()), [1, 2], [1, 2]),
        ("repeated int32 f = 1;", pa.list_(pa.int8(), 2), [1, 2], [1, 2]),
        ("E f = 1;", pa.int32(), 7, 7),
        ("E f = 1;", pa.string(), "B", 5),
        ("int32 f = 1;", pa.null(), None, 0),
        ("repeated int32 f = 1;", pa.null(), None, []),
        ("map<string, N> f = 1;", pa.null(), None, {}),
        ("N f = 1;", pa.null(), None, None),
        ("google.protobuf.Timestamp f = 1;", pa.null(), None, None),
    ],
    ids=str,
)
def test_columns_of_other_types_fit_where_every_value_or_each_one_that_does_can_be_held(
    field: str, column: pa.DataType, value: Any, expected: Any
) -> None:
    schema = proto3(field, TIMES + "enum E { A = 0; B = 5; } message N { int32 x = 1; }")
    rows = pa.StructArray.from_arrays([pa.array([value], column)], ["f"])
    assert str(written(schema, rows)) == str([message_class(schema)(f=expected)])


@pytest.mark.parametrize(
    ("fields", "columns", "told"),
    [
        ("int32 a = 1;", {"b": pa.int32()}, "the column b is no field of the message t.M"),
        ("int32 a = 1;", {"a": pa.string()}, "a: a column of the type string cannot be written as int32"),
        ("int32 a = 1;", {"a": pa.float64()}, "a: a column of the type double cannot be written as int32"),
        ("float a = 1;", {"a": pa.float64()}, "cannot be written as float"),
        ("string a = 1;", {"a": pa.binary()}, "cannot be written as string"),
        ("bool a = 1;", {"a": pa.int32()}, "cannot be written as bool"),
        ("E a = 1;", {"a": pa.bool_()}, "cannot be written as enum"),
        ("repeated int32 a = 1;", {"a": pa.int32()}, "is no list, and the field is repeated"),
        ("map<string, int32> a = 1;", {"a": pa.list_(pa.int32())}, "is no map, and the field is one"),
        ("N a = 1;", {"a": pa.int32()}, "a: a column of the type int32 is no message t.N"),
        ("N a = 1;", {"a": pa.struct({"y": pa.int32()})}, "the column a.y is no field of the message t.N"),
        ("repeated N a = 1;", {"a": pa.list_(pa.struct({"x": pa.string()}))}, r"a\[\].x: a column of the type string"),
        ("google.protobuf.Timestamp a = 1;", {"a": pa.int64()}, "a column of the type int64 is no timestamp"),
        ("google.protobuf.Duration a = 1;", {"a": pa.int64()}, "a column of the type int64 is no interval"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_any_row(fields: str, columns: Any, told: str) -> None:
    schema = proto3(fields, TIMES + "message N { int32 x = 1; } enum E { A = 0; }")
    with pytest.raises(ValueSchemaError, match=told):
        FORMAT.encoder(schema, pa.struct(columns))


def test_a_column_that_is_no_struct_or_lacks_a_required_field_is_refused() -> None:
    schema = proto2("required int32 a = 1; optional int32 b = 2;")
    with pytest.raises(ValueSchemaError, match=r"is no message t\.M"):
        FORMAT.encoder(schema, pa.int32())
    with pytest.raises(ValueSchemaError, match=r"no column a, and t\.M requires that field"):
        FORMAT.encoder(schema, pa.struct({"b": pa.int32()}))
    with pytest.raises(ValueSchemaError, match="two columns are named b"):
        FORMAT.encoder(schema, pa.struct([("a", pa.int32()), ("b", pa.int32()), ("b", pa.int32())]))


def test_rows_that_cannot_be_written_are_bad_alone_and_have_a_reason() -> None:
    schema = proto2(
        "required int32 a = 1; optional E e = 2; repeated int32 r = 3; map<string, int32> m = 4; optional N n = 5; "
        "oneof one { int32 x = 6; int32 y = 7; } optional uint32 u = 8;",
        "enum E { A = 1; } message N { required int32 z = 1; }",
    )
    columns = pa.struct(
        {
            "a": pa.int64(),
            "e": pa.string(),
            "r": pa.list_(pa.int32()),
            "m": pa.map_(pa.string(), pa.int32()),
            "n": pa.struct({"z": pa.int32()}),
            "x": pa.int32(),
            "y": pa.int32(),
            "u": pa.int64(),
        }
    )
    rows: list[dict[str, Any]] = [
        {"a": 1},
        {"a": None},
        {"a": 2**31},
        {"a": 1, "e": "Q"},
        {"a": 1, "r": [None]},
        {"a": 1, "m": [("k", None)]},
        {"a": 1, "n": {"z": None}},
        {"a": 1, "x": 0, "y": 0},
        {"a": 1, "u": -1},
        {"a": 2},
    ]
    message = message_class(schema)
    assert written(schema, pa.array(rows, columns)) == [
        message(a=1),
        "a: null, and the field is required",
        "a: Integer value 2147483648 not in range: -2147483648 to 2147483647",
        "e: 'Q' is no value of the enum; it has A",
        "r: an element is null, which Protobuf has none of",
        "m: a value is null, which Protobuf's maps have none of",
        "n.z: null, and the field is required",
        "y: another field of the oneof one has a value too",
        "u: Integer value -1 not in range: 0 to 4294967295",
        message(a=2),
    ]


def test_minus_zero_is_written_wherever_it_stands() -> None:
    schema = proto3(
        "double a = 1; optional float b = 2; repeated double c = 3; map<int32, double> d = 4; N n = 5;",
        "message N { float x = 1; }",
    )
    row = {"a": -0.0, "b": -0.0, "c": [-0.0], "d": [(0, -0.0)], "n": {"x": -0.0}}
    column = pa.array([row], FORMAT.reader_schema(schema).type)
    body = FORMAT.encoder(schema, column.type).encode(column)[0][0].as_py()
    assert str(decoded(schema, body)) == str([row])
    assert b"\x08\x00\x11" in body  # the entry's key, though it is 0


def test_a_closed_enums_numbers_and_texts_that_are_not_utf8_are_looked_at() -> None:
    closed = proto2("optional E e = 1; optional string s = 2;", "enum E { A = 1; }")
    numbers = pa.array([{"e": 1}, {"e": 2}], pa.struct({"e": pa.int32()}))
    assert written(closed, numbers) == [message_class(closed)(e=1), "e: a number that is no value of the enum"]
    text = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff"]).buffers()[1:]])
    bodies, bad = FORMAT.encoder(closed, pa.struct({"s": pa.string()})).encode(
        pa.StructArray.from_arrays([text], ["s"])
    )
    assert (bodies.to_pylist(), bad.to_pylist()) == ([None], [True])


def test_a_row_that_is_not_of_the_columns_is_refused_with_a_reason() -> None:
    encoder = FORMAT.encoder(proto3("int32 a = 1;"), pa.struct({"a": pa.int32()}))
    assert "tried to convert to int32" in encoder.refusal({"a": "x"})
    assert encoder.refusal({"a": 1}) == "the row can be written"


def test_no_rows_no_columns_and_slices_are_written() -> None:
    schema = proto3("int32 a = 1; repeated N n = 2;", "message N { repeated string s = 1; }")
    type_ = FORMAT.reader_schema(schema).type
    rows = [{"a": n, "n": [{"s": [str(n)] * n}] * n} for n in range(5)]
    whole = pa.array(rows, type_)
    assert written(schema, whole[2:4]) == written(schema, whole)[2:4]
    assert written(schema, whole[:0]) == []
    encoder = FORMAT.encoder(schema, pa.struct([]))
    assert encoder.encode(pa.array([{}, None], pa.struct([])))[0].to_pylist() == [b"", None]
