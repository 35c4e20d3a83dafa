"""Bytes of a block that its reader does not look at closely: which type of a union it is, and booleans.

Where they stand is worked out from the values, as canonical encodings of them have one length. A row that
does not add up is suspect: it is read again, by itself.
"""

from __future__ import annotations

from typing import Any

from tagwire.extras import Needs
from tagwire.values.avro.binary_pieces import varint_lengths
from tagwire.values.avro.wire_types import Wire

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

_WIDTHS = {"boolean": 1, "float": 4, "double": 8}


class WireCheck:
    """A walk along the rows of a block.

    Attributes:
        suspect: at each row of the array that is walked along, whether a byte is not what it was read as.
    """

    def __init__(self, data: Any, rows: int) -> None:
        self._data = data
        self.suspect = np.zeros(rows, bool)

    def walk(self, wire: Wire, array: pa.Array | None, at: Any) -> Any:
        """Where the values of a column end that begin at `at`; of null rows at the same place. None is of nothing."""
        if wire.kind == "nothing" or array is None:
            return at
        if wire.kind in ("record", "tagged"):
            columns = iter(array.flatten())
            for each in wire.fields:
                at = self.walk(each, None if each.kind == "nothing" else next(columns), at)
            return at
        valid = np.asarray(array.is_valid()) if array.null_count else None
        if wire.kind == "nullable":
            return self._nullable(wire, array, at, valid)
        if wire.kind == "boolean":
            self._expect(at, pc.fill_null(array, False).cast(pa.uint8()).to_numpy(), valid)
        if wire.kind == "list":
            return self._list(wire, array, at, valid)
        sizes = _sizes(wire, array)
        return at + (sizes if valid is None else np.where(valid, sizes, 0))

    def _nullable(self, wire: Wire, array: pa.Array, at: Any, valid: Any) -> Any:
        # Rows that are null because what they are in is null have no byte here: the one above walks only along its own.
        some, none = (2, 0) if wire.null_first else (0, 2)
        self._expect(at, some if valid is None else np.where(valid, some, none).astype(np.uint8), None)
        if valid is None or wire.inner.kind == "nothing":
            return self.walk(wire.inner, array, at + 1)
        rows = np.flatnonzero(valid)
        inner = WireCheck(self._data, len(rows))
        ends = at + 1
        ends[rows] = inner.walk(wire.inner, array.filter(pa.array(valid)), ends[rows])
        self.suspect[rows[inner.suspect]] = True
        return ends

    def _list(self, wire: Wire, array: pa.Array, at: Any, valid: Any) -> Any:
        offsets = np.asarray(array.offsets).astype(np.int64)
        counts = np.diff(offsets)
        start = int(offsets[0])
        items = array.values.slice(start, int(offsets[-1]) - start)
        offsets = offsets - start
        unseen = WireCheck(None, len(items))
        sizes = unseen.walk(wire.inner, items, np.zeros(len(items), np.int64))
        before = np.concatenate(([0], np.cumsum(sizes)))
        total = before[offsets[1:]] - before[offsets[:-1]]
        # A block may begin with its count below zero and its size.
        sized = (counts > 0) & (self._bytes(at) & 1 == 1) if self._data is not None else np.zeros(len(counts), bool)
        heads = np.where(counts > 0, varint_lengths((counts * 2 - sized).astype(np.uint64)), 0)
        heads += np.where(sized, varint_lengths((total * 2).astype(np.uint64)), 0)
        if wire.inner.checked and self._data is not None:
            inner = WireCheck(self._data, len(items))
            first = np.repeat(at + heads - before[offsets[:-1]], counts)
            inner.walk(wire.inner, items, first + before[:-1])
            if inner.suspect.any():
                self.suspect[np.searchsorted(offsets, np.flatnonzero(inner.suspect), side="right") - 1] = True
        ends = at + heads + total + 1
        return ends if valid is None else np.where(valid, ends, at)

    def _bytes(self, at: Any) -> Any:
        return self._data[np.minimum(at, len(self._data) - 1)]

    def _expect(self, at: Any, byte: Any, valid: Any) -> None:
        if self._data is None:
            return
        wrong = self._bytes(at) != byte
        self.suspect |= wrong if valid is None else wrong & valid


def _sizes(wire: Wire, array: pa.Array) -> Any:
    """Bytes of values that are not null, whatever the others'."""
    if wire.kind == "long":
        values = pc.fill_null(array, 0).to_numpy()
        return varint_lengths(((values << 1) ^ (values >> 63)).view(np.uint64))
    if wire.kind in ("string", "bytes"):
        lengths = np.asarray(pc.fill_null(pc.binary_length(array), 0)).astype(np.int64)
        return lengths + varint_lengths((lengths << 1).view(np.uint64))
    return wire.node.size if wire.kind == "fixed" else _WIDTHS[wire.kind]
