"""Assigning offsets to a batch: the bytes to write, and what the indexes want to know of them."""

from __future__ import annotations

from struct import Struct

from tagwire.broker.storage.batch import Batch
from tagwire.broker.storage.scan import last_offsets
from tagwire.broker.storage.segment import PositionedBatch
from tagwire.records import assign_offsets, set_append_time
from tagwire.records.batch import HEADER_SIZE
from tagwire.records.message_set import TIMESTAMP, TIMESTAMP_AT

_INT64 = Struct(">q")


def positioned(
    batch: Batch, base_offset: int, leader_epoch: int, stamp: int, dialect: str | None
) -> list[PositionedBatch]:
    """`batch` from `base_offset` on, in a log of a dialect; `stamp`: when it is appended (ms), -1 to keep its own time.

    In a dialect it is a message set whose offsets count from 0, and each of its entries is positioned.
    """
    if dialect is not None:
        return _messages(batch, base_offset, stamp, dialect)
    head = bytearray(batch.data[:HEADER_SIZE])
    max_timestamp = batch.max_timestamp
    if stamp >= 0:
        set_append_time(head, stamp, batch.data[HEADER_SIZE:])
        max_timestamp = stamp
    assign_offsets(head, base_offset, leader_epoch)
    last_offset = base_offset + batch.last_offset_delta
    return [PositionedBatch(base_offset, last_offset, max_timestamp, len(batch.data), (head, batch.data[HEADER_SIZE:]))]


def _messages(batch: Batch, base_offset: int, stamp: int, dialect: str) -> list[PositionedBatch]:
    found = []
    first = base_offset
    data = memoryview(bytearray(batch.data))
    for position, size, last in last_offsets(data, dialect):
        entry = data[position : position + size]
        if stamp >= 0:
            set_append_time(entry, stamp, dialect=dialect)
        _INT64.pack_into(entry, 0, base_offset + last)
        (max_timestamp,) = TIMESTAMP.unpack_from(entry, TIMESTAMP_AT)
        found.append(PositionedBatch(first, base_offset + last, max_timestamp, size, (entry,)))
        first = base_offset + last + 1
    return found
