"""Columns of bytes, a piece of each row's body: numbers in Avro's binary encoding, made for all rows at once.

Source: the Avro specification, 1.11, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagwire.extras import Needs

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

_EMPTY = pa.scalar(b"", pa.binary())


def joined(pieces: Sequence[pa.Array], rows: int) -> pa.Array:
    """Each row's pieces as one; a null piece is empty."""
    if not pieces:
        return of_width(np.zeros((rows, 0), np.uint8), None)
    return pc.binary_join_element_wise(*pieces, _EMPTY, null_handling="replace", null_replacement="")


def blanked(array: pa.Array, present: Any) -> pa.Array:
    """An array that is null where a row is not present."""
    if present is None or not (np.asarray(array.is_valid()) & ~present).any():
        return array
    # Not if_else: PyArrow 18's reads a slice of texts from the wrong place.
    return array.take(pa.array(np.arange(len(array)), mask=~present))


def of_lengths(flat: Any, lengths: Any) -> pa.Array:
    """Pieces that lie one after the other in `flat`, each of its length."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(flat))]
    )


def of_width(table: Any, present: Any) -> pa.Array:
    """Pieces of one width, the rows of an array of bytes; those that are not present are empty."""
    if present is None:
        return of_lengths(table.reshape(-1), np.full(len(table), table.shape[1]))
    return of_lengths(table[present].reshape(-1), np.where(present, table.shape[1], 0))


def of_bytes(raw: bytes, rows: int, present: Any) -> pa.Array:
    """The same bytes for every row that is present."""
    lengths = np.full(rows, len(raw)) if present is None else np.where(present, len(raw), 0)
    return of_lengths(np.tile(np.frombuffer(raw, np.uint8), int(lengths.sum()) // max(len(raw), 1)), lengths)


def varints(values: Any, present: Any) -> pa.Array:
    """Signed 64-bit numbers, zigzag and of as many bytes as each needs; those that are not present are empty."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = varint_lengths(zigzag)
    if present is not None:
        lengths[~present] = 0
    width = int(lengths.max(initial=0))
    table = np.empty((len(values), width), np.uint8)
    for column in range(width):
        table[:, column] = (zigzag & np.uint64(127)) | np.uint64(128)
        zigzag = zigzag >> np.uint64(7)
    rows = np.flatnonzero(lengths)
    table[rows, lengths[rows] - 1] &= 127
    if width == 1 and len(rows) == len(values):
        return of_lengths(table.reshape(-1), lengths)
    return of_lengths(table[np.arange(width) < lengths[:, None]], lengths)


def varint_lengths(zigzag: Any) -> Any:
    """How many bytes unsigned 64-bit numbers take."""
    lengths = np.ones(len(zigzag), np.int64)
    most = int(zigzag.max(initial=0))
    limit = 128
    while most >= limit:
        lengths += zigzag >= np.uint64(limit)
        limit <<= 7
    return lengths
