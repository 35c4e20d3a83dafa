"""`.timeindex`: for growing timestamps, the last offset of the earliest batch that reached them.

Entries of 12 bytes: int64 timestamp in milliseconds, int32 offset relative to the segment's base. Timestamps strictly
increase, offsets never decrease. Source: docs/log-files.md#time-index.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tagwire.records.files.index_entries import Entries, entries_of, whole

ENTRY = Struct(">qi")
_NO_ENTRY = bytes(2 * ENTRY.size)  # allocated ahead: one entry of zeros could be of 1970, two cannot increase


class TimeEntry(NamedTuple):
    """Up to the batch that holds `offset`, `timestamp` (ms) is the greatest."""

    timestamp: int
    offset: int


def increasing(data: bytes) -> Iterator[tuple[int, int]]:
    """(timestamp, relative offset) of each entry, up to the first that does not increase."""
    last_timestamp, last_relative = -1, 0
    if data[: len(_NO_ENTRY)] == _NO_ENTRY:
        return
    for timestamp, relative in ENTRY.iter_unpack(whole(data, ENTRY.size)):
        if timestamp <= last_timestamp or relative < last_relative:
            return
        yield timestamp, relative
        last_timestamp, last_relative = timestamp, relative


def read_time_index(data: bytes, base_offset: int) -> Entries[TimeEntry]:
    """The entries of a `.timeindex` file of a segment that begins at `base_offset`, with their offsets absolute."""
    found = (TimeEntry(timestamp, base_offset + relative) for timestamp, relative in increasing(data))
    return entries_of(data, ENTRY.size, found)
