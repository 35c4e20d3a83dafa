"""Schemas in files, as `tagwire schema` takes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.values.registry import SchemaRegistry
    from tagwire.values.schemas import Reference, Schema

Format = Annotated[
    Literal["avro", "protobuf", "json-schema"] | None,
    typer.Option(
        "--format", help="What the file has, where its name does not end in .avsc, .proto or .json.", show_default=False
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT:VERSION",
        help="Where the registry has what the schema refers to by NAME; repeatable.",
    ),
]

_SUFFIXES = {".avsc": "avro", ".proto": "protobuf", ".json": "json-schema"}
_MAX_BYTES = 10 * 1024 * 1024


def schema_in(
    file: Path, format_: str | None, references: list[str] | None, registry: SchemaRegistry
) -> tuple[Schema, tuple[Reference, ...]]:
    """The schema of a file, with the schemas that it refers to out of the registry, and where those are.

    Raises:
        ConfigError: it is no text, or nobody says of which format.
        SchemaRegistryError, ValueSchemaError: of what it refers to.
        OSError: it cannot be read.
    """
    from tagwire.values.formats import SCHEMA_TYPES
    from tagwire.values.schemas import Schema

    named = _references(references or [])
    with file.open("rb") as opened:
        data = opened.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{file}: is longer than {_MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 at byte {error.start}") from None
    name = format_ or _SUFFIXES.get(file.suffix.lower())
    if name is None:
        raise ConfigError(f"{file}: its name does not say its format; give --format avro, protobuf or json-schema")
    return Schema(text, SCHEMA_TYPES[name], registry.resolved(named)), named


def _references(given: list[str]) -> tuple[Reference, ...]:
    from tagwire.values.schemas import Reference

    found = []
    for text in given:
        match = re.fullmatch(r"([^=]+)=(.+):(\d{1,9})", text)
        if match is None:
            raise typer.BadParameter(f"{text!r} is not NAME=SUBJECT:VERSION", param_hint="'--reference'")
        found.append(Reference(match[1], match[2], int(match[3])))
    return tuple(found)
