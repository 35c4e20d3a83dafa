"""Single bodies: those that are bad, and those that logical types and evolution make something else of."""

import datetime
import json
import os
import signal
import tracemalloc
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tagwire.values.avro import AvroFormat
from tagwire.values.schemas import Schema

from . import generated_avro as generated
from .test_avro_schemas import logical, record

FORMAT = AvroFormat()
MANY = 120
"""Rows that are read as a block; one is read by itself."""


def read(written: Any, bodies: list[bytes], wanted: Any = None, fields: list[str] | None = None) -> list[Any]:
    """The values of bodies; a bad one is why. Each is read alone and among others, which has to be the same."""
    reader = FORMAT.reader_schema(Schema(json.dumps(written if wanted is None else wanted)))
    decoder = reader.decoder(Schema(json.dumps(written)), fields)
    values = []
    for body in bodies:
        alone, bad = decoder.decode(pa.array([body], pa.binary()))
        together, wrong = decoder.decode(pa.array([body] * MANY, pa.binary()))
        assert wrong.to_pylist() == bad.to_pylist() * MANY
        assert together.to_pylist() == alone.to_pylist() * MANY
        values.append(decoder.refusal(body) if bad[0].as_py() else alone[0].as_py())
    return values


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}

BAD = [
    ("string", b"\x06ab", "3 bytes are to follow, and there are 2"),
    ("string", b"\x04ab\x00", "1 bytes follow the value"),
    ("string", b"\x01", "-1 bytes are to follow, and there are 0"),
    ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "9223372036854775807 bytes are to follow, and there are 0"),
    ("string", b"\x04\xc3\x28", "a string is not UTF-8: invalid continuation byte at 0"),
    ("long", b"", "the value ends inside a number"),
    ("long", b"\x80", "the value ends inside a number"),
    ("long", b"\xff" * 11, "a number has more than ten bytes"),
    ("int", b"\x80\x80\x80\x80\x10", "2147483648 is no int"),
    ("boolean", b"\x02", "a boolean has the byte 2"),
    ("double", b"\0" * 7, "8 bytes are to follow, and there are 7"),
    (ENUM, b"\x04", "it is symbol 2 of an enum of 2"),
    (ENUM, b"\x01", "it is symbol -1 of an enum of 2"),
    (["null", "long"], b"\x04\x02", "it is of type 2 of a union of 2"),
    (["null", "long"], b"\x01\x02", "it is of type -1 of a union of 2"),
    (["long", "null"], b"\x04", "it is of type 2 of a union of 2"),
    (["null", "long", "string"], b"\x06", "it is of type 3 of a union of 3"),
    (["int", "long"], b"\x00\x80\x80\x80\x80\x10", "2147483648 is no int"),
    ({"type": "array", "items": "long"}, b"\x02\x02", "the value ends inside a number"),
    ({"type": "array", "items": "long"}, b"\xfe\xff\xff\xff\x0f", "2147483647 items are to follow in 0 bytes"),
    ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\x00", "more than 64 cells for each"),
    (
        {"type": "array", "items": record(name="Empty")},
        b"\xfe\xff\xff\xff\x0f\x00",
        "more than 64 cells for each",
    ),
    ({"type": "map", "values": "null"}, b"\x02\x06a\x00", "[]: 3 bytes are to follow"),
    (logical("bytes", "decimal", precision=2), b"\x02\x64", "a decimal has more than 2 digits"),
    (logical("long", "timestamp-millis"), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "does not fit a column"),
]


@pytest.mark.parametrize(("kind", "body", "why"), BAD, ids=[f"{why} {body[:12].hex()}" for _, body, why in BAD])
def test_a_body_that_is_no_value_is_bad_and_says_where_and_why(kind: Any, body: bytes, why: str) -> None:
    assert why in read(kind, [body])[0]
    (told,) = read(record(("before", "int"), ("x", kind)), [b"\x02" + body])
    assert why in told
    assert told.startswith("at x") or "follow the value" in told


def zigzag(number: int) -> bytes:
    left, found = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_long_that_is_read_as_a_float_is_the_nearest_one(more: int, sign: int) -> None:
    """Half way between two floats, a bit more and a bit less, which a double does not tell apart."""
    low, high = (1 << 60) + (1 << 37), (1 << 60) + 2 * (1 << 37)
    number = (low + high) // 2 + more
    nearest = low if more < 0 else high  # of two as near the even one
    assert read("long", [zigzag(sign * number)], "float") == [float(sign * nearest)]


def test_the_bad_body_of_a_block_is_the_one_that_is_told() -> None:
    written = record(("a", "string"), ("b", ["null", "long"]))
    good = generated.body(written, {"a": "x", "b": 5})
    bodies = [good] * 1000
    for place, bad in [(3, good[:-1]), (500, good + b"\0"), (998, b"\xfe\xff\xff\xff\x0f"), (999, b"")]:
        bodies[place] = bad
    reader = FORMAT.reader_schema(Schema(json.dumps(written)))
    column, bad = reader.decoder(reader.schema).decode(pa.array([*bodies, None], pa.binary()))
    assert [row for row, wrong in enumerate(bad.to_pylist()) if wrong] == [3, 500, 998, 999]
    assert [row for row, valid in enumerate(column.is_valid().to_pylist()) if not valid] == [3, 500, 998, 999, 1000]
    assert column[501].as_py() == {"a": "x", "b": 5}


def test_bodies_that_shift_into_each_other_are_told_though_together_they_add_up() -> None:
    written = record(("a", "string"), ("b", "string"))
    long, short = b"\x04ab\x04cd\x00", b"\x04ab\x04c"
    assert len(long + short) == 2 * len(b"\x04ab\x04cd")
    reader = FORMAT.reader_schema(Schema(json.dumps(written)))
    _, bad = reader.decoder(reader.schema).decode(pa.array([b"\x02x\x02y", long, short] * 50, pa.binary()))
    assert bad.to_pylist() == [False, True, True] * 50


def test_what_a_short_body_becomes_is_bounded() -> None:
    wide = record(*((f"f{number}", ["null", "long"]) for number in range(2000)), name="Wide")
    written = {"type": "array", "items": ["null", wide]}
    count = 50_000
    body = b"\xa0\x8d\x06" + b"\0" * count + b"\0"
    reader = FORMAT.reader_schema(Schema(json.dumps(written)))
    decoder = reader.decoder(reader.schema)
    tracemalloc.start()
    try:
        _, bad = decoder.decode(pa.array([body] * 20, pa.binary()))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert bad.to_pylist() == [True] * 20
    assert "64 cells for each of its" in decoder.refusal(body)


def test_blocks_with_their_sizes_are_read_and_the_sizes_not_believed() -> None:
    written = record(("a", {"type": "array", "items": ["null", "long"]}), ("b", ["null", "long"]))
    sized, two, lying = (
        b"\x03\x08\x02\x0a\x02\x0e\x00\x00",
        b"\x02\x02\x0a\x01\x04\x02\x0e\x00\x00",
        b"\x03\x7e\x02\x0a\x02\x0e\x00\x00",
    )
    assert read(written, [sized, two, lying]) == [{"a": [5, 7], "b": None}] * 3
    assert read(written, [sized, two, lying], fields=["b"]) == [{"b": None}] * 3


def test_encodings_that_are_longer_than_they_need_be_are_read() -> None:
    written = record(("a", "long"), ("b", ["null", "long"]))
    assert read(written, [b"\x8a\x80\x00\x82\x80\x00\x02"]) == [{"a": 5, "b": 1}]


def test_logical_types_are_read_as_what_they_are() -> None:
    utc = datetime.UTC
    cases: list[tuple[Any, Any, Any]] = [
        (logical("int", "date"), 18262, datetime.date(2020, 1, 1)),
        (logical("long", "timestamp-millis"), -1, datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, utc)),
        (logical("long", "timestamp-micros"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1, utc)),
        (logical("long", "local-timestamp-millis"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1000)),
        (logical("long", "local-timestamp-micros"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1)),
        (logical("bytes", "decimal", precision=5, scale=2), b"\xff\x85", Decimal("-1.23")),
        (logical("bytes", "decimal", precision=5, scale=2), b"\xff" * 30 + b"\x85", Decimal("-1.23")),
        (logical("bytes", "decimal", precision=5, scale=2), b"", Decimal("0.00")),
        (
            {**logical("fixed", "decimal", precision=5, scale=2), "name": "D", "size": 20},
            bytes(19) + b"\x7b",
            Decimal("1.23"),
        ),
    ]
    for kind, value, expected in cases:
        assert read(kind, [generated.body(kind, value)]) == [expected]


def test_a_timestamp_is_the_same_moment_when_its_unit_changes() -> None:
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    millis = int(moment.timestamp() * 1000)
    for unit, value in [("millis", millis), ("micros", millis * 1000), ("nanos", millis * 1_000_000 + 999)]:
        written = logical("long", f"timestamp-{unit}")
        for wanted in ("timestamp-millis", "timestamp-micros"):
            assert read(written, [generated.body(written, value)], logical("long", wanted)) == [moment]
    written = logical("int", "time-millis")
    assert read(written, [generated.body(written, 5)], logical("long", "time-micros")) == [5000]


@pytest.mark.parametrize("number", [(1 << 63) // 1000 + 1, -(1 << 63) // 1000, (1 << 63) - 1, -(1 << 63)])
def test_a_timestamp_that_microseconds_do_not_reach_is_bad_up_to_the_least_number(number: int) -> None:
    """Which programs in Java have where they have no time."""
    for name in ("timestamp-millis", "local-timestamp-millis"):
        (told,) = read(logical("long", name), [zigzag(number)])
        assert told == f"{number} does not fit a column of microseconds"


def test_a_value_of_a_type_that_the_reader_has_not_is_bad_and_the_others_are_read() -> None:
    written = record(("a", ["null", "int", "string"]))
    bodies = [generated.body(written, {"a": value}) for value in (None, 5, "x")]
    assert read(written, bodies, record(("a", ["null", "long"]))) == [
        {"a": None},
        {"a": 5},
        "at a: string is none of the reader's union of null, long",
    ]
    written = record(("a", ["null", "int"]))
    assert read(written, bodies[:2], record(("a", "int"))) == ["at a: null cannot be read as int", {"a": 5}]
    written = record(("a", {**ENUM, "symbols": ["A", "C"]}))
    assert read(written, [b"\x00", b"\x02"], record(("a", ENUM))) == [
        {"a": "A"},
        "at a: enum E has no symbol C, and no default",
    ]


def test_a_value_goes_to_the_type_of_a_union_that_is_its_own_or_else_to_the_first_that_it_is_promoted_to() -> None:
    def members(wanted: list[str], value: int) -> Any:
        (found,) = read(record(("a", "int")), [zigzag(value)], record(("a", wanted)))
        return found["a"]

    assert members(["double", "string", "long"], 5) == {"member0": 5.0, "member1": None, "member2": None}
    assert members(["string", "long", "double"], 5) == {"member0": None, "member1": 5, "member2": None}
    assert members(["double", "string", "int"], 5) == {"member0": None, "member1": None, "member2": 5}


def test_of_a_key_that_a_map_has_twice_the_last_is_read() -> None:
    written = {"type": "map", "values": "int"}
    assert read(written, [b"\x06\x02a\x02\x02b\x04\x02a\x06\x00"]) == [[("a", 3), ("b", 2)]]


def test_fields_that_were_not_asked_for_are_skipped() -> None:
    written = record(
        ("a", "string"), ("b", ["null", "long"]), ("c", {"type": "array", "items": "string"}), ("d", "double")
    )
    body = generated.body(written, {"a": "x", "b": 5, "c": ["y", "z"], "d": 0.5})
    for fields in (["d", "a"], ["b"], ["c"], []):
        assert read(written, [body], fields=fields) == [
            {name: {"a": "x", "b": 5, "c": ["y", "z"], "d": 0.5}[name] for name in fields}
        ]


def test_types_that_are_nested_as_deep_as_a_column_can_be_are_read() -> None:
    lists: Any = "long"
    maps: Any = "long"
    records: Any = ["null", "long"]
    for level in range(60):
        lists = {"type": "array", "items": lists}
        records = record(("a", records), name=f"R{level}")
        if level % 2:
            maps = {"type": "map", "values": maps}
    for schema, body in [
        (lists, b"\x02" * 61 + b"\0" * 60),
        (maps, b"\x02\x02k" * 30 + b"\x02" + b"\0" * 30),
        (records, b"\x02\x02"),
    ]:
        (value,) = read(schema, [body])
        for _ in range(60 if schema is not maps else 30):
            value = value["a"] if schema is records else value[0] if schema is lists else value[0][1]
        assert value == 1


def test_defaults_are_of_the_readers_types() -> None:
    wanted = record(
        {"name": "b", "type": "bytes", "default": "\u00ff"},
        {"name": "d", "type": logical("bytes", "decimal", precision=4, scale=2), "default": "\u0001"},
        {"name": "t", "type": logical("long", "timestamp-millis"), "default": 0},
        {"name": "u", "type": ["string", "long", "null"], "default": "x"},
        {"name": "m", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
        {
            "name": "r",
            "type": record({"name": "x", "type": "int", "default": 1}, ("y", "int"), name="I"),
            "default": {"y": 2},
        },
    )
    assert read(record(), [b""], wanted) == [
        {
            "b": b"\xff",
            "d": Decimal("0.01"),
            "t": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
            "u": {"member0": "x", "member1": None},
            "m": [("k", 1)],
            "r": {"x": 1, "y": 2},
        }
    ]


def test_bodies_are_read_in_a_process_that_was_forked_after_others_were_read() -> None:
    written = record(("a", "string"), ("b", {"type": "array", "items": record(("x", ["null", "long"]), name="I")}))
    body = generated.body(written, {"a": "x", "b": [{"x": ("long", 5)}]})
    reader = FORMAT.reader_schema(Schema(json.dumps(written)))
    decoder = reader.decoder(reader.schema)
    bodies = pa.array([body] * MANY, pa.binary())
    expected, _ = decoder.decode(bodies)
    forked = os.fork()
    if not forked:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        code = 1
        try:
            code = 0 if decoder.decode(bodies)[0].equals(expected) else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(forked, 0)
    assert status == 0
