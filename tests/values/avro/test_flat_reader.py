"""Flat records, which the kernel reads: every row is what it is when it is read by itself, or told to be suspect."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from tagwire.values.avro import AvroFormat
from tagwire.values.avro.flat_reader import FlatReader
from tagwire.values.avro.schema_parsing import parse_schema
from tagwire.values.avro.wire_types import wire_type
from tagwire.values.schemas import Schema

fastavro = pytest.importorskip("fastavro")

from .generated_avro import body as encoded  # noqa: E402

NULLABLE = ["long", "boolean", "float", "double", "string", "bytes"]
FIELDS = [
    {"name": "int", "type": "int"},
    {"name": "enum", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "nothing", "type": "null"},
    {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 3}},
    *({"name": kind, "type": kind} for kind in NULLABLE),
    *({"name": f"{kind}_first", "type": ["null", kind]} for kind in NULLABLE),
    *({"name": f"{kind}_last", "type": [kind, "null"]} for kind in NULLABLE),
    {"name": "fixed_or_null", "type": ["null", "F"]},
]
FLAT = {"type": "record", "name": "R", "fields": FIELDS}
PLACES = list(range(len(FIELDS)))
VALUES = {
    "long": (0, -1, 63, 64, -65, 2**31, -(2**63), 2**63 - 1),
    "boolean": (True, False),
    "float": (0.0, -1.5, 3.0e38),
    "double": (0.0, -1.5, 1.0e308),
    "string": ("", "x", "é€𝄞", "y" * 200),
    "bytes": (b"", b"\x00\xff", b"z" * 70),
}


def row(random_: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"nothing": None, "fixed": b"abc", "int": random_.choice((0, -1, 2**31 - 1, -(2**31)))}
    found |= {"enum": random_.choice("AB"), "fixed_or_null": random_.choice((None, b"xyz"))}
    for kind in NULLABLE:
        found[kind] = random_.choice(VALUES[kind])
        found |= {f"{kind}_{end}": random_.choice((None, random_.choice(VALUES[kind]))) for end in ("first", "last")}
    return found


def reader(schema: Any, wanted: list[int]) -> FlatReader:
    """Of the kernel as it is, compiled or not."""
    wire = wire_type(parse_schema(Schema(json.dumps(schema))))
    assert wire is not None
    return FlatReader(wire, wanted)


def decoder(schema: Any) -> Any:
    given = Schema(json.dumps(schema))
    return AvroFormat().reader_schema(given).decoder(given)


def spoilt(body: bytes, random_: random.Random) -> bytes:
    at = random_.randrange(len(body))
    return random_.choice(
        (
            body[:at],
            body + b"\0",
            body[:at] + bytes([random_.randrange(256)]) + body[at + 1 :],
            body[:at] + b"\xff" * 11 + body[at:],
            body[:at] + body[at + 1 :],
            b"",
        )
    )


def test_rows_that_are_not_suspect_are_what_they_are_alone_and_bad_ones_are_suspect() -> None:
    random_ = random.Random(19)
    bodies = [encoded(FLAT, row(random_)) for _ in range(300)]
    given = [spoilt(body, random_) if random_.random() < 0.5 else body for body in bodies]
    columns, suspect = reader(FLAT, PLACES).read(pa.array([b"before", *given, b"after"], pa.binary())[1:-1])
    assert not any(suspect[index] for index, body in enumerate(given) if body == bodies[index])
    alone = decoder(FLAT)
    kernels = {FIELDS[place]["name"]: column.to_pylist() for place, column in columns.items()}
    for column in columns.values():
        column.validate(full=True)
    for index, body in enumerate(given):
        value, bad = (each[0].as_py() for each in alone.decode(pa.array([body], pa.binary())))
        assert suspect[index] or not bad
        if not suspect[index]:
            value = {**value, "enum": "AB".index(value["enum"])}
            assert {name: kernels[name][index] for name in kernels} == {name: value[name] for name in kernels}


def test_many_rows_with_bad_ones_among_them_are_what_each_is_alone() -> None:
    random_ = random.Random(20)
    bodies = [encoded(FLAT, row(random_)) for _ in range(200)]
    bodies = [spoilt(body, random_) if random_.random() < 0.1 else body for body in bodies]
    decodes = decoder(FLAT)
    together, wrong = decodes.decode(pa.array(bodies, pa.binary()))
    together.validate(full=True)
    alone = [decodes.decode(pa.array([body], pa.binary())) for body in bodies]
    assert wrong.to_pylist() == [bad[0].as_py() for _, bad in alone]
    assert together.to_pylist() == [value[0].as_py() for value, _ in alone]


def test_strides_of_many_rows_and_bodies_that_are_longer_than_one_are_read() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "t", "type": "string"}, {"name": "n", "type": "long"}]}
    sizes = [3] * 1500 + [100_000] * 8 + [300_000] + [5] * 600
    values = [{"t": "t" * size, "n": number} for number, size in enumerate(sizes)]
    bodies = pa.array([encoded(schema, value) for value in values], pa.binary())
    _, suspect = reader(schema, [0, 1]).read(bodies)
    assert [index for index, wrong in enumerate(suspect) if wrong] == [1508]
    found, bad = decoder(schema).decode(bodies)
    assert not bad.true_count
    assert found.to_pylist() == values


def test_fields_that_are_not_wanted_are_passed_over() -> None:
    random_ = random.Random(21)
    values = [row(random_) for _ in range(50)]
    bodies = pa.array([encoded(FLAT, value) for value in values], pa.binary())
    place = [field["name"] for field in FIELDS].index("string_first")
    columns, suspect = reader(FLAT, [place]).read(bodies)
    assert not suspect.any()
    assert {at: column.to_pylist() for at, column in columns.items()} == {
        place: [value["string_first"] for value in values]
    }
