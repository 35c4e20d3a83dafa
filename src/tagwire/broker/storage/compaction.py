"""Compacting a log: of each key the last record stays, segments that became small are merged.

As in Kafka, the log has a part that was compacted and one that was not. Of the second, as much as fits into bounded
memory, the last offset of every key is noted; then every segment up to there is written anew without the records that
are replaced by later ones, segments that fit into one together as one. Offsets stay. The segment that is written to is
never touched, nor is anything from the oldest open transaction on.
Source: docs/record-formats.md#compaction, docs/log-files.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.cleaned_transactions import CleanedTransactions
from tagwire.broker.storage.cleaning import Cleaning
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.offset_map import OffsetMap
from tagwire.broker.storage.segment import CLEANED, LogSegment, PositionedBatch
from tagwire.errors import DecodeError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records import RecordBatch
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.files.offset_index import MAX_RELATIVE

logger = logging.getLogger("tagwire.broker")

MAP_BYTES = 64 << 20
"""Memory for the keys of one pass. Where more keys are not compacted yet, several passes do it."""

WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Dirt:
    """What of a log is to be compacted.

    Attributes:
        start, end: the offsets that were not, and can be.
        ratio: their part of the bytes up to `end`.
        is_overdue: whether the first of them has waited for max.compaction.lag.ms.
    """

    start: int
    end: int
    ratio: float
    is_overdue: bool


def dirt_of(log: PartitionLog, cleaned_to: int, now_ms: int) -> Dirt | None:
    """What there is to compact in a log that was compacted up to `cleaned_to`; None for nothing."""
    config, closed = log.config, log.closed_segments()
    start = max(cleaned_to, log.start_offset)
    end = min(closed[-1].next_offset, log.stable_offset) if closed else start
    if start > end:
        start = log.start_offset  # a checkpoint that is not of this log
    for segment in closed if config.min_compaction_lag_ms else ():
        newest = segment.newest[0] if segment.newest[0] >= 0 else segment.modified_ms()
        if segment.next_offset > start and newest > now_ms - config.min_compaction_lag_ms:
            end = min(end, segment.base_offset)
            break
    clean = sum(segment.size for segment in closed if segment.next_offset <= start)
    dirty = [segment for segment in closed if segment.next_offset > start and segment.base_offset < end]
    size = sum(segment.size for segment in dirty)
    if not size or end <= start:
        return None
    return Dirt(start, end, size / (clean + size), dirty[0].began_ms() <= now_ms - config.max_compaction_lag_ms)


class Compaction:
    """One pass over a log.

    Args:
        files, log: what is compacted.
        where: the topic and partition that it is of.
        cleaned, gaps: where it is written down how far compaction came, and up to where it may leave gaps.
        stop: called again and again: whether to give up.
        map_bytes: memory for keys.
    """

    def __init__(
        self,
        files: Files,
        log: PartitionLog,
        where: TopicPartition,
        cleaned: OffsetCheckpoint,
        gaps: OffsetCheckpoint,
        *,
        stop: Callable[[], bool] = lambda: False,
        map_bytes: int = MAP_BYTES,
    ) -> None:
        self._files = files
        self._log = log
        self._where = where
        self._cleaned = cleaned
        self._gaps = gaps
        self._stop = stop
        self._map_bytes = map_bytes

    def run(self, dirt: Dirt, now_ms: int) -> None:
        """Compact what is dirty, as far as memory reaches.

        Raises:
            StorageError: the disk refused, a batch cannot be read, or the log is offline. What was done stays done.
        """
        log, before = self._log, self._log.size_bytes
        # With gaps allowed, what a crash takes from the middle would not be noticed. And what is known of producers
        # decides which batches may go: a crash must not take what it is known from.
        producers = log.settled_producers()
        try:
            last_of = self._map(dirt)
            if not last_of.next_offset:
                return
            transactions = CleanedTransactions(log.all_aborted())
            cleaning = Cleaning(last_of, transactions, producers, now_ms, log.config.delete_retention_ms)
            segments = [segment for segment in log.closed_segments() if segment.base_offset < last_of.next_offset]
            while segments:
                done = self._clean(segments, cleaning)
                if not done:
                    return
                segments = segments[done:]
            log.note(lambda: self._cleaned.raise_to({self._where: last_of.next_offset}))
            sizes = before, log.size_bytes
            logger.info("%s: compacted up to %d, %d bytes to %d", log.directory.name, last_of.next_offset, *sizes)
        except FileNotFoundError:
            return  # retention or a deletion was faster
        except OSError as error:
            raise StorageError(f"{log.directory}: compaction failed: {error}") from error
        except DecodeError as error:
            raise StorageError(f"{log.directory}: compaction found what it cannot read: {error}") from error

    def _map(self, dirt: Dirt) -> OffsetMap:
        last_of = OffsetMap(self._map_bytes)
        # Of those whose markers are before the walk nothing would tell their ends.
        transactions = CleanedTransactions(a for a in self._log.all_aborted() if a.last_offset >= dirt.start)
        for segment in self._log.closed_segments():
            if segment.next_offset <= dirt.start:
                continue
            for batch in segment.batches(dirt.start):
                if batch.base_offset >= dirt.end or self._stop():
                    return last_of
                if not transactions.may_go(batch) and not batch.is_control:
                    # A batch of more keys than the whole map has room for is taken all the same: else nothing is.
                    if batch.count > last_of.room() and len(last_of):
                        return last_of
                    for record in batch.records(max_decompressed=MAX_DECOMPRESSED):
                        if record.key is not None:
                            last_of.put(record.key, record.offset)
                last_of.next_offset = batch.next_offset
        return last_of

    def _clean(self, segments: Sequence[LogSegment], cleaning: Cleaning) -> int:
        """Write the first segments anew, as many as then fit into one, and put that into their place. How many they
        were; 0 when that was not done."""
        log, first = self._log, segments[0]
        new = LogSegment.create(
            self._files, log.directory, first.base_offset, log.config.index_interval_bytes, state=CLEANED
        )
        cleaning.transactions.kept = []
        group: list[LogSegment] = []
        is_changed = False
        try:
            for segment in segments:
                too_large = new.size + segment.size > log.config.segment_bytes
                if group and (too_large or segment.next_offset - first.base_offset > MAX_RELATIVE):
                    break
                group.append(segment)
                is_changed = self._write(segment, new, cleaning) or is_changed
            if self._stop() or not (is_changed or len(group) > 1):
                new.remove()
                return 0 if self._stop() else len(group)
            self._finish(new, group, cleaning)
        except BaseException:
            new.remove()
            raise
        is_done = log.replace(group, new, lambda: self._gaps.raise_to({self._where: cleaning.last_of.next_offset}))
        return len(group) if is_done else 0

    def _write(self, segment: LogSegment, new: LogSegment, cleaning: Cleaning) -> bool:
        """Add what is kept of a segment to `new`; whether that is less than all of it."""
        is_changed = False
        run: list[PositionedBatch] = []
        size = 0
        for batch in segment.batches():
            if self._stop():
                break
            batch.verify()
            kept = cleaning.keep(batch)
            is_changed = is_changed or kept is not batch.data
            if kept is not None:
                run.append(_placed(kept))
                size += len(kept)
            if size >= WRITE_BYTES:
                new.append(run)
                run, size = [], 0
        if run:
            new.append(run)
        return is_changed

    def _finish(self, new: LogSegment, group: Sequence[LogSegment], cleaning: Cleaning) -> None:
        new.next_offset = group[-1].next_offset
        new.aborted = cleaning.transactions.kept
        new.finish()
        new.sync()
        new.save_indexes(sync=True)
        new.close()
        self._files.sync_directory(self._log.directory)


def _placed(data: memoryview) -> PositionedBatch:
    batch = RecordBatch(data, 0)
    return PositionedBatch(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size, (data,))
