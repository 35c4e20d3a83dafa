"""The options of values and keys, text to checked settings: ours, and those of Confluent's serializers.

Source: Confluent's AbstractKafkaSchemaSerDeConfig; docs/values.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.suggestions import did_you_mean
from tagwire.values.formats import FORMATS, SCHEMA_TYPES
from tagwire.values.registry.properties import is_registry_property, registry_settings
from tagwire.values.registry.settings import RegistrySettings
from tagwire.values.schemas import Reference

VALUE: Final = "value"
KEY: Final = "key"

TOPIC_NAME: Final = "TopicNameStrategy"
RECORD_NAME: Final = "RecordNameStrategy"
TOPIC_RECORD_NAME: Final = "TopicRecordNameStrategy"
STRATEGIES: Final = (TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME)

ANYWHERE: Final = "any"
PREFIX: Final = "prefix"
HEADER: Final = "header"
LOCATIONS: Final = (ANYWHERE, PREFIX, HEADER)
"""Where the id of a value's schema is: in its first bytes, in a header of its record, or, for reading, in either."""

_MAX_SCHEMA_BYTES: Final = 10 * 1024 * 1024
_MAX_INT: Final = 2**31 - 1


@dataclass(frozen=True)
class ValueSettings:
    """How values or keys are read and written.

    Attributes:
        which: `VALUE` or `KEY`.
        format: one of `FORMATS`.
        schema: the text of a given schema: what is read as, or written by. None is the registry's.
        references: where the registry has what the given schema refers to.
        message: of Protobuf, the full name of the message.
        subject: the subject's name; None goes by `strategy`.
        version: the subject's version; None is the latest.
        schema_id: the registry's schema that is meant, whatever the subject; None goes by subject and version.
        registry: None where values are bare bodies, without an id.
        location: one of `LOCATIONS`.
        auto_register: whether a given schema that the subject lacks becomes its newest version when values are
            written; `normalize` whether the registry puts schemas into one form before it compares.
    """

    which: str
    format: str
    schema: str | None = None
    references: tuple[Reference, ...] = ()
    message: str | None = None
    subject: str | None = None
    strategy: str = TOPIC_NAME
    version: int | None = None
    schema_id: int | None = None
    registry: RegistrySettings | None = None
    location: str = ANYWHERE
    auto_register: bool = False
    normalize: bool = False

    @property
    def schema_type(self) -> str:
        """What a registry calls the format."""
        return SCHEMA_TYPES[self.format]


def option_names(which: str) -> frozenset[str]:
    """The options of values or keys that are not the registry's own."""
    return frozenset({f"{which}.{name}" for name in _OWN} | _BOTH)


def is_value_option(name: str, which: str = VALUE) -> bool:
    """Whether an option is about values in these formats, or about their registry."""
    return name in option_names(which) or name in _PASSED_OVER or is_registry_property(name)


def value_settings(which: str, given: Mapping[str, str]) -> ValueSettings:
    """The settings that options give.

    Args:
        which: `VALUE` or `KEY`; the options of the other are passed over.
        given: options by their names, such as `value.format` and `schema.registry.url`.

    Raises:
        ConfigError: naming the option, its value and what is allowed; never a secret.
    """
    own, registry = _sorted(which, given)
    name = own.get("format", "").strip()
    if name not in FORMATS:
        raise ConfigError(f"{which}.format={told(name)}: needs {', '.join(FORMATS)}{did_you_mean(name, FORMATS)}")
    schema = _schema(f"{which}.schema", own.get("schema"))
    settings = registry_settings(registry) if registry else None
    if schema is None and settings is None:
        raise ConfigError(f"{which}.format={name}: needs {which}.schema or schema.registry.url")
    if settings is None:
        for option in _OF_REGISTRY:
            if own.get(option):
                full = option if option in _BOTH else f"{which}.{option}"
                raise ConfigError(f"{full}: means nothing without schema.registry.url")
    message = own.get("message", "").strip() or None
    version = _version(f"{which}.schema.version", own.get("schema.version", ""))
    schema_id = _schema_id(own.get("use.schema.id", ""))
    latest = _flag("use.latest.version", own.get("use.latest.version", "false"))
    if (latest or schema_id is not None or version is not None) and schema is not None:
        raise ConfigError(f"{which}.schema: is given beside what names another schema, a version, id or the latest")
    if schema_id is not None and (latest or version is not None):
        raise ConfigError("use.schema.id: is given beside a version; give one of the two")
    if latest and version is not None:
        raise ConfigError(f"use.latest.version=true: {which}.schema.version is {version}")
    return ValueSettings(
        which,
        name,
        schema,
        _references(f"{which}.schema.references", own.get("schema.references", "")),
        message,
        own.get("subject", "").strip() or None,
        _strategy(which, own.get("subject.name.strategy", "")),
        version,
        schema_id,
        settings,
        _location(which, own),
        _flag("auto.register.schemas", own.get("auto.register.schemas", "false")),
        _flag("normalize.schemas", own.get("normalize.schemas", "false")),
    )


def _sorted(which: str, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options of `which` without their prefix, and those of the registry."""
    own: dict[str, str] = {}
    registry: dict[str, str] = {}
    other = f"{KEY if which == VALUE else VALUE}."
    for name, value in given.items():
        if name in _BOTH:
            own[name] = value
        elif name.startswith(f"{which}.") and name.removeprefix(f"{which}.") in _OWN:
            own[name.removeprefix(f"{which}.")] = value
        elif is_registry_property(name):
            registry[name] = value
        elif name not in _PASSED_OVER and not name.startswith(other):
            known = [*(f"{which}.{each}" for each in _OWN), *_BOTH]
            raise ConfigError(f"{told(name)}: no option of {which}s and their schemas{did_you_mean(name, known)}")
    return own, registry


def _schema(option: str, given: str | None) -> str | None:
    """The text that an option gives, or that the file has which it names."""
    if given is None or not given.strip():
        return None
    text = given.strip()
    if _PRIMITIVE.fullmatch(text):
        found = f'"{text}"'
    elif text[0] in '{["' or "\n" in text or ";" in text:
        found = given
    else:
        try:
            with Path(text).open("rb") as file:
                data = file.read(_MAX_SCHEMA_BYTES + 1)
            found = data.decode("utf-8")
        except OSError as error:
            raise ConfigError(
                f"{option}={told(text, 200)}: neither a schema nor a file: {error.strerror or error}"
            ) from None
        except ValueError:
            raise ConfigError(f"{option}={told(text, 200)}: is no text in UTF-8") from None
    if len(found) > _MAX_SCHEMA_BYTES:
        raise ConfigError(f"{option}: longer than {_MAX_SCHEMA_BYTES} bytes")
    return found


def _references(option: str, text: str) -> tuple[Reference, ...]:
    found = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([^=]+)=(.+):(\d{1,9})", each)
        if match is None:
            raise ConfigError(f"{option}: {told(each, 200)!r}: needs NAME=SUBJECT:VERSION,NAME=SUBJECT:VERSION")
        found.append(Reference(match[1].strip(), match[2].strip(), int(match[3])))
    return tuple(found)


def _strategy(which: str, text: str) -> str:
    option = f"{which}.subject.name.strategy"
    name = text.strip().rpartition(".")[2]
    by_word = {"TOPIC": TOPIC_NAME, "RECORD": RECORD_NAME, "TOPIC_RECORD": TOPIC_RECORD_NAME}
    name = by_word.get(name.upper(), name) or TOPIC_NAME
    if name not in STRATEGIES:
        raise ConfigError(f"{option}={told(text)}: allowed is {', '.join(STRATEGIES)}{did_you_mean(name, STRATEGIES)}")
    return name


def _version(option: str, text: str) -> int | None:
    text = text.strip()
    if text.lower() in ("", "latest"):
        return None
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not 0 < int(text) <= _MAX_INT:
        raise ConfigError(f"{option}={told(text)}: needs latest or a whole number from 1 on")
    return int(text)


def _schema_id(text: str) -> int | None:
    text = text.strip()
    if text in ("", "-1"):  # Java's default
        return None
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or int(text) > _MAX_INT:
        raise ConfigError(f"use.schema.id={told(text)}: needs a whole number")
    return int(text)


def _location(which: str, own: Mapping[str, str]) -> str:
    found = own.get("schema.id.location", "").strip().lower()
    if found and found not in LOCATIONS:
        raise ConfigError(f"{which}.schema.id.location={told(found)}: allowed is {', '.join(LOCATIONS)}")
    for option in ("schema.id.serializer", "schema.id.deserializer"):
        name = own.get(option, "").strip().rpartition(".")[2]
        if not name:
            continue
        if name not in _CLASSES[option]:
            raise ConfigError(f"{which}.{option}={told(name)}: allowed is {', '.join(_CLASSES[option])}")
        found = found or _CLASSES[option][name]
    return found or ANYWHERE


def _flag(option: str, text: str) -> bool:
    text = text.strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{option}={told(text)}: allowed is true or false")
    return text == "true"


_PRIMITIVE: Final = re.compile(r"null|boolean|int|long|float|double|bytes|string")
"""Avro's primitive types, whose quotes a shell takes away. Other formats have no such schemas either."""

_OWN: Final = (
    "format",
    "schema",
    "schema.references",
    "message",
    "subject",
    "subject.name.strategy",
    "schema.version",
    "schema.id.location",
    "schema.id.serializer",
    "schema.id.deserializer",
)
_BOTH: Final = frozenset({"auto.register.schemas", "normalize.schemas", "use.latest.version", "use.schema.id"})

# What Confluent's serializers read, and what changes nothing here: how they make objects of Java, and keep them.
_OF_JAVA: Final = """
    avro.reflection.allow.null avro.remove.java.properties avro.use.logical.type.converters derive.type
    enhanced.avro.schema.support id.compatibility.strict json.fail.invalid.schema json.fail.unknown.properties
    json.key.type json.oneof.for.nullables json.schema.spec.version json.value.type json.write.dates.iso8601
    latest.cache.size latest.cache.ttl.sec latest.compatibility.strict max.schemas.per.subject
    return.type.names schema.reflection skip.known.types specific.avro.key.type specific.avro.reader
    specific.avro.value.type specific.protobuf.key.type specific.protobuf.value.type type.property use.deprecated.format
"""
_PASSED_OVER: Final = frozenset(_OF_JAVA.split())

_OF_REGISTRY: Final = (
    "schema.references",
    "subject",
    "subject.name.strategy",
    "schema.version",
    "schema.id.location",
    "schema.id.serializer",
    "schema.id.deserializer",
    "auto.register.schemas",
    "normalize.schemas",
    "use.latest.version",
    "use.schema.id",
)
_CLASSES: Final = {
    "schema.id.serializer": {"PrefixSchemaIdSerializer": PREFIX, "HeaderSchemaIdSerializer": HEADER},
    "schema.id.deserializer": {"PrefixSchemaIdDeserializer": PREFIX, "DualSchemaIdDeserializer": ANYWHERE},
}
