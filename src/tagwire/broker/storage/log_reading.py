"""Reading a log: whole batches from an offset on, and records by their time.

A reader takes no lock: it works on a view, the segments and the ends that the log had when it began.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tagwire.broker.storage.scan import ending_before, last_offsets
from tagwire.broker.storage.segment import EMPTY, LogSegment
from tagwire.errors import TagwireError
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.files.transaction_index import AbortedTransaction


class OffsetOutOfRangeError(TagwireError):
    """An offset that the log does not hold (any more), or not yet."""


@dataclass(frozen=True, slots=True)
class VisibleEnd:
    """Up to where readers may look.

    Attributes:
        offset: the first offset that may not be read.
        segment: base offset of the segment it lies in.
        position: where in that segment's file.
        newest: the greatest timestamp (ms) in that segment before it.
        stable: the first offset that readers of committed records may not read.
    """

    offset: int
    segment: int
    position: int
    newest: int
    stable: int


@dataclass(frozen=True, slots=True)
class LogView:
    """A log at one moment. Of a segment that is deleted or replaced meanwhile, reading raises FileNotFoundError.

    Attributes:
        name: what errors call it.
        segments: its segments, in order.
        start: the first offset that may be read.
        end: up to where may be read.
        dialect: the format of what is in it; None for record batches.
    """

    name: str
    segments: Sequence[LogSegment]
    start: int
    end: VisibleEnd
    dialect: str | None

    @property
    def stable(self) -> int:
        """See `ReadableLog.stable_offset`."""
        return max(self.end.stable, self.start)

    def read(self, offset: int, max_bytes: int, *, whole_first: bool, committed: bool) -> memoryview:
        """See `PartitionLog.read`."""
        segments, end = self.segments, self.end
        if not self.start <= offset <= max(end.offset, segments[-1].next_offset):
            raise OffsetOutOfRangeError(f"{self.name} has offsets {self.start}-{end.offset}, not {offset}")
        if offset >= end.offset:
            return EMPTY
        holding = bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1
        for segment in segments[max(holding, 0) :]:
            if segment.base_offset > end.segment:
                break
            data = segment.read(offset, max_bytes, self._limit(segment), whole_first=whole_first)
            if data is not None:
                hidden = committed and self.stable < end.offset
                return _kept(ending_before(data, self.stable, self.dialect) if hidden else data)
        return EMPTY

    def aborted(self, offset: int, data: memoryview) -> list[AbortedTransaction]:
        """See `Fetched.aborted`."""
        found = [a for segment in self.segments for a in segment.aborted if a.last_offset >= offset]
        if not found:
            return []
        *_, (_, _, last_offset) = last_offsets(data, self.dialect) if len(data) else [(0, 0, offset - 1)]
        return [transaction for transaction in found if transaction.first_offset <= last_offset]

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """See `PartitionLog.offset_for_timestamp`."""
        for segment in self.segments:
            if segment.base_offset > self.end.segment or segment.newest[0] < timestamp:
                continue
            for batch in segment.batches_since(timestamp, self._limit(segment)):
                if batch.last_offset < self.start:
                    continue
                batch.verify()
                for record in batch.records(max_decompressed=MAX_DECOMPRESSED):
                    if record.timestamp >= timestamp and record.offset >= self.start:
                        return record.timestamp, record.offset
        return None

    def newest(self) -> tuple[int, int] | None:
        """See `PartitionLog.newest`."""
        timestamp = self.newest_timestamp()
        found = self.offset_for_timestamp(timestamp) if timestamp >= 0 else None
        if found is None and timestamp >= 0 and self.segments[0].base_offset < self.start:
            # Perhaps it is in the part of a segment that was deleted: of that one its index knows nothing else.
            timestamp = self._newest_in_the_first()
            if self.segments[0].base_offset < self.end.segment:
                timestamp = max(timestamp, replace(self, segments=self.segments[1:]).newest_timestamp())
            found = self.offset_for_timestamp(timestamp) if timestamp >= 0 else None
        return found

    def _newest_in_the_first(self) -> int:
        """The greatest timestamp that the first segment holds from the start of the log on; -1 where there is none."""
        segment, newest = self.segments[0], -1
        for batch in segment.batches_since(0, self._limit(segment)):
            if batch.base_offset >= self.start:
                newest = max(newest, batch.max_timestamp)
            elif batch.last_offset >= self.start:
                batch.verify()
                records = batch.records(max_decompressed=MAX_DECOMPRESSED)
                newest = max([newest, *(each.timestamp for each in records if each.offset >= self.start)])
        return newest

    def newest_timestamp(self) -> int:
        """The greatest timestamp, ms; -1 where there is none."""
        closed = (segment.newest[0] for segment in self.segments if segment.base_offset < self.end.segment)
        return max([self.end.newest, *closed])

    def _limit(self, segment: LogSegment) -> int:
        return self.end.position if segment.base_offset == self.end.segment else segment.size


def _kept(data: memoryview) -> memoryview:
    """What of `data` may wait for a slow reader: it holds all the bytes that were read, which are to be no more than
    twice those that are counted."""
    return data if 2 * len(data) >= memoryview(data.obj).nbytes else memoryview(bytes(data))


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was read of a log, and the log as it was at that moment.

    What is read of the log again may be of another moment: its segments may have been replaced or deleted since.

    Attributes:
        offset: where it was read from.
        records: whole batches from the one that holds `offset` on.
        view: the log.
    """

    offset: int
    records: memoryview
    view: LogView

    def aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions whose records may be in `records`."""
        return self.view.aborted(self.offset, self.records)
