"""Which leaders appended the record batches (magic 2) of a response. Layout: docs/record-formats.md#record-batches."""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
@cython.exceptval(check=False)
def _number(src: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    """A big-endian number of `size` bytes, without a sign."""
    if not cython.compiled:
        return int.from_bytes(src[at : at + size], "big")
    number: cython.longlong = 0
    index: cython.Py_ssize_t
    for index in range(at, at + size):
        number = (number << 8) | src[index]
    return number


def leader_epochs(data: memoryview, end: cython.Py_ssize_t) -> list[tuple[int, int]]:
    """(partition leader epoch, offset after them) of each run of batches with the same epoch, up to `end` of `data`,
    where `pass_batches` found them sound."""
    src: cython.const[cython.uchar][::1] = data
    at: cython.Py_ssize_t = 0
    epoch: cython.longlong = 0
    after: cython.longlong = -1
    found: cython.longlong
    runs: list = []
    while at < end:
        found = _number(src, at + 12, 4)
        if found != epoch and after >= 0:
            runs.append((epoch if epoch < 1 << 31 else -1, after))
        epoch = found
        after = _number(src, at, 8) + _number(src, at + 23, 4) + 1
        at += 12 + cython.cast(cython.Py_ssize_t, _number(src, at + 8, 4))
    if after >= 0:
        runs.append((epoch if epoch < 1 << 31 else -1, after))
    return runs
