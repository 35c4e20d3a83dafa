"""From rows to records: which columns are written, to which topic, and how typed ones are.

Source: Spark's KafkaRowWriter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    NullType,
    StringType,
    StructType,
    TimestampType,
)

from tagwire.errors import ConfigError, EncodeError
from tagwire.spark.columns import HEADERS_TYPE, arrow_type

if TYPE_CHECKING:
    from tagwire.spark.values.encoding import EncodedColumn, TypedEncoder

HEADERS: Final = "array<struct<key:string,value:binary>>"

_HEADERS: Final = arrow_type(HEADERS_TYPE)
_TEXT: Final = (StringType, BinaryType, NullType)
_TYPES: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "key": (_TEXT, "string or binary"),
    "value": (_TEXT, "string or binary"),
    "topic": ((StringType, NullType), "string"),
    "partition": ((IntegerType, NullType), "int"),
    "timestamp": ((TimestampType, NullType), "timestamp"),
}


class RecordProjection:
    """How rows of a schema become records: the columns key, value, headers, partition, topic and timestamp, of which
    only value is needed, and topic where the option does not name one. Other columns are not looked at.

    Args:
        schema: the table's.
        topic: option topic.
        encoded: the columns that are typed.

    Raises:
        ConfigError: a column is missing or of a wrong type.
    """

    def __init__(self, schema: StructType, topic: str | None, encoded: Sequence[EncodedColumn] = ()) -> None:
        self._topic = topic
        self._encoded = {each.name: each for each in encoded}
        self._encoders: dict[str, TypedEncoder] = {}
        columns = {field.name: field.dataType for field in schema}
        names = schema.fieldNames()
        for name in (*_TYPES, "headers"):
            if names.count(name) > 1:
                raise ConfigError(f"column {name}: the table has it {names.count(name)} times")
        if "value" not in columns:
            raise ConfigError(f"column value: missing; the table has {', '.join(columns) or 'no columns'}")
        if topic is None and "topic" not in columns:
            raise ConfigError("option topic: missing, and the table has no column topic")
        for name in self._encoded:
            if name not in columns:
                raise ConfigError(f"option {name}.format: the table has no column {name}")
        for name, (allowed, said) in _TYPES.items():
            if name in columns and name not in self._encoded and not isinstance(columns[name], allowed):
                raise ConfigError(f"column {name} is {columns[name].simpleString()}: needs {said}")
        headers = columns.get("headers")
        if headers is not None and not _are_headers(headers):
            raise ConfigError(f"column headers is {headers.simpleString()}: needs {HEADERS}")
        self._types = {name: columns[name] for name in self._encoded}
        self._written = [name for name in ("key", "value", "headers", "partition", "timestamp") if name in columns]

    def plan(self) -> None:
        """The driver's step before any row is written, where columns are typed: how they are encoded.

        Raises:
            ConfigError, EncodeError, ValueSchemaError, SchemaRegistryError: as `EncodedColumn.encoder`.
        """
        for name, column in self._encoded.items():
            self._encoders[name] = column.encoder(self._topic, self._types[name])

    def by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each topic, in order, with the columns that `Producer.send_arrow` takes.

        Raises:
            EncodeError: a row has no topic, or does not fit the schema that it is written by.
        """
        rows = pa.RecordBatch.from_arrays([self._column(batch, name) for name in self._written], self._written)
        for name, encoder in self._encoders.items():
            if encoder.header is not None:
                rows = _with_header(rows, *encoder.header, rows.column(name))
        if self._topic is not None:
            yield self._topic, rows
            return
        topics = batch.column("topic")
        if topics.null_count:
            raise EncodeError(f"column topic is null in {topics.null_count} of {batch.num_rows} rows")
        found = pc.unique(topics)
        for topic in found:
            yield topic.as_py(), rows if len(found) == 1 else rows.filter(pc.equal(topics, topic))

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = batch.column(name)
        if name in self._encoded:
            return self._encoders[name].written(column, name)
        return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _with_header(rows: pa.RecordBatch, name: str, value: bytes, described: pa.Array) -> pa.RecordBatch:
    """The rows with a header more behind those that they have, but where there is nothing `described`."""
    names = rows.schema.names
    there = rows.column("headers").cast(_HEADERS) if "headers" in names else pa.nulls(rows.num_rows, _HEADERS)
    added = described.is_valid().to_numpy(zero_copy_only=False)
    counts = pc.fill_null(pc.list_value_length(there), 0).to_numpy() + added
    ends = np.cumsum(counts)
    pairs = there.flatten()
    is_new = np.zeros(int(ends[-1]) if len(ends) else 0, bool)
    is_new[ends[added] - 1] = True
    places = np.full(len(is_new), len(pairs), np.int64)
    places[~is_new] = np.arange(len(pairs))
    pairs = pa.concat_arrays([pairs, pa.array([{"key": name, "value": value}], _HEADERS.value_type)]).take(
        pa.array(places)
    )
    mask = pc.and_(there.is_null(), pa.array(~added))
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    headers = pa.ListArray.from_arrays(offsets, pairs, type=_HEADERS, mask=mask)
    if "headers" in names:
        return rows.set_column(names.index("headers"), "headers", headers)
    return rows.append_column("headers", headers)


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType]
    return fields == [("key", StringType), ("value", BinaryType)]
