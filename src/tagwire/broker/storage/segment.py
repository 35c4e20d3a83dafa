"""One segment of a partition's log: a file of batches named by its first offset, and its two indexes.

`<20-digit base offset>.log` holds whole batches, one after another; `.index` and `.timeindex` (see `index`) point
into it. An index entry is made before a batch is added, once more than `index.interval.bytes` were added since the
last one. Source: docs/log-files.md.

One thread writes, any number read. What a reader may see is the log's business: it is handed a limit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tagwire.broker.clock import wall_ms
from tagwire.broker.storage.files import Buffer, Files
from tagwire.broker.storage.index import OffsetIndex, TimeIndex
from tagwire.broker.storage.log_lock import LogLock, guarded
from tagwire.broker.storage.scan import batches, last_offsets
from tagwire.broker.storage.transaction_index import load_transaction_index, save_transaction_index
from tagwire.errors import CorruptRecordError, StorageError, UnsupportedVersionError
from tagwire.records import RecordBatch
from tagwire.records.batch import HEADER_SIZE
from tagwire.records.files.names import offset_name
from tagwire.records.files.offset_index import MAX_RELATIVE
from tagwire.records.files.transaction_index import AbortedTransaction

logger = logging.getLogger("tagwire.broker")

SUFFIXES = (".index", ".timeindex", ".txnindex", ".log")
"""Of a segment's files. The log comes last: by its name the segment exists."""

CLEANED, SWAP = ".cleaned", ".swap"
"""What the names of a segment's files end with while it is made, and while it takes the place of others."""

EMPTY = memoryview(b"")
LOCATE_BYTES = 4096
REWRITTEN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PositionedBatch:
    """A batch that has been given its offsets: the bytes to write, in pieces, and what the indexes want to know."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    size: int
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """What recovery took off the end of a segment: how many bytes, and what was wrong with the first of them."""

    size: int
    reason: str


def _beside(path: Path, suffix: str) -> Path:
    """The file with another suffix of the segment whose `.log` file this is. Made when it is asked for: of ten thousand
    partitions the garbage collector has less to look at."""
    return path.with_name(path.name.replace(".log", suffix, 1))


@guarded("owner", changed=("size", "next_offset", "aborted", "retired", "_newest", "_unindexed"), used=("_fd",))
class LogSegment:
    """A segment's files and what is known about them.

    Attributes:
        base_offset: the offset its name says; no record in it is older.
        size: bytes of whole batches in the `.log` file.
        next_offset: one past the last offset in it.
        aborted: the aborted transactions whose markers are in it, in their order.
        owner: the lock of the log that it is in; None for one that is in none.
        retired: whether other files take its files' names, or will: what is opened by name then is not its own.
    """

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        index_interval: int,
        dialect: str | None = None,
        *,
        state: str = "",
    ) -> None:
        """The segment of that offset in a directory; `state` is what its files' names end with."""
        self.owner: LogLock | None = None
        self._files = files
        self._index_interval = index_interval
        self._dialect = dialect
        self.base_offset = base_offset
        self._path = directory / f"{offset_name(base_offset)}.log{state}"
        self.size = 0
        self.next_offset = base_offset
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._newest: tuple[int, int] | None = None
        self._began_ms: int | None = None
        self._unindexed = 0
        self._fd: int | None = None
        self.aborted: list[AbortedTransaction] = []
        self.retired = False

    @classmethod
    def create(
        cls,
        files: Files,
        directory: Path,
        base_offset: int,
        index_interval: int,
        dialect: str | None = None,
        *,
        state: str = "",
    ) -> LogSegment:
        """A new, empty segment. Its names are on the disk once the directory is synced."""
        segment = cls(files, directory, base_offset, index_interval, dialect, state=state)
        segment._reset()
        try:
            if state:  # one that was made before, and could not be taken away, may have left what this one has none of
                segment._forget_aborted()
            # The log last: by its name the segment exists.
            segment.save_indexes(sync=False)
            segment._truncate(0)
        except OSError:
            segment.remove()
            raise
        return segment

    @classmethod
    def without_files(
        cls, files: Files, directory: Path, base_offset: int, index_interval: int, dialect: str | None = None
    ) -> LogSegment:
        """An empty segment that is not on the disk: it stands for one that cannot be opened."""
        segment = cls(files, directory, base_offset, index_interval, dialect)
        segment._reset()
        return segment

    @property
    def path(self) -> Path:
        """The `.log` file."""
        return self._path

    @property
    def newest(self) -> tuple[int, int]:
        """The greatest timestamp (ms) and the last offset of the earliest batch that holds it; (-1, base) for none."""
        return self._times_index().last if self._newest is None else self._newest

    def has_indexes(self) -> bool:
        """Whether both index files exist and have whole entries."""
        try:
            sizes = self._files.size(_beside(self._path, ".index")), self._files.size(_beside(self._path, ".timeindex"))
        except FileNotFoundError:
            return False
        return sizes[0] % 8 == 0 and sizes[1] % 12 == 0

    def adopt(self, next_offset: int) -> bool:
        """Take the files as they are: a closed segment that is known to be whole. Its indexes are read when needed, but
        that of aborted transactions at once; False where it is damaged."""
        self.size = self._files.size(self.path)
        self.next_offset = next_offset
        return self._load_aborted()

    def reopen(self) -> bool:
        """Take the files of the last segment after a clean shutdown; False when they are not whole after all."""
        self.size = size = self._files.size(self.path)
        _, start = self._offset_index().batch_start_at_most(MAX_RELATIVE)
        next_offset, end = self.base_offset, start
        fd = self._writer()
        try:
            for position, batch in batches(self._files, fd, start, size, self._dialect):
                if batch.checksum(batch.data) != batch.crc or batch.last_offset < next_offset:
                    return False
                next_offset, end = batch.last_offset + 1, position + batch.size
        except (CorruptRecordError, UnsupportedVersionError):
            return False
        self.next_offset, self._newest, self._unindexed = next_offset, self._times_index().last, size - start
        return self._load_aborted() and end == size

    def recover(self, gaps_before: int = 0, safe_before: int = 0) -> Cut | None:
        """Read every batch, rebuild the indexes, and cut the file where the first broken or missing byte is. Which
        transactions were aborted is not known then: that takes their producers. Nothing is written of the indexes until
        it is: a start that finds them, after another crash, takes the segment as it is.

        Afterwards the segment is on the disk, so what survived a crash in memory survives the next one too. What was
        not known to be there is written again for that: where a sync had failed before, and what it was for could not
        be cut off, the system may have these bytes in memory alone, and say of the next sync that all is well.

        Args:
            gaps_before: offsets may be missing before this one: the log was compacted up to it.
            safe_before: what is before this offset was on the disk.
        """
        self._reset()
        size = self._files.size(self.path)
        fd = self._writer()
        safe = 0
        reason = "the file ends inside a batch"
        try:
            for _, batch in batches(self._files, fd, 0, size, self._dialect):
                if batch.checksum(batch.data) != batch.crc:
                    reason = "a batch fails its checksum"
                    break
                due, first = self.next_offset, batch.base_offset
                if first < due or due < first >= gaps_before or not self.can_hold(batch.last_offset):
                    reason = f"a batch claims offsets {first}-{batch.last_offset} after {due - 1}"
                    break
                self._note(batch.last_offset, batch.max_timestamp, batch.size)
                if batch.last_offset < safe_before:
                    safe = self.size
        except (CorruptRecordError, UnsupportedVersionError) as error:
            reason = str(error).strip()
        self.began_ms()  # is told by the file, which is changed now
        if size > self.size:
            self._truncate(self.size)
        for begin in range(safe, self.size, REWRITTEN_BYTES):
            end = min(begin + REWRITTEN_BYTES, self.size)
            self._files.write(fd, [self._files.read(fd, end - begin, begin)], begin)
        self.finish()
        self.sync()
        return Cut(size - self.size, reason) if size > self.size else None

    def can_hold(self, offset: int) -> bool:
        """Whether `offset` lies near enough to the base to be indexed."""
        return offset - self.base_offset <= MAX_RELATIVE

    def append(self, positioned: Sequence[PositionedBatch]) -> None:
        """Add batches at the end: all of them, or on an error none.

        Raises:
            OSError: the write failed, and the file is as it was before.
            StorageError: the write failed, and so did taking its remains away.
        """
        fd = self._writer()
        try:
            self._files.write(fd, [buffer for batch in positioned for buffer in batch.buffers], self.size)
        except OSError as error:
            try:
                self._files.truncate(fd, self.size)
            except OSError as second:
                raise StorageError(f"{self.path}: write failed ({error}), and so did undoing it ({second})") from error
            raise
        if self._began_ms is None:
            self._began_ms = wall_ms()
        for batch in positioned:
            self._note(batch.last_offset, batch.max_timestamp, batch.size)

    def finish(self) -> None:
        """Note the newest timestamp in the time index: what is done when no batch will follow."""
        self._times_index().add(*self.newest)

    def sync(self) -> None:
        """Wait until the `.log` file is on the disk."""
        self._files.sync(self._writer())

    def save_aborted(self, *, sync: bool) -> None:
        """Write the index of aborted transactions, or delete the one of before where there are none; with `sync`, wait
        until it is on the disk."""
        if self.aborted:
            save_transaction_index(self._files, _beside(self._path, ".txnindex"), self.aborted, sync=sync)
        else:
            self._forget_aborted()

    def save_positions(self, *, sync: bool) -> None:
        """Write the indexes of offsets and times, by which a start knows that the segment is whole; with `sync`, wait
        until they are on the disk."""
        self._offset_index().save(self._files, _beside(self._path, ".index"), sync=sync)
        self._times_index().save(self._files, _beside(self._path, ".timeindex"), sync=sync)

    def save_indexes(self, *, sync: bool) -> None:
        """Write the index files; with `sync`, wait until they are on the disk."""
        self.save_positions(sync=sync)
        if self.aborted:
            save_transaction_index(self._files, _beside(self._path, ".txnindex"), self.aborted, sync=sync)

    def close(self) -> None:
        """Close the file written to. Reading, and writing again, stay possible."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._files.close(fd)

    def cut_back(self, size: int) -> None:
        """Take everything past `size` off the file, without regard to the indexes."""
        self._truncate(size)

    def remove(self) -> None:
        """Delete the files, the log first: an index without a log is swept away when the log is next opened."""
        self.close()
        for suffix in reversed(SUFFIXES):
            with suppress(FileNotFoundError):
                self._files.remove(_beside(self._path, suffix))

    def rename(self, state: str) -> None:
        """Make the files' names end with `state`, the log's last. What has these names is replaced."""
        self.close()
        before, self._path = self._path, self._path.with_name(f"{offset_name(self.base_offset)}.log{state}")
        for suffix in SUFFIXES:
            try:
                self._files.rename(_beside(before, suffix), _beside(self._path, suffix))
            except FileNotFoundError:
                if suffix == ".log":
                    raise
                with suppress(FileNotFoundError):
                    self._files.remove(_beside(self._path, suffix))

    def modified_ms(self) -> int:
        """When the `.log` file was last written, in milliseconds since the epoch."""
        return self._files.modified_ms(self.path)

    def began_ms(self) -> int:
        """When its first batch was written, in milliseconds since the epoch; of a segment that an earlier run of the
        broker began, when that run last wrote to it."""
        if self._began_ms is None:
            self._began_ms = self.modified_ms()
        return self._began_ms

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """The log opened for reading, and the indexes loaded, all of this segment and not of one that replaces it.

        Raises:
            FileNotFoundError: the segment was deleted or replaced meanwhile.
        """
        fd = self._files.open(self.path)
        try:
            self._offset_index()
            self._times_index()
            if self.retired:
                raise FileNotFoundError(f"{self.path} is another segment's now")
            yield fd
        finally:
            self._files.close(fd)

    def read(self, offset: int, max_bytes: int, limit: int, *, whole_first: bool) -> memoryview | None:
        """Whole batches from the one that holds `offset` on, at most `max_bytes` of them, before position `limit`.

        The first batch is returned even if it is larger, when `whole_first` says so; else empty. None when no batch
        ends at or after `offset`.

        Raises:
            FileNotFoundError: the segment was deleted or replaced meanwhile.
            CorruptRecordError: bytes that no batch can start with.
        """
        with self._reading() as fd:
            position = self._locate(fd, offset)
            while position < limit:
                # A small window first: between two index entries there are few batches, or large ones.
                window = min(limit - position, LOCATE_BYTES)
                passed = 0
                for start, size, last_offset in last_offsets(
                    memoryview(self._files.read(fd, window, position)), self._dialect
                ):
                    if last_offset >= offset:
                        return self._whole(fd, position + start, size, max_bytes, limit, whole_first)
                    passed = start + size
                if not passed:
                    break
                position += passed
            return None

    def read_cached(self, position: int, end: int) -> bytearray | None:
        """The bytes between two positions, which were written just now, without waiting for the disk; None where that
        cannot be.

        Raises:
            FileNotFoundError: the segment was deleted meanwhile.
        """
        data = self._files.read_cached(self.path, end - position, position)
        return None if self.retired else data  # else it may be of what has its name now

    def _whole(self, fd: int, position: int, first: int, max_bytes: int, limit: int, whole_first: bool) -> memoryview:
        """Whole batches from `position` on, where one of `first` bytes starts."""
        if first > max_bytes and not whole_first:
            return EMPTY
        data = memoryview(self._files.read(fd, min(max(first, max_bytes), limit - position), position))
        if first >= max_bytes or position + len(data) == limit:
            return data
        # The index knows the last boundary but for a few batches; only those are walked.
        indexed, start = self._offset_index().batch_start_at_most(position + len(data) - 1)
        walked = end = start - position if self._bears_out(data[max(0, start - position) :], indexed) else 0
        for begin, size, _ in last_offsets(data[walked:], self._dialect):
            if walked + begin + size > len(data):
                break
            end = walked + begin + size
        return data[:end]

    def batches(self, start_offset: int = 0) -> Iterator[RecordBatch]:
        """The batches whose last offset is not below `start_offset`. Raises as `read`."""
        with self._reading() as fd:
            position = self._locate(fd, start_offset)
            for _, batch in batches(self._files, fd, position, self.size, self._dialect):
                if batch.last_offset >= start_offset:
                    yield batch

    def batches_since(self, timestamp: int, limit: int) -> Iterator[RecordBatch]:
        """The batches before position `limit` that say they hold a record which is not older than `timestamp`. Raises
        as `read`."""
        with self._reading() as fd:
            position = self._locate_time(fd, timestamp)
            for _, batch in batches(self._files, fd, position, limit, self._dialect):
                if batch.max_timestamp >= timestamp:
                    yield batch

    def _locate(self, fd: int, offset: int) -> int:
        """Where to look for the batch that holds `offset`. Indexes that lie about it are made anew."""
        indexed, position = self._offset_index().lookup(offset)
        head = memoryview(self._files.read(fd, HEADER_SIZE, position)) if position else EMPTY
        if position and not self._bears_out(head, indexed):
            self._index_again(fd)
            _, position = self._offset_index().lookup(offset)
        return position

    def _locate_time(self, fd: int, timestamp: int) -> int:
        """Where to look for the first record that is not older than `timestamp`; as `_locate`."""
        indexed, offset = self._times_index().lookup(timestamp)
        position = self._locate(fd, offset)
        if indexed >= 0:
            for _, batch in batches(self._files, fd, position, self.size, self._dialect, window=LOCATE_BYTES):
                if batch.last_offset < offset:
                    continue
                if batch.max_timestamp != indexed:
                    self._index_again(fd)
                    position = self._locate(fd, self._times_index().lookup(timestamp)[1])
                break
        return position

    def _bears_out(self, head: memoryview, last_offset: int) -> bool:
        """Whether a batch that ends with this offset starts in `head`."""
        with suppress(CorruptRecordError):
            return next((last for _, _, last in last_offsets(head, self._dialect)), None) == last_offset
        return False

    def _index_again(self, fd: int) -> None:
        logger.warning("%s: its indexes are wrong, and made anew", self.path)
        fresh = LogSegment(self._files, self.path.parent, self.base_offset, self._index_interval, self._dialect)
        fresh._reset()
        for _, batch in batches(self._files, fd, 0, self.size, self._dialect):
            fresh._note(batch.last_offset, batch.max_timestamp, batch.size)
        fresh.finish()
        # An entry that a writer adds meanwhile is lost: an index is sparse anyway, and `newest` is kept apart from it.
        self._offsets, self._times = fresh._offsets, fresh._times

    def _reset(self) -> None:
        self.aborted = []
        self.size, self.next_offset, self._unindexed = 0, self.base_offset, 0
        self._newest = (-1, self.base_offset)
        self._offsets, self._times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)

    def _note(self, last_offset: int, max_timestamp: int, size: int) -> None:
        if max_timestamp > self.newest[0]:
            self._newest = (max_timestamp, last_offset)
        if self._unindexed > self._index_interval:
            self._offset_index().add(last_offset, self.size)
            self._times_index().add(*self.newest)
            self._unindexed = 0
        self._unindexed += size
        self.size += size
        self.next_offset = last_offset + 1

    def _load_aborted(self) -> bool:
        """Whether the index of aborted transactions is sound; one that is not would make some of them committed."""
        found = load_transaction_index(self._files, _beside(self._path, ".txnindex"), self.base_offset, self.size)
        self.aborted = found.entries
        return found.fault is None

    def _forget_aborted(self) -> None:
        with suppress(FileNotFoundError):
            self._files.remove(_beside(self._path, ".txnindex"))

    def _truncate(self, size: int) -> None:
        self._files.truncate(self._writer(), size)

    def _writer(self) -> int:
        if self._fd is None:
            self._fd = self._files.open(self.path, write=True)
        return self._fd

    def _offset_index(self) -> OffsetIndex:
        if self._offsets is None:
            self._offsets = OffsetIndex.load(self._files, _beside(self._path, ".index"), self.base_offset, self.size)
        return self._offsets

    def _times_index(self) -> TimeIndex:
        if self._times is None:
            self._times = TimeIndex.load(self._files, _beside(self._path, ".timeindex"), self.base_offset, self.size)
        return self._times
