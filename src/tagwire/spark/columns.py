"""The columns of a topic in Spark: those of Spark's Kafka connector, in its order, all of them nullable.

Source: pyspark.sql.datasource; Spark's KafkaRecordToRowConverter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

HEADERS = "headers"
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(_HEADER),
}
_IN_RECORDS = {"timestampType": "timestamp_type"}


def topic_schema(include_headers: bool) -> StructType:
    """The schema of a read that names no schema of its own."""
    return StructType([StructField(name, kind) for name, kind in _TYPES.items() if include_headers or name != HEADERS])


def record_name(name: str) -> str:
    """What `tagwire.records.to_arrow` calls a column."""
    return _IN_RECORDS.get(name, name)


def chosen(schema: StructType, there: StructType) -> StructType:
    """`schema`, once it names columns that are `there`, with their types.

    Raises:
        ConfigError: it names none, or one that is not there or has another type.
    """
    if not schema.fields:
        raise ConfigError("schema: names no column")
    types = {field.name: field.dataType for field in there.fields}
    for field in schema.fields:
        if field.name not in types:
            raise ConfigError(f"schema column {field.name}: there are {', '.join(types)}")
        expected = types[field.name]
        if field.dataType != expected:
            raise ConfigError(
                f"schema column {field.name}: is {field.dataType.simpleString()}, there is {expected.simpleString()}"
            )
    return schema


def arrow_schema(schema: StructType) -> pa.Schema:
    """The one Arrow schema Spark takes for `schema`; it compares names, types and flags exactly."""
    from pyspark.sql.pandas.types import to_arrow_schema

    settings: dict[str, Any] = {"timezone": "UTC"}
    try:
        return to_arrow_schema(schema, **settings)
    except TypeError:  # before PySpark 4.1 the zone is always UTC
        return to_arrow_schema(schema)
