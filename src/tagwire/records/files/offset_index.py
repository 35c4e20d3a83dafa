"""`.index`: where in a segment some of its batches start.

Entries of 8 bytes: int32 offset relative to the segment's base, int32 position in the file; both strictly increase. The
offset is the last one of the batch that starts at the position. Source: docs/log-files.md#offset-index.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tagwire.records.files.index_entries import Entries, entries_of, whole

ENTRY = Struct(">ii")

MAX_RELATIVE = 2**31 - 1
"""The largest offset and position, relative to the segment, that an entry can hold."""


class OffsetEntry(NamedTuple):
    """The batch whose last offset is `offset` starts at byte `position` of the segment."""

    offset: int
    position: int


def increasing(data: bytes) -> Iterator[tuple[int, int]]:
    """(relative offset, position) of each entry, up to the first that does not increase."""
    last_relative, last_position = -1, 0
    for relative, position in ENTRY.iter_unpack(whole(data, ENTRY.size)):
        # No entry is made for the first batch of a segment: that one starts at 0.
        if relative <= last_relative or position <= last_position:
            return
        yield relative, position
        last_relative, last_position = relative, position


def read_offset_index(data: bytes, base_offset: int) -> Entries[OffsetEntry]:
    """The entries of an `.index` file of a segment that begins at `base_offset`, with their offsets absolute."""
    found = (OffsetEntry(base_offset + relative, position) for relative, position in increasing(data))
    return entries_of(data, ENTRY.size, found)
