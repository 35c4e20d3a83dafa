# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Bytes -> Arrow columns, by the programs that also make objects. Valid Python that also compiles.

A `Plan` is a program unrolled into a tree of columns, one for each field of each place where its struct stands. Reading
appends to them; a row that is no message is cut off again, and only its place is told: `message_reading.decode` says
what is wrong with it, in the same words as for objects.

Compiled, the columns' memory goes to Arrow by its C data interface; uncompiled, as buffers.
"""

from __future__ import annotations

import sys
from array import array
from struct import pack
from uuid import UUID as UuidValue

import cython

from tagwire.errors import DecodeError, SpecError

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memset
    from cython.cimports.tagwire.kernel.memory import PyUnicode_DecodeUTF8, load16, load32, load64
    from cython.cimports.tagwire.kernel.programs import (
        ARRAY,
        BOOL,
        COMPACT,
        FLOAT64,
        INT8,
        INT16,
        INT32,
        INT64,
        MAX_DEPTH,
        NOT_HERE,
        NULLABLE,
        OPTIONAL_BUFFER,
        ROW,
        SPAN,
        STRING,
        STRUCT,
        TAG_SECTION,
        TAGGED,
        UINT16,
        UINT32,
        UUID,
        Program,
    )
else:
    from tagwire.kernel.programs import (
        ARRAY,
        BOOL,
        COMPACT,
        FLOAT64,
        INT8,
        INT16,
        INT32,
        INT64,
        MAX_DEPTH,
        NOT_HERE,
        NULLABLE,
        OPTIONAL_BUFFER,
        ROW,
        SPAN,
        STRING,
        STRUCT,
        TAG_SECTION,
        TAGGED,
        UINT16,
        UINT32,
        UUID,
        Program,
    )

COMPILED = cython.compiled

LIST = cython.declare(cython.int, 15)  # beyond the programs' operations
FORBIDDEN = cython.declare(cython.int, 64)  # a flag: a struct that may not be read

# What stands for a tagged field that is left out.
ZERO = cython.declare(cython.int, 0)
NULL = cython.declare(cython.int, 1)
GIVEN = cython.declare(cython.int, 2)
DEFAULTS = cython.declare(cython.int, 3)

# What stopped a row, where it was not its bytes.
PAST_2_GIB = cython.declare(cython.int, 1)
NO_MEMORY = cython.declare(cython.int, 2)

MAX_STRING = cython.declare(cython.longlong, 32767)
MAX_INT32 = cython.declare(cython.longlong, 2147483647)
MAX_COLUMNS = cython.declare(cython.Py_ssize_t, 10000)

# A row's columns may take so many times its bytes, and so much beyond, as its objects may.
MEMORY_FACTOR = cython.declare(cython.longlong, 64)
MEMORY_BEYOND = cython.declare(cython.longlong, 1 << 20)
OUT_OF_PROPORTION = "takes more than 64 times the memory of its bytes"

_SIZES = {INT8: 1, INT16: 2, UINT16: 2, INT32: 4, UINT32: 4, INT64: 8, FLOAT64: 8, UUID: 16}
_LETTERS = {INT8: "b", INT16: "h", UINT16: "H", INT32: "i", UINT32: "I", INT64: "q", FLOAT64: "d"}


class _Uncompiled:
    """A column without C: the fields of the struct of message_columns.pxd."""

    def __init__(self, kind, flags, tag, size, absent, place, children, weight, default_bytes):
        self.kind, self.flags, self.tag, self.size, self.absent, self.place = kind, flags, tag, size, absent, place
        self.children, self.weight, self.default_bytes = children, weight, default_bytes
        self.default_size = len(default_bytes)
        self.first = self.next = self.tags = None
        self.length = 0
        self.values = [0] if _has_ends(kind) else bytearray()  # where each element ends; the elements themselves
        self.validity = None
        self.data = bytearray()


@cython.final
@cython.cclass
class Plan:
    """The columns of one (message, version), empty.

    Attributes:
        outline: the fields of the root as (attribute, kind, nullable, outlines of what is inside), in the order of the
            class's fields. kind: a program's operation, or 15 for a list, inside which is its element.
    """

    program: Program
    nodes: list
    outline = cython.declare(tuple, visibility="readonly")
    count: cython.Py_ssize_t
    columns: cython.pointer[Column]

    def __init__(self, program: Program):
        self.program = program
        self.nodes = []
        root: cython.Py_ssize_t = self.add(STRUCT, 0, -1)
        self.outline = self.add_struct(root, 0, 0)
        self.count = len(self.nodes)
        if cython.compiled:
            i: cython.Py_ssize_t
            self.columns = cython.cast(cython.pointer[Column], PyMem_RawCalloc(self.count, cython.sizeof(Column)))
            if self.columns == cython.NULL:
                raise MemoryError
            for i in range(self.count):
                values, first, following, tags = self.nodes[i]
                column = self.columns + i
                column.kind, column.flags, column.tag, column.size, column.absent, column.place = values[:6]
                column.children, column.weight = values[6], values[7]
                default: bytes = values[8]
                column.default_bytes = default
                column.default_size = len(default)
                column.first = self.linked(first)
                column.next = self.linked(following)
                column.tags = self.linked(tags)

    def __dealloc__(self):
        if cython.compiled:
            free_columns(self.columns, self.count)

    @cython.cfunc
    def linked(self, node: cython.Py_ssize_t) -> cython.pointer[Column]:
        return cython.NULL if node < 0 else self.columns + node

    @cython.cfunc
    def add(self, kind: cython.int, flags: cython.int, tag: cython.int) -> cython.Py_ssize_t:
        if len(self.nodes) >= MAX_COLUMNS:
            raise SpecError(f"{self.program.name} v{self.program.version} has more than {MAX_COLUMNS} columns")
        size: cython.int = _SIZES.get(kind, 0)
        weight: cython.longlong = 0 if kind == STRUCT else size or (1 if kind == BOOL else 4)
        self.nodes.append([[kind, flags, tag, size, ZERO, 0, 0, weight, b""], -1, -1, -1])
        return len(self.nodes) - 1

    @cython.cfunc
    def add_struct(self, at: cython.Py_ssize_t, number: cython.Py_ssize_t, depth: cython.int) -> tuple:
        """The columns of the fields of struct `number` below column `at`; gives their outlines."""
        program: Program = self.program
        base: cython.Py_ssize_t = number * SPAN
        row: cython.Py_ssize_t
        values = self.nodes[at][0]
        if depth >= MAX_DEPTH or program.weights[number] < 0:
            values[1] |= FORBIDDEN
            return ()
        outlines = {}
        here = {}
        before: cython.Py_ssize_t = -1
        for row in range(program.structs[base], program.structs[base + 3]):
            node: cython.Py_ssize_t = len(self.nodes)
            outline = self.add_field(row, depth)
            if outline is not None:
                outlines[outline[0]] = outline
                here[outline[0]] = node
                values[7] += self.nodes[node][0][7]
            if before < 0:
                self.nodes[at][1] = node
            else:
                self.nodes[before][2] = node
            if row == program.structs[base + 2]:
                self.nodes[at][3] = node
            before = node
        ordered = [name for name in program.classes[number]._fields if name in outlines]
        for place, name in enumerate(ordered):
            self.nodes[here[name]][0][5] = place
        values[6] = len(ordered)
        return tuple([outlines[name] for name in ordered])

    @cython.cfunc
    def add_field(self, row: cython.Py_ssize_t, depth: cython.int) -> object:
        """The column of one field, and its outline; None for a tag that is declared, but not in this version."""
        program: Program = self.program
        kind: cython.int = program.code[row * ROW]
        flags: cython.int = program.code[row * ROW + 1]
        child: cython.int = program.code[row * ROW + 3]
        default = program.defaults[row]
        is_list: cython.bint = (flags & ARRAY) != 0
        at: cython.Py_ssize_t = self.add(LIST if is_list else kind, flags, program.code[row * ROW + 4])
        values = self.nodes[at][0]
        if kind == NOT_HERE:
            values[5] = -1
            return None
        inside: tuple = ()
        if is_list:
            element: cython.Py_ssize_t = self.add(kind, flags & COMPACT, -1)
            self.nodes[at][1] = element
            values[6] = 1
            if kind == STRUCT:
                inside = self.add_struct(element, child, depth + 1)
            inside = (("element", kind, False, inside),)
        elif kind == STRUCT:
            inside = self.add_struct(at, child, depth + 1)
        nullable: cython.bint = (flags & NULLABLE) != 0 or default is None
        if default is None:
            values[4] = NULL
        elif kind == STRUCT and not is_list:
            values[4] = DEFAULTS
        elif not is_list and default:
            values[4] = GIVEN
            values[8] = _native(kind, default)
            values[7] += 0 if values[3] else len(values[8])
        values[7] += nullable
        return program.attributes[program.code[row * ROW + 2]], LIST if is_list else kind, nullable, inside


@cython.final
@cython.cclass
class Columns:
    """The columns of one reading. `taken` takes what was read out of them, once."""

    plan: Plan
    root: cython.pointer[Column]
    source: cython.const[cython.uchar][::1]
    data: cython.pointer[cython.const[cython.uchar]]
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    memory: cython.longlong
    lenient: cython.bint
    extension: cython.int
    fault: cython.int
    array: cython.pointer[ArrowArray]

    def __init__(self, plan: Plan, rows: cython.Py_ssize_t):
        self.plan = plan
        self.extension = plan.program.extension
        if cython.compiled:
            self.root = copy_columns(plan.columns, plan.count)
            self.array = cython.cast(cython.pointer[ArrowArray], PyMem_RawCalloc(1, cython.sizeof(ArrowArray)))
            if self.root == cython.NULL or self.array == cython.NULL or not grow_column(self.root, rows or 1):
                raise MemoryError
        else:
            made = [_Uncompiled(*node[0]) for node in plan.nodes]
            for column, (_, first, following, tags) in zip(made, plan.nodes):
                column.first = made[first] if first >= 0 else None
                column.next = made[following] if following >= 0 else None
                column.tags = made[tags] if tags >= 0 else None
            self.root = made[0]

    def __dealloc__(self):
        if cython.compiled:
            if self.plan is not None:
                free_columns(self.root, self.plan.count)
            discard_array(self.array)

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
        places: cython.const[cython.longlong][::1] = starts
        present: cython.const[cython.uchar][::1] = valid
        row: cython.Py_ssize_t
        last: cython.Py_ssize_t = len(places) - 1
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
            self.at = places[row]
            self.end = places[row + 1]
            if not self.row():
                self.stop()
                return row
        return last

    def null(self):
        """Appends a null row."""
        if not (self.grow(self.root, 1) and self.append_null(self.root)):
            self.stop()

    @cython.cfunc
    @cython.exceptval(-1)
    def stop(self) -> cython.int:
        """Raises what no other row can do better about."""
        if self.fault == NO_MEMORY:
            raise MemoryError
        if self.fault == PAST_2_GIB:
            name = f"{self.plan.program.name} v{self.plan.program.version}"
            raise DecodeError("the columns pass 2 GiB: read fewer rows at a time", path=name)
        return 0

    def taken(self):
        """What was read, which leaves the columns empty.

        Compiled: the address of an ArrowArray (Arrow's C data interface), released with this object unless it is
        imported before. Uncompiled: (length, buffers, the same of each column inside).
        """
        if cython.compiled:
            if not export_column(self.root, self.array):
                raise MemoryError
            return cython.cast(cython.size_t, self.array)
        return _pieces(self.root)

    @cython.cfunc
    @cython.exceptval(check=False)
    def row(self) -> cython.bint:
        """Appends the row that `at` and `end` bound; nothing of it stays when it is no message."""
        root = self.root
        before: cython.Py_ssize_t = root.length
        self.fault = 0
        self.memory = MEMORY_FACTOR * (self.end - self.at) + MEMORY_BEYOND - root.weight
        if self.memory < 0:
            return False
        if self.grow(root, 1) and self.struct(root) and (self.lenient or self.at == self.end):
            return True
        self.cut(root, before)
        return False

    # -- columns

    @cython.cfunc
    @cython.exceptval(check=False)
    def grow(self, column: cython.pointer[Column], more: cython.longlong) -> cython.bint:
        """Makes room for `more` elements."""
        if column.length + more > MAX_INT32:
            self.fault = PAST_2_GIB
            return False
        if cython.compiled:
            if column.length + more > column.room and not grow_column(column, column.length + more):
                self.fault = NO_MEMORY
                return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def cut(self, column: cython.pointer[Column], length: cython.Py_ssize_t) -> cython.void:
        """Takes off what is after the first `length` elements: none of it may outlive a refusal."""
        if column.kind == NOT_HERE:
            return
        kept: cython.Py_ssize_t = length
        column.length = length
        if cython.compiled:
            if column.kind == LIST:
                kept = cython.cast(cython.p_int, column.values)[length] if column.room else 0
        else:
            if column.validity is not None:
                del column.validity[length:]
            if _has_ends(column.kind):
                kept = column.values[length]
                del column.values[length + 1 :]
                del column.data[kept:]
            else:
                del column.values[length * (column.size or 1) :]
        inside = column.first
        while inside:
            self.cut(inside, kept)
            inside = inside.next

    @cython.cfunc
    @cython.exceptval(check=False)
    def append_null(self, column: cython.pointer[Column]) -> cython.bint:
        if cython.compiled:
            if not mark_null(column):
                self.fault = NO_MEMORY
                return False
        else:
            if column.validity is None:
                column.validity = [True] * column.length
            column.validity.append(False)
        self.append_zero(column)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def set_valid(self, column: cython.pointer[Column]) -> cython.void:
        if cython.compiled:
            if column.validity != cython.NULL:
                set_bit(column.validity, column.length, True)
        elif column.validity is not None:
            column.validity.append(True)

    @cython.cfunc
    @cython.exceptval(check=False)
    def append_zero(self, column: cython.pointer[Column]) -> cython.void:
        """Appends what stands in memory where nothing is: zeros, an empty list or text, a struct of such."""
        inside = column.first
        if column.kind == NOT_HERE:
            return
        if column.kind == STRUCT:
            while inside:
                if cython.compiled:
                    if inside.validity != cython.NULL:
                        set_bit(inside.validity, inside.length, True)
                elif inside.kind != NOT_HERE:
                    self.set_valid(inside)
                self.append_zero(inside)
                inside = inside.next
        elif column.kind == BOOL:
            self.append_bool(column, 0)
            return
        elif column.size:
            if cython.compiled:
                memset(column.values + column.length * column.size, 0, column.size)
            else:
                column.values += bytes(column.size)
        elif cython.compiled:
            ends = cython.cast(cython.p_int, column.values) + column.length
            ends[1] = ends[0]
        else:
            column.values.append(column.values[-1])
        column.length += 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def append_bool(self, column: cython.pointer[Column], value: cython.int) -> cython.void:
        if cython.compiled:
            set_bit(column.values, column.length, value)
        else:
            column.values.append(value != 0)
        column.length += 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def append_text(
        self,
        column: cython.pointer[Column],
        chunk: cython.pointer[cython.const[cython.uchar]],
        size: cython.longlong,
    ) -> cython.bint:
        """Appends text or bytes of any length."""
        self.set_valid(column)
        if cython.compiled:
            ends = cython.cast(cython.p_int, column.values) + column.length
            used: cython.longlong = ends[0]
            if used + size > MAX_INT32:
                self.fault = PAST_2_GIB
                return False
            if used + size > column.data_room and not grow_data(column, used + size):
                self.fault = NO_MEMORY
                return False
            if size:
                memcpy(column.data + used, chunk, size)
            ends[1] = used + size
        else:
            if len(column.data) + size > MAX_INT32:
                self.fault = PAST_2_GIB
                return False
            column.data += chunk
            column.values.append(len(column.data))
        column.length += 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def append_default(self, column: cython.pointer[Column]) -> cython.bint:
        """Appends what stands for a tagged field that is left out."""
        if column.kind == NOT_HERE:
            return True
        if column.absent == NULL:
            return self.append_null(column)
        if column.absent == GIVEN and not column.size and column.kind != BOOL:
            return self.append_text(column, column.default_bytes, column.default_size)
        self.set_valid(column)
        if column.absent == DEFAULTS:
            inside = column.first
            while inside:
                if not self.append_default(inside):
                    return False
                inside = inside.next
            column.length += 1
        elif column.absent == GIVEN and column.kind == BOOL:
            self.append_bool(column, 1)
        elif column.absent == GIVEN:
            if cython.compiled:
                memcpy(column.values + column.length * column.size, column.default_bytes, column.size)
            else:
                column.values += column.default_bytes
            column.length += 1
        else:
            self.append_zero(column)
        return True

    # -- numbers

    @cython.cfunc
    @cython.exceptval(check=False)
    def uvarint(self) -> cython.longlong:
        """An unsigned varint of at most 32 bits (facts 2.2); -1 where there is none."""
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
        if flags & COMPACT:
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
            return -1 if flags & NULLABLE else -2
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
            column.values += chunk if column.kind == UUID or sys.byteorder == "big" else chunk[::-1]
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
        if self.extension == OPTIONAL_BUFFER and not self.optional_buffer(column):
            return False
        field = column.first
        while field != column.tags:
            if not self.value(field):
                return False
            field = field.next
        if self.extension == TAG_SECTION and not self.tag_section(column):
            return False
        while field:
            if field.length == column.length and not self.append_default(field):
                return False
            field = field.next
        self.set_valid(column)
        column.length += 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def tag_section(self, column: cython.pointer[Column]) -> cython.bint:
        """Tagged fields; what no field declares is passed over (facts 2.3)."""
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
        """Like `tag_section`, for the optional-buffer of the first KIP-482 (draft_dialects.md section 1)."""
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
        if field.kind == NOT_HERE:
            return False
        as_java: cython.bint = self.lenient and self.extension == TAG_SECTION  # which ignores the size
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
        if kind == STRING:
            return self.string(column)
        if kind == STRUCT:
            return self.maybe_struct(column) if column.flags & NULLABLE else self.struct(column)
        if kind == BOOL:
            return self.boolean(column)
        return self.data_bytes(column)

    @cython.cfunc
    @cython.exceptval(check=False)
    def maybe_struct(self, column: cython.pointer[Column]) -> cython.bint:
        """A nullable struct: its prefix is an int8 in its position, an uvarint in a tag (facts 2.1, 2.3)."""
        start: cython.Py_ssize_t = self.at
        prefix: cython.longlong
        if column.flags & TAGGED:
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
        self.memory -= count * element.weight
        if self.memory < 0:
            return False
        if not self.grow(element, count):
            return False
        if element.kind == STRUCT:
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
            if is_ascii(self.data + at, length):
                return self.append_text(column, self.data + at, length)
        try:
            if cython.compiled:
                PyUnicode_DecodeUTF8(cython.cast(cython.p_char, self.data + at), length, cython.NULL)
                return self.append_text(column, self.data + at, length)
            chunk = bytes(self.data[at : at + length])
            chunk.decode()
            return self.append_text(column, chunk, length)
        except UnicodeDecodeError:
            if not self.lenient:
                return False
        if cython.compiled:
            text: bytes = PyUnicode_DecodeUTF8(cython.cast(cython.p_char, self.data + at), length, b"replace").encode()
        else:
            text = chunk.decode(errors="replace").encode()
        return self.append_text(column, text, len(text))

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


def _has_ends(kind):
    return kind == LIST or kind not in _SIZES and kind not in (BOOL, STRUCT, NOT_HERE)


def _native(kind, value):
    """A default as it stands in a column."""
    if kind == STRING:
        return value.encode()
    if isinstance(value, UuidValue):
        return value.bytes
    if kind in _LETTERS:
        return pack(_LETTERS[kind], value)
    return b"\1" if kind == BOOL else bytes(value)


def _pieces(column):
    inside = []
    each = column.first
    while each:
        if each.kind != NOT_HERE:
            inside.append((each.place, _pieces(each)))
        each = each.next
    buffers = [None if column.validity is None else _bits(column.validity)]
    if column.kind != STRUCT:
        values = column.values
        buffers.append(
            array("i", values) if _has_ends(column.kind) else _bits(values) if column.kind == BOOL else values
        )
        if _has_ends(column.kind) and column.kind != LIST:
            buffers.append(column.data)
    return column.length, buffers, [piece for _, piece in sorted(inside, key=lambda pair: pair[0])]


def _bits(values):
    packed = bytearray((len(values) + 7) // 8)
    for place, value in enumerate(values):
        if value:
            packed[place >> 3] |= 1 << (place & 7)
    return packed
