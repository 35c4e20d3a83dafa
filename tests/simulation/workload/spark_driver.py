"""The driver's side of the exactly-once sink: the writer that Spark has there, whose steps are slow, end in the middle,
or go on when their query has been started again without them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any, Final

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import BinaryType, StructField, StructType

from tagwire.client import Client, Producer
from tagwire.errors import TagwireError
from tagwire.spark.sink.client_cache import cached_client
from tagwire.spark.sink.decisions import Decision
from tagwire.spark.sink.driver import Driver, Prepared
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter
from tagwire.spark.sink.options import SinkOptions, parse
from tests.simulation.workload.stage import Spec

SCHEMA: Final = StructType([StructField("value", BinaryType())])

MOMENTS: Final = (
    "takes-over",
    "has-taken-over",
    "lists",
    "has-listed",
    "decides",
    "checks",
    "has-checked",
    "has-decided",
    "is-done",
    "gives-up",
)
"""Of a driver's steps, where one may stop: see `_StoppingDriver`."""

IS_TO_FENCE: Final = "is-to-fence"
"""One more of them: where what it has listed is not nothing."""

STOPS: Final = ("sleeps", "dies", "is-left")
"""How: it goes on later; its process ends; the query goes on without it, and it goes on later."""


class Died(TagwireError):
    """A driver or a task that ends in the middle, because the plan says so."""


class Abandoned(TagwireError):
    """Whoever waited for a step of a driver is gone, with the query; the step is not."""


class SinkDriver:
    """What Spark does with the writers of one query, in the driver.

    Its spec, besides what names topic and query: interrupt (how likely the client of a step is closed while it lasts),
    keeps (whether clients are kept between steps), stops (at which of `MOMENTS`, or `IS_TO_FENCE`, a step stops, and
    how likely it is each of `STOPS`), nap (for how long at most), naps (at which of them, instead: for which shares of
    `timeout`, of its tasks' transactions, at least and at most).

    Args:
        properties: of its clients, by who has them: options of Spark.
        is_loading: whether anything is to go wrong.
        threads: where those are added that may outlive a step.
        decided: is told of each decision that is committed.
        left: is told of what a step ends with when nobody waits for it any more.
    """

    def __init__(
        self,
        spec: Spec,
        random: Random,
        properties: Callable[[str], Mapping[str, Any]],
        is_loading: Callable[[], bool],
        threads: list[threading.Thread],
        note_unexpected: Callable[[BaseException], None],
        decided: Callable[[Prepared, Decision], None],
        left: Callable[[TagwireError], None],
    ) -> None:
        self.decided = decided
        self._left = left
        self._spec = spec
        self._random = random
        self._properties = properties
        self._is_loading = is_loading
        self._threads = threads
        self._note_unexpected = note_unexpected

    def options(self, process: str) -> SinkOptions:
        """Of the write, for one of Spark's processes."""
        named = {f"kafka.{name}": str(value) for name, value in self._properties(process).items()}
        return parse(named | {"topic": self._spec["topic"], "exactlyOnceId": self._spec["sink"]})

    def planned(self) -> ExactlyOnceWriter:
        """The writer of a micro-batch, prepared."""
        writer = self._writer(_Step(self))
        self._wait_for(writer, writer.prepare)
        return writer

    def commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        writer = self._writer(_Step(self))
        self._wait_for(writer, lambda: writer.commit(messages, batch))

    def abort(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        writer = self._writer(_Step(self))
        self._wait_for(writer, lambda: writer.abort(messages, batch))

    def _writer(self, step: _Step) -> _DriverWriter:
        return _DriverWriter(self.options("driver"), step)

    def _wait_for(self, writer: _DriverWriter, do: Callable[[], None]) -> None:
        """Has a step done in a process of its own, and waits for it, unless the query ends before it does.

        Raises: what the step raises. Abandoned: it goes on, and nobody wants to know what becomes of it.
        """
        step = writer.step

        def run() -> None:
            try:
                do()
            except TagwireError as error:
                if step.is_over.is_set():
                    self._left(error)
                else:
                    step.failure = error
            except Exception as error:
                self._note_unexpected(error)
                step.failure = Died(f"a step of a driver ends: {error}")
            step.is_over.set()

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()
        step.is_over.wait()
        if step.failure is not None:
            raise step.failure

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Each step of a driver is a process of Spark's, which may end at any moment while the driver lives on."""
        properties = self.options("driver").client
        kept: AbstractContextManager[Client] = (
            cached_client(properties) if self._spec.get("keeps") else Client.from_properties(properties)
        )
        with kept as client:
            if self._is_loading() and self._random.random() < self._spec.get("interrupt", 0.0):
                ending = threading.Thread(target=_end, args=[client, self._random.random() ** 2 * 2])
                self._threads.append(ending)  # it may sleep longer than the query goes on
                ending.start()
            yield client

    def stops(self, step: _Step, moment: str) -> None:
        """Whether and how a step stops here: it is slow, its process ends, or the query does without it."""
        stops = self._spec.get("stops", {}).get(moment)
        if stops is None or not self._is_loading():
            return
        drawn = self._random.random()
        how = next((how for how in STOPS if (drawn := drawn - stops.get(how, 0.0)) < 0), None)
        if how == "dies":
            raise Died(f"a step of a driver ends where it {moment}")
        if how == "is-left" and not step.is_over.is_set():
            step.failure = Abandoned(f"the query is started again while a step of its driver {moment}")
            step.is_over.set()
        if how is not None:
            least, most = self._spec.get("naps", {}).get(moment) or (0.0, self._spec["nap"] / self._spec["timeout"])
            time.sleep(self._random.uniform(least, most) * self._spec["timeout"])


class _Step:
    """One call of a writer's in the driver.

    Attributes:
        is_over: nobody waits for it any more. failure: of it, or why that is so.
    """

    def __init__(self, of: SinkDriver) -> None:
        self._of = of
        self.is_over = threading.Event()
        self.failure: TagwireError | None = None

    def client(self) -> AbstractContextManager[Client]:
        return self._of.client()

    def reach(self, moment: str) -> None:
        self._of.stops(self, moment)

    def decided(self, prepared: Prepared, decision: Decision) -> None:
        self._of.decided(prepared, decision)


class _DriverWriter(ExactlyOnceWriter):
    """The writer in the driver's processes; a copy, as tasks have it, is an `ExactlyOnceWriter`."""

    def __init__(self, options: SinkOptions, step: _Step) -> None:
        super().__init__(options, SCHEMA)
        self.step = step

    def _driver(self, exactly_once_id: str) -> Driver:
        options = self._options
        return _StoppingDriver(self.step, exactly_once_id, options.transaction_timeout_ms, options.settled_batch)


class _StoppingDriver(Driver):
    """One that may stop between its steps."""

    def __init__(self, step: _Step, exactly_once_id: str, timeout_ms: int | None, settled_batch: str | None) -> None:
        super().__init__(step.client, exactly_once_id, timeout_ms, settled_batch)
        self._step = step
        self._checked: Prepared | None = None

    def abandon(self, *args: Any) -> None:
        self._step.reach("gives-up")
        super().abandon(*args)

    @contextmanager
    def _driver_producer(self, client: Client, timeout_ms: int) -> Iterator[Producer]:
        with super()._driver_producer(client, timeout_ms) as producer:
            takes_over = producer.init_transactions

            def initialize(**how: Any) -> None:
                if how.get("resume") is not None:  # goes on as what it was
                    takes_over(**how)
                    return
                self._step.reach("takes-over")
                takes_over(**how)
                self._step.reach("has-taken-over")

            producer.init_transactions = initialize  # type: ignore[method-assign]
            yield producer

    def _orphaned(self, *args: Any) -> list[str]:
        self._step.reach("lists")
        found = super()._orphaned(*args)
        self._step.reach("has-listed")
        if found:
            self._step.reach(IS_TO_FENCE)
        return found

    def _check(self, client: Client, prepared: Prepared, decision: Decision) -> None:
        self._step.reach("checks")
        super()._check(client, prepared, decision)
        self._checked = prepared
        self._step.reach("has-checked")

    def _write(self, producer: Producer, decision: Decision, check: Callable[[], None] | None = None) -> None:
        self._step.reach("is-done" if decision.done else "decides")
        super()._write(producer, decision, check)
        if self._checked is not None and not decision.done:
            self._step.decided(self._checked, decision)

    def _carry_out(self, client: Client, producer: Producer, decision: Decision) -> None:
        self._step.reach("has-decided")
        super()._carry_out(client, producer, decision)


def _end(client: Client, seconds: float) -> None:
    time.sleep(seconds)
    client.close()
