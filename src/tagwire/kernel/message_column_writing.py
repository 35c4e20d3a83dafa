# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Arrow columns -> bytes of messages, by the programs that also write objects. Valid Python that also compiles.

A row that cannot be written is cut off again, and only its number is told: `message_writing.encode` says what is wrong
with it, in the same words as for objects.
"""

from __future__ import annotations

import struct as structs
import sys
from array import array
from uuid import UUID as UuidValue

import cython

from tagwire.errors import EncodeError

if cython.compiled:
    from cython.cimports.cpython.mem import PyMem_Free, PyMem_Realloc
    from cython.cimports.libc.string import memcmp, memcpy, memmove
    from cython.cimports.tagwire.kernel import programs
    from cython.cimports.tagwire.kernel.columns import DEFAULTS, FORBIDDEN, GIVEN, LIST, NULL, is_ascii
    from cython.cimports.tagwire.kernel.memory import (
        PyBytes_FromStringAndSize,
        PyUnicode_DecodeUTF8,
        store16,
        store32,
        store64,
    )
    from cython.cimports.tagwire.kernel.programs import Program
else:
    from tagwire.kernel import programs
    from tagwire.kernel.columns import DEFAULTS, FORBIDDEN, GIVEN, LIST, NULL
    from tagwire.kernel.programs import Program

COMPILED = cython.compiled

MAX_STRING = cython.declare(cython.longlong, 32767)
MAX_INT32 = cython.declare(cython.longlong, 2147483647)
_PAST_2_GIB = cython.declare(cython.int, 1)
_NO_MEMORY = cython.declare(cython.int, 2)
_OUT_OF_BOUNDS = cython.declare(cython.int, 3)

_RANGES = {
    programs.INT8: (1, -(2**7), 2**7 - 1),
    programs.INT16: (2, -(2**15), 2**15 - 1),
    programs.UINT16: (2, 0, 2**16 - 1),
    programs.INT32: (4, -(2**31), 2**31 - 1),
    programs.UINT32: (4, 0, 2**32 - 1),
    programs.INT64: (8, -(2**63), 2**63 - 1),
}


@cython.final
@cython.cclass
class Given:
    """One column of values, in Arrow's memory. A list's element is its `first`, as the first field is a struct's."""

    if not cython.compiled:
        first = next = tags = None

    if cython.compiled:

        def __init__(self):
            self.held = []


@cython.cfunc
def _address(field: Given, buffer: object) -> cython.pointer[cython.const[cython.uchar]]:
    """Where a buffer starts; it lives as long as the column. NULL for None."""
    if buffer is None:
        return cython.NULL
    if cython.compiled:
        view: cython.const[cython.uchar][::1] = buffer
        field.held.append(buffer)
        return cython.address(view[0]) if len(view) else cython.NULL
    return buffer


@cython.final
@cython.cclass
class Writer:
    """Writes rows of one struct column as messages, one after the other.

    Args:
        program: of the message and version.
        columns: the root's fields by attribute, as tuples (validity, start, values, width, data, inside, constant,
            limit). Buffers are as large as their columns say; texts and lists are checked against their limit here.
            validity: a bitmap, or None where no value is null. start: the number of the first value in the buffers.
            values: the values of `width` bytes in the machine's order, bits for a bool, or int32 ends of texts and
            lists. data: of texts. inside: the fields of a struct, by attribute, or the column of a list's elements.
            constant: whether the first value stands for every row. limit: which end no text or list may pass. A tagged
            field may be missing: it has its default.
        rows: how many rows there will be.
    """

    def __init__(self, program: Program, columns: dict, rows: cython.Py_ssize_t):
        self.program = program
        self.extension = program.extension
        self.root = self.given(programs.STRUCT, 0, -1, (None, 0, None, 0, None, None, False, 0), None)
        self.add_struct(self.root, 0, columns, 0)
        self.ends = array("i", bytes(4 * (rows + 1)))
        self.at = 0
        self.fault = 0
        if cython.compiled:
            self.row_ends = self.ends
            self.memory = cython.NULL
            self.capacity = 0
            if not self.room(rows * 16 + 256):
                raise MemoryError
        else:
            self.out = bytearray()

    if cython.compiled:

        def __dealloc__(self):
            PyMem_Free(self.memory)

    def write(self, valid, first: cython.Py_ssize_t):
        """Writes rows from `first` until one cannot be written: its number, or the number of rows when all are.

        Args:
            valid: None, or a contiguous buffer of bytes, 0 for a row that is null and takes no bytes.

        Raises:
            EncodeError: the messages pass what Arrow's 32-bit offsets can tell apart.
        """
        present: cython.const[cython.uchar][::1] = valid
        row: cython.Py_ssize_t
        before: cython.Py_ssize_t
        rows: cython.Py_ssize_t = len(self.ends) - 1
        for row in range(first, rows):
            before = self.at
            if present is None or present[row]:
                written: cython.bint = self.struct(self.root, row)
                if self.at > MAX_INT32:
                    self.fault = _PAST_2_GIB
                if self.fault == _NO_MEMORY:
                    raise MemoryError
                if self.fault == _OUT_OF_BOUNDS:
                    name = f"{self.program.name} v{self.program.version}"
                    raise EncodeError(f"{name}, row {row}: the offsets of a column are not within its data")
                if self.fault == _PAST_2_GIB:
                    name = f"{self.program.name} v{self.program.version}"
                    raise EncodeError(f"{name}: the messages pass 2 GiB: write fewer rows at a time")
                if not written:
                    self.at = before
                    if not cython.compiled:
                        del self.out[before:]
                    return row
            if cython.compiled:
                self.row_ends[row + 1] = self.at
            else:
                self.ends[row + 1] = self.at
        return rows

    def skip(self, row: cython.Py_ssize_t):
        """Leaves a row empty that could not be written."""
        self.ends[row + 1] = self.at

    def taken(self):
        """The bytes of all messages, and where each ends: an int32 array that begins with 0."""
        if cython.compiled:
            return PyBytes_FromStringAndSize(self.memory, self.at), self.ends
        return bytes(self.out), self.ends

    # -- the columns

    @cython.cfunc
    def given(self, kind: cython.int, flags: cython.int, tag: cython.int, column: tuple, default: object) -> Given:
        validity, start, values, width, data, _, constant, limit = column
        made: Given = Given()
        made.kind, made.flags, made.tag, made.width, made.start = kind, flags, tag, width, start
        made.constant, made.limit = constant, limit
        made.validity = _address(made, validity)
        made.values = _address(made, values)
        made.data = _address(made, data)
        made.size, made.lowest, made.highest = _RANGES.get(kind, (0, 0, 0))
        made.absent = GIVEN
        made.default_number, made.default_float, made.default_bytes = 0, 0.0, b""
        if default is None:
            made.absent = NULL
        elif kind == programs.STRUCT:
            made.absent = DEFAULTS
        elif kind == programs.FLOAT64:
            made.default_float = default
        elif kind in _RANGES or kind == programs.BOOL:
            made.default_number = default
        elif isinstance(default, UuidValue):
            made.default_bytes = default.bytes
        elif kind != LIST:
            made.default_bytes = default.encode() if isinstance(default, str) else bytes(default)
        return made

    @cython.cfunc
    def add_struct(self, above: Given, number: cython.Py_ssize_t, columns: dict, depth: cython.int) -> object:
        """The fields of struct `number` below `above`, in the order in which they are written."""
        program: Program = self.program
        base: cython.Py_ssize_t = number * programs.SPAN
        row: cython.Py_ssize_t
        before: Given = None
        if depth >= programs.MAX_DEPTH or program.weights[number] < 0:
            above.flags |= FORBIDDEN
            return None
        for row in range(program.structs[base], program.structs[base + 3]):
            name = program.attributes[program.code[row * programs.ROW + 2]]
            if program.code[row * programs.ROW] == programs.NOT_HERE or name not in columns:
                continue
            made: Given = self.field(row, columns[name], depth)
            if before is None:
                above.first = made
            else:
                before.next = made
            if row >= program.structs[base + 2] and above.tags is None:
                above.tags = made
            before = made
        return None

    @cython.cfunc
    def field(self, row: cython.Py_ssize_t, column: tuple, depth: cython.int) -> Given:
        program: Program = self.program
        kind: cython.int = program.code[row * programs.ROW]
        flags: cython.int = program.code[row * programs.ROW + 1]
        child: cython.int = program.code[row * programs.ROW + 3]
        is_list: cython.bint = (flags & programs.ARRAY) != 0
        tag: cython.int = program.code[row * programs.ROW + 4]
        made: Given = self.given(LIST if is_list else kind, flags, tag, column, program.defaults[row])
        if is_list:
            made.first = self.given(kind, flags & programs.COMPACT, -1, column[5], None)
            if kind == programs.STRUCT:
                self.add_struct(made.first, child, column[5][5], depth + 1)
        elif kind == programs.STRUCT:
            self.add_struct(made, child, column[5], depth + 1)
        return made

    # -- bytes

    @cython.cfunc
    @cython.exceptval(check=False)
    def room(self, count: cython.Py_ssize_t) -> cython.bint:
        """Makes room for `count` more bytes."""
        if cython.compiled:
            if self.at + count > self.capacity:
                if self.at + count > MAX_INT32 + 64:
                    self.fault = _PAST_2_GIB
                    return False
                capacity: cython.Py_ssize_t = (self.at + count) * 2
                moved = cython.cast(cython.p_char, PyMem_Realloc(self.memory, capacity))
                if moved == cython.NULL:
                    self.fault = _NO_MEMORY
                    return False
                self.memory = moved
                self.capacity = capacity
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def put_integer(self, value: cython.longlong, width: cython.int) -> cython.bint:
        if cython.compiled:
            if not self.room(8):
                return False
            if width == 4:
                store32(self.memory + self.at, value)
            elif width == 2:
                store16(self.memory + self.at, value)
            elif width == 8:
                store64(self.memory + self.at, value)
            else:
                self.memory[self.at] = cython.cast(cython.char, value)
        else:
            self.out += (value & ((1 << (8 * width)) - 1)).to_bytes(width, "big")
        self.at += width
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def put_uvarint(self, value: cython.ulonglong) -> cython.bint:
        while value > 127:
            if not self.put_integer((value & 127) | 128, 1):
                return False
            value >>= 7
        return self.put_integer(value, 1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def put_length(self, length: cython.longlong, flags: cython.int, width: cython.int) -> cython.bint:
        """A length or count prefix; -1 writes null."""
        if flags & programs.COMPACT:
            return self.put_uvarint(length + 1)
        return self.put_integer(length, width)

    @cython.cfunc
    @cython.exceptval(check=False)
    def put_bytes(
        self, data: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.bint:
        if size:
            if cython.compiled:
                if not self.room(size):
                    return False
                memcpy(self.memory + self.at, data + at, size)
            else:
                self.out += data[at : at + size]
            self.at += size
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def insert_length(
        self, start: cython.Py_ssize_t, following: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.bint:
        """Writes `length` as a uvarint at `start`, where one byte was kept free before the `following` ones."""
        width: cython.int = 1
        rest: cython.Py_ssize_t = length >> 7
        while rest:
            width += 1
            rest >>= 7
        if cython.compiled:
            if width > 1:
                if not self.room(width):
                    return False
                memmove(self.memory + start + width, self.memory + start + 1, following)
            self.at = start
            self.put_uvarint(length)
        else:
            value = bytes(self.out[start + 1 :])
            del self.out[start:]
            self.put_uvarint(length)
            self.out += value
        self.at = start + width + following
        return True

    # -- values as Arrow has them

    @cython.cfunc
    @cython.exceptval(check=False)
    def integer(self, field: Given, at: cython.Py_ssize_t) -> cython.longlong:
        width: cython.int = field.width
        if cython.compiled:
            if width == 0:
                return (field.values[at >> 3] >> (at & 7)) & 1
            source = field.values + at * width
            if width == 4:
                four: cython.int = 0
                memcpy(cython.address(four), source, 4)
                return four
            if width == 8:
                eight: cython.longlong = 0
                memcpy(cython.address(eight), source, 8)
                return eight
            if width == 2:
                two: cython.short = 0
                memcpy(cython.address(two), source, 2)
                return two
            return cython.cast(cython.schar, source[0])
        if width == 0:
            return field.values[at >> 3] >> (at & 7) & 1
        return int.from_bytes(field.values[at * width : (at + 1) * width], sys.byteorder, signed=True)

    @cython.cfunc
    @cython.exceptval(check=False)
    def real(self, field: Given, at: cython.Py_ssize_t) -> cython.double:
        if cython.compiled:
            number: cython.double = 0
            memcpy(cython.address(number), field.values + at * 8, 8)
            return number
        return structs.unpack("=d", field.values[at * 8 : at * 8 + 8])[0]

    @cython.cfunc
    @cython.exceptval(check=False)
    def end(self, field: Given, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The end of text or list number `at` - 1, where number `at` starts."""
        if cython.compiled:
            found: cython.int = 0
            memcpy(cython.address(found), field.values + at * 4, 4)
            return found
        return int.from_bytes(field.values[at * 4 : at * 4 + 4], sys.byteorder, signed=True)

    @cython.cfunc
    @cython.exceptval(check=False)
    def bounded(self, field: Given, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.bint:
        """Whether a text or a list is where its column has data: Arrow itself does not look at every offset."""
        if 0 <= first <= last <= field.limit:
            return True
        self.fault = _OUT_OF_BOUNDS
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_null(self, field: Given, at: cython.Py_ssize_t) -> cython.bint:
        if field.validity == cython.NULL:
            return False
        return not (field.validity[at >> 3] >> (at & 7)) & 1

    # -- values as messages have them

    @cython.cfunc
    @cython.exceptval(check=False)
    def struct(self, field: Given, index: cython.Py_ssize_t) -> cython.bint:
        """One struct, its extension included."""
        if field.flags & FORBIDDEN:
            return False
        if self.extension == programs.OPTIONAL_BUFFER and not self.optional_buffer(field, index):
            return False
        each: Given = field.first
        tags: Given = field.tags
        while each is not tags:
            if not self.value(each, index):
                return False
            each = each.next
        if self.extension == programs.TAG_SECTION:
            return self.put_integer(0, 1) if tags is None else self.tag_section(field, index)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def tag_section(self, field: Given, index: cython.Py_ssize_t) -> cython.bint:
        """The tagged fields that are not at their default (docs/wire-format.md#tagged-fields)."""
        count: cython.int = 0
        start: cython.Py_ssize_t
        each: Given = field.tags
        while each is not None:
            count += not self.is_default(each, index)
            each = each.next
        if not self.put_uvarint(count):
            return False
        each = field.tags
        while count:
            if not self.is_default(each, index):
                count -= 1
                if not self.put_uvarint(each.tag):
                    return False
                start = self.at
                if not (self.put_integer(0, 1) and self.value(each, index)):
                    return False
                if not self.insert_length(start, self.at - start - 1, self.at - start - 1):
                    return False
            each = each.next
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def optional_buffer(self, field: Given, index: cython.Py_ssize_t) -> cython.bint:
        """Like `tag_section`, for the optional-buffer of the first KIP-482 (docs/dialects.md#optional-fields)."""
        start: cython.Py_ssize_t
        size: cython.Py_ssize_t
        each: Given = field.tags
        while each is not None:
            if not self.is_default(each, index):
                start = self.at
                if not (self.put_integer(0, 1) and self.put_integer(each.tag, 2) and self.value(each, index)):
                    return False
                size = self.at - start - 3
                # A tag of no bytes: its length would end the optional-buffer.
                if size == 0 or not self.insert_length(start, size + 2, size << 1):
                    return False
            each = each.next
        return self.put_integer(0, 1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def value(self, field: Given, index: cython.Py_ssize_t) -> cython.bint:
        at: cython.Py_ssize_t = field.start if field.constant else field.start + index
        kind: cython.int = field.kind
        number: cython.longlong
        if field.validity != cython.NULL and self.is_null(field, at):
            return self.null(field)
        if field.size:
            number = self.integer(field, at)
            return field.lowest <= number <= field.highest and self.put_integer(number, field.size)
        if kind == programs.STRUCT:
            if field.flags & programs.NULLABLE and not self.put_integer(1, 1):
                return False
            return self.struct(field, index)
        if kind == LIST:
            return self.items(field, at)
        if kind == programs.BOOL:
            return self.put_integer(self.integer(field, at), 1)
        if kind == programs.FLOAT64:
            if cython.compiled:
                bits: cython.longlong = 0
                memcpy(cython.address(bits), field.values + at * 8, 8)
                return self.put_integer(bits, 8)
            return self.put_integer(int.from_bytes(field.values[at * 8 : at * 8 + 8], sys.byteorder), 8)
        if kind == programs.UUID and field.width == 16:
            return self.put_bytes(field.values, at * 16, 16)
        return self.text(field, at)

    @cython.cfunc
    @cython.exceptval(check=False)
    def null(self, field: Given) -> cython.bint:
        if not field.flags & programs.NULLABLE:
            return False
        if field.kind == programs.STRUCT:
            # Its prefix is an int8 in its position, an uvarint in a tag (docs/wire-format.md#primitives,
            # docs/wire-format.md#tagged-fields).
            return self.put_integer(0 if field.flags & programs.TAGGED else -1, 1)
        return self.put_length(-1, field.flags, 2 if field.kind == programs.STRING else 4)

    @cython.cfunc
    @cython.exceptval(check=False)
    def items(self, field: Given, at: cython.Py_ssize_t) -> cython.bint:
        first: cython.Py_ssize_t = self.end(field, at)
        last: cython.Py_ssize_t = self.end(field, at + 1)
        element: Given = field.first
        i: cython.Py_ssize_t
        if not self.bounded(field, first, last):
            return False
        if not self.put_length(last - first, field.flags, 4):
            return False
        if cython.compiled:
            if element.kind == programs.INT32 and element.width == 4 and element.validity == cython.NULL:
                if not self.room(4 * (last - first)):
                    return False
                for i in range(first, last):
                    store32(self.memory + self.at, self.integer(element, element.start + i))
                    self.at += 4
                return True
        for i in range(first, last):
            if not self.value(element, i):
                return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def text(self, field: Given, at: cython.Py_ssize_t) -> cython.bint:
        """A string, bytes, or the 16 bytes of a uuid."""
        first: cython.Py_ssize_t = self.end(field, at)
        size: cython.Py_ssize_t = self.end(field, at + 1) - first
        if not self.bounded(field, first, first + size):
            return False
        if field.kind == programs.UUID:
            return size == 16 and self.put_bytes(field.data, first, size)
        if field.kind == programs.STRING:
            if size > MAX_STRING:
                return False
            try:
                if cython.compiled:
                    if size and not is_ascii(field.data + first, size):
                        PyUnicode_DecodeUTF8(cython.cast(cython.p_char, field.data + first), size, cython.NULL)
                else:
                    bytes(field.data[first : first + size] if size else b"").decode()
            except UnicodeDecodeError:
                return False
            return self.put_length(size, field.flags, 2) and self.put_bytes(field.data, first, size)
        return self.put_length(size, field.flags, 4) and self.put_bytes(field.data, first, size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_default(self, field: Given, index: cython.Py_ssize_t) -> cython.bint:
        """Whether a value is the field's default, as docs/wire-format.md#absent-fields compares."""
        at: cython.Py_ssize_t = field.start if field.constant else field.start + index
        kind: cython.int = field.kind
        each: Given = field.first
        if self.is_null(field, at):
            return field.absent == NULL
        if field.absent == NULL:
            return False
        if kind == programs.STRUCT:
            while each is not None:
                if not self.is_default(each, index):
                    return False
                each = each.next
            return True
        if kind == LIST:
            return self.end(field, at) == self.end(field, at + 1)
        if kind == programs.FLOAT64:
            return self.real(field, at) == field.default_float
        if field.size or kind == programs.BOOL:
            return self.integer(field, at) == field.default_number
        first: cython.Py_ssize_t = at * 16
        size: cython.Py_ssize_t = 16
        data = field.values
        if field.width != 16:
            first = self.end(field, at)
            size = self.end(field, at + 1) - first
            data = field.data
            if not self.bounded(field, first, first + size):
                return True
        if size != len(field.default_bytes):
            return False
        if cython.compiled:
            expected: cython.p_const_char = field.default_bytes
            return size == 0 or memcmp(data + first, expected, size) == 0
        return size == 0 or data[first : first + size] == field.default_bytes
