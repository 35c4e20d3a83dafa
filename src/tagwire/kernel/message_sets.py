"""Messages of a message set (magic 0 and 1, and magic 2 of the int-headers format), made into records of a batch.

Layouts: docs/record-formats.md#message-sets, docs/dialects.md#int-header-keys. What follows the prefix of a message
set is written anew as the records of a magic-2 batch, which is smaller, so that everything that reads records reads
these too. A header's int key becomes its decimal digits. Every size is checked against its message before it is used.

Compiled, buffers are read and written through pointers; uncompiled, the same names are the memoryviews themselves.
"""

from __future__ import annotations

import zlib

import cython

from tagwire.errors import CorruptRecordError

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memmove
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, int64_at
    from cython.cimports.tagwire.kernel.record_writing import _elapsed, _put
else:
    from tagwire.kernel.raw_bytes import int32_at, int64_at
    from tagwire.kernel.record_writing import _elapsed, _put

from tagwire.kernel.raw_bytes import uncleared

COMPILED: bool = cython.compiled

PREFIX_SIZE = 12
SMALLEST_SIZE = 14
"""Bytes of the smallest message, without key, value and timestamp, after the prefix of offset and size."""

HAS_HEADERS = 0x10
"""Attribute of a message with headers; never set without them."""

_prefix = cython.declare(cython.Py_ssize_t, PREFIX_SIZE)
_smallest = cython.declare(cython.Py_ssize_t, SMALLEST_SIZE)
_has_headers = cython.declare(cython.int, HAS_HEADERS)
_timestamp_size = cython.declare(cython.Py_ssize_t, 8)
_magic_at = cython.declare(cython.Py_ssize_t, 16)
_codec = cython.declare(cython.int, 0x07)
_append_time = cython.declare(cython.int, 0x08)
_max_delta = cython.declare(cython.longlong, (1 << 31) - 1)
_LENGTH_ROOM = cython.declare(cython.Py_ssize_t, 5)
_SLACK = 64

_NO_FIELD = {
    1: "key length {} does not fit into the message",
    2: "headers length {} does not fit into the message",
    3: "value length {} does not fit into the message",
    4: "{} bytes are left after the message's last field",
}
_NO_INTEGER = {
    -1: "an integer runs past the end",
    -2: "byte {:02x} begins no integer of 32 bits",
    -3: "an integer is not written in its shortest form",
    -4: "an integer is beyond 2^31-1",
}


def integer(value: int) -> bytes:
    """`value`, of 32 bits, in the only form that `_integer` reads: the shortest of the MessagePack family.

    Raises OverflowError where it has more bits.
    """
    if -32 <= value < 128:
        return (value & 0xFF).to_bytes(1, "big")
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} has more than 32 bits")
    power = 0
    while not (value < 1 << (8 << power) if value >= 0 else value >= -(1 << ((8 << power) - 1))):
        power += 1
    return bytes(((0xCC if value >= 0 else 0xD0) + power,)) + value.to_bytes(1 << power, "big", signed=value < 0)


@cython.cfunc
@cython.exceptval(check=False)
def _integer(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """The integer at `at`: (value, next position), or what is wrong as (byte, a position below 0 of `_NO_INTEGER`)."""
    if at >= end:
        return 0, -1
    kind: cython.int = src[at]
    if kind < 0x80:
        return kind, at + 1
    if kind >= 0xE0:
        return kind - 256, at + 1
    negative: cython.bint = 0xD0 <= kind <= 0xD2
    if not negative and not 0xCC <= kind <= 0xCE:
        return kind, -2
    power: cython.int = kind & 3
    size: cython.int = 1 << power
    at += 1
    if size > end - at:
        return kind, -1
    value: cython.longlong = 0
    index: cython.int
    for index in range(size):
        value = value << 8 | src[at + index]
    half: cython.longlong = 1
    half <<= 8 * size - 1
    # the least that needs this size: what half the size cannot hold
    least: cython.longlong = 1
    if negative:
        if value >= half:
            value -= 2 * half
        least = 32 if power == 0 else least << 4 * size - 1
        if value >= -least:
            return kind, -3
    else:
        least = 128 if power == 0 else least << 4 * size
        if value < least:
            return kind, -3
        if value > 2147483647:
            return kind, -4
    return value, at + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_field(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    size: cython.longlong,
) -> cython.Py_ssize_t:
    """Writes `size` and as many bytes from `at`, none for -1; returns the position after them."""
    to = _put(out, to, size)
    if size > 0:
        if cython.compiled:
            memcpy(out + to, src + at, size)
        else:
            out[to : to + size] = src[at : at + size]
        to += cython.cast(cython.Py_ssize_t, size)
    return to


@cython.cfunc
def _check_wrapped(
    messages: memoryview,
    src: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    path: str,
    index: cython.longlong,
) -> cython.void:
    """What holds of a message inside another, whose checksum is at `start`: it is not compressed, and is as stated."""
    if src[start + 5] & 7:
        raise _broken(path, index, start + 5, "a compressed message is inside a compressed message")
    crc = zlib.crc32(messages[start + 4 : stop])
    stated = int32_at(src, start) & 0xFFFFFFFF
    if crc != stated:
        raise _broken(path, index, start, f"checksum is {crc:08x}, the message says {stated:08x}")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _fields(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, stop: cython.Py_ssize_t, headed: cython.bint
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # key: start; or where the fault is
    cython.longlong,  # key: length or -1; or the fault's detail
    cython.Py_ssize_t,  # headers: start
    cython.longlong,  # headers: length, 0 for none
    cython.Py_ssize_t,  # value: start
    cython.longlong,  # value: length or -1
]:
    """The fields of a message from its key on; with headers where it is `headed`."""
    headers: cython.longlong = 0
    headers_at: cython.Py_ssize_t = 0
    key: cython.longlong = int32_at(src, at)
    key_at: cython.Py_ssize_t = at + 4
    value: cython.longlong
    if key < -1 or key > stop - key_at - 4:
        return 1, at, key, 0, 0, 0, 0
    at = key_at + (cython.cast(cython.Py_ssize_t, key) if key > 0 else 0)
    if headed:
        headers, headers_at = _integer(src, at, stop)
        if headers_at < 0:
            return cython.cast(cython.int, headers_at), at, headers, 0, 0, 0, 0
        if headers < 1 or headers > stop - headers_at - 4:
            return 2, at, headers, 0, 0, 0, 0
        at = headers_at + cython.cast(cython.Py_ssize_t, headers)
    value = int32_at(src, at)
    at += 4
    if value < -1 or value > stop - at:
        return 3, at - 4, value, 0, 0, 0, 0
    if at + (value if value > 0 else 0) != stop:
        at += cython.cast(cython.Py_ssize_t, value) if value > 0 else 0
        return 4, at, stop - at, 0, 0, 0, 0
    return 0, key_at, key, headers_at, headers, at, value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _framed(out: cython.p_uchar, body: cython.Py_ssize_t, to: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Puts the length of the record between `body` and `to` before it, where `_LENGTH_ROOM` was left: it comes first,
    but is known last. Returns the position after the record, which has moved."""
    length: cython.longlong = to - body
    start: cython.Py_ssize_t = _put(out, body - _LENGTH_ROOM, length)
    if cython.compiled:
        memmove(out + start, out + body, length)
    else:
        out[start : start + length] = out[body:to]
    return start + cython.cast(cython.Py_ssize_t, length)


@cython.boundscheck(False)
@cython.wraparound(False)
def records_of(
    messages: memoryview, int_headers: cython.bint, inner: cython.bint, path: str, unnumbered: cython.bint = False
) -> tuple[bytearray, int, int, int, int]:
    """The messages of a message set as records: (records, their number, first offset, last offset, first timestamp).

    Offset and timestamp deltas are relative to the first message's. `inner`: the messages were wrapped: each has the
    checksum it states and none wraps others. `int_headers`: magic 2 may occur. `unnumbered`: where the second message
    says offset 0 too, all do, and are numbered here. A message cut short at the end is left out. Raises
    CorruptRecordError: `path`, the message's index, and the byte of the message set.
    """
    source: cython.const[cython.uchar][::1] = messages
    end: cython.Py_ssize_t = source.shape[0]
    payload: bytearray = uncleared((3 if int_headers else 2) * end + _SLACK)
    target: cython.uchar[::1] = payload
    src: cython.pointer[cython.const[cython.uchar]]
    out: cython.p_uchar
    if cython.compiled:
        src = cython.address(source[0]) if end else cython.NULL
        out = cython.address(target[0])
    else:
        src = source
        out = memoryview(target)
    at: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    index: cython.longlong = 0
    first: cython.longlong = 0
    after: cython.longlong = -1
    base: cython.longlong = -1
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    body: cython.Py_ssize_t
    offset: cython.longlong
    length: cython.longlong
    time: cython.longlong
    magic: cython.int
    headed: cython.bint
    fault: cython.int
    key: cython.longlong
    key_at: cython.Py_ssize_t
    value: cython.longlong
    value_at: cython.Py_ssize_t
    headers: cython.longlong
    headers_at: cython.Py_ssize_t
    past: cython.Py_ssize_t
    while end - at >= _prefix:
        offset = int64_at(src, at)
        length = int32_at(src, at + 8)
        if length < _smallest:
            raise _broken(path, index, at + 8, f"message size {length} is below {SMALLEST_SIZE}")
        start = at + _prefix
        if length > end - start:
            break
        stop = start + cython.cast(cython.Py_ssize_t, length)
        magic = src[start + 4]
        if magic > (2 if int_headers else 1):
            raise _broken(path, index, start + 4, f"magic {magic} does not belong into this message set")
        if inner:
            _check_wrapped(messages, src, start, stop, path, index)
        if index == 0:
            first = offset
        if index == 1:
            unnumbered = unnumbered and first == 0 and offset == 0
        if unnumbered and index > 0:
            offset = index if offset == 0 else -1 - offset
        if offset < 0 or offset <= after or offset - first > _max_delta:
            offset = int64_at(src, at)
            raise _broken(path, index, at, f"offset {offset} does not ascend within reach of the first")
        after = offset
        at = start + 6
        time = -1
        if magic > 0:
            if stop - at < _timestamp_size + 8:
                raise _broken(path, index, at, f"message size {length} leaves no room for a timestamp")
            time = int64_at(src, at)
            at += _timestamp_size
        if index == 0:
            base = time
        headed = magic == 2 and src[start + 5] & _has_headers
        fault, key_at, key, headers_at, headers, value_at, value = _fields(src, at, stop, headed)
        if fault:
            raise _broken(path, index, key_at, (_NO_INTEGER if fault < 0 else _NO_FIELD)[fault].format(key))
        at = stop
        body = to + _LENGTH_ROOM
        out[body] = 0
        to = _put(out, body + 1, _elapsed(base, time))
        to = _put(out, to, offset - first)
        to = _put_field(out, to, src, key_at, key)
        to = _put_field(out, to, src, value_at, value)
        if headers:
            past = headers_at + cython.cast(cython.Py_ssize_t, headers)
            to = _put_headers(out, to, src, headers_at, past, path, index)
        else:
            to = _put(out, to, 0)
        to = _framed(out, body, to)
        index += 1
    if cython.compiled:
        del target
    else:
        out.release()
    del payload[to:]
    return payload, index, first, after, base


@cython.boundscheck(False)
@cython.wraparound(False)
def run_of(messages: memoryview, at: cython.Py_ssize_t, most: cython.Py_ssize_t) -> tuple[int, int, int]:
    """Messages from `at` on that can be made records together: (position after them, their number, last offset).

    They take at most `most` bytes, the first one excepted; magic, attributes and, where that is an append time, the
    timestamp are those of the first message, which is whole and not compressed; offsets ascend. Nothing else is looked
    at.
    """
    source: cython.const[cython.uchar][::1] = messages
    end: cython.Py_ssize_t = source.shape[0]
    src: cython.pointer[cython.const[cython.uchar]]
    if cython.compiled:
        src = cython.address(source[0])
    else:
        src = source
    first: cython.Py_ssize_t = at
    kept: cython.int = _append_time | _codec
    magic: cython.int = src[at + _magic_at]
    attributes: cython.int = src[at + _magic_at + 1] & kept
    base: cython.longlong = int64_at(src, at)
    after: cython.longlong = base
    count: cython.longlong = 1
    offset: cython.longlong
    length: cython.longlong
    dated: cython.bint = magic > 0 and attributes & _append_time
    at += _prefix + cython.cast(cython.Py_ssize_t, int32_at(src, at + 8))
    while end - at >= _magic_at + 10:
        offset = int64_at(src, at)
        length = int32_at(src, at + 8)
        if length < _smallest or length > end - at - _prefix or at - first + length > most:
            break
        if src[at + _magic_at] != magic or src[at + _magic_at + 1] & kept != attributes:
            break
        if offset <= after or offset - base > _max_delta:
            break
        if dated and int64_at(src, at + _magic_at + 2) != int64_at(src, first + _magic_at + 2):
            break
        after = offset
        count += 1
        at += _prefix + cython.cast(cython.Py_ssize_t, length)
    return at, count, after


@cython.cfunc
def _put_headers(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    path: str,
    index: cython.longlong,
) -> cython.Py_ssize_t:
    """The header map between `at` and `end`, which it fills, as headers of a record."""
    count: cython.longlong
    past: cython.Py_ssize_t
    key: cython.longlong
    size: cython.longlong
    before: cython.longlong = -(1 << 40)
    _header: cython.longlong
    count, past = _integer(src, at, end)
    if past < 0:
        raise _broken(path, index, at, _NO_INTEGER[past].format(count))
    if count < 1 or count > (end - past) >> 1:
        raise _broken(
            path, index, at, f"header count {count} does not fit into {end - past} bytes, or is not 1 or more"
        )
    to = _put(out, to, count)
    for _header in range(count):
        at = past
        key, past = _integer(src, at, end)
        if past < 0:
            raise _broken(path, index, at, _NO_INTEGER[past].format(key))
        if key <= before:
            raise _broken(path, index, at, f"header key {key} stands again, or after {before}, which is not less")
        before = key
        at = past
        size, past = _integer(src, at, end)
        if past < 0:
            raise _broken(path, index, at, _NO_INTEGER[past].format(size))
        if size < 0 or size > end - past:
            raise _broken(path, index, at, f"header value length {size} does not fit into the headers")
        name = b"%d" % key
        if cython.compiled:
            to = _put_field(
                out,
                to,
                cython.cast(cython.pointer[cython.const[cython.uchar]], cython.cast(cython.p_char, name)),
                0,
                len(name),
            )
        else:
            to = _put_field(out, to, name, 0, len(name))
        to = _put_field(out, to, src, past, size)
        past += cython.cast(cython.Py_ssize_t, size)
    if past != end:
        raise _broken(path, index, past, f"{end - past} bytes are left after the last header")
    return to


def _broken(path: str, index: int, at: int, message: str) -> CorruptRecordError:
    return CorruptRecordError(message, path=f"{path}, message {index}", offset=at)
