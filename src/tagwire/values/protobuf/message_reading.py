"""Bodies as Python values by Protobuf's own library: what is right by definition, a row at a time.

Columns are made by ptars where they can be (column_reading.py); what it may read otherwise than Protobuf, or refuses,
is read here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tagwire.errors import DecodeError
from tagwire.extras import Needs
from tagwire.values.protobuf.growth import MAX_VALUES, Growth
from tagwire.values.protobuf.mapping import FLOATS, FieldPlan, MessagePlan, Shape, signed

with Needs("protobuf"):
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import DecodeError as _Refused
    from google.protobuf.message_factory import GetMessageClass
    from google.protobuf.unknown_fields import UnknownFieldSet

if TYPE_CHECKING:
    from google.protobuf.message import Message

_UNSIGNED: Final = {
    FieldDescriptor.TYPE_UINT32: 32,
    FieldDescriptor.TYPE_FIXED32: 32,
    FieldDescriptor.TYPE_UINT64: 64,
    FieldDescriptor.TYPE_FIXED64: 64,
}
_LONGEST: Final = (1 << 63) - 1
_SIZED: Final = 2
"""The wire type of what has its length before it."""


class MessageReader:
    """Bodies of one message as dicts by the names of fields.

    Args:
        message: its class.
        plan: what is read; some of the message's fields or all.
        whole: the plan of all of them.

    Attributes:
        growth: which bodies are refused for what they would become.
    """

    def __init__(self, message: type[Message], plan: MessagePlan, whole: MessagePlan) -> None:
        self._message = message
        self._plan = plan
        self._read = _struct_reader(plan)
        self.growth = Growth(whole)

    def read(self, body: bytes) -> dict[str, Any]:
        """A body's fields.

        Raises:
            DecodeError: it is no such message; says why.
        """
        if self.growth.outgrows(body):
            raise DecodeError(f"its {len(body)} bytes would become more than {MAX_VALUES} values in columns")
        try:
            message = self._message.FromString(body)
        except _Refused:
            raise DecodeError(f"the bytes are no {self._plan.full_name}: {_why(body)}") from None
        # By its class, here and below: a field may be called like a method.
        if self._plan.requires and not self._message.IsInitialized(message):
            missing = ", ".join(sorted(self._message.FindInitializationErrors(message))[:10])
            raise DecodeError(f"required fields are missing: {missing}")
        try:
            return self._read(message)
        except UnicodeDecodeError:
            raise DecodeError("a string is not UTF-8") from None


Reader = Callable[[Any], Any]


def _struct_reader(plan: MessagePlan) -> Reader:
    fields = [(field.name, _field_reader(field)) for field in plan.fields]

    def read(message: Any) -> dict[str, Any]:
        return {name: reader(message) for name, reader in fields}

    return read


def _field_reader(field: FieldPlan) -> Reader:
    name = field.name
    one = _one_reader(field)
    if field.key is not None and field.value is not None:
        return _map_reader(field, field.key, field.value)
    if field.repeated:
        return lambda message: [one(value) for value in getattr(message, name)]
    if field.presence:
        default = field.default
        return lambda message: one(getattr(message, name)) if type(message).HasField(message, name) else default
    if field.kind in FLOATS:
        # Minus zero is a value, though it equals the default.
        form = FLOATS[field.kind]
        zero = struct.pack(form, 0.0)
        return lambda message: None if struct.pack(form, value := getattr(message, name)) == zero else value

    def read(message: Any) -> Any:
        value = getattr(message, name)
        return one(value) if value else None

    return read


def _map_reader(field: FieldPlan, key: FieldPlan, value: FieldPlan) -> Reader:
    name, number = field.name, field.number
    read_key, read_value = _one_reader(key), _one_reader(value)
    is_closed = value.enum is not None and value.enum.closed

    def read(message: Any) -> list[tuple[Any, Any]]:
        entries = {read_key(k): read_value(v) for k, v in getattr(message, name).items()}
        # An entry that has more than key and value the library keeps as a whole among what it does not know. Writers
        # may have more in it where theirs is no map but a repeated message, which is the same on the wire.
        for unknown in UnknownFieldSet(message):
            if unknown.field_number != number or unknown.wire_type != _SIZED:
                continue
            entry: Any = GetMessageClass(message.DESCRIPTOR.fields_by_number[number].message_type)
            entry = entry.FromString(unknown.data)
            if not (is_closed and any(each.field_number == value.number for each in UnknownFieldSet(entry))):
                entries[read_key(entry.key)] = read_value(entry.value)
        return list(entries.items())

    return read


def _one_reader(field: FieldPlan) -> Reader:
    if field.message is not None:
        return _struct_reader(field.message)
    if field.shape is Shape.TIMESTAMP or field.shape is Shape.INTERVAL:
        return _microseconds
    if field.enum is not None:
        return field.enum.name_of
    if field.shape is Shape.STRING:
        return _text
    if bits := _UNSIGNED.get(field.kind):
        return lambda value: signed(value, bits)
    return lambda value: value


def _text(value: str | bytes) -> str:
    """proto2 does not look whether strings are UTF-8; the library then gives their bytes."""
    if isinstance(value, bytes):
        raise DecodeError("a string is not UTF-8")
    return value


def _microseconds(message: Any) -> int:
    nanos = message.nanos
    found = message.seconds * 1_000_000 + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    if not -_LONGEST - 1 <= found <= _LONGEST:
        raise DecodeError(f"{message.seconds} seconds are more microseconds than 64 bits hold")
    return int(found)


def _why(body: bytes) -> str:
    """Why Protobuf's library, which does not tell, may have refused a body."""
    place = 0
    while place < len(body):
        start = place
        tag, place = _varint(body, place)
        if tag is None:
            return f"a tag at byte {start} is cut off or longer than Protobuf allows"
        number, wire_type = tag >> 3, tag & 7
        if not number or tag >> 32:
            return f"the tag at byte {start} has no valid field number"
        if wire_type in (0, 2):
            value, place = _varint(body, place)
            if value is None:
                return f"field {number} at byte {start} has a varint that is cut off or longer than ten bytes"
            if wire_type == 2:
                if value > len(body) - place:
                    return f"field {number} at byte {start} claims {value} bytes, and {len(body) - place} are left"
                place += value
        elif wire_type in (1, 5):
            place += 8 if wire_type == 1 else 4
            if place > len(body):
                return f"field {number} at byte {start} is cut off"
        elif wire_type in (3, 4):
            return "what is within one of its messages, strings or groups"
        else:
            return f"field {number} at byte {start} has the wire type {wire_type}, which there is not"
    return "what is within one of its messages or strings"


def _varint(body: bytes, place: int) -> tuple[int | None, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(body):
            return None, place
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    return None, place


def rows_of(reader: MessageReader, bodies: Sequence[bytes]) -> tuple[list[dict[str, Any] | None], list[bool]]:
    """Bodies as rows, None for those that are bad, and which are."""
    rows: list[dict[str, Any] | None] = []
    bad: list[bool] = []
    for body in bodies:
        try:
            rows.append(reader.read(body))
            bad.append(False)
        except DecodeError:
            rows.append(None)
            bad.append(True)
    return rows, bad
