"""The subject that a schema is registered under: Confluent's strategies of names.

Source: Confluent's TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tagwire.errors import ConfigError, SchemaRegistryError
from tagwire.suggestions import did_you_mean
from tagwire.values.options import RECORD_NAME, TOPIC_NAME, ValueSettings
from tagwire.values.schemas import AVRO, JSON, RegisteredSchema

if TYPE_CHECKING:
    from tagwire.values.registry import SchemaRegistry

_NO_SUBJECT: Final = 40401


def subject_of(settings: ValueSettings, topic: str | None) -> str:
    """The subject of the values or keys of a topic.

    Raises:
        ConfigError: the strategy wants a topic or a record's name, and there is none.
    """
    if settings.subject is not None:
        return settings.subject
    if settings.strategy != RECORD_NAME and topic is None:
        raise ConfigError(f"{settings.which}.subject: missing; without one topic the subject has to be named")
    if settings.strategy == TOPIC_NAME:
        return f"{topic}-{settings.which}"
    record = settings.message or _record_name(settings)
    if record is None:
        raise ConfigError(
            f"{settings.which}.subject.name.strategy={settings.strategy}: needs a record's name; give "
            f"{settings.which}.subject, {settings.which}.message, or a schema that has a name"
        )
    return record if settings.strategy == RECORD_NAME else f"{topic}-{record}"


def version_of(registry: SchemaRegistry, subject: str, version: int | None) -> RegisteredSchema:
    """A version of a subject, the newest where `version` is None; of a subject that is not there, what was meant.

    Raises:
        SchemaRegistryError, ValueSchemaError: as `SchemaRegistry`.
    """
    try:
        return registry.latest(subject) if version is None else registry.version(subject, version)
    except SchemaRegistryError as error:
        if error.error_code != _NO_SUBJECT:
            raise
        try:
            meant = did_you_mean(subject, registry.subjects())
        except SchemaRegistryError:
            raise error from None  # it may not be allowed to list them
        said = f"{str(error).rstrip('.')}{meant}"
        raise SchemaRegistryError(said, status=error.status, error_code=error.error_code) from None


def _record_name(settings: ValueSettings) -> str | None:
    """The name that a given schema has: of an Avro record with its namespace, of JSON Schema its title."""
    if settings.schema is None or settings.schema_type not in (AVRO, JSON):
        return None
    try:
        found = json.loads(settings.schema)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    name = found.get("name" if settings.schema_type == AVRO else "title")
    namespace = found.get("namespace") if settings.schema_type == AVRO else None
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}.{name}" if isinstance(namespace, str) and namespace and "." not in name else name
