"""Whether a schema fits a subject: what the registry says, and what our own rules say beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tagwire.errors import ValueSchemaError
from tagwire.extras import MissingExtraError

if TYPE_CHECKING:
    from tagwire.values.registry import SchemaRegistry
    from tagwire.values.schemas import Reference, Schema

LEVELS = tuple(f"{level}{more}" for level in ("BACKWARD", "FORWARD", "FULL") for more in ("", "_TRANSITIVE"))
NONE = "NONE"


@dataclass(frozen=True)
class Check:
    """What was found of a schema and a subject.

    Attributes:
        versions: those that the schema was compared with.
        registry: why the registry would not take it; none where it would.
        rules: what breaks by our rules, and `note` why they could not be asked; None where they were.
    """

    subject: str
    level: str
    versions: list[int]
    registry: list[str]
    rules: list[str]
    note: str | None = None

    @property
    def breaks(self) -> bool:
        return bool(self.registry or self.rules)

    def row(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "subject": self.subject,
            "level": self.level,
            "versions": self.versions,
            "registry": {"compatible": not self.registry, "messages": self.registry},
            "rules": {"compatible": None if self.note else not self.rules, "messages": self.rules, "note": self.note},
        }


def check_file(
    registry: SchemaRegistry,
    subject: str,
    schema: Schema,
    references: Sequence[Reference],
    version: int | None,
    level: str | None,
) -> Check:
    """Asks the registry by the subject's level, and compares by `level`, or the subject's where that is None.

    Args:
        version: the only version to compare with; None is the newest, or all where a level is transitive.
    """
    own = registry.compatibility_level(subject)
    rule = (level or own).upper()
    if level is not None and rule not in (*LEVELS, NONE):
        raise typer.BadParameter(f"{level!r} is not {', '.join((*LEVELS, NONE))}", param_hint="'--level'")
    by_registry = _versions(registry, subject, version, own)
    refused = []
    for each in by_registry:
        said = registry.incompatibilities(subject, schema, references, each)
        refused += [reason if len(by_registry) == 1 else f"version {each}: {reason}" for reason in said]
    compared = _versions(registry, subject, version, rule)
    rules, note = _by_rules(registry, subject, schema, compared, rule)
    return Check(subject, rule, compared, refused, rules, note)


def _versions(registry: SchemaRegistry, subject: str, version: int | None, level: str) -> list[int]:
    if version is not None:
        return [version]
    found = registry.versions(subject)
    return found if level.endswith("_TRANSITIVE") else found[-1:]


def _by_rules(
    registry: SchemaRegistry, subject: str, schema: Schema, versions: list[int], level: str
) -> tuple[list[str], str | None]:
    """What breaks, and why it cannot be told; None where it can."""
    from tagwire.values.formats import body_format, format_of

    if level not in LEVELS:
        return [], f"level {level} forbids nothing"
    backward, forward = not level.startswith("FORWARD"), not level.startswith("BACKWARD")
    found: list[str] = []
    for each in versions:
        other = registry.version(subject, each).schema
        if other.schema_type != schema.schema_type:
            found.append(f"version {each}: is {other.schema_type}, not {schema.schema_type}")
            continue
        try:
            rules = body_format(format_of(schema.schema_type))
            if backward:
                said = rules.compatibility(other, schema)
                found += [f"cannot read what version {each} wrote: {reason}" for reason in said]
            if forward:
                said = rules.compatibility(schema, other)
                found += [f"version {each} cannot read what it writes: {reason}" for reason in said]
        except (MissingExtraError, ValueSchemaError) as error:
            return found, str(error)
    return found, None
