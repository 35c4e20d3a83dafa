"""The two indexes beside a segment: offset -> file position, and timestamp -> offset. Their formats: records/files.

Both are held in memory and written out when a segment is rolled, checkpointed or closed. After a crash they are
rebuilt from the segment, so their files never have to be newer than the last clean point. One thread adds, any number
look up.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from pathlib import Path

from tagwire.broker.storage.files import Files, read_start
from tagwire.records.files import offset_index, time_index

SMALLEST_BATCH = 34
"""Bytes of the smallest entry of a log: an empty message of a message set."""


def most_entries(size: int) -> int:
    """How many entries an index of a segment of `size` bytes can have: one for each batch, and one for its end."""
    return size // SMALLEST_BATCH + 1


class OffsetIndex:
    """Where in a segment some of its batches start."""

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")
        self._saved = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int, position: int) -> None:
        """Note that the batch whose last offset is `offset` starts at `position`."""
        # The position first: a reader that sees the offset must find its position.
        self._positions.append(position)
        self._offsets.append(offset - self._base)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The indexed batch nearest before or at `offset`: its last offset, and where it starts; (base offset, 0) when
        there is none."""
        found = bisect_right(self._offsets, offset - self._base) if offset >= self._base else 0
        return self._entry(found)

    def batch_start_at_most(self, position: int) -> tuple[int, int]:
        """The same for the last batch that does not start past `position`."""
        return self._entry(bisect_right(self._positions, position, 0, len(self._offsets)))

    def _entry(self, count: int) -> tuple[int, int]:
        """The last of the first `count` entries."""
        return (self._base + self._offsets[count - 1], self._positions[count - 1]) if count else (self._base, 0)

    def save(self, files: Files, path: Path, *, sync: bool) -> None:
        """Bring the file at `path` up to date; with `sync`, wait until it is on the disk."""
        entries = [*map(offset_index.ENTRY.pack, self._offsets[self._saved :], self._positions[self._saved :])]
        _save(files, path, entries, self._saved * offset_index.ENTRY.size, sync)
        self._saved = len(self._offsets)

    @classmethod
    def load(cls, files: Files, path: Path, base_offset: int, size: int) -> OffsetIndex:
        """The index in the file at `path`, of a segment of `size` bytes.

        Reading stops before an entry that does not increase (Kafka's own files end in zeros) or lies past the
        segment's end.
        """
        index = cls(base_offset)
        data = read_start(files, path, most_entries(size) * offset_index.ENTRY.size)
        for relative, position in offset_index.increasing(data):
            if position >= size:
                break
            index._offsets.append(relative)
            index._positions.append(position)
        index._saved = len(index)
        return index


class TimeIndex:
    """For growing timestamps, the last offset of the earliest batch that reached them."""

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")
        self._saved = 0

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int]:
        """The newest timestamp (milliseconds) and its offset; (-1, base offset) when the index is empty."""
        if not self._timestamps:
            return -1, self._base
        return self._timestamps[-1], self._base + self._offsets[-1]

    def add(self, timestamp: int, offset: int) -> None:
        """Note the newest timestamp so far. One that is not newer than the last entry's is left out."""
        if timestamp > self.last[0]:
            self._offsets.append(offset - self._base)
            self._timestamps.append(timestamp)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry that is not newer than `timestamp`: its timestamp and offset, before which every timestamp is
        older; (-1, base offset) when there is none."""
        found = bisect_right(self._timestamps, timestamp)
        return (self._timestamps[found - 1], self._base + self._offsets[found - 1]) if found else (-1, self._base)

    def save(self, files: Files, path: Path, *, sync: bool) -> None:
        """Bring the file at `path` up to date; with `sync`, wait until it is on the disk."""
        entries = [*map(time_index.ENTRY.pack, self._timestamps[self._saved :], self._offsets[self._saved :])]
        _save(files, path, entries, self._saved * time_index.ENTRY.size, sync)
        self._saved = len(self._timestamps)

    @classmethod
    def load(cls, files: Files, path: Path, base_offset: int, size: int) -> TimeIndex:
        """The index in the file at `path`, of a segment of `size` bytes, up to the first entry that does not
        increase."""
        index = cls(base_offset)
        data = read_start(files, path, most_entries(size) * time_index.ENTRY.size)
        for timestamp, relative in time_index.increasing(data):
            index._offsets.append(relative)
            index._timestamps.append(timestamp)
        index._saved = len(index)
        return index


def _save(files: Files, path: Path, entries: list[bytes], position: int, sync: bool) -> None:
    fd = files.open(path, write=True)
    try:
        data = b"".join(entries)
        files.write(fd, [data], position)
        files.truncate(fd, position + len(data))
        if sync:
            files.sync(fd)
    finally:
        files.close(fd)
