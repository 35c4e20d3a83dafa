"""Headers of the record batches (magic 2) of a segment or a response, many at a time, and index entries held against
them.

Layouts: docs/record-formats.md and docs/log-files.md. What does not fit is not judged here: the loops stop before it,
and the caller looks closer.
Columns are int64, one number a batch, all of the same length.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of
else:
    from tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of

COMPILED: bool = cython.compiled

_HEADER_SIZE = cython.declare(cython.Py_ssize_t, 61)
_PREFIX_SIZE = cython.declare(cython.Py_ssize_t, 12)
_CODECS = cython.declare(cython.int, 5)
_MAX_OFFSET = cython.declare(cython.longlong, (1 << 63) - 1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sound_size(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Bytes of the batch at `at`; 0 for one that is not whole, is of another magic, or contradicts itself."""
    size: cython.longlong
    base: cython.longlong
    delta: cython.longlong
    records: cython.longlong
    if end - at < _HEADER_SIZE:
        return 0
    size = int32_at(src, at + 8) + _PREFIX_SIZE
    if src[at + 16] != 2 or size < _HEADER_SIZE or size > end - at:
        return 0
    base = int64_at(src, at)
    delta = int32_at(src, at + 23)
    records = int32_at(src, at + 57)
    if base < 0 or delta < 0 or base > _MAX_OFFSET - delta - 1 or records < 0 or records > delta + 1:
        return 0
    if (src[at + 22] & 7) >= _CODECS:
        return 0
    return cython.cast(cython.Py_ssize_t, size)


@cython.boundscheck(False)
@cython.wraparound(False)
def scan_batches(
    data: memoryview,
    start: cython.Py_ssize_t,
    origin: cython.longlong,
    least_offset: cython.longlong,
    positions: cython.longlong[::1],
    ends: cython.longlong[::1],
    checksums: cython.longlong[::1],
    base_offsets: cython.longlong[::1],
    last_offsets: cython.longlong[::1],
    epochs: cython.longlong[::1],
    timestamps: cython.longlong[::1],
    producers: cython.longlong[::1],
) -> int:
    """Fills the columns with the batches from byte `start` of `data` on; returns how many there are.

    `data` begins at `origin` of the file, and in the columns are positions in the file.

    Ends where the columns or `data` do, and before a batch that is not whole, of another magic, that contradicts
    itself, or that begins before `least_offset` or within the offsets of the batch before it.
    """
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    count: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t = len(positions)
    at: cython.Py_ssize_t = start
    end: cython.Py_ssize_t = len(data)
    size: cython.Py_ssize_t
    base: cython.longlong
    delta: cython.longlong
    while count < room:
        size = _sound_size(src, at, end)
        if size == 0:
            break
        base = int64_at(src, at)
        if base < least_offset:
            break
        delta = int32_at(src, at + 23)
        positions[count] = origin + at
        ends[count] = origin + at + size
        checksums[count] = int32_at(src, at + 17) & 0xFFFFFFFF
        base_offsets[count] = base
        last_offsets[count] = base + delta
        epochs[count] = int32_at(src, at + 12)
        timestamps[count] = int64_at(src, at + 35)
        producers[count] = int64_at(src, at + 43)
        least_offset = base + delta + 1
        at += size
        count += 1
    return count


@cython.boundscheck(False)
@cython.wraparound(False)
def pass_batches(data: memoryview, after: cython.longlong, limit: cython.longlong) -> tuple[int, int, int]:
    """Passes the batches at the start of `data`: (position after them, records they claim, offset after them).

    Ends where `data` does, and before a batch that is not whole, of another magic, that contradicts itself, that ends
    before the offset reached, at first `after`, or that begins at `limit` or later.
    """
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    rows: cython.longlong = 0
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    size: cython.Py_ssize_t
    base: cython.longlong
    delta: cython.longlong
    while True:
        size = _sound_size(src, at, end)
        if size == 0:
            break
        base = int64_at(src, at)
        delta = int32_at(src, at + 23)
        if base >= limit or base + delta < after:
            break
        rows += int32_at(src, at + 57)
        after = base + delta + 1
        at += size
    return at, rows, after


@cython.boundscheck(False)
@cython.wraparound(False)
def follow_offset_index(
    index: bytes,
    entry: cython.Py_ssize_t,
    base_offset: cython.longlong,
    positions: cython.longlong[::1],
    last_offsets: cython.longlong[::1],
    count: cython.Py_ssize_t,
) -> int:
    """The entry after those that the `count` batches bear out, from number `entry` on; -1 where one is not borne out.

    `index` is an `.index` file: entries of int32 offset, less `base_offset`, and int32 position.
    """
    view: memoryview = memoryview(index)
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(view)
    entries: cython.Py_ssize_t = len(index) // 8
    batch: cython.Py_ssize_t
    for batch in range(count):
        if entry == entries:
            break
        if int32_at(src, 8 * entry) + base_offset > last_offsets[batch]:
            continue
        if int32_at(src, 8 * entry + 4) != positions[batch]:
            return -1
        if int32_at(src, 8 * entry) + base_offset != last_offsets[batch]:
            return -1
        entry += 1
    return entry


@cython.boundscheck(False)
@cython.wraparound(False)
def follow_time_index(
    index: bytes,
    entry: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_offsets: cython.longlong[::1],
    last_offsets: cython.longlong[::1],
    timestamps: cython.longlong[::1],
    count: cython.Py_ssize_t,
) -> int:
    """The same for a `.timeindex` file: entries of int64 timestamp and int32 offset, less `base_offset`."""
    view: memoryview = memoryview(index)
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(view)
    entries: cython.Py_ssize_t = len(index) // 12
    offset: cython.longlong
    batch: cython.Py_ssize_t
    for batch in range(count):
        if entry == entries:
            break
        offset = int32_at(src, 12 * entry + 8) + base_offset
        if offset > last_offsets[batch]:
            continue
        if offset < base_offsets[batch] or int64_at(src, 12 * entry) != timestamps[batch]:
            return -1
        entry += 1
    return entry
