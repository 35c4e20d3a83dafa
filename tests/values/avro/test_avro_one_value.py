"""One value as a body: the bytes are those of a column of one row, and what is not plain is left to the column."""

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import ValueSchemaError
from tagwire.values.avro import AvroFormat
from tagwire.values.schemas import Schema

from ..odd_values import by_column, check_with_odd_values, plain
from . import generated_avro as generated

FORMAT = AvroFormat()


@given(st.data(), generated.schemas())
@settings(max_examples=60)
def test_a_value_is_written_as_a_column_of_it_is_or_left_to_the_column(data: st.DataObject, schema: Any) -> None:
    node = generated.parsed(schema)
    reader = FORMAT.reader_schema(Schema(json.dumps(schema)))
    value = generated.wire_value(node, data.draw(generated.values(node)))
    try:
        given_ = plain(pa.array([value], reader.type).to_pylist()[0], reader.type)
    except (OverflowError, ValueError):
        given_ = dict(value)  # times that Python's do not reach
    names = data.draw(st.lists(st.sampled_from(list(given_)), unique=True)) if data.draw(st.booleans()) else given_
    given_ = {name: given_[name] for name in names}
    kind = pa.struct([field for field in reader.type if field.name in given_])
    try:
        encoder = FORMAT.encoder(reader.schema, kind)
    except ValueSchemaError:
        return
    check_with_odd_values(data.draw, encoder, kind, given_)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", True),
        ("int", -(1 << 31)),
        ("long", (1 << 63) - 1),
        ("float", 2.5),
        ("double", 3),
        ("bytes", b"\0" * 70),
        ("string", "Köln" * 20),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "array", "items": "string"}, ["a", "b"]),
        ({"type": "array", "items": "string"}, []),
        ({"type": "map", "values": "long"}, {"a": 1, "b": -300}),
        (["null", "string"], None),
        (["null", "string"], "x"),
        (["int", "null", "long"], 5),
        (["null", "int", "string"], {"member1": "x"}),
        ({"type": "int", "logicalType": "date"}, datetime.date(1969, 12, 31)),
        ({"type": "int", "logicalType": "time-millis"}, 5),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime.datetime(1960, 1, 1, 0, 0, 0, 999)),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime.datetime(2024, 1, 1, 0, 0, 0, 1)),
        ({"type": "string", "logicalType": "uuid"}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, decimal.Decimal("-1.28")),
        (
            {"type": "fixed", "name": "D", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2},
            decimal.Decimal(7),
        ),
    ],
)
def test_plain_values_of_every_type_need_no_column(schema: Any, value: Any) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}, {"name": "b", "type": "int"}]}
    reader = FORMAT.reader_schema(Schema(json.dumps(record)))
    encoder = FORMAT.encoder(reader.schema, reader.type)
    row = {"b": 1, "a": value}
    assert encoder.encode_one(row) == by_column(encoder, reader.type, row) is not None


def test_a_field_that_a_value_lacks_is_its_default() -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": ["string", "null"], "default": "x"}]
    schema = Schema(json.dumps({"type": "record", "name": "R", "fields": fields}))
    encoder = FORMAT.encoder(schema, pa.struct([("a", pa.int32())]))
    assert encoder.encode_one({"a": 1}) == b"\x02\0\x02x"
    assert encoder.encode_one({"a": 1, "b": "y"}) is None


def test_a_decimal_with_a_digit_far_behind_is_left_to_the_column_which_refuses_it() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    encoder = FORMAT.encoder(Schema(json.dumps(price)), pa.decimal128(9, 2))
    assert encoder.encode_one(decimal.Decimal("1.5" + "0" * 150)) in (None, b"\x04\x00\x96")
    assert encoder.encode_one(decimal.Decimal("1.5" + "0" * 150 + "1")) is None
