"""Record batches and message sets: bytes to `Record` objects and to Arrow, and back.

    for batch in records.read(data):
        for record in batch.records(): ...
    table = records.to_arrow(data)
    data = records.write([Record(b"key", b"value", headers=[("origin", b"EWR")])], compression="lz4")

`to_arrow` and `from_arrow` import pyarrow when they are first used; nothing else here does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tagwire.records.aborted import AbortedTransactions
from tagwire.records.batch import BatchHeader, DecompressedBatch, RecordBatch, next_sequence
from tagwire.records.compression import CODECS, compress, decompress
from tagwire.records.control import ControlRecord, decode_control
from tagwire.records.control_writer import write_control, write_end_transaction
from tagwire.records.header_keys import HeaderKeys, namespace_of
from tagwire.records.header_serdes import HeaderSerdes
from tagwire.records.memory_records import (
    assign_offsets,
    batch_headers,
    next_offset,
    read,
    read_coalesced,
    set_append_time,
    set_max_timestamp,
    set_producer,
)
from tagwire.records.message_set import MessageEntry
from tagwire.records.record import MalformedKey, Record
from tagwire.records.register import HeaderEntry, HeaderRegister
from tagwire.records.writer import BatchOptions, rewrite, write

if TYPE_CHECKING:
    from tagwire.records.arrow import (
        ReadOptions,
        arrow_chunks,
        arrow_schema,
        to_arrow,
    )
    from tagwire.records.arrow_writing import batches_from_arrow, from_arrow

__all__ = [
    "CODECS",
    "AbortedTransactions",
    "BatchHeader",
    "BatchOptions",
    "ControlRecord",
    "DecompressedBatch",
    "HeaderEntry",
    "HeaderKeys",
    "HeaderRegister",
    "HeaderSerdes",
    "MalformedKey",
    "MessageEntry",
    "ReadOptions",
    "Record",
    "RecordBatch",
    "arrow_chunks",
    "arrow_schema",
    "assign_offsets",
    "batch_headers",
    "batches_from_arrow",
    "compress",
    "decode_control",
    "decompress",
    "from_arrow",
    "namespace_of",
    "next_offset",
    "next_sequence",
    "read",
    "read_coalesced",
    "rewrite",
    "set_append_time",
    "set_max_timestamp",
    "set_producer",
    "to_arrow",
    "write",
    "write_control",
    "write_end_transaction",
]

_IN_ARROW = {
    "ReadOptions": "arrow",
    "arrow_chunks": "arrow",
    "arrow_schema": "arrow",
    "batches_from_arrow": "arrow_writing",
    "from_arrow": "arrow_writing",
    "to_arrow": "arrow",
}


def __getattr__(name: str) -> object:
    if name in _IN_ARROW:
        found = globals()[name] = getattr(import_module(f"{__name__}.{_IN_ARROW[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
