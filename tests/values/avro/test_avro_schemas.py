"""What Avro's schemas become: Arrow types, or one error that says where and why; and which of them read which."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from tagwire.errors import ValueSchemaError
from tagwire.values.avro import AvroFormat
from tagwire.values.schemas import Schema

FORMAT = AvroFormat()


def schema(given: Any, *references: tuple[str, Schema]) -> Schema:
    return Schema(json.dumps(given), references=references)


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    made = [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


TYPES = [
    ("null", pa.null()),
    ("boolean", pa.bool_()),
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("bytes", pa.binary()),
    ("string", pa.string()),
    ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
    ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
    ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32())),
    (record(("a", "int"), ("b", ["null", "string"])), pa.struct([("a", pa.int32()), ("b", pa.string())])),
    (logical("int", "date"), pa.date32()),
    (logical("int", "time-millis"), pa.int32()),
    (logical("long", "time-micros"), pa.int64()),
    (logical("long", "timestamp-millis"), pa.timestamp("us", "UTC")),
    (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
    (logical("long", "timestamp-nanos"), pa.int64()),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us")),
    (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
    (logical("string", "uuid"), pa.string()),
    ({**logical("fixed", "duration"), "name": "D", "size": 12}, pa.binary()),
    (logical("bytes", "decimal", precision=10, scale=2), pa.decimal128(10, 2)),
    ({**logical("fixed", "decimal", precision=9), "name": "D", "size": 4}, pa.decimal128(9, 0)),
    # What is not valid for its type is as if it were not there.
    ({**logical("fixed", "decimal", precision=10), "name": "D", "size": 4}, pa.binary()),
    (logical("bytes", "decimal", precision=2, scale=3), pa.binary()),
    (logical("string", "date"), pa.string()),
    (["null"], pa.null()),
    (["string"], pa.string()),
    (["null", "int"], pa.int32()),
    (["int", "long"], pa.int64()),
    (["double", "null", "float"], pa.float64()),
    (["int", "null", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
]


@pytest.mark.parametrize(("given", "expected"), TYPES, ids=[json.dumps(given)[:60] for given, _ in TYPES])
def test_a_schema_becomes_the_type_whose_spark_type_from_avro_gives(given: Any, expected: pa.DataType) -> None:
    assert pickle.loads(pickle.dumps(FORMAT.reader_schema(schema(given)))).type == expected


@pytest.mark.parametrize("given", [given for given, _ in TYPES], ids=[json.dumps(given)[:60] for given, _ in TYPES])
def test_bodies_of_every_type_but_unions_of_several_are_read_many_at_once(given: Any) -> None:
    reader = FORMAT.reader_schema(schema(given))
    several = (
        isinstance(given, list) and len([each for each in given if each != "null"]) > 1 and given != ["int", "long"]
    )
    assert reader.decoder(reader.schema).reads_blocks is not several


def nested(depth: int) -> str:
    return '{"type": "array", "items": ' * depth + '"int"' + "}" * depth


WRONG = [
    ("{", "not JSON"),
    ("[]", "no types"),
    ('"nothing"', "no type named 'nothing'"),
    (json.dumps(record(("next", ["null", "R"]))), "at next: record R contains itself"),
    (nested(61), "columns of array are nested deeper than 60 levels"),
    (nested(1000), "deeper than 100 levels"),
    (nested(100_000), "deeper than 100 levels"),
    (json.dumps(["int", "int"]), "int twice"),
    (json.dumps(["int", ["null", "long"]]), "a union stands immediately in a union"),
    (json.dumps(record(("a", "int"), ("a", "int"))), "the field a twice"),
    (json.dumps(record(("a b", "int"))), "the name 'a b'"),
    (json.dumps(record(("a", record(("b", "int"))))), "at a: R is defined twice"),
    (json.dumps({"type": "fixed", "name": "F", "size": -1}), "the size -1"),
    (json.dumps({"type": "enum", "name": "E", "symbols": ["A", "A"]}), "a symbol twice"),
    (json.dumps({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}), "none of its symbols"),
    (json.dumps({"type": "enum", "name": "E", "symbols": ["\ud800"]}), "a symbol with half a surrogate pair"),
    (json.dumps({"type": "array"}), "the array has no items"),
    (json.dumps(7), "7 is no schema"),
    (json.dumps(logical("bytes", "decimal", precision=39)), "more than the 38 digits"),
]


@pytest.mark.parametrize(("text", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_schema_that_cannot_be_a_column_is_refused_with_the_place_and_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueSchemaError) as caught:
        FORMAT.reader_schema(Schema(text))
    assert why in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_named_types_that_double_at_each_level_are_refused_before_they_are_worked_out() -> None:
    inner = record(("a", "int"), name="R0")
    for level in range(1, 40):
        inner = record(("a", inner), ("b", f"R{level - 1}"), name=f"R{level}")
    with pytest.raises(ValueSchemaError, match="more than 100000 types"):
        FORMAT.reader_schema(schema(inner))


def test_a_namespace_or_an_enums_default_that_is_null_is_as_if_it_were_not_there() -> None:
    inner = {"type": "enum", "name": "E", "namespace": None, "symbols": ["A"], "default": None}
    outer = {**record(("a", inner), ("b", "x.E")), "namespace": "x"}
    assert FORMAT.reader_schema(schema(outer)).type == pa.struct([("a", pa.string()), ("b", pa.string())])
    assert FORMAT.reader_schema(schema({**record(("a", "int")), "namespace": None})).type.num_fields == 1


def test_names_are_found_in_their_namespaces_and_in_the_schemas_that_are_referred_to() -> None:
    money = schema(record(("cents", "long"), name="Money", namespace="com.shop"))
    order = schema(
        record(
            ("price", "com.shop.Money"),
            ("refund", ["null", "Money"]),
            ("state", {"type": "enum", "name": "other.State", "symbols": ["NEW"]}),
            ("before", "other.State"),
            name="Order",
            namespace="com.shop",
        ),
        ("com.shop.Money", money),
    )
    cents = pa.struct([("cents", pa.int64())])
    expected = pa.struct([("price", cents), ("refund", cents), ("state", pa.string()), ("before", pa.string())])
    assert FORMAT.reader_schema(order).type == expected
    with pytest.raises(ValueSchemaError, match=r"no type named 'com\.shop\.Money'"):
        FORMAT.reader_schema(Schema(order.text))


def test_a_schema_that_two_references_share_is_read_once() -> None:
    shared = schema(record(("x", "int"), name="Shared"))
    left = schema(record(("s", "Shared"), name="Left"), ("Shared", shared))
    right = schema(record(("s", "Shared"), name="Right"), ("Shared", shared))
    top = schema(record(("l", "Left"), ("r", "Right"), name="Top"), ("Left", left), ("Right", right))
    assert FORMAT.reader_schema(top).type.num_fields == 2


BREAKS = [
    (record(("a", "long")), record(("a", "int")), ["at a: long cannot be read as int"]),
    (
        record(("a", "int")),
        record(("a", "int"), ("b", "int")),
        ["at b: the writer does not have this field, and the reader has no default for it"],
    ),
    (record(("a", ["null", "int"])), record(("a", "int")), ["at a: null cannot be read as int"]),
    (
        record(("a", {"type": "enum", "name": "E", "symbols": ["A", "B"]})),
        record(("a", {"type": "enum", "name": "E", "symbols": ["A"]})),
        ["at a: enum E has no symbol B, and no default"],
    ),
    (
        record(("a", {"type": "fixed", "name": "F", "size": 4})),
        record(("a", {"type": "fixed", "name": "F", "size": 5})),
        ["at a: fixed F has 4 bytes, fixed F has 5"],
    ),
    (
        record(("a", {"type": "array", "items": record(("x", "string"), name="I")})),
        record(("a", {"type": "array", "items": record(("x", "int"), name="I")})),
        ["at a[].x: string cannot be read as int"],
    ),
    (record(("a", "int"), name="A"), record(("a", "int"), name="B"), ["record A cannot be read as record B"]),
    (
        record(("a", "int"), ("b", "string")),
        record(("a", "string"), ("b", "int")),
        ["at a: int cannot be read as string", "at b: string cannot be read as int"],
    ),
    (
        record(("a", logical("bytes", "decimal", precision=9, scale=2))),
        record(("a", logical("bytes", "decimal", precision=9, scale=3))),
        ["at a: decimal(9, 2) (bytes) cannot be read as decimal(9, 3) (bytes)"],
    ),
    (
        record(("a", "int")),
        record(("a", "int"), {"name": "b", "type": "int", "default": "x"}),
        ["at b: the reader's default does not fit: 'x' is no int"],
    ),
    (
        record(("a", "int")),
        record(("a", "int"), {"name": "b", "type": "double", "default": 10**400}),
        ["at b: the reader's default does not fit: a number of 1329 bits is no double"],
    ),
    (
        record(("a", "int")),
        record(("a", "int"), {"name": "b", "type": {"type": "map", "values": "int"}, "default": {"\ud800": 1}}),
        [
            "at b: the reader's default does not fit: 'utf-8' codec can't encode character '\\ud800' in position 0: "
            "surrogates not allowed"
        ],
    ),
]


@pytest.mark.parametrize(("older", "newer", "expected"), BREAKS, ids=[why[0] for *_, why in BREAKS])
def test_why_a_newer_schema_cannot_read_an_older_one_is_told_with_the_place(
    older: Any, newer: Any, expected: list[str]
) -> None:
    assert FORMAT.compatibility(schema(older), schema(newer)) == expected


FITS = [
    (record(("a", "int")), record(("a", "double"))),
    (record(("a", "int"), ("b", "string")), record(("b", "bytes"))),
    (record(("a", "int")), record(("a", ["null", "long"]))),
    (record(("a", "int")), record({"name": "b", "type": "long", "aliases": ["a"]})),
    (record(("a", "int"), name="Old"), record(("a", "int"), name="New", aliases=["Old"])),
    (record(("a", "int"), name="x.R"), record(("a", "int"), name="y.R")),
    (
        record(("a", {"type": "enum", "name": "E", "symbols": ["A", "B"]})),
        record(("a", {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"})),
    ),
    (record(("a", ["int", "string"])), record(("a", ["string", "null", "long"]))),
    (record(("a", "int")), record(("a", "int"), {"name": "b", "type": ["null", "int"], "default": None})),
    (
        record(("a", "int")),
        record(
            ("a", "int"),
            {"name": "b", "type": logical("bytes", "decimal", precision=10**9, scale=10**8), "default": "\u0001"},
        ),
    ),
]


@pytest.mark.parametrize(("older", "newer"), FITS, ids=[json.dumps(newer)[38:90] for _, newer in FITS])
def test_a_change_that_avro_resolves_is_compatible(older: Any, newer: Any) -> None:
    assert FORMAT.compatibility(schema(older), schema(newer)) == []


def test_a_writers_schema_that_does_not_resolve_is_refused_before_any_value() -> None:
    reader = FORMAT.reader_schema(schema(record(("a", "int"))))
    with pytest.raises(ValueSchemaError, match="does not resolve to the reader's: at a: string cannot be read as int"):
        reader.decoder(schema(record(("a", "string"))))


def test_a_type_that_cannot_be_read_is_told_of_each_place_where_it_stands() -> None:
    def twice(kind: str) -> Any:
        return record(("a", record(("x", kind), name="I")), ("b", {"type": "array", "items": "I"}))

    assert FORMAT.compatibility(schema(twice("string")), schema(twice("int"))) == [
        "at a.x: string cannot be read as int",
        "at b[].x: string cannot be read as int",
    ]


def test_unions_of_records_that_are_alike_by_their_short_names_are_compared_in_bounded_time() -> None:
    def nested(one: str, other: str, leaf: str, levels: int) -> Any:
        inner: Any = leaf
        for level in range(1, levels + 1):
            first = record(("f", inner), name=f"{one}{level}.R")
            names = leaf if level == 1 else [f"{one}{level - 1}.R", f"{other}{level - 1}.R"]
            inner = [first, record(("f", names), name=f"{other}{level}.R")]
        return inner

    writer, reader = schema(nested("a", "b", "string", 14)), schema(nested("c", "d", "int", 14))
    with pytest.raises(ValueSchemaError, match="string cannot be read as int"):
        FORMAT.reader_schema(reader).decoder(writer)
    assert FORMAT.compatibility(writer, reader)


def test_whether_a_schema_resolves_does_not_depend_on_the_fields_that_are_read() -> None:
    reader = FORMAT.reader_schema(schema(record(("a", "int"), ("b", "int"))))
    with pytest.raises(ValueSchemaError, match="at a"):
        reader.decoder(schema(record(("a", "string"), ("b", "int"))), ["b"])
    with pytest.raises(ValueSchemaError, match="has no field c"):
        reader.decoder(reader.schema, ["c"])
