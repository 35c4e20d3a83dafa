"""Where each batch of some bytes starts, by the sizes that the batches state: the one walk over a log's bytes.

Every format begins with int64 offset, int32 size of what follows, and has its magic byte at 16. Source:
docs/record-formats.md#framing.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tagwire.errors import CorruptRecordError
from tagwire.records.batch import HEADER_SIZE, PREFIX_SIZE

MAGIC_AT = 16
SMALLEST_LENGTH = 14
"""What follows the prefix of a message of magic 0 with neither key nor value: no batch or message is shorter."""

_LENGTH_AT = 8
_LAST_MAGIC = 2
_SMALLEST = PREFIX_SIZE + SMALLEST_LENGTH
_FRAME = Struct(">8xi4xb")
_LENGTH = Struct(">8xi")


def batch_bounds(
    data: memoryview, start: int = 0, end: int | None = None, *, whole: bool = True
) -> Iterator[tuple[int, int, int]]:
    """(position, size, magic) of the batches of `data` that start from `start`, where one must, to before `end`.

    A message of a message set is a batch of its own. Ends at the first byte that no batch starts with, and, unless
    `whole` is off, before the batch that is not whole: `damage_at` tells the one from the other.
    """
    at, last = start, len(data) - _FRAME.size
    end = len(data) if end is None else end
    unpack = _FRAME.unpack_from
    while at < end and at <= last:
        size, magic = unpack(data, at)
        size += PREFIX_SIZE
        if not 0 <= magic <= 2 or size < _SMALLEST or (whole and size > len(data) - at):
            return
        yield at, size, magic
        at += size


def damage_at(data: memoryview, at: int) -> tuple[str, int] | None:
    """Why no batch starts at `at`, and the byte that says so; None where one does, or may when more of it is there."""
    if len(data) - at < PREFIX_SIZE:
        return None
    (length,) = _LENGTH.unpack_from(data, at)
    if length < SMALLEST_LENGTH:
        return f"batch length {length} is below {SMALLEST_LENGTH}", at + _LENGTH_AT
    if len(data) - at > MAGIC_AT and data[at + MAGIC_AT] > _LAST_MAGIC:
        return f"magic {data[at + MAGIC_AT]} is not 0, 1 or 2", at + MAGIC_AT
    return None


def check_end(data: memoryview, at: int) -> None:
    """Raises CorruptRecordError where `batch_bounds` ended at `at` because no batch starts there."""
    if damage := damage_at(data, at):
        raise CorruptRecordError(damage[0], offset=damage[1])


def check_record_batch(size: int, position: int) -> None:
    """Raises CorruptRecordError where `size` bytes do not hold the header of the record batch at `position`."""
    if size < HEADER_SIZE:
        raise CorruptRecordError(
            f"batch length {size - PREFIX_SIZE} leaves no room for a header", offset=position + PREFIX_SIZE - 4
        )


def stated_size(data: memoryview) -> int | None:
    """The size in bytes that the batch at the start of `data` states, unchecked; None where that is not in it."""
    return PREFIX_SIZE + int(_LENGTH.unpack_from(data)[0]) if len(data) >= PREFIX_SIZE else None
