"""`.txnindex`: the aborted transactions whose abort markers stand in a segment.

Entries of 34 bytes: int16 version 0 and the message AbortedTxn; last offsets strictly increase.
Source: docs/log-files.md#transaction-index.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tagwire.records.files.index_entries import Entries, entries_of, whole

ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A producer's transaction from `first_offset` to its abort marker at `last_offset`.

    Where `last_stable_offset` was the last stable offset once the transaction had ended.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_transaction_index(data: bytes, base_offset: int = 0) -> Entries[AbortedTransaction]:
    """The entries of the `.txnindex` file of a segment that begins at `base_offset`, up to one of another version, one
    that contradicts itself, or one whose marker would stand before the segment.

    Zeros are a fault here: nobody allocates this file ahead.
    """
    found = entries_of(data, ENTRY.size, _increasing(data, base_offset))
    if not found.zeros:
        return found
    said = f"{found.zeros} bytes of zeros at byte {found.size}, of a file that is not allocated ahead"
    return Entries(found.entries, found.size, 0, said)


def _increasing(data: bytes, base_offset: int) -> Iterator[AbortedTransaction]:
    before = base_offset - 1
    for version, *fields in ENTRY.iter_unpack(whole(data, ENTRY.size)):
        entry = AbortedTransaction(*fields)
        if version != _VERSION or entry.last_offset <= before or not 0 <= entry.first_offset < entry.last_offset:
            return
        yield entry
        before = entry.last_offset
