"""Columns of a writer's schema, as the block reader gives them, as columns of the reader's.

Whatever is not a plain case (a number beyond its type, a symbol that the reader does not know, a decimal too long) is
not judged here: its row is suspect, and read once more, by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tagwire.extras import Needs
from tagwire.values.avro.arrow_types import arrow_type, is_struct, member_name
from tagwire.values.avro.body_reader import reader_of
from tagwire.values.avro.conversions import time_factors
from tagwire.values.avro.resolution import Plan
from tagwire.values.avro.schema_nodes import Node
from tagwire.values.avro.wire_types import Wire

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

_INT_MIN: Final = pa.scalar(-(1 << 31), pa.int64())
_INT_MAX: Final = pa.scalar((1 << 31) - 1, pa.int64())

_NUMBERS: Final = {pa.int64(): "long", pa.float32(): "float", pa.float64(): "double"}

_MOST_BYTES: Final = 64
"""Of a decimal that is looked at here."""

Shaped = tuple[pa.Array, Any]
"""A column of the reader's type, and which rows are suspect; None is none."""

Shape = Callable[[Any, int], Shaped]
"""Makes a column of the reader's type from one of the wire's (None where that is nothing) and its length."""

FieldShape = tuple[int, int, Shape]
"""A field of the reader's record: its place, the place of the writer's, and what shapes it."""


def shape_of(plan: Plan, wire: Wire) -> Shape | None:
    """What shapes columns by a plan; None where it takes a value at a time."""
    if plan.branches:
        return _of_union(plan, wire)
    if wire.kind == "nothing":
        return _constant(plan)
    if plan.chosen is not None:
        return _to_union(plan.reader, plan.chosen, wire)
    if wire.kind == "record":
        return _record(plan, wire)
    if wire.kind == "list":
        return _list(plan, wire)
    if plan.writer.kind == "enum":
        return _enum(plan)
    if wire.kind == "long":
        return _integer(plan.writer, plan.reader)
    if plan.reader.logical is not None and plan.reader.logical.name == "decimal":
        return _decimal(plan)
    kept = arrow_type(plan.reader)
    if plan.writer.kind == "bytes" and plan.reader.kind == "string":
        return _text
    return lambda array, rows: (_cast(array, kept), None)


def _cast(array: pa.Array, kept: pa.DataType) -> pa.Array:
    return array if array.type == kept else array.cast(kept)


def _text(array: pa.Array, rows: int) -> Shaped:
    """Bytes that are read as a string."""
    try:
        return array.cast(pa.string()), None
    except pa.ArrowInvalid:
        return pa.nulls(rows, pa.string()), np.asarray(array.is_valid())


def _constant(plan: Plan) -> Shape:
    """Values without bytes are all the same."""
    kept = arrow_type(plan.reader)
    value = pa.array([reader_of(plan)(b"")], kept)
    return lambda array, rows: (value.take(pa.array(np.zeros(rows, np.int64))), None)


def _of_union(plan: Plan, wire: Wire) -> Shape | None:
    if wire.kind == "tagged":
        return _tagged(plan, wire)
    if wire.kind == "nothing":
        return None
    nothing, some = plan.branches if wire.null_first else reversed(plan.branches)
    refused = isinstance(nothing, str)
    kept = arrow_type(plan.reader)
    if isinstance(some, str):
        return lambda array, rows: (pa.nulls(rows, kept), np.asarray(array.is_valid()))
    shape = shape_of(some, wire.inner)
    if shape is None:
        return None
    present = shape
    empty = wire.inner.kind == "nothing"

    def nullable(array: pa.Array, rows: int) -> Shaped:
        shaped, suspect = present(array, rows)
        if array.null_count:
            if empty:
                shaped = pc.if_else(array.is_valid(), shaped, pa.scalar(None, kept))
            if refused:
                suspect = _either(suspect, np.asarray(array.is_null()))
        return shaped, suspect

    return nullable


def _tagged(plan: Plan, wire: Wire) -> Shape | None:
    """A union of one type, or of int and long."""
    if any(isinstance(branch, str) for branch in plan.branches):
        return None
    if len(plan.branches) == 1:
        last, bounded = 0, -1
        shape = shape_of(plan.branches[0], wire.fields[1])  # type: ignore[arg-type]
    else:
        last, bounded = 1, int(plan.writer.branches[1].kind == "int")
        if arrow_type(plan.reader) not in _NUMBERS or plan.reader.logical is not None:
            return None
        if plan.reader.kind == "union" and any(branch.logical is not None for branch in plan.reader.branches):
            return None
        shape = _integer(Node("long"), Node(_NUMBERS[arrow_type(plan.reader)]))
    if shape is None:
        return None
    shaped_value = shape

    def tagged(array: pa.Array, rows: int) -> Shaped:
        columns = array.flatten()
        tags = columns[0]
        wrong = pc.or_(pc.less(tags, 0), pc.greater(tags, last))
        if bounded >= 0:
            beyond = pc.or_(pc.less(columns[1], _INT_MIN), pc.greater(columns[1], _INT_MAX))
            wrong = pc.or_(wrong, pc.and_(pc.equal(tags, bounded), beyond))
        shaped, suspect = shaped_value(columns[1] if len(columns) > 1 else None, rows)
        if array.null_count and len(columns) == 1:
            shaped = pc.if_else(array.is_valid(), shaped, pa.scalar(None, shaped.type))
        return shaped, _either(suspect, _mask(wrong))

    return tagged


def _to_union(union: Node, chosen: Plan, wire: Wire) -> Shape | None:
    shape = shape_of(chosen, wire)
    if shape is None:
        return None
    inner = shape
    kept = arrow_type(union)
    if not is_struct(union):
        return lambda array, rows: _then(inner(array, rows), lambda shaped: _cast(shaped, kept))
    own = member_name(union, chosen.reader)

    def wrapped(array: Any, rows: int) -> Shaped:
        shaped, suspect = inner(array, rows)
        columns = [shaped if field.name == own else pa.nulls(rows, field.type) for field in kept]
        absent = shaped.is_null() if shaped.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(kept), mask=absent), suspect

    return wrapped


def _then(shaped: Shaped, change: Callable[[pa.Array], pa.Array]) -> Shaped:
    return change(shaped[0]), shaped[1]


def record_shapes(plan: Plan, wire: Wire) -> list[FieldShape] | None:
    """For each field of the reader's that the writer has; None where one takes a value at a time."""
    shapes = []
    for place, step in enumerate(plan.steps):
        if step.plan is not None:
            shape = shape_of(step.plan, wire.fields[place])
            if shape is None:
                return None
            shapes.append((step.target, place, shape))
    return shapes


def record_column(
    plan: Plan, shapes: list[FieldShape], columns: dict[int, pa.Array], rows: int, absent: Any = None
) -> Shaped:
    """A record's column from those of its fields."""
    kept = arrow_type(plan.reader)
    shaped: list[Any] = [None] * kept.num_fields
    suspect = None
    for target, place, shape in shapes:
        shaped[target], unsure = shape(columns.get(place), rows)
        suspect = _either(suspect, unsure)
    for target, value in plan.defaults:
        one = pa.array([value], kept.field(target).type)
        shaped[target] = one.take(pa.array(np.zeros(rows, np.int64)))
    if not shaped:
        validity = None if absent is None else pc.invert(absent).buffers()[1]
        return pa.Array.from_buffers(kept, rows, [validity]), suspect
    return pa.StructArray.from_arrays(shaped, fields=list(kept), mask=absent), suspect


def _record(plan: Plan, wire: Wire) -> Shape | None:
    shapes = record_shapes(plan, wire)
    if shapes is None:
        return None
    places = [place for place, each in enumerate(wire.fields) if each.kind != "nothing"]

    def record(array: pa.Array, rows: int) -> Shaped:
        columns = dict(zip(places, array.flatten()))
        return record_column(plan, shapes, columns, rows, array.is_null() if array.null_count else None)

    return record


def _list(plan: Plan, wire: Wire) -> Shape | None:
    keyed = plan.writer.kind == "map"
    shape = shape_of(plan.element, wire.inner.fields[1] if keyed else wire.inner)
    if shape is None:
        return None
    item = shape
    kept = arrow_type(plan.reader)

    def lists(array: pa.Array, rows: int) -> Shaped:
        offsets = np.asarray(array.offsets).astype(np.int64)
        start = int(offsets[0])
        values = array.values.slice(start, int(offsets[-1]) - start)
        offsets = offsets - start
        suspect = None
        if keyed:
            columns = values.flatten()
            keys = _cast(columns[0], pa.string())
            shaped, suspect = item(columns[1] if len(columns) > 1 else None, len(values))
            suspect = _either(suspect, _repeated(keys, np.diff(offsets)))
            children = [pa.StructArray.from_arrays([keys, shaped], fields=[kept.key_field, kept.item_field])]
        else:
            shaped, suspect = item(values, len(values))
            children = [shaped]
        validity = array.is_valid().buffers()[1] if array.null_count else None
        edges = pa.py_buffer(np.ascontiguousarray(offsets.astype(np.int32)))
        made = pa.Array.from_buffers(kept, rows, [validity, edges], children=children)
        if suspect is None or not suspect.any():
            return made, None
        wrong = np.zeros(rows, bool)
        wrong[np.searchsorted(offsets, np.flatnonzero(suspect), side="right") - 1] = True
        return made, wrong

    return lists


def _repeated(keys: pa.Array, counts: Any) -> Any:
    """Which entries have a key that one before them in the same map has."""
    if not len(keys) or counts.max() < 2:
        return None
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    codes += np.repeat(np.arange(len(counts)), counts) * (int(codes.max()) + 1)
    _, first = np.unique(codes, return_index=True)
    if len(first) == len(codes):
        return None
    repeated = np.ones(len(codes), bool)
    repeated[first] = False
    return repeated


def _enum(plan: Plan) -> Shape:
    symbols = pa.array(plan.symbols, pa.string())
    last = len(plan.symbols) - 1

    def enum(array: pa.Array, rows: int) -> Shaped:
        wrong = _mask(pc.or_(pc.less(array, 0), pc.greater(array, last)))
        if wrong is not None:
            array = pc.if_else(pa.array(wrong), pa.scalar(None, pa.int64()), array)
        shaped = symbols.take(array)
        if symbols.null_count:
            wrong = _either(wrong, np.asarray(shaped.is_null()) & np.asarray(array.is_valid()))
        return shaped, wrong

    return enum


def _integer(writer: Node, reader: Node) -> Shape:
    kept = arrow_type(reader)
    is_int = writer.kind == "int"
    times, by = time_factors(writer, reader)
    limit = ((1 << 63) - 1) // times

    def integer(array: pa.Array, rows: int) -> Shaped:
        wrong = None
        if is_int:
            wrong = _mask(pc.or_(pc.less(array, _INT_MIN), pc.greater(array, _INT_MAX)))
        if times > 1:
            # Not by `abs`: that of the least number is itself.
            wrong = _either(wrong, _mask(pc.or_(pc.less(array, -limit), pc.greater(array, limit))))
            array = pc.multiply(array, times)
        elif by > 1:
            floored = pc.fill_null(array, 0).to_numpy() // by
            array = pa.array(floored, mask=np.asarray(array.is_null()) if array.null_count else None)
        if pa.types.is_floating(kept):
            return array.cast(kept, safe=False), wrong
        if kept.bit_width == 32:
            array = array.cast(pa.int32(), safe=False)
        return _cast(array, kept), wrong

    return integer


def _decimal(plan: Plan) -> Shape:
    assert plan.reader.logical is not None
    precision, scale = plan.reader.logical.precision, plan.reader.logical.scale
    kept = arrow_type(plan.reader)
    limit = pa.array([(10**precision - 1).to_bytes(16, "little")], pa.binary(16)).view(pa.decimal128(38, scale))[0]
    least = pa.array([(1 - 10**precision).to_bytes(16, "little", signed=True)], pa.binary(16)).view(limit.type)[0]

    def decimals(array: pa.Array, rows: int) -> Shaped:
        valid = np.asarray(array.is_valid())
        raw = pc.fill_null(_cast(array, pa.binary()), b"")
        _, offsets, data = raw.buffers()
        edges = np.frombuffer(offsets, np.int32)[raw.offset : raw.offset + rows + 1].astype(np.int64)
        lengths = np.diff(edges)
        wrong = lengths > _MOST_BYTES
        used = np.minimum(lengths, 16)
        table = np.zeros((rows, 16), np.uint8)
        if data is not None and data.size:
            flat = np.frombuffer(data, np.uint8)
            columns = np.arange(16)
            places = np.maximum(edges[1:, None] - 1 - columns, 0)
            sign = np.where((flat[np.minimum(edges[:-1], len(flat) - 1)] >= 128) & (lengths > 0), 255, 0)
            table = np.where(columns < used[:, None], flat[places], sign[:, None]).astype(np.uint8)
            # What is longer has to go on as its sign does.
            wrong |= (lengths > 16) & ((table[:, 15] >= 128) != (sign == 255))
            for column in range(16, min(int(lengths.max(initial=0)), _MOST_BYTES)):
                wrong |= (column < lengths) & (flat[np.maximum(edges[1:] - 1 - column, 0)] != sign)
        made = pa.Array.from_buffers(limit.type, rows, [raw_validity(array), pa.py_buffer(np.ascontiguousarray(table))])
        beyond = _mask(pc.or_(pc.greater(made, limit), pc.less(made, least)))
        wrong = _either(wrong & valid, beyond)
        return made.view(kept), wrong

    return decimals


def raw_validity(array: pa.Array) -> Any:
    """The bitmap of the rows that are there, from the first on; None where all are."""
    return array.is_valid().buffers()[1] if array.null_count else None


def _mask(wrong: pa.Array) -> Any:
    """Rows of which something was found true; None where there are none."""
    if not pc.any(wrong).as_py():
        return None
    return np.asarray(pc.fill_null(wrong, False))


def _either(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one | other
