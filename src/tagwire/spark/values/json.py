"""A column of JSON values as structs, by Arrow's JSON reader: many at a time, and one by one where one is broken.

Each value is wrapped as `{"v":...}` on a line of its own. So each gives at least one row or an error, and as many rows
as values means that each gave one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, MapType, StructType, TimestampNTZType

from tagwire.errors import ConfigError

_UNREAD = (DayTimeIntervalType, MapType, TimestampNTZType)


def refuse_types(schema: DataType, where: str = "value.schema") -> None:
    """Raises ConfigError for a type that is not read from JSON, or a field that is there twice."""
    if isinstance(schema, StructType):
        if not schema.fields:
            raise ConfigError(f"option {where}: names no field")
        names = schema.fieldNames()
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"option {where}: names field {twice[0]!r} twice")
        for field in schema.fields:
            refuse_types(field.dataType, f"{where}, {field.name}")
    elif isinstance(schema, ArrayType):
        refuse_types(schema.elementType, where)
    elif isinstance(schema, _UNREAD):
        raise ConfigError(f"option {where}: {schema.simpleString()} is not read from JSON; take string or struct")


def decode_json(values: pa.Array, kind: pa.StructType) -> tuple[pa.StructArray, pa.Array]:
    """The values, binary, as structs of `kind`, and which of them are no such JSON. Those and nulls are null."""
    there = values.drop_null() if values.null_count else values
    bad: list[int] = []
    pieces = _pieces(there, 0, _readable(kind), bad)
    structs = pa.chunked_array([piece.cast(kind) for piece in pieces], kind).combine_chunks()
    if isinstance(structs, pa.ChunkedArray):  # what combining gives depends on the release of Arrow
        structs = structs.chunk(0) if structs.num_chunks else pa.array([], kind)
    broken = (
        pa.array([False] * len(there), pa.bool_())
        if not bad
        else pc.is_in(_numbers(len(there)), pa.array(bad, pa.int64()))
    )
    if not values.null_count:
        return structs, broken
    places = pc.subtract(pc.cumulative_sum(values.is_valid().cast(pa.int64())), 1)
    places = pc.if_else(values.is_valid(), places, pa.scalar(None, pa.int64()))
    return structs.take(places), pc.fill_null(broken.take(places), False)


def json_refusal(value: bytes, kind: pa.StructType) -> str:
    """Why a value is no such JSON."""
    try:
        found = _read(pa.array([value], pa.binary()), _readable(kind))
    except pa.ArrowInvalid as error:
        return str(error).replace("/v/", "").replace(" in row 0", "")
    return f"it holds {len(found)} JSON values" if len(found) != 1 else "no JSON object"


def _pieces(values: pa.Array, start: int, kind: pa.StructType, bad: list[int]) -> list[pa.Array]:
    """The structs of `values`, halved until what is broken stands alone; `bad` takes the places of those."""
    if not len(values):
        return []
    try:
        found = _read(values, kind)
        if len(found) == len(values):
            if found.null_count:  # JSON's `null` is no object: from_json calls it malformed, too
                bad.extend(start + row for row in pc.indices_nonzero(found.is_null()).to_pylist())
            return [found]
    except pa.ArrowInvalid:
        pass
    if len(values) == 1:
        bad.append(start)
        return [pa.nulls(1, kind)]
    half = len(values) // 2
    return _pieces(values[:half], start, kind, bad) + _pieces(values[half:], start + half, kind, bad)


def _read(values: pa.Array, kind: pa.StructType) -> pa.Array:
    lines = pc.binary_join_element_wise(pa.scalar(b'{"v":'), values, pa.scalar(b"}\n"), pa.scalar(b""))
    ends = lines.buffers()[1]
    first, last = (memoryview(ends).cast("i")[lines.offset + place] for place in (0, len(lines)))
    data = lines.buffers()[2].slice(first, last - first)
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("v", kind)]), unexpected_field_behavior="ignore", newlines_in_values=True
        ),
    )
    column: Any = table.column("v").combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _numbers(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


def _readable(kind: pa.DataType) -> pa.DataType:
    """The type that Arrow's reader takes for `kind`: dates are read as times of whole seconds."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    return pa.timestamp("s") if pa.types.is_date(kind) else kind
