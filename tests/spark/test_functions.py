"""Functions over columns: messages, record batches, headers."""

from __future__ import annotations

import time
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from tagwire import messages
from tagwire.errors import ConfigError, DecodeError, EncodeError, SpecError, TagwireError
from tagwire.records import Record, write
from tagwire.spark.failure import reason
from tagwire.spark.functions import _records, decode_records, from_message, header, to_message
from tagwire.spark.values.options import MODES

pytestmark = pytest.mark.spark

FLIGHT = """{"type": "data", "name": "Flight", "validVersions": "0-1", "flexibleVersions": "0+", "fields": [
  {"name": "Carrier", "type": "string", "versions": "0+"},
  {"name": "Number", "type": "uint16", "versions": "0+"},
  {"name": "Id", "type": "uuid", "versions": "0+"},
  {"name": "Seats", "type": "uint32", "versions": "1+", "nullableVersions": "1+"},
  {"name": "Legs", "type": "[]Leg", "versions": "0+", "fields": [
    {"name": "Origin", "type": "string", "versions": "0+"},
    {"name": "Minutes", "type": "int32", "versions": "0+"}]}]}""".replace(', "nullableVersions": "1+"', "")


def test_a_message_of_ones_own_goes_to_bytes_and_back(spark):
    rows = spark.range(3).selectExpr(
        "named_struct('carrier', concat('U', id), 'number', int(65535), 'id', unhex(repeat('0f', 16)),"
        " 'seats', 4294967295L, 'legs', array(named_struct('origin', 'EWR', 'minutes', int(id)))) as flight"
    )
    packed = rows.select("flight", to_message("flight", FLIGHT, 1, mode="FAILFAST").alias("value"))
    back = packed.select("flight", from_message("value", FLIGHT, 1, mode="FAILFAST").alias("again"))
    assert back.schema["again"].dataType.simpleString() == (
        "struct<carrier:string,number:int,id:binary,seats:bigint,legs:array<struct<origin:string,minutes:int>>>"
    )
    assert back.where("flight = again").count() == 3
    few = packed.select(from_message("value", FLIGHT, 1, fields=["legs", "carrier"]).alias("f"))
    assert few.schema["f"].dataType.names == ["legs", "carrier"]
    assert {row.f.carrier for row in few.collect()} == {"U0", "U1", "U2"}


def test_rows_that_are_no_such_message_are_null_or_end_the_query(spark):
    good = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(0)
    rows = spark.createDataFrame([(0, good), (1, good[:-1]), (2, None)], "id int, value binary").coalesce(1)
    decoded = rows.select("id", from_message("value", "HeartbeatRequest", 0).alias("m")).orderBy("id").collect()
    assert [row.m and row.m.group_id for row in decoded] == ["g", None, None]
    with pytest.raises(Exception) as caught:
        rows.select(from_message("value", "HeartbeatRequest", 0, mode="failfast")).collect()
    assert isinstance(reason(caught.value), DecodeError)
    assert "row 1" in str(reason(caught.value))


def test_rows_that_cannot_be_written_are_null_or_end_the_query(spark):
    wide = (
        spark.range(4).selectExpr("if(id = 3, null, named_struct('generation_id', id * 2147483647)) as s").coalesce(1)
    )
    written = wide.select(to_message("s", "HeartbeatRequest", 0).alias("m"))
    found = [row.m for row in written.collect()]
    expected = [messages.HeartbeatRequest(generation_id=at).encode(0) for at in (0, 2**31 - 1)]
    assert found == [*expected, None, None]
    with pytest.raises(Exception) as caught:
        wide.select(to_message("s", "HeartbeatRequest", 0, mode="FAILFAST")).collect()
    assert isinstance(reason(caught.value), EncodeError)
    assert "row 2: HeartbeatRequest v0, generation_id: 4294967294 is out of range" in str(reason(caught.value))


def test_a_struct_that_is_not_the_messages_ends_the_query_in_every_mode(spark):
    wrong = spark.range(1).select(F.struct(F.lit("x").alias("no_such")).alias("s"))
    for mode in MODES:
        with pytest.raises(Exception) as caught:
            wrong.select(to_message("s", "HeartbeatRequest", 0, mode=mode)).collect()
        assert isinstance(reason(caught.value), EncodeError)
        assert "no field no_such" in str(reason(caught.value))


def test_messages_of_the_catalog_come_back_as_they_were_written(spark):
    topic = messages.MetadataResponse.MetadataResponseTopic(name="t", topic_id=UUID(int=7))
    made = [
        (messages.MetadataResponse(cluster_id="c", topics=[topic]), 13),
        (messages.ApiVersionsResponse(finalized_features_epoch=5), 4),
        (messages.OffsetCommitValue(offset=2**40, metadata="é"), 3),
        (messages.JoinGroupRequest(group_id="g", rebalance_timeout_ms=-1), 9),
    ]
    there = [(message.spec.name, version, message.encode(version)) for message, version in made]
    row = spark.createDataFrame(
        [tuple(data for *_, data in there)], ", ".join(f"m{i} binary" for i in range(len(there)))
    )
    again = row.select(
        *(
            to_message(from_message(f"m{i}", name, version, mode="FAILFAST"), name, version, mode="FAILFAST").alias(
                name
            )
            for i, (name, version, _) in enumerate(there)
        )
    )
    assert list(again.first()) == [bytearray(data) for *_, data in there]


def test_record_batches_become_arrays_and_headers_are_taken_by_name(spark):
    rows = [Record(b"k", b"v%d" % i, (("a", b"1"), ("a", b"%d" % i)), 1000 + i) for i in range(3)]
    data = write(rows, base_offset=7, compression="lz4")
    frame = spark.createDataFrame(
        [(0, data), (1, b""), (2, None), (3, data[:-3] + b"xxx"), (4, data)], "id int, value binary"
    )
    found = frame.select("id", decode_records("value").alias("records")).orderBy("id")
    assert [None if row.records is None else len(row.records) for row in found.collect()] == [3, 0, None, None, 3]
    last = found.selectExpr("id", "inline(records)").where("id = 4 and offset = 9")
    (row,) = last.select("value", header("headers", "a").alias("a"), header(F.col("headers"), "b").alias("b")).collect()
    assert tuple(row) == (b"v2", b"2", None)
    with pytest.raises(Exception) as caught:
        frame.select(decode_records("value", mode="FAILFAST")).collect()
    assert isinstance(reason(caught.value), DecodeError)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "said"),
    [
        (("NoSuchRequest", 0), {}, ConfigError, "no message of the catalog"),
        (("HeartbeatRequest", 99), {}, TagwireError, "has no version 99"),
        (("HeartbeatRequest", 0), {"fields": ["grupp"]}, ConfigError, "no field grupp; has group_id"),
        (("HeartbeatRequest", 0), {"mode": "LENIENT"}, ConfigError, "needs PERMISSIVE"),
        (('{"name": 1}', 0), {}, SpecError, "name"),
    ],
)
def test_a_wrong_argument_is_refused_where_it_is_given(spark, arguments, options, kind, said):
    with pytest.raises(kind, match=said):
        from_message("value", *arguments, **options)


def test_rows_that_are_broken_take_no_longer_the_more_of_them_there_are():
    begun = time.process_time()
    assert _records(pa.nulls(40_000, pa.binary()), "PERMISSIVE").null_count == 40_000
    assert time.process_time() - begun < 3
