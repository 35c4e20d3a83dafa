"""Columns as bodies: values are fitted to the message's fields, and ptars writes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from tagwire.errors import EncodeError
from tagwire.extras import Needs
from tagwire.values.protobuf.column_fitting import FittedField, fit_struct, fitted
from tagwire.values.protobuf.descriptors import pool_of
from tagwire.values.protobuf.halving import NotAsAWhole, by_halves
from tagwire.values.protobuf.mapping import plan_of
from tagwire.values.protobuf.message_writing import body_of
from tagwire.values.protobuf.one_value import NotPlain, Put, put_of
from tagwire.values.protobuf.wire_descriptors import writes_as_a_whole, writing_handler

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc
with Needs("protobuf"):
    from google.protobuf.message_factory import GetMessageClass

_AT_A_TIME: Final = 16 << 20
"""Bytes of columns that are written together."""


@dataclass(frozen=True)
class ProtobufEncoder:
    """Arrow structs as bodies of one message.

    Attributes:
        descriptors: a serialized FileDescriptorSet.
        message: the message's full name.
        columns: the type of what is written.
    """

    descriptors: bytes
    message: str
    columns: pa.DataType

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Bodies, and which rows cannot be written. Those and nulls are null."""
        return _writer(self).write(column)

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
        return _writer(self).put

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.descriptors, self.message, self.columns)

    def refusal(self, row: object) -> str:
        """Why a row cannot be written, in one line."""
        try:
            _writer(self).bodies(pa.array([row], self.columns))
        except UnicodeEncodeError:
            return "a string is not UTF-8"
        except (EncodeError, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            return str(error).splitlines()[0]
        return "the row can be written"


@lru_cache(maxsize=64)
def _writer(encoder: ProtobufEncoder) -> _Writer:
    return _Writer(encoder)


class _Writer:
    def __init__(self, encoder: ProtobufEncoder) -> None:
        message = pool_of(encoder.descriptors).FindMessageTypeByName(encoder.message)
        plan = plan_of(message)
        self._fields: tuple[FittedField, ...] = fitted(plan, encoder.columns)
        self._type = pa.struct([pa.field(field.plan.name, field.type) for field in self._fields])
        self._message = GetMessageClass(message)
        self._plan, self._columns = plan, encoder.columns
        self._handler: Any = writing_handler(self._fields) if writes_as_a_whole(self._fields) else None

    def write(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        rows = column.drop_null() if column.null_count else column
        made: list[pa.Array] = []
        each = max(1, len(rows) * _AT_A_TIME // max(rows.nbytes, 1))
        for start in range(0, len(rows), each):
            made += by_halves(rows[start : start + each], self._at_once, self._alone)
        bodies = pa.concat_arrays(made) if made else pa.nulls(0, pa.binary())
        if column.null_count:
            places = pc.cumulative_sum(column.is_valid().cast(pa.int64()))
            bodies = bodies.take(pc.if_else(column.is_valid(), pc.subtract(places, 1), None))
        return bodies, pc.and_(column.is_valid(), bodies.is_null())

    @property
    def put(self) -> Put | None:
        """What writes one value; None where ptars writes no columns of these, and the order of fields is another."""
        if self._handler is None:
            return None
        try:
            return put_of(self._plan, self._columns)
        except NotPlain:
            return None

    def bodies(self, rows: pa.Array) -> pa.Array:
        """Bodies of rows that are not null.

        Raises:
            EncodeError, pa.ArrowException: one cannot be written.
        """
        arrays = fit_struct(self._fields, rows)
        if not arrays:
            return pa.array([b""] * len(rows), pa.binary())
        if self._handler is not None:
            return self._handler.record_batch_to_array(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(self._type)))
        columns = pa.StructArray.from_arrays(arrays, fields=list(self._type))
        return pa.array([body_of(self._message, self._fields, row) for row in columns.to_pylist()], pa.binary())

    def _at_once(self, rows: pa.Array) -> pa.Array:
        try:
            return self.bodies(rows)
        except (EncodeError, pa.ArrowException):
            raise NotAsAWhole from None

    def _alone(self, rows: pa.Array) -> pa.Array:
        made: list[bytes | None] = []
        for row in range(len(rows)):
            try:
                made.append(self.bodies(rows[row : row + 1])[0].as_py())
            except (EncodeError, pa.ArrowException):
                made.append(None)
        return pa.array(made, pa.binary())
