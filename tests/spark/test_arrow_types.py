"""Arrow types as Spark's, and arrays made to be of those."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tagwire.errors import ValueSchemaError
from tagwire.spark.columns import arrow_type
from tagwire.spark.values.arrow_types import conformed, spark_type

NOON = datetime(2013, 7, 4, 12, tzinfo=UTC)


def test_every_arrow_type_has_the_nearest_of_sparks_and_its_values_fit_there():
    columns = {
        "tinyint": pa.array([1, None], pa.int8()),
        "smallint": pa.array([255, None], pa.uint8()),
        "int": pa.array([2**16 - 1, None], pa.uint16()),
        "bigint": pa.array([2**32 - 1, None], pa.uint32()),
        "decimal(20,0)": pa.array([2**64 - 1, None], pa.uint64()),
        "decimal(10,2)": pa.array([1, None], pa.decimal256(10, 2)),
        "float": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
        "double": pa.array([1.5, None]),
        "boolean": pa.array([True, None]),
        "void": pa.nulls(2),
        "string": pa.array(["a", None], pa.large_string()),
        "binary": pa.array([b"a" * 12, None], pa.binary(12)),
        "date": pa.array([NOON.date(), None], pa.date64()),
        "timestamp": pa.array([NOON, None], pa.timestamp("ms", "Europe/Berlin")),
        "timestamp_ntz": pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("ns")),
        "interval day to second": pa.array([1, None], pa.duration("s")),
        "array<bigint>": pa.array([[1], None], pa.large_list(pa.int64())),
        "array<int>": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        "map<string,array<smallint>>": pa.array([[("k", [1])], None], pa.map_(pa.large_string(), pa.list_(pa.int16()))),
        "struct<a:string,b:struct<c:int>>": pa.array(
            [{"a": "x", "b": {"c": 1}}, None],
            pa.struct([("a", pa.dictionary(pa.int8(), pa.string())), ("b", pa.struct([("c", pa.int32())]))]),
        ),
    }
    times = {"int": pa.array([1, None], pa.time32("ms")), "bigint": pa.array([1, None], pa.time64("us"))}
    for name, values in (*columns.items(), *times.items()):
        kind = spark_type(values.type)
        assert kind.simpleString() == name
        found, bad = conformed(values, arrow_type(kind))
        assert bad is None
        assert found.type == arrow_type(kind)
        assert found.is_valid().to_pylist() == [name != "void", False]
    everything = pa.StructArray.from_arrays(list(columns.values()), [f"c{at}" for at in range(len(columns))])
    kind = spark_type(everything.type)
    assert isinstance(kind, StructType)
    assert conformed(everything, arrow_type(kind))[0].type == arrow_type(kind)


def test_only_the_rows_whose_times_spark_cannot_hold_are_bad():
    times = pa.array([1, 2**62, None, -(2**62), 5], pa.timestamp("ms", "UTC"))
    structs = pa.StructArray.from_arrays([times, pa.array(range(5))], ["at", "n"])
    for values in (times, structs, structs[1:4]):
        found, bad = conformed(values, arrow_type(spark_type(values.type)))
        expected = [False, True, False, True, False] if len(values) == 5 else [True, False, True]
        assert bad.to_pylist() == expected
        assert [not each for each in found.is_valid().to_pylist()] == [
            broken or not good for broken, good in zip(expected, values.is_valid().to_pylist())
        ]


@pytest.mark.parametrize("kind", [pa.decimal256(50, 2), pa.month_day_nano_interval(), pa.dense_union([])])
def test_a_type_that_spark_lacks_is_named_with_its_place(kind):
    with pytest.raises(ValueSchemaError, match=r"^value\.a\.b: Spark has no type for "):
        spark_type(pa.struct([("a", pa.list_(pa.struct([("b", kind)])))]))
