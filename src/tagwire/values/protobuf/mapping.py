"""Which Arrow type a Protobuf message has: what Spark's own `from_protobuf` makes of it, docs/values.md#protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa
with Needs("protobuf"):
    from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor

MAX_COLUMNS: Final = 20_000
"""How many fields a message may have, with those of all messages in it, each as often as it is used."""
MAX_DEPTH: Final = 60
"""How deep messages may be declared in each other; Protobuf's readers stop at values 100 deep."""

_TYPES: Final = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int32(),
    FieldDescriptor.TYPE_FIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.int64(),
    FieldDescriptor.TYPE_FIXED64: pa.int64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}
FLOATS: Final = {FieldDescriptor.TYPE_DOUBLE: "<d", FieldDescriptor.TYPE_FLOAT: "<f"}
"""The types whose zero has two forms, and how `struct` writes them."""
TIMESTAMP: Final = pa.timestamp("us", "UTC")
INTERVAL: Final = pa.duration("us")


class Shape(Enum):
    """What one value of a field is."""

    NUMBER = "number"
    BOOL = "bool"
    STRING = "string"
    BYTES = "bytes"
    ENUM = "enum"
    MESSAGE = "message"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"


@dataclass(frozen=True, eq=False)
class EnumNames:
    """An enum's names by number and numbers by name; of several names for a number the first is its name.

    Attributes:
        closed: numbers that it lacks are no values: readers keep them as unknown fields.
        unknown: what the name of a number begins with that an open enum lacks, as Protobuf for Java calls it.
    """

    names: dict[int, str]
    numbers: dict[str, int]
    closed: bool
    unknown: str

    def name_of(self, number: int) -> str:
        return self.names.get(number) or f"{self.unknown}{number}"


@dataclass(frozen=True, eq=False)
class FieldPlan:
    """A field that is a column.

    Attributes:
        kind: its type in Protobuf, a `FieldDescriptor.TYPE_*`.
        one: the Arrow type of one value; `type` that of the field, which is a list's or a map's for those.
        presence: an absent field is told from one that has its default value.
        default: what an absent field is; None is null. Of an enum the name.
        key: a map's key, and `value` its value.
        message: of a message that is a struct.
        parts: of a timestamp or an interval, the numbers of its seconds and its nanoseconds.
        oneof: a name that the members of a oneof share.
    """

    name: str
    number: int
    kind: int
    shape: Shape
    one: pa.DataType
    type: pa.DataType
    repeated: bool = False
    required: bool = False
    presence: bool = True
    packed: bool = False
    default: object = None
    oneof: str | None = None
    enum: EnumNames | None = None
    message: MessagePlan | None = None
    parts: tuple[int, int] = (0, 0)
    key: FieldPlan | None = None
    value: FieldPlan | None = None

    @property
    def column(self) -> pa.Field:
        return pa.field(self.name, self.type, nullable=not self.required)


@dataclass(frozen=True, eq=False)
class MessagePlan:
    """A message that is a struct.

    Attributes:
        requires: it, or a message in it, has a required field.
        groups: it, or a message in it, has a field that is a group.
    """

    full_name: str
    fields: tuple[FieldPlan, ...]
    requires: bool
    groups: bool

    @property
    def type(self) -> pa.DataType:
        return pa.struct([field.column for field in self.fields])


def plan_of(message: Descriptor) -> MessagePlan:
    """How a message becomes a struct.

    Raises:
        ValueSchemaError: it contains itself, has no field that becomes a column, or more than are allowed.
    """
    planned = _Planner().message(message, (), ())
    if not planned.fields:
        raise ValueSchemaError(f"the message {message.full_name} has no field that could be a column")
    return planned


class _Planner:
    def __init__(self) -> None:
        self._columns = 0

    def message(self, message: Descriptor, within: Sequence[str], path: Sequence[str]) -> MessagePlan:
        name = message.full_name
        if name in within:
            raise ValueSchemaError(
                f"the field {'.'.join(path)} has the type {name}, which contains it: messages that contain themselves "
                "have no column type"
            )
        if len(within) >= MAX_DEPTH:
            raise ValueSchemaError(f"messages are declared more than {MAX_DEPTH} deep in each other, at {name}")
        self._columns += len(message.fields)
        if self._columns > MAX_COLUMNS:
            raise ValueSchemaError(f"the message has more than {MAX_COLUMNS} fields with those of the messages in it")
        fields = [
            field
            for each in message.fields
            if (field := self.field(each, (*within, name), (*path, each.name))) is not None
        ]
        inner = [each.message_type for each in message.fields if each.message_type is not None]
        below = [field.message for field in _all(fields) if field.message is not None]
        return MessagePlan(
            name,
            tuple(fields),
            requires=any(f.is_required for f in message.fields)
            or any(plan.requires for plan in below)
            or any(_requires(descriptor) for descriptor in inner),
            groups=any(f.type == FieldDescriptor.TYPE_GROUP for f in message.fields)
            or any(plan.groups for plan in below),
        )

    def field(self, field: FieldDescriptor, within: Sequence[str], path: Sequence[str]) -> FieldPlan | None:
        """None for a message that has no columns, which is none, as in Spark."""
        if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (self.field(each, within, (*path, each.name)) for each in field.message_type.fields)
            if key is None or value is None:
                return None
            return FieldPlan(
                field.name,
                field.number,
                field.type,
                Shape.MESSAGE,
                pa.struct([key.column, value.column]),
                pa.map_(key.type, pa.field("value", value.type, nullable=False)),
                repeated=True,
                presence=False,
                key=key,
                value=value,
            )
        shape, one, message = Shape.NUMBER, _TYPES.get(field.type), None
        if field.message_type is not None:
            shape, one, message = self._of_message(field, within, path)
            if message is not None and not message.fields:
                return None
        elif field.type in _SHAPES:
            shape = _SHAPES[field.type]
        repeated = field.is_repeated
        return FieldPlan(
            field.name,
            field.number,
            field.type,
            shape,
            one,
            pa.list_(pa.field("element", one, nullable=False)) if repeated else one,
            repeated=repeated,
            required=field.is_required,
            presence=field.has_presence,
            packed=repeated and field.is_packed,
            default=_default(field),
            oneof=field.containing_oneof.name if field.containing_oneof is not None else None,
            enum=None if field.enum_type is None else _names(field.enum_type),
            message=message,
            parts=(0, 0) if message is not None or field.message_type is None else _parts(field.message_type),
        )

    def _of_message(
        self, field: FieldDescriptor, within: Sequence[str], path: Sequence[str]
    ) -> tuple[Shape, pa.DataType, MessagePlan | None]:
        message = field.message_type
        # By their own names and fields only, whatever the package: so does Spark.
        if [each.name for each in message.fields] == ["seconds", "nanos"] and _counts(message):
            if message.name == "Timestamp":
                return Shape.TIMESTAMP, TIMESTAMP, None
            if message.name == "Duration":
                return Shape.INTERVAL, INTERVAL, None
        planned = self.message(message, within, path)
        return Shape.MESSAGE, planned.type, planned


_SHAPES: Final = {
    FieldDescriptor.TYPE_BOOL: Shape.BOOL,
    FieldDescriptor.TYPE_STRING: Shape.STRING,
    FieldDescriptor.TYPE_BYTES: Shape.BYTES,
    FieldDescriptor.TYPE_ENUM: Shape.ENUM,
}


def _all(fields: Sequence[FieldPlan]) -> Sequence[FieldPlan]:
    """Fields, and what the values of maps are."""
    return [*fields, *(field.value for field in fields if field.value is not None)]


def _requires(message: Descriptor) -> bool:
    """Of a map's entry, or a message that is a column of another kind: it has a required field itself."""
    return any(field.is_required for field in message.fields)


def _counts(message: Descriptor) -> bool:
    """A message of an int64 and an int32 that are neither repeated."""
    seconds, nanos = message.fields
    return (
        seconds.type == FieldDescriptor.TYPE_INT64
        and nanos.type == FieldDescriptor.TYPE_INT32
        and not seconds.is_repeated
        and not nanos.is_repeated
    )


def _parts(message: Descriptor) -> tuple[int, int]:
    seconds, nanos = message.fields
    return seconds.number, nanos.number


def _default(field: FieldDescriptor) -> object:
    """The default that a field's declaration names: only proto2 has such."""
    if not field.has_default_value or field.is_repeated or not field.has_presence:
        return None
    if field.enum_type is not None:
        return _names(field.enum_type).name_of(field.default_value)
    value = field.default_value
    if field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32):
        return signed(value, 32)
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
        return signed(value, 64)
    return value


def signed(value: int, bits: int) -> int:
    """The signed number that has the bits of an unsigned one."""
    return value - (1 << bits) if value >> (bits - 1) else value


def _names(enum: EnumDescriptor) -> EnumNames:
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return EnumNames(
        names, {value.name: value.number for value in enum.values}, enum.is_closed, f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    )
