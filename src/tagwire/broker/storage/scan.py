"""Walking the batches of a segment: in memory by their last offsets, in a file batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tagwire.broker.storage.files import Files
from tagwire.errors import CorruptRecordError, UnsupportedVersionError
from tagwire.records import RecordBatch, read
from tagwire.records.batch import HEADER_SIZE
from tagwire.records.batch_bounds import batch_bounds, check_end, stated_size

_OFFSET, _DELTA = Struct(">q"), Struct(">i")
_DELTA_AT = 23
_SMALLEST_MESSAGE = 34
WINDOW_BYTES = 1 << 20

MAX_BATCH_BYTES = 128 << 20
"""More than any request can carry: a larger size in a file is damage, and nothing is allocated for it."""


def last_offsets(data: memoryview, dialect: str | None = None) -> Iterator[tuple[int, int, int]]:
    """Position in `data`, size in bytes and last offset of each batch that starts in it; the last one may not end in
    it. In a dialect these are the entries of a message set.

    Raises:
        CorruptRecordError: bytes that no batch can start with.
    """
    head, smallest = (_DELTA_AT + _DELTA.size, HEADER_SIZE) if dialect is None else (0, _SMALLEST_MESSAGE)
    at = 0
    for position, size, _ in batch_bounds(data, whole=False):
        if size < smallest:
            raise CorruptRecordError(f"batch size {size} is less than the {smallest} of a header", offset=position)
        if len(data) - position < head:
            return
        last = int(_OFFSET.unpack_from(data, position)[0])
        if dialect is None:
            last += int(_DELTA.unpack_from(data, position + _DELTA_AT)[0])
        yield position, size, last
        at = position + size
    check_end(data, at)


def ending_before(data: memoryview, offset: int, dialect: str | None = None) -> memoryview:
    """The whole batches in `data` that end before `offset`."""
    end = 0
    for position, size, last_offset in last_offsets(data, dialect):
        if last_offset >= offset or position + size > len(data):
            break
        end = position + size
    return data[:end]


def batches(
    files: Files, fd: int, start: int, end: int, dialect: str | None = None, *, window: int = WINDOW_BYTES
) -> Iterator[tuple[int, RecordBatch]]:
    """The batches between two positions of a file, each with the position where it starts. `start` is a batch boundary.

    Ends silently before a batch that is not whole by `end`. Checksums are not looked at.

    Raises:
        CorruptRecordError: bytes that no batch can start with; UnsupportedVersionError for a message set that is not of
            the dialect.
    """
    position = start
    size = window
    while position < end:
        data = files.read(fd, min(size, end - position), position)
        done = 0
        for batch in read(data, dialect, verify=False):
            if batch.magic != 2:
                raise UnsupportedVersionError(f"message format magic {batch.magic} is not stored, only 2")
            yield position + batch.position, batch
            done = batch.position + batch.size
        position += done
        size = window
        if not done:
            claimed = stated_size(memoryview(data))
            if claimed is None or not len(data) < claimed <= min(end - position, MAX_BATCH_BYTES):
                return
            size = claimed
