"""The options that say how keys and values are decoded: `value.format`, `key.format` and what belongs to them.

`avro`, `protobuf`, `json-schema`: by a schema that is given or a registry's, with the options of
`tagwire.values.options`. `message`: a Kafka message at one version, of the catalog or of one's own spec. `json`: one
JSON value each, by Arrow's reader, which wants every field in the type that the schema says: a number does not become a
string. Fields that the schema does not name are passed over; those that a value lacks are null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, DataType, StructType

from tagwire.errors import ConfigError, DecodeError
from tagwire.spark.ddl import parse_schema
from tagwire.spark.option_values import choice
from tagwire.spark.values.column_format import ColumnFormat, Headers
from tagwire.spark.values.modes import MODES, PERMISSIVE
from tagwire.values.formats import FORMATS as SCHEMA_FORMATS
from tagwire.values.options import KEY, VALUE, ValueSettings, option_names, value_settings

if TYPE_CHECKING:
    from tagwire.spark.values.messages import MessageFormat

COLUMNS: Final = (VALUE, KEY)
FORMATS: Final = ("bytes", "message", "json", *SCHEMA_FORMATS)
_NEEDED: Final[dict[str, tuple[str, ...]]] = {"bytes": (), "message": ("message", "version"), "json": ("schema",)}
_MODE: Final = "mode"
_CORRUPT: Final = {VALUE: "columnNameOfCorruptRecord", KEY: "key.columnNameOfCorruptRecord"}
_LONGEST: Final = 200
REGISTRY: Final = "schema.registry."
"""What the properties of a registry's client begin with."""
_OF_REGISTRY: Final = (
    "schema.registry.url",
    "basic.auth.credentials.source",
    "basic.auth.user.info",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
)
"""Properties that mean the same without it."""
_OF_WRITERS: Final = ("auto.register.schemas", "normalize.schemas")


def format_options(column: str) -> list[str]:
    """The options of a column's format, in order."""
    own = sorted(name for name in option_names(column) if name.startswith(f"{column}."))
    return sorted({*own, f"{column}.version"}, key=lambda name: (name != f"{column}.format", name))


OPTIONS: Final = (
    *format_options(VALUE),
    *format_options(KEY),
    _MODE,
    *_CORRUPT.values(),
    *_OF_REGISTRY,
)
"""Options of reading. Beside them any that begins with `REGISTRY`."""
WRITER_OPTIONS: Final = (*format_options(VALUE), *format_options(KEY), *_OF_WRITERS, *_OF_REGISTRY)
"""Options of writing. Beside them any that begins with `REGISTRY`."""


@dataclass(frozen=True)
class DecodedColumn:
    """How a column is decoded.

    Attributes:
        name: "value" or "key".
        mode: what happens with one that cannot be: null (PERMISSIVE), its record left out (DROPMALFORMED), or an error.
        corrupt: the name of a column that holds the bytes of such a value; None for no such column.
    """

    name: str
    format: ColumnFormat
    mode: str = PERMISSIVE
    corrupt: str | None = None

    @property
    def corrupt_option(self) -> str:
        """The option that says `corrupt`."""
        return _CORRUPT[self.name]

    def columns(self) -> dict[str, DataType]:
        """The columns that take the place of the column's bytes."""
        return {self.name: self.format.type, **({self.corrupt: BinaryType()} if self.corrupt else {})}

    def planned(self, topic: str | None) -> DecodedColumn:
        """The same with its format planned: see `ColumnFormat.planned`."""
        return replace(self, format=self.format.planned(topic))

    def refuse(self, value: bytes, headers: Headers | None, where: str) -> DecodeError:
        """The error about a value that cannot be decoded."""
        return DecodeError(self.format.refusal(value, headers)[:_LONGEST], path=f"{self.name} of {where}")


def decoded_columns(given: Mapping[str, str]) -> tuple[DecodedColumn, ...]:
    """What the options say of decoding keys and values; nothing of those that stay bytes.

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: an option is missing, wrong, or names no message.
    """
    mode = choice(_MODE, given, MODES)
    found = []
    for name in COLUMNS:
        form = _format(name, given)
        corrupt = given.get(_CORRUPT[name]) or None
        if form is None and _CORRUPT[name] in given:
            raise ConfigError(f"option {_CORRUPT[name]}: means nothing with {name}.format=bytes")
        if corrupt and mode != PERMISSIVE:
            raise ConfigError(f"option {_CORRUPT[name]}: needs mode=PERMISSIVE, not {mode}")
        if form is not None:
            found.append(DecodedColumn(name, form, mode, corrupt))
    if not found and _MODE in given:
        raise ConfigError("option mode: means nothing with value.format=bytes")
    refuse_lone_registry(given)
    return tuple(found)


def check_options(column: str, given: Mapping[str, str]) -> str:
    """The name of a column's format, once all options that it needs are there, and no others.

    Raises:
        ConfigError: an option is missing, or means nothing.
    """
    name = choice(f"{column}.format", given, FORMATS)
    needed = _NEEDED.get(name, ())
    allowed = format_options(column)
    if name in SCHEMA_FORMATS:
        allowed = [option for option in allowed if option != f"{column}.version"]
    else:
        allowed = [f"{column}.{option}" for option in ("format", *needed)]
    for option in format_options(column):
        if option in given and option not in allowed:
            raise ConfigError(f"option {option}: means nothing with {column}.format={name}")
    for option in needed:
        if not given.get(f"{column}.{option}", "").strip():
            raise ConfigError(f"option {column}.{option}: missing; {column}.format={name} needs it")
    return name


def schema_settings(column: str, given: Mapping[str, str]) -> ValueSettings:
    """What the options say of a column in one of the formats of schema registries. Raises ConfigError."""
    own = {*format_options(column), *_OF_WRITERS, *_OF_REGISTRY}
    try:
        return value_settings(
            column, {name: text for name, text in given.items() if name in own or name.startswith(REGISTRY)}
        )
    except ConfigError as error:
        raise ConfigError(f"option {error}") from None


def message_format(column: str, given: Mapping[str, str]) -> MessageFormat:
    """What the options say of a column of Kafka messages.

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: they name no message, or no version of it.
    """
    from tagwire.spark.values.messages import MessageForm, MessageFormat, home_of

    text = given[f"{column}.version"].strip()
    if not text.isdecimal():
        raise ConfigError(f"option {column}.version={text!r}: needs a whole number")
    named = given[f"{column}.message"]
    home = home_of(named)
    MessageForm(home, int(text))
    by_path = not isinstance(home, str) and "{" not in named
    return MessageFormat(home, int(text), Path(named).read_text("utf-8") if by_path else named)


def refuse_lone_registry(given: Mapping[str, str]) -> None:
    """Raises ConfigError where a registry's client is set up, and neither keys nor values are in such a format."""
    if any(choice(f"{column}.format", given, FORMATS) in SCHEMA_FORMATS for column in COLUMNS):
        return
    for name in (*registry_options(given), *_OF_WRITERS):
        if name in given:
            raise ConfigError(f"option {name}: means nothing without value.format={', '.join(SCHEMA_FORMATS)}")


def resolved_options(
    given: Mapping[str, str], topic: str | None = None, *, names: Sequence[str] = (VALUE,)
) -> dict[str, str]:
    """Options that mean the same wherever and whenever they are read: a spec's text for its path, a schema as JSON, of
    a subject its name and the version that is the latest now. The properties of the registry's client, some of which
    are secret, are not among them.

    Args:
        topic: what is read; where it is not known, a subject has to be named.
        names: of the columns that may be decoded, "value" and "key".

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: as `decoded_columns`; or nothing is decoded.
        ValueSchemaError, SchemaRegistryError: as `ColumnFormat.planned`.
    """
    mode = choice(_MODE, given, MODES)
    allowed = [option for name in names for option in (*format_options(name), _CORRUPT[name])] + [_MODE]
    access = registry_options(given)
    wrong = [option for option in given if option not in allowed and option not in access]
    if wrong:
        raise ConfigError(f"option {wrong[0]}: does not decode {' or '.join(names)}s; {', '.join(allowed)} do")
    if all(choice(f"{name}.format", given, FORMATS) == "bytes" for name in names):
        raise ConfigError(f"option value.format: needs {', '.join(FORMATS[1:-1])} or {FORMATS[-1]}")
    # The column stays, whatever the mode is now: another read of the same may be PERMISSIVE.
    columns = decoded_columns({**given, _MODE: PERMISSIVE})
    found = {**{option: text for option, text in given.items() if option not in access}, _MODE: mode}
    for column in columns:
        found[f"{column.name}.format"] = choice(f"{column.name}.format", given, FORMATS)
        found |= {f"{column.name}.{option}": text for option, text in column.planned(topic).format.fixed().items()}
    return found


def registry_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options among these that say how a registry is reached; some are secret."""
    return {name: text for name, text in given.items() if name.startswith(REGISTRY) or name in _OF_REGISTRY}


def _format(column: str, given: Mapping[str, str]) -> ColumnFormat | None:
    """How a column is decoded; None where it stays bytes."""
    name = check_options(column, given)
    if name == "bytes":
        return None
    if name == "message":
        return message_format(column, given)
    if name == "json":
        from tagwire.spark.values.json import JsonFormat

        return JsonFormat(_json_schema(f"{column}.schema", given))
    from tagwire.spark.values.schemas import SchemaFormat

    return SchemaFormat(schema_settings(column, given))


def _json_schema(option: str, given: Mapping[str, str]) -> StructType:
    from tagwire.spark.values.json import refuse_types

    text = given[option]
    try:
        schema = StructType.fromJson(json.loads(text)) if text.lstrip().startswith("{") else parse_schema(text)
    except (ConfigError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"option {option}={text[:_LONGEST]!r}: {error}") from None
    refuse_types(schema, option)
    return schema
