"""JSON values as Arrow arrays, by Arrow's JSON reader: many at a time, and a few where one of them is broken.

Each value is wrapped as `{"v":[...]}` on a line of its own. So each gives at least one row or an error, and as many
rows as values means that each gave one. In a list nothing can stand behind the value but another one, which is counted
too; right in the object a member could, and would be passed over. A value that ends the list itself, and begins another
in a member behind it, is no value right in the object: what might be one is tried there, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from tagwire.extras import Needs
from tagwire.values.decimals import FARTHEST_EXPONENT, is_far

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

Read: TypeAlias = "Callable[[pa.Array], tuple[pa.Array, list[int]]]"
"""From values without nulls to as many decoded, and the places of those that are bad."""

_ANOTHER_LIST: Final = r'(?s)\][ \t\n\r]*,[ \t\n\r]*".*\['
_ANOTHER_LIST_OF_STRUCTS: Final = r"(?s)[}l][ \t\n\r]*" + _ANOTHER_LIST.removeprefix("(?s)")
"""What a value has that ends the list around it, as many others have: an end, here of an object or of `null`, a member
behind it, and a beginning."""

_LARGE_EXPONENT: Final = r"[eE][+-]?[0-9]{4}|\\u00[2-6]"
"""What a value has in which one past `FARTHEST_EXPONENT` may be: a decimal may be a string, too, some of it escaped."""


def read_lines(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values, binary and without nulls, as `kind`.

    Raises:
        pa.ArrowInvalid: one is no JSON, not of that type, or not one value; or is not UTF-8.
    """
    values = values.cast(pa.binary())  # Spark has them large where spark.sql.execution.arrow.useLargeVarTypes is set
    text = values.cast(pa.string())  # Arrow's reader does not look whether bytes are UTF-8
    if _has_decimals(kind):
        _refuse_far_decimals(text, kind)
    lists = _one_array(_wrapped(values, b'{"v":[', b"]}\n", "v", pa.list_(kind)))
    if len(lists) and pc.min_max(pc.list_value_length(lists)).as_py() != {"min": 1, "max": 1}:
        raise pa.ArrowInvalid("a value is none, or several")
    another = _ANOTHER_LIST_OF_STRUCTS if pa.types.is_struct(kind) else _ANOTHER_LIST
    if pc.any(pc.match_substring_regex(text, another)).as_py():
        _wrapped(values, b'{"v":', b"}\n", "w", pa.null())
    return lists.flatten()


def _has_decimals(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(kind):
        return any(_has_decimals(field.type) for field in kind)
    return _has_decimals(kind.value_type) if types.is_list(kind) else bool(types.is_decimal(kind))


class _Object(list[tuple[str, Any]]):
    """A JSON object, whose names may be there twice."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Object, parse_float=str, parse_int=str)


def _refuse_far_decimals(text: pa.Array, kind: pa.DataType) -> None:
    """Raises pa.ArrowInvalid where a decimal has an exponent at which Arrow ends the process, zeros too."""
    for one in text.filter(pc.match_substring_regex(text, _LARGE_EXPONENT)).to_pylist():
        try:
            value = _DECODER.decode(one)
        except (ValueError, RecursionError) as error:
            raise pa.ArrowInvalid(f"JSON parse error: {error}") from None
        if _is_far(value, kind):
            raise pa.ArrowInvalid(f"a decimal has an exponent beyond {FARTHEST_EXPONENT}")


def _is_far(value: Any, kind: pa.DataType) -> bool:
    """Whether there is such a decimal in a value, whose numbers are text."""
    if isinstance(value, _Object):
        fields = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
        return any(name in fields and _is_far(one, fields[name]) for name, one in value)
    if isinstance(value, list):
        return pa.types.is_list(kind) and any(_is_far(one, kind.value_type) for one in value)
    if not isinstance(value, str) or not pa.types.is_decimal(kind):
        return False
    try:
        return is_far(Decimal(value))
    except InvalidOperation:
        return False


def _wrapped(values: pa.Array, before: bytes, after: bytes, column: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Each value between `before` and `after`, read as objects that may have such a column."""
    lines = pc.binary_join_element_wise(pa.scalar(before), values, pa.scalar(after), pa.scalar(b""))
    ends = lines.buffers()[1]
    first, last = (memoryview(ends).cast("i")[lines.offset + place] for place in (0, len(lines)))
    data = lines.buffers()[2].slice(first, last - first)
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([(column, kind)]),
            unexpected_field_behavior="ignore",
            newlines_in_values=True,
        ),
    )
    if table.num_rows != len(values):
        raise pa.ArrowInvalid(f"{len(values)} values hold {table.num_rows} JSON values")
    return table.column(column)


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
