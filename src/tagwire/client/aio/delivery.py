"""What becomes of records, for tasks: what is awaited."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, cast

from tagwire.client.aio.loop_completion import LoopCompletion, wake
from tagwire.client.producing.batch_delivery import BatchDelivery, BatchesDelivery, RecordMetadata, RowsMetadata
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.errors import TagwireError


class AsyncDelivery(BatchDelivery):
    """What becomes of one record, or of one batch handed over whole: awaited, it gives the `RecordMetadata`, or raises
    why it is failed. It may be awaited by several tasks, and again; a task that gives up waiting changes nothing.

    Attributes:
        topic, partition: where it is sent.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch, self._index
        if batch.parts:
            batch, index = batch.part_of(index)
        if not batch.is_done:
            yield from _completion(batch, index)
        return self._metadata()

    def result(self) -> RecordMetadata:
        """Where the record is, once that is known. Raises why it is failed; TagwireError while that is not known."""
        _require(self.done())
        return self._metadata()

    def exception(self) -> TagwireError | None:
        """Why it is failed, None where it is delivered. Raises TagwireError where that is not known yet."""
        _require(self.done())
        return self._failure()


class AsyncRowsDelivery(BatchesDelivery):
    """What becomes of the rows of one `AsyncProducer.send_arrow`, all together: awaited, it gives their `RowsMetadata`,
    or raises why the first that are failed are."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RowsMetadata]:
        while (batch := next((leaf for leaf in self._leaves() if not leaf.is_done), None)) is not None:
            yield from _completion(batch, 0)
        return self._metadata()

    def result(self) -> RowsMetadata:
        """Where the rows are, once that is known. Raises as `AsyncDelivery.result`."""
        _require(self.done())
        return self._metadata()

    def exception(self) -> TagwireError | None:
        """Why the first rows that are failed are; None where all are delivered. Raises TagwireError where that is not
        known yet."""
        _require(self.done())
        return self._failure()


def _completion(batch: ProducerBatch, index: int) -> Generator[Any, None, None]:
    """Waits until a record of a batch is complete, or the batch split. Who gives up waiting leaves nothing behind."""
    future = cast("LoopCompletion", batch.completion).future()
    woken = partial(wake, future)
    batch.callbacks[woken] = index
    try:
        yield from future
    finally:
        batch.part_of(index)[0].callbacks.pop(woken, None)


def _require(done: bool) -> None:
    if not done:
        raise TagwireError("it is not known yet what becomes of it: await it first")
