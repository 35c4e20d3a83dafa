"""JSON values as Arrow arrays, by Arrow's JSON reader: many at a time, and a few where one of them is broken.

Each value is wrapped as `{"v":[...]}` on a line of its own. So each gives at least one row or an error, and as many
rows as values means that each gave one. In a list nothing can stand behind the value but another one, which is counted
too; right in the object a member could, and would be passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

Read: TypeAlias = "Callable[[pa.Array], tuple[pa.Array, list[int]]]"
"""From values without nulls to as many decoded, and the places of those that are bad."""


def read_lines(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values, binary and without nulls, as `kind`.

    Raises:
        pa.ArrowInvalid: one is no JSON, not of that type, or not one value; or is not UTF-8.
    """
    values = values.cast(pa.binary())  # Spark has them large where spark.sql.execution.arrow.useLargeVarTypes is set
    values.cast(pa.string())  # Arrow's reader does not look whether bytes are UTF-8
    lines = pc.binary_join_element_wise(pa.scalar(b'{"v":['), values, pa.scalar(b"]}\n"), pa.scalar(b""))
    ends = lines.buffers()[1]
    first, last = (memoryview(ends).cast("i")[lines.offset + place] for place in (0, len(lines)))
    data = lines.buffers()[2].slice(first, last - first)
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("v", pa.list_(kind))]),
            unexpected_field_behavior="ignore",
            newlines_in_values=True,
        ),
    )
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values hold {table.num_rows} JSON values")
    lists = _one_array(table.column("v"))
    if len(lists) and pc.min_max(pc.list_value_length(lists)).as_py() != {"min": 1, "max": 1}:
        raise pa.ArrowInvalid("a value is none, or several")
    return lists.flatten()


def decode_by_halves(
    values: pa.Array, kind: pa.DataType, read: Read, judge: Read, few: int = 1
) -> tuple[pa.Array, pa.Array]:
    """Values, binary, as an array of `kind`, and which of them are bad. Bad ones and nulls are null.

    Args:
        read: reads any number of them. Where it raises a ValueError, such as ArrowInvalid, halves of them are read.
        judge: says of `few` that `read` fails at which are bad.
    """
    there = values.drop_null() if values.null_count else values
    bad: list[int] = []
    pieces = _pieces(there, 0, read, judge, few, bad)
    found = _one_array(pa.chunked_array(pieces, kind))
    broken = (
        pc.is_in(pa.array(range(len(there)), pa.int64()), pa.array(bad, pa.int64()))
        if bad
        else pa.repeat(pa.scalar(False), len(there))
    )
    if not values.null_count:
        return found, broken
    places = pc.subtract(pc.cumulative_sum(values.is_valid().cast(pa.int64())), 1)
    places = pc.if_else(values.is_valid(), places, pa.scalar(None, pa.int64()))
    return found.take(places), pc.fill_null(broken.take(places), False)


def _pieces(values: pa.Array, start: int, read: Read, judge: Read, few: int, bad: list[int]) -> list[pa.Array]:
    if not len(values):
        return []
    try:
        found, places = read(values)
    except ValueError:  # ArrowInvalid is one
        if len(values) <= few:
            found, places = judge(values)
        else:
            return _halves(values, start, read, judge, few, bad)
    bad.extend(start + place for place in places)
    return [found]


def _halves(values: pa.Array, start: int, read: Read, judge: Read, few: int, bad: list[int]) -> list[pa.Array]:
    half = len(values) // 2
    return _pieces(values[:half], start, read, judge, few, bad) + _pieces(
        values[half:], start + half, read, judge, few, bad
    )


def _one_array(found: pa.ChunkedArray) -> pa.Array:
    whole: Any = found.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # what combining gives depends on the release of Arrow
        return whole.chunk(0) if whole.num_chunks else pa.array([], found.type)
    return whole
