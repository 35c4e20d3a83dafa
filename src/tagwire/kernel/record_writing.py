"""Records of a batch (magic 2), from objects to bytes.

Layout: docs/record-formats.md#record-batches, as in the records kernel.

Compiled, buffers are written through pointers; uncompiled, the same names are the memoryviews themselves.
"""

from __future__ import annotations

import operator
from typing import Any

import cython

from tagwire.errors import EncodeError
from tagwire.kernel.record_objects import MalformedKey

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.cpython.object import PyObject
    from cython.cimports.libc.string import memcpy, memmove

from tagwire.kernel.raw_bytes import uncleared

COMPILED: bool = cython.compiled

LENGTH_GROWTH = 4
"""By how much the length of a record may be longer than that of the record before it."""

RECORD_OVERHEAD = 36 + LENGTH_GROWTH
"""Most bytes a record takes beyond its key, value and headers: five 5-byte varints, a 10-byte one, attributes; and for
how much it may have to move for its length."""

TYPICAL_RECORD = 128
"""Bytes that are taken for each record at first."""

SPARE_FROM, SPARE_MOST = 1 << 16, 1 << 22
"""Sizes of what is kept for the next payload: below, malloc keeps it itself."""

HEADER_OVERHEAD = 10
"""Most bytes a header takes beyond its key and value: two 5-byte varints."""

SLACK = 64
"""Bytes a payload needs beyond what will be written: fixed fields go unchecked, short ones as whole blocks."""

_slack = cython.declare(cython.Py_ssize_t, SLACK)

_FAULTS = {
    1: "timestamp {} is not -1 (none) or 0..2^63-1 ms",
    2: "the column's ends contradict each other",
    3: "a header or its key is null",
}


def fronted(data: bytes, front: bytes) -> bytes:
    """`data`, which `encode_columns` made and nobody else has seen yet, with `front` in the room left for it."""
    if cython.compiled:
        memcpy(cython.cast(cython.p_char, data), cython.cast(cython.p_char, front), len(front))
        return data
    return front + data[len(front) :]


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
    if raw < 128:
        out[at] = raw
        return at + 1
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


def as_bytes(data: object, what: str) -> bytes:
    """The bytes of anything bytes-like. Raises EncodeError naming `what` it is."""
    try:
        return memoryview(data).tobytes()
    except TypeError:
        raise EncodeError(f"{what} is {type(data).__name__}, not bytes or None") from None
    except ValueError as error:  # a memoryview that was released
        raise EncodeError(f"{what} cannot be read: {error}") from None


def as_headers(headers: Any, where: str) -> tuple[Any, ...]:
    """Headers, whatever they come in, as a tuple. Raises EncodeError, which begins with `where`."""
    try:
        return tuple(headers)
    except (TypeError, ValueError) as error:  # no iterable, or a memoryview that was released
        raise EncodeError(f"{where}: headers are {type(headers).__name__}, not (key, value) pairs") from error


def as_pair(pair: object, where: str = "") -> tuple[Any, Any]:
    """A header as a tuple of two. Raises EncodeError, which begins with `where`."""
    try:
        name, data = pair
    except (TypeError, ValueError):
        raise EncodeError(f"{where}header {pair!r} is not a (key, value) pair") from None
    return name, data


@cython.cfunc
def _as_key(key: object, index: cython.Py_ssize_t) -> bytes:
    if not isinstance(key, str):
        raise EncodeError(f"record {index}: header key is {type(key).__name__}, not str")
    if type(key) is MalformedKey:
        return key.raw
    try:
        return cython.cast(str, key).encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodeError(f"record {index}: header key {key!r} is not valid text: {error.reason}") from None


_spare: list[bytearray] = []


def spare(payload: bytearray) -> None:
    """Keeps `payload`, which nobody looks at any more, for the next that `encode` makes.

    Given back together with the bytes that were made of it, it would be more than malloc keeps, and both would come
    from the system anew, page by page, for each batch.
    """
    if SPARE_FROM <= len(payload) <= SPARE_MOST and not _spare:
        _spare.append(payload)


@cython.cfunc
def _taken(room: cython.Py_ssize_t) -> bytearray:
    """A bytearray of about `room` bytes, which are anything."""
    if room >= SPARE_FROM:
        try:
            return _spare.pop()
        except IndexError:
            pass
    return uncleared(room)


def encode(
    records: list[Any],
    deltas: list[int] | None = None,
    base_timestamp: int | None = None,
    bare: bool = False,
    as_read: bool = False,
) -> tuple[bytearray, int, int]:
    """Records as a payload: (bytes, timestamp that deltas are relative to, greatest timestamp). At least one record.

    A record has key, value (bytes-like or None), headers (pairs of str and bytes-like or None) and timestamp (ms, -1
    for none). Offset deltas are `deltas`, or 0, 1, 2, ...; timestamps are relative to `base_timestamp`, or to the first
    record's. `bare`: without their headers. `as_read`: timestamps may be below -1, as in what others wrote. Raises
    EncodeError naming the record whose field cannot be written.
    """
    index: cython.Py_ssize_t
    timestamp: cython.longlong
    base: cython.longlong = 0
    greatest: cython.longlong = 0
    fits: cython.bint
    out: bytearray = _taken(SLACK + len(records) * TYPICAL_RECORD)
    room: cython.Py_ssize_t = len(out)
    memory: cython.p_uchar = _memory(out)
    at: cython.Py_ssize_t = 0
    body: cython.Py_ssize_t
    width: cython.Py_ssize_t = 1
    needed: cython.Py_ssize_t
    size: cython.Py_ssize_t
    delta: cython.longlong
    for index, record in enumerate(records):
        key = record.key
        value = record.value
        needed = RECORD_OVERHEAD
        if key is not None:
            if type(key) is not bytes:
                key = as_bytes(key, f"record {index}: key")
            needed += len(cython.cast(bytes, key))
        if value is not None:
            if type(value) is not bytes:
                value = as_bytes(value, f"record {index}: value")
            needed += len(cython.cast(bytes, value))
        headers = () if bare else record.headers
        if type(headers) is list:  # whoever makes bytes of a value could change its length
            headers = tuple(cython.cast(list, headers))
        elif type(headers) is not tuple:
            headers = as_headers(headers, f"record {index}")
        stamp = record.timestamp
        try:
            timestamp = stamp if type(stamp) is int else operator.index(stamp)
            fits = cython.compiled or -(1 << 63) <= timestamp < 1 << 63
        except (TypeError, OverflowError):
            timestamp = 0
            fits = False
        if not fits or (timestamp < -1 and not as_read):
            raise EncodeError(f"record {index}: timestamp {stamp!r} is not -1 (none) or 0..2^63-1 ms")
        if index == 0:
            base = timestamp if base_timestamp is None else base_timestamp
            greatest = timestamp
        greatest = max(greatest, timestamp)
        if room - at < needed:
            room = _grow(out, at + needed)
            memory = _memory(out)
        # the length comes first, but is known last: leave it the room that the record before needed
        body = at + width
        memory[body] = 0
        at = _put(memory, body + 1, _elapsed(base, timestamp))
        delta = index
        if deltas is not None:
            delta = deltas[index]
        at = _put(memory, at, delta)
        at = _put_bytes(memory, at, key)
        at = _put_bytes(memory, at, value)
        at = _put(memory, at, len(cython.cast(tuple, headers)))
        for pair in cython.cast(tuple, headers):
            if type(pair) is not tuple or len(cython.cast(tuple, pair)) != 2:
                pair = as_pair(pair, f"record {index}: ")
            name, data = cython.cast(tuple, pair)
            if cython.compiled and type(name) is str and is_ascii(name):
                size = ascii_length(name)
            else:
                name = _as_key(name, index)
                size = len(cython.cast(bytes, name))
            needed = size + HEADER_OVERHEAD + LENGTH_GROWTH
            if data is not None:
                if type(data) is not bytes:
                    data = as_bytes(data, f"record {index}: header value")
                needed += len(cython.cast(bytes, data))
            if room - at < needed:
                room = _grow(out, at + needed)
                memory = _memory(out)
            if cython.compiled and type(name) is str:
                at = _put(memory, at, size)
                memcpy(memory + at, ascii_data(name), size)
                at += size
            else:
                at = _put_bytes(memory, at, name)
            at = _put_bytes(memory, at, data)
        body, at, width = _framed(memory, body, at, width)
        _put(memory, body - width, at - body)
    del out[at:]
    return out, base, greatest


@cython.cfunc
def _memory(out: bytearray) -> cython.p_uchar:
    """Where the bytes are, until the bytearray grows."""
    if cython.compiled:
        return cython.cast(cython.p_uchar, PyByteArray_AS_STRING(out))
    else:
        return out


@cython.cfunc
@cython.exceptval(-1)
def _grow(out: bytearray, least: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Makes `out` twice as long, or `least` bytes; its length now."""
    size: cython.Py_ssize_t = max(2 * len(out), least)
    if cython.compiled:
        PyByteArray_Resize(out, size)
    else:
        out.extend(bytes(size - len(out)))
    return size


@cython.cclass
class Slices:
    """A variable-size column in Arrow's layout, to be read: bit `shift + row` of valid, rows between ends, data.

    valid is None where no row is null; data is None in a list column.
    """

    valid: cython.const[cython.uchar][::1]
    shift: cython.Py_ssize_t
    ends: cython.const[cython.int][::1]
    data: cython.const[cython.uchar][::1]
    has_valid: cython.bint
    limit: cython.longlong

    def __init__(
        self, valid: memoryview | None, shift: int, ends: memoryview, data: memoryview | None, limit: int
    ) -> None:
        """`limit`: what no end may pass, the size of the data or the number of a list's elements."""
        self.valid = valid
        self.shift = shift
        self.ends = ends
        self.data = data
        self.has_valid = valid is not None
        self.limit = limit


if cython.compiled:
    _Reading = cython.struct(
        valid=cython.pointer[cython.const[cython.uchar]],
        has_valid=cython.bint,
        shift=cython.Py_ssize_t,
        ends=cython.pointer[cython.const[cython.int]],
        data=cython.pointer[cython.const[cython.uchar]],
        limit=cython.longlong,
    )
else:
    _Reading = Slices


@cython.cfunc
@cython.boundscheck(False)
@cython.initializedcheck(False)
def _reading(column: Slices | None) -> _Reading:
    """A column as it is read, in variables of the loop that does; of None one that is never looked at."""
    if cython.compiled and column is None:
        return _Reading(valid=cython.NULL, has_valid=False, shift=0, ends=cython.NULL, data=cython.NULL, limit=0)
    if cython.compiled:
        return _Reading(
            valid=cython.address(column.valid[0]),
            has_valid=column.has_valid,
            shift=column.shift,
            ends=cython.address(column.ends[0]),
            data=cython.address(column.data[0]),
            limit=column.limit,
        )
    else:
        return column


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_null(column: _Reading, row: cython.Py_ssize_t) -> cython.bint:
    bit: cython.Py_ssize_t = column.shift + row
    return column.has_valid and column.valid[bit >> 3] >> (bit & 7) & 1 == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_slice(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    column: _Reading,
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Writes the length of a row and the row; returns the position after it, -1 where the ends contradict themselves.

    Short rows are copied as a block of 16 or 32 bytes where the source has as many: SLACK is always left in `out`.
    """
    start: cython.longlong = column.ends[row]
    size: cython.longlong = column.ends[row + 1] - start
    if start < 0 or size < 0 or start + size > column.limit or size + _slack > room - at:
        return -1
    at = _put(out, at, size)
    if cython.compiled:
        if size <= 16 and start + 16 <= column.limit:
            memcpy(out + at, column.data + start, 16)
        elif size <= 32 and start + 32 <= column.limit:
            memcpy(out + at, column.data + start, 32)
        else:
            memcpy(out + at, column.data + start, size)
    else:
        out[at : at + size] = column.data[start : start + size]
    return at + cython.cast(cython.Py_ssize_t, size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_nullable(
    out: cython.p_uchar,
    at: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    column: _Reading,
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """`_put_slice` of a row that may be null; nothing where a field before it failed."""
    if at < 0:
        return at
    if _is_null(column, row):
        return _put(out, at, -1)
    return _put_slice(out, at, room, column, row)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _framed(
    out: cython.p_uchar, body: cython.Py_ssize_t, at: cython.Py_ssize_t, width: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t]:
    """Makes room for the length of the record between `body` and `at`, before which `width` bytes were left for it:
    (start and end of the record now, bytes of its length)."""
    needed: cython.Py_ssize_t = _size(at - body)
    if needed == width:
        return body, at, width
    if cython.compiled:
        memmove(out + body - width + needed, out + body, at - body)
    else:
        out[body - width + needed : at - width + needed] = out[body:at]
    return body + needed - width, at + needed - width, needed


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
def encode_columns(
    front: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    whole: cython.bint,
    row: cython.Py_ssize_t,
    most_rows: cython.Py_ssize_t,
    most_bytes: cython.Py_ssize_t,
    timestamps: cython.const[cython.longlong][::1],
    key: Slices,
    value: Slices,
    lists: Slices | None,
    names: Slices | None,
    data: Slices | None,
) -> tuple[bytes, int, int]:
    """The rows from `row` on as a payload: (bytes, rows, greatest timestamp). Timestamps in ms, -1 for none.

    The bytes start with `front` ones that are anything: see `fronted`. At most `most_rows` rows, and as many as make
    no more than `most_bytes` bytes, but one in any case. lists, names and data are the headers, together or not at all.
    `room` is what the bytes may take while they are written; where it is enough for all rows, `whole`, columns that
    would pass it are refused; otherwise they end the payload, before its first row if that is longer.

    Raises EncodeError naming the row that cannot be written.
    """
    out: cython.p_uchar
    made: cython.pointer[PyObject]
    times: cython.pointer[cython.const[cython.longlong]]
    if cython.compiled:
        made = new_bytes(cython.NULL, room)
        out = cython.cast(cython.p_uchar, bytes_memory(made))
        times = cython.address(timestamps[0])
    else:
        out = bytearray(room)
        times = timestamps
    keys: _Reading = _reading(key)
    values: _Reading = _reading(value)
    headers: _Reading = _reading(lists)
    header_keys: _Reading = _reading(names)
    header_values: _Reading = _reading(data)
    has_headers: cython.bint = lists is not None
    first_row: cython.Py_ssize_t = row
    stop: cython.Py_ssize_t = row + min(most_rows, timestamps.shape[0] - row)
    base: cython.longlong = times[row]
    time: cython.longlong
    greatest: cython.longlong = -1
    at: cython.Py_ssize_t = front
    start: cython.Py_ssize_t = front
    body: cython.Py_ssize_t
    width: cython.Py_ssize_t = 1
    header: cython.Py_ssize_t
    first: cython.longlong
    last: cython.longlong
    fault: cython.int = 0
    with cython.nogil:
        while row < stop:
            start = at
            time = times[row]
            if time < -1:
                fault = 1
                break
            if room - at < _slack:
                fault = 2
                break
            # the length comes first, but is known last: leave it the room that the record before needed
            body = at + width
            out[body] = 0
            at = _put(out, body + 1, _elapsed(base, time))
            at = _put(out, at, row - first_row)
            at = _put_nullable(out, at, room, keys, row)
            at = _put_nullable(out, at, room, values, row)
            if at < 0:
                fault = 2
                break
            first = 0
            last = 0
            if has_headers and not _is_null(headers, row):
                first = headers.ends[row]
                last = headers.ends[row + 1]
                if first < 0 or last < first or last > headers.limit:
                    fault = 2
                    break
            at = _put(out, at, last - first)
            for header in range(first, last):
                if _is_null(header_keys, header):
                    fault = 3
                    break
                at = _put_slice(out, at, room, header_keys, header)
                at = _put_nullable(out, at, room, header_values, header)
                if at < 0:
                    fault = 2
                    break
            if fault:
                break
            body, at, width = _framed(out, body, at, width)
            if at - front > most_bytes and row > first_row:
                at = start
                break
            _put(out, body - width, at - body)
            if time > greatest:
                greatest = time
            row += 1
    if fault == 2 and not whole:
        fault = 0
        at = start
    if fault:
        if cython.compiled:
            release(made)
        raise EncodeError(f"row {row}: {_FAULTS[fault].format(timestamps[row])}")
    if cython.compiled:
        # malloc keeps for the next batch what was asked of it, not what is left of that: cut, it would be got anew,
        # page by page, for each. What is much more than was needed is given back.
        if room - at <= at >> 1:
            close_bytes(made, at)
        else:
            cut_bytes(cython.address(made), at)
        payload = cython.cast(object, made)
        release(made)
    else:
        payload = bytes(out[:at])
    return payload, row - first_row, greatest
