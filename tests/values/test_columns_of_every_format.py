"""Columns that are written alike in every format: with dictionaries, and with text that is not UTF-8."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tagwire.values.formats import body_format
from tagwire.values.python_rows import python_row
from tagwire.values.schemas import AVRO, JSON, PROTOBUF, Schema

_FIELDS = [
    {"name": "one", "type": ["null", "string"]},
    {"name": "many", "type": {"type": "array", "items": "string"}},
    {"name": "named", "type": {"type": "map", "values": "string"}},
]
_TEXT = {"type": "string"}
SCHEMAS = {
    "avro": Schema(json.dumps({"type": "record", "name": "R", "fields": _FIELDS}), AVRO),
    "protobuf": Schema(
        'syntax = "proto3"; message R { optional string one = 1; repeated string many = 2; '
        "map<string, string> named = 3; }",
        PROTOBUF,
    ),
    "json-schema": Schema(
        json.dumps(
            {
                "type": "object",
                "properties": {
                    "one": {"type": ["string", "null"]},
                    "many": {"type": "array", "items": _TEXT},
                    "named": {"type": "object", "additionalProperties": _TEXT},
                },
            }
        ),
        JSON,
    ),
}
NAMES = ["one", "many", "named"]


def rows_of(ones: pa.Array, items: pa.Array, values: pa.Array) -> pa.StructArray:
    """Rows of one text, a list with one item and a map with one value each."""
    edges = pa.array(range(len(ones) + 1), pa.int32())
    keys = pa.array(["k"] * len(ones))
    lists, maps = pa.ListArray.from_arrays(edges, items), pa.MapArray.from_arrays(edges, keys, values)
    return pa.StructArray.from_arrays([ones, lists, maps], names=NAMES)


def texts(*values: bytes | None) -> pa.Array:
    """A column of texts whose bytes may be anything."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def through(name: str, rows: pa.StructArray) -> tuple[list[Any], list[bool], list[str]]:
    """What becomes of rows that are written and read again; and why bad ones are bad."""
    format_, schema = body_format(name), SCHEMAS[name]
    encoder = format_.encoder(schema, rows.type)
    bodies, bad = encoder.encode(rows)
    found, _ = format_.reader_schema(schema).decoder(schema).decode(bodies)
    reasons = [encoder.refusal(python_row(rows, row)) for row, wrong in enumerate(bad.to_pylist()) if wrong]
    return found.to_pylist(), bad.to_pylist(), reasons


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_null_among_the_values_of_a_dictionary_is_a_null(name: str) -> None:
    def coded(*codes: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(["x", None]))

    rows = rows_of(coded(0, 1, 0, 0), coded(0, 0, 1, 0), coded(0, 0, 0, 1))
    found, bad, reasons = through(name, rows)
    whole = {"one": "x", "many": ["x"], "named": [("k", "x")]}
    assert found == [whole, {**whole, "one": None}, None, None]
    assert bad == [False, False, True, True]
    assert all("null" in reason for reason in reasons)


@pytest.mark.parametrize("name", SCHEMAS)
def test_text_that_is_not_utf_8_makes_a_bad_row_that_says_so(name: str) -> None:
    ok = texts(*[b"ok"] * 4)
    good = rows_of(ok, ok, ok).slice(3)
    broken = [rows_of(*(texts(b"\xff") if place == at else ok.slice(3) for place in range(3))) for at in range(3)]
    found, bad, reasons = through(name, pa.concat_arrays([good, *broken]))
    assert found == [{"one": "ok", "many": ["ok"], "named": [("k", "ok")]}, None, None, None]
    assert bad == [False, True, True, True]
    assert all("not UTF-8" in reason for reason in reasons)
