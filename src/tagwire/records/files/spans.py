"""Where each batch of a segment starts, by the sizes that the batches state, and what stands after the last whole one.

Every format begins with int64 offset, int32 size of what follows, and has its magic byte at 16. Source:
docs/record-formats.md#framing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Literal

_ENTRY = Struct(">8xi4xb")
_PREFIX_SIZE = 12
_SMALLEST = 26

_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the last whole batch of a segment.

    Attributes:
        position, size: where it starts, and its bytes to the end of the file.
        kind: zeros: space allocated ahead. partial: the beginning of a batch, cut off. damage: neither.
        reason: the same in words.
    """

    position: int
    size: int
    kind: Literal["zeros", "partial", "damage"]
    reason: str


def spans(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(position, size, magic) of the whole batches of `data` that start from `start` to before `end`.

    `start` is where a batch starts. Ends at the first byte that no whole batch starts with: see `tail`.
    """
    at, last = start, len(data) - _ENTRY.size
    unpack = _ENTRY.unpack_from
    while at < end and at <= last:
        size, magic = unpack(data, at)
        size += _PREFIX_SIZE
        if not 0 <= magic <= 2 or not _SMALLEST <= size <= len(data) - at:
            return
        yield at, size, magic
        at += size


def tail(data: memoryview, position: int) -> Tail | None:
    """What stands from `position` to the end of `data`, where `spans` ended; None where that is nothing."""
    left = len(data) - position
    if not left:
        return None
    if _only_zeros(data, position):
        return Tail(position, left, "zeros", "zeros, allocated ahead")
    if left < _ENTRY.size:
        return Tail(position, left, "partial", f"{left} bytes are less than a batch begins with")
    size, magic = _ENTRY.unpack_from(data, position)
    size += _PREFIX_SIZE
    if not 0 <= magic <= 2:
        return Tail(position, left, "damage", f"magic {magic} is not 0, 1 or 2")
    if size < _SMALLEST:
        return Tail(position, left, "damage", f"a batch cannot have {size} bytes")
    return Tail(position, left, "partial", f"of a batch of {size} bytes {left} are there")


def _only_zeros(data: memoryview, position: int) -> bool:
    for at in range(position, len(data), _PIECE):
        piece = bytes(data[at : at + _PIECE])
        if piece != (_ZEROS if len(piece) == _PIECE else _ZEROS[: len(piece)]):
            return False
    return True
