"""CRC-32C of record batches: by carry-less multiplication of 512 bits where the processor has it (AVX-512 with
VPCLMULQDQ), which takes half the time of its checksum instruction; the crc32c package's everywhere else, which is
imported when it is first needed: what it imports takes longer than the rest of this room. Where there is no such
package, as in a browser, a byte at a time."""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER

COMPILED: bool = cython.compiled

_folds = cython.declare(cython.bint, folds() if cython.compiled else False)
_package: Any = None
_table: list[int] = []


@cython.cfunc
@cython.exceptval(-1, check=False)
def checksum_at(data: object, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """`checksum` of the bytes of a memoryview of bytes from `start` to `end`, which are within it."""
    if cython.compiled:
        if _folds:
            return folded(cython.cast(cython.p_uchar, PyMemoryView_GET_BUFFER(data).buf) + start, end - start, 0)
    return _of_package(data[start:end], 0)


def _of_package(data: object, before: int) -> int:
    global _package
    if _package is None:
        try:
            from crc32c import crc32c
        except ModuleNotFoundError:
            _package = checksum_by_table
        else:
            _package = crc32c
    return _package(data, before)


def checksum_by_table(data: bytes | bytearray | memoryview, before: cython.uint = 0) -> int:
    """`checksum` without a package or an instruction for it: much slower, and the same."""
    global _table
    if not _table:
        _table = [_divided(byte) for byte in range(256)]
    table: list = _table
    found: cython.uint = before ^ 0xFFFFFFFF
    byte: cython.uint
    for byte in memoryview(data).cast("B"):
        found = table[(found ^ byte) & 0xFF] ^ (found >> 8)
    return found ^ 0xFFFFFFFF


def _divided(byte: int) -> int:
    """The remainder of one byte by Castagnoli's polynomial, bits reversed."""
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


def checksum(data: bytes | bytearray | memoryview, before: cython.uint = 0) -> int:
    """CRC-32C (Castagnoli) of contiguous bytes; of bytes that follow others, whose checksum is `before`."""
    if cython.compiled:
        if _folds:
            view = memoryview(data)
            return folded(cython.cast(cython.p_uchar, PyMemoryView_GET_BUFFER(view).buf), len(view), before)
    return _of_package(data, before)


def wrong_checksums(
    data: memoryview,
    origin: cython.longlong,
    checked_from: cython.longlong,
    positions: cython.longlong[::1],
    ends: cython.longlong[::1],
    stated: cython.longlong[::1],
    count: cython.Py_ssize_t,
) -> list[int]:
    """The numbers of the first `count` batches whose checksum is not the stated one.

    Positions and ends are counted from `origin` before `data`; a checksum counts from `checked_from` of its batch on.
    """
    number: cython.Py_ssize_t
    found: list = []
    for number in range(count):
        if (
            checksum_at(data, positions[number] + checked_from - origin, ends[number] - origin)
            != stated[number] & 0xFFFFFFFF
        ):
            found.append(number)
    return found
