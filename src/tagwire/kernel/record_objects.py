"""Records of a batch (magic 2), from bytes to objects; layout and checks are those of the records kernel."""

from __future__ import annotations

import re
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.memory import (
        PyUnicode_DecodeUTF8,
        new_untracked,
        slot_offset,
        slot_write,
        untrack,
    )
    from cython.cimports.tagwire.kernel.records import cause, header_at, record_at, shifted
else:
    from tagwire.kernel.records import cause, header_at, record_at, shifted

from tagwire.kernel.records import fault

COMPILED: bool = cython.compiled

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def text(data: bytes) -> str:
    """UTF-8 with U+FFFD for each malformed sequence, as Java counts them: an encoded surrogate is one, not three."""
    return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


@cython.cfunc
@cython.inline
def _bytes_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> object:
    """The `size` bytes at `at`; None for -1."""
    if size < 0:
        return None
    if cython.compiled:
        return src[at : at + size]
    else:
        return bytes(src[at : at + size])


@cython.cfunc
@cython.inline
def _text_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> object:
    try:
        if cython.compiled:
            return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, src + at), size, cython.NULL)
        else:
            return str(src[at : at + size], "utf-8")
    except UnicodeDecodeError:
        return text(_bytes_at(src, at, size))


@cython.boundscheck(False)
@cython.wraparound(False)
def objects(
    payload: cython.const[cython.uchar][::1],
    count: cython.longlong,
    origin: cython.Py_ssize_t,
    base_offset: cython.longlong,
    last_delta: cython.longlong,
    base_timestamp: cython.longlong,
    append_timestamp: cython.longlong,
    appended: cython.bint,
    kind: type,
) -> list[Any]:
    """Every record of a payload as a `kind`, in order; all of them, or CorruptRecordError.

    `kind` has exactly the slots key, value, headers, timestamp and offset and takes them in this order. headers is a
    tuple of (str, bytes or None). With `appended` every record's timestamp is `append_timestamp`. The objects are left
    out of the garbage collector's lists: what they hold cannot form a cycle.
    """
    src: cython.pointer[cython.const[cython.uchar]]
    if cython.compiled:
        src = cython.address(payload[0])
        key_slot: cython.Py_ssize_t = slot_offset(kind.key)
        value_slot: cython.Py_ssize_t = slot_offset(kind.value)
        headers_slot: cython.Py_ssize_t = slot_offset(kind.headers)
        timestamp_slot: cython.Py_ssize_t = slot_offset(kind.timestamp)
        offset_slot: cython.Py_ssize_t = slot_offset(kind.offset)
    else:
        src = payload
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = payload.shape[0]
    index: cython.longlong
    after: cython.longlong = -1
    code: cython.int
    past: cython.Py_ssize_t
    stop: cython.longlong
    time: cython.longlong
    delta: cython.longlong
    key_at: cython.Py_ssize_t
    key: cython.longlong
    value_at: cython.Py_ssize_t
    value: cython.longlong
    headers: cython.longlong
    name_at: cython.Py_ssize_t
    name: cython.longlong
    data_at: cython.Py_ssize_t
    data: cython.longlong
    _header: cython.longlong
    none: tuple = ()
    made: list = []
    for index in range(count):
        code, past, stop, time, delta, key_at, key, value_at, value, headers = record_at(src, at, end)
        if code:
            raise fault(code, stop, base_offset, index, origin + past)
        if delta <= after or delta > last_delta:
            raise fault(cause(10, delta), delta, base_offset, index, origin + at)
        after = delta
        pairs = none
        if headers:
            found: list = []
            for _header in range(headers):
                code, past, name_at, name, data_at, data = header_at(src, past, cython.cast(cython.Py_ssize_t, stop))
                if code:
                    raise fault(code, name, base_offset, index, origin + past)
                pair = (_text_at(src, name_at, name), _bytes_at(src, data_at, data))
                if cython.compiled:
                    untrack(pair)
                found.append(pair)
            pairs = tuple(found)
            if cython.compiled:
                untrack(pairs)
        if past != stop:
            raise fault(9, stop - past, base_offset, index, origin + past)
        at = past
        time = append_timestamp if appended else shifted(base_timestamp, time)
        if cython.compiled:
            record = new_untracked(kind)
            slot_write(record, key_slot, _bytes_at(src, key_at, key))
            slot_write(record, value_slot, _bytes_at(src, value_at, value))
            slot_write(record, headers_slot, pairs)
            slot_write(record, timestamp_slot, time)
            slot_write(record, offset_slot, base_offset + delta)
        else:
            record = kind(
                _bytes_at(src, key_at, key), _bytes_at(src, value_at, value), pairs, time, base_offset + delta
            )
        made.append(record)
    if at != end:
        raise fault(11, end - at, base_offset, count, origin + at)
    return made
