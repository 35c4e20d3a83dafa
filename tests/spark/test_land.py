"""The landing job on a real broker: what lands, what a second run adds, and what is said when it cannot."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from itertools import islice
from pathlib import Path
from random import Random
from threading import Event

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tagwire.broker import Broker
from tagwire.cli import main
from tagwire.client import LATEST, Admin, Client, NewTopic, Producer, Reader
from tagwire.errors import ConfigError, ConnectError, CorruptRecordError, KafkaError, StorageError
from tagwire.records import Record
from tagwire.spark.jobs import flights
from tagwire.spark.jobs.land import BatchSettings, CatalogSettings, Follow, LandListener, TableSettings, Upkeep, land
from tagwire.spark.jobs.landed import Landed, Progress
from tagwire.spark.jobs.report import first_rows

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC
DAY = 86_400_000


def numbered(start: int, end: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%d" % i, (), NOON + (i % 3) * DAY) for i in range(start, end)]


def table_of(out: Path) -> pa.Table:
    return ds.dataset(out, format="parquet", partitioning="hive").to_table()


def offsets_of(out: Path) -> Counter[tuple[int, int]]:
    table = table_of(out)
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist()))


def spread(*counts: int) -> Counter[tuple[int, int]]:
    return Counter((partition, offset) for partition, count in enumerate(counts) for offset in range(count))


@pytest.mark.spark
def test_a_topic_lands_once_and_a_second_run_adds_what_is_new(spark, broker, topic, produce, tmp_path):
    told: list[Progress] = []
    produce(topic, {0: numbered(0, 30), 1: numbered(0, 12)})
    out = tmp_path / "out"
    report = land(
        broker.bootstrap,
        topic,
        out,
        batches=BatchSettings(batch_offsets=20),
        listener=LandListener(on_progress=told.append),
    )
    assert offsets_of(out) == spread(30, 12)
    assert len(list(out.glob("*.parquet"))) == report.table_files == report.batches
    assert report.partitions == {0: Landed(30, 0, 29), 1: Landed(12, 0, 11)}
    assert (report.rows, report.table_rows, report.header_keys) == (42, 42, {})
    assert report.batches > 1
    assert (told[-1].rows, told[-1].behind) == (42, 0)
    assert {"ApiVersions", "Metadata", "ListOffsets", "Fetch"} <= report.versions.keys()

    assert land(broker.bootstrap, topic, out).rows == 0
    produce(topic, {1: numbered(12, 15)})
    again = land(broker.bootstrap, topic, out)
    assert (again.rows, again.partitions, again.table_rows) == (3, {1: Landed(3, 12, 14)}, 45)
    assert offsets_of(out) == spread(30, 15)


@pytest.mark.long
@pytest.mark.spark
def test_headers_become_columns_with_their_last_value_as_text(spark, broker, topic, produce, tmp_path):
    records = [
        # A header called date is a column where dates are no directories.
        Record(b"k", b"\xff", (("a", b"first"), ("b c", "é".encode()), ("a", b"last"), ("date", b"Thu")), NOON),
        Record(None, None, (("a", b"\xff\x00"), ("other", b"")), NOON),
        Record(b"", "ü".encode(), (("a", b"x"), ("a", None)), NOON),
        Record(b"", b"", (), NOON),
    ]
    produce(topic, {0: records})
    settings = TableSettings(headers=["a", "b c", "date"], text=True)
    report = land(broker.bootstrap, topic, tmp_path / "out", format="parquet", table=settings)
    table = table_of(tmp_path / "out").sort_by("offset")
    assert table.column_names == ["key", "value", "partition", "offset", "timestamp", "a", "b c", "date"]
    assert table["a"].to_pylist() == ["last", "0xff00", None, None]
    assert table["b c"].to_pylist() == ["é", None, None, None]
    assert table["date"].to_pylist() == ["Thu", None, None, None]
    assert table["value"].to_pylist() == ["0xff", None, "ü", ""]
    assert table["key"].to_pylist() == ["k", None, "", ""]
    assert table.schema.field("timestamp").type == pa.timestamp("us", "UTC")
    assert report.header_keys == {"a": 3, "b c": 1, "date": 1, "other": 1}

    with pytest.raises(StorageError, match="was begun with headers a,b c,date, not a"):
        land(broker.bootstrap, topic, tmp_path / "out", table=TableSettings(headers=["a"]))


@pytest.mark.long
@pytest.mark.spark
def test_an_empty_topic_lands_as_an_empty_table(spark, broker, topic, produce, tmp_path):
    assert land(broker.bootstrap, topic, tmp_path / "out").table_rows == 0
    produce(topic, {0: numbered(0, 1)})
    assert land(broker.bootstrap, topic, tmp_path / "out").table_rows == 1


@pytest.mark.spark
@pytest.mark.long
def test_micro_batches_without_rows_leave_one_file_that_has_the_columns_and_is_not_missed(
    spark, broker, topic, produce, tmp_path
):
    out = tmp_path / "out"
    settings = TableSettings(values={"value.format": "json", "value.schema": "n int", "mode": "DROPMALFORMED"})
    assert land(broker.bootstrap, topic, out, format="parquet", table=settings).files == 1  # an empty topic
    assert "value" in spark.read.parquet(str(out)).columns
    produce(topic, {0: [Record(None, b"no json", (), NOON)]})
    assert land(broker.bootstrap, topic, out).files == 0  # all filtered
    with Producer(broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b'{"n": 1}', partition=1)
        producer.flush()
        producer.abort_transaction()
    committed = {"isolation.level": "read_committed"}
    assert land(broker.bootstrap, topic, out, properties=committed).files == 0  # aborted, and its control record
    for path in out.glob("*.parquet"):
        path.unlink()
    produce(topic, {0: [Record(None, b'{"n": 1}', (), NOON)]})
    assert land(broker.bootstrap, topic, out, properties=committed).table_rows == 1


@pytest.mark.spark
def test_a_table_whose_files_are_gone_is_refused_by_land_in_one_line(spark, broker, topic, produce, tmp_path, capsys):
    out = tmp_path / "out"
    produce(topic, {0: numbered(0, 3)})
    land(broker.bootstrap, topic, out, format="parquet")
    for path in out.glob("*.parquet"):
        path.unlink()
    produce(topic, {0: numbered(3, 5)})
    assert main(["land", topic, "--bootstrap", broker.bootstrap, "--to", str(out)]) == 2
    said = capsys.readouterr().err
    assert "its files are gone, but the checkpoint" in said
    assert said.count("\n") == 1
    assert not list(out.glob("*.parquet"))


@pytest.mark.spark
def test_a_corrupt_batch_is_named_and_nothing_of_its_micro_batch_lands(spark, tmp_path):
    with Broker(tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        Admin(client).create_topics([NewTopic("t", configs={"retention.ms": "-1"})])
        fill_one(client, "t", numbered(0, 5))
        fill_one(client, "t", numbered(5, 9))
        (log,) = (tmp_path / "data").rglob("t-0/*.log")
        content = bytearray(log.read_bytes())
        content[-3] ^= 0xFF
        log.write_bytes(content)
        with pytest.raises(CorruptRecordError, match="t-0@5"):
            land(broker.bootstrap, "t", tmp_path / "out")
    assert list((tmp_path / "out").glob("[!_]*")) == []


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("partition_by", "folders"),
    [
        ("none", set()),
        ("month", {"month=2013-07-01", "month=2013-08-01"}),
    ],
)
def test_the_directory_that_is_named_is_the_table_for_every_reader(
    spark, broker, topic, produce, tmp_path, partition_by, folders
):
    records = [Record(b"k", b"%d" % n, (("origin", b"EWR"),), NOON + (27 + n % 3) * DAY) for n in range(30)]
    produce(topic, {0: records[:20], 1: records[20:]})
    out = tmp_path / "lake"
    settings = TableSettings(headers=["origin"], text=True, partition_by=partition_by)
    land(broker.bootstrap, topic, out, format="parquet", table=settings)
    (out / "_staging/left-by-a-kill").mkdir(parents=True)
    (out / "_staging/left-by-a-kill/part-0.parquet").write_bytes(b"half a file")
    for kind in ("html", "json"):
        (out / f"_report.{kind}").write_text("beside the table")
    assert {path.name for path in out.glob("*=*")} == folders
    folder = {"none": [], "month": ["month"]}[partition_by]
    columns = ["key", "value", "partition", "offset", "timestamp", "origin", *folder]
    rows = spark.read.parquet(str(out))
    assert rows.columns == columns
    assert sorted(int(row.value) for row in rows.collect()) == list(range(30))
    for table in (pq.read_table(out), ds.dataset(out, format="parquet", partitioning="hive").to_table()):
        assert table.column_names == columns
        assert sorted(map(int, table["value"].to_pylist())) == list(range(30))
    frame = pd.read_parquet(out)
    assert (list(frame), sorted(map(int, frame["value"]))) == (columns, list(range(30)))

    produce(topic, {1: records[:3]})
    assert land(broker.bootstrap, topic, out).table_rows == 33
    assert spark.read.parquet(str(out)).count() == 33
    assert not list((out / "_staging").iterdir())


@pytest.mark.spark
def test_a_time_in_no_year_of_four_digits_lands_without_a_date_and_closes_the_table_to_nobody(
    spark, broker, topic, produce, tmp_path
):
    topic, anything = f"{topic}-far", {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, configs=anything)])
    microseconds = NOON * 1000  # where Kafka has milliseconds: a year behind 45000
    produce(topic, {0: [Record(None, b"%d" % n, (), at) for n, at in enumerate([NOON, microseconds, -1])]})
    settings = TableSettings(partition_by="date")
    report = land(broker.bootstrap, topic, tmp_path / "t", table=settings, upkeep=Upkeep(optimize=True))
    found = DeltaTable(tmp_path / "t").to_pyarrow_table(columns=["offset", "date"]).sort_by("offset")
    assert found["date"].to_pylist() == [date(2013, 7, 4), None, date(1969, 12, 31)]
    names, rows = first_rows(report)
    assert sorted(row[names.index("date")] for row in rows) == ["", "1969-12-31", "2013-07-04"]


@pytest.mark.long
@pytest.mark.spark
def test_a_micro_batch_is_one_file_however_many_tasks_and_cores_make_it(spark, broker, topic, produce, tmp_path):
    chance = Random(1)
    for partition in (0, 1):  # megabytes of each, so that Spark could make files of them
        produce(topic, {partition: [Record(None, chance.randbytes(2000), (), NOON + n * DAY) for n in range(3000)]})
    report = land(broker.bootstrap, topic, tmp_path / "one")
    assert (report.batches, report.files, report.rows) == (1, 1, 6000)
    assert report.bytes > 10_000_000


def fill_one(client: Client, topic: str, records: list[Record]) -> None:
    with Producer(client) as producer:
        for record in records:
            producer.send(topic, record.value, key=record.key, timestamp=record.timestamp, partition=0)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"bootstrap": "127.0.0.1:1"}, ConnectError, "127.0.0.1:1"),
        ({"topic": "no-such"}, KafkaError, "UNKNOWN_TOPIC_OR_PARTITION .* 'no-such'"),
        ({"topic": "a,b"}, ConfigError, "'a,b'"),
        ({"table": TableSettings(headers=["a", "A"])}, ConfigError, "headers: 'A' would be a second column"),
        ({"table": TableSettings(headers=["Offset"])}, ConfigError, "headers: 'Offset' would be a second column"),
        ({"table": TableSettings(headers=[""])}, ConfigError, "headers: an empty name"),
        (
            {"table": TableSettings(headers=["date"], partition_by="date")},
            ConfigError,
            "headers: 'date' would be a second column",
        ),
        (
            {"table": TableSettings(partition_by="tenant,day", headers=["h"])},
            ConfigError,
            "partition_by=tenant,date: 'tenant' is no column; month, date, hour, partition, h are",
        ),
        ({"table": TableSettings(partition_by="offset")}, ConfigError, "'offset' is no column to partition by"),
        ({"table": TableSettings(partition_by="day,month")}, ConfigError, "partition_by=day,month: names two times"),
        ({"table": TableSettings(partition_by="partition,partition")}, ConfigError, "or a column twice"),
        (
            {"table": TableSettings(partition_by="_h", headers=["_h"])},
            ConfigError,
            "'_h' has characters that readers of directories do not take",
        ),
        ({"to": "s3://bucket/table", "format": "parquet"}, StorageError, "s3://bucket/table"),
        ({"format": "parquet", "upkeep": Upkeep(vacuum=True)}, ConfigError, "vacuum: plain Parquet files have no log"),
        ({"format": "parquet", "table": TableSettings(evolve=True)}, ConfigError, "evolve: plain Parquet files"),
        ({"format": "iceberg", "upkeep": Upkeep(optimize=True)}, ConfigError, "optimize: pyiceberg rewrites no files"),
        ({"format": "iceberg", "to": "s3://bucket/table"}, StorageError, "needs a catalog of yours"),
        ({"format": "parquet", "catalog": CatalogSettings(name="prod")}, ConfigError, "catalog: a table of the format"),
        ({"format": "orc"}, ConfigError, "format='orc': needs delta, iceberg or parquet"),
        ({"batches": BatchSettings(batch_offsets=0)}, ConfigError, "batch_offsets=0"),
        ({"batches": BatchSettings(file_rows=0)}, ConfigError, "file_rows=0"),
        ({"batches": BatchSettings(file_bytes=-1)}, ConfigError, "file_bytes=-1"),
        ({"spark": object(), "format": "parquet"}, ConfigError, "format parquet: .*Spark Connect has on its server"),
        ({"on_data_loss": "ignore"}, ConfigError, "on_data_loss='ignore': needs fail or skip"),
        *(
            (
                {"follow": Follow(stop=Event(), seconds=seconds)},
                ConfigError,
                "follow.seconds=.*: needs a number from 0.01",
            )
            for seconds in (-1.0, 0.0, 0.001, float("nan"), float("inf"))
        ),
        ({"metrics": "/nosuch/land.prom"}, StorageError, "/nosuch: metrics are written into a directory"),
        ({"properties": {"security.protocol": "NONE"}}, ConfigError, "security.protocol"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(broker, topic, tmp_path, change, kind, said):
    given = {"bootstrap": broker.bootstrap, "topic": topic, "to": tmp_path / "out", **change}
    with pytest.raises(kind, match=said):
        land(**given)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_somebody_else_is_left_alone(broker, topic, tmp_path):
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(StorageError, match="holds other files"):
        land(broker.bootstrap, topic, tmp_path)
    with pytest.raises(StorageError, match="holds other files"):
        flights.land_flights(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_a_missing_java_is_named(broker, topic, tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="needs Java 17 or newer"):
        land(broker.bootstrap, topic, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """The process stops here."""


def test_a_fill_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    some = list(islice(flights.departures(), 25_000))
    monkeypatch.setattr(flights, "departures", lambda: iter(some))
    monkeypatch.setattr(flights, "DEPARTURES", len(some))

    def stop(records: int) -> None:
        if records >= 20_000:
            raise Killed

    with Broker(tmp_path, fsync="never") as broker:
        with pytest.raises(Killed):
            flights.fill(broker.bootstrap, on_progress=stop)
        written = flights.fill(broker.bootstrap)
        assert written < len(some)
        assert flights.fill(broker.bootstrap) == 0
        assert traces_of(broker) == Counter(record.headers[2][1] for record in some)


def traces_of(broker: Broker) -> Counter[bytes]:
    with Client(broker.bootstrap) as client:
        ends = client.list_offsets({(flights.TOPIC, index): LATEST for index in range(flights.PARTITIONS)})
        reader = Reader(client, dict.fromkeys(ends, 0), end_offsets=ends, columns=("headers", "value"))
        rows = [row for batch in reader for row in batch.to_pylist()]
    assert all(json.loads(row["value"])["year"] == 2013 for row in rows)
    return Counter(row["headers"][2]["value"] for row in rows)
