"""The formats of values by their names in options, each imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.suggestions import did_you_mean
from tagwire.values.body_format import BodyFormat
from tagwire.values.schemas import AVRO, JSON, PROTOBUF

SCHEMA_TYPES: Final = {"avro": AVRO, "protobuf": PROTOBUF, "json-schema": JSON}
"""What a registry calls each format."""

FORMATS: Final = tuple(SCHEMA_TYPES)

_CLASSES: Final = {
    "avro": ("tagwire.values.avro", "AvroFormat"),
    "protobuf": ("tagwire.values.protobuf", "ProtobufFormat"),
    "json-schema": ("tagwire.values.json_schema", "JsonSchemaFormat"),
}


def body_format(name: str) -> BodyFormat:
    """The format of a name.

    Raises:
        ConfigError: there is none.
        MissingExtraError: a package that it needs is not installed.
    """
    if name not in _CLASSES:
        raise ConfigError(f"format {told(repr(name))}: there are {', '.join(FORMATS)}{did_you_mean(name, FORMATS)}")
    module, attribute = _CLASSES[name]
    made: BodyFormat = getattr(import_module(module), attribute)()
    return made


def format_of(schema_type: str) -> str:
    """The name of the format that a registry calls `schema_type`."""
    return next(name for name, kind in SCHEMA_TYPES.items() if kind == schema_type)
