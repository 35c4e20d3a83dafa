# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Arrow columns of messages: which there are, and their memory. Valid Python that also compiles.

A `Plan` is a program unrolled into a tree of columns, one for each field of each place where its struct stands; a
`Store` is such a tree being filled. message_columns.py fills it. Compiled, the memory goes to Arrow by its C data
interface; uncompiled, as buffers.
"""

from __future__ import annotations

from array import array
from struct import pack
from uuid import UUID as UuidValue

import cython

from tagwire.errors import DecodeError, SpecError

if cython.compiled:
    from cython.cimports.libc.string import memcpy, memset
    from cython.cimports.tagwire.kernel import programs
    from cython.cimports.tagwire.kernel.programs import Program
else:
    from tagwire.kernel import programs
    from tagwire.kernel.programs import Program

    LIST, FORBIDDEN = 15, 64
    ZERO, NULL, GIVEN, DEFAULTS = 0, 1, 2, 3
    PAST_2_GIB, NO_MEMORY = 1, 2

COMPILED = cython.compiled

MAX_INT32 = cython.declare(cython.longlong, 2147483647)
MAX_COLUMNS = cython.declare(cython.Py_ssize_t, 10000)

_SIZES = {
    programs.INT8: 1,
    programs.INT16: 2,
    programs.UINT16: 2,
    programs.INT32: 4,
    programs.UINT32: 4,
    programs.INT64: 8,
    programs.FLOAT64: 8,
    programs.UUID: 16,
}
_LETTERS = {
    programs.INT8: "b",
    programs.INT16: "h",
    programs.UINT16: "H",
    programs.INT32: "i",
    programs.UINT32: "I",
    programs.INT64: "q",
    programs.FLOAT64: "d",
}


class _Uncompiled:
    """A column without C: the fields of the struct of message_columns.pxd."""

    def __init__(self, kind, flags, tag, size, absent, place, children, weight, default_bytes):
        self.kind, self.flags, self.tag, self.size, self.absent, self.place = kind, flags, tag, size, absent, place
        self.children, self.weight, self.default_bytes = children, weight, default_bytes
        self.default_size = len(default_bytes)
        self.first = self.next = self.tags = None
        self.length = self.room = 0
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

    def __init__(self, program: Program):
        self.program = program
        self.nodes = []
        root: cython.Py_ssize_t = self.add(programs.STRUCT, 0, -1)
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
    @cython.exceptval(-1, check=True)
    def add(self, kind: cython.int, flags: cython.int, tag: cython.int) -> cython.Py_ssize_t:
        if len(self.nodes) >= MAX_COLUMNS:
            raise SpecError(f"{self.program.name} v{self.program.version} has more than {MAX_COLUMNS} columns")
        size: cython.int = _SIZES.get(kind, 0)
        weight: cython.longlong = 0 if kind == programs.STRUCT else size or (1 if kind == programs.BOOL else 4)
        self.nodes.append([[kind, flags, tag, size, ZERO, 0, 0, weight, b""], -1, -1, -1])
        return len(self.nodes) - 1

    @cython.cfunc
    def add_struct(self, at: cython.Py_ssize_t, number: cython.Py_ssize_t, depth: cython.int) -> tuple:
        """The columns of the fields of struct `number` below column `at`; gives their outlines."""
        program: Program = self.program
        base: cython.Py_ssize_t = number * programs.SPAN
        row: cython.Py_ssize_t
        values = self.nodes[at][0]
        if depth >= programs.MAX_DEPTH or program.weights[number] < 0:
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
        kind: cython.int = program.code[row * programs.ROW]
        flags: cython.int = program.code[row * programs.ROW + 1]
        child: cython.int = program.code[row * programs.ROW + 3]
        default = program.defaults[row]
        is_list: cython.bint = (flags & programs.ARRAY) != 0
        at: cython.Py_ssize_t = self.add(LIST if is_list else kind, flags, program.code[row * programs.ROW + 4])
        values = self.nodes[at][0]
        if kind == programs.NOT_HERE:
            values[5] = -1
            return None
        inside: tuple = ()
        if is_list:
            element: cython.Py_ssize_t = self.add(kind, flags & programs.COMPACT, -1)
            self.nodes[at][1] = element
            values[6] = 1
            if kind == programs.STRUCT:
                inside = self.add_struct(element, child, depth + 1)
            inside = (("element", kind, False, inside),)
        elif kind == programs.STRUCT:
            inside = self.add_struct(at, child, depth + 1)
        nullable: cython.bint = (flags & programs.NULLABLE) != 0 or default is None
        if default is None:
            values[4] = NULL
        elif kind == programs.STRUCT and not is_list:
            values[4] = DEFAULTS
        elif not is_list and default:
            values[4] = GIVEN
            values[8] = _native(kind, default)
            values[7] += 0 if values[3] else len(values[8])
        values[7] += nullable
        return program.attributes[program.code[row * programs.ROW + 2]], LIST if is_list else kind, nullable, inside


@cython.cclass
class Store:
    """Columns being filled. Its methods tell by False that `fault` holds what stopped them."""

    def __init__(self, plan: Plan, rows: cython.Py_ssize_t):
        self.plan = plan
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
        if column.kind == programs.NOT_HERE:
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
        if column.kind == programs.NOT_HERE:
            return
        if column.kind == programs.STRUCT:
            while inside:
                if cython.compiled:
                    if inside.validity != cython.NULL:
                        set_bit(inside.validity, inside.length, True)
                elif inside.kind != programs.NOT_HERE:
                    self.set_valid(inside)
                self.append_zero(inside)
                inside = inside.next
        elif column.kind == programs.BOOL:
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
        if column.kind == programs.NOT_HERE:
            return True
        if column.absent == NULL:
            return self.append_null(column)
        if column.absent == GIVEN and not column.size and column.kind != programs.BOOL:
            return self.append_text(column, column.default_bytes, column.default_size)
        self.set_valid(column)
        if column.absent == DEFAULTS:
            inside = column.first
            while inside:
                if not self.append_default(inside):
                    return False
                inside = inside.next
            column.length += 1
        elif column.absent == GIVEN and column.kind == programs.BOOL:
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


def _has_ends(kind):
    return kind == LIST or kind not in _SIZES and kind not in (programs.BOOL, programs.STRUCT, programs.NOT_HERE)


def _native(kind, value):
    """A default as it stands in a column."""
    if kind == programs.STRING:
        return value.encode()
    if isinstance(value, UuidValue):
        return value.bytes
    if kind in _LETTERS:
        return pack(_LETTERS[kind], value)
    return b"\1" if kind == programs.BOOL else bytes(value)


def _pieces(column):
    inside = []
    each = column.first
    while each:
        if each.kind != programs.NOT_HERE:
            inside.append((each.place, _pieces(each)))
        each = each.next
    buffers = [None if column.validity is None else _bits(column.validity)]
    if column.kind != programs.STRUCT:
        values = column.values
        buffers.append(
            array("i", values) if _has_ends(column.kind) else _bits(values) if column.kind == programs.BOOL else values
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
