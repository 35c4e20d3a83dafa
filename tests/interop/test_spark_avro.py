"""Spark's `from_avro` and `value.format=avro` on the same bytes: the same columns, type by type, or a reason.

Bytes are fastavro's. What is known to differ is in `OURS` and `NOT_BY_SPARK`, and in docs/values.md.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pytest

pyspark = pytest.importorskip("pyspark")
fastavro = pytest.importorskip("fastavro")

from kafka_jars import MavenError  # noqa: E402
from py4j.protocol import Py4JJavaError  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812
from pyspark.sql.avro.functions import from_avro  # noqa: E402
from pyspark.sql.types import StructType  # noqa: E402
from spark_jars import spark_avro  # noqa: E402

from tagwire.errors import ValueSchemaError  # noqa: E402
from tagwire.spark.columns import arrow_type  # noqa: E402
from tagwire.spark.values.arrow_types import conformed, spark_type  # noqa: E402
from tagwire.values.avro import AvroFormat  # noqa: E402
from tagwire.values.options import value_settings  # noqa: E402
from tagwire.values.schemas import Schema  # noqa: E402
from tagwire.values.value_decoder import ValueDecoder, plan_decoder  # noqa: E402

from ..spark.renewal import give_up  # noqa: E402

# A call into Java that a timeout cuts short spoils the session for the tests after it.
pytestmark = pytest.mark.timeout(300)

UTC = UTC
NOON = datetime(2013, 7, 4, 12, 0, 0, 123456)


class Case(NamedTuple):
    """A schema and values of it, as fastavro takes them."""

    schema: Any
    values: list[Any]


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
CASES: dict[str, Case] = {
    "null": Case("null", [None]),
    "boolean": Case("boolean", [True, False]),
    "int": Case("int", [0, -(2**31), 2**31 - 1]),
    "long": Case("long", [0, -(2**63), 2**63 - 1]),
    "float": Case("float", [0.0, -1.5, 3.0e38]),
    "double": Case("double", [0.0, -1.0 / 3, 1.0e308]),
    "bytes": Case("bytes", [b"", b"\x00\xff"]),
    "string": Case("string", ["", "é€𝄞"]),
    "enum": Case(ENUM, ["A", "B"]),
    "fixed": Case(fixed(3), [b"abc"]),
    "array": Case({"type": "array", "items": "int"}, [[], [1, -2]]),
    "array of nullables": Case({"type": "array", "items": ["null", "int"]}, [[], [1, None]]),
    "map": Case({"type": "map", "values": "string"}, [{}, {"a": "1", "b": ""}]),
    "map of nullables": Case({"type": "map", "values": ["int", "null"]}, [{"a": 1, "b": None}]),
    "record": Case(record(("a", "int"), ("b", "string")), [{"a": 1, "b": "x"}]),
    "record in a record": Case(
        record(("r", record(("a", "int"), name="In")), ("n", "long")), [{"r": {"a": 1}, "n": 2}]
    ),
    "nullable": Case(["null", "string"], [None, "x"]),
    "nullable, null last": Case(["long", "null"], [None, 5]),
    "nullable record": Case(["null", record(("a", "int"))], [None, {"a": 1}]),
    "union of one": Case(["int"], [7]),
    "union of int and long": Case(["int", "long"], [7, 2**40]),
    "union of long, int and null": Case(["long", "int", "null"], [7, None]),
    "union of float and double": Case(["float", "double"], [1.5, 1.0e300]),
    "union of float, double and null": Case(["null", "float", "double"], [1.5, None]),
    "union of many": Case(["int", "string", {"type": "array", "items": "int"}], [1, "x", [2]]),
    "union of many and null": Case(["int", "null", "string"], [1, "x", None]),
    "union of records": Case(
        [record(("a", "int"), name="A"), record(("b", "string"), name="B")], [("A", {"a": 1}), ("B", {"b": "x"})]
    ),
    "decimal in bytes": Case(logical("bytes", "decimal", precision=9, scale=2), [Decimal("-1.25"), Decimal(0)]),
    "decimal in fixed": Case(
        fixed(16, logicalType="decimal", precision=38, scale=10), [Decimal("-1.25"), Decimal("1e27")]
    ),
    "date": Case(logical("int", "date"), [date(1969, 12, 31), NOON.date()]),
    "time-millis": Case(logical("int", "time-millis"), [time(23, 59, 59, 999000)]),
    "time-micros": Case(logical("long", "time-micros"), [time(23, 59, 59, 999999)]),
    "timestamp-millis": Case(logical("long", "timestamp-millis"), [NOON.replace(microsecond=7000, tzinfo=UTC)]),
    "timestamp-micros": Case(logical("long", "timestamp-micros"), [NOON.replace(tzinfo=UTC)]),
    "timestamp-nanos": Case(logical("long", "timestamp-nanos"), [1_372_939_200_000_000_123]),
    "local-timestamp-millis": Case(logical("long", "local-timestamp-millis"), [NOON.replace(microsecond=7000)]),
    "local-timestamp-micros": Case(logical("long", "local-timestamp-micros"), [NOON - timedelta(days=20000)]),
    "local-timestamp-nanos": Case(logical("long", "local-timestamp-nanos"), [1_372_939_200_000_000_123]),
    "uuid": Case(logical("string", "uuid"), [UUID(int=5)]),
    "duration": Case(fixed(12, logicalType="duration"), [bytes(range(12))]),
    "logical type of another's type": Case(logical("string", "date"), ["x"]),
    "unknown logical type": Case(logical("int", "unheard-of"), [5]),
}
OURS: dict[str, tuple[str, str]] = {
    "time-micros": ("bigint", "time(6)"),
    "timestamp-nanos": ("bigint", "timestamp_ltz(9)"),
    "local-timestamp-nanos": ("bigint", "timestamp_ntz(9)"),
}
"""What differs: case -> our type, and that of Spark 4.3."""

NOT_BY_SPARK = {
    "nullable",
    "nullable, null last",
    "nullable record",
    "union of many",
    "union of many and null",
    "union of records",
}
"""What Spark reads in a record's field, but not as a whole value: unions, which fail, or whose nulls become zeros."""


def body(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoder(schema: Any) -> ValueDecoder:
    return plan_decoder(value_settings("value", {"value.format": "avro", "value.schema": json.dumps(schema)}), None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    try:
        jars = spark_avro(pyspark.__version__)
    except MavenError as error:
        pytest.skip(f"NOT RUN: {error}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, jars)))
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    give_up()  # the next file's session has other jars, and Java takes them when it starts


def bodies(spark: SparkSession, values: list[bytes]) -> DataFrame:
    return spark.createDataFrame([(bytearray(value),) for value in values], "value binary").coalesce(1)


def theirs(spark: SparkSession, schema: Any, values: list[bytes], **options: str) -> tuple[Any, list[Any]]:
    """The type and the values that Spark gives."""
    frame = bodies(spark, values).select(from_avro("value", json.dumps(schema), options).alias("value"))
    kind = nullable(frame.schema["value"].dataType)
    # A struct that is null and whose fields are not crosses to Arrow as a nullable one alone.
    frame = frame.select(F.col("value").cast(kind).alias("value"))
    return kind, column(frame.toArrow()["value"].combine_chunks())


def ours(schema: Any, values: list[bytes]) -> tuple[Any, list[Any]]:
    """The type and the values that our column has in Spark."""
    decodes = decoder(schema)
    found, bad = decodes.decode(pa.array(values, pa.binary()))
    assert not bad.true_count
    kind = spark_type(decodes.type)
    shown, unfit = conformed(found, arrow_type(kind))
    assert unfit is None
    return nullable(kind), column(shown)


def nullable(kind: Any) -> Any:
    """The type with null allowed everywhere: Spark knows of some columns that they hold none."""
    text = json.dumps(StructType().add("value", kind).jsonValue())
    for name in ("nullable", "containsNull", "valueContainsNull"):
        text = text.replace(f'"{name}": false', f'"{name}": true')
    return StructType.fromJson(json.loads(text))["value"].dataType


def column(values: pa.Array) -> list[Any]:
    return values.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [name for name in CASES if name not in OURS])
def test_a_type_of_avro_is_the_column_that_from_avro_makes_of_it(spark: SparkSession, name: str) -> None:
    schema, values = CASES[name]
    outer = record(("field", schema), name="Outer")
    encoded = [body(outer, {"field": value}) for value in values]
    assert ours(outer, encoded) == theirs(spark, outer, encoded)
    inside = ours(outer, encoded)[1]
    encoded = [body(schema, value) for value in values]
    if name not in NOT_BY_SPARK:
        assert ours(schema, encoded) == theirs(spark, schema, encoded)
        return
    assert ours(schema, encoded)[1] == [each["field"] for each in inside]
    with suppress(Py4JJavaError, PySparkException):
        assert theirs(spark, schema, encoded)[1] != ours(schema, encoded)[1]


@pytest.mark.parametrize("name", OURS)
def test_a_type_that_spark_has_another_column_for_is_a_number_here(spark: SparkSession, name: str) -> None:
    schema, values = CASES[name]
    encoded = [body(schema, value) for value in values]
    frame = bodies(spark, encoded).select(from_avro("value", json.dumps(schema)).alias("value"))
    kind = frame._jdf.schema().apply("value").dataType().simpleString()
    assert (ours(schema, encoded)[0].simpleString(), kind) == OURS[name]


CITY = record(("name", "string"), ("people", "int"), name="City")
EVOLVED: dict[str, tuple[Any, Any, list[Any]]] = {
    "a field with a default is added": (
        record(("a", "int")),
        {**record(("a", "int")), "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 7}]},
        [{"a": 1}],
    ),
    "a field is dropped": (record(("a", "int"), ("b", "string")), record(("b", "string")), [{"a": 1, "b": "x"}]),
    "fields change places": (
        record(("a", "int"), ("b", "string")),
        record(("b", "string"), ("a", "int")),
        [{"a": 1, "b": "x"}],
    ),
    "numbers are promoted": (
        record(("a", "int"), ("b", "int"), ("c", "long"), ("d", "float")),
        record(("a", "long"), ("b", "double"), ("c", "float"), ("d", "double")),
        [{"a": -1, "b": 2, "c": 3, "d": 1.5}],
    ),
    "strings and bytes": (
        record(("a", "string"), ("b", "bytes")),
        record(("a", "bytes"), ("b", "string")),
        [{"a": "x", "b": b"y"}],
    ),
    "a field becomes nullable": (record(("a", "int")), record(("a", ["null", "int"])), [{"a": 5}]),
    "an alias": (
        record(("a", "int")),
        {**record(("b", "int")), "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]},
        [{"a": 5}],
    ),
    "an enum's default": (
        record(("e", {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]})),
        record(("e", {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B"})),
        [{"e": "A"}, {"e": "C"}],
    ),
    "inside of arrays and maps": (
        record(("l", {"type": "array", "items": CITY}), ("m", {"type": "map", "values": "int"})),
        record(
            ("l", {"type": "array", "items": record(("people", "long"), name="City")}),
            ("m", {"type": "map", "values": "long"}),
        ),
        [{"l": [{"name": "x", "people": 1}], "m": {"k": 2}}],
    ),
}
"""Writer's schema, reader's schema, values."""


@pytest.mark.parametrize("name", EVOLVED)
def test_a_value_is_resolved_to_the_readers_schema_as_from_avro_does(spark: SparkSession, name: str) -> None:
    writer, reader, values = EVOLVED[name]
    encoded = [body(writer, value) for value in values]
    decoder = AvroFormat().reader_schema(Schema(json.dumps(reader))).decoder(Schema(json.dumps(writer)))
    found, bad = decoder.decode(pa.array(encoded, pa.binary()))
    assert not bad.true_count
    kind = spark_type(found.type)
    shown, unfit = conformed(found, arrow_type(kind))
    assert unfit is None
    # Spark's argument is the writer's schema, and its option the reader's.
    assert (nullable(kind), column(shown)) == theirs(spark, writer, encoded, avroSchema=json.dumps(reader))


def test_a_value_that_is_cut_is_bad_here_and_there_and_one_with_bytes_behind_it_here_alone(spark: SparkSession) -> None:
    whole = body(CITY, {"name": "Oslo", "people": 709037})
    values = [whole[:2], whole, b"", whole + b"\0"]
    assert theirs(spark, CITY, values, mode="PERMISSIVE")[1] == [
        {"name": None, "people": None},
        {"name": "Oslo", "people": 709037},
        {"name": None, "people": None},
        {"name": "Oslo", "people": 709037},
    ]
    found, bad = decoder(CITY).decode(pa.array(values, pa.binary()))
    assert bad.to_pylist() == [True, False, True, True]
    assert found.to_pylist() == [None, {"name": "Oslo", "people": 709037}, None, None]


def test_a_schema_that_contains_itself_is_refused_here_and_there(spark: SparkSession) -> None:
    schema = record(("next", ["null", "R"]))
    with pytest.raises(ValueSchemaError):
        decoder(schema)
    with pytest.raises((Py4JJavaError, PySparkException)):
        theirs(spark, schema, [b"\0"])
