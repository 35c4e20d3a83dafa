"""What a reader knows of each partition it reads, and the batches that have come of it."""

from __future__ import annotations

from collections.abc import Sequence

from tagwire.client.driver import Driver
from tagwire.client.retry import is_retriable, pause_before
from tagwire.errors import CorruptRecordError, TagwireError, UnsupportedVersionError
from tagwire.partitions import TopicPartition

UNKNOWN = -1


class Span:
    """One partition being read.

    Attributes:
        end: the offset to stop before; None reads on for ever.
        next: the offset to ask for next.
        log_end: where the partition ended when it was last asked, -1 before that: its last stable offset for readers
            of committed records, its high watermark for others.
        moves: how often the position was set by hand; what was fetched before the last time is not wanted.
    """

    __slots__ = ("_attempts", "_failing_since", "at", "end", "idle", "log_end", "moves", "next", "retry_at")

    def __init__(self, at: TopicPartition, start: int, end: int | None) -> None:
        self.at = at
        self.end = end
        self.next = start
        self.log_end = UNKNOWN
        self.moves = 0
        self.idle = 0.0  # seconds waited in vain since the last data
        self.retry_at = 0.0
        self._attempts = 0
        self._failing_since = 0.0

    @property
    def done(self) -> bool:
        """Whether everything up to `end` has arrived."""
        return self.end is not None and self.next >= self.end

    @property
    def more_is_there(self) -> bool:
        """Whether the broker is known, or has to be supposed, to hold more of what is wanted."""
        return not self.done and (self.log_end == UNKNOWN or self.next < self.log_end)

    def move(self, offset: int) -> None:
        """Reads on from `offset`, and has no use for what was fetched before."""
        self.next = offset
        self.moves += 1
        self.idle = self.retry_at = 0.0

    def succeeded(self) -> None:
        """The broker answered."""
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


class Chunk:
    """Whole batches of one partition, in order; none where all there is to tell is that reading goes on elsewhere.

    Attributes:
        start: the first offset wanted of them.
        next: the offset after them.
        data: their bytes, as they came.
        rows: how many records their headers announce.
        aborted: (producer id, first offset) of the aborted transactions among them, for readers of committed records.
    """

    __slots__ = ("_moves", "aborted", "data", "next", "rows", "span", "start")

    def __init__(
        self, span: Span, start: int, data: memoryview, rows: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.span = span
        self.start = start
        self.next = span.next
        self.data = data
        self.rows = rows
        self.aborted = aborted
        self._moves = span.moves

    @property
    def is_wanted(self) -> bool:
        """Whether the partition's position was not set by hand since this came."""
        return self._moves == self.span.moves


def broken(at: TopicPartition, offset: int, error: TagwireError) -> TagwireError:
    """`error` about records, naming the partition and the offset where they stand."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"{at}@{offset}: {error}")
    return CorruptRecordError(str(error), path=f"{at}@{offset}")
