"""Exactly once: whatever dies between which steps, every row stands once for readers of committed records.

These tests are Spark: they make, pickle and call the writer as it does, and stop wherever a driver may die.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from tagwire.broker import Broker
from tagwire.client import EARLIEST, LATEST, Admin, NewTopic, Producer, Reader
from tagwire.errors import ProducerFencedError, TagwireError
from tagwire.spark.sink import attempts, driver, exactly_once
from tagwire.spark.sink.decisions import PARTITION, TOPIC, Decision, TopicUnfitError
from tagwire.spark.sink.driver import LostTransactionError, UndecidedError
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter, Written
from tagwire.spark.sink.ids import decisions_id
from tagwire.spark.sink.options import parse

SCHEMA = StructType([StructField("value", BinaryType())])
_numbers = count()


class Died(BaseException):
    """The driver's process is gone at this point."""


@dataclass
class Query:
    """A streaming query, and what Spark does for it."""

    broker: Broker
    topic: str
    monkeypatch: pytest.MonkeyPatch
    own_id: str = ""
    query_id: str = "query-1"
    written: list[bytes] = field(default_factory=list)

    def writer(self) -> ExactlyOnceWriter:
        options = {"kafka.bootstrap.servers": self.broker.bootstrap, "topic": self.topic, "exactlyOnceId": self.own_id}
        return ExactlyOnceWriter(parse(options), SCHEMA)

    def planned(self) -> bytes:
        """The writer as the tasks of a micro-batch get it."""
        writer = self.writer()
        pickled = pickle.dumps(writer)
        assert pickle.dumps(writer) == pickled  # Spark pickles it twice
        return pickled

    def attempt(self, pickled: bytes, batch: int, values: Sequence[bytes]) -> Written:
        """One attempt of a task."""
        running = (self.query_id, batch)
        self.monkeypatch.setattr(exactly_once, "_running", lambda: running)
        rows = pa.record_batch([pa.array(list(values), pa.binary())], ["value"])
        message: Any = pickle.loads(pickled).write(iter([rows]))
        return pickle.loads(pickle.dumps(message))

    def tasks(self, batch: int, *tasks: Sequence[bytes]) -> list[Written]:
        pickled = self.planned()
        return [self.attempt(pickled, batch, values) for values in tasks]

    def run(self, batch: int, *tasks: Sequence[bytes]) -> None:
        """A micro-batch from its start to its end."""
        self.commit(batch, self.tasks(batch, *tasks))

    def commit(self, batch: int, messages: Sequence[Written | None]) -> None:
        self.writer().commit(list(messages), batch)

    def abort(self, batch: int, messages: Sequence[Written | None]) -> None:
        self.writer().abort(list(messages), batch)

    def seen(self) -> list[bytes]:
        """What readers of committed records see, up to what holds them up."""
        with Reader(
            self.broker.bootstrap, {(self.topic, 0): EARLIEST}, stop_at_end=True, isolation="read_committed"
        ) as r:
            return [record.value for record in r.records()]

    def is_held_up(self) -> bool:
        with Admin(self.broker.bootstrap) as admin:
            at = (self.topic, 0)
            ends = [
                admin._client.list_offsets({at: LATEST}, isolation=level)[at]
                for level in ("read_committed", "read_uncommitted")
            ]
        return ends[0] < ends[1]

    def decisions(self) -> list[Decision]:
        with Reader(self.broker.bootstrap, {(TOPIC, 0): EARLIEST}, stop_at_end=True, isolation="read_committed") as r:
            return [Decision.decode(one.value, "") for one in r.records() if one.key == self.own_id.encode()]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker"), fsync="never") as broker:
        yield broker


@pytest.fixture
def query(running: Broker, monkeypatch: pytest.MonkeyPatch) -> Query:
    number = next(_numbers)
    with Admin(running.bootstrap) as admin:
        admin.create_topics([NewTopic(f"target-{number}", num_partitions=1)])
    return Query(running, f"target-{number}", monkeypatch, f"query-{number}")


def dies_at_end(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The driver dies instead of ending transaction `number`, counted from 0."""
    calls = count()
    end = driver._end

    def dying(*arguments: Any, **options: Any) -> None:
        if next(calls) == number:
            raise Died
        end(*arguments, **options)

    monkeypatch.setattr(driver, "_end", dying)


def lives(monkeypatch: pytest.MonkeyPatch, end: Any = driver._end) -> None:
    monkeypatch.setattr(driver, "_end", end)


def test_every_row_of_every_batch_stands_once(query: Query) -> None:
    for batch in range(3):
        query.run(batch, [b"a%d" % batch, b"b%d" % batch], [b"c%d" % batch])
    assert query.seen() == [b"%s%d" % (name, batch) for batch in range(3) for name in (b"a", b"b", b"c")]
    assert not query.is_held_up()
    assert [(one.batch_id, one.done) for one in query.decisions()] == [
        (batch, done) for batch in range(3) for done in (False, True)
    ]


def test_nothing_is_seen_before_the_decision(query: Query) -> None:
    messages = query.tasks(0, [b"a"], [b"b"])
    assert query.seen() == []
    query.commit(0, messages)
    assert query.seen() == [b"a", b"b"]


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_a_driver_that_dies_after_the_decision_is_carried_on_by_the_next(query: Query, ended: int) -> None:
    """Also when the next one has another number of tasks: the batch is not run again."""
    messages = query.tasks(0, [b"a"], [b"b"], [b"c"])
    dies_at_end(query.monkeypatch, ended)
    with pytest.raises(Died):
        query.commit(0, messages)
    lives(query.monkeypatch)
    again = query.tasks(0, [b"a", b"b"], [b"c"])
    assert all(message.is_decided and message.transaction is None for message in again)
    query.commit(0, again)
    assert query.seen() == [b"a", b"b", b"c"]
    query.run(1, [b"d"])
    assert query.seen() == [b"a", b"b", b"c", b"d"]
    assert not query.is_held_up()


def test_a_driver_that_dies_before_the_decision_leaves_nothing_and_the_batch_is_run_again(query: Query) -> None:
    query.tasks(0, [b"a"], [b"b"])
    query.run(0, [b"a", b"b"])
    assert query.seen() == [b"a", b"b"]
    assert not query.is_held_up()


def test_abort_after_a_commit_that_raised_ends_nothing_that_was_decided(query: Query) -> None:
    messages = query.tasks(0, [b"a"], [b"b"])
    dies_at_end(query.monkeypatch, 1)
    with pytest.raises(Died):
        query.commit(0, messages)
    lives(query.monkeypatch)
    query.abort(0, messages)
    assert query.seen() == [b"a"]
    query.run(0, [b"a"], [b"b"])
    assert query.seen() == [b"a", b"b"]


def test_abort_ends_what_a_failed_batch_has_written(query: Query) -> None:
    messages = query.tasks(0, [b"a"], [b"b"])
    query.abort(0, [*messages, None])
    assert not query.is_held_up()
    assert query.seen() == []
    query.abort(0, [None])
    query.run(0, [b"a"], [b"b"])
    assert query.seen() == [b"a", b"b"]


def test_of_two_attempts_of_a_task_only_the_one_that_is_committed_counts(query: Query) -> None:
    pickled = query.planned()
    first = query.attempt(pickled, 0, [b"a"])
    second = query.attempt(pickled, 0, [b"a"])
    assert first.transaction.transactional_id != second.transaction.transactional_id
    query.commit(0, [second])
    late = query.attempt(pickled, 0, [b"a"])  # stopped before its start, and continued after the batch
    assert late.transaction.transactional_id not in (
        first.transaction.transactional_id,
        second.transaction.transactional_id,
    )
    query.run(1, [b"b"])
    assert query.seen() == [b"a", b"b"]
    assert not query.is_held_up()


def test_of_two_drivers_of_one_query_the_older_cannot_decide(query: Query) -> None:
    older = query.tasks(0, [b"a"])
    newer = query.tasks(0, [b"a"])
    with pytest.raises(TagwireError) as refused:
        query.commit(0, older)
    assert isinstance(refused.value, (ProducerFencedError, UndecidedError))
    query.commit(0, newer)
    assert query.seen() == [b"a"]
    assert [one.batch_id for one in query.decisions()] == [0, 0]


def test_tasks_prepared_by_two_drivers_are_not_one_batch(query: Query) -> None:
    messages = [*query.tasks(0, [b"a"]), *query.tasks(0, [b"b"])]
    with pytest.raises(UndecidedError, match="prepared by different drivers"):
        query.commit(0, messages)
    assert query.decisions() == []


def test_a_checkpoint_that_was_rolled_back_is_refused_naming_both_batches(query: Query) -> None:
    for batch in range(3):
        query.run(batch, [b"%d" % batch])
    with pytest.raises(UndecidedError, match="micro-batch 1 is to be written, but 2 of the same query"):
        query.tasks(1, [b"1"])
    assert query.seen() == [b"0", b"1", b"2"]


def test_a_new_query_under_the_same_name_begins_anew(query: Query) -> None:
    for batch in range(2):
        query.run(batch, [b"%d" % batch])
    query.query_id = "query-2"  # its checkpoint was deleted
    query.run(0, [b"0"])
    query.run(1, [b"1"])
    assert query.seen() == [b"0", b"1", b"0", b"1"]


def test_a_batch_without_rows_decides_nothing(query: Query) -> None:
    query.run(0, [], [])
    assert query.decisions() == []
    query.run(1, [], [b"a"])
    assert query.seen() == [b"a"]


def test_an_id_is_used_again_only_when_its_batch_is_done(query: Query) -> None:
    pickled = query.planned()
    first = [query.attempt(pickled, 0, [b"a"]).transaction for _ in range(2)]
    assert first[0].transactional_id != first[1].transactional_id
    (second,) = query.tasks(0, [b"a"])  # the batch failed: nothing is known to be done
    assert second.transaction.transactional_id not in {one.transactional_id for one in first}
    query.commit(0, [second])
    (third,) = query.tasks(1, [b"b"])
    assert third.transaction.transactional_id in {one.transactional_id for one in (*first, second.transaction)}
    assert third.transaction not in (*first, second.transaction)  # another transaction of that id
    query.commit(1, [third])
    assert query.seen() == [b"a", b"b"]


def test_a_worker_that_serves_two_queries_keeps_their_ids_apart(query: Query) -> None:
    other = replace(query, own_id=f"{query.own_id}-other")
    query.run(0, [b"a"])
    other.run(0, [b"b"])
    query.run(1, [b"c"])
    assert query.seen() == [b"a", b"b", b"c"]
    prefixes = {held.transactional_id.rsplit(".", 1)[0] for pool in attempts._pools.values() for held in pool}
    assert {f"tagwire.{one.own_id}.task" for one in (query, other)} <= prefixes


def test_a_decision_that_cannot_be_carried_out_stops_every_driver_and_names_what_is_lost(query: Query) -> None:
    messages = query.tasks(0, [b"a"], [b"b"])
    dies_at_end(query.monkeypatch, 0)
    with pytest.raises(Died):
        query.commit(0, messages)
    lives(query.monkeypatch)
    lost = messages[1].transaction
    with Admin(query.broker.bootstrap) as admin:
        admin.fence_producers([lost.transactional_id])  # as if its time had been up
    for _ in range(2):
        with pytest.raises(LostTransactionError, match="micro-batch 0 of query query-1") as raised:
            query.planned()
        assert lost.transactional_id in str(raised.value)
        assert "1 rows" in str(raised.value)
    assert query.seen() == [b"a"]


def test_no_decision_is_made_when_half_of_the_transactions_time_is_over(query: Query) -> None:
    (message,) = query.tasks(0, [b"a"])
    late = replace(message.prepared, at=time.time() - message.prepared.timeout_ms / 2000 - 1)
    with pytest.raises(UndecidedError, match="more than half of the"):
        query.commit(0, [replace(message, prepared=late)])
    assert query.decisions() == []


def test_no_decision_is_made_over_a_transaction_that_is_not_open_any_more(query: Query) -> None:
    messages = query.tasks(0, [b"a"], [b"b"])
    with Admin(query.broker.bootstrap) as admin:
        admin.fence_producers([messages[0].transaction.transactional_id])
    with pytest.raises(UndecidedError, match="cannot be committed any more"):
        query.commit(0, messages)
    assert query.decisions() == []
    query.run(0, [b"a"], [b"b"])
    assert query.seen() == [b"a", b"b"]


def test_another_querys_open_decision_is_waited_for(query: Query) -> None:
    query.run(0, [b"a"])
    with Producer(query.broker.bootstrap, transactional_id=decisions_id("someone-else")) as other:
        other.init_transactions()
        other.begin_transaction()
        other.send(TOPIC, b"{}", key=b"someone-else", partition=PARTITION)
        other.flush()
        timer = threading.Timer(0.5, other.abort_transaction)
        timer.start()
        query.run(1, [b"b"])
        timer.join()
    assert query.seen() == [b"a", b"b"]


def test_a_topic_of_decisions_that_forgets_is_refused() -> None:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, num_partitions=1)])
        writer = ExactlyOnceWriter(
            parse({"kafka.bootstrap.servers": broker.bootstrap, "topic": "t", "exactlyOnceId": "q"}), SCHEMA
        )
        with pytest.raises(TopicUnfitError, match=r"cleanup\.policy=delete"):
            pickle.dumps(writer)


def test_making_a_writer_asks_nobody_anything() -> None:
    options = parse({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "exactlyOnceId": "q"})
    ExactlyOnceWriter(options, SCHEMA)
