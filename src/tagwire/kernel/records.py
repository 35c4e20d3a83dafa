"""Records of a batch (magic 2), from bytes to column buffers.

Layout (docs/record-formats.md#record-batches): a record is a varint length and that many bytes: int8 attributes,
varlong timestamp delta, varint offset delta, varint key length and key, varint value length and value, varint header
count, headers. Length -1 is null. Every varint, length and count is checked against its record before it is used. A
fault is told at the byte of the payload (the records after the batch's 61-byte header, decompressed) plus the caller's
`origin`.

Compiled, buffers are read and written through pointers; uncompiled, the same names are the memoryviews themselves.
"""

from __future__ import annotations

import cython

from tagwire.errors import CorruptRecordError

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.tagwire.kernel.checksum import checksum_at
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of
    from cython.cimports.tagwire.kernel.string_buffers import Strings, pointers_of
else:
    from tagwire.kernel.checksum import checksum_at
    from tagwire.kernel.raw_bytes import int32_at, int64_at, memory_of
    from tagwire.kernel.string_buffers import Strings, pointers_of

COMPILED: bool = cython.compiled

MIN_RECORD_SIZE = 7
"""Bytes of the smallest record: bounds a batch's claimed count before anything is allocated for it."""

_FAULTS = {
    1: "a varint runs past the end",
    2: "a varint is longer than its type",
    3: "record length {} does not fit into what is left of the batch",
    4: "key length {} does not fit into the record",
    5: "value length {} does not fit into the record",
    6: "header count {} does not fit into the record",
    7: "header key length {} does not fit into the record",
    8: "header value length {} does not fit into the record",
    9: "{} bytes are left after the record's last field",
    10: "offset delta {} does not ascend within the batch's range",
    11: "{} bytes are left after the last record",
    12: "timestamp {} ms does not fit into microseconds",
}

if cython.compiled:
    _Filling = cython.struct(
        used=cython.bint,
        valid=cython.p_uchar,
        ends=cython.p_int,
        data=cython.p_uchar,
        size=cython.Py_ssize_t,
        nulls=cython.Py_ssize_t,
    )
else:
    from types import SimpleNamespace as _Filling

# what a 32-bit varint reads as when there is none to read
_CUT_SHORT = cython.declare(cython.longlong, -(1 << 40))
_TOO_LONG = cython.declare(cython.longlong, -(1 << 41))

# of a record of short fields: the most bytes before its timestamp, and from there to its key; and what none of its
# lengths has, which are not negative and take no more than two bytes
_SHORT_FRONT = cython.declare(cython.Py_ssize_t, 3)
_SHORT_MIDDLE = cython.declare(cython.Py_ssize_t, 5)
_NOT_SHORT = cython.declare(cython.longlong, 1 | ~((1 << 14) - 1))


def fault(code: int, detail: int, base_offset: int, index: int, at: int) -> CorruptRecordError:
    return CorruptRecordError(
        _FAULTS[code].format(detail), path=f"batch at offset {base_offset}, record {index}", offset=at
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t, bits: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of any length: (value, next position), or position -1 cut short, -2 too long for `bits`."""
    raw: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end:
        byte = src[at]
        at += 1
        if shift + 7 > bits and (byte & 127) >> (bits - shift):
            return 0, -2
        raw |= (byte & 127) << shift
        if byte < 128:
            value: cython.longlong = raw >> 1
            sign: cython.longlong = raw & 1
            return value ^ -sign, at
        shift += 7
        if shift >= bits:
            return 0, -2
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varlong(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of 64 bits: (value, next position), or a position below 0 as `_long_varint`."""
    low: cython.longlong
    high: cython.longlong
    if at < end:
        low = src[at]
        if low < 128:
            return (low >> 1) ^ -(low & 1), at + 1
        if at + 1 < end:
            high = src[at + 1]
            if high < 128:
                low = (low & 127) | (high << 7)
                return (low >> 1) ^ -(low & 1), at + 2
    return _long_varint(src, at, end, 64)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_length(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of 32 bits; one that is cut short or too long has a value that no such varint has."""
    value: cython.longlong
    past: cython.Py_ssize_t
    value, past = _long_varint(src, at, end, 32)
    if past >= 0:
        return value, past
    return (_CUT_SHORT if past == -1 else _TOO_LONG), at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _length(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A zigzag varint of 32 bits that is rarely negative: (value, next position).

    One that cannot be read is far below 0, so that a check of the value's range finds it and no other check is needed.
    """
    low: cython.longlong
    high: cython.longlong
    if at < end:
        low = src[at]
        if low & 129 == 0:
            return low >> 1, at + 1
        if low == 1:
            return -1, at + 1
        if low & 1 == 0 and at + 1 < end:
            high = src[at + 1]
            if high < 128:
                return ((low & 127) | (high << 7)) >> 1, at + 2
    return _long_length(src, at, end)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def cause(code: cython.int, value: cython.longlong) -> cython.int:
    """The fault of a value out of range: `code`, unless there was no value to read."""
    if value == _CUT_SHORT:
        return 1
    return 2 if value == _TOO_LONG else code


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _any_record_at(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # position of the first header, or of the fault
    cython.longlong,  # end of the record, or the fault's detail
    cython.longlong,  # timestamp delta
    cython.longlong,  # offset delta
    cython.Py_ssize_t,  # key: start
    cython.longlong,  # key: length or -1
    cython.Py_ssize_t,  # value: start
    cython.longlong,  # value: length or -1
    cython.longlong,  # header count
]:
    """`record_at` of any record, every field held against what is left."""
    size: cython.longlong
    past: cython.Py_ssize_t
    time: cython.longlong
    delta: cython.longlong
    key: cython.longlong
    value: cython.longlong
    count: cython.longlong
    key_at: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    size, past = _length(src, at, end)
    if size < 1 or size > end - past:
        return cause(3, size), at, size, 0, 0, 0, 0, 0, 0, 0
    end = past + cython.cast(cython.Py_ssize_t, size)
    at = past + 1
    time, past = _varlong(src, at, end)
    if past < 0:
        return cython.cast(cython.int, -past), at, 0, 0, 0, 0, 0, 0, 0, 0
    delta, at = _length(src, past, end)
    key, key_at = _length(src, at, end)
    if key < -1 or key > end - key_at:
        return cause(4, key), at, key, 0, 0, 0, 0, 0, 0, 0
    at = key_at + (cython.cast(cython.Py_ssize_t, key) if key > 0 else 0)
    value, value_at = _length(src, at, end)
    if value < -1 or value > end - value_at:
        return cause(5, value), at, value, 0, 0, 0, 0, 0, 0, 0
    at = value_at + (cython.cast(cython.Py_ssize_t, value) if value > 0 else 0)
    count, past = _length(src, at, end)
    if count < 0 or count > (end - past) >> 1:
        return cause(6, count), at, count, 0, 0, 0, 0, 0, 0, 0
    return 0, past, end, time, delta, key_at, key, value_at, value, count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _up_to_two(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A varint of one or two bytes, not yet a zigzag: (value, next position); 1 << 14 or more for a longer one."""
    low: cython.longlong = src[at]
    if low < 128:
        return low, at + 1
    return (low & 127) | (cython.cast(cython.longlong, src[at + 1]) << 7), at + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _up_to_three(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A varint of one to three bytes, as `_up_to_two`; 1 << 21 or more for a longer one."""
    low: cython.longlong = src[at]
    high: cython.longlong
    if low < 128:
        return low, at + 1
    high = src[at + 1]
    low = (low & 127) | ((high & 127) << 7)
    if high < 128:
        return low, at + 2
    return low | (cython.cast(cython.longlong, src[at + 2]) << 14), at + 3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def record_at(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # position of the first header, or of the fault
    cython.longlong,  # end of the record, or the fault's detail
    cython.longlong,  # timestamp delta
    cython.longlong,  # offset delta
    cython.Py_ssize_t,  # key: start
    cython.longlong,  # key: length or -1
    cython.Py_ssize_t,  # value: start
    cython.longlong,  # value: length or -1
    cython.longlong,  # header count
]:
    """The fields of the record at `at`, headers apart. The offset delta is for the caller to judge."""
    size: cython.longlong
    time: cython.longlong
    delta: cython.longlong
    key: cython.longlong
    value: cython.longlong
    key_at: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    count: cython.longlong
    past: cython.Py_ssize_t
    stop: cython.longlong
    is_short: cython.bint = False
    # Most records have short fields, and no byte of one needs a check of its own. What does not come out even is read
    # again, byte for byte.
    if end - at >= _SHORT_FRONT:
        size, past = _up_to_two(src, at)
        stop = past + cython.cast(cython.Py_ssize_t, size >> 1)
        time, past = _varlong(src, past + 1, end)
        if 0 <= past <= end - _SHORT_MIDDLE:
            delta, past = _up_to_three(src, past)
            key, key_at = _up_to_two(src, past)
            past = key_at
            if key == 1:
                key = -1
            else:
                past += cython.cast(cython.Py_ssize_t, key >> 1)
                size |= key
                key >>= 1
            if past + 2 <= stop <= end:
                value, value_at = _up_to_two(src, past)
                past = value_at
                if value == 1:
                    value = -1
                else:
                    past += cython.cast(cython.Py_ssize_t, value >> 1)
                    size |= value
                    value >>= 1
                if past < stop and size & _NOT_SHORT == 0 and delta >> 21 == 0 and src[past] & 129 == 0:
                    count = src[past] >> 1
                    past += 1
                    if count <= (stop - past) >> 1:
                        delta = (delta >> 1) ^ -(delta & 1)
                        is_short = True
    code: cython.int = 0
    if not is_short:
        code, past, stop, time, delta, key_at, key, value_at, value, count = _any_record_at(src, at, end)
    return code, past, stop, time, delta, key_at, key, value_at, value, count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _any_header_at(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # position after the header, or of the fault
    cython.Py_ssize_t,  # key: start
    cython.longlong,  # key: length, or the fault's detail
    cython.Py_ssize_t,  # value: start
    cython.longlong,  # value: length or -1
]:
    """`header_at` of any header."""
    key: cython.longlong
    value: cython.longlong
    key_at: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    key, key_at = _length(src, at, end)
    if key < 0 or key > end - key_at:
        return cause(7, key), at, 0, key, 0, 0
    at = key_at + cython.cast(cython.Py_ssize_t, key)
    value, value_at = _length(src, at, end)
    if value < -1 or value > end - value_at:
        return cause(8, value), at, 0, value, 0, 0
    at = value_at + (cython.cast(cython.Py_ssize_t, value) if value > 0 else 0)
    return 0, at, key_at, key, value_at, value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def header_at(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # position after the header, or of the fault
    cython.Py_ssize_t,  # key: start
    cython.longlong,  # key: length, or the fault's detail
    cython.Py_ssize_t,  # value: start
    cython.longlong,  # value: length or -1
]:
    """The header at `at`."""
    key: cython.longlong
    value: cython.longlong
    key_at: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    past: cython.Py_ssize_t
    is_short: cython.bint = False
    # as nearly all are: its key and its value shorter than 64 bytes
    if at < end and src[at] & 129 == 0:
        key = src[at] >> 1
        key_at = at + 1
        value_at = key_at + cython.cast(cython.Py_ssize_t, key) + 1
        if value_at <= end and src[value_at - 1] & 129 == 0:
            value = src[value_at - 1] >> 1
            past = value_at + cython.cast(cython.Py_ssize_t, value)
            is_short = past <= end
    code: cython.int = 0
    if not is_short:
        code, past, key_at, key, value_at, value = _any_header_at(src, at, end)
    return code, past, key_at, key, value_at, value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def shifted(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """base + delta, wrapping as Java's long does: a batch that spans more than 2^63 ms still reads back as written."""
    if cython.compiled:
        return cython.cast(cython.longlong, cython.cast(cython.ulonglong, base) + cython.cast(cython.ulonglong, delta))
    else:
        return (base + delta + (1 << 63)) % (1 << 64) - (1 << 63)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copied(
    dst: cython.p_uchar,
    to: cython.Py_ssize_t,
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    size: cython.longlong,
    end: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copies `size` bytes, none for -1; returns the position after them.

    Short ones go as a block of 16 or 32 bytes where the source has as many left: the destination has SLACK.
    """
    if size <= 0:
        return to
    if cython.compiled:
        if size <= 16 and at + 16 <= end:
            memcpy(dst + to, src + at, 16)
        elif size <= 32 and at + 32 <= end:
            memcpy(dst + to, src + at, 32)
        else:
            memcpy(dst + to, src + at, size)
    else:
        dst[to : to + size] = src[at : at + size]
    return to + cython.cast(cython.Py_ssize_t, size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clear(bits: cython.p_uchar, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Marks `row` as null; returns 1, for the count of nulls."""
    bits[row >> 3] &= 255 ^ (1 << (row & 7))
    return 1


@cython.cfunc
@cython.inline
def _filling(column: Strings | None) -> _Filling:
    """A column as it is filled, in variables of the loop that does; of None one that is not `used`."""
    valid, ends, data = pointers_of(column)
    size: cython.Py_ssize_t = column.size if column is not None else 0
    return _Filling(used=column is not None, valid=valid, ends=ends, data=data, size=size, nulls=0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _filled(
    column: _Filling,
    row: cython.Py_ssize_t,
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    size: cython.longlong,
    end: cython.Py_ssize_t,
) -> _Filling:
    """The column with `size` bytes from `at` in its row, null for -1."""
    column.size = _copied(column.data, column.size, src, at, size, end)
    column.ends[row + 1] = cython.cast(cython.int, column.size)
    if size < 0:
        column.nulls += _clear(column.valid, row)
    return column


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _headers_filled(
    src: cython.pointer[cython.const[cython.uchar]],
    at: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    keep: cython.bint,
    element: cython.Py_ssize_t,
    names: _Filling,
    data: _Filling,
) -> tuple[
    cython.int,  # 0 or a fault
    cython.Py_ssize_t,  # position after the headers, or of the fault
    cython.longlong,  # the fault's detail
    _Filling,  # names
    _Filling,  # data
]:
    """Reads the `count` headers from `at` to before `stop`, and if they are to be kept fills the columns from `element`
    on with them."""
    code: cython.int
    name_at: cython.Py_ssize_t
    name_size: cython.longlong
    data_at: cython.Py_ssize_t
    data_size: cython.longlong
    _header_number: cython.longlong
    for _header_number in range(count):
        code, at, name_at, name_size, data_at, data_size = header_at(src, at, stop)
        if code:
            return code, at, name_size, names, data
        if keep:
            names = _filled(names, element, src, name_at, name_size, end)
            data = _filled(data, element, src, data_at, data_size, end)
            element += 1
    return 0, at, 0, names, data


@cython.cfunc
def _keep(column: Strings | None, filling: _Filling) -> cython.void:
    """What was filled is the column's now."""
    if column is not None:
        column.size = filling.size
        column.nulls += filling.nulls


@cython.cclass
class Columns:
    """Where decoded records go: offsets and timestamps (int64), timestamp types (int32) and `Strings`, or None.

    lists, names and data are the headers: a list per row over the columns of header keys and header values, together
    or not at all. All are large enough for every row and byte to come, names and data perhaps not for every header.
    """

    _views: tuple
    _offsets: cython.p_longlong
    _timestamps: cython.p_longlong
    _kinds: cython.p_int
    _key: Strings
    _value: Strings
    _lists: Strings
    _names: Strings
    _data: Strings
    _has_offsets: cython.bint
    _has_timestamps: cython.bint
    _has_kinds: cython.bint
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    ascii_names = cython.declare(cython.bint, visibility="readonly")
    _index: cython.longlong
    _at: cython.Py_ssize_t
    _after: cython.longlong
    _paused: cython.bint

    def __init__(
        self,
        offsets: memoryview | None,
        timestamps: memoryview | None,
        kinds: memoryview | None,
        key: Strings | None,
        value: Strings | None,
        lists: Strings | None,
        names: Strings | None,
        data: Strings | None,
    ) -> None:
        self._views = (offsets, timestamps, kinds)
        if cython.compiled:
            self._offsets = cython.cast(cython.p_longlong, memory_of(offsets))
            self._timestamps = cython.cast(cython.p_longlong, memory_of(timestamps))
            self._kinds = cython.cast(cython.p_int, memory_of(kinds))
        else:
            self._offsets = offsets
            self._timestamps = timestamps
            self._kinds = kinds
        self._has_offsets = offsets is not None
        self._has_timestamps = timestamps is not None
        self._has_kinds = kinds is not None
        self._key = key
        self._value = value
        self._lists = lists
        self._names = names
        self._data = data
        self.rows = 0
        self.ascii_names = True
        self._index = 0
        self._at = 0
        self._after = -1
        self._paused = False

    def decode(
        self,
        payload: memoryview,
        count: cython.longlong,
        origin: cython.Py_ssize_t,
        base_offset: cython.longlong,
        last_delta: cython.longlong,
        base_timestamp: cython.longlong,
        append_timestamp: cython.longlong,
        appended: cython.bint,
        first: cython.longlong,
        limit: cython.longlong,
        microseconds: cython.bint,
    ) -> int:
        """Appends a payload's records whose offset is in first..limit-1; 0 when done.

        Otherwise how many headers names and data must have room for: enlarge them and call again with the same
        arguments. Raises CorruptRecordError; the columns are of no use after it.
        """
        return self._append(
            memory_of(payload),
            len(payload),
            count,
            origin,
            base_offset,
            last_delta,
            base_timestamp,
            append_timestamp,
            appended,
            first,
            limit,
            microseconds,
        )

    def decode_run(
        self,
        data: memoryview,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first: cython.longlong,
        limit: cython.longlong,
        microseconds: cython.bint,
    ) -> tuple[int, int]:
        """Appends the records of the plain batches of `data` from `at` to `end`, as `plain_run` found them.

        Returns (end, 0) when done; (position of a batch, room) as `decode` does, to go on from there; or (position of
        a batch, -1) when its checksum fails.
        """
        src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
        base: cython.longlong
        last_delta: cython.longlong
        size: cython.Py_ssize_t
        wanted: cython.Py_ssize_t
        records: cython.pointer[cython.const[cython.uchar]]
        while at < end:
            size = 12 + cython.cast(cython.Py_ssize_t, int32_at(src, at + 8))
            base = int64_at(src, at)
            last_delta = int32_at(src, at + 23)
            if base < limit and base + last_delta >= first:
                if not self._paused and checksum_at(data, at + 21, at + size) != int32_at(src, at + 17) & 0xFFFFFFFF:
                    return at, -1
                if cython.compiled:
                    records = src + at + 61
                else:
                    records = src[at + 61 : at + size]
                wanted = self._append(
                    records,
                    size - 61,
                    int32_at(src, at + 57),
                    61,
                    base,
                    last_delta,
                    int64_at(src, at + 27),
                    int64_at(src, at + 35),
                    src[at + 22] & 8 != 0,
                    first,
                    limit,
                    microseconds,
                )
                if wanted:
                    return at, wanted
            at += size
        return at, 0

    @cython.cfunc
    @cython.exceptval(-1)
    def _append(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        end: cython.Py_ssize_t,
        count: cython.longlong,
        origin: cython.Py_ssize_t,
        base_offset: cython.longlong,
        last_delta: cython.longlong,
        base_timestamp: cython.longlong,
        append_timestamp: cython.longlong,
        appended: cython.bint,
        first: cython.longlong,
        limit: cython.longlong,
        microseconds: cython.bint,
    ) -> cython.Py_ssize_t:
        keys: _Filling = _filling(self._key)
        values: _Filling = _filling(self._value)
        lists: _Filling = _filling(self._lists)
        names: _Filling = _filling(self._names)
        data: _Filling = _filling(self._data)
        offsets: cython.p_longlong = self._offsets
        timestamps: cython.p_longlong = self._timestamps
        kinds: cython.p_int = self._kinds
        has_offsets: cython.bint = self._has_offsets
        has_timestamps: cython.bint = self._has_timestamps
        has_kinds: cython.bint = self._has_kinds
        room: cython.Py_ssize_t = self._names.room if lists.used else 0
        row: cython.Py_ssize_t = self.rows
        index: cython.longlong = self._index
        at: cython.Py_ssize_t = self._at
        after: cython.longlong = self._after
        first_name: cython.Py_ssize_t = names.size
        wanted: cython.Py_ssize_t = 0
        seen: cython.uchar = 0
        code: cython.int = 0
        fault_at: cython.Py_ssize_t = 0
        detail: cython.longlong = 0
        past: cython.Py_ssize_t
        stop: cython.longlong
        time: cython.longlong
        delta: cython.longlong
        key_at: cython.Py_ssize_t
        key_size: cython.longlong
        value_at: cython.Py_ssize_t
        value_size: cython.longlong
        found: cython.longlong
        keep: cython.bint
        most: cython.longlong = 9223372036854775
        with cython.nogil:
            while index < count:
                code, past, stop, time, delta, key_at, key_size, value_at, value_size, found = record_at(src, at, end)
                if code:
                    fault_at = past
                    detail = stop
                    break
                if delta <= after or delta > last_delta:
                    code = cause(10, delta)
                    fault_at = at
                    detail = delta
                    break
                keep = first <= base_offset + delta < limit
                if found:
                    if lists.used and keep and lists.size + found > room:
                        wanted = lists.size + cython.cast(cython.Py_ssize_t, found)
                        break
                    code, past, detail, names, data = _headers_filled(
                        src, past, stop, end, found, lists.used and keep, lists.size, names, data
                    )
                    if code:
                        fault_at = past
                        break
                if past != stop:
                    code = 9
                    fault_at = past
                    detail = stop - past
                    break
                if keep:
                    if keys.used:
                        keys = _filled(keys, row, src, key_at, key_size, end)
                    if values.used:
                        values = _filled(values, row, src, value_at, value_size, end)
                    if lists.used:
                        lists.size += cython.cast(cython.Py_ssize_t, found)
                        lists.ends[row + 1] = cython.cast(cython.int, lists.size)
                        if not found:
                            lists.nulls += _clear(lists.valid, row)
                    if has_offsets:
                        offsets[row] = base_offset + delta
                    if has_timestamps:
                        time = append_timestamp if appended else shifted(base_timestamp, time)
                        if microseconds:
                            if time > most or time < -most:
                                code = 12
                                fault_at = at
                                detail = time
                                break
                            time *= 1000
                        timestamps[row] = time
                    if has_kinds:
                        kinds[row] = appended
                    row += 1
                after = delta
                # `past` it is, but known from the record's length: the next record need not wait for this one's fields
                at = cython.cast(cython.Py_ssize_t, stop)
                index += 1
            for past in range(first_name, names.size):
                seen |= names.data[past]
        if not code and not wanted and at != end:
            code = 11
            fault_at = at
            detail = end - at
        if code:
            raise fault(code, detail, base_offset, index, origin + fault_at)
        self.rows = row
        _keep(self._key, keys)
        _keep(self._value, values)
        _keep(self._lists, lists)
        _keep(self._names, names)
        _keep(self._data, data)
        if seen > 127:
            self.ascii_names = False
        self._index = index if wanted else 0
        self._at = at if wanted else 0
        self._after = after if wanted else -1
        self._paused = wanted != 0
        return wanted
