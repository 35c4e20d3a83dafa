"""Rows of columns as Python's objects, also those that hold what Python has none for: some dates and times, and text
that is not UTF-8."""

from __future__ import annotations

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa


def python_row(column: pa.Array, row: int) -> object:
    """A row as `pa.Array.to_pylist` gives it; a field with a date or a time that no calendar of Python's has with the
    numbers that the column has of them, text that is not UTF-8 with halves of surrogate pairs."""
    one = column.slice(row, 1)
    try:
        return one.to_pylist()[0]
    except (OverflowError, ValueError):
        if pa.types.is_struct(one.type):
            return {field.name: python_row(part, 0) for field, part in zip(one.type, one.flatten())}
        if pa.types.is_map(one.type):
            first, last = one.offsets[0].as_py(), one.offsets[1].as_py()
            return [(python_row(one.keys, at), python_row(one.items, at)) for at in range(first, last)]
        if _is_list(one.type):
            items = one.flatten()
            return [python_row(items, at) for at in range(len(items))]
        if _is_text(one.type):
            return one.cast(pa.binary()).to_pylist()[0].decode("utf-8", "surrogateescape")
        if pa.types.is_dictionary(one.type):
            return python_row(one.dictionary_decode(), 0)
        return one.cast(numbered(one.type)).to_pylist()[0]


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


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
