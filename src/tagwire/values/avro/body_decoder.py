"""Bodies of one writer's schema as Arrow values of the reader's: blocks where the schema allows, else one by one."""

from __future__ import annotations

from typing import Any, Final

from tagwire.extras import Needs
from tagwire.values.avro.body_reader import BadBody, reader_of
from tagwire.values.avro.column_reader import FEW, ColumnReader, Read
from tagwire.values.avro.resolution import Plan

with Needs("avro"):
    import numpy as np
    import pyarrow as pa

_BLOCK_ROWS: Final = 1 << 15
_BLOCK_BYTES: Final = 1 << 24
"""How much is read as one block."""


class AvroDecoder:
    """Bodies that one writer's schema wrote, as Arrow values of the reader's type."""

    def __init__(self, plan: Plan, kept: pa.DataType) -> None:
        self._type = kept
        self._read = reader_of(plan)
        self._columns = ColumnReader.of(plan)

    @property
    def reads_blocks(self) -> bool:
        """Whether the writer's schema is one whose bodies are read many at once."""
        return self._columns is not None

    def decode(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        """An array of the reader's type, and a boolean one of the bodies that are bad. Bad ones and nulls are null."""
        if bodies.type != pa.binary():
            bodies = bodies.cast(pa.binary())
        present = bodies.drop_null() if bodies.null_count else bodies
        pieces: list[Read] = []
        if self._columns is not None and len(present) >= FEW:
            for piece in _blocks(present):
                pieces += self._columns.read(piece, self._one_by_one)
        else:
            pieces.append(self._one_by_one(present))
        values = pieces[0][0] if len(pieces) == 1 else pa.concat_arrays([values for values, _ in pieces])
        bad = np.concatenate([bad for _, bad in pieces])
        if bodies.null_count:
            valid = np.asarray(bodies.is_valid())
            values = values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
            wrong = np.zeros(len(bodies), bool)
            wrong[valid] = bad
            bad = wrong
        return values, pa.array(bad)

    def refusal(self, body: bytes) -> str:
        """Why a body is bad, in one line."""
        try:
            self._read(body)
        except BadBody as error:
            return str(error)
        return "the body can be read"

    def _one_by_one(self, bodies: pa.Array) -> Read:
        bad = np.zeros(len(bodies), bool)
        values: list[Any] = []
        for row, body in enumerate(bodies.to_pylist()):
            value = None
            try:
                value = self._read(body)
            except BadBody:
                bad[row] = True
            values.append(value)
        return pa.array(values, self._type), bad


def _blocks(bodies: pa.Array) -> list[pa.Array]:
    """Runs of rows that are not more than a block should have, or are one row."""
    whole = np.frombuffer(bodies.buffers()[1], np.int32)
    ends = whole[bodies.offset : bodies.offset + len(bodies) + 1]
    runs = []
    start = 0
    while start < len(bodies):
        most = int(np.searchsorted(ends, int(ends[start]) + _BLOCK_BYTES, side="right")) - 1
        stop = max(start + 1, min(start + _BLOCK_ROWS, most, len(bodies)))
        runs.append(bodies.slice(start, stop - start))
        start = stop
    return runs
