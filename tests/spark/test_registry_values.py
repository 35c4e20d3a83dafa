"""Keys and values with schemas of a registry: read, written and as functions of columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import fastavro
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tagwire.cli import main
from tagwire.errors import ConfigError, DecodeError, SchemaRegistryError, TagwireError, ValueSchemaError
from tagwire.records import Record
from tagwire.spark.failure import reason
from tagwire.spark.functions import from_value, to_value
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.source.topic import TopicDataSource
from tagwire.spark.values.options import resolved_options

from ..values.registry_server import Answer, RegistryServer, registry_server
from .log_files import LogDirectory
from .test_sink import read, write
from .test_topic import NOON, batch

pytestmark = pytest.mark.spark


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def record(*fields: tuple[str, Any] | tuple[str, Any, Any]) -> str:
    """A record's schema; fields are name, type and perhaps default."""
    made = [{"name": name, "type": kind, **({"default": rest[0]} if rest else {})} for name, kind, *rest in fields]
    return json.dumps({"type": "record", "name": "Flight", "fields": made})


V1 = record(("carrier", "string"), ("number", "int"))
V2 = record(("carrier", "string"), ("number", "long"), ("gate", ["null", "string"], None))
V3 = record(("number", "long"), ("carrier", "string"), ("delay", "double", 0.0), ("gate", ["null", "string"], None))
OTHER = record(("carrier", "string"), ("number", "string"))
"""Does not resolve to the others."""


def body(schema: str, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()


def framed(schema_id: int, schema: str, value: Any) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body(schema, value)


def flight(number: int) -> dict[str, Any]:
    return {"carrier": f"c{number}", "number": number, "gate": f"g{number}", "delay": number / 2}


def told(action: Callable[[], object]) -> TagwireError:
    with pytest.raises(Exception) as caught:
        action()
    found = reason(caught.value)
    assert "\n" not in str(found)
    return found


def test_values_of_three_writers_and_their_keys_are_read_as_one_table(spark, broker, topic, produce, registry):
    writers = [(registry.add(f"{topic}-value", schema), schema) for schema in (V1, V2, V3)]
    other = registry.add("elsewhere", OTHER)
    name = registry.add(f"{topic}-key", '"string"')
    rows = [Record(framed(name, '"string"', f"k{n}"), framed(*writers[n % 3], flight(n)), (), NOON) for n in range(9)]
    guid = b"\1" + UUID(registry.guid(writers[1][0])).bytes
    broken = [
        framed(*writers[0], flight(10))[:-1],
        framed(99, V1, flight(11)),
        framed(other, OTHER, {"carrier": "c12", "number": "x"}),
        b"",
    ]
    rows += [
        Record(b"no key", body(V2, flight(9)), (("a", b""), ("__value_schema_id", guid)), NOON),
        *(Record(None, value, (), NOON) for value in (*broken, None)),
    ]
    produce(topic, {0: rows})
    options = {
        "subscribe": topic,
        "value.format": "avro",
        "key.format": "avro",
        "schema.registry.url": registry.url,
        "schema.registry.max.retries": "0",
    }
    columns = {"columnNameOfCorruptRecord": "bad", "key.columnNameOfCorruptRecord": "bad_key"}
    frame = batch(spark, broker, **options, **columns)
    assert frame.select("key", "value").schema.simpleString() == (
        "struct<key:string,value:struct<number:bigint,carrier:string,delay:double,gate:string>>"
    )
    found = sorted(frame.select("offset", "key", "value.*", "bad_key", "bad").collect())
    for n, row in enumerate(found[:10]):
        gate, delay = (None if n % 3 == 0 else f"g{n}"), (n / 2 if n % 3 == 2 else 0.0)
        key, bad_key, gate = (f"k{n}", None, gate) if n < 9 else (None, b"no key", "g9")
        assert tuple(row) == (n, key, n, f"c{n}", delay, gate, bad_key, None)
    assert [tuple(row) for row in found[10:]] == [
        *((10 + at, *[None] * 6, value) for at, value in enumerate(broken)),
        (14, *[None] * 7),
    ]
    assert registry.asked("/subjects") == [f"/subjects/{topic}-{name}/versions/latest" for name in ("value", "key")]

    few = batch(spark, broker, "value struct<gate:string>, offset bigint", mode="DROPMALFORMED", **options)
    assert sorted(row.offset for row in few.collect()) == [*range(9), 14]  # a bad key is one, too
    said = {
        10: "schema id 1: .*ends",
        11: "schema id 99: the registry has no such schema",
        12: "schema id 4: .*number",
        13: "ends in its framing",
    }
    del options["key.format"]
    for offset, why in said.items():
        start = {"startingOffsets": json.dumps({topic: {"0": offset, "1": 0}})}
        error = told(lambda: batch(spark, broker, "offset bigint", mode="FAILFAST", **options, **start).collect())  # noqa: B023
        assert isinstance(error, DecodeError)
        assert re.match(f"value of {topic}-0@{offset}: {why}", str(error))


@pytest.mark.long
def test_the_columns_of_a_stream_stay_until_it_is_started_again(spark, broker, topic, produce, registry, tmp_path):
    writers = [(registry.add(f"{topic}-value", schema), schema) for schema in (V1, V2)]
    rows = [Record(None, framed(*writers[n % 2], flight(n)), (), NOON) for n in range(4)]
    produce(topic, {0: rows})

    def stream() -> DataFrame:
        reader = spark.readStream.format("tagwire").option("kafka.bootstrap.servers", broker.bootstrap)
        reader.option("startingOffsets", "earliest").option("subscribe", topic)
        return reader.option("value.format", "avro").option("schema.registry.url", registry.url).load()

    def start(frame: DataFrame, **trigger: Any) -> Any:
        writer = frame.select("value.*").writeStream.format("parquet").option("path", str(tmp_path / "table"))
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(**trigger).start()

    begun = stream()
    query = start(begun, processingTime="0 seconds")
    query.processAllAvailable()
    writers.append((registry.add(f"{topic}-value", V3), V3))
    produce(topic, {0: [Record(None, framed(*writers[n % 3], flight(n)), (), NOON) for n in range(4, 10)]})
    query.processAllAvailable()
    query.stop()
    assert registry.asked("/subjects") == [f"/subjects/{topic}-value/versions/latest"]
    produce(topic, {0: [Record(None, framed(*writers[n % 3], flight(n)), (), NOON) for n in range(10, 13)]})
    again = stream()
    query = start(again, availableNow=True)
    assert query.awaitTermination(60)
    table = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "table"))
    assert begun.schema["value"].dataType.simpleString() == "struct<carrier:string,number:bigint,gate:string>"
    assert sorted((row.number, row.gate, row.delay) for row in table.collect()) == [
        *((n, f"g{n}" if n % 2 else None, None) for n in range(4)),
        *((n, f"g{n}" if n % 3 else None, None) for n in range(4, 10)),
        (10, "g10", 0.0),
        (11, "g11", 5.5),
        (12, None, 0.0),
    ]


def test_a_registry_that_is_away_fails_the_load_or_the_task_with_one_clear_line(
    spark, broker, topic, produce, registry
):
    written = registry.add(f"{topic}-value", V1)
    produce(topic, {0: [Record(None, framed(written, V1, flight(0)), (), NOON)]})
    options = {
        "subscribe": topic,
        "value.format": "avro",
        "schema.registry.url": registry.url,
        "schema.registry.max.retries": "0",
        "basic.auth.user.info": "me:hunter2",
    }
    frame = batch(spark, broker, **options)
    registry.misbehave = lambda request: Answer(503, b"<html>") if "/ids/" in request.path else None
    by_task = told(frame.collect)
    registry.misbehave = lambda request: Answer(401, b"{}")
    by_load = told(lambda: batch(spark, broker, **options))
    for error, status in ((by_task, "503"), (by_load, "401")):
        assert isinstance(error, SchemaRegistryError)
        assert registry.url in str(error)
        assert status in str(error)
        assert "hunter2" not in str(error)


@pytest.mark.long
def test_columns_are_written_by_a_subjects_schema_and_read_back(spark, broker, topic, registry, tmp_path):
    registry.add(f"{topic}-value", V3)
    name = registry.add(f"{topic}-key", '"string"')
    frame = spark.range(6).selectExpr(
        "concat('k', id) as key",
        "if(id = 5, null, named_struct('carrier', concat('c', id), 'number', id, 'gate', cast(null as string),"
        " 'delay', id / 2)) as value",
        "if(id % 2 = 0, null, array(named_struct('key', 'h', 'value', X'01'))) as headers",
        "0 as partition",
    )
    options = {"schema.registry.url": registry.url, "value.format": "avro", "key.format": "avro"}
    by_header = {"value.schema.id.location": "header"}
    write(frame.coalesce(1), broker, topic=topic, **options, **by_header)
    records, _ = read(broker, topic)
    guid = b"\1" + UUID(registry.guid(1)).bytes
    for n, one in enumerate(records):
        assert one.key == framed(name, '"string"', f"k{n}")
        assert one.value == (None if n == 5 else body(V3, {**flight(n), "gate": None}))
        own = [("h", b"\1")] if n % 2 else []
        assert list(one.headers) == own + ([] if n == 5 else [("__value_schema_id", guid)])
    back = batch(spark, broker, "key string, value struct<number:bigint>", subscribe=topic, **options, **by_header)
    assert sorted((row.key, row.value and row.value.number) for row in back.collect()) == [
        *((f"k{n}", n) for n in range(5)),
        ("k5", None),
    ]

    schema = tmp_path / "flight.avsc"
    schema.write_text(V1)
    given = {"schema.registry.url": registry.url, "value.format": "avro", "value.schema": str(schema)}
    small = spark.range(1).selectExpr("named_struct('carrier', 'c', 'number', 1) as value", "0 as partition")
    asked = len(registry.requests)
    for wrong, options, said in (
        (small, given, "does not have the schema of value.schema: register it"),
        (small.selectExpr("named_struct('carrier', 1, 'number', 1) as value"), given, "carrier"),
        (small.selectExpr("value.carrier as value"), given, "string"),
        (small, {**given, "value.format": "json", "value.schema": "a int"}, "only for reading"),
        (small, {**given, "key.format": "avro"}, "option key.format: the table has no column key"),
    ):
        error = told(lambda: write(wrong, broker, topic=topic, **options))  # noqa: B023
        assert said in str(error), error
    assert not [each for each in registry.requests[asked:] if each.method == "POST" and "versions" in each.path]
    write(small, broker, topic=topic, **given, **{"auto.register.schemas": "true"})
    assert read(broker, topic)[0][len(records) :][0].value == framed(
        len(registry._schemas), V1, {"carrier": "c", "number": 1}
    )


def test_functions_decode_and_encode_columns_by_a_version_that_stays(spark, registry):
    subject = {"schema.registry.url": registry.url, "value.format": "avro", "value.subject": "flights"}
    old = registry.add("flights", V1)
    frame = spark.range(3).selectExpr("named_struct('carrier', concat('c', id), 'number', cast(id as int)) as flight")
    written = frame.select("flight", to_value("flight", subject, mode="FAILFAST").alias("value"))
    decoded = written.select("flight", "value", from_value("value", subject, mode="FAILFAST").alias("again"))
    registry.add("flights", V3)
    assert decoded.schema["again"].dataType.simpleString() == "struct<carrier:string,number:int>"
    found = decoded.where("flight = again").collect()
    assert sorted(row.value for row in found) == [framed(old, V1, flight(n)) for n in range(3)]
    few = spark.createDataFrame([(framed(old, V1, flight(7)),), (b"x",), (None,)], "value binary").coalesce(1)
    newer = from_value("value", subject, fields=["delay", "number"])
    assert [row.v and tuple(row.v) for row in few.select(newer.alias("v")).collect()] == [(0.0, 7), None, None]
    error = told(lambda: few.select(from_value("value", subject, mode="FAILFAST")).collect())
    assert isinstance(error, DecodeError)
    assert str(error).startswith("row 1: ")
    error = told(lambda: frame.select(to_value(F.col("flight.carrier"), subject)).collect())
    assert isinstance(error, ValueSchemaError)
    for options, said in (
        ({}, "option value.format: missing"),
        ({**subject, "key.format": "avro"}, "option key.format: set beside value.format"),
        ({**subject, "value.subjct": "x"}, "option value.subjct: unknown; nearest are value.subject,"),
        ({"value.format": "json", "value.schema": "a int"}, "option value.format=json: needs avro, protobuf"),
        ({**subject, "value.schema.id.location": "header"}, "a column has no headers"),
    ):
        with pytest.raises(ConfigError, match=said):
            to_value("flight", options)


def test_log_files_have_typed_columns_by_a_schema_that_is_given_without_a_registry(spark, tmp_path):
    LogDirectory(tmp_path, "t-0").append([Record(None, body(V2, flight(n)), (), NOON) for n in range(3)])
    frame = spark.read.format("tagwire-segments").option("value.format", "avro").option("value.schema", V2)
    found = frame.load(str(tmp_path)).select("offset", "value.*").collect()
    assert sorted(map(tuple, found)) == [(n, f"c{n}", n, f"g{n}") for n in range(3)]


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


EVERY = record(
    ("bool", "boolean"),
    ("float", "float"),
    ("bytes", "bytes"),
    ("list", {"type": "array", "items": ["null", "int"]}),
    ("map", {"type": "map", "values": {"type": "array", "items": "string"}}),
    ("either", ["null", "int", "string"], None),
    ("decimal", logical("bytes", "decimal", precision=10, scale=2)),
    ("date", logical("int", "date")),
    ("time", logical("long", "time-micros")),
    ("at", logical("long", "timestamp-millis")),
    ("there", logical("long", "local-timestamp-micros")),
    ("uuid", logical("string", "uuid")),
)
PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
message M {
  string carrier = 1; google.protobuf.Timestamp at = 2; google.protobuf.Duration took = 3; map<string, int64> m = 4;
  repeated string legs = 5; enum E { ON_TIME = 0; LATE = 1; } optional E e = 6; oneof o { int32 x = 7; string y = 8; }
}"""
OBJECT = """{"title": "T", "type": "object", "properties": {"a": {"type": "integer"}, "c": {"type": "array", "items":
  {"type": "number"}}, "d": {"type": "object", "properties": {"e": {"type": "boolean"}}}}}"""


@pytest.mark.long
def test_every_type_is_written_and_read_back_in_each_format(spark, broker, topic, registry):
    columns = {
        "avro": (
            "AVRO",
            EVERY,
            "named_struct('bool', id > 0, 'float', float(id), 'bytes', X'00FF', 'list', array(null, 1),"
            " 'map', map('k', array('v')), 'either', named_struct('member0', cast(null as int), 'member1', 'x'),"
            " 'decimal', cast(id + 0.25 as decimal(10,2)), 'date', date'2013-07-04', 'time', id,"
            " 'at', timestamp'2013-07-04 12:00:00', 'there', timestamp_ntz'2013-07-04 12:00:00',"
            " 'uuid', '0f0f0f0f-0000-0000-0000-000000000000')",
        ),
        "protobuf": (
            "PROTOBUF",
            PROTO,
            "named_struct('carrier', 'UA', 'at', timestamp'2013-07-04 12:00:00', 'took', interval '2' second,"
            " 'm', map('k', id), 'legs', array('EWR'), 'e', 'LATE', 'x', cast(null as int), 'y', 'z')",
        ),
        "json-schema": (
            "JSON",
            OBJECT,
            "named_struct('a', id, 'c', array(1.5D), 'd', named_struct('e', id > 0))",
        ),
    }
    for number, (name, (kind, schema, value)) in enumerate(columns.items()):
        registry.add(f"{topic}-{number}-value", schema, kind)
        options = {"schema.registry.url": registry.url, "value.format": name}
        frame = spark.range(2).selectExpr(f"{value} as value").coalesce(1)
        write(frame, broker, topic=f"{topic}-{number}", **options)
        back = batch(spark, broker, subscribe=f"{topic}-{number}", mode="FAILFAST", **options).select("value")
        assert sorted(map(str, back.collect())) == sorted(map(str, frame.collect())), name


@pytest.mark.long
def test_a_stream_is_written_once_by_its_subjects_schema_and_ends_where_its_columns_do_not_fit(
    spark, broker, topic, produce, registry, tmp_path
):
    schema = registry.add(f"{topic}-typed-value", V1)
    produce(topic, {0: [Record(b"c", b"v", (), NOON)] * 5})
    given = {"kafka.bootstrap.servers": broker.bootstrap}
    reader = spark.readStream.format("tagwire").options(**given, subscribe=topic, maxOffsetsPerTrigger="3")
    rows = reader.option("startingOffsets", "earliest").load()
    options = {"value.format": "avro", "schema.registry.url": registry.url, "exactlyOnce": "true"}

    def start(value: str, checkpoint: str) -> bool:
        writer = rows.selectExpr(f"{value} as value").writeStream.format("tagwire").options(**given, **options)
        writer = writer.option("topic", f"{topic}-typed").option("checkpointLocation", str(tmp_path / checkpoint))
        return bool(writer.trigger(availableNow=True).start().awaitTermination(60))

    number = "cast(offset as int)"
    wrong = f"named_struct('carrier', offset, 'number', {number})"
    assert "carrier" in str(told(lambda: start(wrong, "wrong")))
    assert start(f"named_struct('carrier', cast(key as string), 'number', {number})", "good")
    (found,) = read(broker, f"{topic}-typed", 1)
    assert [one.value for one in found] == [framed(schema, V1, {"carrier": "c", "number": n}) for n in range(5)]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_landed_table_keeps_its_columns_or_gets_those_of_a_newer_schema_as_it_is_told(
    spark, broker, topic, produce, registry, tmp_path, capsys
):
    writers = [(registry.add(f"{topic}-value", schema), schema) for schema in (V1, V2)]
    produce(topic, {0: [Record(None, framed(*writers[n % 2], flight(n)), (), NOON) for n in range(4)]})
    access = {"schema.registry.url": registry.url, "basic.auth.user.info": "me:hunter2"}
    values = {"value.format": "avro", **access}

    def run(to: str, **how: Any) -> DataFrame:
        table = TableSettings(values=values, **({"evolve": True} if how else {}))
        land(broker.bootstrap, topic, tmp_path / to, spark=spark, table=table, **how)
        files = [str(path) for path in (tmp_path / to).glob("*.parquet")]
        return spark.read.option("mergeSchema", "true").parquet(*files).select("value.*")

    command = ["land", topic, "--bootstrap", broker.bootstrap, "--to", str(tmp_path / "kept"), "--format", "parquet"]
    login = ["-X", "basic.auth.user.info=me:hunter2"]
    assert main([*login, *command, "--value-format", "avro", "--registry", registry.url, "--json"]) == 0
    assert main(command) == 2
    assert capsys.readouterr().err.endswith("--value-format=avro: needs --value-schema or --registry\n")
    run("grown", format="delta")
    writers.append((registry.add(f"{topic}-value", V3), V3))
    produce(topic, {0: [Record(None, framed(*writers[n % 3], flight(n)), (), NOON) for n in range(4, 7)]})
    kept, grown = run("kept"), run("grown", format="delta")
    assert kept.columns == ["carrier", "number", "gate"]
    assert sorted(row.number for row in kept.collect()) == list(range(7))
    assert [row.delay for row in sorted(grown.collect(), key=lambda row: row.number)] == [*[None] * 4, 0.0, 2.5, 0.0]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()
    again = f"{topic}-again"
    command = ["replay", again, "--bootstrap", broker.bootstrap, "--table", str(tmp_path / "kept")]
    assert main([*login, *command, "--registry", registry.url]) == 0
    expected = [{**flight(n), "gate": None if writers_of(n) == 0 else f"g{n}"} for n in range(7)]
    assert sorted(one.value for one in read(broker, again, 1)[0]) == sorted(
        framed(*writers[1], {name: each[name] for name in ("carrier", "number", "gate")}) for each in expected
    )


def writers_of(n: int) -> int:
    """Which schema a flight of the landing was written by."""
    return n % 2 if n < 4 else n % 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value.format": "avro"}, "needs value.schema or schema.registry.url"),
        ({"schema.registry.url": "http://h"}, "schema.registry.url: means nothing without value.format=avro"),
        ({"value.format": "avro", "value.schema": "long", "value.version": "1"}, "value.version: means nothing with"),
        ({"value.format": "avro", "value.schema": "/no/such.avsc"}, "neither a schema nor a file"),
        ({"value.format": "avro", "schema.registry.ulr": "http://h"}, "no property of a schema registry's client"),
        ({"value.format": "avro", "basic.auth.user": "a:b"}, "basic.auth.user: unknown; nearest are basic.auth.user."),
        ({"value.format": "avro", "schema.registry.url": "http://h", "subscribe": "a,b"}, "value.subject: missing"),
        ({"value.format": "avro", "value.schema": "{"}, "."),
    ],
)
def test_a_wrong_option_of_schemas_is_named(options, said):
    source = TopicDataSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **options})
    with pytest.raises((ConfigError, ValueSchemaError), match=said):
        source.schema()


def test_what_is_resolved_means_the_same_when_it_is_read_again_and_holds_no_secret(registry, tmp_path):
    registry.add("t-value", V1)
    registry.add("t-value", V2)
    access = {"schema.registry.url": registry.url, "basic.auth.user.info": "me:hunter2"}
    found = resolved_options({"value.format": "avro", **access}, "t")
    assert found == {
        "value.format": "avro",
        "value.subject": "t-value",
        "value.schema.version": "2",
        "mode": "PERMISSIVE",
    }
    assert resolved_options({**found, **access}) == found
    path = tmp_path / "flight.avsc"
    path.write_text(V1)
    assert resolved_options({"value.format": "avro", "value.schema": str(path)})["value.schema"] == V1
