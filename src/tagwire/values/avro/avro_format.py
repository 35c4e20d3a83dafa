"""Avro as a format of values: what reads and writes bodies of its schemas.

Source: docs/values.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.avro.arrow_types import arrow_type, column_type, counted_type
from tagwire.values.avro.body_decoder import AvroDecoder
from tagwire.values.avro.body_encoder import AvroEncoder
from tagwire.values.avro.resolution import incompatibilities, resolve
from tagwire.values.avro.schema_nodes import Field, Node
from tagwire.values.avro.schema_parsing import parse_schema
from tagwire.values.schemas import AVRO, Schema

with Needs("avro"):
    import pyarrow as pa


@dataclass(frozen=True)
class AvroReaderSchema:
    """A schema that values are read as. Picklable; what is worked out from the schema is worked out again."""

    schema: Schema

    @cached_property
    def node(self) -> Node:
        return parse_schema(self.schema)

    @cached_property
    def type(self) -> pa.DataType:
        return column_type(self.node)

    @property
    def json_type(self) -> pa.DataType:
        """With timestamps in the units of their logical types, as Avro's JSON encoding writes them."""
        return counted_type(self.node)

    def decoder(
        self, writer: Schema, fields: Sequence[str] | None = None, message_indexes: tuple[int, ...] = ()
    ) -> AvroDecoder:
        """How bodies of `writer` are read.

        Args:
            fields: which of the type's top-level fields, in this order; None is all of them.
            message_indexes: of Protobuf; nothing here.

        Raises:
            ValueSchemaError: `writer` cannot be understood, or not be resolved to this schema; says where and why.
        """
        # Whether a schema resolves does not depend on what is read of it.
        written = parse_schema(writer)
        plan = resolve(written, self.node)
        if fields is not None:
            plan = resolve(written, _projected(self.node, fields))
        return AvroDecoder(plan, arrow_type(plan.reader))

    def __getstate__(self) -> dict[str, Schema]:
        return {"schema": self.schema}


class AvroFormat:
    """Avro, whose bodies are its binary encoding."""

    schema_type: Final = AVRO

    def reader_schema(self, schema: Schema, message: str | None = None) -> AvroReaderSchema:
        """A schema as one to read by.

        Raises:
            ValueSchemaError: it cannot be understood, is recursive, or has no column type; says where and why.
        """
        reader = AvroReaderSchema(schema)
        assert reader.type is not None
        return reader

    def encoder(self, schema: Schema, columns: pa.DataType, message: str | None = None) -> AvroEncoder:
        """How values of the type `columns` are written. Columns and fields meet by name, in any order.

        A field without a column is its default, or null where it can be.

        Raises:
            ValueSchemaError: the columns do not fit the schema: which, and why.
        """
        return AvroEncoder(schema, columns)

    def message_indexes(self, schema: Schema, message: str | None = None) -> tuple[int, ...]:
        """Nothing: Avro's schemas have one type at the top."""
        return ()

    def compatibility(self, older: Schema, newer: Schema) -> list[str]:
        """Why `newer` cannot read everything that `older` wrote, one line each; none where it can.

        Raises:
            ValueSchemaError: one of them cannot be understood.
        """
        return incompatibilities(parse_schema(older), parse_schema(newer))


def _projected(reader: Node, fields: Sequence[str]) -> Node:
    by_name: dict[str, Field] = {field.name: field for field in reader.fields}
    missing = [name for name in fields if name not in by_name]
    if missing or reader.kind != "record":
        raise ValueSchemaError(f"{reader} has no field {', '.join(missing) or '; it is no record'}")
    return Node("record", name=reader.name, aliases=reader.aliases, fields=tuple(by_name[name] for name in fields))
