"""Columns of random messages are what Protobuf's own library reads in them, and are written as what was read."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tagwire.errors import DecodeError
from tagwire.values.protobuf import ProtobufFormat
from tagwire.values.protobuf.mapping import plan_of
from tagwire.values.protobuf.message_reading import MessageReader
from tagwire.values.schemas import PROTOBUF, Schema

from .odd_values import by_column, check_with_odd_values, plain
from .protobuf_random import filled, schemas
from .protobuf_schemas import message_class

FORMAT = ProtobufFormat()
EXAMPLES = settings(max_examples=60, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


def by_rows(message: Any, bodies: list[bytes]) -> list[Any]:
    """What Protobuf's library reads, a row at a time."""
    plan = plan_of(message.DESCRIPTOR)
    reader = MessageReader(message, plan, plan)
    rows: list[Any] = []
    for body in bodies:
        try:
            rows.append(reader.read(body))
        except DecodeError:
            rows.append("bad")
    return rows


def exactly(value: Any) -> Any:
    """A value whose zeros' signs are told apart, and whose maps are in order: Protobuf's have none."""
    if isinstance(value, dict):
        return {name: exactly(each) for name, each in value.items()}
    if isinstance(value, list):
        of_a_map = bool(value) and isinstance(value[0], tuple)
        return sorted(repr(exactly(list(each))) for each in value) if of_a_map else [exactly(each) for each in value]
    return repr(value)


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers in the place of times, which may lie beyond Python's years."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_with_numbers(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    return kind


def told(column: pa.Array) -> list[Any]:
    """Its rows, with the numbers of times."""
    return column.cast(_with_numbers(column.type)).to_pylist()


@EXAMPLES
@given(st.data())
def test_columns_of_random_messages_are_what_was_written_and_are_written_alike(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    message = message_class(schema, "t.Whole")
    given_ = [filled(data.draw, message()) for _ in range(3)]
    bodies = [each.SerializeToString() for each in given_]
    reader = FORMAT.reader_schema(schema, "t.Whole")
    column, bad = reader.decoder(schema).decode(pa.array([*bodies, None], pa.binary()))
    column.validate(full=True)
    assert column.type == reader.type
    assert bad.to_pylist() == [False] * 4
    expected = pa.array([*by_rows(message, bodies), None], reader.type).to_pylist()
    assert exactly(column.to_pylist()) == exactly(expected)
    made, bad = FORMAT.encoder(schema, reader.type, "t.Whole").encode(column)
    assert bad.to_pylist() == [False] * 4
    assert [message.FromString(body) for body in made.to_pylist()[:3]] == given_
    assert made[3].as_py() is None


@EXAMPLES
@given(st.data())
def test_one_value_is_written_as_a_column_of_it_is_or_left_to_the_column(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    message = message_class(schema, "t.Whole")
    reader = FORMAT.reader_schema(schema, "t.Whole")
    body = filled(data.draw, message()).SerializeToString()
    (row,) = reader.decoder(schema).decode(pa.array([body], pa.binary()))[0].to_pylist()
    value = plain(row, reader.type)
    encoder = FORMAT.encoder(schema, reader.type, "t.Whole")
    check_with_odd_values(data.draw, encoder, reader.type, value)


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_plain_values_of_every_type_need_no_column(syntax: str) -> None:
    optional = "optional " if syntax == "proto2" else ""
    kinds = {
        "int32": -5, "sint32": -5, "uint32": -5, "fixed32": -5, "sfixed32": 5, "int64": -5, "sint64": -5, "uint64": -5,
        "fixed64": 5, "sfixed64": -5, "bool": True, "float": -0.0, "double": 2.5, "string": "Köln", "bytes": b"x" * 200,
        "E": "B", "M": {"a": 0}, "google.protobuf.Timestamp": datetime.datetime(1960, 1, 1, 0, 0, 0, 1),
        "google.protobuf.Duration": datetime.timedelta(microseconds=-1_500_001),
    }  # fmt: skip
    fields = [
        f"{optional}{kind} o{n} = {4 * n + 1}; {optional}{kind} d{n} = {4 * n + 2};" for n, kind in enumerate(kinds)
    ]
    fields += [
        f"repeated {kind} r{n} = {4 * n + 3}; map<string, {kind}> m{n} = {4 * n + 4};" for n, kind in enumerate(kinds)
    ]
    text = (
        f'syntax="{syntax}"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'
        f"enum E {{ A = 0; B = 1; }} message M {{ {optional}int32 a = 1; }} message R {{ {' '.join(fields)} }}"
    )
    schema = Schema(text, PROTOBUF)
    reader = FORMAT.reader_schema(schema, "R")
    encoder = FORMAT.encoder(schema, reader.type, "R")
    zero = {int: 0, bool: False, float: 0.0, bytes: b"", dict: {}}
    row: dict[str, Any] = {}
    for n, (kind, value) in enumerate(kinds.items()):
        default = "A" if kind == "E" else "" if kind == "string" else zero.get(type(value))
        row |= {f"o{n}": value, f"d{n}": default, f"r{n}": [value, value], f"m{n}": {"": value, "k": value}}
    assert encoder.encode_one(row) == by_column(encoder, reader.type, row) is not None
    assert pickle.loads(pickle.dumps(encoder)).encode_one(row) == encoder.encode_one(row)


@EXAMPLES
@given(st.data())
def test_bytes_that_are_broken_or_odd_read_as_protobufs_library_reads_them(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    message = message_class(schema, "t.Whole")
    bodies = []
    for _ in range(4):
        body = filled(data.draw, message()).SerializeToString()
        how = data.draw(st.sampled_from(["twice", "cut", "changed", "followed"]))
        if how == "twice":
            body += filled(data.draw, message()).SerializeToString()
        elif how == "cut":
            body = body[: data.draw(st.integers(0, len(body)))]
        elif how == "changed" and body:
            place = data.draw(st.integers(0, len(body) - 1))
            body = body[:place] + data.draw(st.binary(min_size=1, max_size=2)) + body[place + 1 :]
        else:
            body += data.draw(st.binary(max_size=12))
        bodies.append(body)
    reader = FORMAT.reader_schema(schema, "t.Whole")
    fields = data.draw(st.lists(st.sampled_from([field.name for field in reader.type]), unique=True))
    column, bad = reader.decoder(schema).decode(pa.array(bodies, pa.binary()))
    expected = by_rows(message, bodies)
    assert [row == "bad" for row in expected] == bad.to_pylist()
    sound = told(pa.array([None if row == "bad" else row for row in expected], reader.type))
    assert exactly(told(column)) == exactly(sound)
    some, bad_of_some = reader.decoder(schema, fields).decode(pa.array(bodies, pa.binary()))
    assert not any(b and not a for a, b in zip(bad.to_pylist(), bad_of_some.to_pylist()))
    for row, whole, wrong in zip(told(some), sound, bad.to_pylist()):
        if not wrong:
            assert exactly(row) == exactly({name: whole[name] for name in fields})
