"""The driver of a sink, as simulated worlds have it, on a real broker: where it stops, and what becomes of it then."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import EARLIEST, Admin, NewTopic, Reader
from tagwire.errors import RequestTimeoutError, TagwireError
from tagwire.spark.sink.driver import UndecidedError
from tests.simulation.workload import spark_driver
from tests.simulation.workload.spark_driver import MOMENTS, Abandoned, Died, SinkDriver
from tests.simulation.workload.spark_tasks import SinkTasks

ROWS = [["a", "b"], [], ["c"]]


class Query:
    """A query of this process: `stops` as its plan has them; errors that no plan has are in `unexpected`."""

    def __init__(self, bootstrap: str, **spec: Any) -> None:
        self.spec = {"sink": "sink", "query": "query", "topic": "sunk", "nap": 0.0, "workers": 2, "fail": 0.0}
        self.spec |= {"late": 0.0, "timeout": 60.0, **spec}
        self.threads: list[threading.Thread] = []
        self.unexpected: list[BaseException] = []
        self.bootstrap = bootstrap
        shared = (lambda: True), self.threads, self.unexpected.append
        self.decided: list[int] = []
        self.left: list[TagwireError] = []
        told = (lambda _, decision: self.decided.append(decision.batch_id)), self.left.append
        self.driver = SinkDriver(self.spec, Random(1), self.properties, *shared, *told)
        self.tasks = SinkTasks(self.spec, Random(1), self.driver.options, *shared)

    def properties(self, role: str) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "client.id": role, "transaction.timeout.ms": 60_000}

    def written(self, batch: int) -> list[Any]:
        messages, failure = self.tasks.run(pickle.dumps(self.driver.planned()), batch, ROWS)
        assert failure is None
        return messages

    def run(self, batch: int) -> None:
        self.driver.commit(self.written(batch), batch)

    def seen(self) -> list[bytes]:
        with Reader(self.bootstrap, {("sunk", 0): EARLIEST}, stop_at_end=True, isolation="read_committed") as reader:
            return sorted(record.value for record in reader.records())

    def ends(self) -> None:
        for thread in self.threads:
            thread.join()
        assert self.unexpected == []


def _raise(error: Exception) -> None:
    raise error


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("sunk", num_partitions=1)])
        yield broker.bootstrap


def test_a_driver_comes_by_every_moment_at_which_a_plan_may_have_it_stop(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = set()
    monkeypatch.setattr(SinkDriver, "stops", lambda driver, step, moment: reached.add(moment))
    query = Query(bootstrap)
    query.run(0)
    query.driver.abort(query.written(1), 1)
    query.ends()
    assert query.seen() == [b"a", b"b", b"c"]
    assert reached == set(MOMENTS)
    assert set(query.decided) == {0}  # the one that is aborted is none


@pytest.mark.parametrize("moment", ["decides", "checks", "has-checked", "has-decided", "is-done"])
def test_where_a_step_dies_the_next_driver_goes_on(bootstrap: str, moment: str) -> None:
    query = Query(bootstrap, stops={moment: {"dies": 1.0}})
    messages = query.written(0)
    with pytest.raises(Died, match=f"where it {moment}"):
        query.driver.commit(messages, 0)
    query.driver.abort(messages, 0)
    query.spec["stops"] = {}
    query.run(0)
    query.ends()
    assert query.seen() == [b"a", b"b", b"c"]


def test_a_step_whose_query_goes_on_without_it_is_done_all_the_same(bootstrap: str) -> None:
    query = Query(bootstrap, stops={"has-decided": {"is-left": 1.0}})
    with pytest.raises(Abandoned):
        query.run(0)
    query.ends()
    assert query.seen() == [b"a", b"b", b"c"]
    assert query.left == []


def test_what_becomes_of_a_step_for_which_nobody_waits_is_told(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(bootstrap, stops={"has-listed": {"is-left": 1.0}})
    sleeping = SimpleNamespace(sleep=lambda _: _raise(RequestTimeoutError("it sleeps for ever")))
    monkeypatch.setattr(spark_driver, "time", sleeping)
    with pytest.raises(Abandoned):
        query.written(0)
    query.ends()
    assert [str(error) for error in query.left] == ["it sleeps for ever"]


def test_who_has_been_left_decides_nothing_once_there_is_another_driver(bootstrap: str) -> None:
    query = Query(bootstrap)
    older, newer = query.written(0), query.written(0)
    with pytest.raises(UndecidedError):
        query.driver.commit(older, 0)
    query.driver.commit(newer, 0)
    query.ends()
    assert query.seen() == [b"a", b"b", b"c"]
