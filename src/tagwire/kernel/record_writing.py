"""Records of a batch (magic 2), from objects to bytes. Layout: facts 5.3, as in the records kernel.

Compiled, buffers are written through pointers; uncompiled, the same names are the memoryviews themselves.
"""

from __future__ import annotations

from typing import Any

import cython

from tagwire.errors import EncodeError

if cython.compiled:
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

RECORD_OVERHEAD = 36
"""Most bytes a record takes beyond its key, value and headers: five 5-byte varints, a 10-byte one, attributes."""

HEADER_OVERHEAD = 10
"""Most bytes a header takes beyond its key and value: two 5-byte varints."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(value: cython.longlong) -> cython.ulonglong:
    if cython.compiled:
        return (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        return (value << 1) ^ (value >> 63)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size(value: cython.longlong) -> cython.Py_ssize_t:
    """Bytes of `value` as a zigzag varint."""
    raw: cython.ulonglong = _zigzag(value)
    size: cython.Py_ssize_t = 1
    while raw > 127:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(out: cython.p_uchar, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Writes `value` as a zigzag varint; returns the position after it."""
    raw: cython.ulonglong = _zigzag(value)
    while raw > 127:
        out[at] = (raw & 127) | 128
        raw >>= 7
        at += 1
    out[at] = raw
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _elapsed(base: cython.longlong, time: cython.longlong) -> cython.longlong:
    """time - base, wrapping as Java's long does."""
    if cython.compiled:
        return cython.cast(cython.longlong, cython.cast(cython.ulonglong, time) - cython.cast(cython.ulonglong, base))
    else:
        return (time - base + (1 << 63)) % (1 << 64) - (1 << 63)


@cython.cfunc
@cython.inline
def _put_bytes(out: cython.p_uchar, at: cython.Py_ssize_t, data: object) -> cython.Py_ssize_t:
    """Writes the length of bytes and the bytes, or -1 for None."""
    if data is None:
        return _put(out, at, -1)
    size: cython.Py_ssize_t = len(cython.cast(bytes, data))
    at = _put(out, at, size)
    if cython.compiled:
        memcpy(out + at, cython.cast(cython.p_char, data), size)
    else:
        out[at : at + size] = data
    return at + size


@cython.cfunc
@cython.inline
def _bytes_size(data: object) -> cython.Py_ssize_t:
    if data is None:
        return 1
    size: cython.Py_ssize_t = len(cython.cast(bytes, data))
    return _size(size) + size


def _as_bytes(data: object, index: int, what: str) -> bytes:
    try:
        return bytes(memoryview(data).cast("B"))
    except TypeError:
        raise EncodeError(f"record {index}: {what} is {type(data).__name__}, not bytes or None") from None


def _as_key(key: object, index: int) -> bytes:
    if not isinstance(key, str):
        raise EncodeError(f"record {index}: header key is {type(key).__name__}, not str")
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"record {index}: header key {key!r} is not valid text: {error.reason}") from None


def encode(records: list[Any]) -> tuple[bytearray, int, int]:
    """Records as a payload: (bytes, timestamp of the first record, greatest timestamp). At least one record.

    A record has key, value (bytes-like or None), headers (pairs of str and bytes-like or None) and timestamp (ms, -1
    for none). Offset deltas are 0, 1, 2, ... Raises EncodeError naming the record whose field cannot be written.
    """
    index: cython.Py_ssize_t
    timestamp: cython.longlong
    base: cython.longlong = 0
    greatest: cython.longlong = -1
    room: cython.Py_ssize_t = 0
    # key, value, header key, header value, header key, ... of every record, as bytes or None
    parts: list[object] = []
    shapes: list[tuple[int, int]] = []
    for index, record in enumerate(records):
        key = record.key
        value = record.value
        if key is not None:
            if type(key) is not bytes:
                key = _as_bytes(key, index, "key")
            room += len(cython.cast(bytes, key))
        if value is not None:
            if type(value) is not bytes:
                value = _as_bytes(value, index, "value")
            room += len(cython.cast(bytes, value))
        parts.append(key)
        parts.append(value)
        headers = record.headers
        if headers:
            for pair in headers:
                try:
                    name, data = pair
                except (TypeError, ValueError):
                    raise EncodeError(f"record {index}: header {pair!r} is not a (key, value) pair") from None
                name = _as_key(name, index)
                if data is not None:
                    if type(data) is not bytes:
                        data = _as_bytes(data, index, "header value")
                    room += len(cython.cast(bytes, data))
                room += len(cython.cast(bytes, name)) + HEADER_OVERHEAD
                parts.append(name)
                parts.append(data)
        try:
            timestamp = record.timestamp
        except (TypeError, OverflowError):
            timestamp = -2
        if timestamp < -1 or (not cython.compiled and (type(timestamp) is not int or timestamp >= 1 << 63)):
            raise EncodeError(f"record {index}: timestamp {record.timestamp!r} is not -1 (none) or 0..2^63-1 ms")
        if index == 0:
            base = timestamp
        greatest = max(greatest, timestamp)
        shapes.append((timestamp, len(headers) if headers else 0))
        room += RECORD_OVERHEAD
    out = bytearray(room)
    size = _fill(out, parts, shapes, base)
    del out[size:]
    return out, base, greatest


@cython.cfunc
def _fill(payload: cython.uchar[::1], parts: list, shapes: list, base: cython.longlong) -> cython.Py_ssize_t:
    out: cython.p_uchar
    if cython.compiled:
        out = cython.address(payload[0])
    else:
        out = payload
    at: cython.Py_ssize_t = 0
    part: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    size: cython.Py_ssize_t
    header: cython.Py_ssize_t
    elapsed: cython.longlong
    time: cython.longlong
    headers: cython.Py_ssize_t
    for index in range(len(shapes)):
        time, headers = cython.cast(tuple, shapes[index])
        elapsed = _elapsed(base, time)
        size = 1 + _size(elapsed) + _size(index) + _size(headers)
        for header in range(part, part + 2 + 2 * headers):
            size += _bytes_size(parts[header])
        at = _put(out, at, size)
        out[at] = 0
        at = _put(out, at + 1, elapsed)
        at = _put(out, at, index)
        at = _put_bytes(out, at, parts[part])
        at = _put_bytes(out, at, parts[part + 1])
        at = _put(out, at, headers)
        part += 2
        for header in range(part, part + 2 * headers):
            at = _put_bytes(out, at, parts[header])
        part += 2 * headers
    return at
