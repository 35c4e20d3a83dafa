"""Bytes where they stand: their memory, and big-endian numbers in it.

Compiled, memory is a pointer; uncompiled, the same name is the memoryview itself.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER
    from cython.cimports.tagwire.kernel.memory import load32, load64

COMPILED: bool = cython.compiled


@cython.cfunc
def memory_of(view: object) -> cython.p_uchar:
    """Where the bytes of a memoryview are, which the caller keeps; nowhere for None."""
    if cython.compiled:
        return cython.NULL if view is None else cython.cast(cython.p_uchar, PyMemoryView_GET_BUFFER(view).buf)
    else:
        return view


@cython.cfunc
@cython.exceptval(check=False)
def int32_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.longlong:
    if cython.compiled:
        return load32(src + at)
    else:
        return int.from_bytes(src[at : at + 4], "big", signed=True)


@cython.cfunc
@cython.exceptval(check=False)
def int64_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.longlong:
    if cython.compiled:
        return load64(src + at)
    else:
        return int.from_bytes(src[at : at + 8], "big", signed=True)


def uncleared(size: cython.Py_ssize_t) -> bytearray:
    """A bytearray whose bytes are anything, to be written: clearing it first costs as much as filling it."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    else:
        return bytearray(size)
