"""Kafka messages, the catalog's or a user's own, as Spark's structs: what type they have, and columns of them.

Integers without sign become the next larger signed ones, and uuids binary: Spark has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tagwire.codec.classes import MessageObject, class_at
from tagwire.errors import ConfigError
from tagwire.spark.columns import arrow_schema
from tagwire.spark.values.modes import FAILFAST
from tagwire.spec import Message, catalog, load

Spec = str | Path | Message
"""A message: the name of one of the catalog's, a model, the path of a spec file, or JSON text."""

_SPARK: dict[pa.DataType, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.int32(): IntegerType(),
    pa.uint32(): LongType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.binary(16): BinaryType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
}


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
        target = arrow_schema(StructType([StructField("value", self.type)])).field(0).type
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


def bad_rows(given: pa.Array, decoded: pa.Array) -> pa.Array:
    """Which rows were there and could not be decoded."""
    return pc.and_(given.is_valid(), decoded.is_null())


@lru_cache(maxsize=256)
def _struct_type(home: str | Message, version: int) -> StructType:
    from tagwire.codec.arrow import schema_of

    found = _spark_type(schema_of(class_at(home), version))
    assert isinstance(found, StructType)
    return found


def _spark_type(kind: pa.DataType) -> DataType:
    if pa.types.is_struct(kind):
        return StructType([StructField(field.name, _spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return ArrayType(_spark_type(kind.value_type))
    return _SPARK[kind]
