"""What stands after the last whole batch of a segment. Source: docs/log-files.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tagwire.records.batch_bounds import MAGIC_AT, damage_at, stated_size

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


def tail(data: memoryview, position: int) -> Tail | None:
    """What stands from `position` to the end of `data`, where `batch_bounds` ended; None where that is nothing."""
    left = len(data) - position
    if not left:
        return None
    if _only_zeros(data, position):
        return Tail(position, left, "zeros", "zeros, allocated ahead")
    if damage := damage_at(data, position):
        return Tail(position, left, "damage", damage[0])
    size = stated_size(data[position:])
    if size is None or left <= MAGIC_AT:
        return Tail(position, left, "partial", f"{left} bytes are less than a batch begins with")
    return Tail(position, left, "partial", f"of a batch of {size} bytes {left} are there")


def _only_zeros(data: memoryview, position: int) -> bool:
    for at in range(position, len(data), _PIECE):
        piece = bytes(data[at : at + _PIECE])
        if piece != (_ZEROS if len(piece) == _PIECE else _ZEROS[: len(piece)]):
            return False
    return True
