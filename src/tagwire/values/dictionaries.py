"""Columns that have a dictionary, without it."""

from __future__ import annotations

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa


def without_dictionary(column: pa.Array) -> pa.Array:
    """A column whose nulls are all told by `is_valid`: a dictionary may have one among its values, which is not."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
