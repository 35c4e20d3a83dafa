# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Message objects -> bytes, by a program. Valid Python that also compiles.

The `if cython.compiled` branches hold what only machine code can do: slots by offset, stores to memory.
"""

import struct
import uuid

import cython

from tagwire.errors import EncodeError, UnsupportedVersionError

if cython.compiled:
    from cython.cimports.cpython.mem import PyMem_Free, PyMem_Realloc
    from cython.cimports.libc.string import memcpy, memmove
    from cython.cimports.tagwire.kernel import programs
    from cython.cimports.tagwire.kernel.memory import (
        PyBytes_AS_STRING,
        PyBytes_FromStringAndSize,
        PyLong_AsLongLongAndOverflow,
        PyUnicode_AsUTF8AndSize,
        slot_offset,
        slot_read,
        slot_small_int,
        store16,
        store32,
        store64,
        store_128,
        store_small_ints,
    )
    from cython.cimports.tagwire.kernel.programs import Program
else:
    from tagwire.kernel import programs
    from tagwire.kernel.programs import Program

COMPILED = cython.compiled

MAX_STRING = cython.declare(cython.longlong, 32767)
MAX_INT32 = cython.declare(cython.longlong, 2147483647)
MAX_INT64 = cython.declare(cython.longlong, 9223372036854775807)
MAX_OPTIONAL_TAG = 0xFFFF
MAX_TAG = 0xFFFFFFFF

LEAST_PIECE = cython.declare(cython.Py_ssize_t, 16384)
"""Bytes below which a copy costs less than one more buffer to send."""

_UUID_CLASS = uuid.UUID
_PACK_FLOAT = struct.Struct(">d").pack
if cython.compiled:
    _UUID_INT = cython.declare(cython.Py_ssize_t, slot_offset(uuid.UUID.__dict__["int"]))


def encode(program: Program, message):
    """The bytes of `message`.

    Raises:
        EncodeError: a value cannot be written; names the field.
        UnsupportedVersionError: a field that this version cannot carry is set.
    """
    encoder: Encoder = Encoder(program)
    return encoder.run(message)


def encode_pieces(program: Program, message):
    """The bytes of `message` as a list of buffers, one after another: long bytes and records are the objects that the
    message holds, not copies. What could change is copied. Raises as `encode`."""
    encoder: Encoder = Encoder(program)
    encoder.apart = []
    return encoder.run(message)


@cython.final
@cython.cclass
class Encoder:
    """One encoding: the bytes so far, and the path to where it is.

    Attributes:
        apart: what stands between those bytes without being copied, each with its position; None to copy everything.
        measured: how many of the enclosing fields have a length before them that is found by the bytes that follow.
    """

    program: Program
    apart: list
    measured: cython.int
    out: bytearray
    at: cython.Py_ssize_t
    capacity: cython.Py_ssize_t
    memory: cython.p_char
    depth: cython.int
    rows: cython.int[64]
    indices: cython.longlong[64]

    def __init__(self, program):
        self.program = program
        self.at = 0
        self.depth = -1
        self.apart = None
        self.measured = 0
        if cython.compiled:
            self.memory = cython.NULL
            self.capacity = 0
            self.room(256)
        else:
            self.out = bytearray()
            self.rows = [-1] * programs.MAX_DEPTH
            self.indices = [-1] * programs.MAX_DEPTH

    if cython.compiled:

        def __dealloc__(self):
            PyMem_Free(self.memory)

    @cython.cfunc
    def run(self, message: object) -> object:
        try:
            self.struct_of(0, message)
        except AttributeError:
            raise self.failure("is not set") from None
        except UnicodeEncodeError as error:
            raise self.failure(f"cannot be UTF-8: {error.reason} at character {error.start}") from None
        if self.apart is None:
            return self.written(0, self.at)
        pieces: list = []
        start: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        for end, data in self.apart:
            pieces.append(self.written(start, end))
            pieces.append(data)
            start = end
        if start < self.at or not pieces:
            pieces.append(self.written(start, self.at))
        return pieces

    @cython.cfunc
    def written(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
        """The bytes between two positions."""
        if cython.compiled:
            return PyBytes_FromStringAndSize(self.memory + start, end - start)
        return bytes(self.out[start:end])

    @cython.cfunc
    def described(self) -> object:
        return self.program.path(self.rows, self.indices, self.depth)

    @cython.cfunc
    def failure(self, what: object) -> object:
        return EncodeError(f"{self.described()}: {what}")

    # -- bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def room(self, count: cython.Py_ssize_t) -> cython.int:
        """Makes room for `count` more bytes."""
        if cython.compiled:
            if self.at + count > self.capacity:
                capacity: cython.Py_ssize_t = (self.at + count) * 2
                moved = cython.cast(cython.p_char, PyMem_Realloc(self.memory, capacity))
                if moved == cython.NULL:
                    raise MemoryError
                self.memory = moved
                self.capacity = capacity
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_integer(self, value: cython.longlong, width: cython.int) -> cython.int:
        if cython.compiled:
            self.room(width)
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
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_uvarint(self, value: cython.ulonglong) -> cython.int:
        if cython.compiled:
            self.room(10)
            while value > 127:
                self.memory[self.at] = cython.cast(cython.char, (value & 127) | 128)
                self.at += 1
                value >>= 7
            self.memory[self.at] = cython.cast(cython.char, value)
            self.at += 1
        else:
            while value > 127:
                self.out.append((value & 127) | 128)
                value >>= 7
            self.out.append(value)
            self.at = len(self.out)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_bytes(self, data: bytes) -> cython.int:
        size: cython.Py_ssize_t = len(data)
        if cython.compiled:
            self.room(size)
            memcpy(self.memory + self.at, PyBytes_AS_STRING(data), size)
        else:
            self.out += data
        self.at += size
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_length(self, length: cython.longlong, flags: cython.int, width: cython.int) -> cython.int:
        """A length or count prefix; -1 writes null."""
        if flags & programs.COMPACT:
            if length < 127:
                return self.put_integer(length + 1, 1)
            return self.put_uvarint(length + 1)
        return self.put_integer(length, width)

    @cython.cfunc
    @cython.exceptval(-1)
    def insert_length(
        self, start: cython.Py_ssize_t, following: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.int:
        """Writes `length` as a uvarint at `start`, where one byte was kept free before the `following` ones."""
        width: cython.int = 1
        rest: cython.Py_ssize_t = length >> 7
        while rest:
            width += 1
            rest >>= 7
        if cython.compiled:
            if width > 1:
                self.room(width)
                memmove(self.memory + start + width, self.memory + start + 1, following)
            self.at = start
            self.put_uvarint(length)
            self.at = start + width + following
        else:
            value = bytes(self.out[start + 1 :])
            del self.out[start:]
            self.put_uvarint(length)
            self.out += value
            self.at = len(self.out)
        return 0

    # -- values

    @cython.cfunc
    @cython.exceptval(-1)
    def struct_of(self, number: cython.Py_ssize_t, source: object) -> cython.int:
        program: Program = self.program
        base: cython.Py_ssize_t = number * programs.SPAN
        first_tag: cython.Py_ssize_t = program.structs[base + 2]
        depth: cython.int = self.depth + 1
        row: cython.Py_ssize_t
        # The very class, not what passes for it: slots are read by their offset.
        if type(source) is not program.classes[number]:
            raise self.failure(f"needs a {program.classes[number].__qualname__}, not {type(source).__name__}")
        if depth >= programs.MAX_DEPTH:
            raise self.failure("structs are nested too deeply")
        if program.weights[number] < 0:
            raise program.missing_struct(number, self.described())
        self.depth = depth
        for row in range(program.structs[base + 4], program.structs[base + 5]):
            self.rows[depth] = row
            self.indices[depth] = -1
            value = program.read(source, program.code[row * programs.ROW + 2])
            if value is not program.defaults[row]:
                self.check_absent(row, value)
        if program.extension == programs.OPTIONAL_BUFFER:
            self.optional_buffer(source, first_tag, program.structs[base + 3], depth)
        if cython.compiled:
            code = program.code + program.structs[base] * programs.ROW
            number_here: cython.longlong = 0
            for row in range(program.structs[base], program.structs[base + 1]):
                at: cython.Py_ssize_t = program.offsets[code[2]]
                # The commonest values without a call for each; `value` writes all the others, and refuses.
                if code[1] & programs.ARRAY or not (
                    slot_small_int(source, at, cython.address(number_here)) and self.put_small(code[0], number_here)
                ):
                    self.rows[depth] = row
                    self.indices[depth] = -1
                    self.value(row, slot_read(source, at))
                code += programs.ROW
        else:
            for row in range(program.structs[base], program.structs[base + 1]):
                self.rows[depth] = row
                self.indices[depth] = -1
                self.value(row, program.read(source, program.code[row * programs.ROW + 2]))
        self.rows[depth] = -1
        if program.extension == programs.TAG_SECTION:
            self.tag_section(source, first_tag, program.structs[base + 3], depth)
        elif program.extension != programs.OPTIONAL_BUFFER:
            unknown = program.read(source, 0)
            if unknown:
                raise UnsupportedVersionError(
                    f"{self.described()}: tagged fields {list(unknown)} cannot be written: this version has none"
                )
        self.depth = depth - 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def put_small(self, operation: cython.int, number: cython.longlong) -> cython.bint:
        """Writes an int of at most 30 bits, where it fits the field and there is room; says whether it did."""
        if self.capacity - self.at < 8:
            return False
        if operation == programs.INT32:
            store32(self.memory + self.at, number)
            self.at += 4
            return True
        if operation == programs.INT16 and -32768 <= number <= 32767:
            store16(self.memory + self.at, number)
            self.at += 2
            return True
        if operation == programs.INT64:
            store64(self.memory + self.at, number)
            self.at += 8
            return True
        return False

    @cython.cfunc
    @cython.exceptval(-1)
    def check_absent(self, row: cython.Py_ssize_t, value: object) -> cython.int:
        existing = self.program.absence[row]
        if existing and not self.is_default(row, value):
            raise UnsupportedVersionError(
                f"{self.described()} is not at its default, and exists only in versions {existing}"
            )
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def is_default(self, row: cython.Py_ssize_t, value: object) -> cython.int:
        """Whether `value` is the row's default, as docs/wire-format.md#absent-fields compares."""
        default = self.program.defaults[row]
        if value is default:
            return True
        if value is None or default is None:
            return False
        if default is list:
            return isinstance(value, (list, tuple)) and len(value) == 0
        if isinstance(default, type):
            return self.is_default_struct(self.program.code[row * programs.ROW + 3], value)
        return value == default

    @cython.cfunc
    @cython.exceptval(-1)
    def is_default_struct(self, number: cython.Py_ssize_t, value: object) -> cython.int:
        """Whether every field of a struct is at its default, and no unknown tag is there."""
        program: Program = self.program
        row: cython.Py_ssize_t
        if type(value) is not program.classes[number] or program.read(value, 0):
            return False
        for row in range(program.structs[number * programs.SPAN], program.structs[number * programs.SPAN + 5]):
            if program.code[row * programs.ROW] != programs.NOT_HERE:
                if not self.is_default(row, program.read(value, program.code[row * programs.ROW + 2])):
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def tag_section(
        self, source: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> cython.int:
        """Writes the tagged fields that are not at their default, and the unknown ones, in the order of their tags."""
        if self.all_default(source, first, last):
            return self.put_integer(0, 1)
        entries: list = self.entries(source, first, last, depth, MAX_TAG)
        self.put_uvarint(len(entries))
        start: cython.Py_ssize_t
        row: cython.Py_ssize_t
        for tag, row, value in entries:
            self.put_uvarint(tag)
            if row < 0:
                self.put_uvarint(len(value))
                self.put_bytes(value)
                continue
            self.rows[depth] = row
            self.indices[depth] = -1
            start = self.at
            self.put_integer(0, 1)
            self.measured += 1
            self.value(row, value)
            self.measured -= 1
            self.insert_length(start, self.at - start - 1, self.at - start - 1)
        self.rows[depth] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def all_default(self, source: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        """Whether a struct has no unknown tags and its tagged fields hold the very objects that are their defaults."""
        program: Program = self.program
        row: cython.Py_ssize_t
        if program.read(source, 0):
            return False
        for row in range(first, last):
            if program.code[row * programs.ROW] != programs.NOT_HERE:
                if program.read(source, program.code[row * programs.ROW + 2]) is not program.defaults[row]:
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def optional_buffer(
        self, source: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> cython.int:
        """Like `tag_section`, for the optional-buffer of the first KIP-482 (docs/dialects.md#optional-fields)."""
        entries: list = self.entries(source, first, last, depth, MAX_OPTIONAL_TAG)
        start: cython.Py_ssize_t
        row: cython.Py_ssize_t
        size: cython.Py_ssize_t
        for tag, row, value in entries:
            self.rows[depth] = row
            self.indices[depth] = -1
            start = self.at
            self.put_integer(0, 1)
            self.put_integer(tag, 2)
            if row < 0:
                self.put_bytes(value)
            else:
                self.measured += 1
                self.value(row, value)
                self.measured -= 1
            size = self.at - start - 3
            if size == 0:
                raise self.failure(f"tag {tag} holds no bytes: its length would end the optional-buffer")
            self.insert_length(start, size + 2, size << 1)
        self.rows[depth] = -1
        return self.put_uvarint(0)

    @cython.cfunc
    def entries(
        self,
        source: object,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        depth: cython.int,
        highest: object,
    ) -> list:
        """What extends a struct, as (tag, row, value) in the order of the tags; the row of an unknown tag is -1."""
        program: Program = self.program
        row: cython.Py_ssize_t
        found: list = []
        for row in range(first, last):
            if program.code[row * programs.ROW] == programs.NOT_HERE:
                continue
            self.rows[depth] = row
            self.indices[depth] = -1
            value = program.read(source, program.code[row * programs.ROW + 2])
            if not self.is_default(row, value):
                found.append((program.code[row * programs.ROW + 4], row, value))
        self.rows[depth] = -1
        unknown = program.read(source, 0)
        if unknown:
            self.add_unknown(found, unknown, first, last, highest)
        return found

    @cython.cfunc
    @cython.exceptval(-1)
    def add_unknown(
        self, found: list, unknown: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, highest: object
    ) -> cython.int:
        if not isinstance(unknown, dict):
            raise self.failure(f"unknown_tags must be a dict, not {type(unknown).__name__}")
        row: cython.Py_ssize_t
        declared = set()
        for row in range(first, last):
            declared.add(self.program.code[row * programs.ROW + 4])
        for tag, value in unknown.items():
            if not isinstance(tag, int) or not 0 <= tag <= highest:
                raise self.failure(f"{_shown(tag)} is no tag: unknown_tags maps ints from 0 to {highest} to bytes")
            if tag in declared:
                raise self.failure(f"unknown tag {tag} collides with a declared one")
            found.append((tag, -1, self.copied(value)))
        found.sort(key=_tag_of)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def value(self, row: cython.Py_ssize_t, value: object) -> cython.int:
        code = self.program.code
        operation: cython.int = code[row * programs.ROW]
        flags: cython.int = code[row * programs.ROW + 1]
        child: cython.int = code[row * programs.ROW + 3]
        if flags & programs.ARRAY:
            return self.array_of(operation, flags, child, value)
        if operation == programs.STRUCT and flags & programs.NULLABLE:
            if flags & programs.TAGGED:
                self.put_uvarint(0 if value is None else 1)
            else:
                self.put_integer(-1 if value is None else 1, 1)
            if value is None:
                return 0
        return self.element(operation, flags, child, value)

    @cython.cfunc
    @cython.exceptval(-1)
    def array_of(self, operation: cython.int, flags: cython.int, child: cython.int, value: object) -> cython.int:
        if value is None:
            return self.put_null(flags, 4)
        if not isinstance(value, (list, tuple)):
            raise self.failure(f"needs a list, not {type(value).__name__}")
        count: cython.Py_ssize_t = len(value)
        self.put_length(count, flags, 4)
        depth: cython.int = self.depth
        element_flags: cython.int = flags & programs.COMPACT
        i: cython.Py_ssize_t = 0
        if cython.compiled:
            if operation == programs.INT32 and type(value) is list:
                return self.int32_array(value)
        for item in value:
            self.indices[depth] = i
            if operation == programs.STRUCT:
                self.struct_of(child, item)
            else:
                self.element(operation, element_flags, child, item)
            i += 1
        if i != count:
            raise self.failure("changed its length while it was written")
        self.indices[depth] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def int32_array(self, value: list) -> cython.int:
        """The elements of an array of int32, compiled only: nothing runs between them that could change the list."""
        depth: cython.int = self.depth
        i: cython.Py_ssize_t
        self.room(4 * len(value))
        written: cython.Py_ssize_t = store_small_ints(value, self.memory + self.at)
        self.at += 4 * written
        for i in range(written, len(value)):
            self.indices[depth] = i
            self.put_checked(value[i], 4, -2147483648, 2147483647)
        self.indices[depth] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_null(self, flags: cython.int, width: cython.int) -> cython.int:
        if not flags & programs.NULLABLE:
            raise self.failure("cannot be null")
        return self.put_length(-1, flags, width)

    @cython.cfunc
    @cython.exceptval(-1)
    def element(self, operation: cython.int, flags: cython.int, child: cython.int, value: object) -> cython.int:
        if operation == programs.STRUCT:
            return self.struct_of(child, value)
        if operation == programs.INT32:
            return self.put_checked(value, 4, -2147483648, 2147483647)
        if operation == programs.STRING:
            return self.string(flags, value)
        if operation == programs.INT16:
            return self.put_checked(value, 2, -32768, 32767)
        if operation == programs.INT64:
            return self.put_checked(value, 8, -MAX_INT64 - 1, MAX_INT64)  # C has no literal for the lowest
        if operation == programs.BOOL:
            if value is not True and value is not False:
                raise self.failure(f"needs a bool, not {_shown(value)}")
            return self.put_integer(1 if value else 0, 1)
        if operation == programs.INT8:
            return self.put_checked(value, 1, -128, 127)
        if operation == programs.UUID:
            if not isinstance(value, _UUID_CLASS):
                raise self.failure(f"needs a uuid.UUID, not {type(value).__name__}")
            if cython.compiled and type(value) is _UUID_CLASS:
                self.room(16)
                store_128(slot_read(value, _UUID_INT), self.memory + self.at)
                self.at += 16
                return 0
            return self.put_bytes(value.bytes)
        if operation == programs.RECORDS or operation == programs.BYTES:
            return self.data_bytes(flags, value)
        if operation == programs.UINT16:
            return self.put_checked(value, 2, 0, 65535)
        if operation == programs.UINT32:
            return self.put_checked(value, 4, 0, 4294967295)
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            raise self.failure(f"needs a float, not {_shown(value)}")
        try:
            return self.put_bytes(_PACK_FLOAT(value))
        except (OverflowError, struct.error):  # an int beyond every float
            raise self.failure(f"{_shown(value)} is out of the range of a float") from None

    @cython.cfunc
    @cython.exceptval(-1)
    def put_checked(
        self, value: object, width: cython.int, lowest: cython.longlong, highest: cython.longlong
    ) -> cython.int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.failure(f"needs an int, not {_shown(value)}")
        overflow: cython.int = 0
        number: cython.longlong
        if cython.compiled:
            number = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
        else:
            number = value
        if overflow or number < lowest or number > highest:
            raise self.failure(f"{_shown(value)} is out of range: {lowest} to {highest}")
        return self.put_integer(number, width)

    @cython.cfunc
    @cython.exceptval(-1)
    def string(self, flags: cython.int, value: object) -> cython.int:
        if value is None:
            return self.put_null(flags, 2)
        if not isinstance(value, str):
            raise self.failure(f"needs a str, not {type(value).__name__}")
        size: cython.Py_ssize_t = 0
        if cython.compiled:
            text: cython.p_const_char = PyUnicode_AsUTF8AndSize(value, cython.address(size))
        else:
            text = str.encode(value, "utf-8")
            size = len(text)
        if size > MAX_STRING:
            raise self.failure(f"{size} bytes of UTF-8: the limit is {MAX_STRING}")
        self.put_length(size, flags, 2)
        if cython.compiled:
            self.room(size)
            memcpy(self.memory + self.at, text, size)
            self.at += size
        else:
            self.put_bytes(text)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def data_bytes(self, flags: cython.int, value: object) -> cython.int:
        if value is None:
            return self.put_null(flags, 4)
        size: cython.Py_ssize_t
        if self.apart is not None and self.measured == 0:
            size = _stays(value)
            if LEAST_PIECE <= size <= MAX_INT32:
                self.put_length(size, flags, 4)
                self.apart.append((self.at, value))
                return 0
        data: bytes = value if type(value) is bytes else self.copied(value)
        if len(data) > MAX_INT32:
            raise self.failure(f"{len(data)} bytes: the limit is {MAX_INT32}")
        self.put_length(len(data), flags, 4)
        return self.put_bytes(data)

    @cython.cfunc
    def copied(self, value: object) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise self.failure(f"needs bytes, not {type(value).__name__}")
        try:
            return bytes(value)
        except ValueError as error:  # a memoryview that was released
            raise self.failure(f"cannot be read: {error}") from None


@cython.cfunc
@cython.exceptval(-1)
def _stays(value: object) -> cython.Py_ssize_t:
    """The size of bytes that nobody can change; 0 for all else."""
    if type(value) is bytes:
        return len(value)
    if type(value) is not memoryview:
        return 0
    try:
        is_plain = type(value.obj) is bytes and value.c_contiguous and value.ndim == 1 and value.itemsize == 1
        return len(value) if is_plain else 0
    except ValueError:  # it was released
        return 0


def _tag_of(entry):
    return entry[0]


def _shown(value):
    """What an error says of a wrong value: a number while it is short, else its type."""
    if isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int) and value.bit_length() <= 128:
        return str(int(value))
    return type(value).__name__
