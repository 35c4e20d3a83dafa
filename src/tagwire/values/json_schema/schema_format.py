"""JSON Schema as a format of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagwire.errors import ValueSchemaError
from tagwire.values.json_schema.compatibility import differences
from tagwire.values.json_schema.documents import parse
from tagwire.values.json_schema.fitting import fit
from tagwire.values.json_schema.interpreting import shape_of
from tagwire.values.json_schema.reading import JsonDecoder
from tagwire.values.json_schema.shapes import Shape
from tagwire.values.json_schema.writing import JsonEncoder
from tagwire.values.schemas import JSON, Schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class JsonReaderSchema:
    """A JSON Schema that values are read as. A `ReaderSchema`."""

    shape: Shape

    @property
    def type(self) -> pa.DataType:
        """What a value becomes: a struct for an object with properties."""
        return self.shape.type

    @property
    def json_type(self) -> pa.DataType:
        """With Connect's timestamps in milliseconds, as values have them."""
        return self.shape.json_type

    def decoder(
        self, writer: Schema, fields: Sequence[str] | None = None, message_indexes: tuple[int, ...] = ()
    ) -> JsonDecoder:
        """How bodies are read, which is the same whatever JSON Schema they were written by: JSON says what it holds.

        Raises:
            ValueSchemaError: `writer` is no JSON Schema; or the type has no such field.
        """
        if writer.schema_type != JSON:
            raise ValueSchemaError(f"values are {writer.schema_type}, not {JSON}")
        if fields is None:
            return JsonDecoder(self.shape)
        try:
            return JsonDecoder(self.shape.of(fields))
        except KeyError as error:
            raise ValueSchemaError(f"the schema has no property {error.args[0]!r}") from None


@dataclass(frozen=True)
class JsonSchemaFormat:
    """JSON whose schema is a JSON Schema. A `BodyFormat`."""

    schema_type: str = JSON

    def reader_schema(self, schema: Schema, message: str | None = None) -> JsonReaderSchema:
        """A schema as one to read by. Nothing is fetched for it: what it refers to is among its references.

        Raises:
            ValueSchemaError: it cannot be understood, contradicts itself, or is recursive.
        """
        return JsonReaderSchema(shape_of(parse(schema)))

    def encoder(self, schema: Schema, columns: pa.DataType, message: str | None = None) -> JsonEncoder:
        """How values of the type `columns` are written by `schema`.

        Raises:
            ValueSchemaError: the columns do not fit the schema: which, and why.
        """
        shape = shape_of(parse(schema))
        fit(shape, columns)
        return JsonEncoder(shape, columns)

    def message_indexes(self, schema: Schema, message: str | None = None) -> tuple[int, ...]:
        """None: they are Protobuf's."""
        return ()

    def compatibility(self, older: Schema, newer: Schema) -> list[str]:
        """Why what `older` allows is not all allowed by `newer`, one line each: docs/values.md has the rules.

        Raises:
            ValueSchemaError: one of them cannot be understood.
        """
        return differences(shape_of(parse(older)), shape_of(parse(newer)))
