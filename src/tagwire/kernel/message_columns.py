# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Bytes -> Arrow columns, by the programs that also make objects. Valid Python that also compiles.

A row that is no message is cut off the columns again, and its number is told: `message_reading.decode` says what is
wrong with it, in the same words as for objects.
"""

from __future__ import annotations

import sys

import cython

from tagwire.errors import DecodeError

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.tagwire.kernel import programs
    from cython.cimports.tagwire.kernel.columns import FORBIDDEN, LIST, Column, Plan, Store, append_ascii, is_ascii
    from cython.cimports.tagwire.kernel.memory import PyUnicode_DecodeUTF8, load16, load32, load64
else:
    from tagwire.kernel import programs
    from tagwire.kernel.columns import FORBIDDEN, LIST, Plan, Store

COMPILED = cython.compiled

MAX_STRING = cython.declare(cython.longlong, 32767)
SHORT = cython.declare(cython.longlong, 64)  # bytes: beyond, memcpy is faster than what saves the call of it
MAX_INT32 = cython.declare(cython.longlong, 2147483647)

# A row's columns may take so many times its bytes, and so much beyond, as its objects may. A column that grows takes
# its old memory and twice what it needs.
MEMORY_FACTOR = cython.declare(cython.longlong, 64)
MEMORY_BEYOND = cython.declare(cython.longlong, 1 << 20)
GROWTH = cython.declare(cython.longlong, 3)
OUT_OF_PROPORTION = "takes more than 64 times the memory of its bytes"


@cython.final
@cython.cclass
class Columns(Store):
    """The columns of one reading. `taken` takes what was read out of them, once."""

    source: cython.const[cython.uchar][::1]
    data: cython.pointer[cython.const[cython.uchar]]
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    memory: cython.longlong
    lenient: cython.bint
    extension: cython.int

    def __init__(self, plan: Plan, rows: cython.Py_ssize_t):
        Store.__init__(self, plan, rows)
        self.extension = plan.program.extension

    def read(self, data, starts, valid, first: cython.Py_ssize_t, lenient: cython.bint):
        """Reads rows until one is no message: its number, or the number of rows when all are read.

        Args:
            data: a contiguous buffer of bytes.
            starts: a contiguous buffer of int64, where each row starts in `data`, and where the last one ends.
            valid: None, or a contiguous buffer of bytes, 0 for a row that is null.
            first: the first row to read.
            lenient: read as Kafka's Java reader does.

        Raises:
            DecodeError: the columns pass what Arrow's 32-bit offsets can tell apart.
        """
        row_starts: cython.const[cython.longlong][::1] = starts
        present: cython.const[cython.uchar][::1] = valid
        row: cython.Py_ssize_t
        last: cython.Py_ssize_t = len(row_starts) - 1
        self.source = data
        if cython.compiled:
            self.data = cython.address(self.source[0]) if len(self.source) else cython.NULL
        else:
            self.data = self.source
        self.lenient = lenient
        for row in range(first, last):
            if present is not None and not present[row]:
                self.null()
                continue
            self.at = row_starts[row]
            self.end = row_starts[row + 1]
            if not 0 <= self.at <= self.end <= len(self.source):
                raise DecodeError(f"row {row}: its offsets {self.at} and {self.end} are not within the column's data")
            if not self.row():
                self.stop()
                return row
        return last

    @cython.cfunc
    @cython.exceptval(check=False)
    def row(self) -> cython.bint:
        """Appends the row that `at` and `end` bound; nothing of it stays when it is no message."""
        root = self.root
        before: cython.Py_ssize_t = root.length
        self.fault = 0
        self.memory = MEMORY_FACTOR * (self.end - self.at) + MEMORY_BEYOND - GROWTH * root.weight
        if self.memory < 0:
            return False
        if self.grow(root, 1) and self.struct(root) and (self.lenient or self.at == self.end):
            return True
        self.cut(root, before)
        return False

    # -- numbers

    @cython.cfunc
    @cython.exceptval(check=False)
    def uvarint(self) -> cython.longlong:
        """An unsigned varint of at most 32 bits (docs/wire-format.md#varints); -1 where there is none."""
        value: cython.longlong = 0
        shift: cython.int = 0
        byte: cython.longlong
        while self.at < self.end:
            byte = self.data[self.at]
            self.at += 1
            if shift == 28 and byte > 15:
                if byte > 127 or not self.lenient:
                    return -1
                byte &= 15
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        return -1

    @cython.cfunc
    @cython.exceptval(check=False)
    def length(self, flags: cython.int, width: cython.int) -> cython.longlong:
        """A length or count prefix; -1 for null where null is allowed, -2 for what is no length here."""
        length: cython.longlong
        if flags & programs.COMPACT:
            if self.at < self.end and 0 < self.data[self.at] < 128:
                length = self.data[self.at]
                self.at += 1
                return length - 1
            length = self.uvarint()
            if length < 0:
                return -2
            if length > MAX_INT32 and self.lenient:
                # Java subtracts in 32 bits: 2^31 wraps to the largest length, anything above is negative, so null.
                length = MAX_INT32 if length == MAX_INT32 + 1 else -1
            else:
                length -= 1
        else:
            if self.end - self.at < width:
                return -2
            if cython.compiled:
                length = load16(self.data + self.at) if width == 2 else load32(self.data + self.at)
            else:
                length = int.from_bytes(self.data[self.at : self.at + width], "big", signed=True)
            self.at += width
            if length < -1 and not self.lenient:
                return -2
        if length < 0:
            return -1 if flags & programs.NULLABLE else -2
        return length

    @cython.cfunc
    @cython.exceptval(check=False)
    def number(self, column: cython.pointer[Column]) -> cython.bint:
        size: cython.int = column.size
        if self.end - self.at < size:
            return False
        if cython.compiled:
            source = self.data + self.at
            if size == 4:
                cython.cast(cython.p_int, column.values)[column.length] = load32(source)
            elif size == 2:
                cython.cast(cython.p_short, column.values)[column.length] = load16(source)
            elif size == 8:
                cython.cast(cython.p_longlong, column.values)[column.length] = load64(source)
            else:
                memcpy(column.values + column.length * size, source, size)
        else:
            chunk = bytes(self.data[self.at : self.at + size])
            column.values += chunk if column.kind == programs.UUID or sys.byteorder == "big" else chunk[::-1]
        self.at += size
        column.length += 1
        return True

    # -- structs and what extends them

    @cython.cfunc
    @cython.exceptval(check=False)
    def struct(self, column: cython.pointer[Column]) -> cython.bint:
        """One struct, its extension included. There is room for its fields."""
        if column.flags & FORBIDDEN:
            return False
        if self.extension == programs.OPTIONAL_BUFFER and not self.optional_buffer(column):
            return False
        field = column.first
        tags = column.tags
        if cython.compiled:
            while field != tags:
                # The commonest fields without a call for each; `value` reads all the others.
                if field.size == 4 and self.end - self.at >= 4:
                    cython.cast(cython.p_int, field.values)[field.length] = load32(self.data + self.at)
                    self.at += 4
                    field.length += 1
                elif field.size == 2 and self.end - self.at >= 2:
                    cython.cast(cython.p_short, field.values)[field.length] = load16(self.data + self.at)
                    self.at += 2
                    field.length += 1
                elif field.kind == LIST:
                    if not self.items(field):
                        return False
                elif field.kind == programs.STRING:
                    if not self.string(field):
                        return False
                elif not self.value(field):
                    return False
                field = field.next
        else:
            while field is not tags:
                if not self.value(field):
                    return False
                field = field.next
        if self.extension == programs.TAG_SECTION:
            if not tags and self.at < self.end and self.data[self.at] == 0:
                self.at += 1
            elif not self.tag_section(column):
                return False
        while field:
            if field.length == column.length and not self.append_default(field):
                return False
            field = field.next
        if column.validity != cython.NULL:
            self.set_valid(column)
        column.length += 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def tag_section(self, column: cython.pointer[Column]) -> cython.bint:
        """Tagged fields; what no field declares is passed over (docs/wire-format.md#tagged-fields)."""
        count: cython.longlong = self.uvarint()
        before: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        if count <= 0 or (self.lenient and count > MAX_INT32):  # to Java a negative count, so an empty section
            return count >= 0
        if count * 2 > self.end - self.at:
            return False
        field = column.tags
        while count > 0:
            count -= 1
            tag = self.uvarint()
            if tag < 0:
                return False
            if tag <= before:
                if not self.lenient:
                    return False
                field = column.tags
            before = tag
            size = self.uvarint()
            if size < 0:
                return False
            while field and field.tag < tag:
                field = field.next
            if not self.tagged(column, field, tag, size):
                return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def optional_buffer(self, column: cython.pointer[Column]) -> cython.bint:
        """Like `tag_section`, for the optional-buffer of the first KIP-482 (docs/dialects.md#optional-fields)."""
        before: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        start: cython.Py_ssize_t
        field = column.tags
        while True:
            start = self.at
            size = self.uvarint()
            if size < 0 or size & 1 or (self.at - start > 1 and self.data[self.at - 1] == 0):
                return False
            size >>= 1
            if size == 0:
                return True
            if self.end - self.at < 2:
                return False
            tag = self.data[self.at]
            tag = tag << 8 | self.data[self.at + 1]
            self.at += 2
            if tag <= before:
                return False
            before = tag
            while field and field.tag < tag:
                field = field.next
            if not self.tagged(column, field, tag, size):
                return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def tagged(
        self,
        column: cython.pointer[Column],
        field: cython.pointer[Column],
        tag: cython.longlong,
        size: cython.longlong,
    ) -> cython.bint:
        """One tagged field of a struct: `field` where it has the tag, else one that is not declared."""
        start: cython.Py_ssize_t = self.at
        if not (field and field.tag == tag):
            self.at += size
            return size <= self.end - start
        if field.kind == programs.NOT_HERE:
            return False
        as_java: cython.bint = self.lenient and self.extension == programs.TAG_SECTION  # which ignores the size
        if size > self.end - self.at and not as_java:
            return False
        if field.length > column.length:  # given twice: the last one counts
            self.cut(field, column.length)
        return self.value(field) and (as_java or self.at == start + size)

    # -- values

    @cython.cfunc
    @cython.exceptval(check=False)
    def value(self, column: cython.pointer[Column]) -> cython.bint:
        kind: cython.int = column.kind
        if kind == LIST:
            return self.items(column)
        if column.size:
            return self.number(column)
        if kind == programs.STRING:
            return self.string(column)
        if kind == programs.STRUCT:
            return self.maybe_struct(column) if column.flags & programs.NULLABLE else self.struct(column)
        if kind == programs.BOOL:
            return self.boolean(column)
        return self.data_bytes(column)

    @cython.cfunc
    @cython.exceptval(check=False)
    def maybe_struct(self, column: cython.pointer[Column]) -> cython.bint:
        """A nullable struct: its prefix is an int8 in its position, an uvarint in a tag.

        Source: docs/wire-format.md#primitives, docs/wire-format.md#tagged-fields.
        """
        start: cython.Py_ssize_t = self.at
        prefix: cython.longlong
        if column.flags & programs.TAGGED:
            prefix = self.uvarint()
            if prefix < 0 or (not self.lenient and (prefix > 1 or self.at != start + 1)):
                return False
            if prefix == 0 or prefix > MAX_INT32:
                return self.append_null(column)
            return self.struct(column)
        if self.at >= self.end:
            return False
        prefix = self.data[self.at]
        self.at += 1
        if not self.lenient and prefix != 1 and prefix != 255:
            return False
        return self.append_null(column) if prefix > 127 else self.struct(column)

    @cython.cfunc
    @cython.exceptval(check=False)
    def items(self, column: cython.pointer[Column]) -> cython.bint:
        count: cython.longlong = self.length(column.flags, 4)
        _: cython.longlong
        if count < 0:
            return self.append_null(column) if count == -1 else False
        if count > self.end - self.at:
            # Every element takes at least a byte, so nothing is allocated for a count that cannot be true.
            return False
        element = column.first
        self.memory -= GROWTH * count * element.weight
        if self.memory < 0:
            return False
        if element.length + count > element.room and not self.grow(element, count):
            return False
        if element.kind == programs.STRUCT:
            for _ in range(count):
                if not self.struct(element):
                    return False
        elif cython.compiled and element.size == 4:
            if count * 4 > self.end - self.at:
                return False
            source = self.data + self.at
            numbers = cython.cast(cython.p_int, element.values) + element.length
            for _ in range(count):
                numbers[_] = load32(source + 4 * _)
            element.length += count
            self.at += 4 * count
        else:
            for _ in range(count):
                if not self.value(element):
                    return False
        if column.validity != cython.NULL:
            self.set_valid(column)
        if cython.compiled:
            cython.cast(cython.p_int, column.values)[column.length + 1] = element.length
        else:
            column.values.append(element.length)
        column.length += 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def boolean(self, column: cython.pointer[Column]) -> cython.bint:
        if self.at >= self.end:
            return False
        byte: cython.int = self.data[self.at]
        if byte > 1 and not self.lenient:
            return False
        self.at += 1
        self.append_bool(column, byte)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def string(self, column: cython.pointer[Column]) -> cython.bint:
        length: cython.longlong = self.length(column.flags, 2)
        if length < 0:
            return self.append_null(column) if length == -1 else False
        if length > MAX_STRING or length > self.end - self.at:
            return False
        at: cython.Py_ssize_t = self.at
        self.at = at + length
        if cython.compiled:
            if length <= SHORT and append_ascii(column, self.data + at, length):
                return True
            if is_ascii(self.data + at, length):
                return self.append_text(column, self.data + at, length)
        try:
            if cython.compiled:
                PyUnicode_DecodeUTF8(cython.cast(cython.p_char, self.data + at), length, cython.NULL)
                return self.append_text(column, self.data + at, length)
            chunk = bytes(self.data[at : at + length])
            chunk.decode()
            return self.append_text(column, chunk, length)
        except UnicodeDecodeError as error:
            if not self.lenient:
                return False
            from tagwire.kernel.record_objects import text  # hardly ever needed

            replaced: bytes = text(error.object).encode()
        return self.append_text(column, replaced, len(replaced))

    @cython.cfunc
    @cython.exceptval(check=False)
    def data_bytes(self, column: cython.pointer[Column]) -> cython.bint:
        length: cython.longlong = self.length(column.flags, 4)
        if length < 0:
            return self.append_null(column) if length == -1 else False
        if length > self.end - self.at:
            return False
        at: cython.Py_ssize_t = self.at
        self.at = at + length
        if cython.compiled:
            return self.append_text(column, self.data + at, length)
        return self.append_text(column, self.data[at : at + length], length)
