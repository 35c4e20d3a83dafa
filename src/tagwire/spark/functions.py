"""Functions for Spark's columns: values with a schema, Kafka's messages, record batches and headers.

    from tagwire.spark.functions import from_message, from_value, header
    records.select(header("headers", "origin"), from_message("value", "FlightUpdate.json", 0).alias("flight"))
    records.select(from_value("value", {"value.format": "avro", "schema.registry.url": registry}, topic="flights"))

They work in classic and in Connect sessions, from PySpark 4.1 on, `header` from 4.0 on. After a read with the format
`tagwire`, the option `value.format` does the same without crossing from Python to Java and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError, DecodeError, EncodeError, UnsupportedVersionError
from tagwire.extras import Needs
from tagwire.records.compression import MAX_DECOMPRESSED

with Needs("spark"):
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from tagwire.spark.columns import arrow_schema, topic_schema
from tagwire.spark.failure import without_traceback
from tagwire.spark.option_values import known_options
from tagwire.spark.values.encoding import encoder_of, planned_settings
from tagwire.spark.values.messages import MessageForm, Spec, home_of
from tagwire.spark.values.modes import FAILFAST, MODES, PERMISSIVE
from tagwire.spark.values.options import COLUMNS, REGISTRY, WRITER_OPTIONS, check_options, schema_settings
from tagwire.spark.values.schemas import SchemaFormat
from tagwire.values.formats import FORMATS as SCHEMA_FORMATS
from tagwire.values.options import ValueSettings
from tagwire.values.python_rows import python_row

if TYPE_CHECKING:
    from pyspark.sql import Column

_RECORD = StructType([topic_schema(True)[name] for name in ("offset", "timestamp", "key", "value", "headers")])


def from_message(
    column: Column | str,
    message: Spec,
    version: int,
    *,
    fields: Sequence[str] | None = None,
    mode: str = PERMISSIVE,
) -> Column:
    """A binary column of messages, all at one version, as a struct of their fields; null stays null.

    Args:
        message: a message of the catalog by name, or a spec of one's own: its model, its path, or its JSON text.
        fields: which fields; None is all. Fewer are faster: all that is named crosses from Python to Java.
        mode: what a row that is no such message becomes: null (PERMISSIVE or DROPMALFORMED; a function cannot drop its
            row), or an error that ends the query (FAILFAST).

    Raises:
        ConfigError: no such message, field or mode. SpecError: the spec breaks a rule.
        UnsupportedVersionError: the message has no such version.
    """
    form = MessageForm(home_of(message), version, fields)
    mode = _mode(mode)

    def decode(values: pa.Array) -> pa.Array:
        return form.decoded(values, mode)

    return _arrow(decode, form.type)(column)


def to_message(column: Column | str, message: Spec, version: int, *, mode: str = PERMISSIVE) -> Column:
    """A struct column as binary messages. Fields are taken by their names; what is left out has its default.

    `message`, `mode` and what is raised are as in `from_message`; a row that cannot be written is null or an error. A
    field that the message does not have, or of a type that cannot hold its values, ends the query in every mode.
    """
    form = MessageForm(home_of(message), version)
    mode = _mode(mode)

    def encode(values: pa.Array) -> pa.Array:
        return form.encoded(values, mode)

    return _arrow(encode, "binary")(column)


def from_value(
    column: Column | str,
    options: Mapping[str, str],
    *,
    topic: str | None = None,
    headers: Column | str | None = None,
    fields: Sequence[str] | None = None,
    mode: str = PERMISSIVE,
) -> Column:
    """A binary column of values in Avro, Protobuf or JSON Schema, as what their schema says; null stays null.

    The schema is settled now: later versions of its subject change nothing in the column.

    Args:
        options: those of the format `tagwire` for a column of values, `value.format` among them; or those of keys,
            `key.format` among them.
        topic: which names the subject, where no option does.
        headers: the column of the records' headers, for values whose schema a header names.
        fields: which fields of a struct; None is all. Fewer are faster: all that is named crosses from Python to Java.
        mode: as in `from_message`.

    Raises:
        ConfigError: an option is wrong or missing, or there is no such field.
        ValueSchemaError, SchemaRegistryError: there is no schema, it has no type in Spark, or its registry is away.
    """
    mode = _mode(mode)
    format_ = SchemaFormat(_schema_settings(options)).planned(topic)
    if fields is not None:
        format_ = format_.narrowed(fields)

    def decode(values: pa.Array) -> pa.Array:
        return _decoded(format_, values, None, mode)

    def decode_described(values: pa.Array, headers: pa.Array) -> pa.Array:
        return _decoded(format_, values, headers, mode)

    if headers is None:
        return _arrow(decode, format_.type)(column)
    return _arrow(decode_described, format_.type)(column, headers)


def to_value(
    column: Column | str, options: Mapping[str, str], *, topic: str | None = None, mode: str = PERMISSIVE
) -> Column:
    """A column as binary values in Avro, Protobuf or JSON Schema. Null stays null.

    Args:
        options: as in `from_value`, and those of writing, `auto.register.schemas` among them.
        topic: which names the subject, where no option does.
        mode: what a row becomes that the schema cannot hold: null (PERMISSIVE or DROPMALFORMED), or an error.

    Raises:
        ConfigError: an option is wrong or missing; or headers were to name the schema, which no column can.
        ValueSchemaError, SchemaRegistryError: there is no schema, or its registry is away. That the column does not fit
            the schema is found when the query runs, and ends it in every mode.
    """
    mode = _mode(mode)
    settings = planned_settings(_schema_settings(options), topic)

    def encode(values: pa.Array) -> pa.Array:
        encoder = encoder_of(settings, topic, values.type)
        found, bad = encoder.encode(values)
        if mode == FAILFAST and bad.true_count:
            row = bad.index(True).as_py()
            raise EncodeError(f"row {row}: {encoder.refusal(python_row(values, row))}")
        return found

    return _arrow(encode, "binary")(column)


def header(headers: Column | str, name: str) -> Column:
    """The value of a record's last header of that name, binary; null where there is none, or a null one."""
    column = F.col(headers) if isinstance(headers, str) else headers
    return F.try_element_at(F.filter(column, lambda each: each["key"] == F.lit(name)), F.lit(-1))["value"]


def decode_records(column: Column | str, *, mode: str = PERMISSIVE) -> Column:
    """A binary column of record batches or message sets, as an array of the records in each.

    Elements are structs of offset, timestamp, key, value and headers, as the format `tagwire` has them. Control records
    are left out, and so is a last batch that is cut short.

    Args:
        mode: what a row becomes that is broken: null (PERMISSIVE or DROPMALFORMED), or an error (FAILFAST).
    """
    mode = _mode(mode)

    def decode(values: pa.Array) -> pa.Array:
        return _records(values, mode)

    return _arrow(decode, ArrayType(_RECORD))(column)


def _decoded(format_: SchemaFormat, values: pa.Array, headers: pa.Array | None, mode: str) -> pa.Array:
    found, bad = format_.decoded(values, headers)
    if mode == FAILFAST and bad.true_count:
        row = bad.index(True).as_py()
        pairs = None if headers is None else [(each["key"], each["value"]) for each in headers[row].as_py() or ()]
        raise DecodeError(f"row {row}: {format_.refusal(values[row].as_py(), pairs)}")
    return found


def _records(values: pa.Array, mode: str) -> pa.Array:
    from tagwire.records.arrow import to_arrow

    schema = arrow_schema(_RECORD)
    columns = _RECORD.fieldNames()
    target = arrow_schema(StructType([StructField("records", ArrayType(_RECORD))])).field(0).type
    found, ends, broken = [], [0], []
    for number, value in enumerate(values):
        rows = 0
        if value.is_valid:
            try:
                data = memoryview(value.as_buffer())
                batch = to_arrow(data, columns=columns, timestamp_unit="us", max_decompressed=MAX_DECOMPRESSED)
            except (DecodeError, UnsupportedVersionError) as error:
                if mode == FAILFAST:
                    raise DecodeError(f"row {number}: {error}") from None
                broken.append(number)
            else:
                rows = batch.num_rows
                found.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        else:
            broken.append(number)
        ends.append(ends[-1] + rows)
    records = pa.Table.from_batches(found, schema=schema).to_struct_array()
    records = records.combine_chunks() if records.num_chunks else pa.array([], target.value_type)
    gone = set(broken)
    mask = pa.array([number in gone for number in range(len(values))]) if broken else None
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), records, type=target, mask=mask)


def _schema_settings(options: Mapping[str, str]) -> ValueSettings:
    """What the options of one column, value or key, say. Raises ConfigError."""
    given, _ = known_options(options, WRITER_OPTIONS, (), (REGISTRY,))
    names = [name for name in COLUMNS if f"{name}.format" in given]
    if len(names) != 1:
        said = "key.format: set beside value.format; a function is of one column" if names else "value.format: missing"
        raise ConfigError(f"option {said}")
    format_ = check_options(names[0], given)
    if format_ not in SCHEMA_FORMATS:
        raise ConfigError(f"option {names[0]}.format={format_}: needs {', '.join(SCHEMA_FORMATS)}")
    return schema_settings(names[0], given)


def _arrow(function: Callable[..., pa.Array], kind: DataType | str) -> Callable[..., Column]:
    try:
        from pyspark.sql.functions import arrow_udf
    except ImportError:
        raise ConfigError("tagwire.spark.functions: needs PySpark 4.1 or newer") from None
    return arrow_udf(without_traceback(function), kind)  # type: ignore[no-any-return]


def _mode(mode: str) -> str:
    if mode.upper() not in MODES:
        raise ConfigError(f"mode {mode!r}: needs {', '.join(MODES[:-1])} or {MODES[-1]}")
    return mode.upper()
