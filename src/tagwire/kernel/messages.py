# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Runs message programs: bytes -> message objects, and back.

A program is a flat table of operations, one row per field (tagwire.codec.program builds it and knows the spec language;
this module knows only the layouts of facts/kafka_protocol.md section 2). Valid Python that also compiles; the
`if cython.compiled` branches hold what only machine code can do: slots by offset, and memory written in place.
"""

import struct
import uuid
from array import array

import cython

from tagwire.errors import DecodeError, EncodeError, UnsupportedVersionError

COMPILED = cython.compiled

# Operations: what one element is. A row is five ints: operation, flags, slot, child, tag.
BOOL = cython.declare(cython.int, 1)
INT8 = cython.declare(cython.int, 2)
INT16 = cython.declare(cython.int, 3)
UINT16 = cython.declare(cython.int, 4)
INT32 = cython.declare(cython.int, 5)
UINT32 = cython.declare(cython.int, 6)
INT64 = cython.declare(cython.int, 7)
FLOAT64 = cython.declare(cython.int, 8)
UUID = cython.declare(cython.int, 9)
STRING = cython.declare(cython.int, 10)
BYTES = cython.declare(cython.int, 11)
RECORDS = cython.declare(cython.int, 12)
STRUCT = cython.declare(cython.int, 13)
NOT_HERE = cython.declare(cython.int, 14)  # a tag that is declared, but not in this version

NULLABLE = cython.declare(cython.int, 1)
ARRAY = cython.declare(cython.int, 2)
COMPACT = cython.declare(cython.int, 4)
TAGGED = cython.declare(cython.int, 8)

OPERATIONS = {
    "bool": 1,
    "int8": 2,
    "int16": 3,
    "uint16": 4,
    "int32": 5,
    "uint32": 6,
    "int64": 7,
    "float64": 8,
    "uuid": 9,
    "string": 10,
    "bytes": 11,
    "records": 12,
    "struct": 13,
    "not here": 14,
}
FLAGS = {"nullable": 1, "array": 2, "compact": 4, "tagged": 8}

MAX_DEPTH = cython.declare(cython.int, 64)
MAX_STRING = cython.declare(cython.longlong, 32767)
MAX_INT32 = cython.declare(cython.longlong, 2147483647)

# What decoding may take in memory: so many times its input, and so much beyond (facts/hostile_inputs.md). Few bytes can
# stand for many objects: a struct whose fields are all at their defaults takes one.
MEMORY_FACTOR = cython.declare(cython.longlong, 64)
MEMORY_BEYOND = cython.declare(cython.longlong, 1 << 20)
LIST_WEIGHT = cython.declare(cython.longlong, 64)
PLACE_WEIGHT = cython.declare(cython.longlong, 20)  # a place in a list, and in the list that it outgrew
VALUE_WEIGHT = cython.declare(cython.longlong, 32)
TEXT_WEIGHT = cython.declare(cython.longlong, 56)
VIEW_WEIGHT = cython.declare(cython.longlong, 192)
TAG_WEIGHT = cython.declare(cython.longlong, 160)

_UUID_CLASS = uuid.UUID
_ZERO_UUID = uuid.UUID(int=0)
_UNPACK_FLOAT = struct.Struct(">d").unpack_from
_PACK_FLOAT = struct.Struct(">d").pack


@cython.final
@cython.cclass
class Program:
    """One (message, version): what to do for each field of each struct.

    Args:
        name: the message's name, for errors.
        version: the version, for errors.
        flexible: whether structs end in a tag section.
        code: rows of five ints: operation, flags, slot, child struct, tag.
        structs: per struct six row numbers: fields from, to; tags from, to; absent fields from, to.
        classes: per struct the class of its objects.
        attributes: per slot number the attribute's name.
        defaults: per row the default: the value itself, `list` for a new empty list, a class for a struct of defaults.
        absence: per row None, or the text that says in which versions the field exists: writing it with a value that is
            not its default is refused. A row whose text is "" is silently left out.
        weights: per struct the bytes of memory that one decoded object takes, without what its strings, bytes and
            arrays hold.
        missing: per struct None, or the text that says in which versions it exists: it is neither read nor written.
    """

    name: object
    version: cython.int
    flexible: cython.bint
    code: cython.int[::1]
    structs: cython.int[::1]
    classes: list
    attributes: list
    defaults: list
    absence: list
    weights: cython.longlong[::1]
    missing: list
    offsets: cython.Py_ssize_t[::1]

    def __init__(self, name, version, flexible, code, structs, classes, slots, defaults, absence, weights, missing):
        self.name = name
        self.version = version
        self.flexible = flexible
        self.code = memoryview(array("i", code or [0]))
        self.structs = memoryview(array("i", structs))
        self.classes = list(classes)
        self.attributes = [attribute for _, attribute in slots]
        self.defaults = list(defaults)
        self.absence = list(absence)
        self.weights = memoryview(array("q", weights))
        self.missing = list(missing)
        if cython.compiled:
            self.offsets = memoryview(array("q", [slot_offset(kind.__dict__[name]) for kind, name in slots] or [0]))

    @cython.cfunc
    def write(self, target: object, slot: cython.Py_ssize_t, value: object) -> cython.void:
        if cython.compiled:
            slot_write(target, self.offsets[slot], value)
        else:
            setattr(target, self.attributes[slot], value)

    @cython.cfunc
    def read(self, target: object, slot: cython.Py_ssize_t) -> object:
        if cython.compiled:
            return slot_read(target, self.offsets[slot])
        return getattr(target, self.attributes[slot])

    @cython.cfunc
    def create(self, number: cython.Py_ssize_t) -> object:
        if cython.compiled:
            return new_untracked(self.classes[number])
        return object.__new__(self.classes[number])

    @cython.cfunc
    def fresh_default(self, row: cython.Py_ssize_t) -> object:
        default = self.defaults[row]
        if default is list:
            empty: list = []
            if cython.compiled:
                untrack(empty)
            return empty
        if isinstance(default, type):
            return self.default_struct(self.code[row * 5 + 3])
        return default

    @cython.cfunc
    def default_struct(self, number: cython.Py_ssize_t) -> object:
        """A new object of struct `number`, every field at its default."""
        result = self.create(number)
        row: cython.Py_ssize_t
        for row in range(self.structs[number * 6], self.structs[number * 6 + 5]):
            if self.code[row * 5] != NOT_HERE:
                self.write(result, self.code[row * 5 + 2], self.fresh_default(row))
        self.write(result, 0, None)
        return result

    @cython.cfunc
    def missing_struct(self, number: cython.Py_ssize_t, path: object) -> object:
        name = self.classes[number].__name__
        return UnsupportedVersionError(f"{path}: the struct {name} exists only in versions {self.missing[number]}")

    def decode(self, data, at, lenient, whole):
        """The object that starts at byte `at` of `data`, and the position after it.

        Args:
            data: a contiguous buffer of bytes.
            at: first byte.
            lenient: read as Kafka's Java reader does.
            whole: refuse bytes after the object, unless lenient.

        Raises:
            DecodeError: with the field's path and the byte offset.
        """
        decoder: Decoder = Decoder(self, data, at, lenient)
        return decoder.run(whole)

    def encode(self, message):
        """The bytes of `message`.

        Raises:
            EncodeError: a value cannot be written; names the field.
            UnsupportedVersionError: a field that this version cannot carry is set.
        """
        encoder: Encoder = Encoder(self)
        return encoder.run(message)


@cython.final
@cython.cclass
class Decoder:
    """One decoding: the input, the position, and the path to where it is."""

    program: Program
    source: object
    data: cython.const[cython.uchar][::1]
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    lenient: cython.bint
    memory: cython.longlong
    depth: cython.int
    rows: cython.int[::1]
    indices: cython.longlong[::1]

    def __init__(self, program, source, at, lenient):
        view = _bytes_of(memoryview(source))
        if at < 0 or at > view.nbytes:
            raise DecodeError(f"starts at byte {at} of {view.nbytes}", path=f"{program.name} v{program.version}")
        self.program = program
        self.source = view
        self.data = view
        self.at = at
        self.end = view.nbytes
        self.memory = MEMORY_FACTOR * (self.end - self.at) + MEMORY_BEYOND
        self.lenient = lenient
        self.depth = -1
        self.rows = memoryview(array("i", bytes(4 * 64)))
        self.indices = memoryview(array("q", bytes(8 * 64)))

    @cython.cfunc
    def run(self, whole: cython.bint) -> object:
        result = self.struct_at(0)
        if whole and not self.lenient and self.at != self.end:
            raise DecodeError(f"{self.end - self.at} bytes follow the message", path=self.described(), offset=self.at)
        return result, self.at

    @cython.cfunc
    def described(self) -> object:
        """The path to the field being read, such as `MetadataResponse v1, topics[3].name`."""
        path = f"{self.program.name} v{self.program.version}"
        parts = []
        for level in range(self.depth + 1):
            row = self.rows[level]
            if row < 0:
                break
            part = self.program.attributes[self.program.code[row * 5 + 2]]
            if self.indices[level] >= 0:
                part += f"[{self.indices[level]}]"
            parts.append(part)
        return path + ", " + ".".join(parts) if parts else path

    @cython.cfunc
    def failure(self, what: object) -> object:
        return DecodeError(what, path=self.described(), offset=self.at)

    @cython.cfunc
    @cython.exceptval(-1)
    def take_memory(self, weight: cython.longlong) -> cython.int:
        self.memory -= weight
        if self.memory < 0:
            raise self.failure(f"takes more than {MEMORY_FACTOR} times the memory of its bytes")
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def need(self, count: cython.longlong) -> cython.int:
        if count > self.end - self.at:
            raise self.failure(f"needs {count} bytes, {self.end - self.at} are left")
        return 0

    @cython.cfunc
    @cython.exceptval(-9223372036854775807, check=True)
    def integer(self, width: cython.int) -> cython.longlong:
        """A big-endian two's complement integer of `width` bytes."""
        self.need(width)
        at: cython.Py_ssize_t = self.at
        if cython.compiled:
            bits: cython.ulonglong = 0
            i: cython.int
            for i in range(width):
                bits = (bits << 8) | self.data[at + i]
            self.at = at + width
            shift: cython.int = 64 - 8 * width
            return cython.cast(cython.longlong, bits << shift) >> shift
        self.at = at + width
        return int.from_bytes(self.data[at : at + width], "big", signed=True)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def uvarint(self) -> cython.longlong:
        """An unsigned varint of at most 32 bits (facts 2.2)."""
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
        if flags & COMPACT:
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
            if not flags & NULLABLE:
                self.at = start
                raise self.failure("null where the field is not nullable")
            return -1
        return length

    @cython.cfunc
    def struct_at(self, number: cython.Py_ssize_t) -> object:
        """The struct `number` of the program: fields in order, then its tag section where the version is flexible."""
        program: Program = self.program
        structs: cython.int[::1] = program.structs
        base: cython.Py_ssize_t = number * 6
        row: cython.Py_ssize_t
        if self.depth + 1 >= MAX_DEPTH:
            raise self.failure("structs are nested too deeply")
        if program.missing[number] is not None:
            raise program.missing_struct(number, self.described())
        self.depth += 1
        depth: cython.int = self.depth
        self.rows[depth] = -1
        self.take_memory(program.weights[number])
        result = program.create(number)
        for row in range(structs[base], structs[base + 1]):
            self.rows[depth] = row
            self.indices[depth] = -1
            program.write(result, program.code[row * 5 + 2], self.value(row))
        for row in range(structs[base + 2], structs[base + 5]):
            if program.code[row * 5] != NOT_HERE:
                program.write(result, program.code[row * 5 + 2], program.fresh_default(row))
        unknown = None
        if program.flexible:
            self.rows[depth] = -1
            unknown = self.tag_section(result, structs[base + 2], structs[base + 3], depth)
        program.write(result, 0, unknown)
        self.depth -= 1
        return result

    @cython.cfunc
    def tag_section(
        self, target: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t, depth: cython.int
    ) -> object:
        """Reads tagged fields into `target`; what no row declares is returned as {tag: bytes}, or None."""
        program: Program = self.program
        code: cython.int[::1] = program.code
        count: cython.longlong = self.uvarint()
        if count == 0 or (self.lenient and count > MAX_INT32):  # to Java a negative count, so an empty section
            return None
        if count * 2 > self.end - self.at:
            raise self.failure(f"{count} tagged fields in {self.end - self.at} bytes")
        unknown = None
        before: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        start: cython.Py_ssize_t
        row: cython.Py_ssize_t = first
        found: cython.Py_ssize_t
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
            while row < last and code[row * 5 + 4] < tag:
                row += 1
            found = row if row < last and code[row * 5 + 4] == tag else -1
            if found >= 0 and code[found * 5] == NOT_HERE:
                self.at = start
                raise self.failure(f"tag {tag} is not valid for version {program.version}")
            if size > self.end - self.at and (found < 0 or not self.lenient):
                raise self.failure(f"tag {tag} claims {size} bytes, {self.end - self.at} are left")
            start = self.at
            if found < 0:
                if unknown is None:
                    unknown = {}
                self.take_memory(TAG_WEIGHT + size)
                unknown[tag] = bytes(self.source[start : start + size])
                self.at = start + size
                continue
            self.rows[depth] = found
            self.indices[depth] = -1
            program.write(target, code[found * 5 + 2], self.value(found))
            if self.at != start + size and not self.lenient:
                raise self.failure(f"tag {tag} claims {size} bytes, its value takes {self.at - start}")
            self.rows[depth] = -1
        return unknown

    @cython.cfunc
    def value(self, row: cython.Py_ssize_t) -> object:
        """The value of the field that `row` describes."""
        code: cython.int[::1] = self.program.code
        operation: cython.int = code[row * 5]
        flags: cython.int = code[row * 5 + 1]
        child: cython.int = code[row * 5 + 3]
        if flags & ARRAY:
            return self.array_of(operation, flags, child)
        if operation == STRUCT and flags & NULLABLE and self.is_null_struct(flags):
            return None
        return self.element(operation, flags, child)

    @cython.cfunc
    @cython.exceptval(-1)
    def is_null_struct(self, flags: cython.int) -> cython.int:
        """Reads the prefix of a nullable struct: int8 in its position, uvarint in a tag (facts 2.1, 2.3)."""
        start: cython.Py_ssize_t = self.at
        prefix: cython.longlong
        if flags & TAGGED:
            prefix = self.uvarint()
            if self.lenient:
                return prefix == 0 or prefix > MAX_INT32
            if prefix > 1 or self.at != start + 1:
                self.at = start
                raise self.failure(f"a nullable struct's prefix is 0 or 1, not {prefix}")
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
        self.take_memory(LIST_WEIGHT + count * (PLACE_WEIGHT if operation == STRUCT else PLACE_WEIGHT + VALUE_WEIGHT))
        result: list = []
        element_flags: cython.int = flags & COMPACT
        i: cython.longlong
        for i in range(count):
            self.indices[depth] = i
            result.append(self.element(operation, element_flags, child))
        self.indices[depth] = -1
        if cython.compiled:
            untrack(result)
        return result

    @cython.cfunc
    def element(self, operation: cython.int, flags: cython.int, child: cython.int) -> object:
        """One value that is not an array."""
        if operation == STRUCT:
            return self.struct_at(child)
        if operation == INT32:
            return self.integer(4)
        if operation == STRING:
            return self.string(flags)
        if operation == INT16:
            return self.integer(2)
        if operation == INT64:
            return self.integer(8)
        if operation == BOOL:
            return self.boolean()
        if operation == INT8:
            return self.integer(1)
        if operation == UUID:
            return self.uuid()
        if operation == RECORDS or operation == BYTES:
            return self.data_bytes(operation, flags)
        if operation == UINT16:
            return self.integer(2) & 0xFFFF
        if operation == UINT32:
            return self.integer(4) & 0xFFFFFFFF
        self.need(8)
        value = _UNPACK_FLOAT(self.source, self.at)[0]
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
        raw = bytes(self.source[self.at : self.at + 16])
        self.at += 16
        number = int.from_bytes(raw, "big")
        return _UUID_CLASS(int=number) if number else _ZERO_UUID

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
        try:
            if cython.compiled:
                return PyUnicode_DecodeUTF8(
                    cython.cast(cython.p_char, cython.address(self.data[at])), length, cython.NULL
                )
            return str(self.data[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            if self.lenient:
                return str(self.source[at : at + length], "utf-8", "replace")
            self.at = at + error.start
            raise self.failure("not UTF-8") from None

    @cython.cfunc
    def past_the_end(self, flags: cython.int, length: cython.longlong) -> object:
        kind = "compact length" if flags & COMPACT else "length"
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
        if operation == RECORDS:
            self.memory -= VIEW_WEIGHT
            return self.source[at : at + length]
        if length == 0:
            return b""
        self.memory -= TEXT_WEIGHT + length
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(self.data[at])), length)
        return bytes(self.data[at : at + length])


@cython.final
@cython.cclass
class Encoder:
    """One encoding: the bytes so far, and the path to where it is."""

    program: Program
    out: bytearray
    at: cython.Py_ssize_t
    capacity: cython.Py_ssize_t
    memory: cython.p_char
    depth: cython.int
    rows: cython.int[::1]
    indices: cython.longlong[::1]

    def __init__(self, program):
        self.program = program
        self.out = bytearray()
        self.at = 0
        self.depth = -1
        self.rows = memoryview(array("i", bytes(4 * 64)))
        self.indices = memoryview(array("q", bytes(8 * 64)))
        if cython.compiled:
            self.capacity = 0
            self.room(512)

    @cython.cfunc
    def run(self, message: object) -> object:
        self.struct_of(0, message)
        if cython.compiled:
            return PyBytes_FromStringAndSize(self.memory, self.at)
        return bytes(self.out)

    @cython.cfunc
    def described(self) -> object:
        path = f"{self.program.name} v{self.program.version}"
        parts = []
        for level in range(self.depth + 1):
            row = self.rows[level]
            if row < 0:
                break
            part = self.program.attributes[self.program.code[row * 5 + 2]]
            if self.indices[level] >= 0:
                part += f"[{self.indices[level]}]"
            parts.append(part)
        return path + ", " + ".".join(parts) if parts else path

    @cython.cfunc
    def failure(self, what: object) -> object:
        return EncodeError(f"{self.described()}: {what}")

    # -- bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def room(self, count: cython.Py_ssize_t) -> cython.int:
        """Makes place for `count` more bytes."""
        if cython.compiled:
            if self.at + count > self.capacity:
                self.capacity = (self.at + count) * 2
                PyByteArray_Resize(self.out, self.capacity)
                self.memory = PyByteArray_AS_STRING(self.out)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_integer(self, value: cython.longlong, width: cython.int) -> cython.int:
        if cython.compiled:
            self.room(width)
            i: cython.int
            bits: cython.ulonglong = cython.cast(cython.ulonglong, value)
            for i in range(width):
                self.memory[self.at + i] = cython.cast(cython.char, (bits >> (8 * (width - 1 - i))) & 0xFF)
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
        if flags & COMPACT:
            return self.put_uvarint(length + 1)
        return self.put_integer(length, width)

    @cython.cfunc
    @cython.exceptval(-1)
    def insert_size(self, start: cython.Py_ssize_t) -> cython.int:
        """Writes the size of what stands after the byte kept free at `start`, moving it where the size takes more."""
        size: cython.Py_ssize_t = self.at - start - 1
        width: cython.int = 1
        rest: cython.Py_ssize_t = size >> 7
        while rest:
            width += 1
            rest >>= 7
        if cython.compiled:
            if width > 1:
                self.room(width)
                memmove(self.memory + start + width, self.memory + start + 1, size)
            self.at = start
            self.put_uvarint(size)
            self.at = start + width + size
        else:
            value = bytes(self.out[start + 1 :])
            del self.out[start:]
            self.put_uvarint(size)
            self.out += value
            self.at = len(self.out)
        return 0

    # -- values

    @cython.cfunc
    @cython.exceptval(-1)
    def struct_of(self, number: cython.Py_ssize_t, source: object) -> cython.int:
        program: Program = self.program
        structs: cython.int[::1] = program.structs
        base: cython.Py_ssize_t = number * 6
        row: cython.Py_ssize_t
        # The very class, not what passes for it: slots are read by their offset.
        if type(source) is not program.classes[number]:
            raise self.failure(f"needs a {program.classes[number].__qualname__}, not {type(source).__name__}")
        if self.depth + 1 >= MAX_DEPTH:
            raise self.failure("structs are nested too deeply")
        if program.missing[number] is not None:
            raise program.missing_struct(number, self.described())
        self.depth += 1
        depth: cython.int = self.depth
        try:
            for row in range(structs[base + 4], structs[base + 5]):
                self.rows[depth] = row
                self.indices[depth] = -1
                self.check_absent(row, program.read(source, program.code[row * 5 + 2]))
            for row in range(structs[base], structs[base + 1]):
                self.rows[depth] = row
                self.indices[depth] = -1
                self.value(row, program.read(source, program.code[row * 5 + 2]))
            self.rows[depth] = -1
            unknown = program.read(source, 0)
            if program.flexible:
                self.tag_section(source, structs[base + 2], structs[base + 3], unknown, depth)
            elif unknown:
                raise UnsupportedVersionError(
                    f"{self.described()}: tagged fields {list(unknown)} cannot be written: this version is not flexible"
                )
        except AttributeError:
            raise self.failure("is not set") from None
        self.depth -= 1
        return 0

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
        """Whether `value` is the row's default, as facts 1.7 compares."""
        default = self.program.defaults[row]
        if value is default:
            return True
        if value is None or default is None:
            return False
        if default is list:
            return isinstance(value, (list, tuple)) and len(value) == 0
        if isinstance(default, type):
            return self.is_default_struct(self.program.code[row * 5 + 3], value)
        return value == default

    @cython.cfunc
    @cython.exceptval(-1)
    def is_default_struct(self, number: cython.Py_ssize_t, value: object) -> cython.int:
        """Whether every field of a struct is at its default, and no unknown tag is there."""
        program: Program = self.program
        row: cython.Py_ssize_t
        if type(value) is not program.classes[number] or program.read(value, 0):
            return False
        for row in range(program.structs[number * 6], program.structs[number * 6 + 5]):
            if program.code[row * 5] != NOT_HERE:
                if not self.is_default(row, program.read(value, program.code[row * 5 + 2])):
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def tag_section(
        self,
        source: object,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        unknown: object,
        depth: cython.int,
    ) -> cython.int:
        """Writes the tagged fields that are not at their default, and the unknown ones, in the order of their tags."""
        program: Program = self.program
        code: cython.int[::1] = program.code
        row: cython.Py_ssize_t
        if first == last and not unknown:
            return self.put_uvarint(0)
        entries: list = []
        for row in range(first, last):
            if code[row * 5] == NOT_HERE:
                continue
            self.rows[depth] = row
            self.indices[depth] = -1
            value = program.read(source, code[row * 5 + 2])
            if not self.is_default(row, value):
                entries.append((code[row * 5 + 4], row, value))
        self.rows[depth] = -1
        if unknown:
            self.add_unknown(entries, unknown, first, last)
        self.put_uvarint(len(entries))
        start: cython.Py_ssize_t
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
            self.value(row, value)
            self.insert_size(start)
        self.rows[depth] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def add_unknown(
        self, entries: list, unknown: object, first: cython.Py_ssize_t, last: cython.Py_ssize_t
    ) -> cython.int:
        if not isinstance(unknown, dict):
            raise self.failure(f"unknown_tags must be a dict, not {type(unknown).__name__}")
        declared = {self.program.code[row * 5 + 4] for row in range(first, last)}
        for tag, value in unknown.items():
            if not isinstance(tag, int) or not 0 <= tag <= 0xFFFFFFFF:
                raise self.failure(f"{_shown(tag)} is no tag: unknown_tags maps ints of 32 bits to bytes")
            if tag in declared:
                raise self.failure(f"unknown tag {tag} collides with a declared one")
            entries.append((tag, -1, self.copied(value)))
        entries.sort(key=_tag_of)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def value(self, row: cython.Py_ssize_t, value: object) -> cython.int:
        code: cython.int[::1] = self.program.code
        operation: cython.int = code[row * 5]
        flags: cython.int = code[row * 5 + 1]
        child: cython.int = code[row * 5 + 3]
        if flags & ARRAY:
            return self.array_of(operation, flags, child, value)
        if operation == STRUCT and flags & NULLABLE:
            if flags & TAGGED:
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
        element_flags: cython.int = flags & COMPACT
        i: cython.Py_ssize_t = 0
        for item in value:
            self.indices[depth] = i
            self.element(operation, element_flags, child, item)
            i += 1
        if i != count:
            raise self.failure("changed its length while it was written")
        self.indices[depth] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put_null(self, flags: cython.int, width: cython.int) -> cython.int:
        if not flags & NULLABLE:
            raise self.failure("cannot be null")
        return self.put_length(-1, flags, width)

    @cython.cfunc
    @cython.exceptval(-1)
    def element(self, operation: cython.int, flags: cython.int, child: cython.int, value: object) -> cython.int:
        if operation == STRUCT:
            return self.struct_of(child, value)
        if operation == INT32:
            return self.put_checked(value, 4, -2147483648, 2147483647)
        if operation == STRING:
            return self.string(flags, value)
        if operation == INT16:
            return self.put_checked(value, 2, -32768, 32767)
        if operation == INT64:
            return self.put_checked(value, 8, -9223372036854775807 - 1, 9223372036854775807)
        if operation == BOOL:
            if value is not True and value is not False:
                raise self.failure(f"needs a bool, not {_shown(value)}")
            return self.put_integer(1 if value else 0, 1)
        if operation == INT8:
            return self.put_checked(value, 1, -128, 127)
        if operation == UUID:
            if not isinstance(value, _UUID_CLASS):
                raise self.failure(f"needs a uuid.UUID, not {type(value).__name__}")
            return self.put_bytes(value.bytes)
        if operation == RECORDS or operation == BYTES:
            return self.data_bytes(flags, value)
        if operation == UINT16:
            return self.put_checked(value, 2, 0, 65535)
        if operation == UINT32:
            return self.put_checked(value, 4, 0, 4294967295)
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            raise self.failure(f"needs a float, not {_shown(value)}")
        try:
            return self.put_bytes(_PACK_FLOAT(value))
        except OverflowError:
            raise self.failure(f"{_shown(value)} is out of the range of a float") from None

    @cython.cfunc
    @cython.exceptval(-1)
    def put_checked(
        self, value: object, width: cython.int, lowest: cython.longlong, highest: cython.longlong
    ) -> cython.int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.failure(f"needs an int, not {_shown(value)}")
        number: cython.longlong
        try:
            number = value
        except OverflowError:
            raise self.failure(f"{_shown(value)} is out of range: {lowest} to {highest}") from None
        if number < lowest or number > highest:
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
        try:
            if cython.compiled:
                text: cython.p_const_char = PyUnicode_AsUTF8AndSize(value, cython.address(size))
            else:
                text = str.encode(value, "utf-8")
                size = len(text)
        except UnicodeEncodeError as error:
            raise self.failure(f"cannot be UTF-8: {error.reason} at character {error.start}") from None
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


def _tag_of(entry):
    return entry[0]


def _shown(value):
    """What an error says of a wrong value: a number while it is short, else its type."""
    if isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int) and value.bit_length() <= 128:
        return str(int(value))
    return type(value).__name__


def _bytes_of(view):
    """`view` as contiguous bytes: itself, the same memory seen as bytes, or a copy where it has gaps."""
    if view.format == "B" and view.ndim == 1 and view.c_contiguous:
        return view
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        return memoryview(view.tobytes())
