"""Values decoded in the workers, so that typed columns cross to Java instead of bytes: option `value.format`.

`message`: a Kafka message at one version, of the catalog or of one's own spec. `json`: one JSON value each, by Arrow's
reader, which wants every field in the type that the schema says: a number does not become a string. Fields that the
schema does not name are passed over; those that a value lacks are null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, StructField, StructType

from tagwire.errors import ConfigError, DecodeError
from tagwire.spark.columns import arrow_schema
from tagwire.spark.ddl import parse_schema
from tagwire.spark.option_values import choice
from tagwire.spark.values.modes import DROPMALFORMED, MODES, PERMISSIVE
from tagwire.spec import Message

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = (
    "value.format",
    "value.message",
    "value.version",
    "value.schema",
    "mode",
    "columnNameOfCorruptRecord",
)
_FORMATS = ("bytes", "message", "json")
_LONGEST = 200


@dataclass(frozen=True)
class MessageFormat:
    """Values are messages of `home` (a model, or a catalog message's name) at `version`."""

    home: str | Message
    version: int

    def type(self) -> StructType:
        """The struct that a value becomes."""
        from tagwire.spark.values.messages import MessageForm

        return MessageForm(self.home, self.version).type

    def decoded(self, values: pa.Array, kind: StructType) -> tuple[pa.StructArray, pa.Array]:
        """The values as structs of `kind`, which names some of the fields; and which rows are no such message."""
        from tagwire.spark.values.messages import MessageForm, bad_rows

        structs = MessageForm(self.home, self.version, kind.fieldNames()).decoded(values, DROPMALFORMED)
        return structs, bad_rows(values, structs)

    def refusal(self, value: bytes) -> str:
        """Why a value is no such message."""
        from tagwire.codec.classes import class_at
        from tagwire.errors import TagwireError

        try:
            class_at(self.home).decode(value, self.version)
        except TagwireError as error:
            return str(error)
        return "it unfolds out of proportion"


@dataclass(frozen=True)
class JsonFormat:
    """Values are JSON objects of `schema`."""

    schema: StructType

    def type(self) -> StructType:
        """The struct that a value becomes."""
        return self.schema

    def decoded(self, values: pa.Array, kind: StructType) -> tuple[pa.StructArray, pa.Array]:
        """The values as structs of `kind`, which names some of the fields; and which rows are no such JSON."""
        from tagwire.spark.values.json import decode_json

        return decode_json(values, arrow_schema(StructType([StructField("v", kind)])).field(0).type)

    def refusal(self, value: bytes) -> str:
        """Why a value is no such JSON."""
        from tagwire.spark.values.json import json_refusal

        return json_refusal(value, arrow_schema(StructType([StructField("v", self.schema)])).field(0).type)


@dataclass(frozen=True)
class ValueOptions:
    """How values are decoded.

    Attributes:
        mode: what happens with one that cannot be: null (PERMISSIVE), its record left out (DROPMALFORMED), or an error.
        corrupt: the name of a column that holds the bytes of such a value; None for no such column.
    """

    format: MessageFormat | JsonFormat
    mode: str = PERMISSIVE
    corrupt: str | None = None

    def columns(self) -> dict[str, DataType]:
        """The columns that take the place of the value's bytes."""
        return {"value": self.format.type(), **({self.corrupt: BinaryType()} if self.corrupt else {})}

    def refuse(self, value: bytes, where: str) -> DecodeError:
        """The error about a value that cannot be decoded."""
        return DecodeError(self.format.refusal(value)[:_LONGEST], path=f"value of {where}")


def value_options(given: Mapping[str, str]) -> ValueOptions | None:
    """What the options say of decoding values; None where they stay bytes.

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: an option is missing, wrong, or names no message.
    """
    name = choice("value.format", given, _FORMATS)
    needed = {"message": {"value.message", "value.version"}, "json": {"value.schema"}, "bytes": set()}[name]
    allowed = needed | ({"mode", "columnNameOfCorruptRecord"} if needed else set())
    for option in OPTIONS[1:]:
        if option in given and option not in allowed:
            raise ConfigError(f"option {option}: means nothing with value.format={name}")
        if option in needed and not given.get(option, "").strip():
            raise ConfigError(f"option {option}: missing; value.format={name} needs it")
    if not needed:
        return None
    mode, corrupt = choice("mode", given, MODES), given.get("columnNameOfCorruptRecord") or None
    if corrupt and mode != PERMISSIVE:
        raise ConfigError(f"option columnNameOfCorruptRecord: needs mode=PERMISSIVE, not {mode}")
    return ValueOptions(_message(given) if name == "message" else JsonFormat(_json_schema(given)), mode, corrupt)


def resolved_options(given: Mapping[str, str]) -> dict[str, str]:
    """Options that mean the same wherever and whenever they are read: a spec's text for its path, a schema as JSON.

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: as `value_options`; or values are not decoded.
    """
    name, mode = choice("value.format", given, _FORMATS), choice("mode", given, MODES)
    wrong = [option for option in given if option not in OPTIONS]
    if wrong or name == "bytes":
        said = f"option {wrong[0]}: does not decode values" if wrong else "option value.format: needs message or json"
        raise ConfigError(f"{said}; {', '.join(OPTIONS)} do")
    # The column stays, whatever the mode is now: another read of the same may be PERMISSIVE.
    options = value_options({**given, "mode": PERMISSIVE})
    assert options is not None
    found = {**given, "value.format": name, "mode": mode}
    if isinstance(options.format, JsonFormat):
        found["value.schema"] = options.format.schema.json()
    elif not isinstance(options.format.home, str) and "{" not in given["value.message"]:
        found["value.message"] = Path(given["value.message"]).read_text("utf-8")
    return found


def _message(given: Mapping[str, str]) -> MessageFormat:
    from tagwire.spark.values.messages import MessageForm, home_of

    text = given["value.version"].strip()
    if not text.isdecimal():
        raise ConfigError(f"option value.version={text!r}: needs a whole number")
    home = home_of(given["value.message"])
    MessageForm(home, int(text))
    return MessageFormat(home, int(text))


def _json_schema(given: Mapping[str, str]) -> StructType:
    from tagwire.spark.values.json import refuse_types

    text = given["value.schema"]
    try:
        schema = StructType.fromJson(json.loads(text)) if text.lstrip().startswith("{") else parse_schema(text)
    except (ConfigError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"option value.schema={text[:_LONGEST]!r}: {error}") from None
    refuse_types(schema)
    return schema
