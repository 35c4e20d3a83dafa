"""Columns that have a dictionary or views, without them."""

from __future__ import annotations

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa


def without_dictionary(column: pa.Array) -> pa.Array:
    """A column whose nulls are all told by `is_valid`: a dictionary may have one among its values, which is not."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def without_views(kind: pa.DataType) -> pa.DataType:
    """A type with strings and bytes in the place of views of such, at any depth: Arrow takes no lists of views."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([field.with_type(without_views(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(without_views(kind.key_type)),
            kind.item_field.with_type(without_views(kind.item_type)),
        )
    for is_list, make in (
        (types.is_list, pa.list_),
        (types.is_large_list, pa.large_list),
        (types.is_fixed_size_list, lambda field: pa.list_(field, kind.list_size)),
    ):
        if is_list(kind):
            return make(kind.value_field.with_type(without_views(kind.value_type)))
    return kind
