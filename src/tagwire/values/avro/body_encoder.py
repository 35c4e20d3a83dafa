"""Arrow values as bodies of one Avro schema."""

from __future__ import annotations

from functools import cached_property

from tagwire.extras import Needs
from tagwire.values.avro.binary_pieces import joined
from tagwire.values.avro.column_writer import Faults, writer_of
from tagwire.values.avro.one_value import NotPlain, Put, put_of
from tagwire.values.avro.schema_parsing import parse_schema
from tagwire.values.dictionaries import without_dictionary, without_views
from tagwire.values.schemas import Schema

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc


class AvroEncoder:
    """Values of one Arrow type as bodies of one schema. Picklable.

    Raises:
        ValueSchemaError: the columns do not fit the schema: which, and why.
    """

    def __init__(self, schema: Schema, columns: pa.DataType) -> None:
        self._schema = schema
        self._columns = columns
        kept = columns.value_type if pa.types.is_dictionary(columns) else columns
        self._plain = without_views(kept)
        self._has_views = self._plain != kept
        self._write = writer_of(parse_schema(schema), self._plain)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._schema, self._columns)

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Binary bodies, and a boolean array of the rows that cannot be written. Those and nulls are null."""
        column = self._plainly(column)
        present = np.asarray(column.is_valid()) if column.null_count else None
        pieces, bad = self._write(column, present, Faults())
        bodies = joined(pieces, len(column))
        wrong = np.zeros(len(column), bool) if bad is None else bad
        absent = wrong if present is None else wrong | ~present
        if absent.any():
            bodies = pc.if_else(pa.array(~absent), bodies, pa.scalar(None, pa.binary()))
        return bodies, pa.array(wrong)

    def encode_one(self, value: object) -> bytes | None:
        """The body of one value that is plainly of the columns' type; None where `encode` has to say."""
        if self._put is None:
            return None
        out = bytearray()
        try:
            self._put(value, out)
        except NotPlain:
            return None
        return bytes(out)

    @cached_property
    def _put(self) -> Put | None:
        try:
            return put_of(parse_schema(self._schema), self._columns)
        except NotPlain:
            return None

    def _plainly(self, column: pa.Array) -> pa.Array:
        column = without_dictionary(column)
        return column.cast(self._plain) if self._has_views else column

    def refusal(self, row: object) -> str:
        """Why a row, as `pa.Array.to_pylist` gives it, cannot be written, in one line."""
        faults = Faults()
        try:
            self._write(self._plainly(pa.array([row], self._columns)), None, faults)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            return f"the row is no {self._columns}: {str(error).splitlines()[0]}"
        except UnicodeEncodeError:
            return "a text is not UTF-8"
        return faults.reasons[0] if faults.reasons else "the row can be written"
