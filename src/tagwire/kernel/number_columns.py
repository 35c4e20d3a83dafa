"""Columns of int64 that a kernel fills and anybody reads: memory of fixed size, as a memoryview and as a pointer."""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
else:
    from tagwire.kernel.raw_bytes import memory_of

COMPILED: bool = cython.compiled


def number_column(room: int) -> memoryview:
    """A column of `room` zeros."""
    return memoryview(bytearray(8 * room)).cast("q")


@cython.cfunc
def numbers_of(view: object) -> cython.p_longlong:
    """Where the numbers of a column are, which the caller keeps."""
    if cython.compiled:
        return cython.cast(cython.p_longlong, memory_of(view))
    else:
        return view
