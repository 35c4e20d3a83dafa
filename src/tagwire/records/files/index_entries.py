"""The form of all index files: entries of one size, in ascending order, perhaps with zeros after them.

The active segment's index files are allocated ahead and filled with zeros; a file that was not closed well may hold
anything after its last entry. So an index is read up to the first entry that does not fit to the one before
(docs/log-files.md#time-index), and what stands there is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Entries(Generic[Entry]):
    """What an index file holds.

    Attributes:
        entries: the entries, up to the first that does not fit to the one before.
        size: bytes that they take.
        zeros: bytes of zeros after them, to the end of the file: space allocated ahead.
        fault: what stands after the entries instead; None where there is nothing but zeros.
    """

    entries: list[Entry]
    size: int
    zeros: int
    fault: str | None


def entries_of(data: bytes, entry_size: int, read: Iterable[Entry]) -> Entries[Entry]:
    """What a file of `data` holds, of which `read` gives the good entries."""
    entries = list(read)
    size = len(entries) * entry_size
    rest = data[size:]
    if rest == bytes(len(rest)):
        return Entries(entries, size, len(rest), None)
    if len(rest) < entry_size:
        return Entries(entries, size, 0, f"{len(rest)} bytes at byte {size} are less than an entry of {entry_size}")
    wrong = rest[:entry_size].hex()
    return Entries(entries, size, 0, f"entry {len(entries)} at byte {size} does not follow the one before: {wrong}")


def whole(data: bytes, entry_size: int) -> bytes:
    """`data` without the part of an entry at its end."""
    return data[: len(data) - len(data) % entry_size]
