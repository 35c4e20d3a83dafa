"""Keys and values written from typed columns: what the options say, and how the workers do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType

from tagwire.errors import ConfigError, EncodeError
from tagwire.spark.columns import arrow_type
from tagwire.spark.values.messages import MessageForm, MessageFormat
from tagwire.spark.values.modes import FAILFAST, PERMISSIVE
from tagwire.spark.values.options import COLUMNS, check_options, message_format, refuse_lone_registry, schema_settings
from tagwire.values.options import ValueSettings
from tagwire.values.python_rows import python_row

if TYPE_CHECKING:
    from tagwire.values.value_encoder import ValueEncoder

_LONGEST = 200


class ColumnEncoder(Protocol):
    """How a column becomes bytes. Picklable.

    Attributes:
        header: to be put on each record; None for none.
    """

    @property
    def header(self) -> tuple[str, bytes] | None: ...

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Binary values, and which rows cannot be written. Those and nulls are null."""
        ...

    def refusal(self, row: object) -> str:
        """Why a row, as `pa.Array.to_pylist` gives it, cannot be written, in one line."""
        ...


@dataclass(frozen=True)
class EncodedColumn:
    """How a column, `name` of "value" and "key", is encoded."""

    name: str
    format: ValueSettings | MessageFormat

    def encoder(self, topic: str | None, kind: DataType) -> TypedEncoder:
        """How a column of type `kind` is written to a topic.

        Args:
            topic: None where a column names the topic of each row.

        Raises:
            ConfigError: no subject is named. EncodeError: a struct is not the message's.
            ValueSchemaError: the column does not fit the schema, or the subject lacks it.
            SchemaRegistryError: the registry cannot be reached, refuses, or has no such subject.
        """
        columns = arrow_type(kind)
        if isinstance(self.format, MessageFormat):
            encoder = MessageEncoder(MessageForm(self.format.home, self.format.version), columns)
            encoder.encode(pa.array([], columns))  # refuses a struct that is not the message's
            return TypedEncoder(columns, encoder)
        from tagwire.values.value_encoder import plan_encoder

        try:
            return TypedEncoder(columns, plan_encoder(self.format, topic, columns))
        except ConfigError as error:
            raise ConfigError(f"option {error}") from None


def encoded_columns(given: Mapping[str, str]) -> tuple[EncodedColumn, ...]:
    """What the options say of encoding keys and values; nothing of those that are bytes or text already.

    Raises:
        ConfigError, SpecError, UnsupportedVersionError: an option is missing, wrong, or names no message.
    """
    found = []
    for name in COLUMNS:
        format_ = check_options(name, given)
        if format_ == "json":
            raise ConfigError(f"option {name}.format=json: only for reading; to_json of Spark writes it")
        if format_ == "message":
            found.append(EncodedColumn(name, message_format(name, given)))
        elif format_ != "bytes":
            found.append(EncodedColumn(name, schema_settings(name, given)))
    refuse_lone_registry(given)
    return tuple(found)


def planned_settings(settings: ValueSettings, topic: str | None) -> ValueSettings:
    """What is written by from now on, in every process, by whatever columns will be there: one version of a subject, or
    a schema that is registered.

    Raises:
        ConfigError: no subject is named, or a header would have to be written.
        ValueSchemaError, SchemaRegistryError: as `plan_encoder`.
    """
    from tagwire.values.formats import body_format
    from tagwire.values.subjects import subject_of
    from tagwire.values.value_decoder import reader_schema
    from tagwire.values.value_encoder import plan_encoder

    try:
        schema, version = reader_schema(settings, topic)
        if settings.schema is None:
            settings = replace(settings, subject=subject_of(settings, topic), version=version)
        own = body_format(settings.format).reader_schema(schema, settings.message).type
        if plan_encoder(settings, topic, own).header is not None:
            raise ConfigError(f"{settings.which}.schema.id.location=header: a column has no headers to put it into")
        return replace(settings, auto_register=False)
    except ConfigError as error:
        raise ConfigError(f"option {error}") from None


@lru_cache(maxsize=64)
def encoder_of(settings: ValueSettings, topic: str | None, columns: pa.DataType) -> ValueEncoder:
    """`plan_encoder`, once in each process."""
    from tagwire.values.value_encoder import plan_encoder

    return plan_encoder(settings, topic, columns)


@dataclass(frozen=True)
class MessageEncoder:
    """Structs as Kafka messages."""

    form: MessageForm
    type: pa.DataType

    header: ClassVar[None] = None

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Messages, and which rows cannot be written. Raises EncodeError: the struct is not the message's."""
        written = self.form.encoded(column, PERMISSIVE)
        return written, pc.and_(column.is_valid(), written.is_null())

    def refusal(self, row: object) -> str:
        """Why a row cannot be written."""
        try:
            self.form.encoded(pa.array([row], self.type), FAILFAST)
        except EncodeError as error:
            return str(error).removeprefix("row 0: ")
        return "it was written when it was tried again"


@dataclass(frozen=True)
class TypedEncoder:
    """An encoder, and the type of column that it was planned for: Spark gives times in the session's zone."""

    type: pa.DataType
    own: ColumnEncoder

    @property
    def header(self) -> tuple[str, bytes] | None:
        """To be put on each record."""
        return self.own.header

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Binary values, and which rows cannot be written."""
        return self.own.encode(column if column.type == self.type else column.cast(self.type))

    def written(self, column: pa.Array, name: str) -> pa.Array:
        """Binary values.

        Args:
            name: of the column, for errors.

        Raises:
            EncodeError: names a row that cannot be written, of the batch, and says why.
        """
        found, bad = self.encode(column)
        if bad.true_count:
            row = bad.index(True).as_py()
            reason = self.refusal(python_row(column, row))
            raise EncodeError(f"column {name}, row {row} of a batch: {reason}"[:_LONGEST])
        return found

    def refusal(self, row: object) -> str:
        """Why a row cannot be written."""
        return self.own.refusal(row)
