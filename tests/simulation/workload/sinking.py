"""A streaming query with the exactly-once sink, as Spark runs it: a driver prepares each micro-batch, attempts of its
tasks write, fail, are speculative or late, and the driver commits what the first attempt of each has written, or aborts
it. A query that fails is started again from its checkpoint, and several drivers may have the same name."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow.compute  # noqa: F401 - the driver imports it when it reads decisions, and it takes its time
from pyspark.sql.datasource import WriterCommitMessage

from tagwire.errors import TagwireError
from tagwire.spark.sink import client_cache
from tagwire.spark.sink.decisions import Decision
from tagwire.spark.sink.driver import LostTransactionError, Prepared
from tagwire.spark.sink.exactly_once import Written
from tests.simulation.history import told
from tests.simulation.workload.spark_driver import Abandoned, Died, SinkDriver
from tests.simulation.workload.spark_tasks import ATTEMPTS, TASK_PATIENCE, SinkTasks
from tests.simulation.workload.stage import PATIENCE, SET_UP_ROUND_TRIPS, Actor, Phase, Spec, Stage

BATCH_ROUND_TRIPS = 100
"""Of a driver and its tasks for a micro-batch, one after the other: half of its transactions' time has to be enough."""


class Sinking(Actor):
    """One driver of a query, with workers of its own.

    Its spec: sink (the exactly-once id), query (Spark's id), topic, tasks and rows (of a micro-batch, at most), pace,
    timeout_ms (of the tasks' transactions, at least), die (how likely the driver does, between two of its steps), doze
    (how likely it is late to decide), and
    what `SinkDriver` and `SinkTasks` take.
    """

    patience = ATTEMPTS * TASK_PATIENCE + 2 * PATIENCE
    """Drivers of one query that last fence each other, and have a micro-batch through after some tries."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self._workers = stage.process(self.name)  # they are there as long as this process is
        self.process = self._workers
        self._threads: list[threading.Thread] = []
        self._timeout_ms = max(
            spec["timeout_ms"], int(2000 * BATCH_ROUND_TRIPS * (stage.round_trip_s + stage.spikes_s))
        )
        shared = self.random, self._properties
        told = (lambda: self.is_loading), self._threads, self.note_unexpected
        self._driver = SinkDriver(
            spec | {"timeout": self._timeout_ms / 1000}, *shared, *told, self._decided, self._left
        )
        self._tasks = SinkTasks(spec, self.random, self._driver.options, *told)

    def main(self) -> None:
        """The query, started again whenever it fails; once nothing goes wrong any more, until a micro-batch is through,
        so that what was decided is carried out."""
        try:
            time.sleep(self.spec["at"])
            failures_after_load = 0
            while failures_after_load < ATTEMPTS and not self.is_done:
                failures_after_load += not self.is_loading
                try:
                    self._run_query()
                except LostTransactionError:  # noted: only people can settle it
                    self.is_done = True
                except TagwireError:
                    time.sleep(self.random.uniform(0.05, 1.0))
            for thread in self._threads:
                thread.join()
            self._close_clients()
        except Exception as error:
            self.note_unexpected(error)

    async def live(self) -> None:
        raise NotImplementedError

    # The query -----------------------------------------------------------------------------------------------------

    def _run_query(self) -> None:
        """Micro-batches, from where the checkpoint is, until one fails."""
        batch = self.stage.checkpoints.get(self.spec["query"], -1) + 1
        while not self.is_done:
            was_loading = self.is_loading
            self._micro_batch(batch)
            self._die()  # it was committed, and the checkpoint does not say so
            known = self.stage.checkpoints.get(self.spec["query"], -1)
            self.stage.checkpoints[self.spec["query"]] = max(known, batch)
            batch += 1
            self.is_done = not was_loading or self.stage.phase is Phase.OVER
            time.sleep(self.random.uniform(0, 2) * self.spec["pace"])

    def _micro_batch(self, batch: int) -> None:
        spec = self.spec
        rows = self._rows(batch)
        told = {"sink": spec["sink"], "query": spec["query"], "batch": batch, "topic": spec["topic"]}
        told |= {"transaction_timeout": self._timeout_ms / 1000, "is_disturbed": self.is_loading}
        op = self.history.invoke(
            self.process, "sink_batch", **told, rows=[row for own in rows for row in own], driver=self.process
        )
        try:
            self._carried_through(batch, rows)
        except TagwireError as error:
            self.history.info(op, _told(error))
            raise
        self.history.ok(op)

    def _carried_through(self, batch: int, rows: list[list[str]]) -> None:
        """One micro-batch. Source: Spark's WriteToDataSourceV2Exec."""
        writer = self._driver.planned()
        self._die()
        messages, failure = self._tasks.run(pickle.dumps(writer), batch, rows)
        self._die()
        if failure is None:
            if self.is_loading and self.random.random() < self.spec["doze"]:
                time.sleep(self._timeout_ms / 1000 * self.random.uniform(0.4, 1.5))
            try:
                self._commit(messages, batch)
            except Abandoned:
                raise
            except TagwireError as error:
                failure = error
        if failure is not None:
            with suppress(TagwireError):  # Spark tells of the first
                self._driver.abort(messages, batch)
            raise failure

    def _commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        prepared = next((one.prepared for one in messages if isinstance(one, Written) and one.transaction), None)
        if prepared is None:  # there is nothing to decide
            self._driver.commit(messages, batch)
            return
        op = self._deciding(prepared, batch)
        try:
            self._driver.commit(messages, batch)
        except TagwireError as error:
            self.history.info(op, _told(error))
            raise
        self.history.ok(op)

    def _deciding(self, prepared: Prepared, batch: int) -> int:
        age = round(time.monotonic() - prepared.at, 6)
        told = {"sink": self.spec["sink"], "query": self.spec["query"], "batch": batch, "age": age}
        return self.history.invoke(self.process, "sink_decide", **told)

    def _decided(self, prepared: Prepared, decision: Decision) -> None:
        """Its step goes on, though this may be another life by now."""
        age = round(time.monotonic() - prepared.at, 6)
        of = {"sink": self.spec["sink"], "query": decision.query_id, "batch": decision.batch_id}
        self.history.note(self.process, "sink_decided", **of, age=age)

    def _left(self, error: TagwireError) -> None:
        """What a driver tells for which nobody waits: its log has it."""
        of = {"sink": self.spec["sink"], "query": self.spec["query"]}
        if _told(error) is not None:
            timeout = self._timeout_ms / 1000
            self.history.note(self.process, "sink_told", **of, transaction_timeout=timeout, error=told(error))

    def _rows(self, batch: int) -> list[list[str]]:
        """What each task of a micro-batch has to write: the same, whoever runs it again."""
        random = self.stage.random(f"{self.spec['query']}/{batch}")
        return [
            [f"{self.spec['query']}.{batch}.{task}.{row}" for row in range(random.randint(0, self.spec["rows"]))]
            for task in range(random.randint(1, self.spec["tasks"]))
        ]

    def _die(self) -> None:
        if self.is_loading and self.random.random() < self.spec["die"]:
            raise Died("the driver of a query ends here")

    # Clients -------------------------------------------------------------------------------------------------------

    def _properties(self, role: str) -> Mapping[str, Any]:
        # A call is several requests, on new connections: with less time than the network takes none is through.
        slowest = SET_UP_ROUND_TRIPS * (self.stage.round_trip_s + self.stage.spikes_s)
        timeout = max(self.spec["request_timeout"], slowest)
        return {
            **self.stage.properties(f"{self._workers}-{role}", timeout),
            "delivery.timeout.ms": int(4000 * timeout),
            "max.block.ms": int(3000 * timeout),
            "transaction.timeout.ms": self._timeout_ms,
        }

    def _close_clients(self) -> None:
        for role in ("driver", *(f"worker-{worker}" for worker in range(self.spec["workers"]))):
            client = client_cache._clients.pop(client_cache._key(self._driver.options(role).client), None)
            if client is not None:
                client.close()


def _told(error: TagwireError) -> TagwireError | None:
    """What the history has of it: ends that the plan says are no errors."""
    return None if isinstance(error, Died | Abandoned) else error
