"""A streaming write whose rows stand exactly once for readers of committed records: docs/exactly-once.md.

Spark makes a writer before the tasks of a micro-batch and pickles it for them, twice; and makes another, in another
process, for each `commit` and `abort`. What has to happen before the tasks is a step of its own, `prepare`, which the
data source takes where Spark plans a micro-batch. Making, copying and pickling a writer send no request.
This module needs PySpark 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.gc_freeze import freeze_gc
from tagwire.spark.sink.client_cache import cached_client
from tagwire.spark.sink.decisions import Decision, TaskTransaction
from tagwire.spark.sink.driver import Driver, Prepared, UndecidedError
from tagwire.spark.sink.options import SinkOptions
from tagwire.spark.sink.record_projection import RecordProjection
from tagwire.spark.sink.task_transactions import write_transaction
from tagwire.spark.sink.writers import send

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What an attempt of a task tells the driver.

    Attributes:
        prepared: as the driver had handed it over.
        query_id: Spark's.
        is_decided: whether the micro-batch was decided before, and nothing written.
        transaction: what was written; None where there were no rows.
    """

    prepared: Prepared
    query_id: str
    is_decided: bool = False
    transaction: TaskTransaction | None = None


@without_tracebacks
class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """A streaming write, exactly once.

    Args:
        prepared, projection: what `prepare` has found, where it was called before the writer was copied or pickled.
    """

    def __init__(
        self,
        options: SinkOptions,
        schema: StructType,
        prepared: Prepared | None = None,
        projection: RecordProjection | None = None,
    ) -> None:
        self._options = options
        self._schema = schema
        self._projection = projection or RecordProjection(schema, options.topic, options.encoded)
        self._prepared = prepared

    def prepare(self) -> None:
        """The driver's step before the tasks of a micro-batch, taken once: looks whether typed columns fit, fences
        older drivers of the query, and carries out what was decided. Only copies made after it, pickled ones too, can
        write.

        Raises:
            ConfigError: the query has no name. Else as `RecordProjection.plan` and `Driver.prepare`.
        """
        if self._prepared is None:
            self._projection.plan()
            self._prepared = self._driver(self._options.exactly_once_id()).prepare()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactlyOnceWriter, (self._options, self._schema, self._prepared, self._projection)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One attempt of one task: writes its rows in a transaction, which it leaves open.

        Raises:
            UndecidedError: no driver has prepared the micro-batch, or it is older than the last that was committed.
        """
        prepared = self._prepared
        if prepared is None:
            raise UndecidedError("this writer was not prepared by a driver before it was handed to its tasks")
        query_id, batch_id = _running()
        decided = prepared.decided.get(query_id, -1)
        if batch_id == decided:
            return Written(prepared, query_id, is_decided=True)
        if batch_id < decided:
            raise UndecidedError(
                f"micro-batch {batch_id} is to be written, but {decided} of the same query is committed already: "
                "its checkpoint was rolled back. Its rows would stand twice"
            )
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Written(prepared, query_id)
        transaction = write_transaction(
            self._options.client,
            prepared,
            (query_id, batch_id),
            lambda producer: send(self._projection, chain([first], batches), producer),
        )
        freeze_gc()
        return Written(prepared, query_id, transaction=transaction)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Decides a micro-batch, and carries the decision out.

        Raises:
            UndecidedError: it is not committed. Else as `Driver.decide`.
        """
        written = _written(messages)
        if len(written) < len(messages):
            raise UndecidedError(f"micro-batch {batchId}: {len(messages) - len(written)} of its tasks say nothing")
        transactions = tuple(one.transaction for one in written if one.transaction is not None)
        if not transactions:
            return
        prepared = written[0].prepared
        if any(one.prepared != prepared for one in written):
            raise UndecidedError(f"micro-batch {batchId}: its tasks were prepared by different drivers")
        self._driver(prepared.exactly_once_id).decide(prepared, Decision(written[0].query_id, batchId, transactions))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Ends what a failed micro-batch has written, unless it turns out to be decided."""
        written = _written(messages)
        transactions = [one.transaction for one in written if one.transaction is not None]
        if transactions:
            prepared, query_id = written[0].prepared, written[0].query_id
            self._driver(prepared.exactly_once_id).abandon(prepared, query_id, batchId, transactions)

    def _driver(self, exactly_once_id: str) -> Driver:
        client_of = partial(cached_client, self._options.client)
        options = self._options
        return Driver(client_of, exactly_once_id, options.transaction_timeout_ms, options.settled_batch)


def _written(messages: list[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _running() -> tuple[str, int]:
    """The query and the micro-batch of this task."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_QUERY)
    batch_id = None if context is None else context.getLocalProperty(_BATCH)
    if query_id is None or batch_id is None:
        raise ConfigError("option exactlyOnce: this task belongs to no streaming query")
    return query_id, int(batch_id)
