"""(Message, version) -> program: the flat table of operations that the kernel runs.

Here the spec language ends: which fields a version has, in which form, what stands for the others. The kernel below
only follows rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tagwire.codec.weights import object_weight
from tagwire.errors import UnsupportedVersionError
from tagwire.kernel.programs import EXTENSIONS, FLAGS, OPERATIONS, Program
from tagwire.spec import Absent, Field, Message, Struct, Versions

Buffer = bytes | bytearray | memoryview


class MessageClass(Protocol):
    """What a message class knows of itself: see `tagwire.codec.classes.MessageObject`."""

    spec: ClassVar[Message]
    valid_versions: ClassVar[Versions]
    _classes: ClassVar[Mapping[str, type]]
    _programs: ClassVar[dict[int, Program]]

    def encode(self, version: int) -> bytes: ...


def program_of(cls: type[MessageClass], version: int) -> Program:
    """The program of one version of `cls`. Raises UnsupportedVersionError."""
    # Only a plain int may hit the cache: True and 1.0 are equal to 1.
    program = cls._programs.get(version) if type(version) is int else None
    if program is None:
        number = checked_version(cls, version)
        program = cls._programs[number] = compile_program(cls.spec, number, cls._classes)
    return program


def checked_version(cls: type[MessageClass], version: int) -> int:
    """`version` as a plain int, where the message has it."""
    if isinstance(version, bool) or version not in cls.valid_versions:
        raise UnsupportedVersionError(f"{cls.spec.name} has no version {version!r}: it has {cls.valid_versions}")
    return int(version)


def compile_program(message: Message, version: int, classes: Mapping[str, type]) -> Program:
    """The program of one version.

    Args:
        message: the model.
        version: a version in `message.valid_versions`.
        classes: the class of every struct of the message, its root included, by struct name.
    """
    return _Compiler(message, version, classes).program()


class _Compiler:
    def __init__(self, message: Message, version: int, classes: Mapping[str, type]) -> None:
        self.message = message
        self.version = version
        self.classes = classes
        self.flexible = message.is_flexible(version)
        self.structs = list(message.all_structs())
        self.numbers = {struct.name: number for number, struct in enumerate(self.structs)}
        self.code: list[int] = []
        self.defaults: list[Any] = []
        self.absence: list[str | None] = []
        self.slots: list[tuple[type, str]] = []
        self.slot_numbers: dict[str, int] = {}

    def program(self) -> Program:
        root = self.classes[self.message.root.name]
        # Slot 0 of every struct holds its unknown tags; all classes inherit that slot from one base.
        self._slot(next(kind for kind in root.__mro__ if "_unknown_tags" in vars(kind)), "_unknown_tags")
        ranges: list[int] = []
        for struct in self.structs:
            ranges += self._struct(struct)
        return Program(
            self.message.name,
            self.version,
            EXTENSIONS[self._extension()],
            self.code,
            ranges,
            [self.classes[struct.name] for struct in self.structs],
            self.slots,
            self.defaults,
            self.absence,
            [self._weight(struct) for struct in self.structs],
            [None if self.version in struct.versions else str(struct.versions) for struct in self.structs],
        )

    def _weight(self, struct: Struct) -> int:
        return object_weight(struct, self.version, self.classes) if self.version in struct.versions else -1

    def _extension(self) -> str:
        if self.version in self.message.optional_versions:
            return "optional-buffer"
        return "tag section" if self.flexible else "none"

    def _struct(self, struct: Struct) -> list[int]:
        """Appends the rows of `struct`: positional fields, tags in ascending order, then fields that are not here."""
        version = self.version
        here = [field for field in struct.fields if version in field.versions]
        extensible = self._extension() != "none"
        tagged = [field for field in struct.fields if field.tag is not None and extensible]
        positional = [field for field in here if not field.is_tagged(version)]
        absent = [field for field in struct.fields if version not in field.versions]
        start = len(self.defaults)
        for field in positional:
            self._row(struct, field, self._operation(field), self._flags(field, in_tag=False))
        tags_from = len(self.defaults)
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            if field.is_tagged(version):
                self._row(struct, field, self._operation(field), self._flags(field, in_tag=True))
            else:
                self._row(struct, field, OPERATIONS["not here"], 0)
        tags_to = len(self.defaults)
        for field in absent:
            self._row(struct, field, self._operation(field), 0, absent_in=field.versions)
        return [start, tags_from, tags_from, tags_to, tags_to, len(self.defaults)]

    def _row(
        self, struct: Struct, field: Field, operation: int, flags: int, *, absent_in: Versions | None = None
    ) -> None:
        child = self.numbers[field.struct.name] if field.struct else -1
        slot = self._slot(self.classes[struct.name], field.attribute)
        self.code += [operation, flags, slot, child, -1 if field.tag is None else field.tag]
        self.defaults.append(self._default(field))
        if absent_in is None:
            self.absence.append(None)
        else:
            self.absence.append("" if field.ignorable else str(absent_in))

    def _slot(self, owner: type, attribute: str) -> int:
        key = f"{owner.__qualname__}.{attribute}"
        if key not in self.slot_numbers:
            self.slot_numbers[key] = len(self.slots)
            self.slots.append((owner, attribute))
        return self.slot_numbers[key]

    def _operation(self, field: Field) -> int:
        return OPERATIONS["struct" if field.type.is_struct else field.type.element]

    def _flags(self, field: Field, *, in_tag: bool) -> int:
        flexible = self.flexible if field.flexible_versions is None else self.version in field.flexible_versions
        flags = FLAGS["compact"] if flexible else 0
        flags |= FLAGS["array"] if field.type.is_array else 0
        flags |= FLAGS["nullable"] if self.version in field.nullable_versions else 0
        return flags | (FLAGS["tagged"] if in_tag else 0)

    def _default(self, field: Field) -> Any:
        if field.default is Absent.EMPTY_ARRAY:
            return list
        if field.default is Absent.STRUCT:
            return self.classes[field.type.element]
        return field.default
