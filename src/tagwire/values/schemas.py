"""Schemas as a registry keeps them: text, type and references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
JSON: Final = "JSON"
SCHEMA_TYPES: Final = (AVRO, PROTOBUF, JSON)
"""By the names that a registry's `schemaType` has."""


@dataclass(frozen=True)
class Schema:
    """A schema and all that it refers to, so that it can be understood without a registry. Cheap to pickle.

    Attributes:
        text: the schema itself: Avro's or JSON Schema's JSON, or the text of a `.proto` file.
        schema_type: one of `SCHEMA_TYPES`.
        references: the schemas that it names, by the name that it calls each.
    """

    text: str
    schema_type: str = AVRO
    references: tuple[tuple[str, Schema], ...] = ()


@dataclass(frozen=True)
class Reference:
    """Where a registry has a schema that another one refers to: by the name it is called there, its subject and
    version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as a registry knows it.

    Attributes:
        schema_id: its number in the registry, the four bytes of magic 0; None where only the GUID was asked for.
        guid: 32 hexadecimal digits with hyphens, the sixteen bytes of magic 1; None where the registry tells none.
        subject: the subject that it was found under, and `version` its number there; None where found by its id.
        references: where the registry has the schemas that it refers to.
        has_rules: whether it has a rule set, by which Confluent's clients check, change or encrypt values.
    """

    schema: Schema
    schema_id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    references: tuple[Reference, ...] = ()
    has_rules: bool = False


def is_encodable(text: str) -> bool:
    """Whether a text is Unicode: JSON can spell half a surrogate pair, which no column and no request can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
