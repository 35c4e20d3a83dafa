"""The hash that partitions are chosen by: 32-bit murmur2 with Kafka's seed, of one key or of a column of keys."""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled

_SEED = cython.declare(cython.uint, 0x9747B28C)
_MULTIPLIER = cython.declare(cython.uint, 0x5BD1E995)
_MASK = cython.declare(cython.uint, 0xFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    data: cython.pointer[cython.const[cython.uchar]], start: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.uint:
    """Of `size` bytes from `start` on. Masks are for the uncompiled form: C's numbers end at 32 bits."""
    h: cython.uint = _SEED ^ cython.cast(cython.uint, size)
    k: cython.uint
    at: cython.Py_ssize_t = start
    stop: cython.Py_ssize_t = start + (size & ~3)
    rest: cython.uint = 0
    while at < stop:
        k = (
            data[at]
            | (cython.cast(cython.uint, data[at + 1]) << 8)
            | (cython.cast(cython.uint, data[at + 2]) << 16)
            | (cython.cast(cython.uint, data[at + 3]) << 24)
        )
        k = (k * _MULTIPLIER) & _MASK
        k = ((k ^ (k >> 24)) * _MULTIPLIER) & _MASK
        h = ((h * _MULTIPLIER) & _MASK) ^ k
        at += 4
    if size & 3:
        while at < start + size:
            rest |= cython.cast(cython.uint, data[at]) << cython.cast(cython.uint, 8 * (at - stop))
            at += 1
        h = ((h ^ rest) * _MULTIPLIER) & _MASK
    h = ((h ^ (h >> 13)) * _MULTIPLIER) & _MASK
    return h ^ (h >> 15)


def murmur2(data: bytes) -> int:
    """The hash of one key, as an unsigned number."""
    if cython.compiled:
        return _hash(cython.cast(cython.p_uchar, cython.cast(cython.p_char, data)), 0, len(data))
    return _hash(data, 0, len(data))


@cython.boundscheck(False)
@cython.wraparound(False)
def partitions_of(
    ends: cython.const[cython.int][::1],
    data: cython.const[cython.uchar][::1],
    partitions: cython.int,
    found: cython.int[::1],
) -> None:
    """Fills `found` with the partition of each key of a column: key i is data[ends[i]:ends[i + 1]].

    There is one more end than keys. Raises ValueError for ends that contradict each other or the data.
    """
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    bad: cython.bint = False
    limit: cython.Py_ssize_t = data.shape[0]
    if ends.shape[0] != found.shape[0] + 1 or partitions < 1:
        raise ValueError("there is one end more than keys, and at least one partition")
    if cython.compiled:
        memory: cython.pointer[cython.const[cython.uchar]] = cython.address(data[0]) if limit else cython.NULL
    else:
        memory = data
    with cython.nogil:
        for row in range(found.shape[0]):
            start = ends[row]
            stop = ends[row + 1]
            if start < 0 or stop < start or stop > limit:
                bad = True
                break
            found[row] = (_hash(memory, start, stop - start) & 0x7FFFFFFF) % partitions
    if bad:
        raise ValueError("the column's ends contradict each other")
