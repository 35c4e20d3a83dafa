"""One segment of a partition's log: a file of batches named by its first offset, and its two indexes.

`<20-digit base offset>.log` holds whole batches, one after another; `.index` and `.timeindex` (see `index`) point
into it. An index entry is made before a batch is added, once more than `index.interval.bytes` were added since the
last one. Source: facts/kafka_protocol.md 5.7.

One thread writes, any number read. What a reader may see is the log's business: it is handed a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tagwire.broker.storage.files import Buffer, Files
from tagwire.broker.storage.index import OffsetIndex, TimeIndex
from tagwire.broker.storage.scan import batches, spans
from tagwire.broker.storage.transaction_index import load_transaction_index, save_transaction_index
from tagwire.errors import CorruptRecordError, StorageError, UnsupportedVersionError
from tagwire.records import BatchHeader
from tagwire.records.files.offset_index import MAX_RELATIVE
from tagwire.records.files.transaction_index import AbortedTransaction

NAME_DIGITS = 20
EMPTY = memoryview(b"")
LOCATE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Placed:
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


class Segment:
    """A segment's files and what is known about them.

    Attributes:
        base_offset: the offset its name says; no record in it is older.
        size: bytes of whole batches in the `.log` file.
        next_offset: one past the last offset in it.
        aborted: the aborted transactions whose markers are in it, in their order.
    """

    def __init__(self, files: Files, directory: Path, base_offset: int, index_interval: int) -> None:
        self._files = files
        self._index_interval = index_interval
        self.base_offset = base_offset
        stem = f"{base_offset:0{NAME_DIGITS}d}"
        self.path = directory / f"{stem}.log"
        self._offsets_path = directory / f"{stem}.index"
        self._times_path = directory / f"{stem}.timeindex"
        self._aborted_path = directory / f"{stem}.txnindex"
        self.size = 0
        self.next_offset = base_offset
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._newest: tuple[int, int] | None = None
        self._unindexed = 0
        self._fd: int | None = None
        self.aborted: list[AbortedTransaction] = []

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int, index_interval: int) -> Segment:
        """A new, empty segment. Its names are on the disk once the directory is synced."""
        segment = cls(files, directory, base_offset, index_interval)
        segment._reset()
        try:
            # The log last: by its name the segment exists.
            segment.save_indexes(sync=False)
            segment._truncate(0)
        except OSError:
            segment.remove()
            raise
        return segment

    @property
    def newest(self) -> tuple[int, int]:
        """The greatest timestamp (ms) and the last offset of the earliest batch that holds it; (-1, base) for none."""
        return self._times_index().last if self._newest is None else self._newest

    def has_indexes(self) -> bool:
        """Whether both index files exist and have whole entries."""
        try:
            sizes = self._files.size(self._offsets_path), self._files.size(self._times_path)
        except FileNotFoundError:
            return False
        return sizes[0] % 8 == 0 and sizes[1] % 12 == 0

    def adopt(self, next_offset: int) -> None:
        """Take the files as they are: a closed segment that is known to be whole. Its indexes are read when needed."""
        self.size = self._files.size(self.path)
        self.next_offset = next_offset
        self._load_aborted()

    def reopen(self) -> bool:
        """Take the files of the last segment after a clean shutdown; False when they are not whole after all."""
        self.size = size = self._files.size(self.path)
        offsets = self._offset_index()
        start = offsets.batch_start_at_most(MAX_RELATIVE)
        next_offset, end = self.base_offset, start
        fd = self._writer()
        try:
            for position, header in batches(self._files, fd, start, size, verify=True):
                if not header.crc_ok or header.last_offset < next_offset:
                    return False
                next_offset, end = header.last_offset + 1, position + header.size
        except (CorruptRecordError, UnsupportedVersionError):
            return False
        self.next_offset, self._newest, self._unindexed = next_offset, self._times_index().last, size - start
        self._load_aborted()
        return end == size

    def recover(self) -> Cut | None:
        """Read every batch, rebuild the indexes, and cut the file where the first broken or missing byte is. Which
        transactions were aborted is not known then: that takes their producers.

        Afterwards the segment is on the disk, so what survived a crash in memory survives the next one too.
        """
        self._reset()
        with suppress(FileNotFoundError):
            self._files.remove(self._aborted_path)
        size = self._files.size(self.path)
        fd = self._writer()
        reason = "the file ends inside a batch"
        try:
            for _, header in batches(self._files, fd, 0, size, verify=True):
                if not header.crc_ok:
                    reason = "a batch fails its checksum"
                    break
                if header.base_offset != self.next_offset or not self.can_hold(header.last_offset):
                    reason = (
                        f"a batch claims offsets {header.base_offset}-{header.last_offset} after {self.next_offset - 1}"
                    )
                    break
                self._note(header.last_offset, header.max_timestamp, header.size)
        except (CorruptRecordError, UnsupportedVersionError) as error:
            reason = str(error).strip()
        if size > self.size:
            self._truncate(self.size)
        self.finish()
        self.sync()
        self.save_indexes(sync=True)
        return Cut(size - self.size, reason) if size > self.size else None

    def can_hold(self, offset: int) -> bool:
        """Whether `offset` lies near enough to the base to be indexed."""
        return offset - self.base_offset <= MAX_RELATIVE

    def append(self, placed: Sequence[Placed]) -> None:
        """Add batches at the end: all of them, or on an error none.

        Raises:
            OSError: the write failed, and the file is as it was before.
            StorageError: the write failed, and so did taking its remains away.
        """
        fd = self._writer()
        try:
            self._files.write(fd, [buffer for batch in placed for buffer in batch.buffers], self.size)
        except OSError as error:
            try:
                self._files.truncate(fd, self.size)
            except OSError as second:
                raise StorageError(f"{self.path}: write failed ({error}), and so did undoing it ({second})") from error
            raise
        for batch in placed:
            self._note(batch.last_offset, batch.max_timestamp, batch.size)

    def finish(self) -> None:
        """Note the newest timestamp in the time index: what is done when no batch will follow."""
        self._times_index().add(*self.newest)

    def sync(self) -> None:
        """Wait until the `.log` file is on the disk."""
        self._files.sync(self._writer())

    def save_indexes(self, *, sync: bool) -> None:
        """Write the index files; with `sync`, wait until they are on the disk."""
        self._offset_index().save(self._files, self._offsets_path, sync=sync)
        self._times_index().save(self._files, self._times_path, sync=sync)
        if self.aborted:
            save_transaction_index(self._files, self._aborted_path, self.aborted, sync=sync)

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
        for path in (self.path, self._offsets_path, self._times_path, self._aborted_path):
            try:
                self._files.remove(path)
            except FileNotFoundError:
                continue

    def modified_ms(self) -> int:
        """When the `.log` file was last written, in milliseconds since the epoch."""
        return self._files.modified_ms(self.path)

    def read(self, offset: int, max_bytes: int, limit: int, *, whole_first: bool) -> memoryview:
        """Whole batches from the one that holds `offset` on, at most `max_bytes` of them, before position `limit`.

        The first batch is returned even if it is larger, when `whole_first` says so. Empty when no batch ends at or
        after `offset`, or when the first one is too large.

        Raises:
            FileNotFoundError: the segment was deleted meanwhile.
            CorruptRecordError: bytes that no batch can start with.
        """
        fd = self._files.open(self.path)
        try:
            position = self._offset_index().lookup(offset)
            while position < limit:
                # A small window first: between two index entries there are few batches, or large ones.
                window = min(limit - position, LOCATE_BYTES)
                passed = 0
                for start, size, last_offset in spans(memoryview(self._files.read(fd, window, position))):
                    if last_offset >= offset:
                        return self._whole(fd, position + start, size, max_bytes, limit, whole_first)
                    passed = start + size
                if not passed:
                    break
                position += passed
            return EMPTY
        finally:
            self._files.close(fd)

    def _whole(self, fd: int, position: int, first: int, max_bytes: int, limit: int, whole_first: bool) -> memoryview:
        """Whole batches from `position` on, where one of `first` bytes starts."""
        if first > max_bytes and not whole_first:
            return EMPTY
        data = memoryview(self._files.read(fd, min(max(first, max_bytes), limit - position), position))
        if first >= max_bytes or position + len(data) == limit:
            return data
        # The index knows the last boundary but for a few batches; only those are walked.
        walked = end = max(0, self._offset_index().batch_start_at_most(position + len(data)) - position)
        for begin, size, _ in spans(data[walked:]):
            if walked + begin + size > len(data):
                break
            end = walked + begin + size
        return data[:end]

    def batches_since(self, timestamp: int, limit: int) -> Iterator[memoryview]:
        """The batches before position `limit` that say they hold a record which is not older than `timestamp`."""
        position = self._offset_index().lookup(self._times_index().lookup(timestamp))
        fd = self._files.open(self.path)
        try:
            for start, header in batches(self._files, fd, position, limit):
                if header.max_timestamp >= timestamp:
                    yield memoryview(self._files.read(fd, header.size, start))
        finally:
            self._files.close(fd)

    def _load_aborted(self) -> None:
        self.aborted = load_transaction_index(self._files, self._aborted_path)

    def headers(self, start_offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches whose last offset is not below `start_offset`: header, and of a control batch the bytes too."""
        fd = self._files.open(self.path)
        try:
            position = self._offset_index().lookup(start_offset)
            for start, header in batches(self._files, fd, position, self.size):
                if header.last_offset >= start_offset:
                    if not header.is_control:
                        yield header, EMPTY
                    else:
                        data = memoryview(self._files.read(fd, header.size, start))
                        yield BatchHeader(data, 0), data
        finally:
            self._files.close(fd)

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

    def _truncate(self, size: int) -> None:
        self._files.truncate(self._writer(), size)

    def _writer(self) -> int:
        if self._fd is None:
            self._fd = self._files.open(self.path, write=True)
        return self._fd

    def _offset_index(self) -> OffsetIndex:
        if self._offsets is None:
            self._offsets = OffsetIndex.load(self._files, self._offsets_path, self.base_offset, self.size)
        return self._offsets

    def _times_index(self) -> TimeIndex:
        if self._times is None:
            self._times = TimeIndex.load(self._files, self._times_path, self.base_offset)
        return self._times
