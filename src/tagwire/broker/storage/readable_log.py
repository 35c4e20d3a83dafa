"""A log as anyone may see it, from any thread and without its lock: where it starts and ends, and what is in it.

What is told here is one reference to what never changes, or a number. Whoever changes the log puts another into its
place, with the lock held; what reads more than one of them works on a view (see `log_reading`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tagwire.broker.storage.leader_epochs import LeaderEpochs
from tagwire.broker.storage.log_lock import guarded, log_lock
from tagwire.broker.storage.log_reading import Fetched, LogView, OffsetOutOfRangeError, VisibleEnd
from tagwire.broker.storage.segment import EMPTY, LogSegment
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import StorageError
from tagwire.records.files.transaction_index import AbortedTransaction

Seen = TypeVar("Seen")


@guarded("_writing", changed=("_segments", "_start", "_visible", "_published_bytes", "_offline"))
class ReadableLog:
    """A partition's records on disk, to be read.

    Attributes:
        directory: where its files are.
        config: the topic's configuration; another one takes effect from the next append on.
        epochs: its leader epochs; the latest is written into every batch that is added.
    """

    def __init__(
        self,
        directory: Path,
        segments: Sequence[LogSegment],
        config: TopicConfig,
        epochs: LeaderEpochs,
        start_offset: int,
        visible: VisibleEnd,
    ) -> None:
        """A log of `segments`, in order, at least one, that may be read up to `visible`."""
        self.directory = directory
        self.config = config
        self.epochs = epochs
        # Taken before `_writing` by whoever takes segments away, so that appends need not wait for that.
        self._restructuring = log_lock()
        self._writing = log_lock()
        self._start = start_offset
        self._segments = tuple(segments)
        self._visible = visible
        self._offline: str | None = None
        self._published_bytes = 0

    @property
    def dialect(self) -> str | None:
        """The format of what is stored; None for record batches."""
        return self.config.dialect

    @property
    def start_offset(self) -> int:
        """The oldest offset held."""
        return max(self._start, self._segments[0].base_offset)

    @property
    def leader_epoch(self) -> int:
        """What is written into every batch that is added."""
        return self.epochs.latest

    @property
    def end_offset(self) -> int:
        """One past the newest offset that may be read (the high watermark)."""
        return self._visible.offset

    @property
    def size_bytes(self) -> int:
        """How much of the disk its records take."""
        return sum(segment.size for segment in self._segments)

    @property
    def stable_offset(self) -> int:
        """One past the newest offset that readers of committed records may read (the last stable offset).

        Where what an open transaction has written first was deleted, that is where the log starts, as in Kafka: a
        reader that is sent before the start would find no records there.
        """
        return self._view().stable

    @property
    def published_bytes(self) -> int:
        """How many bytes became readable since the log was opened: tells a waiting reader when to look again."""
        return self._published_bytes

    @property
    def is_offline(self) -> bool:
        """Whether a disk error has ended the use of this log until the broker is started again."""
        return self._offline is not None

    @property
    def offline_reason(self) -> str | None:
        """Why it is offline; None while it is not."""
        return self._offline

    def read(self, offset: int, max_bytes: int, *, whole_first: bool = True, committed: bool = False) -> memoryview:
        """Whole batches from the one that holds `offset` on; empty at the end of the log.

        Args:
            offset: where to start; an offset inside a batch gives the whole batch.
            max_bytes: how much at most. With `whole_first`, the first batch is returned even if it is larger.
            committed: stop before the first batch that belongs to an open transaction.

        Raises:
            OffsetOutOfRangeError: `offset` is before the start or past the end.
            CorruptRecordError: the file does not hold batches there.
            StorageError: the log is offline, or the disk refused.
        """
        return self._viewed(lambda view: view.read(offset, max_bytes, whole_first=whole_first, committed=committed))

    def fetch(self, offset: int, max_bytes: int, *, whole_first: bool = True, committed: bool = False) -> Fetched:
        """As `read`; with what else the log could tell at the moment that was read."""

        def look(view: LogView) -> Fetched:
            return Fetched(offset, view.read(offset, max_bytes, whole_first=whole_first, committed=committed), view)

        return self._viewed(look)

    @property
    def visible_end(self) -> VisibleEnd:
        """Up to where may be read."""
        return self._visible

    def fetch_since(self, end: VisibleEnd, most: int, *, committed: bool = False) -> Fetched | None:
        """`fetch` from what was the end, for the event loop: it never waits for the disk.

        None where that takes a disk thread: there are more than `most` bytes, or another segment; the system would have
        to read them; they have to be looked through for transactions, or are of a dialect; whatever is wrong.
        """
        view = self._view()
        now, segment = view.end, view.segments[-1]
        size = now.position - end.position
        if self.is_offline or view.dialect is not None or not end.segment == now.segment == segment.base_offset:
            return None
        if not 0 <= size <= most or not view.start <= end.offset <= now.offset:
            return None
        if committed and (view.stable < now.offset or any(one.aborted for one in view.segments)):
            return None
        try:
            data = segment.read_cached(end.position, now.position) if size else EMPTY
        except OSError:
            return None
        return None if data is None else Fetched(end.offset, memoryview(data), view)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """The first record that is not older than `timestamp`: its (timestamp, offset); None when all are older.

        Raises:
            StorageError, CorruptRecordError: as `read`; also when a batch's records cannot be read.
        """
        return self._viewed(lambda view: view.offset_for_timestamp(timestamp))

    def newest(self) -> tuple[int, int] | None:
        """The (timestamp, offset) of the record with the greatest timestamp, the first where several share it.

        None where there is none, or where compaction took it: its timestamp is still that of its batch. Raises as
        `offset_for_timestamp`.
        """
        return self._viewed(LogView.newest)

    def _view(self) -> LogView:
        return LogView(self.directory.name, self._segments, self.start_offset, self._visible, self.dialect)

    def _viewed(self, look: Callable[[LogView], Seen]) -> Seen:
        while True:
            self.check_online()
            view = self._view()
            try:
                return look(view)
            except FileNotFoundError:
                with self._restructuring:
                    pass  # whoever took the file away has said so by now
                self.check_online()
                if self._segments is view.segments:
                    raise OffsetOutOfRangeError(f"{self.directory.name}: a segment has just been deleted") from None
            except OSError as error:
                raise StorageError(f"{self.directory}: read failed: {error}") from error

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """See `LeaderEpochs.end_of`."""
        return self.epochs.end_of(epoch, self.start_offset, self.end_offset)

    def divergence(self, offset: int, epoch: int) -> tuple[int, int] | None:
        """The newest epoch in common with a reader that has come to `offset` by a record of `epoch`, and its end; None
        where this log holds what was read (KIP-595).

        Raises:
            OffsetOutOfRangeError: the epoch is yet to come, or `offset` is before the start.
        """
        written = max(self.end_offset, self._segments[-1].next_offset)
        told = self.epochs.end_of(epoch, self.start_offset, written)
        if told is None or offset < self.start_offset:
            raise OffsetOutOfRangeError(f"{self.directory.name} has nothing of epoch {epoch} before offset {offset}")
        return told if told[0] < epoch or told[1] < offset else None

    def check_deletion(self, before: int) -> int:
        """The offset that the log is to start at when what is before `before` is deleted; -1 stands for its end.

        Raises:
            OffsetOutOfRangeError: `before` is past the end, or below zero.
            StorageError: the log is offline.
        """
        self.check_online()
        end = self.end_offset
        if not -1 <= before <= end:
            raise OffsetOutOfRangeError(f"{self.directory.name} ends at offset {end}; {before} is not before that")
        return max(end if before == -1 else before, self.start_offset)

    def closed_segments(self) -> tuple[LogSegment, ...]:
        """The segments that are not written to any more and whose every byte can be read, in order."""
        last = self._visible.segment
        return tuple(segment for segment in self._segments if segment.base_offset < last)

    def all_aborted(self) -> list[AbortedTransaction]:
        """Every aborted transaction that is known of, in the order of their markers."""
        return [transaction for segment in self._segments for transaction in list(segment.aborted)]

    def check_online(self) -> None:
        """Raises StorageError: the log is offline."""
        if self._offline is not None:
            raise StorageError(f"{self.directory} is offline: {self._offline}")
