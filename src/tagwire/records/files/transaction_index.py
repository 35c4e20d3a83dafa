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


def read_transaction_index(data: bytes) -> Entries[AbortedTransaction]:
    """The entries of a `.txnindex` file, up to one of another version or one that contradicts itself."""
    return entries_of(data, ENTRY.size, _increasing(data))


def _increasing(data: bytes) -> Iterator[AbortedTransaction]:
    before = -1
    for version, *fields in ENTRY.iter_unpack(whole(data, ENTRY.size)):
        entry = AbortedTransaction(*fields)
        if version != _VERSION or entry.last_offset <= before or not 0 <= entry.first_offset <= entry.last_offset:
            return
        yield entry
        before = entry.last_offset
