# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Avro bodies -> columns, a field at a time over many bodies. Valid Python that also compiles.

Every function takes the bodies of a block (`data`), where in each it reads on (`at`, which it moves), where each ends,
and which are suspect: those are passed over. It makes suspect whatever is not a plain, shortest encoding of its type;
who calls reads such a body once more, by itself. `valid`, where it is not None, says which rows have a value at all.

Source: the Avro specification, 1.11, "Binary Encoding".
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memset
    from cython.cimports.tagwire.kernel.memory import PyUnicode_DecodeUTF8

COMPILED = cython.compiled


def branches(data, at, ends, suspect, valid, null_first: cython.bint):
    """Which type of a union with null it is: `valid` is set to whether there is a value."""
    source: cython.const[cython.uchar][::1] = data
    places: cython.longlong[::1] = at
    stops: cython.const[cython.longlong][::1] = ends
    wrong: cython.uchar[::1] = suspect
    there: cython.uchar[::1] = valid
    row: cython.Py_ssize_t
    byte: cython.int
    for row in range(len(places)):
        there[row] = 0
        if wrong[row]:
            continue
        byte = source[places[row]] if places[row] < stops[row] else 1
        if byte != 0 and byte != 2:
            wrong[row] = 1
            continue
        places[row] += 1
        there[row] = (byte == 2) == null_first


def numbers(data, at, ends, suspect, valid, found):
    """Ints, longs and enums, into int64; 0 where there is none."""
    source: cython.const[cython.uchar][::1] = data
    places: cython.longlong[::1] = at
    stops: cython.const[cython.longlong][::1] = ends
    wrong: cython.uchar[::1] = suspect
    there: cython.const[cython.uchar][::1] = valid
    out: cython.longlong[::1] = found
    row: cython.Py_ssize_t
    place: cython.longlong
    stop: cython.longlong
    value: cython.ulonglong
    byte: cython.ulonglong
    shift: cython.int
    for row in range(len(places)):
        out[row] = 0
        if wrong[row] or (there is not None and not there[row]):
            continue
        place = places[row]
        stop = stops[row]
        value = 0
        shift = 0
        byte = 128
        while place < stop and shift < 70:
            byte = source[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if byte > 127 or (shift > 7 and byte == 0) or (shift == 70 and byte > 1):
            wrong[row] = 1
            continue
        if cython.compiled:
            out[row] = cython.cast(cython.longlong, (value >> 1) ^ (0 - (value & 1)))
        else:
            out[row] = (value >> 1) ^ -(value & 1)
        places[row] = place


def chunks(data, at, ends, suspect, valid, found, size: cython.Py_ssize_t):
    """Floats, doubles and fixed: so many bytes each; zeros where there is none."""
    source: cython.const[cython.uchar][::1] = data
    places: cython.longlong[::1] = at
    stops: cython.const[cython.longlong][::1] = ends
    wrong: cython.uchar[::1] = suspect
    there: cython.const[cython.uchar][::1] = valid
    out: cython.uchar[::1] = found
    row: cython.Py_ssize_t
    for row in range(len(places)):
        if not wrong[row] and (there is None or there[row]):
            if stops[row] - places[row] >= size:
                if cython.compiled:
                    memcpy(cython.address(out[row * size]), cython.address(source[places[row]]), size)
                else:
                    out[row * size : row * size + size] = source[places[row] : places[row] + size]
                places[row] += size
                continue
            wrong[row] = 1
        if cython.compiled:
            memset(cython.address(out[row * size]), 0, size)
        else:
            out[row * size : row * size + size] = bytes(size)


def booleans(data, at, ends, suspect, valid, found):
    """Booleans, a byte each; 0 where there is none."""
    source: cython.const[cython.uchar][::1] = data
    places: cython.longlong[::1] = at
    stops: cython.const[cython.longlong][::1] = ends
    wrong: cython.uchar[::1] = suspect
    there: cython.const[cython.uchar][::1] = valid
    out: cython.uchar[::1] = found
    row: cython.Py_ssize_t
    for row in range(len(places)):
        out[row] = 0
        if wrong[row] or (there is not None and not there[row]):
            continue
        if places[row] >= stops[row] or source[places[row]] > 1:
            wrong[row] = 1
            continue
        out[row] = source[places[row]]
        places[row] += 1


def texts(data, at, ends, suspect, valid, found_ends, found, is_text: cython.bint):
    """Strings and bytes, one after the other, the first behind `found_ends[0]`; nothing where there is none.

    Args:
        found_ends: int32, one more than rows: where each ends.
        found: has room for all that the bodies hold.
        is_text: whether they have to be UTF-8.
    """
    source: cython.const[cython.uchar][::1] = data
    places: cython.longlong[::1] = at
    stops: cython.const[cython.longlong][::1] = ends
    wrong: cython.uchar[::1] = suspect
    there: cython.const[cython.uchar][::1] = valid
    last: cython.int[::1] = found_ends
    out: cython.uchar[::1] = found
    row: cython.Py_ssize_t
    place: cython.longlong
    stop: cython.longlong
    size: cython.longlong
    used: cython.Py_ssize_t = last[0]
    byte: cython.int
    shift: cython.int
    step: cython.longlong
    seen: cython.int
    for row in range(len(places)):
        last[row + 1] = used
        if wrong[row] or (there is not None and not there[row]):
            continue
        place = places[row]
        stop = stops[row]
        size = 0
        shift = 0
        byte = 128
        while place < stop and shift < 35:
            byte = source[place]
            place += 1
            size |= cython.cast(cython.longlong, byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        # A length is a number in zigzag; an odd one is below zero.
        if byte > 127 or (shift > 7 and byte == 0) or size & 1 or size >> 1 > stop - place:
            wrong[row] = 1
            continue
        size >>= 1
        if cython.compiled:
            seen = 0
            for step in range(size):
                byte = source[place + step]
                out[used + step] = byte
                seen |= byte
            if is_text and seen > 127 and not _is_utf_8(cython.address(source[place]), size):
                wrong[row] = 1
                continue
        else:
            chunk = bytes(source[place : place + size])
            if is_text and not _is_utf_8(chunk, size):
                wrong[row] = 1
                continue
            out[used : used + size] = chunk
        used += size
        last[row + 1] = used
        places[row] = place + size


@cython.cfunc
@cython.exceptval(-1, check=True)
def _is_utf_8(at: cython.pointer[cython.const[cython.uchar]], size: cython.longlong) -> cython.int:
    try:
        if cython.compiled:
            PyUnicode_DecodeUTF8(cython.cast(cython.p_char, at), size, cython.NULL)
        else:
            at.decode()
    except UnicodeDecodeError:
        return 0
    return 1
