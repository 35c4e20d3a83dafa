"""CRC-32C of record batches: by carry-less multiplication of 512 bits where the processor has it (AVX-512 with
VPCLMULQDQ), which takes half the time of its checksum instruction; the crc32c package's everywhere else."""

from __future__ import annotations

import cython
from crc32c import crc32c

if cython.compiled:
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER

COMPILED: bool = cython.compiled

# what the quick way must have to be quicker
_least = cython.declare(cython.Py_ssize_t, 512)
_folds = cython.declare(cython.bint, folds() if cython.compiled else False)


@cython.cfunc
@cython.exceptval(-1, check=False)
def checksum_at(data: object, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """`checksum` of the bytes of a memoryview of bytes from `start` to `end`, which are within it."""
    if cython.compiled:
        if _folds and end - start >= _least:
            return folded(cython.cast(cython.p_uchar, PyMemoryView_GET_BUFFER(data).buf) + start, end - start)
    return crc32c(data[start:end])


def checksum(data: memoryview) -> int:
    """CRC-32C (Castagnoli) of a contiguous memoryview of bytes."""
    return checksum_at(data, 0, len(data))
