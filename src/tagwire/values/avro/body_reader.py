"""One body at a time, by a plan: it says why a body is bad, and reads the schemas that blocks cannot be read of.

Source: the Avro specification, 1.11, "Binary Encoding". Strict, unlike libraries for trusted files: an index or a
boolean that cannot be is an error, nothing may follow a value, and what a body becomes is bounded.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, Final

from tagwire.values.avro.arrow_types import is_struct, member_name
from tagwire.values.avro.conversions import from_unscaled, stored_time, time_factors
from tagwire.values.avro.resolution import Plan
from tagwire.values.avro.schema_nodes import Node

CELLS_PER_BYTE: Final = 64
SPARE_CELLS: Final = 1 << 16
"""What a body may become: so many cells of columns for each of its bytes, and so many besides."""

Read = Callable[["Cursor"], Any]

_FLOAT: Final = struct.Struct("<f").unpack_from
_DOUBLE: Final = struct.Struct("<d").unpack_from


class BadBody(ValueError):
    """A body is no value of its schema. `path` is where, from the inside; where it is `placed`, the reason says it."""

    def __init__(self, why: str, placed: bool = False) -> None:
        super().__init__(why)
        self.path: list[str] = []
        self._placed = placed

    def __str__(self) -> str:
        where = "" if self._placed else ".".join(reversed(self.path)).replace(".[]", "[]")
        return f"at {where}: {self.args[0]}" if where else str(self.args[0])


class Cursor:
    """A place in a body."""

    __slots__ = ("at", "cells", "data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.cells = CELLS_PER_BYTE * len(data) + SPARE_CELLS

    def long(self) -> int:
        data, at = self.data, self.at
        result = shift = 0
        while True:
            if at >= self.end:
                raise BadBody("the value ends inside a number")
            byte = data[at]
            at += 1
            result |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise BadBody("a number has more than ten bytes")
        self.at = at
        result &= 0xFFFFFFFFFFFFFFFF
        return (result >> 1) ^ -(result & 1)

    def take(self, size: int) -> bytes:
        at = self.at
        if not 0 <= size <= self.end - at:
            raise BadBody(f"{size} bytes are to follow, and there are {self.end - at}")
        self.at = at + size
        return self.data[at : self.at]

    def spend(self, cells: int) -> None:
        self.cells -= cells
        if self.cells < 0:
            raise BadBody(f"its lists become more than {CELLS_PER_BYTE} cells for each of its {self.end} bytes")


def reader_of(plan: Plan) -> Callable[[bytes], Any]:
    """What reads a whole body to a value as `pa.array` takes it.

    Returns:
        A function that raises BadBody where the body is no value of the writer's schema, or none of the reader's.
    """
    read = _read(plan)

    def whole(body: bytes) -> Any:
        cursor = Cursor(body)
        value = read(cursor)
        if cursor.at != cursor.end:
            raise BadBody(f"{cursor.end - cursor.at} bytes follow the value")
        return value

    return whole


def _read(plan: Plan) -> Read:
    writer, reader = plan.writer, plan.reader
    if plan.branches:
        return _read_union([branch if isinstance(branch, str) else _read(branch) for branch in plan.branches])
    if plan.chosen is not None:
        return _in_union(reader, plan.chosen)
    if writer.kind == "record":
        return _read_record(plan)
    if writer.kind == "array":
        return _read_blocks(_read(plan.element), writer.element, plan.element.reader, keyed=False)
    if writer.kind == "map":
        return _read_blocks(_read(plan.element), writer.element, plan.element.reader, keyed=True)
    if writer.kind == "enum":
        return _read_enum(plan)
    if writer.kind in ("int", "long"):
        return _read_integer(writer, reader)
    if writer.kind in ("bytes", "string", "fixed"):
        return _read_bytes(writer, reader)
    return _PLAIN[writer.kind]


def _in_union(union: Node, chosen: Plan) -> Read:
    read = _read(chosen)
    if not is_struct(union) or chosen.reader.kind == "null":
        return read
    name = member_name(union, chosen.reader)
    return lambda cursor: {name: read(cursor)}


def _read_union(reads: list[Read | str]) -> Read:
    count = len(reads)

    def read_union(cursor: Cursor) -> Any:
        index = cursor.long()
        if not 0 <= index < count:
            raise BadBody(f"it is of type {index} of a union of {count}")
        read = reads[index]
        if isinstance(read, str):
            raise BadBody(read, placed=True)
        return read(cursor)

    return read_union


def _read_record(plan: Plan) -> Read:
    names = [field.name for field in plan.reader.fields]
    steps = [
        (step.name, names[step.target] if step.plan else None, _read(step.plan) if step.plan else _skip(step.node))
        for step in plan.steps
    ]
    defaults = {names[index]: value for index, value in plan.defaults}

    def read_record(cursor: Cursor) -> dict[str, Any]:
        value = dict(defaults)
        for name, target, read in steps:
            try:
                if target is None:
                    read(cursor)
                else:
                    value[target] = read(cursor)
            except BadBody as error:
                error.path.append(name)
                raise
        return value

    return read_record


def _read_blocks(read: Read, written: Node, kept: Node | None, keyed: bool) -> Read:
    """An array or a map: blocks of items, until one of none. `kept` is None where they are skipped."""
    least = written.min_bytes + keyed
    key = _text if kept is not None else _raw
    cells = kept.cells + keyed if kept is not None else 1

    def read_blocks(cursor: Cursor) -> list[Any]:
        items: list[Any] = []
        while count := cursor.long():
            if count < 0:
                # Its bytes follow, for those who skip; whoever believed them could be led to other bytes than a reader.
                count = -count
                cursor.long()
            if count * least > cursor.end - cursor.at:
                raise BadBody(f"{count} items are to follow in {cursor.end - cursor.at} bytes")
            cursor.spend(count * cells)
            try:
                if keyed:
                    items.extend([(key(cursor), read(cursor)) for _ in range(count)])
                else:
                    items.extend([read(cursor) for _ in range(count)])
            except BadBody as error:
                error.path.append("[]")
                raise
        return list(dict(items).items()) if keyed and kept is not None else items

    return read_blocks


def _read_enum(plan: Plan) -> Read:
    written, symbols, name = plan.writer.symbols, plan.symbols, plan.reader.name

    def read_enum(cursor: Cursor) -> str:
        index = cursor.long()
        if not 0 <= index < len(written):
            raise BadBody(f"it is symbol {index} of an enum of {len(written)}")
        symbol = symbols[index]
        if symbol is None:
            raise BadBody(f"enum {name} has no symbol {written[index]}, and no default")
        return symbol

    return read_enum


def _int(cursor: Cursor) -> int:
    value = cursor.long()
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise BadBody(f"{value} is no int")
    return value


def _rounded_to_odd(number: int) -> float:
    """The double that makes the float next to an integer: one that is rounded as usual could lie half way between two
    floats though the integer does not."""
    more = number.bit_length() - sys.float_info.mant_dig
    if more > 0:
        kept = number >> more
        number = (kept | (kept << more != number)) << more
    return float(number)


def _read_integer(writer: Node, reader: Node) -> Read:
    read = _int if writer.kind == "int" else Cursor.long
    if reader.kind == "double":
        return lambda cursor: float(read(cursor))
    if reader.kind == "float":
        return lambda cursor: _rounded_to_odd(read(cursor))
    if time_factors(writer, reader) == (1, 1):
        return read

    def read_time(cursor: Cursor) -> int:
        value = read(cursor)
        try:
            return stored_time(writer, reader, value)
        except ValueError as error:
            raise BadBody(str(error)) from None

    return read_time


def _text(cursor: Cursor) -> str:
    raw = cursor.take(cursor.long())
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadBody(f"a string is not UTF-8: {error.reason} at {error.start}") from None


def _raw(cursor: Cursor) -> bytes:
    return cursor.take(cursor.long())


def _read_bytes(writer: Node, reader: Node) -> Read:
    size = writer.size
    if reader.kind == "string":
        return _text
    logical = reader.logical
    if logical is None or logical.name != "decimal":
        return (
            _utf8 if writer.kind == "string" else _raw if writer.kind == "bytes" else lambda cursor: cursor.take(size)
        )
    read = (lambda cursor: cursor.take(size)) if writer.kind == "fixed" else _raw

    def read_decimal(cursor: Cursor) -> Any:
        try:
            return from_unscaled(logical, read(cursor))
        except BadBody:
            raise
        except ValueError as error:
            raise BadBody(str(error)) from None

    return read_decimal


def _utf8(cursor: Cursor) -> bytes:
    return _text(cursor).encode()


def _boolean(cursor: Cursor) -> bool:
    byte = cursor.take(1)[0]
    if byte > 1:
        raise BadBody(f"a boolean has the byte {byte}")
    return byte == 1


def _float(cursor: Cursor) -> float:
    value: float = _FLOAT(cursor.take(4))[0]
    return value


def _double(cursor: Cursor) -> float:
    value: float = _DOUBLE(cursor.take(8))[0]
    return value


_PLAIN: Final[dict[str, Read]] = {
    "null": lambda cursor: None,
    "boolean": _boolean,
    "float": _float,
    "double": _double,
}


def _skip(node: Node) -> Read:
    """What reads past a value that nobody wants. Its text and numbers are not looked at, its end is."""
    if node.kind == "record":
        skips = [(field.name, _skip(field.node)) for field in node.fields]

        def skip_record(cursor: Cursor) -> None:
            for name, skip in skips:
                try:
                    skip(cursor)
                except BadBody as error:
                    error.path.append(name)
                    raise

        return skip_record
    if node.kind == "union":
        return _read_union([_skip(branch) for branch in node.branches])
    if node.kind in ("array", "map"):
        return _read_blocks(_skip(node.element), node.element, None, keyed=node.kind == "map")
    if node.kind in ("int", "long", "enum"):
        return Cursor.long
    if node.kind in ("string", "bytes"):
        return _raw
    size = 1 if node.kind == "boolean" else node.min_bytes
    return lambda cursor: cursor.take(size)
