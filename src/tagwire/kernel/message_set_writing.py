"""Records of a batch (magic 2) made into messages of a message set: the way back from the message sets kernel.

Layouts: docs/record-formats.md#message-sets, docs/dialects.md#int-header-keys. The records come from a writer of
records, so they are whole.

Compiled, buffers are read and written through pointers; uncompiled, the same names are the memoryviews themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.tagwire.kernel.memory import store32, store64
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
    from cython.cimports.tagwire.kernel.records import header_at, record_at, shifted
else:
    from tagwire.kernel.raw_bytes import memory_of
    from tagwire.kernel.records import header_at, record_at, shifted

from tagwire.kernel.raw_bytes import uncleared

COMPILED: bool = cython.compiled

MESSAGE_OVERHEAD = 34
"""Most bytes a message takes beyond its key, headers and value: prefix, checksum, fixed fields and two lengths."""

HeadersOf = Callable[[int, list[tuple[bytes, bytes | None]]], bytes]
"""How the headers of the record with this index are written."""

_overhead = cython.declare(cython.Py_ssize_t, MESSAGE_OVERHEAD)
_has_headers = cython.declare(cython.int, 0x10)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_number(
    out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong, size: cython.int
) -> cython.Py_ssize_t:
    """Writes an int32 or int64; returns the position after it."""
    if cython.compiled:
        if size == 8:
            store64(cython.cast(cython.p_char, out) + at, value)
        else:
            store32(cython.cast(cython.p_char, out) + at, value)
    else:
        out[at : at + size] = value.to_bytes(size, "big", signed=True)
    return at + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_bytes(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    src: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    size: cython.longlong,
) -> cython.Py_ssize_t:
    """Writes `size` and as many bytes from `start`, none for -1; returns the position after them."""
    at = _put_number(out, at, size, 4)
    if size <= 0:
        return at
    if cython.compiled:
        memcpy(out + at, src + start, size)
    else:
        out[at : at + size] = src[start : start + size]
    return at + cython.cast(cython.Py_ssize_t, size)


def messages_of(
    payload: memoryview,
    count: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    append_timestamp: cython.longlong,
    appended: cython.bint,
    magic: cython.int,
    attributes: cython.int,
    most_bytes: cython.longlong,
    ready: list[bytes] | None,
    headers_of: HeadersOf | None,
) -> tuple[bytearray, int, int, int]:
    """`count` records as messages: (messages, how many there are, offset of the last, greatest timestamp among them).

    Record deltas are added to `base_offset` and `base_timestamp`; where `appended`, each has `append_timestamp`. As
    many as make no more than `most_bytes` bytes, but one in any case. The headers of each are written in `ready`, or
    by `headers_of` where a record has any. Raises what `headers_of` raises.
    """
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(payload)
    end: cython.Py_ssize_t = len(payload)
    messages: bytearray = uncleared(end + _overhead * count)
    view: memoryview = memoryview(messages)
    out: cython.p_uchar = memory_of(view)
    index: cython.longlong
    at: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    size: cython.longlong
    past: cython.Py_ssize_t
    stop: cython.longlong
    time: cython.longlong
    delta: cython.longlong
    key_at: cython.Py_ssize_t
    key: cython.longlong
    value_at: cython.Py_ssize_t
    value: cython.longlong
    headers: cython.longlong
    last: cython.longlong = -1
    greatest: cython.longlong = -1
    made: cython.longlong = 0
    written: bytes
    for index in range(count):
        _, past, stop, time, delta, key_at, key, value_at, value, headers = record_at(src, at, end)
        time = append_timestamp if appended else shifted(base_timestamp, time)
        if ready is not None:
            written = ready[index]
        elif headers:
            written = headers_of(index, _pairs(src, past, cython.cast(cython.Py_ssize_t, stop), headers))
        else:
            written = b""
        size = _overhead - (0 if magic else 8) + len(written) + (key if key > 0 else 0) + (value if value > 0 else 0)
        if index and to + size > most_bytes:
            break
        start = to
        if to + size > len(view):  # headers that are ready were not among the records
            view.release()
            messages.extend(bytes(to + size))
            view = memoryview(messages)
            out = memory_of(view)
        to = _put_number(out, to, base_offset + delta, 8)
        to = _put_number(out, to, size - 12, 4)
        to += 4
        out[to] = magic
        out[to + 1] = attributes | (_has_headers if written else 0)
        to += 2
        if magic:
            to = _put_number(out, to, time, 8)
        to = _put_bytes(out, to, src, key_at, key)
        if written:
            view[to : to + len(written)] = written
            to += len(written)
        to = _put_bytes(out, to, src, value_at, value)
        size = zlib.crc32(view[start + 16 : to])
        _put_number(out, start + 12, size - 4294967296 if size > 2147483647 else size, 4)
        last = base_offset + delta
        greatest = max(greatest, time) if made else time
        made += 1
        at = cython.cast(cython.Py_ssize_t, stop)
    view.release()
    del messages[to:]
    return messages, made, last, greatest


@cython.cfunc
def _pairs(
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    count: cython.longlong,
) -> list:
    """The headers between `at` and `stop`: key and value of each, as bytes or None."""
    name_at: cython.Py_ssize_t
    name: cython.longlong
    data_at: cython.Py_ssize_t
    data: cython.longlong
    _header: cython.longlong
    found: list = []
    for _header in range(count):
        _, at, name_at, name, data_at, data = header_at(src, at, stop)
        found.append((_cut(src, name_at, name), _cut(src, data_at, data)))
    return found


@cython.cfunc
def _cut(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> object:
    if size < 0:
        return None
    if cython.compiled:
        return cython.cast(cython.p_char, src)[at : at + size]
    else:
        return bytes(src[at : at + size])
