"""Columns as bodies: the bytes are fastavro's, and what does not fit is refused by its column or its row."""

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import ValueSchemaError
from tagwire.values.avro import AvroFormat
from tagwire.values.schemas import Schema

from . import generated_avro as generated
from .test_avro_schemas import logical, record

FORMAT = AvroFormat()


def encoded(schema: Any, column: pa.Array) -> tuple[list[bytes | None], list[bool]]:
    encoder = pickle.loads(pickle.dumps(FORMAT.encoder(Schema(json.dumps(schema)), column.type)))
    bodies, bad = encoder.encode(column)
    assert bodies.type == pa.binary()
    return bodies.to_pylist(), bad.to_pylist()


ITEM = record(("x", "long"), ("y", ["null", "string"]), name="I")

SAME_BYTES = [
    (record(("a", "int"), ("b", "string")), {"a": -64, "b": "é"}, pa.struct([("b", pa.string()), ("a", pa.int8())])),
    ("long", 1 << 62, pa.int64()),
    ("long", -(1 << 63), pa.int64()),
    ("int", 300, pa.uint16()),
    ("double", 0.5, pa.float32()),
    ("bytes", b"\0\xff", pa.large_binary()),
    ("string", "x" * 200, pa.large_string()),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(2)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.dictionary(pa.int8(), pa.string())),
    ({"type": "array", "items": ITEM}, [{"x": 1, "y": None}, {"x": 1000, "y": "z"}], None),
    ({"type": "array", "items": ["null", {"type": "array", "items": "int"}]}, [[1, 2], None, []], None),
    ({"type": "map", "values": "boolean"}, {"a": True, "b": False}, None),
    (["null", ITEM], {"x": 5, "y": "q"}, None),
    (["null", "string", "long"], 7, pa.int64()),
    ({"type": "array", "items": "null"}, [None, None], pa.list_(pa.null())),
]


@pytest.mark.parametrize(
    ("schema", "value", "column"), SAME_BYTES, ids=[json.dumps(schema)[:70] for schema, *_ in SAME_BYTES]
)
def test_a_column_is_written_as_the_bytes_that_fastavro_writes(schema: Any, value: Any, column: Any) -> None:
    column = column or FORMAT.reader_schema(Schema(json.dumps(schema))).type
    given = list(value.items()) if pa.types.is_map(column) else value
    array = pa.array([given, None, given], column).slice(1)
    body = generated.body(schema, value)
    assert encoded(schema, array) == ([None, body], [False, False])


def test_logical_types_are_written_in_the_schemas_unit() -> None:
    moment = datetime.datetime(2020, 1, 1, 0, 0, 0, 1999, datetime.UTC)
    micros = int(moment.timestamp() * 1_000_000)
    cases: list[tuple[Any, pa.Array, Any]] = [
        (logical("int", "date"), pa.array([datetime.date(2020, 1, 1)]), 18262),
        (logical("long", "timestamp-micros"), pa.array([moment], pa.timestamp("us", "UTC")), micros),
        (logical("long", "timestamp-millis"), pa.array([moment], pa.timestamp("us", "UTC")), micros // 1000),
        (logical("long", "timestamp-millis"), pa.array([-1], pa.timestamp("us", "UTC")), -1),
        (logical("long", "timestamp-micros"), pa.array([1], pa.timestamp("s", "UTC")), 1_000_000),
        (logical("long", "local-timestamp-millis"), pa.array([1], pa.timestamp("ms")), 1),
        (logical("int", "time-millis"), pa.array([5], pa.int32()), 5),
        (logical("long", "time-micros"), pa.array([5], pa.time64("us")), 5),
        (logical("long", "timestamp-nanos"), pa.array([5], pa.int64()), 5),
        (logical("bytes", "decimal", precision=9, scale=2), pa.array([Decimal("-1.28")]), b"\x80"),
        (logical("bytes", "decimal", precision=9, scale=2), pa.array([Decimal("1.28")]), b"\x00\x80"),
        (logical("bytes", "decimal", precision=9, scale=2), pa.array([Decimal("0")]), b"\x00"),
        (logical("bytes", "decimal", precision=9, scale=2), pa.array([Decimal("1.5")]), b"\x00\x96"),
        (
            {**logical("fixed", "decimal", precision=9), "name": "D", "size": 5},
            pa.array([Decimal(-2)]),
            b"\xff" * 4 + b"\xfe",
        ),
        (
            {**logical("fixed", "decimal", precision=9), "name": "D", "size": 18},
            pa.array([Decimal(-2)]),
            b"\xff" * 17 + b"\xfe",
        ),
    ]
    for schema, column, value in cases:
        assert encoded(schema, column) == ([generated.body(schema, value)], [False])


def test_a_field_without_a_column_is_its_default_or_null() -> None:
    schema = record(
        ("a", "int"),
        {"name": "d", "type": "string", "default": "x"},
        ("n", ["null", "int"]),
        {"name": "e", "type": ["null", "int"], "default": None},
        {"name": "t", "type": logical("long", "timestamp-millis"), "default": 1500},
    )
    body = generated.body(schema, {"a": 1, "d": "x", "n": None, "e": None, "t": 1500})
    assert encoded(schema, pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))) == ([body], [False])


def test_a_record_whose_field_is_called_like_a_member_is_written_to_a_union() -> None:
    schema = ["null", record(("membership", "int"), name="Card"), "string"]
    column = pa.array([{"membership": 7}, None], pa.struct([("membership", pa.int32())]))
    assert encoded(schema, column) == ([b"\x02\x0e", None], [False, False])


@pytest.mark.parametrize("unit", ["millis", "micros", "nanos"])
def test_a_union_of_two_numbers_is_a_column_of_what_is_written_whatever_they_count(unit: str) -> None:
    schema = Schema(json.dumps(record(("u", ["null", logical("int", "date"), logical("long", f"timestamp-{unit}")]))))
    reader = FORMAT.reader_schema(schema)
    column = pa.array([{"u": 5}, {"u": 1 << 40}, {"u": None}], reader.type)
    assert reader.type == pa.struct([("u", pa.int64())])
    bodies, bad = FORMAT.encoder(schema, reader.type).encode(column)
    assert (bodies.to_pylist(), bad.to_pylist()) == (
        [b"\x04\x0a", b"\x04\x80\x80\x80\x80\x80\x40", b"\x00"],
        [False] * 3,
    )
    for times in (1, 100):  # one by one, and many at once where that is done
        read, bad = reader.decoder(schema).decode(pa.array([*bodies.to_pylist(), b"\x02\x0a"] * times, pa.binary()))
        assert read.to_pylist() == [*column.to_pylist(), {"u": 5}] * times
        assert not any(bad.to_pylist())


def test_columns_may_have_views_at_any_depth() -> None:
    schema = record(("a", {"type": "array", "items": ITEM}), ("m", {"type": "map", "values": ["null", "bytes"]}))
    item = pa.struct([("x", pa.int64()), ("y", pa.string_view())])
    rows = [{"a": [{"x": 1, "y": "é"}], "m": [("k", b"\xff"), ("l", None)]}, None, {"a": [], "m": []}]
    plain = pa.array(rows, FORMAT.reader_schema(Schema(json.dumps(schema))).type)
    kind = pa.struct([("a", pa.large_list(item)), ("m", pa.map_(pa.string_view(), pa.binary_view()))])
    assert encoded(schema, pa.array(rows, kind).slice(0)) == encoded(schema, plain)
    encoder = FORMAT.encoder(Schema(json.dumps(schema)), kind)
    assert encoder.refusal({"a": None, "m": []}) == "at a: it is null, and the schema does not allow that"


def test_a_default_of_a_union_of_two_numbers_is_what_would_be_written_whatever_they_count() -> None:
    counted = {"name": "u", "type": [logical("long", "timestamp-millis"), "int"], "default": 5}
    schema = Schema(json.dumps(record(("a", "int"), counted)))
    older = Schema(json.dumps(record(("a", "int"))))
    read, bad = FORMAT.reader_schema(schema).decoder(older).decode(pa.array([b"\x02"]))
    assert (read.to_pylist(), bad.to_pylist()) == ([{"a": 1, "u": 5}], [False])
    assert encoded(record(("a", "int"), counted), pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))) == (
        [b"\x02\x00\x0a"],
        [False],
    )


def test_a_time_is_written_to_that_of_two_numbers_that_counts_it() -> None:
    schema = record(("u", ["int", logical("long", "timestamp-millis")]))
    column = pa.array([{"u": 5_000}], pa.struct([("u", pa.timestamp("us", "UTC"))]))
    assert encoded(schema, column) == ([b"\x02\x0a"], [False])


def test_a_union_of_several_types_is_written_from_its_members() -> None:
    schema = record(("u", ["int", "null", ITEM]))
    column = FORMAT.reader_schema(Schema(json.dumps(schema))).type
    both = {"u": {"member0": 1, "member1": {"x": 2, "y": None}}}
    rows = [{"u": {"member0": 1}}, {"u": {"member1": {"x": 2, "y": "z"}}}, {"u": {}}, {"u": None}, both]
    bodies, bad = encoded(schema, pa.array(rows, column))
    assert bad == [False, False, False, False, True]
    values = [("int", 1), ("I", {"x": 2, "y": "z"}), ("null", None), ("null", None)]
    assert bodies == [*(generated.body(schema, {"u": value}) for value in values), None]
    encoder = FORMAT.encoder(Schema(json.dumps(schema)), column)
    assert encoder.refusal(both) == "at u: 2 of the types of union of int, null, I are not null"


REFUSED = [
    (
        record(("a", "int"), ("b", "int")),
        [("a", pa.int32())],
        "at b: there is no such column, and the field has no default",
    ),
    (record(("a", "int")), [("a", pa.int32()), ("z", pa.int32())], "record R has no field z"),
    (record(("a", "int")), [("a", pa.string())], "at a: int cannot be written from string"),
    (record(("a", "string")), [("a", pa.binary())], "at a: string cannot be written from binary"),
    (record(("a", "float")), [("a", pa.float64())], "at a: float cannot be written from double"),
    (record(("a", ["null", "int"])), [("a", pa.string())], "at a: int cannot be written from string"),
    (
        record(("a", {"type": "array", "items": ITEM})),
        [("a", pa.list_(pa.int32()))],
        "at a[]: record I cannot be written",
    ),
    (record(("a", logical("int", "date"))), [("a", pa.int32())], "at a: date (int) cannot be written from int32"),
    (
        record(("a", logical("long", "timestamp-micros"))),
        [("a", pa.timestamp("us"))],
        "at a: timestamp-micros (long) cannot be written from timestamp[us]",
    ),
    (
        record(("a", logical("bytes", "decimal", precision=9, scale=1))),
        [("a", pa.decimal128(9, 2))],
        "at a: decimal(9, 1) (bytes) cannot be written from decimal128(9, 2)",
    ),
]


@pytest.mark.parametrize(("schema", "columns", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_columns_that_do_not_fit_the_schema_are_refused_before_any_row(schema: Any, columns: Any, why: str) -> None:
    with pytest.raises(ValueSchemaError) as caught:
        FORMAT.encoder(Schema(json.dumps(schema)), pa.struct(columns))
    assert why in str(caught.value)


BAD_ROWS = [
    ("int", [1, 1 << 31], pa.int64(), "at x: its number does not fit int"),
    ("long", [1, 1 << 63], pa.uint64(), "at x: its number does not fit long"),
    ("int", [1, 1 << 63], pa.uint64(), "at x: its number does not fit int"),
    ("string", ["a", None], pa.string(), "at x: it is null, and the schema does not allow that"),
    ({"type": "enum", "name": "E", "symbols": ["a"]}, ["a", "b"], pa.string(), "at x: its text is no symbol of enum E"),
    ({"type": "fixed", "name": "F", "size": 1}, [b"a", b"ab"], pa.binary(), "at x: its bytes are not the 1 of fixed F"),
    (
        logical("bytes", "decimal", precision=3),
        [Decimal(999), Decimal(1000)],
        pa.decimal128(9, 0),
        "at x: its number does not",
    ),
    (
        logical("bytes", "decimal", precision=30, scale=2),
        [Decimal("9999999999999999999999999999.99"), Decimal(10**28)],
        pa.decimal128(38, 2),
        "at x: its number does not fit decimal(30, 2)",
    ),
    (
        logical("bytes", "decimal", precision=38, scale=2),
        [Decimal(10**36 - 1), Decimal(10**36)],
        pa.decimal128(38, 0),
        "at x: its number does not fit decimal(38, 2)",
    ),
    (logical("long", "timestamp-micros"), [1, 1 << 60], pa.timestamp("ms", "UTC"), "at x: its number does not fit"),
    ({"type": "array", "items": "int"}, [[1], [2, None]], pa.list_(pa.int32()), "at x[]: it is null"),
    (
        {"type": "map", "values": "int"},
        [[("a", 1)], [("a", None)]],
        pa.map_(pa.string(), pa.int32()),
        "at x[]: it is null",
    ),
    (ITEM, [{"x": 1}, {"y": "a"}], pa.struct([("x", pa.int64()), ("y", pa.string())]), "at x.x: it is null"),
]


@pytest.mark.parametrize(("kind", "values", "column", "why"), BAD_ROWS, ids=[why for *_, why in BAD_ROWS])
def test_a_row_that_cannot_be_written_is_bad_and_says_where_and_why(
    kind: Any, values: Any, column: pa.DataType, why: str
) -> None:
    schema = record(("before", "string"), ("x", kind))
    numbers = pa.array(values, pa.int64()).view(column) if pa.types.is_timestamp(column) else pa.array(values, column)
    rows = pa.StructArray.from_arrays([pa.array(["p", "q"]), numbers], names=["before", "x"])
    bodies, bad = encoded(schema, rows)
    assert bad == [False, True]
    assert bodies[0] is not None
    assert bodies[1] is None
    if not pa.types.is_timestamp(column):
        assert why in FORMAT.encoder(Schema(json.dumps(schema)), rows.type).refusal(rows[1].as_py())


def test_rows_that_are_null_are_null_and_not_bad_whatever_is_below_them() -> None:
    inner = pa.struct([("x", pa.int32())])
    column = pa.array([{"r": {"x": 1}}, None, {"r": None}, {"r": {"x": None}}], pa.struct([("r", inner)]))
    nullable = record(("r", ["null", record(("x", "int"), name="I")]))
    assert encoded(nullable, column) == ([b"\x02\x02", None, b"\x00", None], [False, False, False, True])
    required = record(("r", record(("x", "int"), name="I")))
    assert encoded(required, column) == ([b"\x02", None, None, None], [False, False, True, True])
