"""Runs of plain batches (magic 2), which the records kernel reads without more ado.

Layout: docs/record-formats.md#record-batches.

A plain batch needs nothing but its header and its records: uncompressed, without control records, its header in
agreement with itself. Every other batch, a faulty one too, ends a run and is left to the caller.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of
else:
    from tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of

COMPILED: bool = cython.compiled

_max_offset = cython.declare(cython.longlong, (1 << 63) - 1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_size(
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    transactional: cython.bint,
) -> cython.Py_ssize_t:
    """Bytes of the batch at `at` if it is plain, else 0; with `transactional` one of a transaction may be."""
    length: cython.longlong
    base: cython.longlong
    last_delta: cython.longlong
    count: cython.longlong
    if end - at < 61 or src[at + 16] != 2:
        return 0
    length = int32_at(src, at + 8)
    if length < 49 or length > end - at - 12:
        return 0
    if src[at + 22] & 0x27 or (src[at + 22] & 0x10 and not transactional):
        return 0
    base = int64_at(src, at)
    last_delta = int32_at(src, at + 23)
    count = int32_at(src, at + 57)
    if base < 0 or last_delta < 0 or base > _max_offset - last_delta - 1:
        return 0
    if count < 0 or count > last_delta + 1 or count * 7 > length - 49:
        return 0
    return cython.cast(cython.Py_ssize_t, length) + 12


def plain_run(
    data: memoryview,
    at: cython.Py_ssize_t,
    transactional: cython.bint,
    first: cython.longlong,
    limit: cython.longlong,
    max_rows: cython.longlong,
    max_bytes: cython.longlong,
    room: cython.longlong,
) -> tuple[int, int, int, int]:
    """The plain batches of `data` from `at` on: (position after them, records, their bytes, offset after them).

    Only batches with offsets in first..limit-1 count. The run ends with the batch that brings it to `max_rows` records
    or `max_bytes` bytes, and before one that would bring it over `room` bytes.
    """
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    end: cython.Py_ssize_t = len(data)
    rows: cython.longlong = 0
    used: cython.longlong = 0
    after: cython.longlong = -1
    base: cython.longlong
    size: cython.Py_ssize_t
    while rows < max_rows and used < max_bytes:
        size = _plain_size(src, at, end, transactional)
        if size == 0:
            break
        base = int64_at(src, at)
        if base < limit and base + int32_at(src, at + 23) >= first:
            if used + size - 61 > room:
                break
            rows += int32_at(src, at + 57)
            used += size - 61
        after = base + int32_at(src, at + 23) + 1
        at += size
    return at, rows, used, after
