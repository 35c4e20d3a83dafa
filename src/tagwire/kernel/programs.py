# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Message programs: what `message_reading` and `message_writing` follow.

A program is a flat table of operations, one row per field. tagwire.codec.program builds it and knows the spec
language; the kernels know only the layouts of docs/wire-format.md and, for optional-buffers,
docs/dialects.md#optional-fields.
"""

from array import array

import cython

from tagwire.errors import UnsupportedVersionError

if cython.compiled:
    from cython.cimports.tagwire.kernel.memory import adopt as adopt_type
    from cython.cimports.tagwire.kernel.memory import new_list, new_untracked, slot_offset, slot_read, slot_write

COMPILED = cython.compiled

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
"""What one element is; "not here" is a tag that is declared, but not in this version."""

FLAGS = {"nullable": 1, "array": 2, "compact": 4, "tagged": 8}

EXTENSIONS = {"none": 0, "tag section": 1, "optional-buffer": 2}
"""How structs carry what is not in their fixed order: at their end, or at their front, or not at all."""

if not cython.compiled:
    BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, *_others = OPERATIONS.values()
    UUID, STRING, BYTES, RECORDS, STRUCT, NOT_HERE = _others
    NULLABLE, ARRAY, COMPACT, TAGGED = FLAGS.values()
    _, TAG_SECTION, OPTIONAL_BUFFER = EXTENSIONS.values()
    ROW, SPAN, MAX_DEPTH = 5, 6, 64


def adopt(kind):
    """Lets objects of `kind`, a class with slots and nothing else, be freed without a look at its bases."""
    if cython.compiled:
        adopt_type(kind)


@cython.final
@cython.cclass
class Program:
    """One (message, version): what to do for each field of each struct.

    Args:
        name: the message's name, for errors.
        version: the version, for errors.
        extension: one of EXTENSIONS.
        code: rows of five ints: operation, flags, slot, child struct, tag.
        structs: per struct six row numbers: fields from, to; tags from, to; absent fields from, to.
        classes: per struct the class of its objects.
        slots: per slot number the class that has it, and the attribute's name. Slot 0 holds a struct's unknown tags.
        defaults: per row the default: the value itself, `list` for a new empty list, a class for a struct of defaults.
        absence: per row None, or the text that says in which versions the field exists: writing it with a value that is
            not its default is refused. A row whose text is "" is silently left out.
        weights: per struct the bytes of memory that one decoded object takes, without what its strings, bytes and
            arrays hold; -1 where the version does not have the struct.
        missing: per struct None, or the text that says in which versions it exists: it is neither read nor written.
    """

    def __init__(self, name, version, extension, code, structs, classes, slots, defaults, absence, weights, missing):
        self.name = name
        self.version = version
        self.extension = extension
        self.classes = list(classes)
        self.attributes = [attribute for _, attribute in slots]
        self.defaults = list(defaults)
        self.absence = list(absence)
        self.missing = list(missing)
        if cython.compiled:
            ints: cython.int[::1] = array("i", list(code) or [0])
            spans: cython.int[::1] = array("i", structs)
            masses: cython.longlong[::1] = array("q", weights)
            slot_offsets: cython.Py_ssize_t[::1] = array(
                "q", [slot_offset(kind.__dict__[name]) for kind, name in slots]
            )
            self.buffers = [ints, spans, masses, slot_offsets]
            self.code = cython.address(ints[0])
            self.structs = cython.address(spans[0])
            self.weights = cython.address(masses[0])
            self.offsets = cython.address(slot_offsets[0])
        else:
            self.code = list(code)
            self.structs = list(structs)
            self.weights = list(weights)

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
        """The default of a row, made anew where it is mutable."""
        default = self.defaults[row]
        if default is list:
            if cython.compiled:
                return new_list(0)
            return []
        if isinstance(default, type):
            return self.default_struct(self.code[row * ROW + 3])
        return default

    @cython.cfunc
    def default_struct(self, number: cython.Py_ssize_t) -> object:
        """A new object of struct `number`, every field at its default."""
        result = self.create(number)
        row: cython.Py_ssize_t
        for row in range(self.structs[number * SPAN], self.structs[number * SPAN + 5]):
            if self.code[row * ROW] != NOT_HERE:
                self.write(result, self.code[row * ROW + 2], self.fresh_default(row))
        self.write(result, 0, None)
        return result

    @cython.cfunc
    def missing_struct(self, number: cython.Py_ssize_t, path: object) -> object:
        name = self.classes[number].__name__
        return UnsupportedVersionError(f"{path}: the struct {name} exists only in versions {self.missing[number]}")

    @cython.cfunc
    def path(self, rows: cython.p_int, indices: cython.p_longlong, depth: cython.int) -> object:
        """Where a reader or writer is, such as `MetadataResponse v1, topics[3].name`."""
        parts = []
        level: cython.int
        for level in range(depth + 1):
            if rows[level] < 0:
                break
            part = self.attributes[self.code[rows[level] * ROW + 2]]
            if indices[level] >= 0:
                part += f"[{indices[level]}]"
            parts.append(part)
        where = f"{self.name} v{self.version}"
        return where + ", " + ".".join(parts) if parts else where
