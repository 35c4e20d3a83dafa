"""A range of a segment, read in chunks of bounded size: whole record batches, each chunk with its position.

Chunks are read, not mapped: a file that is cut meanwhile ends the read with an error, not the worker with a signal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tagwire.errors import CorruptRecordError
from tagwire.records.batch_bounds import batch_bounds, stated_size
from tagwire.records.files.tails import tail
from tagwire.spark.segments.file_splits import LogFile

log = logging.getLogger(__name__)

CHUNK_BYTES = 8 << 20
_LARGEST = 1 << 30


class Chunk(NamedTuple):
    """Whole batches of a segment. `position`: of the first of them in the file; `ends`: where each ends."""

    data: memoryview
    position: int
    ends: list[int]


def chunks(file: LogFile, start: int, end: int, *, drop: bool) -> Iterator[Chunk]:
    """The whole batches of a range that begins with one.

    Zeros at the end of a file, and a batch that is cut off at the end of a partition's last segment, are left out:
    a broker leaves both behind.

    Args:
        drop: whether what follows damage is left out with a warning, up to the end of the range.

    Raises:
        CorruptRecordError: bytes that no batch can start with, or a batch that is cut off; names file and byte.
        StorageError: the file cannot be read, or a broker has put another one in its place, as compaction does.
    """
    at, want = start, CHUNK_BYTES
    while at < end:
        data = memoryview(file.file_system.read(file.path, at, min(at + want, end)))
        file.check_kept()
        ends = [position + size for position, size, _ in batch_bounds(data)]
        if ends:
            yield Chunk(data[: ends[-1]], at, ends)
            at, want = at + ends[-1], CHUNK_BYTES
            continue
        rest = tail(data, 0)
        if rest is None:
            return
        if rest.kind == "zeros":
            if end == file.size and _is_blank(file, at + len(data)):
                return
            rest = replace(rest, kind="damage", reason="zeros, and something else after them")
        size = stated_size(data) or 0
        # A broker may have cut the file since its size was asked for: it ends here then, and reading on finds no more.
        cut = len(data) < min(want, end - at)
        if rest.kind == "partial" and not cut and len(data) < size <= min(_LARGEST, end - at):
            want = size
            continue
        ends_inside = rest.kind == "partial" and (cut or end == file.size)
        if ends_inside and file.last:
            return
        closed = "a closed segment ends inside a batch: " if ends_inside else ""
        wrong = CorruptRecordError(f"{closed}{rest.reason}", path=file.path, offset=at)
        if not drop:
            raise wrong
        log.warning("%s; %d bytes after it are left out", wrong, end - at)
        return


def _is_blank(file: LogFile, start: int) -> bool:
    """Whether there are zeros alone from `start` to the end of a file. Raises StorageError."""
    for at in range(start, file.size, CHUNK_BYTES):
        data = memoryview(file.file_system.read(file.path, at, min(at + CHUNK_BYTES, file.size)))
        rest = tail(data, 0)
        if rest is not None and rest.kind != "zeros":
            return False
    return True
