"""A streaming query that is written exactly once, step by step: this is Spark, and stops wherever a driver may die."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from tagwire.client import EARLIEST, LATEST, Admin, Client, NewTopic, Reader
from tagwire.spark.sink import driver, exactly_once
from tagwire.spark.sink.decisions import TOPIC, Decision, TaskTransaction
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter, Written
from tagwire.spark.sink.options import parse

from ..limits import wait_until

SCHEMA: Final = StructType([StructField("value", BinaryType())])
SECONDS: Final = 180
_numbers = count()


class Died(BaseException):
    """The driver's process is gone at this point."""


@dataclass
class Query:
    """A streaming query, and what Spark does for it.

    Attributes:
        topic: of one partition, where it writes. exactly_once_id: option exactlyOnceId.
        query_id: Spark's, which its checkpoint keeps.
        options: others that it has.
    """

    bootstrap: str
    topic: str
    monkeypatch: pytest.MonkeyPatch
    exactly_once_id: str = ""
    query_id: str = "query-1"
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def new(cls, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Query:
        """One that nobody has run yet, with a new topic."""
        name = f"query-{next(_numbers)}"
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic(f"target-of-{name}", num_partitions=1)])
        return cls(bootstrap, f"target-of-{name}", monkeypatch, name)

    def writer(self) -> ExactlyOnceWriter:
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "topic": self.topic,
            "exactlyOnceId": self.exactly_once_id,
        }
        return ExactlyOnceWriter(parse(options | dict(self.options)), SCHEMA)

    def planned(self) -> bytes:
        """The writer as the tasks of a micro-batch get it."""
        writer = self.writer()
        writer.prepare()
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
        self.wait_for_markers()
        with Reader(self.bootstrap, {(self.topic, 0): EARLIEST}, stop_at_end=True, isolation="read_committed") as r:
            return [record.value for record in r.records()]

    def wait_for_markers(self) -> None:
        """A transaction has ended for its producer before its markers stand in the log."""
        with Admin(self.bootstrap) as admin:
            wait_until(lambda: not admin.list_transactions(states=("PrepareCommit", "PrepareAbort")))

    def is_held_up(self) -> bool:
        """Whether something is open in the topic."""
        self.wait_for_markers()
        at = (self.topic, 0)
        with Client(self.bootstrap) as client:
            ends = [
                client.list_offsets({at: LATEST}, isolation=level)[at]
                for level in ("read_committed", "read_uncommitted")
            ]
        return ends[0] < ends[1]

    def state(self, transactional_id: str) -> str:
        """Of a transactional id, as its coordinator tells."""
        with Admin(self.bootstrap) as admin:
            return admin.describe_transactions([transactional_id])[transactional_id].state

    def decisions(self) -> list[Decision]:
        """All that were ever committed of the exactly-once id, oldest first."""
        with Reader(self.bootstrap, {(TOPIC, 0): EARLIEST}, stop_at_end=True, isolation="read_committed") as r:
            return [
                Decision.decode(one.value, "")
                for one in r.records()
                if one.key.startswith(self.exactly_once_id.encode() + b".")
            ]

    # Deaths --------------------------------------------------------------------------------------------------------

    def dies_at_end(self, number: int) -> None:
        """The driver dies when `number` of the transactions that it ends beside each other are ended."""
        end_all = driver._end_all

        def dying(client: Client, transactions: Sequence[TaskTransaction], **options: Any) -> None:
            end_all(client, transactions[:number], **options)
            raise Died

        self.monkeypatch.setattr(driver, "_end_all", dying)

    def lives(self, end_all: Any = driver._end_all) -> None:
        self.monkeypatch.setattr(driver, "_end_all", end_all)

    def decided_only(self, batch: int, *tasks: Sequence[bytes]) -> list[Written]:
        """A micro-batch whose driver dies between the decision and the first end."""
        messages = self.tasks(batch, *tasks)
        self.dies_at_end(0)
        with pytest.raises(Died):
            self.commit(batch, messages)
        self.lives()
        return messages


def until(true: Callable[[], bool]) -> None:
    wait_until(true, SECONDS)
