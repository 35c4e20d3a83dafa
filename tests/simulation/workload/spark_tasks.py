"""The tasks' side of the exactly-once sink: attempts in worker processes, which fail, are speculative, or late."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from tagwire.errors import TagwireError
from tagwire.spark.sink import exactly_once
from tagwire.spark.sink.exactly_once import Written
from tagwire.spark.sink.options import SinkOptions
from tests.simulation.workload.spark_driver import Died
from tests.simulation.workload.stage import Spec

ATTEMPTS = 4
"""How often a task is tried, as spark.task.maxFailures."""

TASK_PATIENCE = 40.0

Outcome = WriterCommitMessage | TagwireError

_running: Final = threading.local()
_of_spark: Final = exactly_once._running


def _of_this_attempt() -> tuple[str, int]:
    """Query and micro-batch of the attempt that this thread is; what Spark says where it is none."""
    found: tuple[str, int] | None = getattr(_running, "attempt", None)
    return _of_spark() if found is None else found


exactly_once._running = _of_this_attempt


class SinkTasks:
    """What runs the tasks of one query.

    Its spec, besides what names the query: workers (processes that tasks run in), serial (whether one runs one task at
    a time, as Spark's do), fail (how likely an attempt does), late (how likely there is a second attempt of a task).

    Args:
        options: of the write, for one of Spark's processes.
        is_loading: whether anything is to go wrong.
        threads: where those of attempts are added.
    """

    def __init__(
        self,
        spec: Spec,
        random: Random,
        options: Callable[[str], SinkOptions],
        is_loading: Callable[[], bool],
        threads: list[threading.Thread],
        note_unexpected: Callable[[BaseException], None],
    ) -> None:
        self._spec = spec
        self._random = random
        self._options = options
        self._is_loading = is_loading
        self._threads = threads
        self._note_unexpected = note_unexpected
        self._turns = [threading.Lock() for _ in range(spec["workers"])]

    def run(
        self, pickled: bytes, batch: int, rows: list[list[str]]
    ) -> tuple[list[WriterCommitMessage | None], TagwireError | None]:
        """What the tasks of a micro-batch tell, each through the first attempt that succeeds, None where none did; and
        why one is failed, if one is."""
        outcomes: list[Outcome] = [Died("it has not run")] * len(rows)

        def run(task: int) -> None:
            outcomes[task] = self._run_task(pickled, batch, task, rows[task])

        threads = [threading.Thread(target=run, args=[task]) for task in range(len(rows))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failures = [each for each in outcomes if isinstance(each, TagwireError)]
        messages = [None if isinstance(each, TagwireError) else each for each in outcomes]
        return messages, next(iter(failures), None)

    def _run_task(self, pickled: bytes, batch: int, task: int, rows: list[str]) -> Outcome:
        failure: TagwireError = Died(f"task {task} of micro-batch {batch} gives no answer")
        for _ in range(ATTEMPTS):
            given: queue.Queue[Outcome] = queue.Queue()
            attempts = 2 if self._random.random() < self._spec["late"] else 1
            for _ in range(attempts):
                self._begin_attempt(pickled, batch, task, rows, given)
            for _ in range(attempts):
                try:
                    outcome = given.get(timeout=TASK_PATIENCE)
                except queue.Empty:
                    continue
                if isinstance(outcome, Written):
                    return outcome
                assert isinstance(outcome, TagwireError)
                failure = outcome
        return failure

    def _begin_attempt(
        self, pickled: bytes, batch: int, task: int, rows: list[str], given: queue.Queue[Outcome]
    ) -> None:
        fails = self._is_loading() and self._random.random() < self._spec["fail"]
        fails_at = self._random.randint(0, len(rows)) if fails else None
        delay = self._random.choice([0.0, 0.0, 0.1, 1.0]) * self._random.random()
        worker = task % self._spec["workers"]

        def batches() -> Iterator[pa.RecordBatch]:
            for number, row in enumerate(rows):
                if number == fails_at:
                    raise Died("an attempt of a task ends here")
                yield pa.record_batch([pa.array([row.encode()], pa.binary())], ["value"])
            if fails_at == len(rows):
                raise Died("an attempt of a task ends here")

        def write() -> WriterCommitMessage:
            writer: Any = pickle.loads(pickled)
            # All simulated processes have one number: it is the client's id that tells one worker's pool from another.
            writer._options = replace(writer._options, client=self._options(f"worker-{worker}").client)
            _running.attempt = self._spec["query"], batch
            told: WriterCommitMessage = writer.write(batches())
            return pickle.loads(pickle.dumps(told))

        def attempt() -> None:
            try:
                time.sleep(delay)
                if self._spec.get("serial"):
                    with self._turns[worker]:
                        given.put(write())
                else:
                    given.put(write())
            except TagwireError as error:
                given.put(error)
            except Exception as error:
                self._note_unexpected(error)

        thread = threading.Thread(target=attempt)
        self._threads.append(thread)
        thread.start()
