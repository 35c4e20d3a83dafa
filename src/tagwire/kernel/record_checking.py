"""Whether the bytes of a batch (magic 2) are records as they should be: all of them, before the first one is made.

Layout and checks are those of the records kernel.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
    from cython.cimports.tagwire.kernel.records import cause, header_at, record_at
else:
    from tagwire.kernel.raw_bytes import memory_of
    from tagwire.kernel.records import cause, header_at, record_at

from tagwire.kernel.records import fault

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _past_short(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, stop: cython.longlong
) -> cython.Py_ssize_t:
    """The position after a sound header whose key and value are shorter than 64 bytes, as nearly all are; 0 for any
    other, which `header_at` judges: its call would cost more than the check."""
    if at < stop and src[at] & 129 == 0:
        at += 1 + (src[at] >> 1)
        if at < stop and src[at] & 129 == 0:
            at += 1 + (src[at] >> 1)
            if at <= stop:
                return at
    return 0


def check(
    payload: memoryview,
    count: cython.longlong,
    origin: cython.Py_ssize_t,
    base_offset: cython.longlong,
    last_delta: cython.longlong,
) -> None:
    """Raises CorruptRecordError unless `payload` is `count` records as they should be, and nothing else."""
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(payload)
    end: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = 0
    index: cython.longlong
    after: cython.longlong = -1
    code: cython.int = 0
    past: cython.Py_ssize_t
    stop: cython.longlong
    delta: cython.longlong
    headers: cython.longlong
    name: cython.longlong
    short: cython.Py_ssize_t
    _header: cython.longlong
    for index in range(count):
        code, past, stop, _, delta, _, _, _, _, headers = record_at(src, at, end)
        if code:
            raise fault(code, stop, base_offset, index, origin + past)
        if delta <= after or delta > last_delta:
            raise fault(cause(10, delta), delta, base_offset, index, origin + at)
        after = delta
        for _header in range(headers):
            short = _past_short(src, past, stop)
            if short:
                past = short
                continue
            code, past, _, name, _, _ = header_at(src, past, cython.cast(cython.Py_ssize_t, stop))
            if code:
                raise fault(code, name, base_offset, index, origin + past)
        # never after it; put so, the compiler takes the next record's start from the length, not from these fields
        if past < stop:
            raise fault(9, stop - past, base_offset, index, origin + past)
        at = cython.cast(cython.Py_ssize_t, stop)
    if at != end:
        raise fault(11, end - at, base_offset, count, origin + at)
