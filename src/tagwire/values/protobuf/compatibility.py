"""Which messages can be read by which other ones: what Protobuf's wire format lets change under one number.

Source: Protobuf's language guide, "Updating a message type". The kinds of change are those that registries check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tagwire.extras import Needs

with Needs("protobuf"):
    from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor

_ALIKE: Final = {
    FieldDescriptor.TYPE_INT32: "varint",
    FieldDescriptor.TYPE_UINT32: "varint",
    FieldDescriptor.TYPE_INT64: "varint",
    FieldDescriptor.TYPE_UINT64: "varint",
    FieldDescriptor.TYPE_BOOL: "varint",
    FieldDescriptor.TYPE_ENUM: "varint",
    FieldDescriptor.TYPE_SINT32: "zigzag",
    FieldDescriptor.TYPE_SINT64: "zigzag",
    FieldDescriptor.TYPE_STRING: "bytes",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_SFIXED32: "fixed32",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_SFIXED64: "fixed64",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_MESSAGE: "message",
    FieldDescriptor.TYPE_GROUP: "group",
}
_NAMES: Final = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def unreadable(written: Descriptor, read: Descriptor) -> list[str]:
    """Why values of a message cannot be read as another one: numbers whose types have other bytes. Empty where they
    can: fields that only one of the two has do no harm."""
    return list(_unreadable(written, read, set()))


def breaks(older: FileDescriptor, newer: FileDescriptor) -> list[str]:
    """What of a file's messages the newer one cannot read, or reads as something else."""
    messages = {message.full_name: message for message in _messages(newer.message_types_by_name.values())}
    found: list[str] = []
    met: set[tuple[str, str]] = set()
    for message in _messages(older.message_types_by_name.values()):
        later = messages.get(message.full_name)
        if later is None:
            found.append(f"the message {message.full_name} is no longer there")
            continue
        found += _changes(message, later, met)
    return list(dict.fromkeys(found))


def _messages(messages: object) -> Iterator[Descriptor]:
    for message in messages:  # type: ignore[attr-defined]
        if not message.GetOptions().map_entry:
            yield message
            yield from _messages(message.nested_types)


def _changes(older: Descriptor, newer: Descriptor, met: set[tuple[str, str]]) -> Iterator[str]:
    before, after = older.fields_by_number, newer.fields_by_number
    yield from _unreadable(older, newer, met)
    for number, field in after.items():
        was = before.get(number)
        if field.is_required and (was is None or not was.is_required):
            how = "is new" if was is None else "was optional"
            yield f"{_place(field)} is required, and {how}: older values may lack it"
        if was is not None and was.is_repeated != field.is_repeated and not _counts_as_one(was, field):
            yield f"{_place(field)} was {_cardinality(was)} and is {_cardinality(field)}"
    for number, was in before.items():
        if was.is_required and number not in after:
            yield f"{_place(was)} was required and is removed: older readers refuse values without it"
    yield from _oneofs(older, newer)


def _oneofs(older: Descriptor, newer: Descriptor) -> Iterator[str]:
    """Fields that could be set together and now exclude each other, and fields that are gone from a oneof."""
    for field in older.fields:
        home = _oneof_of(field)
        if home is not None and field.number not in newer.fields_by_number:
            yield f"{_place(field)} is gone from the oneof {field.containing_oneof.name}: which one was set is lost"
    for oneof in newer.oneofs:
        inside = [
            older.fields_by_number[field.number] for field in oneof.fields if field.number in older.fields_by_number
        ]
        homes = {_oneof_of(field) or field.full_name for field in inside}
        if len(homes) > 1:
            names = ", ".join(field.name for field in inside)
            yield f"{newer.full_name}: {names} are in the oneof {oneof.name}, and could be set together before"


def _oneof_of(field: FieldDescriptor) -> str | None:
    oneof = field.containing_oneof
    return oneof.full_name if oneof is not None and len(oneof.fields) > 1 else None


def _unreadable(written: Descriptor, read: Descriptor, met: set[tuple[str, str]]) -> Iterator[str]:
    """Of two messages and those in them, but for pairs that were met."""
    waiting = [(written, read)]
    while waiting:
        before, after = waiting.pop()
        if (before.full_name, after.full_name) in met:
            continue
        met.add((before.full_name, after.full_name))
        fields = after.fields_by_number
        for number, field in before.fields_by_number.items():
            reader = fields.get(number)
            if reader is None:
                continue
            if not _readable(field, reader):
                yield f"{_place(reader)} is {_kind(reader)}, and was written as {_kind(field)}"
            elif field.message_type is not None and reader.message_type is not None:
                waiting.append((field.message_type, reader.message_type))


def _readable(written: FieldDescriptor, read: FieldDescriptor) -> bool:
    kinds = _ALIKE[written.type], _ALIKE[read.type]
    if kinds[0] != kinds[1]:
        # A message's bytes may be kept as such.
        return set(kinds) == {"bytes", "message"} and FieldDescriptor.TYPE_STRING not in (written.type, read.type)
    maps = [f.message_type is not None and f.message_type.GetOptions().map_entry for f in (written, read)]
    if maps[0] == maps[1]:
        return True
    # A map is a repeated message of a key and a value.
    other = read if maps[0] else written
    return bool(other.is_repeated)


def _counts_as_one(was: FieldDescriptor, field: FieldDescriptor) -> bool:
    """Strings, bytes and messages may become repeated or cease to be: the last one counts."""
    return _ALIKE[was.type] in ("bytes", "message") and _ALIKE[field.type] in ("bytes", "message")


def _cardinality(field: FieldDescriptor) -> str:
    return "repeated" if field.is_repeated else "single"


def _place(field: FieldDescriptor) -> str:
    return f"field {field.number} of {field.containing_type.full_name} ({field.name})"


def _kind(field: FieldDescriptor) -> str:
    name = _NAMES[field.type]
    return f"{name} {field.message_type.full_name}" if field.message_type is not None else name
