"""Landing that goes on: what the brokers no longer keep, topics made anew or later, a store that is full, signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tagwire.cli import main
from tagwire.client import Admin, NewTopic
from tagwire.errors import (
    ConfigError,
    RequestTimeoutError,
    SchemaRegistryError,
    StorageError,
    StorageUnavailableError,
)
from tagwire.records import Record
from tagwire.spark.failure import reason
from tagwire.spark.jobs.land import BatchSettings, Follow, LandListener, TableSettings, _followed, land
from tagwire.spark.jobs.land_run import _landed_ends
from tagwire.spark.jobs.land_topics import land_topics
from tagwire.spark.jobs.landed import Batch, LandReport, Progress
from tagwire.spark.tables.parquet_table import ParquetTable

from .preloaded import environment
from .test_land_killed import offsets_of

pytestmark = pytest.mark.spark

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC
SECONDS = 240


def numbered(start: int, end: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%d" % i, (), NOON) for i in range(start, end)]


def remake(broker, topic: str, partitions: int = 2) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([topic])
        admin.create_topics([NewTopic(topic, num_partitions=partitions, configs={"retention.ms": "-1"})])


class Job:
    """A landing that goes on in a thread of its own."""

    def __init__(self, *given, **named) -> None:
        self.stop, self.landed, self.paused = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
        self.pauses: list[str] = []
        self.ended: list = []
        listener = LandListener(on_batch=lambda batch: batch.rows and self.landed.release(), on_pause=self._pause)
        follow = Follow(stop=self.stop, seconds=0.2)
        self._thread = threading.Thread(
            target=self._run, args=given, kwargs={**named, "listener": listener, "follow": follow}
        )
        self._thread.start()

    def _run(self, *given, **named) -> None:
        try:
            self.ended.append(land(*given, **named))
        except Exception as error:
            self.ended.append(error)

    def _pause(self, error, seconds: float) -> None:
        self.pauses.append(str(error))
        self.paused.release()

    def end(self) -> object:
        self.stop.set()
        return self.wait()

    def wait(self) -> object:
        self._thread.join(SECONDS)
        return self.ended[0]


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "delta"])  # by Spark's checkpoint, and by a table's own marks
def test_offsets_that_brokers_no_longer_keep_are_refused_by_name_or_skipped(
    spark, broker, topic, produce, tmp_path, capsys, format
):
    out = tmp_path / "t"
    produce(topic, {0: numbered(0, 5), 1: numbered(0, 2)})
    land(broker.bootstrap, topic, out, format=format, spark=spark)
    produce(topic, {0: numbered(5, 12)})
    with Admin(broker.bootstrap) as admin:
        admin.delete_records({(topic, 0): 8})
    given = ["land", topic, "--bootstrap", broker.bootstrap, "--to", str(out)]
    assert main(given) == 2
    said = capsys.readouterr().err
    assert re.search(rf"{re.escape(str(out))}: .*{topic}-0 .*8.*--on-data-loss=skip goes on with what is kept", said)
    assert len(offsets_of(out)) == 7
    losses = []
    told = LandListener(on_loss=lambda *loss: losses.append(loss))
    report = land(broker.bootstrap, topic, out, on_data_loss="skip", listener=told, spark=spark)
    assert (report.rows, report.partitions[0].first_offset) == (4, 8)
    assert losses == [(0, 5, 8)]
    assert len(offsets_of(out)) == 11


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_what_a_new_partition_has_lost_before_it_was_landed_is_refused_by_name_or_skipped(
    spark, broker, topic, produce, tmp_path, format
):
    out = tmp_path / "t"
    produce(topic, {0: numbered(0, 5)})
    land(broker.bootstrap, topic, out, format=format, spark=spark)
    with Admin(broker.bootstrap) as admin:
        count = next(len(each.partitions) for each in admin.list_topics() if each.name == topic)
        admin.create_partitions({topic: count + 1})
        produce(topic, {count: numbered(0, 9)})
        admin.delete_records({(topic, count): 6})
    said = rf"{re.escape(str(out))}: .*{topic}-{count} goes on at 0, and begins at 6; option on_data_loss=skip"
    with pytest.raises(StorageError, match=said):
        land(broker.bootstrap, topic, out, spark=spark)
    losses = []
    told = LandListener(on_loss=lambda *loss: losses.append(loss))
    report = land(broker.bootstrap, topic, out, on_data_loss="skip", listener=told, spark=spark)
    assert (report.rows, report.partitions[count].first_offset) == (3, 6)
    assert losses == [(count, 0, 6)]
    assert land(broker.bootstrap, topic, out, spark=spark).rows == 0


def test_a_checkpoint_says_where_the_last_micro_batch_that_was_committed_ends(tmp_path):
    table = ParquetTable(tmp_path / "t", tmp_path)
    assert _landed_ends(table, "t") == {}
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    assert _landed_ends(table, "t") == {}
    for number, at in ((9, 3), (10, 5), (11, 8)):
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"t":{{"0":{at},"1":2}}}}')
    for name in ("9", "10", ".9.crc", ".10.crc"):
        (tmp_path / "commits" / name).write_text("v1\n{}")
    assert _landed_ends(table, "t") == {0: 5, 1: 2}


@pytest.mark.long
def test_a_topic_made_anew_while_it_is_landed_ends_the_run_with_what_to_do(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: numbered(0, 3)})
    job = Job(broker.bootstrap, topic, tmp_path / "t", spark=spark)
    assert job.landed.acquire(timeout=SECONDS)
    remake(broker, topic)
    produce(topic, {0: numbered(0, 9)})  # more than before: its offsets alone would not tell
    said = job.wait()
    assert isinstance(said, StorageError)
    assert "was deleted and created again while it was landed" in str(said)
    assert "option restart to begin again" in str(said)
    assert len(offsets_of(tmp_path / "t")) == 3
    report = land(broker.bootstrap, topic, tmp_path / "t", table=TableSettings(restart=True), spark=spark)
    assert (report.rows, report.table_rows) == (9, 12)


@pytest.mark.long
def test_a_store_that_is_full_is_tried_again(spark, broker, topic, produce, tmp_path, monkeypatch):
    produce(topic, {0: numbered(0, 3)})

    def full(rows):
        raise StorageUnavailableError(f"{tmp_path}/t: cannot be written: No space left on device")

    monkeypatch.setattr("tagwire.spark.jobs.land_run.collected", full)
    job = Job(broker.bootstrap, topic, tmp_path / "t", spark=spark)
    assert job.paused.acquire(timeout=SECONDS)
    monkeypatch.undo()
    assert job.landed.acquire(timeout=SECONDS)
    report = job.end()
    assert isinstance(report, LandReport)
    assert (report.rows, job.pauses[0]) == (3, f"{tmp_path}/t: cannot be written: No space left on device")
    assert len(offsets_of(tmp_path / "t")) == 3


@pytest.mark.long
def test_brokers_that_do_not_respond_are_asked_again(spark, broker, topic, produce, tmp_path, monkeypatch):
    produce(topic, {0: numbered(0, 3)})

    def silent(rows):
        raise RequestTimeoutError("kafka-1:9092 did not respond to Fetch within 30.0 s")

    monkeypatch.setattr("tagwire.spark.jobs.land_run.collected", silent)
    job = Job(broker.bootstrap, topic, tmp_path / "t", spark=spark)
    assert job.paused.acquire(timeout=SECONDS)
    monkeypatch.undo()
    assert job.landed.acquire(timeout=SECONDS)
    assert job.end().rows == 3
    assert job.pauses[0] == "kafka-1:9092 did not respond to Fetch within 30.0 s"


@pytest.mark.long
def test_a_partition_that_is_added_as_the_query_begins_is_landed_with_the_others(
    spark, broker, topic, produce, tmp_path, monkeypatch
):
    from tagwire.spark.jobs import land_run

    produce(topic, {0: numbered(0, 3)})
    begin = land_run._query

    def late(*given):
        monkeypatch.undo()
        with Admin(broker.bootstrap) as admin:
            (count,) = (len(each.partitions) for each in admin.list_topics() if each.name == topic)
            admin.create_partitions({topic: count + 1})
        produce(topic, {count: numbered(0, 2)})
        return begin(*given)

    monkeypatch.setattr(land_run, "_query", late)
    assert land(broker.bootstrap, topic, tmp_path / "t", format="delta", spark=spark).rows == 5


@pytest.mark.long
def test_topics_that_are_created_later_are_landed_too(spark, broker, topic, produce, tmp_path):
    stop, landed, done = threading.Event(), threading.Semaphore(0), {}
    told = LandListener(on_batch=lambda batch: batch.rows and landed.release())
    with pytest.raises(ConfigError, match=r"topics_like='\('"):
        land_topics(broker.bootstrap, [], str(tmp_path), like="(", follow=Follow(stop=stop), spark=spark)

    def run() -> None:
        follow = Follow(stop=stop, seconds=0.2)
        done.update(
            land_topics(
                broker.bootstrap,
                [],
                str(tmp_path),
                like=f"{topic}-.*",
                follow=follow,
                spark=spark,
                listener=lambda name: told,
            )
        )

    job = threading.Thread(target=run)
    job.start()
    for name in (f"{topic}-a", f"{topic}-b"):
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(name, num_partitions=1, configs={"retention.ms": "-1"})])
        produce(name, {0: numbered(0, 2)})
        assert landed.acquire(timeout=SECONDS)
    stop.set()
    job.join(SECONDS)
    assert {name: outcome.rows for name, outcome in done.items()} == {f"{topic}-a": 2, f"{topic}-b": 2}


@pytest.mark.parametrize(("raised", "pauses"), [("SchemaRegistryUnavailableError", 2), ("SchemaRegistryError", 0)])
def test_a_registry_that_is_away_is_waited_for_and_one_that_refuses_is_not(monkeypatch, raised, pauses):
    monkeypatch.setattr("tagwire.spark.jobs.land._FIRST_PAUSE", 0.01)
    told, stop = [], threading.Event()

    def run(progress):
        if len(told) == 2:
            stop.set()
            return progress
        raise reason(Exception(f"tagwire.errors.{raised}: schema registry: no connection"))  # as Spark hands it on

    listener = LandListener(on_pause=lambda error, seconds: told.append(error))
    if pauses:
        _followed(run, Follow(stop=stop), listener)
    else:
        with pytest.raises(SchemaRegistryError, match="no connection"):
            _followed(run, Follow(stop=stop), listener)
    assert len(told) == pauses


def test_a_micro_batch_is_told_also_where_the_query_fails_right_behind_it():
    from tagwire.spark.jobs.land_run import LandRun

    class Failed:
        lastProgress = None  # noqa: N815

        def awaitTermination(self, seconds):  # noqa: N802
            raise StorageUnavailableError("no room")

        def stop(self):
            pass

    told = []
    listener = LandListener(on_batch=lambda batch: told.append((batch.number, batch.rows)))
    run = LandRun(None, None, BatchSettings(), listener, None, Progress(), None, {})
    run.published = {1: Batch(1, rows=3), 0: Batch(0, rows=2)}
    with pytest.raises(StorageUnavailableError, match="no room"):
        run._follow(Failed(), None)
    assert told == [(0, 2), (1, 3)]


def test_a_partition_that_has_nearly_all_rows_is_read_by_many_tasks():
    from tagwire.spark.jobs.land_run import LandRun
    from tagwire.spark.source.offsets import OffsetRange, split

    run = LandRun.__new__(LandRun)
    run.batches, run.mode, run.registry = BatchSettings(batch_offsets=1_000_000), None, {}

    class Named:
        skip = False

    class Begun:
        topic, values = "t", {}

    run.identity = Begun()
    most = int(run._options({}, Named(), 8)["maxRecordsPerPartition"])
    skewed = [OffsetRange("t", 0, 0, 950_000), *(OffsetRange("t", part, 0, 5_000) for part in range(1, 11))]
    sizes = [piece.size for piece in split(skewed, None, most)]
    assert len(sizes) >= 16
    assert max(sizes) <= 1_000_000 / 8 / 2
    assert int(run._options({}, Named(), 1000)["maxRecordsPerPartition"]) == 10_000


def rows_told(job: subprocess.Popen[str]) -> int:
    """The rows of the next micro-batch that the command tells of."""
    line = job.stdout.readline()
    assert line, job.stderr.read()  # it has ended
    return json.loads(line)["rows"]


@pytest.mark.timeout(600)
@pytest.mark.long
def test_sigterm_and_ctrl_c_end_the_command_cleanly_with_nothing_lost_or_twice(broker, topic, produce, tmp_path):
    signals = (signal.SIGTERM, signal.SIGINT)
    out = tmp_path / "t"
    command = [sys.executable, "-m", "tagwire", "land", topic, "--bootstrap", broker.bootstrap, "--to", str(out)]
    at, before = 0, 0
    for number in signals:
        produce(topic, {0: numbered(at, at + 3), 1: numbered(at, at + 3)})
        with subprocess.Popen(
            [*command, "--follow", "--every", "0.2", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # which a background job has ignored
        ) as job:
            landed = 0
            while landed < before + 6:
                landed += rows_told(job)
            produce(topic, {0: numbered(at + 3, at + 5)})
            while landed < before + 8:
                landed += rows_told(job)
            job.send_signal(number)
            rest, said = job.communicate(timeout=SECONDS)
            assert job.returncode == 0, said
            assert json.loads(rest.splitlines()[-1])["rows"] == before + 8
            assert "stopping after the micro-batch that is being written" in said
            assert "Traceback" not in said
        at, before = at + 5, 2
        produce(topic, {1: numbered(at - 2, at)})
    assert main([*command[3:]]) == 0
    found = offsets_of(Path(out))
    assert set(found.values()) == {1}
    assert len(found) == 10 * len(signals)
