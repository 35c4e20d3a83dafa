"""One segment of a partition's log, read from its file as it is: batches, records, columns, and places to split it at.

    with Segment("flights-0/00000000000000000000.log") as segment:
        for position, batch in segment.batches(): ...      # headers only: nothing is decompressed
        for start, end in segment.split(8): ...            # ranges of whole batches, to be read in parallel
        table = segment.to_arrow(columns=("offset", "value"))

The file is mapped into memory, so no byte is read before it is needed. What is appended after that is not seen; what is
cut off a file that is mapped must not be read any more, and an operating system ends a process that does. Kafka cuts
only the active segment, when it closes it or a replica takes records back: of a live broker, read a copy of that one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tagwire.errors import CorruptRecordError, DecodeError
from tagwire.records import HeaderRegister, RecordBatch, read, read_coalesced
from tagwire.records.batch_bounds import batch_bounds
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.files.names import offset_of
from tagwire.records.files.offset_index import OffsetEntry, read_offset_index
from tagwire.records.files.opening import bytes_of, open_file
from tagwire.records.files.replacements import SWAP, final_name
from tagwire.records.files.tails import Tail, tail
from tagwire.records.memory_records import check_dialect
from tagwire.records.message_set import MessageEntry
from tagwire.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


Range = tuple[int, int]
"""Bytes of a segment from a batch's start to another's, or to the end of the file."""


class Segment:
    """A `.log` file, or a KRaft snapshot, which has the same content.

    Attributes:
        path: the file.
        base_offset: the offset that its name says; 0 where it says none.
        dialect: None for Kafka's formats, told apart by their magic byte; "int-headers" for those of that name.
        register: with that dialect, by which records and columns name the int keys of headers; None for numbers.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, dialect: str | None = None, register: HeaderRegister | None = None
    ) -> None:
        """Nothing is opened yet: what can go wrong then does so at the first use, as OSError, or as StorageError for a
        pipe or a device. Raises ConfigError for an unknown dialect, and for a register without that of int-headers."""
        check_dialect(dialect, register)
        self.path = Path(path)
        self.base_offset = offset_of(final_name(self.path.name)) or 0
        self.dialect = dialect
        self.register = register

    @cached_property
    def data(self) -> memoryview:
        """All bytes of the file."""
        with open_file(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            return memoryview(mmap(file.fileno(), size, access=ACCESS_READ) if size else b"")

    @property
    def size(self) -> int:
        """Bytes of the file, its tail included."""
        return len(self.data)

    @cached_property
    def end(self) -> int:
        """Where the last whole batch ends. Found by going from header to header."""
        return self._end_of(0, self.size)

    @property
    def next_offset(self) -> int:
        """The offset after the last whole batch; the segment's own where there is none."""
        last = None
        for bounds in batch_bounds(self.data, 0, self.size):
            last = bounds
        return self.base_offset if last is None else self._last_offset(*last) + 1

    @cached_property
    def tail(self) -> Tail | None:
        """What follows the last whole batch; None where nothing does."""
        return tail(self.data, self.end)

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, RecordBatch]]:
        """The batches that start from `start`, where one must, to before `end` (None: all), each with its position.

        A partial batch and zeros at the end of the file are left out. Checksums are not computed. Of a message set, a
        message that wraps others may become 64 MiB as it is asked for what they say.

        Raises:
            CorruptRecordError: bytes that no batch can start with, or a header that contradicts itself.
        """
        end = self.size if end is None else end
        after = start
        for position, size, _ in batch_bounds(self.data, start, end):
            yield position, self.batch_at(position, size)
            after = position + size
        self._check_damage(after, end)

    def batch_at(self, position: int, size: int) -> RecordBatch:
        """The batch of `size` bytes at `position`. Raises CorruptRecordError."""
        data = self.data[position : position + size]
        try:
            batch = next(self._read(data))
            if isinstance(batch, MessageEntry):  # it has no header that tells what it wraps
                batch.max_decompressed = MAX_DECOMPRESSED
            return batch
        except StopIteration:
            raise CorruptRecordError("there is no whole batch", path=self.path.name, offset=position) from None
        except DecodeError as error:
            raise error.under(f"{self.path.name}, batch at byte {position}") from None

    def records(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        start_offset: int = 0,
        end_offset: int | None = None,
        max_decompressed: int | None = None,
    ) -> Iterator[Record]:
        """The records of the batches in a range, control records too, each batch's checksum checked first.

        Args:
            start, end: the range, as for `batches`.
            start_offset, end_offset: of these offsets only, the last one left out.
            max_decompressed: most bytes that one batch may become (None: 64 times its own and 1 MiB).

        Raises:
            CorruptRecordError: a broken batch.
        """
        end = self.size if end is None else end
        after = self._end_of(start, end)
        for batch in read_coalesced(
            self.data[start:after],
            self.dialect,
            verify=False,
            register=self.register,
            max_decompressed=max_decompressed,
        ):
            if batch.last_offset < start_offset:
                continue
            if end_offset is not None and batch.base_offset >= end_offset:
                return
            for record in self.records_of(start + batch.position, batch, max_decompressed=max_decompressed):
                if start_offset <= record.offset and (end_offset is None or record.offset < end_offset):
                    yield record
        self._check_damage(after, end)

    def records_of(self, position: int, batch: RecordBatch, *, max_decompressed: int | None = None) -> Iterator[Record]:
        """The records of one of the segment's batches, whose checksum is checked first. Raises CorruptRecordError."""
        try:
            batch.verify()
            return batch.records(max_decompressed=max_decompressed)
        except DecodeError as error:
            raise error.under(f"{self.path.name}, batch at byte {position}") from None

    def to_arrow(self, start: int = 0, end: int | None = None, **options: Any) -> pa.RecordBatch:
        """The records of the batches in a range as one RecordBatch: see `tagwire.records.to_arrow` for `options`."""
        from tagwire.records.arrow import to_arrow

        return to_arrow(self._whole(start, end), **self._with_dialect(options))

    def arrow_chunks(
        self, start: int = 0, end: int | None = None, **options: Any
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The same in pieces of bounded memory: see `tagwire.records.arrow_chunks` for `options`."""
        from tagwire.records.arrow import arrow_chunks

        return arrow_chunks(self._whole(start, end), **self._with_dialect(options))

    def split(self, parts: int) -> list[Range]:
        """At most `parts` ranges of whole batches, about equally large, that cover the file; none for an empty one.

        The `.index` beside the segment says where batches start, as far as it holds; else their headers do.
        """
        wanted = [self.size * part // parts for part in range(parts)]
        starts = self._indexed_starts(wanted)
        if starts is None:
            starts = self._walked_starts(wanted)
        return list(pairwise([*sorted(starts), self.size])) if self.size else []

    def position_of(self, offset: int) -> int:
        """Where the first batch starts that holds `offset` or a later one; `end` where there is none."""
        entries = self._index
        found = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
        start = entries[found].position if found >= 0 and self._holds(entries[found]) else 0
        for position, size, magic in batch_bounds(self.data, start, self.size):
            if self._last_offset(position, size, magic) >= offset:
                return position
        return self.end

    def beside(self, suffix: str) -> Path:
        """The path of another file of the segment, such as its `.index`."""
        if not self.path.name.endswith(SWAP):
            return self.path.with_suffix(suffix)
        return self.path.with_suffix("").with_suffix(suffix + SWAP)

    def close(self) -> None:
        """Let go of the file. Batches that were given out still hold it; the last one to go ends that."""
        self.__dict__.pop("data", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Segment {self.path}>"

    def _read(self, data: memoryview) -> Iterator[RecordBatch]:
        return read(data, self.dialect, verify=False, register=self.register)

    def _with_dialect(self, options: dict[str, Any]) -> dict[str, Any]:
        return options if self.dialect is None else {"dialect": self.dialect, "register": self.register, **options}

    def _end_of(self, start: int, end: int) -> int:
        after = start
        for position, size, _ in batch_bounds(self.data, start, end):
            after = position + size
        return after

    def _whole(self, start: int, end: int | None) -> memoryview:
        """The whole batches of a range; CorruptRecordError where damage ends it."""
        end = self.size if end is None else end
        after = self._end_of(start, end)
        self._check_damage(after, end)
        return self.data[start:after]

    def _check_damage(self, after: int, end: int) -> None:
        """Raises CorruptRecordError where the whole batches end at `after`, before `end`, because of damage."""
        if after < end and (found := tail(self.data, after)) and found.kind == "damage":
            raise CorruptRecordError(found.reason, path=self.path.name, offset=after)

    @cached_property
    def _index(self) -> list[OffsetEntry]:
        try:
            return read_offset_index(bytes_of(self.beside(".index")), self.base_offset).entries
        except OSError:
            return []

    def _holds(self, entry: OffsetEntry) -> bool:
        """Whether a batch with the entry's last offset starts where the entry says."""
        for position, size, magic in batch_bounds(self.data, entry.position, entry.position + 1):
            return self._last_offset(position, size, magic) == entry.offset
        return False

    def _last_offset(self, position: int, size: int, magic: int) -> int:
        if magic < 2 or self.dialect is not None:
            return int.from_bytes(self.data[position : position + 8], "big", signed=True)
        return self.batch_at(position, size).last_offset

    def _indexed_starts(self, wanted: list[int]) -> set[int] | None:
        """Batch starts at or before the positions wanted; None where the index does not say, or says what is wrong."""
        entries = self._index
        if not entries or not self._holds(entries[-1]):
            return None
        starts = {0}
        for position in wanted:
            found = bisect_right(entries, position, key=lambda entry: entry.position) - 1
            if found >= 0:
                if not self._holds(entries[found]):
                    return None
                starts.add(entries[found].position)
        return starts

    def _walked_starts(self, wanted: list[int]) -> set[int]:
        starts, waiting = {0}, iter(wanted[1:])
        target = next(waiting, None)
        before = 0
        for position, _, _ in batch_bounds(self.data, 0, self.size):
            while target is not None and position > target:
                starts.add(before)
                target = next(waiting, None)
            if target is None:
                break
            before = position
        if target is not None:
            starts.add(before)
        return starts
