"""Random Protobuf messages: descriptors of every kind of field, and values for them."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from hypothesis import strategies as st

from tagwire.values.schemas import PROTOBUF, Schema

F = FieldDescriptorProto
INTEGERS = {
    F.TYPE_INT32: (-(2**31), 2**31 - 1),
    F.TYPE_SINT32: (-(2**31), 2**31 - 1),
    F.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    F.TYPE_UINT32: (0, 2**32 - 1),
    F.TYPE_FIXED32: (0, 2**32 - 1),
    F.TYPE_INT64: (-(2**63), 2**63 - 1),
    F.TYPE_SINT64: (-(2**63), 2**63 - 1),
    F.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT64: (0, 2**64 - 1),
    F.TYPE_FIXED64: (0, 2**64 - 1),
}
SCALARS = (*INTEGERS, F.TYPE_BOOL, F.TYPE_FLOAT, F.TYPE_DOUBLE, F.TYPE_STRING, F.TYPE_BYTES)
KEYS = (*INTEGERS, F.TYPE_BOOL, F.TYPE_STRING)
TIMES = (".google.protobuf.Timestamp", ".google.protobuf.Duration")


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A schema whose last message is `t.Whole`, as a registry serves it serialized."""
    syntax = draw(st.sampled_from(["proto2", "proto3"]))
    file = FileDescriptorProto(name="random.proto", package="t", syntax=syntax)
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"])
    enum = EnumDescriptorProto(name="Colour")
    for name, number in (("RED", 0), ("GREEN", 1), ("BLUE", -2)):
        enum.value.add(name=name, number=number)
    file.enum_type.append(enum)
    for name in ["A", "B"][: draw(st.integers(0, 2))]:
        known = [f".t.{message.name}" for message in file.message_type]
        file.message_type.append(draw(messages(name, syntax, known)))
    known = [f".t.{message.name}" for message in file.message_type]
    file.message_type.append(draw(messages("Whole", syntax, known)))
    return Schema(base64.b64encode(file.SerializeToString()).decode(), PROTOBUF)


@st.composite
def messages(draw: st.DrawFn, name: str, syntax: str, known: list[str]) -> DescriptorProto:
    message = DescriptorProto(name=name)
    if draw(st.booleans()):
        message.oneof_decl.add(name="one")
    numbers = draw(st.lists(st.integers(1, 18000), min_size=1, max_size=7, unique=True))
    for place, number in enumerate(numbers):
        field = message.field.add(name=f"f_{place}", number=number + (1000 if number >= 19000 else 0))
        labels = [F.LABEL_OPTIONAL, F.LABEL_REPEATED, F.LABEL_OPTIONAL]
        if syntax == "proto2":
            labels.append(F.LABEL_REQUIRED)
        field.label = draw(st.sampled_from(labels))
        kind = draw(st.sampled_from(["scalar", "scalar", "scalar", "enum", "time", "message", "map", "group"]))
        if kind == "group" and (syntax == "proto3" or place):
            kind = "scalar"
        if kind == "message" and not known:
            kind = "time"
        if kind == "map":
            _map(draw, message, field, known)
            continue
        if kind == "group":
            inner = message.nested_type.add(name="Group")
            inner.field.add(name="x", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
            field.name, field.type, field.type_name = "group", F.TYPE_GROUP, f".t.{name}.Group"
        else:
            _typed(draw, field, kind, known)
        if field.label == F.LABEL_OPTIONAL:
            _present(draw, message, field, syntax)
        elif field.label == F.LABEL_REPEATED and (field.type in INTEGERS or field.type in (F.TYPE_BOOL, F.TYPE_DOUBLE)):
            field.options.packed = draw(st.booleans())
    if message.oneof_decl and not any(field.HasField("oneof_index") for field in message.field):
        del message.oneof_decl[:]
    return message


def _present(draw: st.DrawFn, message: DescriptorProto, field: F, syntax: str) -> None:
    ones = message.oneof_decl and message.oneof_decl[0].name == "one"
    if ones and field.type != F.TYPE_GROUP and draw(st.booleans()):
        field.oneof_index = 0
    elif syntax == "proto3" and not ones and draw(st.booleans()):
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _typed(draw: st.DrawFn, field: F, kind: str, known: list[str]) -> None:
    if kind == "scalar":
        field.type = draw(st.sampled_from(SCALARS))
    elif kind == "enum":
        field.type, field.type_name = F.TYPE_ENUM, ".t.Colour"
    else:
        field.type, field.type_name = F.TYPE_MESSAGE, draw(st.sampled_from(TIMES if kind == "time" else known))


def _map(draw: st.DrawFn, message: DescriptorProto, field: F, known: list[str]) -> None:
    entry = message.nested_type.add(name=f"F{field.name[2:]}Entry")
    entry.options.map_entry = True
    field.name = f"f{field.name[2:]}"
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=draw(st.sampled_from(KEYS)))
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
    _typed(draw, value, draw(st.sampled_from(["scalar", "enum", "time", *(["message"] if known else [])])), known)
    field.label, field.type, field.type_name = F.LABEL_REPEATED, F.TYPE_MESSAGE, entry.name


def filled(draw: st.DrawFn, message: Any) -> Any:
    """A message with random values in random fields, and in all that are required."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and draw(st.integers(0, 3)) == 0:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            for _ in range(draw(st.integers(0, 3))):
                entries = getattr(message, field.name)
                if value.message_type is not None:
                    filled(draw, entries[draw(values(key))])
                else:
                    entries[draw(values(key))] = draw(values(value))
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 3))):
                if field.message_type is not None:
                    filled(draw, getattr(message, field.name).add())
                else:
                    getattr(message, field.name).append(draw(values(field)))
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            filled(draw, getattr(message, field.name))
        else:
            setattr(message, field.name, draw(values(field)))
    if message.DESCRIPTOR.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        # What has a column: in microseconds, and of one sign.
        message.seconds, message.nanos = message.seconds % 10**11, abs(message.nanos) % 10**6 * 1000
        if message.DESCRIPTOR.name == "Timestamp":
            message.seconds -= 5 * 10**10
    return message


def values(field: Any) -> st.SearchStrategy[Any]:
    if field.type in INTEGERS:
        low, high = INTEGERS[field.type]
        return st.one_of(st.integers(low, high), st.sampled_from([0, 1, low, high]))
    if field.enum_type is not None:
        return st.sampled_from([0, 1, -2])
    if field.type == F.TYPE_BOOL:
        return st.booleans()
    if field.type == F.TYPE_STRING:
        return st.text(st.characters(codec="utf-8"), max_size=5)
    if field.type == F.TYPE_BYTES:
        return st.binary(max_size=5)
    return st.floats(width=32 if field.type == F.TYPE_FLOAT else 64, allow_nan=False)
