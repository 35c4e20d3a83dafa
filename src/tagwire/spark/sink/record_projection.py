"""From rows to records: which columns are written, to which topic. Source: Spark's KafkaRowWriter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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

HEADERS: Final = "array<struct<key:string,value:binary>>"

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

    Raises:
        ConfigError: a column is missing or of a wrong type.
    """

    def __init__(self, schema: StructType, topic: str | None) -> None:
        self._topic = topic
        columns = {field.name: field.dataType for field in schema}
        if "value" not in columns:
            raise ConfigError(f"column value: missing; the table has {', '.join(columns) or 'no columns'}")
        if topic is None and "topic" not in columns:
            raise ConfigError("option topic: missing, and the table has no column topic")
        for name, (allowed, said) in _TYPES.items():
            if name in columns and not isinstance(columns[name], allowed):
                raise ConfigError(f"column {name} is {columns[name].simpleString()}: needs {said}")
        headers = columns.get("headers")
        if headers is not None and not _are_headers(headers):
            raise ConfigError(f"column headers is {headers.simpleString()}: needs {HEADERS}")
        self._written = [name for name in ("key", "value", "headers", "partition", "timestamp") if name in columns]

    def by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each topic, in order, with the columns that `Producer.send_arrow` takes.

        Raises:
            EncodeError: a row has no topic.
        """
        rows = pa.RecordBatch.from_arrays([_bytes(batch.column(name)) for name in self._written], self._written)
        if self._topic is not None:
            yield self._topic, rows
            return
        topics = batch.column("topic")
        if topics.null_count:
            raise EncodeError(f"column topic is null in {topics.null_count} of {batch.num_rows} rows")
        found = pc.unique(topics)
        for topic in found:
            yield topic.as_py(), rows if len(found) == 1 else rows.filter(pc.equal(topics, topic))


def _bytes(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType]
    return fields == [("key", StringType), ("value", BinaryType)]
