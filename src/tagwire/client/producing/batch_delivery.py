"""What becomes of records, as far as it does not matter who waits for it: where they are, or why they are failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

from tagwire.client.producing.producer_batch import NO_OFFSET, ProducerBatch, run_callback
from tagwire.errors import TagwireError, afresh
from tagwire.partitions import TopicPartition


class RecordMetadata(NamedTuple):
    """Where a record is (Kafka's RecordMetadata).

    Attributes:
        offset: of the record; of a whole batch, of its first record. -1 where brokers do not tell: with acks=0, and of
            a batch that a broker says it had already.
    """

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class RowsMetadata:
    """Where the rows of one `Producer.send_arrow` are.

    Attributes:
        rows: how many there are.
        offsets: the first and the last offset in each partition, where brokers tell.
    """

    rows: int
    offsets: Mapping[TopicPartition, tuple[int, int]]


class BatchDelivery:
    """What becomes of one record, or of one batch handed over whole.

    Attributes:
        topic, partition: where it is sent.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: ProducerBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def topic(self) -> str:
        return self._batch.topic_partition.topic

    @property
    def partition(self) -> int:
        return self._batch.topic_partition.partition

    def done(self) -> bool:
        """Whether it is delivered, or failed."""
        return self._batch.part_of(self._index)[0].is_done

    def add_done_callback(self, function: Callable[[Self], object]) -> None:
        """Calls `function` with this delivery when it is done, now if it is: where the producer's core runs (its
        thread, or the event loop), which waits meanwhile. What it raises is logged."""
        with self._batch.completion.held():
            batch, index = self._batch.part_of(self._index)
            batch.callbacks[partial(function, self)] = index
            is_done = batch.is_done
        if is_done:
            batch.run_callbacks()

    def _failure(self) -> TagwireError | None:
        return self._batch.part_of(self._index)[0].error

    def _metadata(self) -> RecordMetadata:
        """Where the record is, once it is done. Raises why it is failed."""
        batch, index = self._batch, self._index
        if batch.parts:
            batch, index = batch.part_of(index)
        if batch.error is not None:
            raise afresh(batch.error)
        offset = batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET
        return RecordMetadata(*batch.topic_partition, offset)

    def __repr__(self) -> str:
        batch, index = self._batch.part_of(self._index)
        at = f"@{batch.base_offset + index}" if batch.base_offset >= 0 else "delivered"
        state = f"failed: {batch.error}" if batch.error else at if batch.is_done else "in flight"
        return f"<{type(self).__name__} {batch.topic_partition} {state}>"


class BatchesDelivery:
    """What becomes of the rows of one `Producer.send_arrow`, all together."""

    __slots__ = ("_batches", "_rows")

    def __init__(self, rows: int, batches: Sequence[ProducerBatch]) -> None:
        self._rows = rows
        self._batches = batches

    def done(self) -> bool:
        """Whether all of them are delivered, or failed."""
        return all(leaf.is_done for leaf in self._leaves())

    def add_done_callback(self, function: Callable[[Self], object]) -> None:
        """Calls `function` with this delivery when all of its rows are done, as `Delivery.add_done_callback`."""
        if not self._batches:
            run_callback(partial(function, self))
            return
        with self._batches[0].completion.held():
            # One batch after the other is waited for, so that it does not matter into how many each was split.
            batch = next((leaf for leaf in self._leaves() if not leaf.is_done), self._leaves()[-1])
            is_done = batch.is_done
            again: Any = partial(function, self) if is_done else partial(self.add_done_callback, function)
            batch.callbacks[again] = 0
        if is_done:
            batch.run_callbacks()

    def _failure(self) -> TagwireError | None:
        return next((leaf.error for leaf in self._leaves() if leaf.error is not None), None)

    def _metadata(self) -> RowsMetadata:
        """Where the rows are, once all are done. Raises why the first rows that are failed are."""
        error = self._failure()
        if error is not None:
            raise afresh(error)
        found: dict[TopicPartition, tuple[int, int]] = {}
        for leaf in self._leaves():
            if leaf.base_offset >= 0:
                last = leaf.base_offset + leaf.count - 1
                first, latest = found.get(leaf.topic_partition, (leaf.base_offset, last))
                found[leaf.topic_partition] = min(first, leaf.base_offset), max(latest, last)
        return RowsMetadata(self._rows, found)

    def _leaves(self) -> list[ProducerBatch]:
        return [leaf for batch in self._batches for leaf in batch.leaves()]

    def __repr__(self) -> str:
        failed = self._failure()
        state = f"failed: {failed}" if failed else "delivered" if self.done() else "in flight"
        return f"<{type(self).__name__} {self._rows} rows {state}>"
