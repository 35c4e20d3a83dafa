"""Many bodies at once: one after the other they are a block of an Avro container file, which polars reads to columns.

A body that is cut or has a byte too many shifts all that follow, which a reader of files does not notice. So after each
body stand eight random bytes, new for each block and read as a double: where those of the n-th row are what was put
there, the n-th body ended where it should, since the bytes are nowhere else.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from typing import Final

from tagwire.extras import Needs
from tagwire.values.avro.wire_types import Wire, WireNames

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

_SYNC: Final = bytes(16)

_MARK: Final = "mark"

_EMPTY: Final = pa.scalar(b"", pa.binary())


class Block:
    """Bodies with a mark after each.

    Attributes:
        data: all of them, as numbers.
        starts: where each begins; one more, where the next would.
    """

    MARK: Final = 8
    """Bytes of a mark."""

    def __init__(self, bodies: pa.Array) -> None:
        mark = bytearray(os.urandom(Block.MARK))
        mark[-1] &= 0xBF  # no NaN, whose bits need not stay as they are
        self.mark = int.from_bytes(mark, "little")
        marked = pc.binary_join_element_wise(bodies, pa.scalar(bytes(mark), pa.binary()), _EMPTY)
        self.rows = len(marked)
        _, offsets, data = marked.buffers()
        wide = np.frombuffer(offsets, np.int32)[marked.offset : marked.offset + self.rows + 1]
        self.data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        self.starts = wide.astype(np.int64)


class BlockReader:
    """Reads blocks of a record.

    Args:
        wire: the record.
        wanted: the places of the fields that are wanted; others are skipped.
    """

    def __init__(self, wire: Wire, wanted: Sequence[int]) -> None:
        fields = [*WireNames().fields(wire), {"name": _MARK, "type": "double"}]
        schema = json.dumps({"type": "record", "name": "T", "fields": fields}).encode()
        self._header = (
            b"Obj\x01" + _long(1) + _long(11) + b"avro.schema" + _long(len(schema)) + schema + _long(0) + _SYNC
        )
        self._columns = [str(place) for place in wanted if wire.fields[place].kind != "nothing"]
        self._names = None if len(self._columns) == len(fields) - 1 else [*self._columns, _MARK]

    def read(self, block: Block, first: int, last: int) -> dict[int, pa.Array] | None:
        """The columns of the rows from `first` to before `last`, by their fields' places; None where a row is bad."""
        with Needs("avro"):
            import polars as pl
            from polars.exceptions import PanicException, PolarsError

        start, end = int(block.starts[first]), int(block.starts[last])
        file = io.BytesIO(
            b"".join(
                (self._header, _long(last - first), _long(end - start), block.data[start:end].data, _SYNC),
            )
        )
        try:
            frame = pl.read_avro(file, columns=self._names)
            # Not the frame's own: it takes polars's pool of threads, which is not there in a process that was forked.
            columns = {column.name: column.to_arrow() for column in frame.get_columns()}
        except (PolarsError, PanicException, OSError):
            return None
        marks = columns.pop(_MARK).view(pa.uint64()).to_numpy()
        if len(marks) != last - first or not (marks == np.uint64(block.mark)).all():
            return None
        return {int(name): column for name, column in columns.items()}


def _long(value: int) -> bytes:
    """A number that is not negative, in Avro's encoding."""
    value <<= 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
