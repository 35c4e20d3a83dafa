"""The log of one partition: segments in order, batches added at the end and read from anywhere.

A batch's bytes are stored unchanged but for its base offset and leader epoch, which its checksum does not cover (and,
where the topic says LogAppendTime, its timestamp type and greatest timestamp). What is read never passes the *visible
end*: the end of what is as safe as an acknowledgement promises. With fsync before ack that is the end of what is on
the disk.

Threads: methods that change the log hold one lock, so writers take turns; readers take no lock, they work on a snapshot
of the segments and of the visible end. Source: facts/kafka_protocol.md 5.3, 5.7.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tagwire.broker.files import Files
from tagwire.broker.segment import EMPTY, Placed, Segment
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError, StorageError, TagwireError
from tagwire.records import place, read, restamp
from tagwire.records.batch import HEADER_SIZE

logger = logging.getLogger("tagwire.broker")


class OffsetOutOfRangeError(TagwireError):
    """An offset that the log does not hold (any more), or not yet."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One whole, checked record batch of magic 2 that waits for its offsets.

    Attributes:
        data: its bytes.
        last_offset_delta: its last offset, counted from its first.
        max_timestamp: its greatest timestamp, ms; -1 for none.
    """

    data: memoryview
    last_offset_delta: int
    max_timestamp: int


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch landed: its first offset, and the broker's time (ms) if that is its timestamp, else -1."""

    base_offset: int
    append_time_ms: int


@dataclass(frozen=True, slots=True)
class VisibleEnd:
    """Up to where readers may look.

    Attributes:
        offset: the first offset that may not be read.
        segment: base offset of the segment it lies in.
        position: where in that segment's file.
        newest: the greatest timestamp (ms) in that segment before it.
    """

    offset: int
    segment: int
    position: int
    newest: int


class PartitionLog:
    """A partition's records on disk.

    Attributes:
        directory: where its files are.
        leader_epoch: what is written into every batch that is added.
        config: the topic's configuration.
    """

    def __init__(
        self, files: Files, directory: Path, segments: Sequence[Segment], config: TopicConfig, leader_epoch: int
    ) -> None:
        """Takes over `segments`, in order, at least one, all of which are on the disk."""
        self.directory = directory
        self.config = config
        self.leader_epoch = leader_epoch
        self._files = files
        self._segments = tuple(segments)
        self._unsynced: dict[int, Segment] = {}
        self._new_names = False
        self._offline: str | None = None
        self._writing = threading.Lock()
        self._published_bytes = 0
        self._visible = self._written_end()
        self.recovery_point = self._visible.offset

    @property
    def start_offset(self) -> int:
        """The oldest offset held."""
        return self._segments[0].base_offset

    @property
    def end_offset(self) -> int:
        """One past the newest offset that may be read (the high watermark)."""
        return self._visible.offset

    @property
    def published_bytes(self) -> int:
        """How many bytes became readable since the log was opened: tells a waiting reader when to look again."""
        return self._published_bytes

    @property
    def is_offline(self) -> bool:
        """Whether a disk error has ended the use of this log until the broker is started again."""
        return self._offline is not None

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client that knows another leader epoch; -1 stands for one that does not say.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer.
        """
        if epoch not in (-1, self.leader_epoch):
            raise KafkaError(Error.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else Error.UNKNOWN_LEADER_EPOCH)

    def append(self, batches: Sequence[Batch]) -> list[Appended | StorageError]:
        """Write batches at the end, in order. They are read, and safe, only after `flush` or `publish`.

        The answer has one entry per batch. Once a write fails, so does every batch after it: order is kept. A failed
        write is undone; if even that fails, the log is offline.
        """
        now = time.time_ns() // 1_000_000
        stamp = now if self.config.message_timestamp_type == "LogAppendTime" else -1
        outcome: list[Appended | StorageError] = []
        with self._writing:
            try:
                run: list[Placed] = []
                next_offset, size = self._active.next_offset, self._active.size
                for batch in batches:
                    grown = size + len(batch.data)
                    last_offset = next_offset + batch.last_offset_delta
                    if size and (grown > self.config.segment_bytes or not self._active.can_hold(last_offset)):
                        outcome += self._write(run, stamp)
                        run = []
                        self._roll()
                        grown = len(batch.data)
                    run.append(self._placed(batch, next_offset, stamp))
                    next_offset, size = last_offset + 1, grown
                outcome += self._write(run, stamp)
            except OSError as error:
                logger.error("%s: %s", self.directory.name, error)
                failure = StorageError(f"{self.directory}: write failed: {error}")
                outcome += [failure] * (len(batches) - len(outcome))
            except StorageError as failure:
                self._go_offline(str(failure))
                outcome += [failure] * (len(batches) - len(outcome))
        return outcome

    def flush(self) -> None:
        """Wait until everything written is on the disk, then let it be read.

        Raises:
            StorageError: the disk refused. What was not on it is gone, the log is offline, and this is never retried:
                after a failed fsync the system may claim success for bytes it has dropped.
        """
        with self._writing:
            self._flush()

    def publish(self) -> None:
        """Let everything written be read, on the disk or not."""
        with self._writing:
            self._publish()
            for segment in self._unsynced.values():
                if segment is not self._active:
                    segment.close()

    def read(self, offset: int, max_bytes: int, *, whole_first: bool = True) -> memoryview:
        """Whole batches from the one that holds `offset` on; empty at the end of the log.

        Args:
            offset: where to start; an offset inside a batch gives the whole batch.
            max_bytes: how much at most. With `whole_first`, the first batch is returned even if it is larger.

        Raises:
            OffsetOutOfRangeError: `offset` is before the start or past the end.
            CorruptRecordError: the file does not hold batches there.
            StorageError: the log is offline, or the disk refused.
        """
        self._check_online()
        visible, segments = self._visible, self._segments
        if not segments[0].base_offset <= offset <= max(visible.offset, segments[-1].next_offset):
            raise OffsetOutOfRangeError(
                f"{self.directory.name} has offsets {self.start_offset}-{visible.offset}, not {offset}"
            )
        try:
            for segment in segments[self._holding(segments, offset) :]:
                if segment.base_offset > visible.segment:
                    break
                limit = visible.position if segment.base_offset == visible.segment else segment.size
                if data := segment.read(offset, max_bytes, limit, whole_first=whole_first):
                    return data
                if offset < segment.next_offset:
                    break
        except FileNotFoundError:
            raise OffsetOutOfRangeError(f"{self.directory.name}: offset {offset} has just been deleted") from None
        except OSError as error:
            raise StorageError(f"{self.directory}: read failed: {error}") from error
        return EMPTY

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """The first record that is not older than `timestamp`: its (timestamp, offset); None when all are older.

        Raises:
            StorageError, CorruptRecordError: as `read`; also when a batch's records cannot be read.
        """
        self._check_online()
        visible = self._visible
        try:
            for segment in self._segments:
                if segment.base_offset > visible.segment or segment.newest[0] < timestamp:
                    continue
                limit = visible.position if segment.base_offset == visible.segment else segment.size
                for data in segment.batches_since(timestamp, limit):
                    for batch in read(data):
                        for record in batch.records():
                            if record.timestamp >= timestamp:
                                return record.timestamp, record.offset
        except OSError as error:
            raise StorageError(f"{self.directory}: read failed: {error}") from error
        return None

    def newest(self) -> tuple[int, int] | None:
        """The (timestamp, offset) of the record with the greatest timestamp, the first where several share it."""
        visible = self._visible
        closed = (segment.newest[0] for segment in self._segments if segment.base_offset < visible.segment)
        timestamp = max([visible.newest, *closed])
        return self.offset_for_timestamp(timestamp) if timestamp >= 0 else None

    def expire(self, now_ms: int) -> int:
        """Delete whole old segments as the topic's retention asks, and say how many.

        The segment that is written to is never deleted; when all its records are too old, it is closed first.
        """
        with self._writing:
            if self._offline is not None:
                return 0
            try:
                if self._active.size and self._is_expired(self._active, now_ms):
                    self._roll()
                    self._flush()
                count = self._expired(now_ms)
                gone, self._segments = self._segments[:count], self._segments[count:]
                for segment in gone:
                    self._unsynced.pop(segment.base_offset, None)
                    segment.remove()
                if gone:
                    self._files.sync_directory(self.directory)
            except OSError as error:
                raise StorageError(f"{self.directory}: retention failed: {error}") from error
        return count

    def close(self) -> None:
        """Bring everything to the disk, indexes too, and close the files.

        Raises:
            StorageError: the disk refused, or had done so before: the next start must check this log.
        """
        with self._writing:
            try:
                self._check_online()
                self._active.finish()
                self._flush()
                self._active.save_indexes(sync=True)
            except OSError as error:
                raise StorageError(f"{self.directory}: closing failed: {error}") from error
            finally:
                self._release()
                self._offline = self._offline or "it was closed"

    def abandon(self, reason: str) -> None:
        """Close the files as they are; nothing is read or written any more."""
        with self._writing:
            self._offline = self._offline or reason
            self._release()

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    @staticmethod
    def _holding(segments: Sequence[Segment], offset: int) -> int:
        return bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1

    def _check_online(self) -> None:
        if self._offline is not None:
            raise StorageError(f"{self.directory} is offline: {self._offline}")

    def _go_offline(self, reason: str) -> None:
        logger.error("%s is offline until the next start: %s", self.directory.name, reason)
        self._offline = reason
        self._release()

    def _release(self) -> None:
        for segment in (*self._unsynced.values(), self._active):
            segment.close()

    def _placed(self, batch: Batch, base_offset: int, stamp: int) -> Placed:
        head = bytearray(batch.data[:HEADER_SIZE])
        max_timestamp = batch.max_timestamp
        if stamp >= 0:
            restamp(head, stamp, batch.data[HEADER_SIZE:])
            max_timestamp = stamp
        place(head, base_offset, self.leader_epoch)
        last_offset = base_offset + batch.last_offset_delta
        return Placed(base_offset, last_offset, max_timestamp, len(batch.data), (head, batch.data[HEADER_SIZE:]))

    def _write(self, run: Sequence[Placed], stamp: int) -> list[Appended]:
        self._check_online()
        if run:
            self._unsynced[self._active.base_offset] = self._active
            self._active.append(run)
        return [Appended(placed.base_offset, stamp) for placed in run]

    def _roll(self) -> None:
        active = self._active
        active.finish()
        fresh = Segment.create(self._files, self.directory, active.next_offset, self.config.index_interval_bytes)
        self._segments = (*self._segments, fresh)
        self._new_names = True
        self._unsynced[active.base_offset] = active

    def _flush(self) -> None:
        self._check_online()
        try:
            for segment in list(self._unsynced.values()):
                segment.sync()
                if segment is not self._active:
                    segment.save_indexes(sync=True)
                    segment.close()
                del self._unsynced[segment.base_offset]
            if self._new_names:
                self._files.sync_directory(self.directory)
                self._new_names = False
        except OSError as error:
            self._drop_unsafe()
            self._go_offline(f"fsync failed: {error}")
            raise StorageError(f"{self.directory}: fsync failed: {error}") from error
        self._publish()
        self.recovery_point = self._visible.offset

    def _publish(self) -> None:
        before, after = self._visible, self._written_end()
        if after.offset != before.offset:
            self._published_bytes += sum(
                segment.size - (before.position if segment.base_offset == before.segment else 0)
                for segment in self._segments
                if segment.base_offset >= before.segment
            )
        self._visible = after

    def _written_end(self) -> VisibleEnd:
        active = self._active
        return VisibleEnd(active.next_offset, active.base_offset, active.size, active.newest[0])

    def _drop_unsafe(self) -> None:
        # Bytes that were never acknowledged and may not be on the disk must not be found, and trusted, by the next
        # start.
        try:
            for segment in reversed(self._segments):
                if segment.base_offset > self._visible.segment:
                    segment.remove()
                elif segment.base_offset == self._visible.segment:
                    segment.cut_back(self._visible.position)
        except OSError as error:
            logger.error("%s: bytes that were not acknowledged stay in the file: %s", self.directory.name, error)

    def _is_expired(self, segment: Segment, now_ms: int) -> bool:
        if self.config.retention_ms < 0:
            return False
        newest = segment.newest[0]
        return (newest if newest >= 0 else segment.modified_ms()) < now_ms - self.config.retention_ms

    def _expired(self, now_ms: int) -> int:
        surplus = sum(segment.size for segment in self._segments) - self.config.retention_bytes
        count = 0
        for segment in self._segments[:-1]:
            if segment.base_offset >= self._visible.segment:
                break
            surplus -= segment.size
            too_large = self.config.retention_bytes >= 0 and surplus >= 0
            if not too_large and not self._is_expired(segment, now_ms):
                break
            count += 1
        return count
