"""One value as JSON: the bytes are those of a column of one row, and what is not plain is left to the column."""

import datetime
import json
import pickle
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.values.json_schema import JsonSchemaFormat
from tagwire.values.schemas import JSON, Schema

from .odd_values import by_column, check_with_odd_values

FORMAT = JsonSchemaFormat()
TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ({"type": "boolean"}, st.booleans()),
    ({"type": "integer"}, st.integers(-(1 << 63), (1 << 63) - 1)),
    ({"type": "integer", "connect.type": "int8"}, st.integers(-128, 127)),
    ({"type": "number"}, st.floats() | st.integers(-(10**11), 10**11) | st.floats(-100, 100)),
    ({"type": "number", "connect.type": "float32"}, st.floats(width=32)),
    ({"type": "string"}, st.text(max_size=8)),
    ({"type": "string", "format": "date"}, st.dates()),
    ({"type": "string", "format": "date-time"}, st.datetimes(timezones=st.sampled_from([None, datetime.UTC]))),
    ({"type": "string", "contentEncoding": "base64"}, st.binary(max_size=5)),
    ({"enum": ["a", 'b"', None]}, st.sampled_from(["a", 'b"', "c"])),
    ({"type": "string", "enum": ["a", ["b"], {"c": 1}, "\ud800"]}, st.sampled_from(["a", "b"])),
    (True, st.just('{"a": 1}')),
]


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any]:
    """A schema and a value of it."""
    kind = draw(st.sampled_from(["plain", "plain", "null", *(["list", "map", "record"] if depth else [])]))
    if kind == "record":
        fields = {f"f{place}": draw(typed(depth - 1)) for place in range(draw(st.integers(1, 4)))}
        required = draw(st.lists(st.sampled_from(list(fields)), unique=True))
        said = {"type": "object", "properties": {name: one[0] for name, one in fields.items()}, "required": required}
        return said, {name: one[1] for name, one in fields.items()}
    if kind == "list":
        said, value = draw(typed(depth - 1))
        return {"type": "array", "items": said}, [value] * draw(st.integers(0, 2))
    if kind == "map":
        said, value = draw(typed(depth - 1))
        return {"type": "object", "additionalProperties": said}, draw(
            st.dictionaries(st.text(max_size=3), st.just(value))
        )
    said, values = draw(st.sampled_from(TYPES))
    if kind == "null":
        return {"oneOf": [{"type": "null"}, said]}, None if draw(st.booleans()) else draw(values)
    return said, draw(values)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_a_value_is_written_as_a_column_of_it_is_or_left_to_the_column(data: st.DataObject) -> None:
    fields = {f"f{place}": data.draw(typed()) for place in range(data.draw(st.integers(1, 3)))}
    said = {"type": "object", "properties": {name: one[0] for name, one in fields.items()}}
    schema = Schema(json.dumps(said), JSON)
    value = {name: one[1] for name, one in fields.items() if data.draw(st.booleans())}
    kind = pa.struct([field for field in FORMAT.reader_schema(schema).type if field.name in value])
    check_with_odd_values(data.draw, FORMAT.encoder(schema, kind), kind, value)


def test_plain_values_of_every_type_need_no_column() -> None:
    kinds = {
        "a": ({"type": "boolean"}, True), "b": ({"type": "integer"}, -5), "c": ({"type": "number"}, -0.5),
        "d": ({"type": "string"}, 'é"\n'), "e": (TYPES[6][0], datetime.date(1, 2, 3)), "f": (TYPES[8][0], b"xyz"),
        "g": (TYPES[7][0], datetime.datetime(2024, 1, 1, 0, 0, 0, 7, datetime.UTC)), "h": ({"enum": ["x", None]}, None),
        "i": ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        "j": ({"type": "object", "additionalProperties": {"type": "number"}}, {"k": 2.0}),
    }  # fmt: skip
    schema = Schema(
        json.dumps({"type": "object", "properties": {name: said for name, (said, _) in kinds.items()}}), JSON
    )
    kind = FORMAT.reader_schema(schema).type
    encoder = pickle.loads(pickle.dumps(FORMAT.encoder(schema, kind)))
    value = {name: one for name, (_, one) in kinds.items()}
    assert encoder.encode_one(value) == by_column(encoder, kind, value) is not None


def test_what_a_column_refuses_is_not_written() -> None:
    schema = Schema('{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}', JSON)
    encoder = FORMAT.encoder(schema, FORMAT.reader_schema(schema).type)
    assert encoder.encode_one({"a": None}) is encoder.encode_one({"a": 1, "b": 2}) is encoder.encode_one({}) is None
