"""An annotated dump: which bytes of an encoded message mean what, and by which rule of the encoding.

Walks the spec model, not the kernel's program, so that the two can be held against each other.
Source: docs/wire-format.md; docs/dialects.md#optional-fields for optional-buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from tagwire.codec.program import Buffer
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.spec import Field, Message, Struct
from tagwire.spec.defaults import MAX_STRING_BYTES
from tagwire.spec.model import FIXED_WIDTHS, INTEGER_RANGES

MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Span:
    """A run of bytes with one meaning.

    Attributes:
        start, end: byte positions, end exclusive.
        path: the field, such as `topics[0].name`; what belongs to no field has a name in parentheses.
        type: the field's type in the spec language.
        value: what the bytes mean, as text; long ones are cut.
        rule: how they are encoded.
    """

    start: int
    end: int
    path: str
    type: str
    value: str
    rule: str


def annotate(message: Message, data: Buffer, version: int) -> Iterator[Span]:
    """The spans of `data`, in order and without gaps, as far as it can be read.

    Raises:
        UnsupportedVersionError: the message has no such version, or a struct is there that the version does not have.
        DecodeError: after the last span that makes sense: the bytes that follow do not.
    """
    if version not in message.valid_versions:
        raise UnsupportedVersionError(f"{message.name} has no version {version}: it has {message.valid_versions}")
    walk = _Walk(message, bytes(data), version)
    yield from walk.struct(message.root, "")
    if walk.at < len(walk.data):
        raise walk.failure("", f"{len(walk.data) - walk.at} bytes follow the message")


class _Walk:
    def __init__(self, message: Message, data: bytes, version: int) -> None:
        self.message = message
        self.data = data
        self.version = version
        self.at = 0
        self.flexible = message.is_flexible(version)
        self.optional = version in message.optional_versions

    def failure(self, path: str, what: str) -> DecodeError:
        where = f"{self.message.name} v{self.version}" + (f", {path}" if path else "")
        return DecodeError(what, path=where, offset=self.at)

    # -- structs

    def struct(self, shape: Struct, path: str) -> Iterator[Span]:
        if self.version not in shape.versions:
            where = ", ".join(part for part in (f"{self.message.name} v{self.version}", path.rstrip(".")) if part)
            raise UnsupportedVersionError(f"{where}: the struct {shape.name} exists only in versions {shape.versions}")
        here = [field for field in shape.fields if self.version in field.versions]
        tagged = {field.tag: field for field in here if field.is_tagged(self.version)}
        absent = {field.tag for field in shape.fields if field.tag is not None} - tagged.keys()
        if self.optional:
            yield from self.optional_buffer(tagged, absent, path)
        for field in here:
            if not field.is_tagged(self.version):
                yield from self.field(field, path + field.attribute, in_tag=False)
        if self.flexible:
            yield from self.tag_section(tagged, absent, path)

    def tag_section(self, tagged: dict[int | None, Field], absent: set[int], path: str) -> Iterator[Span]:
        start, before = self.at, -1
        count = self.uvarint(path)
        yield self.span(
            start, f"{path}(tags)", "uvarint", str(count), "number of tagged fields, at the end of a struct"
        )
        for _ in range(count):
            start = self.at
            tag = self.uvarint(path)
            before = self.ascending(tag, before, absent, start, path)
            yield self.span(start, f"{path}(tag)", "uvarint", self.tag_text(tag, tagged), "tag, in ascending order")
            start = self.at
            size = self.uvarint(path)
            yield self.span(start, f"{path}(size)", "uvarint", str(size), "bytes of the tagged value, not plus 1")
            yield from self.tagged_value(tag, size, tagged, path)

    def optional_buffer(self, tagged: dict[int | None, Field], absent: set[int], path: str) -> Iterator[Span]:
        before = -1
        while True:
            start = self.at
            raw = self.uvarint(path)
            if self.at - start > 1 and self.data[self.at - 1] == 0:
                self.at = start
                raise self.failure(path, "a length in more bytes than it needs")
            size = (raw >> 1) ^ -(raw & 1)
            if size == 0:
                yield self.span(start, f"{path}(end)", "varint", "0", "end of the optional-buffer, at a struct's front")
                return
            if size < 0:
                self.at = start
                raise self.failure(path, f"length {size} is negative")
            yield self.span(start, f"{path}(length)", "varint", str(size), "zigzag: bytes of the value, not of the tag")
            start = self.at
            tag = int.from_bytes(self.take(2, path), "big")
            before = self.ascending(tag, before, absent, start, path)
            yield self.span(start, f"{path}(tag)", "int16", self.tag_text(tag, tagged), "tag, unsigned, ascending")
            yield from self.tagged_value(tag, size, tagged, path)

    def tagged_value(self, tag: int, size: int, tagged: dict[int | None, Field], path: str) -> Iterator[Span]:
        start = self.at
        field = tagged.get(tag)
        if field is None:
            value = self.take(size, path)
            yield self.span(start, f"{path}(unknown tag {tag})", "bytes", _hex(value), "kept raw, written again")
            return
        yield from self.field(field, path + field.attribute, in_tag=True)
        if self.at != start + size:
            raise self.failure(path + field.attribute, f"claims {size} bytes, its value takes {self.at - start}")

    def ascending(self, tag: int, before: int, absent: set[int], start: int, path: str) -> int:
        """`tag`, which may stand after the tag `before` and is not declared for other versions alone."""
        if tag > before and tag not in absent:
            return tag
        self.at = start
        wrong = f"comes after tag {before}" if tag <= before else f"is not valid for version {self.version}"
        raise self.failure(path, f"tag {tag} {wrong}")

    def tag_text(self, tag: int, tagged: dict[int | None, Field]) -> str:
        return f"{tag} ({tagged[tag].attribute if tag in tagged else 'unknown'})"

    # -- fields

    def field(self, field: Field, path: str, *, in_tag: bool) -> Iterator[Span]:
        nullable = self.version in field.nullable_versions
        compact = self.flexible if field.flexible_versions is None else self.version in field.flexible_versions
        if field.type.is_array:
            yield from self.array(field, path, nullable, compact)
        elif field.struct is not None and nullable:
            yield from self.nullable_struct(field.struct, path, in_tag)
        else:
            yield from self.element(field, path, nullable, compact)

    def array(self, field: Field, path: str, nullable: bool, compact: bool) -> Iterator[Span]:
        start = self.at
        count = self.length(4, compact, nullable, path)
        rule = "count plus 1 as uvarint, 0 is null" if compact else "count as int32, -1 is null"
        yield self.span(start, f"{path}[]", str(field.type), "null" if count < 0 else f"{count} elements", rule)
        if count > len(self.data) - self.at:
            raise self.failure(path, f"{count} elements in {len(self.data) - self.at} bytes")
        for i in range(count):
            yield from self.element(field, f"{path}[{i}]", False, compact)

    def nullable_struct(self, shape: Struct, path: str, in_tag: bool) -> Iterator[Span]:
        start = self.at
        prefix = self.take(1, path)[0]
        present = prefix == 1
        if not present and prefix != (0 if in_tag else 0xFF):
            self.at = start
            raise self.failure(path, f"a nullable struct cannot begin with {prefix:#04x}")
        rule = "nullable struct in a tag: 0 null, 1 present" if in_tag else "nullable struct: -1 null, 1 present"
        yield self.span(start, f"{path}(present)", shape.name, "present" if present else "null", rule)
        if present:
            yield from self.struct(shape, f"{path}.")

    def element(self, field: Field, path: str, nullable: bool, compact: bool) -> Iterator[Span]:
        if field.struct is not None:
            yield from self.struct(field.struct, f"{path}.")
            return
        kind = field.type.element
        start = self.at
        if kind in FIXED_WIDTHS:
            value, rule = self.fixed(kind, path)
            yield self.span(start, path, kind, value, rule)
            return
        width = 2 if kind == "string" else 4
        size = self.length(width, compact, nullable, path)
        rule = "length plus 1 as uvarint, 0 is null" if compact else f"length as int{8 * width}, -1 is null"
        if size < 0:
            yield self.span(start, path, kind, "null", rule)
            return
        if kind == "string":
            yield self.span(start, path, kind, repr(self.string(size, path)), rule)
        else:
            yield self.span(start, path, kind, _hex(self.take(size, path)), rule)

    def string(self, size: int, path: str) -> str:
        if size > MAX_STRING_BYTES:
            raise self.failure(path, f"a string of {size} bytes: the limit is {MAX_STRING_BYTES}")
        raw = self.take(size, path)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self.at -= size - error.start
            raise self.failure(path, "not UTF-8") from None

    def fixed(self, kind: str, path: str) -> tuple[str, str]:
        raw = self.take(FIXED_WIDTHS[kind], path)
        if kind == "bool":
            if raw[0] > 1:
                self.at -= 1
                raise self.failure(path, f"a bool is 0 or 1, not {raw[0]}")
            return str(bool(raw[0])).lower(), "one byte, 0 or 1"
        if kind == "uuid":
            return str(UUID(bytes=raw)), "16 bytes, the most significant first"
        if kind == "float64":
            return repr(struct.unpack(">d", raw)[0]), "IEEE 754, big-endian"
        value = int.from_bytes(raw, "big", signed=INTEGER_RANGES[kind][0] < 0)
        return str(value), "big-endian"

    # -- bytes

    def span(self, start: int, path: str, kind: str, value: str, rule: str) -> Span:
        shown = value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…"
        return Span(start, self.at, path, kind, shown, rule)

    def take(self, count: int, path: str) -> bytes:
        if count > len(self.data) - self.at:
            raise self.failure(path, f"needs {count} bytes, {len(self.data) - self.at} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def uvarint(self, path: str) -> int:
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.take(1, path)[0]
            value |= (byte & 127) << shift
            if byte < 128 and value < 2**32:
                return value
        raise self.failure(path, "a varint of more than 32 bits")

    def length(self, width: int, compact: bool, nullable: bool, path: str) -> int:
        start = self.at
        length = self.uvarint(path) - 1 if compact else int.from_bytes(self.take(width, path), "big", signed=True)
        if length < -1 or (length < 0 and not nullable):
            self.at = start
            raise self.failure(path, "null where the field is not nullable" if length == -1 else f"length {length}")
        return length


def _hex(data: bytes) -> str:
    return data.hex() if len(data) <= MAX_SHOWN // 2 else f"{data[: MAX_SHOWN // 2].hex()}… ({len(data)} bytes)"
