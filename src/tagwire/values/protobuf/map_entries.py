"""The entries of maps, where a schema spells them out.

A schema that was made of a descriptor, as Confluent's serializers for generated classes make theirs, has for a map a
repeated message with `option map_entry = true`. Registries serve it so; protoc takes that option from nobody. Such an
entry is also counted among the messages of its file, which one that protoc makes of `map<...>` is not.

Source: Confluent's ProtobufSchema; docs/values.md#protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs

with Needs("protobuf"):
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MARK: Final = "tagwire_map_entry_of_the_schema"
"""A reserved name, which protoc hands on: it stands for the option, and stays as what says that the schema has it."""

_OPTION: Final = re.compile(
    r"""
    (?P<option> \b option \s+ map_entry \s* = \s* true \s* ; )
    | " (?: \\. | [^"\\\n] )* "?
    | ' (?: \\. | [^'\\\n] )* '?
    | // [^\n]*
    | /\* .*? (?: \*/ | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_NO_KEYS: Final = frozenset(
    (
        FieldDescriptorProto.TYPE_DOUBLE,
        FieldDescriptorProto.TYPE_FLOAT,
        FieldDescriptorProto.TYPE_BYTES,
        FieldDescriptorProto.TYPE_ENUM,
        FieldDescriptorProto.TYPE_GROUP,
        FieldDescriptorProto.TYPE_MESSAGE,
    )
)


def marked(text: str) -> str:
    """The text of a `.proto` file as protoc takes it: with a mark where `option map_entry = true` is."""
    if "map_entry" not in text:
        return text
    return _OPTION.sub(lambda found: f'reserved "{_MARK}";' if found["option"] else found[0], text)


def mark(file: FileDescriptorProto) -> None:
    """Puts the mark on all entries of a file that came as a descriptor, which has each of them."""
    for _, message, _ in _messages(file):
        if message.options.map_entry and _MARK not in message.reserved_name:
            message.reserved_name.append(_MARK)


def restore(files: Collection[FileDescriptorProto]) -> None:
    """Makes messages with the mark the entries that they are.

    Raises:
        ValueSchemaError: one cannot be an entry.
    """
    entries: dict[str, str] = {}
    for file in files:
        for name, message, around in _messages(file):
            if _MARK in message.reserved_name:
                message.options.map_entry = True
                if not _is_entry(message):
                    raise ValueSchemaError(f"{name[1:]} is said to be the entry of a map (map_entry), and is none")
                entries[name] = around
    for file in files:
        for name, message, _ in _messages(file):
            for field in (*message.field, *message.extension):
                if field.type_name in entries and (
                    entries[field.type_name] != name or field.label != field.LABEL_REPEATED
                ):
                    raise ValueSchemaError(
                        f"{name[1:]}.{field.name} is of {field.type_name[1:]}, the entry of another field's map"
                    )


def is_made_up(message: Descriptor) -> bool:
    """Whether protoc made a message, of `map<...>`: the schema does not have it."""
    if not message.GetOptions().map_entry:
        return False
    found = DescriptorProto()
    message.CopyToProto(found)
    return _MARK not in found.reserved_name


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto, str]]:
    """Messages of a file at every depth, each with its full name and that of what it is in, which begin with a dot."""
    package = f".{file.package}" if file.package else ""
    waiting = [(message, package) for message in file.message_type]
    while waiting:
        message, around = waiting.pop()
        name = f"{around}.{message.name}"
        yield name, message, around
        waiting.extend((nested, name) for nested in message.nested_type)


def _is_entry(message: DescriptorProto) -> bool:
    fields = sorted((field.number, field.name, field.label) for field in message.field)
    optional = FieldDescriptorProto.LABEL_OPTIONAL
    return (
        fields == [(1, "key", optional), (2, "value", optional)]
        and all(field.type not in _NO_KEYS for field in message.field if field.number == 1)
        and not (message.nested_type or message.enum_type or message.extension_range or message.oneof_decl)
    )
