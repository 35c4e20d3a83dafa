"""Protobuf as a format of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tagwire.errors import DecodeError, ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.protobuf.column_fitting import fitted
from tagwire.values.protobuf.column_reading import ColumnReader
from tagwire.values.protobuf.column_writing import ProtobufEncoder
from tagwire.values.protobuf.compatibility import breaks, unreadable
from tagwire.values.protobuf.compiling import compiled
from tagwire.values.protobuf.descriptors import file_of, indexes_of, message_at, message_named, pool_of
from tagwire.values.protobuf.mapping import MessagePlan, plan_of
from tagwire.values.protobuf.message_reading import MessageReader
from tagwire.values.schemas import PROTOBUF, Schema

with Needs("arrow"):
    import pyarrow as pa
with Needs("protobuf"):
    from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


class ProtobufFormat:
    """Protobuf's `BodyFormat`: proto2, proto3 and editions; columns as Spark's `from_protobuf` gives them.

    Source: docs/values.md#protobuf.
    """

    @property
    def schema_type(self) -> str:
        """Its name in a registry."""
        return PROTOBUF

    def reader_schema(self, schema: Schema, message: str | None = None) -> ProtobufReaderSchema:
        """A schema as one to read by.

        Args:
            message: the full name of the message; None is the first of the file.

        Raises:
            ValueSchemaError: it does not compile, has no such message, or that one has no column type.
        """
        found = message_named(file_of(schema), message)
        plan_of(found)
        return ProtobufReaderSchema(schema, *compiled(schema), found.full_name)

    def encoder(self, schema: Schema, columns: pa.DataType, message: str | None = None) -> ProtobufEncoder:
        """How values of the type `columns` are written. Columns and fields meet by name.

        Raises:
            ValueSchemaError: the columns do not fit the message: which, and why.
        """
        found = message_named(file_of(schema), message)
        encoder = ProtobufEncoder(compiled(schema)[0], found.full_name, columns)
        fitted(plan_of(found), columns)
        return encoder

    def message_indexes(self, schema: Schema, message: str | None = None) -> tuple[int, ...]:
        """Where a file has the message.

        Raises:
            ValueSchemaError: it does not compile, or has no such message.
        """
        return indexes_of(message_named(file_of(schema), message))

    def compatibility(self, older: Schema, newer: Schema) -> list[str]:
        """Why `newer` cannot read what `older` wrote, one line each; none where it can."""
        return breaks(file_of(older), file_of(newer))


@dataclass(frozen=True)
class ProtobufReaderSchema:
    """A message that values are read as.

    Attributes:
        descriptors: a serialized FileDescriptorSet: who reads needs no compiler for it.
        file: the name of the schema's own file in it.
        message: the message's full name.
    """

    schema: Schema
    descriptors: bytes
    file: str
    message: str

    @property
    def type(self) -> pa.DataType:
        return _plan(self.descriptors, self.message).type

    @property
    def json_type(self) -> pa.DataType:
        """The type itself: of its timestamps none is a number in JSON."""
        return self.type

    def decoder(
        self, writer: Schema, fields: Sequence[str] | None = None, message_indexes: tuple[int, ...] = ()
    ) -> ProtobufDecoder:
        """How bodies of `writer` are read: fields meet by their numbers, as in Protobuf.

        Args:
            message_indexes: which message of the writer's file wrote them; none is that of the reader's name.

        Raises:
            ValueSchemaError: `writer` does not compile, its message is another one, or a number of it has a type that
                this schema cannot read.
        """
        if problem := _resolved(self, writer, tuple(message_indexes)):
            raise ValueSchemaError(problem)
        decoder = ProtobufDecoder(self.descriptors, self.message, None if fields is None else tuple(fields))
        _readers(decoder)
        return decoder


def _message(descriptors: bytes, name: str) -> Descriptor:
    return pool_of(descriptors).FindMessageTypeByName(name)


@lru_cache(maxsize=64)
def _plan(descriptors: bytes, name: str) -> MessagePlan:
    return plan_of(_message(descriptors, name))


@lru_cache(maxsize=1024)
def _resolved(reader: ProtobufReaderSchema, writer: Schema, indexes: tuple[int, ...]) -> str:
    """Why values of a writer's schema cannot be read; empty where they can."""
    try:
        same = writer == reader.schema
        file = pool_of(reader.descriptors).FindFileByName(reader.file) if same else file_of(writer)
        written = message_at(file, indexes) if indexes else message_named(file, reader.message)
    except ValueSchemaError as error:
        return str(error)
    if written.full_name != reader.message:
        return f"the value is a {written.full_name}, and {reader.message} is read"
    if same:
        return ""
    problems = unreadable(written, _message(reader.descriptors, reader.message))
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return "; ".join(problems[:5]) + more


@dataclass(frozen=True)
class ProtobufDecoder:
    """Bodies of one message as structs of the reader's fields."""

    descriptors: bytes
    message: str
    fields: tuple[str, ...] | None = None

    def decode(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Structs of the reader's type, and which bodies are bad. Those and nulls are null."""
        return _readers(self)[1].read(bodies)

    def refusal(self, body: bytes) -> str:
        """Why a body is bad, in one line."""
        try:
            _readers(self)[0].read(body)
        except DecodeError as error:
            return str(error)
        return "the value can be read"


@lru_cache(maxsize=64)
def _readers(decoder: ProtobufDecoder) -> tuple[MessageReader, ColumnReader]:
    message = _message(decoder.descriptors, decoder.message)
    plan = whole = _plan(decoder.descriptors, decoder.message)
    if decoder.fields is not None:
        known = {field.name: field for field in whole.fields}
        if missing := [name for name in decoder.fields if name not in known]:
            raise ValueSchemaError(f"{whole.full_name} has no field {missing[0]!r}")
        fields = tuple(known[name] for name in decoder.fields)
        plan = MessagePlan(whole.full_name, fields, whole.requires, whole.groups)
    rows = MessageReader(GetMessageClass(message), plan, whole)
    return rows, ColumnReader(message, plan, whole, rows)
