"""Messages as ptars is told of them, so that what it reads and writes is what Protobuf means.

They have the numbers and the wire types of the true ones and nothing else: ptars has rules of its own for what the
true ones may have besides (absent fields, enums, unsigned numbers, maps, Protobuf's own messages), which are not
Spark's, and are not always Protobuf's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tagwire.extras import Needs
from tagwire.values.protobuf.column_fitting import FittedField
from tagwire.values.protobuf.mapping import FLOATS, FieldPlan, MessagePlan, Shape

with Needs("protobuf"):
    import ptars
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

MAX_NUMBER: Final = 100_000
"""ptars has a table as long as a message's largest field number."""

_SIGNED: Final = {
    FieldDescriptor.TYPE_UINT32: FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_UINT64: FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_FIXED32: FieldDescriptor.TYPE_SFIXED32,
    FieldDescriptor.TYPE_FIXED64: FieldDescriptor.TYPE_SFIXED64,
    FieldDescriptor.TYPE_ENUM: FieldDescriptor.TYPE_INT32,
}
_OPTIONAL: Final = FieldDescriptorProto.LABEL_OPTIONAL
_REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED


def reads_as_a_whole(plan: MessagePlan) -> bool:
    """Whether ptars can be given the message."""
    return not plan.groups and all(_small(field) for field in plan.fields)


def _small(field: FieldPlan) -> bool:
    inner = [each for each in (field.message, field.value and field.value.message) if each]
    return max(field.number, *field.parts) <= MAX_NUMBER and all(reads_as_a_whole(each) for each in inner)


def writes_as_a_whole(fields: Sequence[FittedField]) -> bool:
    """Whether ptars can be given the columns."""
    return bool(fields) and all(_writes(field) for field in fields)


def _writes(field: FittedField) -> bool:
    plan = field.plan
    if plan.kind == FieldDescriptor.TYPE_GROUP or max(plan.number, *plan.parts) > MAX_NUMBER:
        return False
    of_messages = plan.message is not None or (plan.value is not None and plan.value.message is not None)
    return not of_messages or writes_as_a_whole(field.fields)


def name_at(place: int) -> str:
    """What a message's field is called in the columns that are read."""
    return f"f{place}"


def reading_handler(plan: MessagePlan) -> Any:
    """A handler of ptars whose columns are null where a field is absent."""
    made = _File("proto2")
    made.reading(plan)
    return made.handler()


def writing_handler(fields: Sequence[FittedField]) -> Any:
    """A handler of ptars that takes fitted columns, and leaves out defaults where Protobuf does."""
    made = _File("proto3")
    made.writing(fields)
    return made.handler()


class _File:
    """The first message is the outermost one, and is made last."""

    def __init__(self, syntax: str) -> None:
        self._file = FileDescriptorProto(name="tagwire.proto", syntax=syntax)
        self._made = 0
        self._last = ""

    def handler(self) -> Any:
        pool = DescriptorPool()
        pool.Add(self._file)
        file = pool.FindFileByName(self._file.name)
        message: Descriptor = file.message_types_by_name[self._last]
        return ptars.HandlerPool([file]).get_for_message(message)

    def _message(self) -> DescriptorProto:
        return DescriptorProto(name=f"M{self._made}")

    def _add(self, message: DescriptorProto) -> str:
        """Put into the file once it is whole; its name as a type."""
        message.name = self._last = f"M{self._made}"
        self._made += 1
        self._file.message_type.append(message)
        return f".{message.name}"

    def reading(self, plan: MessagePlan) -> str:
        message = self._message()
        for field in plan.fields:
            self._read(message, field)
        return self._add(message)

    def _read(self, message: DescriptorProto, field: FieldPlan) -> None:
        added = message.field.add(
            name=name_at(len(message.field)), number=field.number, label=_REPEATED if field.repeated else _OPTIONAL
        )
        if field.key is not None and field.value is not None:
            entry = self._message()
            self._read(entry, field.key)
            self._read(entry, field.value)
            inner = self._add(entry)
        elif field.message is not None:
            inner = self.reading(field.message)
        elif field.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
            inner = self._time(field)
        else:
            added.type = _SIGNED.get(field.kind, field.kind)
            return
        added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, inner

    def _time(self, field: FieldPlan) -> str:
        message = self._message()
        kinds = (FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.TYPE_INT32)
        for name, number, kind in zip(("seconds", "nanos"), field.parts, kinds):
            message.field.add(name=name, number=number, type=kind, label=_OPTIONAL)
        return self._add(message)

    def writing(self, fields: Sequence[FittedField]) -> str:
        message = self._message()
        for field in fields:
            self._write(message, field.plan, field.fields, field.plan.name)
        return self._add(message)

    def _write(self, message: DescriptorProto, plan: FieldPlan, fields: Sequence[FittedField], name: str) -> None:
        added = message.field.add(name=name, number=plan.number, label=_REPEATED if plan.repeated else _OPTIONAL)
        if plan.repeated:
            added.options.packed = plan.packed
        if plan.key is not None and plan.value is not None:
            entry = self._message()
            self._write(entry, replace(plan.key, presence=True), (), "key")
            self._write(entry, replace(plan.value, presence=True), fields, "value")
            added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, self._add(entry)
            added.options.ClearField("packed")
            return
        if plan.message is not None:
            added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, self.writing(fields)
            added.options.ClearField("packed")
            return
        if plan.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
            added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, self._time(plan)
            added.options.ClearField("packed")
            return
        added.type = FieldDescriptorProto.TYPE_INT32 if plan.enum is not None else plan.kind
        if plan.shape in (Shape.STRING, Shape.BYTES):
            added.options.ClearField("packed")
        # Of floating-point numbers ptars would leave out minus zero too, which is no default.
        if (plan.presence or plan.kind in FLOATS) and not plan.repeated:
            added.proto3_optional = True
            added.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
