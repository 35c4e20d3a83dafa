"""Walking the batches of a segment, in memory by the sizes and offsets they state, in a file batch by batch.

Every entry of a log starts with an int64 offset and an int32 size of what follows (docs/record-formats.md#framing).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tagwire.broker.storage.files import Files
from tagwire.errors import CorruptRecordError, UnsupportedVersionError
from tagwire.records import RecordBatch, read
from tagwire.records.batch import HEADER_SIZE, PREFIX_SIZE

_BATCH = Struct(">qi11xi")
_MESSAGE = Struct(">qi")
_SMALLEST_MESSAGE = 34
WINDOW_BYTES = 1 << 20

MAX_BATCH_BYTES = 128 << 20
"""More than any request can carry: a larger size in a file is damage, and nothing is allocated for it."""


def spans(data: memoryview, dialect: str | None = None) -> Iterator[tuple[int, int, int]]:
    """Position in `data`, size in bytes and last offset of each batch that starts in it; the last one may not end in
    it. In a dialect these are the entries of a message set.

    Raises:
        CorruptRecordError: a size that no batch can have.
    """
    head, smallest = (_BATCH, HEADER_SIZE) if dialect is None else (_MESSAGE, _SMALLEST_MESSAGE)
    position, last = 0, len(data) - head.size
    while position <= last:
        offset, size, *delta = head.unpack_from(data, position)
        size += PREFIX_SIZE
        if size < smallest:
            raise CorruptRecordError(f"batch size {size} is less than the {smallest} of a header", offset=position)
        yield position, size, offset + (delta[0] if delta else 0)
        position += size


def ending_before(data: memoryview, offset: int, dialect: str | None = None) -> memoryview:
    """The whole batches in `data` that end before `offset`."""
    end = 0
    for position, size, last_offset in spans(data, dialect):
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
            if len(data) < _MESSAGE.size:
                return
            claimed: int = PREFIX_SIZE + _MESSAGE.unpack_from(data)[1]
            if not len(data) < claimed <= min(end - position, MAX_BATCH_BYTES):
                return
            size = claimed
