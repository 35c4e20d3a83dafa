# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Bytes -> message objects, by a program. Valid Python that also compiles.

The `if cython.compiled` branches hold what only machine code can do: slots by offset, loads from memory.
"""

import struct
import uuid

import cython

from tagwire.errors import DecodeError

if cython.compiled:
    from cython.cimports.tagwire.kernel import programs
    from cython.cimports.tagwire.kernel.memory import (
        Py_INCREF,
        PyBytes_AS_STRING,
        PyBytes_FromStringAndSize,
        PyList_SET_ITEM,
        PyUnicode_DecodeUTF8,
        fill_small,
        int32_list,
        load16,
        load32,
        load64,
        new_list,
        new_untracked,
        slot_int32_list,
        slot_number,
        slot_offset,
        slot_write,
        unsigned_128,
    )
    from cython.cimports.tagwire.kernel.programs import Program
else:
    from tagwire.kernel import programs
    from tagwire.kernel.programs import Program

COMPILED = cython.compiled

MAX_STRING = cython.declare(cython.longlong, 32767)
MAX_INT32 = cython.declare(cython.longlong, 2147483647)

# What decoding may take in memory: so many times its input, and so much beyond (docs/wire-format.md#memory). Few
# bytes can stand for many objects: a struct whose fields are all at their defaults takes one.
MEMORY_FACTOR = cython.declare(cython.longlong, 64)
MEMORY_BEYOND = cython.declare(cython.longlong, 1 << 20)
LIST_WEIGHT = cython.declare(cython.longlong, 64)
PLACE_WEIGHT = cython.declare(cython.longlong, 20)  # a place in a list, and in the list that it outgrew
VALUE_WEIGHT = cython.declare(cython.longlong, 32)
TEXT_WEIGHT = cython.declare(cython.longlong, 56)
VIEW_WEIGHT = cython.declare(cython.longlong, 192)
TAG_WEIGHT = cython.declare(cython.longlong, 160)

_UNPACK_FLOAT = struct.Struct(">d").unpack_from
_UUID_CLASS = uuid.UUID
_ZERO_UUID = uuid.UUID(int=0)
_UNKNOWN_SAFETY = uuid.SafeUUID.unknown
if cython.compiled:
    fill_small()
    _UUID_INT = cython.declare(cython.Py_ssize_t, slot_offset(uuid.UUID.__dict__["int"]))
    _UUID_SAFETY = cython.declare(cython.Py_ssize_t, slot_offset(uuid.UUID.__dict__["is_safe"]))


def decode(program: Program, data, at, lenient, whole):
    """The object that starts at byte `at` of `data`, and the position after it.

    Args:
        program: the message and version.
        data: a contiguous buffer of bytes.
        at: first byte.
        lenient: read as Kafka's Java reader does.
        whole: refuse bytes after the object, unless lenient.

    Raises:
        DecodeError: with the field's path and the byte offset.
    """
    decoder: Decoder = Decoder(program, data, at, lenient)
    try:
        result = decoder.struct_at(0)
    except UnicodeDecodeError as error:
        decoder.at = decoder.text + error.start
        raise decoder.failure("not UTF-8") from None
    if whole and not lenient and decoder.at != decoder.end:
        raise decoder.failure(f"{decoder.end - decoder.at} bytes follow the message")
    return result, decoder.at


@cython.final
@cython.cclass
class Decoder:
    """One decoding: the input, the position, and the path to where it is."""

    program: Program
    held: object
    source: object
    view: cython.const[cython.uchar][::1]
    data: cython.pointer[cython.const[cython.uchar]]
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    memory: cython.longlong
    text: cython.Py_ssize_t
    lenient: cython.bint
    depth: cython.int
    rows: cython.int[64]
    indices: cython.longlong[64]

    def __init__(self, program, source, at, lenient):
        self.program = program
        self.held = source
        self.source = None
        if cython.compiled and type(source) is bytes:
            self.data = cython.cast(cython.pointer[cython.const[cython.uchar]], PyBytes_AS_STRING(source))
            self.end = len(source)
        else:
            self.look()
        if at < 0 or at > self.end:
            raise DecodeError(f"starts at byte {at} of {self.end}", path=f"{program.name} v{program.version}")
        self.at = at
        self.memory = MEMORY_FACTOR * (self.end - self.at) + MEMORY_BEYOND
        self.lenient = lenient
        self.depth = -1

    @cython.cfunc
    @cython.exceptval(-1)
    def look(self) -> cython.int:
        """Takes a view of the input: its slices are what a `records` field is."""
        view = _bytes_of(memoryview(self.held))
        self.source = view
        self.end = view.nbytes
        if cython.compiled:
            self.view = view
            self.data = cython.address(self.view[0]) if self.end else cython.NULL
        else:
            self.data = view
            self.rows = [-1] * programs.MAX_DEPTH
            self.indices = [-1] * programs.MAX_DEPTH
        return 0

    @cython.cfunc
    def slice(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
        """A view of the input's bytes from `start` to `end`."""
        if self.source is None:
            self.source = memoryview(self.held)
        return self.source[start:end]

    @cython.cfunc
    def described(self) -> object:
        return self.program.path(self.rows, self.indices, self.depth)

    @cython.cfunc
    def failure(self, what: object) -> object:
        return DecodeError(what, path=self.described(), offset=self.at)

    @cython.cfunc
    @cython.exceptval(-1)
    def need(self, count: cython.longlong) -> cython.int:
        if count > self.end - self.at:
            raise self.failure(f"needs {count} bytes, {self.end - self.at} are left")
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def take_memory(self, weight: cython.longlong) -> cython.int:
        """Counts memory before it is taken: a message must not grow out of proportion to its bytes."""
        self.memory -= weight
        if self.memory < 0:
            raise self.failure(f"takes more than {MEMORY_FACTOR} times the memory of its bytes")
        return 0

    # -- numbers

    @cython.cfunc
    @cython.exceptval(-9223372036854775807, check=True)
    def integer(self, width: cython.int) -> cython.longlong:
        """A big-endian two's complement integer of `width` bytes."""
        self.need(width)
        at: cython.Py_ssize_t = self.at
        self.at = at + width
        if cython.compiled:
            if width == 4:
                return load32(self.data + at)
            if width == 2:
                return load16(self.data + at)
            if width == 8:
                return load64(self.data + at)
            return cython.cast(cython.schar, self.data[at])
        return int.from_bytes(self.data[at : at + width], "big", signed=True)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def uvarint(self) -> cython.longlong:
        """An unsigned varint of at most 32 bits (docs/wire-format.md#varints)."""
        value: cython.longlong = 0
        shift: cython.int = 0
        byte: cython.longlong
        start: cython.Py_ssize_t = self.at
        while True:
            if self.at >= self.end:
                raise self.failure("ends inside a varint")
            byte = self.data[self.at]
            self.at += 1
            if shift == 28:
                if byte > 127:
                    self.at = start
                    raise self.failure("a varint longer than 5 bytes")
                if byte > 15:
                    if not self.lenient:
                        self.at = start
                        raise self.failure("a varint with bits beyond 32")
                    byte &= 15
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    @cython.cfunc
    @cython.exceptval(-2, check=True)
    def length(self, flags: cython.int, width: cython.int, what: object) -> cython.longlong:
        """A length or count prefix; -1 for null, which is refused here where the field is not nullable."""
        start: cython.Py_ssize_t = self.at
        length: cython.longlong
        if flags & programs.COMPACT:
            if start < self.end and 0 < self.data[start] < 128:
                self.at = start + 1
                return self.data[start] - 1
            length = self.uvarint()
            if length > MAX_INT32 and self.lenient:
                # Java subtracts in 32 bits: 2^31 wraps to the largest length, anything above is negative, so null.
                length = MAX_INT32 if length == MAX_INT32 + 1 else -1
            else:
                length -= 1
        else:
            length = self.integer(width)
            if length < -1 and not self.lenient:
                self.at = start
                raise self.failure(f"{what} {length} is negative")
        if length < 0:
            if not flags & programs.NULLABLE:
                self.at = start
                raise self.failure("null where the field is not nullable")
            return -1
        return length

    # -- structs and what extends them

    @cython.cfunc
    def struct_at(self, number: cython.Py_ssize_t) -> object:
        """The struct `number` of the program, its extension included."""
        program: Program = self.program
        base: cython.Py_ssize_t = number * programs.SPAN
        first_tag: cython.Py_ssize_t = program.structs[base + 2]
        depth: cython.int = self.depth + 1
        row: cython.Py_ssize_t
        if depth >= programs.MAX_DEPTH:
            raise self.failure("structs are nested too deeply")
        if program.weights[number] < 0:
            raise program.missing_struct(number, self.described())
        self.depth = depth
        self.rows[depth] = -1
        self.take_memory(program.weights[number])
        unknown = None
        if cython.compiled:
            result = new_untracked(program.classes[number])
        else:
            result = program.create(number)
        for row in range(first_tag, program.structs[base + 5]):
            if program.code[row * programs.ROW] != programs.NOT_HERE:
                default = program.defaults[row]
                if default is list or isinstance(default, type):
                    default = program.fresh_default(row)
                if cython.compiled:
                    slot_write(result, program.offsets[program.code[row * programs.ROW + 2]], default)
                else:
                    program.write(result, program.code[row * programs.ROW + 2], default)
        if program.extension == programs.OPTIONAL_BUFFER:
            unknown = self.optional_buffer(result, first_tag, program.structs[base + 3], depth)
        self.fields(result, program.structs[base], program.structs[base + 1], depth)
        if program.extension == programs.TAG_SECTION:
            if self.at < self.end and self.data[self.at] == 0:
                self.at += 1
            else:
                self.rows[depth] = -1
                unknown = self.tag_section(result, first_tag, program.structs[base + 3], depth)
        if cython.compiled:
            slot_write(result, program.offsets[0], unknown)
        else:
            program.write(result, 0, unknown)
        self.depth = depth - 1
        return result

    @cython.cfunc
    @cython.exceptval(-1)
    def fields(
        self, target: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> cython.int:
        """Reads the fields that stand in their order into `target`."""
        program: Program = self.program
        row: cython.Py_ssize_t
        if cython.compiled:
            code = program.code + first * programs.ROW
            offsets = program.offsets
            data = self.data
            end: cython.Py_ssize_t = self.end
            at: cython.Py_ssize_t = self.at
            for row in range(first, last):
                # The commonest fields without a call for each; `value` reads all the others, and what is cut short.
                if code[0] == programs.INT32 and not code[1] & programs.ARRAY and end - at >= 4:
                    slot_number(target, offsets[code[2]], load32(data + at))
                    at += 4
                elif code[0] == programs.INT16 and not code[1] & programs.ARRAY and end - at >= 2:
                    slot_number(target, offsets[code[2]], load16(data + at))
                    at += 2
                elif code[0] == programs.INT64 and not code[1] & programs.ARRAY and end - at >= 8:
                    slot_number(target, offsets[code[2]], load64(data + at))
                    at += 8
                elif (
                    code[0] == programs.INT32
                    and code[1] & programs.ARRAY
                    and code[1] & programs.COMPACT
                    and end > at
                    and 0 < data[at] < 128
                    and end - at > 4 * (data[at] - 1)
                    and self.memory >= LIST_WEIGHT + 127 * (PLACE_WEIGHT + VALUE_WEIGHT)
                ):
                    count: cython.Py_ssize_t = data[at] - 1
                    self.memory -= LIST_WEIGHT + count * (PLACE_WEIGHT + VALUE_WEIGHT)
                    slot_int32_list(target, offsets[code[2]], data + at + 1, count)
                    at += 1 + 4 * count
                else:
                    self.at = at
                    self.rows[depth] = row
                    self.indices[depth] = -1
                    slot_write(target, offsets[code[2]], self.value(row))
                    at = self.at
                code += programs.ROW
            self.at = at
        else:
            for row in range(first, last):
                self.rows[depth] = row
                self.indices[depth] = -1
                program.write(target, program.code[row * programs.ROW + 2], self.value(row))
        return 0

    @cython.cfunc
    def tag_section(
        self, target: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> object:
        """Reads tagged fields into `target`; what no row declares is returned as {tag: bytes}, or None.

        Source: docs/wire-format.md#tagged-fields.
        """
        count: cython.longlong = self.uvarint()
        if count == 0 or (self.lenient and count > MAX_INT32):  # to Java a negative count, so an empty section
            return None
        if count * 2 > self.end - self.at:
            raise self.failure(f"{count} tagged fields in {self.end - self.at} bytes")
        code = self.program.code
        unknown = None
        before: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        start: cython.Py_ssize_t
        row: cython.Py_ssize_t = first
        while count > 0:
            count -= 1
            start = self.at
            tag = self.uvarint()
            if tag <= before:
                if not self.lenient:
                    self.at = start
                    raise self.failure(f"tag {tag} comes after tag {before}")
                row = first
            before = tag
            size = self.uvarint()
            while row < last and code[row * programs.ROW + 4] < tag:
                row += 1
            if row < last and code[row * programs.ROW + 4] == tag:
                if code[row * programs.ROW] == programs.NOT_HERE:
                    self.at = start
                    raise self.failure(f"tag {tag} is not valid for version {self.program.version}")
                self.known_tag(target, row, size, depth)
            else:
                unknown = self.unknown_tag(unknown, tag, size)
        return unknown

    @cython.cfunc
    def optional_buffer(
        self, target: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> object:
        """Like `tag_section`, for the optional-buffer of the first KIP-482 (docs/dialects.md#optional-fields)."""
        code = self.program.code
        unknown = None
        before: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        start: cython.Py_ssize_t
        row: cython.Py_ssize_t = first
        while True:
            start = self.at
            size = self.uvarint()
            if self.at - start > 1 and self.data[self.at - 1] == 0:
                self.at = start
                raise self.failure("a length in more bytes than it needs")
            if size & 1:
                self.at = start
                raise self.failure(f"length {-((size + 1) >> 1)} is negative")
            size >>= 1
            if size == 0:
                return unknown
            start = self.at
            tag = self.integer(2) & 0xFFFF
            if tag <= before:
                self.at = start
                raise self.failure(f"tag {tag} comes after tag {before}")
            before = tag
            while row < last and code[row * programs.ROW + 4] < tag:
                row += 1
            if row < last and code[row * programs.ROW + 4] == tag:
                if code[row * programs.ROW] == programs.NOT_HERE:
                    self.at = start
                    raise self.failure(f"tag {tag} is not valid for version {self.program.version}")
                self.known_tag(target, row, size, depth)
            else:
                unknown = self.unknown_tag(unknown, tag, size)

    @cython.cfunc
    @cython.exceptval(-1)
    def known_tag(self, target: object, row: cython.Py_ssize_t, size: cython.longlong, depth: cython.int) -> cython.int:
        self.rows[depth] = row
        self.indices[depth] = -1
        as_java: cython.bint = self.lenient and self.program.extension == programs.TAG_SECTION  # which ignores the size
        if size > self.end - self.at and not as_java:
            raise self.failure(f"claims {size} bytes, {self.end - self.at} are left")
        start: cython.Py_ssize_t = self.at
        self.program.write(target, self.program.code[row * programs.ROW + 2], self.value(row))
        if self.at != start + size and not as_java:
            raise self.failure(f"claims {size} bytes, its value takes {self.at - start}")
        self.rows[depth] = -1
        return 0

    @cython.cfunc
    def unknown_tag(self, unknown: object, tag: cython.longlong, size: cython.longlong) -> object:
        if size > self.end - self.at:
            raise self.failure(f"tag {tag} claims {size} bytes, {self.end - self.at} are left")
        if unknown is None:
            unknown = {}
        self.take_memory(TAG_WEIGHT + size)
        unknown[tag] = bytes(self.slice(self.at, self.at + size))
        self.at += size
        return unknown

    # -- values

    @cython.cfunc
    def value(self, row: cython.Py_ssize_t) -> object:
        """The value of the field that `row` describes."""
        code = self.program.code
        operation: cython.int = code[row * programs.ROW]
        flags: cython.int = code[row * programs.ROW + 1]
        child: cython.int = code[row * programs.ROW + 3]
        if flags & programs.ARRAY:
            return self.array_of(operation, flags, child)
        if operation == programs.STRUCT and flags & programs.NULLABLE and self.is_null_struct(flags):
            return None
        return self.element(operation, flags, child)

    @cython.cfunc
    @cython.exceptval(-1)
    def is_null_struct(self, flags: cython.int) -> cython.int:
        """Reads the prefix of a nullable struct: int8 in its position, uvarint in a tag.

        Source: docs/wire-format.md#primitives, docs/wire-format.md#tagged-fields.
        """
        start: cython.Py_ssize_t = self.at
        prefix: cython.longlong
        if flags & programs.TAGGED:
            prefix = self.uvarint()
            if self.lenient:
                return prefix == 0 or prefix > MAX_INT32
            if prefix > 1 or self.at != start + 1:
                self.at = start
                raise self.failure(f"a nullable struct's prefix is one byte, 0 or 1, not {prefix}")
            return prefix == 0
        prefix = self.integer(1)
        if not self.lenient and prefix != 1 and prefix != -1:
            self.at = start
            raise self.failure(f"a nullable struct's prefix is -1 or 1, not {prefix}")
        return prefix < 0

    @cython.cfunc
    def array_of(self, operation: cython.int, flags: cython.int, child: cython.int) -> object:
        depth: cython.int = self.depth
        count: cython.longlong = self.length(flags, 4, "count")
        if count < 0:
            return None
        if count > self.end - self.at:
            # Every element takes at least a byte, so nothing is allocated for a count that cannot be true.
            raise self.failure(f"{count} elements in {self.end - self.at} bytes")
        self.take_memory(
            LIST_WEIGHT + count * (PLACE_WEIGHT if operation == programs.STRUCT else PLACE_WEIGHT + VALUE_WEIGHT)
        )
        element_flags: cython.int = flags & programs.COMPACT
        i: cython.Py_ssize_t
        if operation == programs.INT32:
            self.need(4 * count)
        if cython.compiled:
            if operation == programs.INT32:
                self.at += 4 * count
                return int32_list(self.data + self.at - 4 * count, count)
            result = new_list(count)
            for i in range(count):
                self.indices[depth] = i
                item = (
                    self.struct_at(child)
                    if operation == programs.STRUCT
                    else self.element(operation, element_flags, child)
                )
                Py_INCREF(item)
                PyList_SET_ITEM(result, i, item)
        else:
            result = []
            for i in range(count):
                self.indices[depth] = i
                result.append(self.element(operation, element_flags, child))
        self.indices[depth] = -1
        return result

    @cython.cfunc
    def element(self, operation: cython.int, flags: cython.int, child: cython.int) -> object:
        """One value that is not an array."""
        if operation == programs.STRUCT:
            return self.struct_at(child)
        if operation == programs.INT32:
            return self.integer(4)
        if operation == programs.STRING:
            return self.string(flags)
        if operation == programs.INT16:
            return self.integer(2)
        if operation == programs.INT64:
            return self.integer(8)
        if operation == programs.BOOL:
            return self.boolean()
        if operation == programs.INT8:
            return self.integer(1)
        if operation == programs.UUID:
            return self.uuid()
        if operation == programs.RECORDS or operation == programs.BYTES:
            return self.data_bytes(operation, flags)
        if operation == programs.UINT16:
            return self.integer(2) & 0xFFFF
        if operation == programs.UINT32:
            return self.integer(4) & 0xFFFFFFFF
        self.need(8)
        value = _UNPACK_FLOAT(self.slice(self.at, self.at + 8))[0]
        self.at += 8
        return value

    @cython.cfunc
    def boolean(self) -> object:
        self.need(1)
        byte: cython.int = self.data[self.at]
        if byte > 1 and not self.lenient:
            raise self.failure(f"a bool is 0 or 1, not {byte}")
        self.at += 1
        return byte != 0

    @cython.cfunc
    def uuid(self) -> object:
        self.need(16)
        at: cython.Py_ssize_t = self.at
        self.at = at + 16
        if cython.compiled:
            number = unsigned_128(self.data + at)
        else:
            number = int.from_bytes(self.data[at : at + 16], "big")
        if not number:
            return _ZERO_UUID
        if cython.compiled:
            result = new_untracked(_UUID_CLASS)
            slot_write(result, _UUID_INT, number)
            slot_write(result, _UUID_SAFETY, _UNKNOWN_SAFETY)
            return result
        return _UUID_CLASS(int=number)

    @cython.cfunc
    def string(self, flags: cython.int) -> object:
        length: cython.longlong = self.length(flags, 2, "length")
        if length < 0:
            return None
        if length > MAX_STRING:
            raise self.failure(f"a string of {length} bytes: the limit is {MAX_STRING}")
        if length > self.end - self.at:
            raise self.past_the_end(flags, length)
        at: cython.Py_ssize_t = self.at
        self.at = at + length
        if length == 0:
            return ""
        self.memory -= TEXT_WEIGHT + length
        self.text = at
        try:
            if cython.compiled:
                return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, self.data + at), length, cython.NULL)
            return str(self.data[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            if not self.lenient:
                raise
            from tagwire.kernel.record_objects import text  # hardly ever needed

            return text(error.object)

    @cython.cfunc
    def past_the_end(self, flags: cython.int, length: cython.longlong) -> object:
        kind = "compact length" if flags & programs.COMPACT else "length"
        return self.failure(f"{kind} {length} runs past the end ({self.end - self.at} bytes left)")

    @cython.cfunc
    def data_bytes(self, operation: cython.int, flags: cython.int) -> object:
        length: cython.longlong = self.length(flags, 4, "length")
        if length < 0:
            return None
        if length > self.end - self.at:
            raise self.past_the_end(flags, length)
        at: cython.Py_ssize_t = self.at
        self.at = at + length
        if operation == programs.RECORDS:
            self.memory -= VIEW_WEIGHT
            return self.slice(at, at + length)
        if length == 0:
            return b""
        self.memory -= TEXT_WEIGHT + length
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.data + at), length)
        return bytes(self.data[at : at + length])


def _bytes_of(view):
    """`view` as contiguous bytes: itself, the same memory seen as bytes, or a copy where it has gaps."""
    if view.format == "B" and view.ndim == 1 and view.c_contiguous:
        return view
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        return memoryview(view.tobytes())
