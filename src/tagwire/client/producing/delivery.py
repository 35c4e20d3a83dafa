"""What becomes of records, for whoever handed them over: futures, as `concurrent.futures.Future` without cancelling."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tagwire.client.config import seconds
from tagwire.client.producing.producer_batch import NO_OFFSET, ProducerBatch, run_callback
from tagwire.errors import RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class RecordMetadata:
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


class Delivery:
    """What becomes of one record, or of one batch handed over whole: a future of its `RecordMetadata`.

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

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is, as soon as it is delivered.

        Args:
            timeout: seconds to wait at most; None for as long as the producer tries.

        Raises:
            TagwireError: why it is failed; or this is a callback, which the producer waits for, or a process that was
                forked.
            RequestTimeoutError: it is neither delivered nor failed by then, and may still be delivered.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        batch, index = self._batch.part_of(self._index)
        offset = batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET
        return RecordMetadata(self.topic, self.partition, offset)

    def exception(self, timeout: float | None = None) -> TagwireError | None:
        """Why it is failed, None where it is delivered, as soon as that is known. Takes and raises what `result`
        does."""
        _wait_until_done([self._batch], timeout)
        return self._batch.part_of(self._index)[0].error

    def add_done_callback(self, function: Callable[[Delivery], object]) -> None:
        """Calls `function` with this delivery when it is done, now if it is: in the producer's thread, which waits
        meanwhile. What it raises is logged."""
        with self._batch.completion:
            batch, index = self._batch.part_of(self._index)
            batch.callbacks.append((partial(function, self), index))
            is_done = batch.is_done
        if is_done:
            batch.run_callbacks()

    def __repr__(self) -> str:
        batch, index = self._batch.part_of(self._index)
        at = f"@{batch.base_offset + index}" if batch.base_offset >= 0 else "delivered"
        state = f"failed: {batch.error}" if batch.error else at if batch.is_done else "in flight"
        return f"<Delivery {batch.topic_partition} {state}>"


class RowsDelivery:
    """What becomes of the rows of one `Producer.send_arrow`, all together: a future of their `RowsMetadata`."""

    __slots__ = ("_batches", "_rows")

    def __init__(self, rows: int, batches: Sequence[ProducerBatch]) -> None:
        self._rows = rows
        self._batches = batches

    def done(self) -> bool:
        """Whether all of them are delivered, or failed."""
        return all(leaf.is_done for leaf in self._leaves())

    def result(self, timeout: float | None = None) -> RowsMetadata:
        """Where the rows are, as soon as all are delivered. Takes and raises what `Delivery.result` does."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        found: dict[TopicPartition, tuple[int, int]] = {}
        for leaf in self._leaves():
            if leaf.base_offset >= 0:
                last = leaf.base_offset + leaf.count - 1
                first, latest = found.get(leaf.topic_partition, (leaf.base_offset, last))
                found[leaf.topic_partition] = min(first, leaf.base_offset), max(latest, last)
        return RowsMetadata(self._rows, found)

    def exception(self, timeout: float | None = None) -> TagwireError | None:
        """Why the first rows that are failed are; None where all are delivered, as soon as that is known. Takes and
        raises what `Delivery.result` does."""
        _wait_until_done(self._batches, timeout)
        return next((leaf.error for leaf in self._leaves() if leaf.error is not None), None)

    def add_done_callback(self, function: Callable[[RowsDelivery], object]) -> None:
        """Calls `function` with this delivery when all of its rows are done, as `Delivery.add_done_callback`."""
        if not self._batches:
            run_callback(partial(function, self))
            return
        with self._batches[0].completion:
            # One batch after the other is waited for, so that it does not matter into how many each was split.
            batch = next((leaf for leaf in self._leaves() if not leaf.is_done), self._leaves()[-1])
            is_done = batch.is_done
            again = partial(function, self) if is_done else partial(self.add_done_callback, function)
            batch.callbacks.append((again, 0))
        if is_done:
            batch.run_callbacks()

    def _leaves(self) -> list[ProducerBatch]:
        return [leaf for batch in self._batches for leaf in batch.leaves()]

    def __repr__(self) -> str:
        failed = next((leaf.error for leaf in self._leaves() if leaf.error is not None), None)
        state = f"failed: {failed}" if failed else "delivered" if self.done() else "in flight"
        return f"<RowsDelivery {self._rows} rows {state}>"


def _wait_until_done(batches: Sequence[ProducerBatch], timeout: float | None) -> None:
    """Waits until these are complete. Raises RequestTimeoutError when they are not by then, and TagwireError where that
    would never be."""
    seconds("timeout", timeout)
    deadline = None if timeout is None else time.monotonic() + timeout
    for batch in batches:
        if not all(leaf.is_done for leaf in batch.leaves()):
            batch.completion.require_waitable()
        with batch.completion:
            while not all(leaf.is_done for leaf in batch.leaves()):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    name = batch.topic_partition
                    raise RequestTimeoutError(f"{name}: not delivered within {timeout:g} s; it is tried further")
                batch.completion.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
