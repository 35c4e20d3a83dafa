"""The buffers of a variable-size Arrow column that a kernel fills."""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memset
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
else:
    from tagwire.kernel.raw_bytes import memory_of

COMPILED: bool = cython.compiled

SLACK = 32
"""Bytes a column's data buffer needs beyond what it will hold: short fields are copied in whole blocks."""


@cython.cclass
class Strings:
    """The buffers of one variable-size column in Arrow's layout, filled row by row.

    valid: a bit per row, None where no row can be null. ends: int32, one more than there are rows. data: the bytes,
    with SLACK to spare; None in a list column, whose `size` counts elements, and as long as `room` is 0. All are
    memoryviews. room: how many rows there is room for. size: bytes or elements so far. nulls: rows that are null.
    """

    def __init__(self, room: int, valid: memoryview | None, ends: memoryview, data: memoryview | None) -> None:
        self.size = 0
        self.nulls = 0
        self._use(room, valid, ends, data)
        self._ends[0] = 0

    def _use(self, room: cython.Py_ssize_t, valid: object, ends: object, data: object) -> None:
        self._views = (valid, ends, data)
        self.room = room
        self._valid = memory_of(valid)
        self._data = memory_of(data)
        if cython.compiled:
            self._ends = cython.cast(cython.p_int, memory_of(ends))
            if valid is not None:
                memset(self._valid, 255, (room + 7) // 8)
        else:
            self._ends = ends
            if valid is not None:
                valid[:] = b"\xff" * len(valid)

    def move(self, room: int, valid: memoryview | None, ends: memoryview, data: memoryview | None) -> None:
        """Goes on in larger buffers, with the rows that the present ones hold; `data` is theirs, or the first."""
        old_valid, old_ends, _ = self._views
        self._use(room, valid, ends, data)
        if valid is not None:
            valid[: len(old_valid)] = old_valid
        ends[: len(old_ends)] = old_ends


@cython.cfunc
def pointers_of(column: Strings | None) -> tuple[cython.p_uchar, cython.p_int, cython.p_uchar]:
    """Where validity bits, ends and data are written; nowhere for None."""
    if cython.compiled:
        if column is None:
            return cython.NULL, cython.NULL, cython.NULL
        return column._valid, column._ends, column._data
    else:
        return (None, None, None) if column is None else (column._valid, column._ends, column._data)
