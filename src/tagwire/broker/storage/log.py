"""The log of one partition: segments in order, batches added at the end and read from anywhere.

A batch's bytes are stored unchanged but for its base offset and leader epoch, which its checksum does not cover (and,
where the topic says LogAppendTime, its timestamp type and greatest timestamp). What is read never passes the *visible
end*: the end of what is as safe as an acknowledgement promises. With fsync before ack that is the end of what is on
the disk.

Threads: whoever changes the log, or asks what is known of its producers, holds its lock (see `log_lock`), and whoever
takes segments away another one first. Both may be held for as long as the disk takes, so nothing on the event loop
takes them. Readers take none (see `readable_log`). Source: docs/record-formats.md#record-batches, docs/log-files.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path

from tagwire.broker.clock import wall_ms
from tagwire.broker.storage.batch import Appended, Batch
from tagwire.broker.storage.checkpoints import write_epochs
from tagwire.broker.storage.files import Files, UnsettledError
from tagwire.broker.storage.leader_epochs import LeaderEpochs, held_epochs
from tagwire.broker.storage.log_lock import guarded
from tagwire.broker.storage.log_reading import VisibleEnd
from tagwire.broker.storage.offset_assignment import positioned
from tagwire.broker.storage.producer_snapshots import drop_snapshot, drop_snapshots, save_snapshot, sync_snapshot
from tagwire.broker.storage.producer_state import Producer, ProducerState
from tagwire.broker.storage.readable_log import ReadableLog
from tagwire.broker.storage.retention import Deletion, is_expired, is_overdue, is_surplus
from tagwire.broker.storage.segment import SWAP, LogSegment, PositionedBatch
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, TagwireError
from tagwire.records.files.checkpoints import EPOCHS_FILE
from tagwire.records.files.transaction_index import AbortedTransaction

logger = logging.getLogger("tagwire.broker")

_MAX_OFFSET = 2**63 - 1


@guarded("_writing", changed=("recovery_point",), used=("_producers", "_unsynced", "_new_names"))
class PartitionLog(ReadableLog):
    """A partition's records on disk.

    Attributes:
        recovery_point: up to which offset all is on the disk.
        was_opened: whether its files could be opened when the broker was started.
        not_compacted_before: until when (ms) it is left alone, because it could not be compacted.
    """

    was_opened = True

    def __init__(
        self,
        files: Files,
        directory: Path,
        segments: Sequence[LogSegment],
        config: TopicConfig,
        epochs: LeaderEpochs,
        producers: ProducerState | None = None,
        *,
        start_offset: int = 0,
    ) -> None:
        """Takes over `segments`, in order, at least one, all of which are on the disk, and `producers`, those of their
        batches. What is before `start_offset` was deleted."""
        producers = ProducerState() if producers is None else producers
        super().__init__(directory, segments, config, epochs, start_offset, _written_end(segments[-1], producers))
        self._files = files
        self._producers = producers
        self._unsynced: dict[int, LogSegment] = {}
        self._new_names = False
        self.recovery_point = self._visible.offset
        self.not_compacted_before = 0
        for segment in segments:
            segment.owner = self._writing

    def append(self, batches: Sequence[Batch]) -> list[Appended | TagwireError]:
        """Write batches at the end, in order. They are read, and safe, only after `flush` or `publish`.

        The result has one entry per batch: a KafkaError for one whose sequence or epoch is wrong, or that was taken in
        a leader epoch that is over, which nothing follows from for the others; a StorageError once a write failed,
        which every batch after it gets too: order is kept. A failed write is undone; if even that fails, the log is
        offline.
        """
        now, config = wall_ms(), self.config
        outcome: dict[int, Appended | TagwireError] = {}
        failure: StorageError | None = None
        with self._writing:
            try:
                self._append(batches, now, config, outcome)
            except OSError as error:
                logger.error("%s: %s", self.directory.name, error)
                failure = StorageError(f"{self.directory}: write failed: {error}")
            except StorageError as error:
                self._go_offline(str(error))
                failure = error
            if failure is not None:
                self._producers.undo()
                for number in range(len(batches)):
                    if self._is_unwritten(outcome.get(number)):
                        outcome[number] = failure
        return [outcome[number] for number in range(len(batches))]

    def _append(
        self, batches: Sequence[Batch], now_ms: int, config: TopicConfig, outcome: dict[int, Appended | TagwireError]
    ) -> None:
        self.check_online()
        stamp = now_ms if config.message_timestamp_type == "LogAppendTime" else -1
        run: list[PositionedBatch] = []
        aborted: list[AbortedTransaction] = []
        next_offset, size = self._active.next_offset, self._active.size
        for number, batch in enumerate(batches):
            if batch.leader_epoch not in (None, self.leader_epoch):
                over = f"leader epoch {batch.leader_epoch}, in which it was taken, is over"
                outcome[number] = KafkaError(Error.NOT_LEADER_OR_FOLLOWER, over)
                continue
            try:
                duplicate = self._producers.check(batch.origin)
            except KafkaError as refusal:
                outcome[number] = refusal
                continue
            if duplicate is not None:
                outcome[number] = duplicate
                continue
            last_offset, grown = next_offset + batch.last_offset_delta, size + len(batch.data)
            if last_offset >= _MAX_OFFSET:  # damage may have left a log that goes on from there
                outcome[number] = KafkaError(Error.POLICY_VIOLATION, f"after offset {next_offset} there are no more")
                continue
            full = grown > config.segment_bytes or not self._active.can_hold(last_offset)
            if size and (full or is_overdue(self._active, config, now_ms)):
                self._write(run, aborted)
                run, aborted = [], []
                self._roll()
                grown = len(batch.data)
            outcome[number] = Appended(next_offset, stamp)
            run += positioned(batch, next_offset, self.leader_epoch, stamp, self.dialect)
            ended = self._producers.take(batch.origin, next_offset, last_offset, run[-1].max_timestamp, stamp)
            if ended is not None:
                aborted.append(ended)
            next_offset, size = last_offset + 1, grown
        self._write(run, aborted)

    def _is_unwritten(self, outcome: Appended | TagwireError | None) -> bool:
        return outcome is None or (isinstance(outcome, Appended) and outcome.base_offset >= self._active.next_offset)

    def begin_epoch(self, epoch: int) -> int:
        """Write all that is appended from now on in a leader epoch, or a later one if it is not new; says in which.
        That is on the disk when this returns.

        Raises:
            StorageError: the disk refused, or the log is offline. It goes offline where it cannot be known whether the
                epoch was stored: what is written in the one before would be told as cut off after the next start.
        """
        with self._writing:
            self.check_online()
            begun = max(epoch, self.leader_epoch + 1)
            held = held_epochs(self.epochs.starts, self.start_offset)
            # Of an epoch in which nothing was written nothing is told, as Kafka's LeaderEpochFileCache.assign has it.
            written = ((known, start) for known, start in held if start < self._active.next_offset)
            starts = [*written, (begun, self._active.next_offset)]
            try:
                write_epochs(self._files, self.directory / EPOCHS_FILE, starts)
            except OSError as error:
                if isinstance(error, UnsettledError):
                    self._go_offline(f"storing a leader epoch failed: {error}")
                raise StorageError(f"{self.directory}: a leader epoch was not stored: {error}") from error
            self.epochs = LeaderEpochs(starts)
        return begun

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

    def expired_before(self, now_ms: int) -> int:
        """Before which offset the topic's retention asks for whole segments to be deleted.

        The segment that is written to is never deleted; it is closed first, when that is due.

        Raises:
            StorageError: the disk refused, or the log is offline.
        """
        self.roll_if_due(now_ms)
        self.expire_producers(now_ms)
        return self._expired_before(now_ms)

    def _expired_before(self, now_ms: int) -> int:
        closed, config = self.closed_segments(), self.config
        surplus = self.size_bytes - config.retention_bytes
        start = self.start_offset
        for segment in closed if config.deletes else ():
            surplus -= segment.size
            too_large = config.retention_bytes >= 0 and surplus >= 0
            if not too_large and not is_expired(segment, config, now_ms):
                break
            start = segment.next_offset
        return max(start, self.start_offset)

    def expiry(self, now_ms: int) -> AbstractContextManager[Deletion]:
        """What the topic's retention asks to be deleted, as `deletion`. It may ask for another thing by the time that
        its turn has come than `expired_before` said."""
        self.roll_if_due(now_ms)
        self.expire_producers(now_ms)
        return self.deletion(partial(self._expired_before, now_ms))

    def delete_before(self, offset: int, remember: Callable[[int], None]) -> int:
        """Start at `offset`, and delete the segments before it; says how many.

        Args:
            remember: writes down where the log starts. What fails before it returns has changed nothing; files that are
                left when something fails after it go at the next start.

        Raises:
            StorageError: the disk refused, or the log is offline.
        """
        with self.deletion(offset) as deletion:
            if deletion.start is not None:
                remember(deletion.start)
            return deletion.carry_out()

    @contextmanager
    def deletion(self, offset: int | Callable[[], int]) -> Iterator[Deletion]:
        """What there is to be deleted before an offset. Until the end of the `with` block nothing else takes segments
        away; in it, where the log starts is written down, and then the deletion carried out.

        Args:
            offset: or what tells it when nothing else takes segments away any more, nor writes.

        Raises:
            StorageError: the disk refused, or the log is offline.
        """
        with self._restructuring:
            try:
                with self._writing:
                    self.check_online()
                    before = offset() if callable(offset) else offset
                    # Of the producers in what is deleted the snapshot after it is all that tells.
                    if any(each.next_offset <= before for each in self._unsynced.values() if each is not self._active):
                        self._flush()
                yield Deletion(before if before > self.start_offset else None, partial(self._delete_before, before))
            except OSError as error:
                raise StorageError(f"{self.directory}: deleting records failed: {error}") from error

    def _delete_before(self, offset: int) -> int:
        with self._writing:
            self._start = max(offset, self._start)
            gone = self._take_before_start()
        for segment in gone:
            segment.remove()
            drop_snapshot(self._files, self.directory, segment.base_offset)
        if gone:
            self._files.sync_directory(self.directory)
        return len(gone)

    def reconfigure(self, config: TopicConfig) -> None:
        """Go on by another configuration of the topic: no segment is taken away by the one of before when this returns.

        Not for the event loop: it waits for what is being deleted.
        """
        self.config = config
        with self._restructuring:  # who takes it from now on looks at the new one
            pass

    def roll_if_due(self, now_ms: int) -> None:
        """Close the segment that is written to if its time has come.

        Raises:
            StorageError: the disk refused, or the log is offline.
        """
        with self._writing:
            self.check_online()
            try:
                active, config = self._active, self.config
                is_past = is_expired(active, config, now_ms) or is_surplus(active, config)
                if active.size and (is_overdue(active, config, now_ms) or is_past):
                    self._roll()
                    self._flush()
            except OSError as error:
                raise StorageError(f"{self.directory}: closing a segment failed: {error}") from error

    def known_producers(self) -> dict[int, Producer]:
        """What is known of each producer that numbers its batches, by its id.

        Not for the event loop: it waits for whoever is writing.

        Raises:
            StorageError: the log is offline.
        """
        with self._writing:
            self.check_online()
            return {producer.producer_id: producer for producer in self._producers}

    def settled_producers(self) -> dict[int, Producer]:
        """As `known_producers`, when all that is known is on the disk. Raises as `flush`."""
        with self._writing:
            self._flush()
            return {producer.producer_id: producer for producer in self._producers}

    def expire_producers(self, now_ms: int) -> None:
        """Forget the producers that have been silent for too long; see `ProducerState.expire`."""
        with self._writing:
            self._producers.expire(now_ms)

    def replace(self, old: Sequence[LogSegment], new: LogSegment, remember: Callable[[], None]) -> bool:
        """Put `new`, whose files are on the disk under names of the state CLEANED, into the place of `old`, neighbours.

        False when some of `old` were deleted meanwhile, the log went offline, or the topic is compacted no more: then
        `new` is deleted, too. A crash on the way leaves either.

        Args:
            remember: writes down what has to be known before the log is opened with `new`.

        Raises:
            StorageError: the disk refused. When it did so past the point of return, the log is offline, and the next
                start carries the replacement out.
        """
        with self._restructuring:
            with self._writing:
                first = self._segments.index(old[0]) if old[0] in self._segments else 0
                is_changed = self._segments[first : first + len(old)] != tuple(old)
                if is_changed or self.is_offline or not self.config.compacts:
                    new.remove()
                    return False
            try:
                remember()
                new.rename(SWAP)
                self._files.sync_directory(self.directory)
            except OSError as error:
                new.remove()
                raise StorageError(f"{self.directory}: compaction failed: {error}") from error
            try:
                with self._writing:
                    for segment in old:
                        segment.retired = True
                        self._let_go(segment)
                for segment in old:
                    segment.remove()
                    if segment.base_offset != new.base_offset:
                        drop_snapshot(self._files, self.directory, segment.base_offset)
                self._files.sync_directory(self.directory)
                new.rename("")
                self._files.sync_directory(self.directory)
                with self._writing:
                    new.owner = self._writing
                    self._segments = (*self._segments[:first], new, *self._segments[first + len(old) :])
            except OSError as error:
                with self._writing:
                    self._go_offline(f"replacing segments failed: {error}")
                raise StorageError(f"{self.directory}: compaction failed: {error}") from error
        return True

    def note(self, remember: Callable[[], None]) -> None:
        """Write something down of this log, which is not deleted meanwhile.

        Raises:
            StorageError: the log is offline: another of its name may be there by now.
        """
        with self._restructuring:
            self.check_online()
            remember()

    def close(self) -> None:
        """Bring everything to the disk, indexes too, and close the files.

        Raises:
            StorageError: the disk refused, or had done so before: the next start must check this log.
        """
        with self._restructuring, self._writing:
            try:
                self.check_online()
                self._active.finish()
                self._flush()
                self._active.save_indexes(sync=True)
                self._save_producers()
                # The transaction index and the snapshot may be new names, and nothing tells an index that is lost from
                # none: records of aborted transactions would be committed.
                if self._active.aborted or self._producers:
                    self._files.sync_directory(self.directory)
            except OSError as error:
                raise StorageError(f"{self.directory}: closing failed: {error}") from error
            finally:
                self._release()
                self._offline = self._offline or "it was closed"

    def cut(self, offset: int) -> None:
        """Take every batch that reaches to `offset` or past it off the files, and close them: the log is offline then,
        and is to be opened again as after a crash.

        Raises:
            StorageError: the disk refused, or the log was offline.
        """
        with self._restructuring, self._writing:
            self.check_online()
            try:
                self._flush()
                for segment in reversed(self._segments):
                    if segment.base_offset < offset or segment is self._segments[0]:
                        kept = takewhile(lambda batch: batch.last_offset < offset, segment.batches())
                        self.recovery_point = segment.base_offset
                        segment.cut_back(sum(len(batch.data) for batch in kept))
                        break
                    segment.remove()
            except (OSError, DecodeError) as error:
                raise StorageError(f"{self.directory}: cutting it failed: {error}") from error
            finally:
                self._offline = self._offline or "it was cut"
                for segment in self._segments:
                    segment.retired = True
                self._release()

    def abandon(self, reason: str) -> None:
        """Close the files as they are; nothing is read or written any more, and others may take their names."""
        with self._restructuring, self._writing:
            self._offline = self._offline or reason
            for segment in self._segments:
                segment.retired = True
            self._release()

    @property
    def _active(self) -> LogSegment:
        return self._segments[-1]

    def _go_offline(self, reason: str) -> None:
        if self._offline is not None:
            return
        logger.error("%s is offline until the next start: %s", self.directory.name, reason)
        self._offline = reason
        self._release()

    def _release(self) -> None:
        for segment in self._segments:  # also one that is not written to any more: what was unsafe may be cut off it
            segment.close()

    def _write(self, run: Sequence[PositionedBatch], aborted: Sequence[AbortedTransaction]) -> None:
        self.check_online()
        if run:
            self._unsynced[self._active.base_offset] = self._active
            self._active.append(run)
            self._active.aborted.extend(aborted)
        self._producers.keep()

    def _roll(self) -> None:
        active = self._active
        active.finish()
        save_snapshot(self._files, self.directory, active.next_offset, self._producers.snapshot())
        fresh = LogSegment.create(
            self._files, self.directory, active.next_offset, self.config.index_interval_bytes, self.dialect
        )
        fresh.owner = self._writing
        self._segments = (*self._segments, fresh)
        self._new_names = True
        self._unsynced[active.base_offset] = active

    def _flush(self) -> None:
        self.check_online()
        try:
            for segment in list(self._unsynced.values()):
                segment.sync()
                if segment is not self._active:
                    segment.save_indexes(sync=True)
                    if self._producers:  # once the segments before it are deleted, only the snapshot tells of them
                        sync_snapshot(self._files, self.directory, segment.next_offset)
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
        before, after = self._visible, _written_end(self._active, self._producers)
        if after.offset != before.offset:
            self._published_bytes += sum(
                segment.size - (before.position if segment.base_offset == before.segment else 0)
                for segment in self._segments
                if segment.base_offset >= before.segment
            )
        self._visible = after

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

    def _save_producers(self) -> None:
        end = self._active.next_offset
        save_snapshot(self._files, self.directory, end, self._producers.snapshot())
        if self._producers:
            sync_snapshot(self._files, self.directory, end)
        drop_snapshots(self._files, self.directory, keep={end, *(segment.base_offset for segment in self._segments)})

    def _take_before_start(self) -> list[LogSegment]:
        gone: list[LogSegment] = []
        while len(self._segments) > 1 and self._segments[1].base_offset <= self._start:
            if self._segments[0].base_offset >= self._visible.segment:
                break
            gone.append(self._segments[0])
            self._let_go(gone[-1])
            self._segments = self._segments[1:]
        return gone

    def _let_go(self, segment: LogSegment) -> None:
        """Leave a segment to whoever deletes it, without the lock."""
        self._unsynced.pop(segment.base_offset, None)
        segment.owner = None


def _written_end(active: LogSegment, producers: ProducerState) -> VisibleEnd:
    """The end of what is written, whose last segment is `active`."""
    open_from = producers.first_open
    stable = active.next_offset if open_from is None else open_from
    return VisibleEnd(active.next_offset, active.base_offset, active.size, active.newest[0], stable)
