"""Rows of columns as Python's objects, also those that hold dates and times which Python has none for."""

from __future__ import annotations

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa


def python_row(column: pa.Array, row: int) -> object:
    """A row as `pa.Array.to_pylist` gives it; a field with a date or a time that no calendar of Python's has with the
    numbers that the column has of them."""
    one = column.slice(row, 1)
    try:
        return one.to_pylist()[0]
    except (OverflowError, ValueError):
        if pa.types.is_struct(one.type):
            return {field.name: python_row(part, 0) for field, part in zip(one.type, one.flatten())}
        return one.cast(numbered(one.type)).to_pylist()[0]


def numbered(kind: pa.DataType) -> pa.DataType:
    """A type with numbers in the place of dates and times, at any depth."""
    types = pa.types
    if types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if types.is_struct(kind):
        return pa.struct([field.with_type(numbered(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(numbered(kind.key_type), numbered(kind.item_type))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(numbered(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(numbered(kind.value_type)))
    return kind
