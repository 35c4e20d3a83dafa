"""The fetch position of each partition that a reader has, and the batches that were fetched.

Kafka's SubscriptionState.FetchPosition and CompletedFetch are the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tagwire.client.driver import Driver
from tagwire.client.retry import is_retriable, pause_before
from tagwire.errors import CorruptRecordError, TagwireError, UnsupportedVersionError
from tagwire.partitions import TopicPartition

UNKNOWN: Final = -1


class FetchPosition:
    """How far one partition is fetched.

    Attributes:
        partition: which one.
        offset: the next one to fetch.
        end_offset: the one to stop before; None goes on for ever.
        readable_end: the end of the partition as the last response told it, -1 before there was one: the last stable
            offset for readers of committed records, the high watermark for others.
        seeks: how often `seek` was called; what was fetched before the last time is not wanted.
        idle: seconds waited in vain since the last records.
        retry_at: when the partition may be fetched again after a failure (seconds of the driver's clock).
    """

    __slots__ = (
        "_attempts",
        "_failing_since",
        "end_offset",
        "idle",
        "offset",
        "partition",
        "readable_end",
        "retry_at",
        "seeks",
    )

    def __init__(self, partition: TopicPartition, offset: int, end_offset: int | None) -> None:
        self.partition = partition
        self.offset = offset
        self.end_offset = end_offset
        self.readable_end = UNKNOWN
        self.seeks = 0
        self.idle = 0.0
        self.retry_at = 0.0
        self._attempts = 0
        self._failing_since = 0.0

    @property
    def done(self) -> bool:
        """Whether everything up to `end_offset` is fetched."""
        return self.end_offset is not None and self.offset >= self.end_offset

    @property
    def has_more(self) -> bool:
        """Whether the broker is known, or has to be supposed, to have more of what is wanted."""
        return not self.done and (self.readable_end == UNKNOWN or self.offset < self.readable_end)

    def seek(self, offset: int) -> None:
        """Goes on from `offset`, and has no use for what was fetched before."""
        self.offset = offset
        self.seeks += 1
        self.idle = self.retry_at = 0.0

    def succeeded(self) -> None:
        """The broker responded without an error."""
        self._attempts = 0

    def failed(self, error: TagwireError, timeout: float, driver: Driver) -> None:
        """Puts off the next attempt. Raises `error` when it is not worth one, or has lasted for `timeout` seconds."""
        now = driver.now()
        if not self._attempts:
            self._failing_since = now
        if not is_retriable(error) or now - self._failing_since >= timeout:
            raise error
        self._attempts += 1
        self.retry_at = now + pause_before(self._attempts, driver.random)


class CompletedFetch:
    """Whole record batches of one partition, in order; none where the position was only moved.

    Attributes:
        position: of the partition.
        start_offset: the first one wanted of them.
        next_offset: the one after them.
        records: their bytes, as they came.
        record_count: how many records their headers state.
        aborted_transactions: (producer id, first offset) of those among them, for readers of committed records.
    """

    __slots__ = (
        "_seeks",
        "aborted_transactions",
        "next_offset",
        "position",
        "record_count",
        "records",
        "start_offset",
    )

    def __init__(
        self,
        position: FetchPosition,
        start_offset: int,
        records: memoryview,
        record_count: int,
        aborted_transactions: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.position = position
        self.start_offset = start_offset
        self.next_offset = position.offset
        self.records = records
        self.record_count = record_count
        self.aborted_transactions = aborted_transactions
        self._seeks = position.seeks

    @property
    def is_current(self) -> bool:
        """Whether `seek` was not called since the records were fetched."""
        return self._seeks == self.position.seeks


def at_offset(partition: TopicPartition, offset: int, error: TagwireError) -> TagwireError:
    """`error` about records, naming the partition and the offset of their batch."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"{partition}@{offset}: {error}")
    return CorruptRecordError(str(error), path=f"{partition}@{offset}")
