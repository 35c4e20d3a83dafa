"""Typed columns to values: by a subject's latest schema or a given one, framed as readers of a registry expect."""

from __future__ import annotations

from dataclasses import dataclass, field

from tagwire.errors import ConfigError, SchemaRegistryError, ValueSchemaError
from tagwire.escaping import told
from tagwire.extras import Needs
from tagwire.values.body_format import BodyEncoder
from tagwire.values.formats import body_format
from tagwire.values.framing import HEADERS, header_value, prefix_of
from tagwire.values.options import HEADER, ValueSettings
from tagwire.values.registry.schema_registry import SchemaRegistry, shared_registry
from tagwire.values.schemas import PROTOBUF, RegisteredSchema, Schema
from tagwire.values.subjects import subject_of
from tagwire.values.value_decoder import reader_schema, registered_schema

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc


@dataclass(frozen=True)
class ValueEncoder:
    """How a column is encoded. Picklable; `plan_encoder` makes it.

    Attributes:
        prefix: what stands before each body.
        header: to be put on each record, key and value; None for no header.
        schema: what is written by.
    """

    body: BodyEncoder = field(repr=False)
    prefix: bytes
    header: tuple[str, bytes] | None
    schema: RegisteredSchema

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Binary values, and a boolean array of the rows that cannot be written. Those and nulls are null."""
        bodies, bad = self.body.encode(column)
        if self.prefix:
            bodies = pc.binary_join_element_wise(
                pa.scalar(self.prefix, bodies.type), bodies, pa.scalar(b"", bodies.type)
            )
        return bodies, bad

    def encode_one(self, value: object) -> bytes | None:
        """What `encode` makes of a column of one Python value, many times faster; None where only `encode` can say."""
        body = self.body.encode_one(value)
        return body if body is None else self.prefix + body

    def refusal(self, row: object) -> str:
        """Why a row, as `pa.Array.to_pylist` gives it, cannot be written, in one line."""
        return self.body.refusal(row)


def plan_encoder(settings: ValueSettings, topic: str | None, columns: pa.DataType) -> ValueEncoder:
    """How values of the type `columns` are written for a topic. Nothing is registered before the columns fit.

    Raises:
        ConfigError: the settings name no subject, or the registry cannot do what they want.
        ValueSchemaError: the columns do not fit the schema; or the subject lacks it, and it is not to be registered.
        SchemaRegistryError: the registry cannot be reached, refuses, or has no such subject or version.
    """
    format_ = body_format(settings.format)
    if settings.registry is None:
        schema = reader_schema(settings, topic)[0]
        body = format_.encoder(schema, columns, settings.message)
        return ValueEncoder(body, b"", None, RegisteredSchema(schema))
    registry = shared_registry(settings.registry)
    if settings.schema is None:
        found = registered_schema(settings, topic)
        body = format_.encoder(found.schema, columns, settings.message)
    else:
        schema = reader_schema(settings, topic)[0]
        body = format_.encoder(schema, columns, settings.message)
        found = _registered(settings, registry, subject_of(settings, topic), schema)
    if found.has_rules:
        raise ValueSchemaError(
            f"{_named(found)}: its schema has rules (ruleSet), which may encrypt fields. tagwire does not run them, "
            "and writes no values without"
        )
    indexes = format_.message_indexes(found.schema, settings.message) if settings.schema_type == PROTOBUF else None
    if settings.location != HEADER:
        if found.schema_id is None:
            raise SchemaRegistryError(f"{registry.settings.urls[0]}: tells no id of {_named(found)}")
        return ValueEncoder(body, prefix_of(found.schema_id, indexes), None, found)
    guid = found.guid
    if guid is None and found.schema_id is not None:
        guid = registry.by_id(found.schema_id).guid
    if guid is None and found.subject is not None:  # some tell it of a subject's schemas alone
        guid = registry.lookup(found.subject, found.schema, found.references).guid
    if guid is None:
        raise ConfigError(
            f"{settings.which}.schema.id.location=header: the registry tells no GUID of {_named(found)}, which "
            "headers hold; use prefix"
        )
    return ValueEncoder(body, b"", (HEADERS[settings.which], header_value(guid, indexes)), found)


def _registered(settings: ValueSettings, registry: SchemaRegistry, subject: str, schema: Schema) -> RegisteredSchema:
    """A given schema as the subject has it."""
    try:
        return registry.lookup(subject, schema, settings.references, settings.normalize)
    except SchemaRegistryError as error:
        if not error.not_found:
            raise
    if not settings.auto_register:
        raise ValueSchemaError(
            f"subject {told(subject)} does not have the schema of {settings.which}.schema: register it "
            "(tagwire schema register), or set auto.register.schemas=true"
        )
    return registry.register(subject, schema, settings.references, settings.normalize)


def _named(found: RegisteredSchema) -> str:
    return f"schema id {found.schema_id}" if found.subject is None else f"subject {told(found.subject)}"
