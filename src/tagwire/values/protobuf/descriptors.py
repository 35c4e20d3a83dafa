"""Descriptors of a schema, and the message of a file that a name or a registry's indexes mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.protobuf.compiling import compiled
from tagwire.values.protobuf.map_entries import is_made_up
from tagwire.values.schemas import Schema

with Needs("protobuf"):
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor


@lru_cache(maxsize=128)
def pool_of(descriptors: bytes) -> DescriptorPool:
    """A pool of the files of a serialized FileDescriptorSet. Kept for those of late.

    Raises:
        ValueSchemaError: the files do not fit together.
    """
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptors).file:
        try:
            pool.Add(file)
            pool.FindFileByName(file.name)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueSchemaError(f"the descriptor of {file.name} is wrong: {error}") from None
    return pool


def file_of(schema: Schema) -> FileDescriptor:
    """The schema's own file.

    Raises:
        ValueSchemaError: it cannot be understood.
    """
    descriptors, name = compiled(schema)
    return pool_of(descriptors).FindFileByName(name)


def message_named(file: FileDescriptor, name: str | None) -> Descriptor:
    """The message of the file that has a full name; None is the file's first.

    Raises:
        ValueSchemaError: there is none.
    """
    if name is None:
        if not file.message_types_by_name:
            raise ValueSchemaError("the schema has no message")
        return next(iter(file.message_types_by_name.values()))
    try:
        found = file.pool.FindMessageTypeByName(name)
    except KeyError:
        known = [message.full_name for message in file.message_types_by_name.values()]
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        raise ValueSchemaError(
            f"the schema has no message {name!r}; it has {', '.join(known[:20]) or 'none'}{more}"
        ) from None
    if found.file.name != file.name:
        raise ValueSchemaError(f"the message {name} is of {found.file.name}, which the schema only refers to")
    return found


def message_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """The message that a registry's message indexes mean: a place in the file, then in each message around it.

    They count what the schema declares, as Java's reader has it. Where that gives no message they count entries of
    maps, too, as writers do that go by descriptors (docs/values.md).

    Raises:
        ValueSchemaError: there is none.
    """
    if not indexes:
        raise ValueSchemaError("no message indexes are given")
    found = _at(file, indexes, _nested) or _at(file, indexes, lambda message: message.nested_types)
    if found is None:
        raise ValueSchemaError(f"the schema has no message at the indexes {list(indexes)}")
    return found


def _at(
    file: FileDescriptor, indexes: Sequence[int], inside: Callable[[Descriptor], Sequence[Descriptor]]
) -> Descriptor | None:
    messages: Sequence[Descriptor] = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        found = messages[index]
        messages = inside(found)
    return found


def indexes_of(message: Descriptor) -> tuple[int, ...]:
    """What a registry calls a message of its file by; the reverse of `message_at`."""
    indexes = []
    within: Descriptor | None = message
    while within is not None:
        around = within.containing_type
        siblings = within.file.message_types_by_name.values() if around is None else _nested(around)
        indexes.append([sibling.full_name for sibling in siblings].index(within.full_name))
        within = around
    return tuple(reversed(indexes))


def _nested(message: Descriptor) -> list[Descriptor]:
    """The messages that a schema declares in another one: entries of maps where it spells them out, as in Java."""
    return [nested for nested in message.nested_types if not is_made_up(nested)]
