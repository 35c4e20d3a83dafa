"""Bodies read a block at a time, for schemas whose types the block reader has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tagwire.extras import Needs
from tagwire.values.avro.arrow_types import MAX_LEVELS
from tagwire.values.avro.block_reader import Block, BlockReader
from tagwire.values.avro.flat_reader import FlatReader
from tagwire.values.avro.resolution import Plan
from tagwire.values.avro.wire_check import WireCheck
from tagwire.values.avro.wire_columns import FieldShape, Shape, record_column, record_shapes, shape_of
from tagwire.values.avro.wire_types import Wire, wire_type

with Needs("avro"):
    import numpy as np
    import pyarrow as pa

Read = tuple[pa.Array, Any]
"""Values of the reader's type, and which bodies are bad."""

OneByOne = Callable[[pa.Array], Read]

FEW: Final = 96
"""Rows that are not worth a block: reading them one by one takes as long."""

_FAILURES: Final = 128
"""Parts of a block that may fail, until the rest of it is read one by one: about 20 bad rows that lie apart."""


@dataclass(slots=True)
class _Attempts:
    """How many more parts may fail."""

    left: int = _FAILURES


class ColumnReader:
    """Reads bodies by a plan.

    Args:
        plan: where it reads a record as a record, `record` are the shapes of its fields; otherwise `shape` is its own.
        wire: the record that is read: the writer's, or one of a single field that is of the writer's type.
    """

    def __init__(self, plan: Plan, wire: Wire, record: list[FieldShape] | None, shape: Shape | None) -> None:
        self._plan = plan
        self._record = record
        self._shape = shape
        wanted = {place for _, place, _ in record} if record is not None else {0}
        walked = max((place for place in wanted if wire.fields[place].checked), default=-1)
        # What stands before a byte that is checked has to be known for its place; what is skipped must not be a
        # list, of which polars believes what it says of its bytes.
        read = [place for place, each in enumerate(wire.fields) if place in wanted or place <= walked or each.lists]
        self._whole = walked >= 0 and len(read) == len(wire.fields)
        self._walked = wire.fields if self._whole else wire.fields[: walked + 1]
        self._blocks = BlockReader(wire, read)
        self._flat = FlatReader.of(wire, sorted(wanted))

    @staticmethod
    def of(plan: Plan) -> ColumnReader | None:
        """What reads by a plan; None where its schema takes one body at a time."""
        wire = wire_type(plan.writer)
        if wire is None or wire.levels > MAX_LEVELS:
            return None
        if wire.kind == "record" and plan.reader.kind == "record":
            shapes = record_shapes(plan, wire)
            return None if shapes is None else ColumnReader(plan, wire, shapes, None)
        shape = shape_of(plan, wire)
        top = Wire("record", plan.writer, fields=(wire,), checked=wire.checked, lists=wire.lists)
        return None if shape is None else ColumnReader(plan, top, None, shape)

    def read(self, bodies: pa.Array, one_by_one: OneByOne) -> list[Read]:
        """The values of bodies of which none is null, in pieces."""
        if self._flat is not None:
            columns, suspect = self._flat.read(bodies)
            return [self._judged(columns, suspect, bodies, one_by_one)]
        pieces: list[Read] = []
        self._halves(Block(bodies), bodies, 0, len(bodies), one_by_one, _Attempts(), pieces)
        return pieces

    def _halves(
        self,
        block: Block,
        bodies: pa.Array,
        first: int,
        last: int,
        one_by_one: OneByOne,
        attempts: _Attempts,
        pieces: list[Read],
    ) -> None:
        if last - first < FEW or not attempts.left:
            pieces.append(one_by_one(bodies.slice(first, last - first)))
            return
        columns = self._blocks.read(block, first, last)
        if columns is not None:
            pieces.append(self._shaped(block, columns, bodies, first, last, one_by_one))
            return
        attempts.left -= 1
        middle = (first + last) // 2
        self._halves(block, bodies, first, middle, one_by_one, attempts, pieces)
        self._halves(block, bodies, middle, last, one_by_one, attempts, pieces)

    def _shaped(
        self, block: Block, columns: dict[int, pa.Array], bodies: pa.Array, first: int, last: int, one_by_one: OneByOne
    ) -> Read:
        odd = self._odd(block, columns, first, last)
        return self._judged(columns, odd, bodies.slice(first, last - first), one_by_one)

    def _judged(self, columns: dict[int, pa.Array], odd: Any, bodies: pa.Array, one_by_one: OneByOne) -> Read:
        """The values of the columns that were read; rows that are odd, or become so, are read once more."""
        rows = len(bodies)
        if self._record is not None:
            values, suspect = record_column(self._plan, self._record, columns, rows)
        else:
            assert self._shape is not None
            values, suspect = self._shape(columns.get(0), rows)
        if odd is not None:
            suspect = odd if suspect is None else odd | suspect
        bad = np.zeros(rows, bool)
        if suspect is None or not suspect.any():
            return values, bad
        places = np.flatnonzero(suspect)
        again, wrong = one_by_one(bodies.take(pa.array(places)))
        bad[places] = wrong
        order = np.arange(rows)
        order[places] = rows + np.arange(len(places))
        return pa.concat_arrays([values, again]).take(pa.array(order)), bad

    def _odd(self, block: Block, columns: dict[int, pa.Array], first: int, last: int) -> Any:
        """Which rows have bytes that are not what they were read as."""
        if not self._walked:
            return None
        check = WireCheck(block.data, last - first)
        at = block.starts[first:last]
        for place, each in enumerate(self._walked):
            at = check.walk(each, columns.get(place), at)
        if self._whole:
            check.suspect |= at != block.starts[first + 1 : last + 1] - Block.MARK
        return check.suspect
