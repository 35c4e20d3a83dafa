"""Landing with values decoded: typed columns in the table, bad values beside them, and back into a topic."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tagwire import message_class
from tagwire.cli import main
from tagwire.client import Admin, NewTopic
from tagwire.errors import ConfigError, DecodeError, StorageError
from tagwire.records import Record
from tagwire.spark.jobs.land import BatchSettings, LandListener, TableSettings, land
from tagwire.spark.jobs.landed import Batch
from tagwire.spark.jobs.replay import landed_rows
from tagwire.spark.tables.parquet_table import ParquetTable

from .test_land import DAY, NOON, table_of
from .test_topic import batch

pytestmark = pytest.mark.spark

FLIGHT = """{"type": "data", "name": "Landing", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
  {"name": "Carrier", "type": "string", "versions": "0+"},
  {"name": "Legs", "type": "[]Leg", "versions": "0+", "fields": [
    {"name": "Minutes", "type": "uint16", "versions": "0+"}]}]}"""
JSON = {"value.format": "json", "value.schema": "carrier string, minutes int"}


def documents(count: int) -> list[Record]:
    found = [
        Record(
            f"k{i}".encode(), json.dumps({"carrier": "UA", "minutes": i, "more": 1}).encode(), (), NOON + i % 2 * DAY
        )
        for i in range(count)
    ]
    return [*found, Record(b"bad", b'{"carrier": 1}', (), NOON), Record(b"none", None, (), NOON)]


def rows_of(out: Path) -> list[dict]:
    return table_of(out).sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()


def test_json_lands_as_typed_columns_with_bad_values_beside_them(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: documents(4)})
    out = tmp_path / "out"
    report = land(broker.bootstrap, topic, out, spark=spark, table=TableSettings(values=JSON, text=True))
    assert (report.rows, report.malformed, report.files) == (6, 1, 1)
    table = table_of(out)
    assert table.schema.field("value").type == pa.struct([("carrier", pa.string()), ("minutes", pa.int32())])
    assert table.column_names == ["key", "value", "partition", "offset", "timestamp", "_corrupt_record"]
    rows = rows_of(out)
    assert [row["value"] for row in rows] == [*({"carrier": "UA", "minutes": i} for i in range(4)), None, None]
    assert [row["_corrupt_record"] for row in rows] == [None] * 4 + [b'{"carrier": 1}', None]
    assert rows[0]["key"] == "k0"

    produce(topic, {1: documents(1)})
    again = land(broker.bootstrap, topic, out, table=TableSettings(values={"mode": "DROPMALFORMED"}))
    assert (again.rows, again.malformed, again.table_rows) == (2, 0, 8)
    produce(topic, {1: documents(0)})
    with pytest.raises(DecodeError, match=f"value of {topic}-1@3"):
        land(broker.bootstrap, topic, out, table=TableSettings(values={"mode": "FAILFAST"}))
    assert land(broker.bootstrap, topic, out).malformed == 1


@pytest.mark.long
def test_json_goes_back_with_its_bytes_and_with_times_to_the_microsecond(spark, broker, topic, produce, tmp_path):
    schema = "at timestamp, b binary, more array<struct<b:binary,day:date>>, n double, exact decimal(9,2)"
    value = {
        "at": "2024-02-29T23:59:59.123456Z",
        "b": "häß",
        "more": [{"b": "", "day": "2024-02-29"}, None],
        "n": 0.5,
        "exact": 12.3,
    }
    produce(topic, {0: [Record(None, json.dumps(value).encode(), (), NOON)]})
    values = {"value.format": "json", "value.schema": schema}
    report = land(broker.bootstrap, topic, tmp_path / "out", spark=spark, table=TableSettings(values=values))
    assert report.malformed == 0
    (row,) = landed_rows(spark, tmp_path / "out").collect()
    assert json.loads(row.value) == value


@pytest.mark.long
def test_a_table_keeps_the_values_that_it_was_begun_with(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: documents(1)})
    out, spec = tmp_path / "out", tmp_path / "landing.json"
    spec.write_text(FLIGHT)
    values = {"value.format": "message", "value.message": str(spec), "value.version": "1"}
    land(broker.bootstrap, topic, out, table=TableSettings(values={**values, "columnNameOfCorruptRecord": "bad"}))
    land(broker.bootstrap, topic, out, table=TableSettings(values=values))
    for changed, said in [
        ({"value.version": "0"}, "begun with value.version=1, not 0"),
        ({"columnNameOfCorruptRecord": "worse"}, "begun with columnNameOfCorruptRecord=bad, not worse"),
    ]:
        with pytest.raises(StorageError, match=said):
            land(broker.bootstrap, topic, out, table=TableSettings(values={**values, **changed}))
    with pytest.raises(StorageError, match=r"begun with value.format=message, not json"):
        land(broker.bootstrap, topic, out, table=TableSettings(values=JSON))
    spec.unlink()
    assert land(broker.bootstrap, topic, out).table_rows == 3


@pytest.mark.long
def test_fields_that_differ_in_case_alone_land_as_parquet_and_go_back(spark, broker, topic, produce, tmp_path, capsys):
    produce(topic, {0: [Record(None, b'{"id":1,"ID":2}', (), NOON)]})
    out, again = str(tmp_path / "out"), f"{topic}-again"
    values = {"value.format": "json", "value.schema": "id bigint, ID bigint"}
    with pytest.raises(ConfigError, match=r"'value\.id' and 'value\.ID'"):
        land(broker.bootstrap, topic, tmp_path / "delta", table=TableSettings(values=values), spark=spark)
    land(broker.bootstrap, topic, out, format="parquet", table=TableSettings(values=values), spark=spark)
    with pytest.raises(ConfigError, match=r"set spark\.sql\.caseSensitive=true"):
        landed_rows(spark, out)
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(again, num_partitions=1, configs={"retention.ms": "-1"})])
    assert main(["replay", again, "--table", out, "--bootstrap", broker.bootstrap]) == 0
    (row,) = batch(spark, broker, subscribe=again).collect()
    assert bytes(row.value) == b'{"id":1,"ID":2}'


@pytest.mark.long
def test_a_table_of_messages_goes_back_into_a_topic_byte_by_byte(spark, broker, topic, produce, tmp_path, capsys):
    cls = message_class(FLIGHT)
    written = [cls(carrier=f"c{i}", legs=[cls.Leg(minutes=65535)] * i).encode(1) for i in range(5)]
    values = [*written, b"no message", None]
    produce(topic, {0: [Record(b"k", value, (("a", b"1"),), NOON) for value in values]})
    out, again = str(tmp_path / "out"), f"{topic}-again"
    given = ["--value-format", "message", "--message", FLIGHT, "--version", "1", "--headers", "a"]
    assert main(["land", topic, "--bootstrap", broker.bootstrap, "--to", out, "--json", *given]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first.items() >= {"number": 0, "rows": 7, "malformed": 1, "behind": 0, "files": 1}.items()
    assert last.items() >= {"rows": 7, "malformed": 1, "table_rows": 7, "bytes": first["bytes"]}.items()
    assert not (tmp_path / "out/report.html").exists()
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(again, num_partitions=1, configs={"retention.ms": "-1"})])
    assert main(["replay", again, "--table", out, "--bootstrap", broker.bootstrap]) == 0
    rows = batch(spark, broker, subscribe=again, includeHeaders="true").orderBy("offset").collect()
    assert [row.value and bytes(row.value) for row in rows] == values
    assert [[tuple(pair) for pair in row.headers] for row in rows] == [[("a", b"1")]] * len(values)


@pytest.mark.long
def test_files_hold_no_more_rows_than_asked_and_a_monitor_reads_how_far_it_is(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: documents(10), 1: documents(10)})
    told: list[Batch] = []
    metrics = tmp_path / "land.prom"
    batches = BatchSettings(batch_offsets=12, file_rows=3)
    listener = LandListener(on_batch=told.append)
    report = land(broker.bootstrap, topic, tmp_path / "out", batches=batches, metrics=metrics, listener=listener)
    assert max(len(table_of_file(path)) for path in (tmp_path / "out").glob("*.parquet")) == 3
    assert sum(batch.rows for batch in told) == report.rows == 24
    assert [batch.behind for batch in told] == [12, 0]
    assert sum(batch.bytes for batch in told) == report.bytes == report.table_bytes
    lines = metrics.read_text().splitlines()
    assert f'tagwire_land_rows{{topic="{topic}"}} 24.0' in lines
    assert f'tagwire_land_behind{{topic="{topic}"}} 0.0' in lines
    assert sum(line.startswith("tagwire_land_ended_timestamp_seconds{") for line in lines) == 1


@pytest.mark.long
def test_files_end_at_their_size_whatever_came_before_them(spark, broker, topic, produce, tmp_path):
    out = tmp_path / "out"
    produce(topic, {0: [Record(None, os.urandom(5000), (), NOON) for _ in range(200)]})
    report = land(broker.bootstrap, topic, out, format="parquet", batches=BatchSettings(file_bytes=50_000))
    assert report.files >= 10
    assert max(path.stat().st_size for path in ParquetTable(out).files()) < 110_000


def table_of_file(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read()


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ({"value.format": "bytes"}, ConfigError, "needs message, json, avro, protobuf or json-schema"),
        ({"value.format": "json"}, ConfigError, "value.schema: missing"),
        (
            {"value.format": "json", "value.schema": "a int", "subscribe": "x"},
            ConfigError,
            "subscribe: does not decode",
        ),
        ({**JSON, "mode": "LENIENT"}, ConfigError, "mode='LENIENT'"),
        ({**JSON, "columnNameOfCorruptRecord": "Offset"}, ConfigError, "'Offset' would be a second column"),
        ({"mode": "FAILFAST"}, ConfigError, "value.format: needs"),
    ],
)
def test_wrong_options_of_values_are_refused_before_anything_is_written(broker, topic, tmp_path, values, kind, said):
    with pytest.raises(kind, match=said):
        land(broker.bootstrap, topic, tmp_path / "out", table=TableSettings(values=values))
    assert list(tmp_path.iterdir()) == []
