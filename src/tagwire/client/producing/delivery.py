"""What becomes of records, for threads: futures, as `concurrent.futures.Future` without cancelling."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tagwire.client.config import seconds
from tagwire.client.producing.batch_delivery import BatchDelivery, BatchesDelivery, RecordMetadata, RowsMetadata
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.client.scheduling import NEVER, completed
from tagwire.errors import RequestTimeoutError, TagwireError


class Delivery(BatchDelivery):
    """What becomes of one record, or of one batch handed over whole: a future of its `RecordMetadata`.

    Attributes:
        topic, partition: where it is sent.
    """

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is, as soon as it is delivered.

        Args:
            timeout: seconds to wait at most; None for as long as the producer tries.

        Raises:
            TagwireError: why it is failed; or this is a callback, which the producer waits for, or a process that was
                forked.
            RequestTimeoutError: it is neither delivered nor failed by then, and may still be delivered.
        """
        _wait_until_done([self._batch], timeout)
        return self._metadata()

    def exception(self, timeout: float | None = None) -> TagwireError | None:
        """Why it is failed, None where it is delivered, as soon as that is known. Takes and raises what `result`
        does."""
        _wait_until_done([self._batch], timeout)
        return self._failure()


class RowsDelivery(BatchesDelivery):
    """What becomes of the rows of one `Producer.send_arrow`, all together: a future of their `RowsMetadata`."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RowsMetadata:
        """Where the rows are, as soon as all are delivered. Takes and raises what `Delivery.result` does."""
        _wait_until_done(self._batches, timeout)
        return self._metadata()

    def exception(self, timeout: float | None = None) -> TagwireError | None:
        """Why the first rows that are failed are; None where all are delivered, as soon as that is known. Takes and
        raises what `Delivery.result` does."""
        _wait_until_done(self._batches, timeout)
        return self._failure()


def _wait_until_done(batches: Sequence[ProducerBatch], timeout: float | None) -> None:
    """Waits until these are complete. Raises RequestTimeoutError when they are not by then, and TagwireError where that
    would never be."""
    seconds("timeout", timeout)
    deadline = NEVER if timeout is None else time.monotonic() + timeout
    for batch in batches:
        if all(leaf.is_done for leaf in batch.leaves()):
            continue
        batch.completion.require_waitable()
        while True:
            with batch.completion.held():
                if all(leaf.is_done for leaf in batch.leaves()):
                    break
                if time.monotonic() >= deadline:
                    name = batch.topic_partition
                    raise RequestTimeoutError(f"{name}: not delivered within {timeout:g} s; it is tried further")
                news = batch.completion.news()
            completed(news.wait(deadline))
