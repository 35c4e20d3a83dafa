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
HEADERS_TYPE = ArrayType(_HEADER)
_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: HEADERS_TYPE,
}
_IN_RECORDS = {"timestampType": "timestamp_type"}


def topic_schema(include_headers: bool) -> StructType:
    """The schema of a read that names no schema of its own."""
    return StructType([StructField(name, kind) for name, kind in _TYPES.items() if include_headers or name != HEADERS])


def quoted(name: str) -> str:
    """A column's name as Spark's expressions have it, whatever is in it: dots, backticks."""
    return f"`{name.replace('`', '``')}`"


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


def arrow_type(kind: DataType) -> pa.DataType:
    """The one Arrow type Spark takes for a column of `kind`."""
    return arrow_schema(StructType([StructField("column", kind)])).field(0).type


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema with null allowed everywhere but in keys of maps: Spark knows of some columns that they hold none."""
    import pyarrow as pa

    return pa.schema([_nullable(field) for field in schema], schema.metadata)


def _nullable(field: pa.Field) -> pa.Field:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(child) for child in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_nullable(kind.key_field).with_nullable(False), _nullable(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    return pa.field(field.name, kind, True, field.metadata)
