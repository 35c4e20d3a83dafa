"""Record batches: bytes to `Record` objects and to Arrow, and back.

    for batch in records.read(data):
        for record in batch.records(): ...
    table = records.to_arrow(data)
    data = records.write([Record(b"key", b"value", headers=[("origin", b"EWR")])], compression="lz4")

`to_arrow` and `from_arrow` import pyarrow when they are first asked for; nothing else here does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagwire.records.batch import BatchHeader, RecordBatch, batch_headers, next_offset, place, read
from tagwire.records.compression import CODECS, compress, decompress
from tagwire.records.record import Record
from tagwire.records.writer import BatchOptions, write

if TYPE_CHECKING:
    from tagwire.records.arrow import arrow_chunks, arrow_schema, from_arrow, to_arrow

__all__ = [
    "CODECS",
    "BatchHeader",
    "BatchOptions",
    "Record",
    "RecordBatch",
    "arrow_chunks",
    "arrow_schema",
    "batch_headers",
    "compress",
    "decompress",
    "from_arrow",
    "next_offset",
    "place",
    "read",
    "to_arrow",
    "write",
]

_IN_ARROW = ("arrow_chunks", "arrow_schema", "from_arrow", "to_arrow")


def __getattr__(name: str) -> object:
    if name in _IN_ARROW:
        from tagwire.records import arrow

        return getattr(arrow, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
