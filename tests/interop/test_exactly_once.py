"""What may die when a query is written exactly once: against Apache Kafka with both protocols of transactions, and
against the embedded broker in a process of its own. First step by step, then by queries of Spark."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("pyspark")

from tagwire.client import Client, Producer
from tagwire.errors import KafkaError
from tagwire.spark.sink import driver
from tagwire.spark.sink.decisions import PARTITION, TOPIC
from tagwire.spark.sink.transactional_ids import decisions_id

from ..limits import stretch
from ..spark.exactly_once_query import Query, until
from ..spark.exactly_once_stories import ExactlyOnceStories
from .broker_process import BrokerProcess
from .conftest import Programs
from .exactly_once_rows import LIMIT, Rows
from .real_node import RealNode
from .spark_job import Jobs, KilledError, SparkJob

EMBEDDED: Final = "embedded"
FIRST: Final = "4.3.1 at transaction.version 1"
NEWEST: Final = "4.3.1"

CLUSTERS: Final = {
    "3.9.2": ("3.9.2", (), 0),
    FIRST: ("4.3.1", ("transaction.version=1",), 1),
    NEWEST: ("4.3.1", (), 2),
}
"""Release, features that are not at its own level, and the transaction.version that this makes."""


@dataclass(frozen=True)
class Cluster:
    """A broker that stands. `kill` and `start`: its process."""

    bootstrap: str
    kill: Callable[[], None]
    start: Callable[[], None]


@pytest.fixture(scope="module", params=[*CLUSTERS, EMBEDDED])
def cluster(
    request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("broker")
    if request.param == EMBEDDED:
        broker = BrokerProcess(folder)
        with broker.running():
            yield Cluster(broker.addresses["PLAIN"], broker.kill, broker.start)
        assert not broker.unexpected()
        return
    release, features, version = CLUSTERS[request.param]
    jars = programs(release).jars
    node = RealNode.alone(folder)
    node.format(jars, features)
    with node.running(jars):
        with Client(node.address()) as client:
            client.versions()
            assert client.finalized_features().get("transaction.version", 0) == version
        yield Cluster(node.address(), node.kill, partial(node.start, jars))


def on(*names: Any) -> pytest.MarkDecorator:
    """Runs tests against these clusters alone."""
    return pytest.mark.parametrize("cluster", names, indirect=True, scope="module")


def restarted(cluster: Cluster) -> None:
    """It dies, and is there again after a second."""
    cluster.kill()
    threading.Timer(1, cluster.start).start()


@pytest.fixture
def query(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query.new(cluster.bootstrap, monkeypatch)


class TestSteps(ExactlyOnceStories):
    """Where this process is Spark."""

    def test_a_coordinator_that_restarts_in_the_middle_of_a_commit_is_asked_again(
        self, query: Query, cluster: Cluster
    ) -> None:
        messages = query.tasks(0, [b"a"], [b"b"], [b"c"])
        end_all = driver._end_all
        ended: list[Any] = []

        def restarting(client: Client, transactions: Sequence[Any], **options: Any) -> dict[Any, KafkaError]:
            ended.extend(transactions)
            first = end_all(client, transactions[:1], **options)
            restarted(cluster)
            return first | end_all(client, transactions[1:], **options)

        query.monkeypatch.setattr(driver, "_end_all", restarting)
        query.commit(0, messages)
        query.lives(end_all)
        assert len(ended) == 3
        query.run(1, [b"d"])
        assert query.seen() == [b"a", b"b", b"c", b"d"]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path_factory.mktemp("jobs") / "log")
    yield jobs
    jobs.close()


@pytest.fixture
def rows(cluster: Cluster, tmp_path: Path) -> Rows:
    return Rows.new(cluster.bootstrap, tmp_path)


@on(NEWEST, pytest.param(EMBEDDED, marks=pytest.mark.nightly))
class TestQueries:
    """Where Spark is Spark."""

    def test_a_commit_that_raises_after_its_decision_is_carried_out_by_the_next_driver(
        self, jobs: Jobs, rows: Rows
    ) -> None:
        rows.grow(2)
        assert "the driver fails after its decision" in str(jobs.run(rows.query(3, "raise:1")))
        assert len(rows.seen()) < LIMIT
        assert rows.are_held_up()
        assert jobs.run(rows.query(4)) is None
        assert rows.all_are_seen_once()

    def test_a_worker_serves_two_queries(self, jobs: Jobs, rows: Rows, tmp_path: Path) -> None:
        other = Rows.new(rows.bootstrap, tmp_path / "other")
        for one in (rows, other, rows):
            one.grow(1)
            assert jobs.run(one.query(2)) is None
        assert rows.all_are_seen_once()
        assert other.all_are_seen_once()

    def test_a_coordinator_that_restarts_in_the_middle_of_a_commit_is_asked_again(
        self, jobs: Jobs, rows: Rows, cluster: Cluster
    ) -> None:
        rows.grow(2)
        jobs.begin(told := rows.query(3, "wait:1"))
        until(Path(told["faultAt"]).exists)
        restarted(cluster)
        Path(f"{told['faultAt']}-over").touch()
        assert jobs.ended() is None
        assert rows.all_are_seen_once()

    def test_a_driver_that_comes_back_too_late_stops_and_says_what_is_lost(self, jobs: Jobs, rows: Rows) -> None:
        rows.grow(1)
        timeout = {"kafka.transaction.timeout.ms": str(round(12_000 * stretch()))}
        error = str(jobs.run(rows.query(2, "raise:0", **timeout)))
        assert "fails after its decision" in error, error
        until(lambda: not rows.are_held_up())
        for _ in range(2):
            error = str(jobs.run(rows.query(2)))
            assert "micro-batch 0 of query" in error
            assert "2 transactions 2 were aborted: tagwire." in error
            assert f"{LIMIT // 2} rows)" in error
        assert rows.seen() == []

    def test_a_checkpoint_that_was_rolled_back_is_refused_and_a_new_one_begins_anew(
        self, jobs: Jobs, rows: Rows
    ) -> None:
        named = {"exactlyOnceId": rows.source}
        rows.grow(1)
        assert jobs.run(rows.query(2, **named)) is None
        before = shutil.copytree(rows.checkpoint, rows.folder / "before")
        rows.grow(2)
        assert jobs.run(rows.query(2, **named)) is None
        shutil.rmtree(rows.checkpoint)
        shutil.move(before, rows.checkpoint)
        assert "micro-batch 1 is to be written, but 2 of the same query is committed" in str(
            jobs.run(rows.query(2, **named))
        )
        assert rows.all_are_seen_once()
        shutil.rmtree(rows.checkpoint)
        assert jobs.run(rows.query(2, **named)) is None
        assert rows.seen() == sorted(2 * rows.values)

    def test_another_querys_open_decision_is_waited_for(self, jobs: Jobs, rows: Rows) -> None:
        rows.grow(1)
        with Producer(rows.bootstrap, transactional_id=decisions_id("someone-else")) as other:
            other.init_transactions()
            other.begin_transaction()
            other.send(TOPIC, b"{}", key=b"someone-else.x", partition=PARTITION)
            other.flush()
            jobs.begin(rows.query(2))
            time.sleep(3)
            assert rows.seen() == []
            other.abort_transaction()
        assert jobs.ended() is None
        assert rows.all_are_seen_once()


@on(pytest.param(FIRST, marks=pytest.mark.nightly), NEWEST, EMBEDDED)
class TestKilled:
    """Where Spark dies."""

    def test_a_driver_killed_between_decision_and_end_and_between_ends_writes_every_row_once(
        self, jobs: Jobs, rows: Rows
    ) -> None:
        """Restarted with another number of tasks each time. Of five tasks two have a worker at a time."""
        rows.grow(3)
        with pytest.raises(KilledError):
            jobs.run(rows.query(3, "kill:0"))
        assert rows.seen() == []
        with pytest.raises(KilledError):
            jobs.run(rows.query(5, "kill:2"))
        assert LIMIT <= len(rows.seen()) < 2 * LIMIT
        assert jobs.run(rows.query(2)) is None
        assert rows.all_are_seen_once()


@on(NEWEST)
class TestSeveral:
    """Where more than one writes the same rows."""

    def test_two_drivers_of_one_query_write_every_row_once_between_them(self, jobs: Jobs, rows: Rows) -> None:
        rows.grow(1)
        assert jobs.run(rows.query(2)) is None
        copied = Rows(rows.bootstrap, rows.folder / "copied", rows.source, rows.target)
        shutil.copytree(rows.checkpoint, copied.checkpoint)
        rows.grow(3)
        other = SparkJob(rows.folder / "log")
        try:
            told = [rows.query(2), copied.query(3)]
            ended: list[str | None] = ["not yet"]
            for _ in range(9):
                jobs.begin(told[0])
                other.begin(**told[1])
                ended = [jobs.ended(), other.ended()]
                assert all(error is None or _is_refusal(error) for error in ended), ended
                if None in ended:
                    break
        finally:
            other.close()
        assert None in ended
        assert rows.all_are_seen_once()


def _is_refusal(error: str) -> bool:
    """Of a driver while another one runs, or long after it has run."""
    said = ("another driver of query", "cannot be committed any more", "is committed already", "FENCED", "EPOCH")
    return any(each in error for each in said)
