"""A streaming query with the exactly-once sink, as Spark runs it: a driver prepares each micro-batch, attempts of its
tasks write, fail, are speculative or late, and the driver commits what the first attempt of each has written. A query
that fails is started again from its checkpoint, and several drivers may have the same name."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow.compute  # noqa: F401 - the driver imports it when it reads decisions, and it takes its time

from tagwire.client import Client, Producer
from tagwire.errors import TagwireError
from tagwire.spark.sink import client_cache
from tagwire.spark.sink.decisions import Decision, TaskTransaction
from tagwire.spark.sink.driver import Driver, LostTransactionError, Prepared, UndecidedError
from tagwire.spark.sink.task_transactions import write_transaction
from tests.simulation.workload.stage import PATIENCE, Actor, Phase, Spec, Stage

ATTEMPTS = 4
"""How often a task is tried, as spark.task.maxFailures."""

TASK_PATIENCE = 40.0

BATCH_ROUND_TRIPS = 100
"""Of a driver and its tasks for a micro-batch, one after the other: half of its transactions' time has to be enough."""


class Died(TagwireError):
    """A driver or a task that ends in the middle, because the plan says so."""


class Sinking(Actor):
    """One driver of a query, with workers of its own.

    Its spec: sink (the exactly-once id), query (Spark's id), topic, tasks and rows (of a micro-batch, at most), pace,
    timeout_ms (of the tasks' transactions, at least), fail (how likely an attempt does), late (how likely there is a
    second attempt of a task), die (how likely the driver does, between two of its steps), doze (how likely it is late
    to decide), workers (processes that tasks run in), interrupt (how likely a step of the driver is broken off).
    """

    patience = ATTEMPTS * TASK_PATIENCE + 2 * PATIENCE
    """Drivers of one query that last fence each other, and have a micro-batch through after some tries."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self._workers = stage.process(self.name)  # they are there as long as this process is
        self.process = self._workers
        self._attempts: list[threading.Thread] = []
        self._timeout_ms = max(
            spec["timeout_ms"], int(2000 * BATCH_ROUND_TRIPS * (stage.round_trip_s + stage.spikes_s))
        )

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
            for attempt in self._attempts:
                attempt.join()
            self._close_workers()
        except Exception as error:
            self.note_unexpected(error)

    async def live(self) -> None:
        raise NotImplementedError

    # The driver ----------------------------------------------------------------------------------------------------

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
        told["transaction_timeout"] = self._timeout_ms / 1000
        op = self.history.invoke(
            self.process, "sink_batch", **told, rows=[row for own in rows for row in own], driver=self.process
        )
        try:
            self._carried_through(batch, rows)
        except TagwireError as error:
            self.history.info(op, None if isinstance(error, Died) else error)
            raise
        self.history.ok(op)

    def _carried_through(self, batch: int, rows: list[list[str]]) -> None:
        driver = Driver(self._client, self.spec["sink"], self._timeout_ms)
        prepared = driver.prepare()
        self._die()
        written, failure = self._run_tasks(prepared, batch, rows)
        self._die()
        if failure is not None:
            if written:
                driver.abandon(prepared, self.spec["query"], batch, written)
            raise failure
        if self.is_loading and self.random.random() < self.spec["doze"]:
            time.sleep(self._timeout_ms / 1000 * self.random.uniform(0.4, 1.5))
        if written:
            self._decide(driver, prepared, batch, written)

    def _decide(self, driver: Driver, prepared: Prepared, batch: int, written: list[TaskTransaction]) -> None:
        """Commits a micro-batch, and where that fails aborts it, as Spark does: which is refused if it is decided."""
        query = self.spec["query"]
        age = round(time.monotonic() - prepared.at, 6)
        op = self.history.invoke(self.process, "sink_decide", sink=self.spec["sink"], query=query, batch=batch, age=age)
        try:
            driver.decide(prepared, Decision(query, batch, tuple(written)))
        except TagwireError as error:
            self.history.info(op, error)
            with suppress(TagwireError):
                driver.abandon(prepared, query, batch, written)
            raise
        self.history.ok(op)

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

    @contextmanager
    def _client(self) -> Iterator[Client]:
        """Each step of a driver is a process of Spark's, which may end at any moment while the driver lives on."""
        with Client(self._properties("driver")) as client:
            if self.is_loading and self.random.random() < self.spec.get("interrupt", 0.0):
                ending = threading.Thread(target=_end, args=[client, self.random.random() ** 2 * 2])
                self._attempts.append(ending)  # it may sleep longer than the query goes on
                ending.start()
            yield client

    # Tasks ---------------------------------------------------------------------------------------------------------

    def _run_tasks(
        self, prepared: Prepared, batch: int, rows: list[list[str]]
    ) -> tuple[list[TaskTransaction], TagwireError | None]:
        """What all tasks have written, and why one is failed, if one is. An older micro-batch than the last that was
        decided is refused, and of that one nothing is written, as `ExactlyOnceWriter.write` does."""
        decided = prepared.decided.get(self.spec["query"], -1)
        if batch < decided:
            return [], UndecidedError(f"micro-batch {batch} is older than {decided}, which is committed already")
        if batch == decided:
            return [], None
        outcomes: dict[int, TaskTransaction | TagwireError] = {}

        def run(task: int) -> None:
            outcomes[task] = self._run_task(prepared, batch, task, rows[task])

        threads = [threading.Thread(target=run, args=[task]) for task, own in enumerate(rows) if own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        in_order = [outcomes[task] for task in sorted(outcomes)]
        failures = [each for each in in_order if isinstance(each, TagwireError)]
        return [each for each in in_order if isinstance(each, TaskTransaction)], next(iter(failures), None)

    def _run_task(self, prepared: Prepared, batch: int, task: int, rows: list[str]) -> TaskTransaction | TagwireError:
        """What the first attempt gives that succeeds."""
        failure: TagwireError = Died(f"task {task} of micro-batch {batch} gives no answer")
        for _ in range(ATTEMPTS):
            given: queue.Queue[TaskTransaction | TagwireError] = queue.Queue()
            attempts = 2 if self.random.random() < self.spec["late"] else 1
            for _ in range(attempts):
                self._begin_attempt(prepared, batch, task, rows, given)
            for _ in range(attempts):
                try:
                    outcome = given.get(timeout=TASK_PATIENCE)
                except queue.Empty:
                    continue
                if isinstance(outcome, TaskTransaction):
                    return outcome
                failure = outcome
        return failure

    def _begin_attempt(
        self,
        prepared: Prepared,
        batch: int,
        task: int,
        rows: list[str],
        given: queue.Queue[TaskTransaction | TagwireError],
    ) -> None:
        fails = self.is_loading and self.random.random() < self.spec["fail"]
        delay = self.random.choice([0.0, 0.0, 0.1, 1.0]) * self.random.random()

        def send(producer: Producer) -> int:
            for number, row in enumerate(rows):
                if fails and number == len(rows) // 2:
                    raise Died("an attempt of a task ends here")
                producer.send(self.spec["topic"], row.encode())
            producer.flush()
            return len(rows)

        def attempt() -> None:
            try:
                time.sleep(delay)
                properties = self._properties(f"worker-{task % self.spec['workers']}")
                given.put(write_transaction(properties, prepared, (self.spec["query"], batch), send))
            except TagwireError as error:
                given.put(error)
            except Exception as error:
                self.note_unexpected(error)

        thread = threading.Thread(target=attempt)
        self._attempts.append(thread)
        thread.start()

    def _properties(self, role: str) -> Mapping[str, Any]:
        timeout = self.spec["request_timeout"]
        return {
            **self.stage.properties(f"{self._workers}-{role}", timeout),
            "delivery.timeout.ms": int(4000 * timeout),
            "max.block.ms": int(3000 * timeout),
        }

    def _close_workers(self) -> None:
        for worker in range(self.spec["workers"]):
            client = client_cache._clients.pop(client_cache._key(self._properties(f"worker-{worker}")), None)
            if client is not None:
                client.close()


def _end(client: Client, seconds: float) -> None:
    time.sleep(seconds)
    client.close()
