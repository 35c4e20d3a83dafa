"""Walking the batches of a segment file, header by header.

Every entry of a log starts with an int64 offset and an int32 size of what follows (facts/kafka_protocol.md 5.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tagwire.broker.storage.files import Files
from tagwire.errors import CorruptRecordError, UnsupportedVersionError
from tagwire.records import BatchHeader, batch_headers
from tagwire.records.batch import HEADER_SIZE

_ENTRY = Struct(">qi")
_SPAN = Struct(">qi11xi")
WINDOW_BYTES = 1 << 20

MAX_BATCH_BYTES = 128 << 20
"""More than any request can carry: a larger size in a file is damage, and nothing is allocated for it."""


def spans(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Position in `data`, size in bytes and last offset of each batch that starts in it; the last one may not end in
    it.

    Raises:
        CorruptRecordError: a size that no batch can have.
    """
    position = 0
    while position + _SPAN.size <= len(data):
        base_offset, size, last_delta = _SPAN.unpack_from(data, position)
        size += _ENTRY.size
        if size < HEADER_SIZE:
            raise CorruptRecordError(f"batch size {size} is less than a header of {HEADER_SIZE}", offset=position)
        yield position, size, base_offset + last_delta
        position += size


def ending_before(data: memoryview, offset: int) -> memoryview:
    """The whole batches in `data` that end before `offset`."""
    end = 0
    for position, size, last_offset in spans(data):
        if last_offset >= offset or position + size > len(data):
            break
        end = position + size
    return data[:end]


def batches(
    files: Files, fd: int, start: int, end: int, *, verify: bool = False, window: int = WINDOW_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches between two positions of a file, each with the position where it starts. `start` is a batch boundary.

    Ends silently before a batch that is not whole by `end`. With `verify`, a header says whether its checksum holds.

    Raises:
        CorruptRecordError: bytes that no batch can start with; UnsupportedVersionError for a message set.
    """
    position = start
    size = window
    while position < end:
        data = files.read(fd, min(size, end - position), position)
        done = 0
        for header in batch_headers(data, verify=verify):
            if header.magic != 2:
                raise UnsupportedVersionError(f"message format magic {header.magic} is not stored, only 2")
            yield position + header.position, header
            done = header.position + header.size
        position += done
        size = window
        if not done:
            if len(data) < _ENTRY.size:
                return
            claimed: int = _ENTRY.size + _ENTRY.unpack_from(data)[1]
            if not len(data) < claimed <= min(end - position, MAX_BATCH_BYTES):
                return
            size = claimed
