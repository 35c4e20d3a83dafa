"""Functions for Spark's columns: Kafka's messages, record batches and headers.

    from tagwire.spark.functions import from_message, header
    records.select(header("headers", "origin"), from_message("value", "FlightUpdate.json", 0).alias("flight"))

They work in classic and in Connect sessions, from PySpark 4.1 on, `header` from 4.0 on. After a read with the format
`tagwire`, the option `value.format` does the same without crossing from Python to Java and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError, DecodeError, UnsupportedVersionError
from tagwire.extras import Needs
from tagwire.records.compression import MAX_DECOMPRESSED

with Needs("spark"):
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, StructField, StructType

from tagwire.spark.columns import arrow_schema, topic_schema
from tagwire.spark.failure import without_traceback
from tagwire.spark.values.messages import MessageForm, Spec, home_of
from tagwire.spark.values.modes import FAILFAST, MODES, PERMISSIVE

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
    mask = pa.array([number in set(broken) for number in range(len(values))]) if broken else None
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), records, type=target, mask=mask)


def _arrow(function: Callable[[pa.Array], pa.Array], kind: StructType | ArrayType | str) -> Callable[..., Column]:
    try:
        from pyspark.sql.functions import arrow_udf
    except ImportError:
        raise ConfigError("tagwire.spark.functions: needs PySpark 4.1 or newer") from None
    return arrow_udf(without_traceback(function), kind)  # type: ignore[no-any-return]


def _mode(mode: str) -> str:
    if mode.upper() not in MODES:
        raise ConfigError(f"mode {mode!r}: needs {', '.join(MODES[:-1])} or {MODES[-1]}")
    return mode.upper()
