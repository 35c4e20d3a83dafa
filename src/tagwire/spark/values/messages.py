"""Kafka messages, the catalog's or a user's own, as Spark's structs: what type they have, and columns of them.

Integers without sign become the next larger signed ones, and uuids binary: Spark has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from tagwire.codec.classes import MessageObject, class_at
from tagwire.errors import ConfigError, TagwireError
from tagwire.spark.columns import arrow_type
from tagwire.spark.values.arrow_types import spark_type
from tagwire.spark.values.column_format import Headers
from tagwire.spark.values.modes import DROPMALFORMED, FAILFAST
from tagwire.spec import Message, catalog, load

Spec = str | Path | Message
"""A message: the name of one of the catalog's, a model, the path of a spec file, or JSON text."""


def home_of(message: Spec) -> str | Message:
    """What names a message in every process: the catalog's name, or the model itself.

    Raises:
        SpecError: the spec breaks a rule. ConfigError: neither a message of the catalog nor a spec.
    """
    if isinstance(message, Message) or (isinstance(message, str) and catalog.contains(message)):
        return message
    if "{" not in str(message) and not Path(message).is_file():
        raise ConfigError(f"message {str(message)!r}: no message of the catalog, and no file has this name")
    return load(message)


class MessageForm:
    """A message at one version, as a struct of Spark's. Cheap to pickle.

    Args:
        home: of `home_of`.
        fields: which of its fields and in which order; None is all of them.

    Raises:
        UnsupportedVersionError: the message has no such version.
        ConfigError: it has no such field at that version.
    """

    def __init__(self, home: str | Message, version: int, fields: Sequence[str] | None = None) -> None:
        self.home = home
        self.version = version
        self.type = _struct_type(home, version)
        if fields is not None:
            missing = [name for name in fields if name not in self.type.fieldNames()]
            if missing or not fields:
                there = ", ".join(self.type.fieldNames())
                raise ConfigError(
                    f"{self.message.spec.name} version {version}: no field {', '.join(missing)}; has {there}"
                )
            self.type = StructType([self.type[name] for name in fields])

    @property
    def message(self) -> type[MessageObject]:
        """The message's class."""
        return class_at(self.home)

    def decoded(self, column: pa.Array, mode: str) -> pa.StructArray:
        """A column of messages as structs of `type`. A null stays null.

        Args:
            mode: FAILFAST raises for a row that is no such message; else it is null.

        Raises:
            DecodeError: names the row.
        """
        if mode == FAILFAST:
            values = self.message.decode_many(column, self.version)
        else:
            values = self.message.decode_many(column, self.version, errors="column").field("value")
        if self.type.names != [field.name for field in values.type]:
            chosen = [values.field(name) for name in self.type.names]
            mask = values.is_null() if values.null_count else None
            values = pa.StructArray.from_arrays(chosen, names=self.type.names, mask=mask)
        target = arrow_type(self.type)
        return values if values.type == target else values.cast(target)

    def encoded(self, column: pa.StructArray, mode: str) -> pa.Array:
        """Structs as messages, binary. What a struct leaves out has its default; a null stays null.

        Args:
            mode: FAILFAST raises for a row that cannot be written; else it is null.

        Raises:
            EncodeError: names the row.
        """
        if mode == FAILFAST:
            return self.message.encode_many(column, self.version)
        return self.message.encode_many(column, self.version, errors="column").field("value")


@dataclass(frozen=True)
class MessageFormat:
    """Values are messages of `home` (a model, or a catalog message's name) at `version`.

    Attributes:
        text: what names the message wherever there is no file of it: the catalog's name, or JSON.
        fields: those that are decoded; None is all.
    """

    home: str | Message
    version: int
    text: str = field(default="", repr=False)
    fields: tuple[str, ...] | None = None

    needs_headers: ClassVar[bool] = False

    @property
    def type(self) -> StructType:
        """The struct that a value becomes."""
        return MessageForm(self.home, self.version, self.fields).type

    def planned(self, topic: str | None) -> MessageFormat:
        """Itself: a spec has no versions but its own."""
        return self

    def fixed(self) -> dict[str, str]:
        """The spec's text, which a path may no longer lead to."""
        return {"message": self.text}

    def narrowed(self, fields: Sequence[str]) -> MessageFormat:
        """The same for some of the fields."""
        return replace(self, fields=tuple(fields))

    def decoded(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array]:
        """The values as structs, and which rows are no such message."""
        structs = MessageForm(self.home, self.version, self.fields).decoded(values, DROPMALFORMED)
        return structs, pc.and_(values.is_valid(), structs.is_null())

    def refusal(self, value: bytes, headers: Headers | None) -> str:
        """Why a value is no such message."""
        try:
            class_at(self.home).decode(value, self.version)
        except TagwireError as error:
            return str(error)
        return "it unfolds out of proportion"


@lru_cache(maxsize=256)
def _struct_type(home: str | Message, version: int) -> StructType:
    from tagwire.codec.arrow import schema_of

    found = spark_type(schema_of(class_at(home), version))
    assert isinstance(found, StructType)
    return found
