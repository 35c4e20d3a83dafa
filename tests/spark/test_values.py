"""Values decoded and headers as columns inside the source, and prefetching."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from tagwire import messages
from tagwire.errors import ConfigError, DecodeError
from tagwire.records import Record
from tagwire.spark.columns import arrow_type
from tagwire.spark.ddl import parse_schema
from tagwire.spark.failure import reason
from tagwire.spark.prefetch import prefetched
from tagwire.spark.source.options import parse
from tagwire.spark.values.json import decode_json, json_refusal
from tagwire.spark.values.options import decoded_columns

from ..limits import wait_until
from .log_files import LogDirectory
from .test_topic import NOON, batch

FLIGHTS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "flights"}
KIND = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.string())))])


@pytest.mark.spark
def test_json_values_become_typed_columns_and_broken_ones_go_as_the_mode_says(spark, broker, topic, produce):
    values = [
        b'{"a":1,"on":"2013-07-04","at":"2013-07-04T12:00:00Z","more":0}',
        b'{"a":"x"}',
        None,
        b"",
        b'{"b":["y"]}',
    ]
    produce(topic, {0: [Record(b"k", value, (("h", b"1"), ("h", b"%d" % i)), NOON) for i, value in enumerate(values)]})
    options = {
        "subscribe": topic,
        "value.format": "json",
        "value.schema": "a int, b array<string>, on date, at timestamp",
    }
    frame = batch(spark, broker, **options, columnNameOfCorruptRecord="bad", **{"headers.columns": "h,none"})
    assert frame.columns == ["key", "value", *frame.columns[2:7], "h", "none", "bad"]
    rows = sorted(frame.selectExpr("offset", "value.*", "unix_millis(value.at) ms", "h", "none", "bad").collect())
    assert [(row.offset, row.a, row.b, row.bad) for row in rows] == [
        (0, 1, None, None),
        (1, None, None, b'{"a":"x"}'),
        (2, None, None, None),
        (3, None, None, b""),
        (4, None, ["y"], None),
    ]
    assert (str(rows[0].on), rows[0].ms) == ("2013-07-04", NOON)
    assert [(row.h, row.none) for row in rows] == [(b"%d" % i, None) for i in range(5)]
    few = batch(spark, broker, "offset bigint, value struct<b:array<string>>", **options, mode="DROPMALFORMED")
    assert sorted(row.offset for row in few.collect()) == [0, 1, 2, 4]  # a is not looked at
    with pytest.raises(Exception) as caught:
        batch(spark, broker, **options, mode="failfast").select("key").collect()
    found = reason(caught.value)
    assert isinstance(found, DecodeError)
    assert f"value of {topic}-0@1" in str(found)


@pytest.mark.spark
def test_messages_become_typed_columns_in_topics_and_in_files(spark, broker, topic, produce, tmp_path):
    good = [messages.HeartbeatRequest(group_id=f"g{i}", generation_id=i, member_id="m").encode(3) for i in range(3)]
    rows = [Record(None, value, (), NOON) for value in (*good, good[0][:-1])]
    produce(topic, {1: rows})
    LogDirectory(tmp_path, "t-0").append(rows)
    options = {"value.format": "message", "value.message": "HeartbeatRequest", "value.version": "3"}
    schema = "value struct<generation_id:int,group_id:string>, offset bigint"
    topics = batch(spark, broker, schema, subscribe=topic, **options)
    files = spark.read.format("tagwire-segments").options(**options).schema(schema).load(str(tmp_path))
    for frame in (topics, files):
        found = sorted((row.offset, row.value and tuple(row.value)) for row in frame.collect())
        assert found == [(0, (0, "g0")), (1, (1, "g1")), (2, (2, "g2")), (3, None)]


@pytest.mark.spark
def test_keys_are_decoded_as_values_are_and_a_broken_one_goes_as_the_mode_says(spark, broker, topic, produce):
    beat = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(3)
    rows = [(beat, b'{"a":1}'), (beat, b'{"a":2'), (beat[:-1], b'{"a":3}'), (b"", b""), (None, None)]
    produce(topic, {0: [Record(key, value, (), NOON) for key, value in rows]})
    options = {
        "subscribe": topic,
        "value.format": "json",
        "value.schema": "a int",
        "key.format": "message",
        "key.message": "HeartbeatRequest",
        "key.version": "3",
    }
    broken = {"columnNameOfCorruptRecord": "bad", "key.columnNameOfCorruptRecord": "bad_key"}
    frame = batch(spark, broker, **options, **broken)
    assert frame.schema["key"].dataType.names == ["group_id", "generation_id", "member_id", "group_instance_id"]
    found = [
        (row.offset, row.g, row.a, row.bad_key, row.bad)
        for row in sorted(frame.selectExpr("offset", "key.group_id g", "value.a", "bad_key", "bad").collect())
    ]
    assert found == [
        (0, "g", 1, None, None),
        (1, "g", None, None, b'{"a":2'),
        (2, None, 3, beat[:-1], None),
        (3, None, None, b"", b""),
        (4, None, None, None, None),
    ]
    few = batch(spark, broker, "key struct<group_id:string>, offset bigint", mode="DROPMALFORMED", **options)
    assert [(row.key and tuple(row.key), row.offset) for row in few.collect()] == [(("g",), 0), (None, 4)]
    with pytest.raises(Exception) as caught:
        batch(spark, broker, **options, mode="FAILFAST", startingOffsets=f'{{"{topic}":{{"0":2,"1":0}}}}').collect()
    assert f"key of {topic}-0@2: HeartbeatRequest v3" in str(reason(caught.value))


some_json = st.sampled_from([b'{"a":1}', b'{"a":2}\n', b'{"a":1}\n{"a":2}', b"1", b"null"])


@given(st.lists(st.none() | st.binary(max_size=4) | some_json))
def test_every_json_value_is_read_for_itself(values):
    structs, bad = decode_json(pa.array(values, pa.binary()), KIND)
    assert len(structs) == len(bad) == len(values)
    for value, found, broken in zip(values, structs.to_pylist(), bad.to_pylist()):
        alone = _alone(value)
        assert broken == (value is not None and alone is None)
        assert found == (None if alone is None else {"a": alone.get("a"), "b": None})


def _alone(value: bytes | None) -> dict[str, int] | None:
    try:
        found = json.loads((value or b"").decode())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def test_a_schema_is_read_as_spark_writes_it(spark):
    for text in (
        "a int, `b c` array<struct<d:string,e:decimal(10,2)>>",
        "x BIGINT, y timestamp, z date, f double",
        "a decimal(12), b numeric(5, 2), c dec(3), d numeric, e dec, f timestamp_ltz",
        "a int NOT NULL, b struct<c: string not null, d: int>",
    ):
        assert parse_schema(text) == StructType.fromDDL(text)
    for text in (
        "a",
        "a int,",
        "a int b",
        "a int not",
        "a array<int",
        "a struct<>",
        "a decimal(99,1)",
        "a;",
        ", a int",
    ):
        with pytest.raises(ConfigError):
            parse_schema(text)


@pytest.mark.parametrize(
    ("digits", "said"),
    [("0,0", "decimal(0,0) has no digits"), ("3,5", "decimal(3,5) has more digits behind the point than digits")],
)
def test_a_decimal_that_can_hold_nothing_is_refused_by_name(digits, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_schema(f"a int, b array<decimal({digits})>")


def test_a_json_value_may_lack_what_a_schema_of_spark_s_calls_not_null():
    lines = ArrayType(StructType([StructField("n", LongType(), nullable=False)]), containsNull=False)
    schema = StructType([StructField("a", LongType(), nullable=False), StructField("lines", lines)])
    (column,) = decoded_columns({"value.format": "json", "value.schema": schema.json()})
    found, bad = column.format.decoded(pa.array([b'{"a":1}', b"{}", b'{"lines":[{},null]}']), None)
    nothing = {"a": None, "lines": None}
    assert found.to_pylist() == [{**nothing, "a": 1}, nothing, {**nothing, "lines": [{"n": None}, None]}]
    assert bad.to_pylist() == [False, False, False]
    assert found.type == arrow_type(column.format.type)
    assert column.format.fixed() == {"schema": schema.json()}


def test_values_hidden_in_others_do_not_shift_the_rows():
    structs, bad = decode_json(pa.array([b'{"a":1}}\n{"v":{"a":2}', b"", b'{"a":3}'], pa.binary()), KIND)
    assert [found and found["a"] for found in structs.to_pylist()] == [None, None, 3]
    assert bad.to_pylist() == [True, True, False]


@pytest.mark.parametrize(
    "far", ["0E-100000000", "1e-100000000", '"-1E-2147483640"', r'"0\u0045-100000000"', r'"0E-1\u003000000000"']
)
def test_a_decimal_of_millions_of_places_is_a_bad_value_and_does_not_end_the_process(far):
    """As Arrow's reader did."""
    kind = pa.struct([("a", pa.decimal128(10, 2)), ("b", pa.list_(KIND)), ("c", pa.list_(pa.decimal128(10, 2)))])
    values = [
        f'{{"a":{far}}}',
        f'{{"c":[1,{far}]}}',
        f'{{"a":{far},"a":1}}',
        f'{{"a":{far}',
        '{"a":1.5e0001,"b":[{"b":["1e-100000000"]}],"x":0E-100000000}',
        r'{"a":"1.\u0035","x":"1e2345"}',
    ]
    structs, bad = decode_json(pa.array([value.encode() for value in values], pa.binary()), kind)
    assert bad.to_pylist() == [True] * 4 + [False] * 2
    assert structs.field("a").to_pylist()[4:] == [Decimal("15.00"), Decimal("1.50")]
    assert "exponent" in json_refusal(values[0].encode(), kind)


@pytest.mark.parametrize("behind", ['],"x":[', ' ] ,\n"x" : [ {}', '],"x":[[],[{"a":[1]}]],"y":[2'])
def test_an_object_that_ends_the_list_in_which_values_are_read_is_no_json(behind):
    for value in (b'{"a":1}', b"null"):
        structs, bad = decode_json(pa.array([value + behind.encode(), b'{"x":[{}],"y":[1],"a":3}'], pa.binary()), KIND)
        assert [found and found["a"] for found in structs.to_pylist()] == [None, 3]
        assert bad.to_pylist() == [True, False]


def test_an_object_with_a_member_behind_it_is_no_json():
    values = [b'{"a":1},"x":{"a":2}', b'{"a":3}']
    structs, bad = decode_json(pa.array(values, pa.binary()), KIND)
    assert [found and found["a"] for found in structs.to_pylist()] == [None, 3]
    assert bad.to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value.format": "avrò"}, "needs bytes, message, json, avro, protobuf or json-schema"),
        ({"value.format": "json"}, "value.schema: missing"),
        ({"value.schema": "a int"}, "value.schema: means nothing with value.format=bytes"),
        ({"value.format": "json", "value.schema": "a map<string,int>"}, "there is no type 'map'"),
        ({"value.format": "json", "value.schema": "a int, b struct<c:int, c:int>"}, "b: names field 'c' twice"),
        ({"value.format": "json", "value.schema": "a nosuch"}, "value.schema='a nosuch'"),
        ({"value.format": "message", "value.message": "HeartbeatRequest"}, "value.version: missing"),
        ({"value.format": "message", "value.message": "Nope", "value.version": "1"}, "no message of the catalog"),
        ({"mode": "FAILFAST"}, "mode: means nothing"),
        ({"key.format": "json"}, "key.schema: missing; key.format=json needs it"),
        ({"key.version": "1"}, "key.version: means nothing with key.format=bytes"),
        ({"columnNameOfCorruptRecord": "c"}, "columnNameOfCorruptRecord: means nothing with value.format=bytes"),
        (
            {
                "value.format": "json",
                "value.schema": "a int",
                "key.format": "json",
                "key.schema": "a int",
                "columnNameOfCorruptRecord": "c",
                "key.columnNameOfCorruptRecord": "C",
            },
            "key.columnNameOfCorruptRecord: 'C' would be a second column",
        ),
        (
            {"value.format": "json", "value.schema": "a int", "mode": "FAILFAST", "columnNameOfCorruptRecord": "c"},
            "needs mode=PERMISSIVE",
        ),
        ({"headers.columns": "a,,b"}, "needs names of headers"),
        ({"headers.columns": "a,offset"}, "'offset' would be a second column"),
    ],
)
def test_a_wrong_option_of_decoding_is_named(spark, options, said):
    with pytest.raises(ConfigError, match=said):
        parse({**FLIGHTS, **options})


def test_what_is_done_ahead_is_bounded_in_order_and_ends_with_its_reader():
    made: list[int] = []
    closed: list[bool] = []

    def numbers():
        try:
            for number in range(100):
                made.append(number)
                yield number
        finally:
            closed.append(True)

    taken = prefetched(numbers(), 2)
    assert [next(taken), next(taken)] == [0, 1]
    wait_until(lambda: len(made) >= 5)
    assert len(made) == 5  # two taken, two waiting, one in hand
    taken.close()
    assert closed == [True]
    assert list(prefetched(iter(range(50)))) == list(range(50))


def test_an_error_comes_after_what_was_before_it():
    def failing():
        yield 1
        raise DecodeError("broken")

    taken = prefetched(failing())
    assert next(taken) == 1
    with pytest.raises(DecodeError, match="broken"):
        next(taken)
