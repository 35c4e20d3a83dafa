"""The columns of the source: those of Spark's Kafka connector, or the few a schema asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tagwire.errors import ConfigError
from tagwire.records.arrow import arrow_schema as record_schema
from tagwire.spark.columns import arrow_schema, topic_schema
from tagwire.spark.row_converter import RowConverter, RowOptions

KAFKA = "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
HEADERS = "headers:array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(("headers", "expected"), [(False, f"{KAFKA}>"), (True, f"{KAFKA},{HEADERS}>")])
def test_columns_are_those_of_sparks_kafka_connector(headers, expected):
    schema = topic_schema(headers)
    assert schema.simpleString() == expected
    assert all(field.nullable for field in schema)


def test_decoded_records_have_the_layout_that_spark_takes():
    schema = topic_schema(True)
    decoded = record_schema(RowConverter(schema, RowOptions(True)).columns, timestamp_unit="us")
    assert [field.type for field in decoded] == [field.type for field in arrow_schema(schema)]
    assert arrow_schema(schema).field("timestamp").type == pa.timestamp("us", "UTC")


def test_a_schema_names_the_columns_that_are_decoded():
    schema = StructType([topic_schema(False)["timestampType"], topic_schema(False)["offset"]])
    assert RowConverter(schema, RowOptions()).columns == ("timestamp_type", "offset")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (StructType(), "names no column"),
        (StructType([StructField("offsets", LongType())]), "schema column offsets: there are key, value"),
        (StructType([StructField("value", LongType())]), "schema column value: is bigint, there is binary"),
        (StructType([topic_schema(True)["headers"]]), "needs option includeHeaders=true"),
    ],
)
def test_a_schema_that_a_topic_cannot_fill_is_refused(schema, said):
    with pytest.raises(ConfigError, match=said):
        RowConverter(schema, RowOptions())
