"""What a format of values has to be able to do: what Avro, Protobuf and JSON Schema are to readers and writers.

A body is a value without the framing of a registry. Everything here is made on the driver, pickled, and used in tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tagwire.values.schemas import Schema

if TYPE_CHECKING:
    import pyarrow as pa


class BodyDecoder(Protocol):
    """Bodies that one writer's schema wrote, as Arrow values of the reader's type. Threads share it."""

    def decode(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        """An array of the reader's type, and a boolean one of the bodies that are bad. Bad ones and nulls are null.

        Args:
            bodies: binary, of any length, with or without nulls.
        """
        ...

    def refusal(self, body: bytes) -> str:
        """Why a body is bad, in one line."""
        ...


class BodyEncoder(Protocol):
    """Arrow values as bodies of one schema."""

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Binary bodies, and a boolean array of the rows that cannot be written. Those and nulls are null."""
        ...

    def encode_one(self, value: object) -> bytes | None:
        """The body of one Python value: what `encode` makes of `pa.array([value], columns)`, many times faster.

        None where that is not known, because the value is not plainly of the type, cannot be written, or is of a type
        that is written by columns only: `encode` says what becomes of it.
        """
        ...

    def refusal(self, row: object) -> str:
        """Why a row, as `pa.Array.to_pylist` gives it, cannot be written, in one line."""
        ...


class ReaderSchema(Protocol):
    """A schema that values are read as. Picklable; the same in every process.

    Attributes:
        type: what a value becomes: a struct for a record or message, any Arrow type for another Avro schema.
        json_type: the same with each timestamp in the unit in which the schema counts it, as a number in JSON does.
    """

    @property
    def type(self) -> pa.DataType: ...
    @property
    def json_type(self) -> pa.DataType: ...

    def decoder(
        self, writer: Schema, fields: Sequence[str] | None = None, message_indexes: tuple[int, ...] = ()
    ) -> BodyDecoder:
        """How bodies of `writer` are read. Schemas that are equal give decoders that can be kept.

        Args:
            fields: which of the type's top-level fields, in this order; None is all of them.
            message_indexes: of Protobuf, which message of the file wrote it: the place in each nesting.

        Raises:
            ValueSchemaError: `writer` cannot be understood, or not be resolved to this schema; says where and why.
        """
        ...


class BodyFormat(Protocol):
    """One of Avro, Protobuf and JSON Schema."""

    @property
    def schema_type(self) -> str:
        """Its name in a registry."""
        ...

    def reader_schema(self, schema: Schema, message: str | None = None) -> ReaderSchema:
        """A schema as one to read by.

        Args:
            message: of Protobuf, the full name of the message; None is the first of the file.

        Raises:
            ValueSchemaError: it cannot be understood, is recursive, or has no column type; says where and why.
        """
        ...

    def encoder(self, schema: Schema, columns: pa.DataType, message: str | None = None) -> BodyEncoder:
        """How values of the type `columns` are written by `schema`. Columns and fields meet by name.

        Raises:
            ValueSchemaError: the columns do not fit the schema: which, and why.
        """
        ...

    def message_indexes(self, schema: Schema, message: str | None = None) -> tuple[int, ...]:
        """Of Protobuf, where a file has the message; empty for the others."""
        ...

    def compatibility(self, older: Schema, newer: Schema) -> list[str]:
        """Why `newer` cannot read what `older` wrote, one line each; none where it can."""
        ...
