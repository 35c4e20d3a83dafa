"""Columns as a message's fields need them: whether they fit at all, then values checked and brought into the types in
which they are written. Columns and fields meet by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tagwire.errors import EncodeError, ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.dictionaries import without_dictionary
from tagwire.values.protobuf.mapping import FieldPlan, MessagePlan, Shape

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc
with Needs("protobuf"):
    from google.protobuf.descriptor import FieldDescriptor

WRITTEN: Final = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.uint32(),
    FieldDescriptor.TYPE_FIXED32: pa.uint32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.uint64(),
    FieldDescriptor.TYPE_FIXED64: pa.uint64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.int32(),
}
TIME: Final = pa.struct([pa.field("seconds", pa.int64()), pa.field("nanos", pa.int32())])
_UNITS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

Fit = Callable[[pa.Array], pa.Array]
"""Brings a column's values into the type that is written. Raises EncodeError where one does not fit."""


@dataclass(frozen=True, eq=False)
class FittedField:
    """A field that there is a column for.

    Attributes:
        column: the column's name.
        fields: of a message, or a map whose values are messages, those of its fields that there are columns for.
    """

    plan: FieldPlan
    fit: Fit
    type: pa.DataType
    fields: tuple[FittedField, ...] = ()


def fitted(plan: MessagePlan, columns: pa.DataType) -> tuple[FittedField, ...]:
    """How columns become the fields of a message.

    Raises:
        ValueSchemaError: they do not fit: which, and why.
    """
    return _fitted(plan, columns, "")


class _Unfit(EncodeError):
    """A value does not fit; `place` is the field within what is written."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place, self.reason = place, reason


def fit_struct(fields: tuple[FittedField, ...], column: pa.Array) -> list[pa.Array]:
    """The fields of structs, in the types that they are written in.

    Raises:
        EncodeError: a value does not fit; says where and why.
    """
    arrays = []
    members: dict[str, list[tuple[str, pa.Array]]] = {}
    valid = column.is_valid() if column.null_count else None
    for fitting in fields:
        plan = fitting.plan
        values = without_dictionary(pc.struct_field(column, [plan.name]))
        if plan.required:
            absent = values.is_null() if valid is None else pc.and_(valid, values.is_null())
            if pc.any(absent).as_py():
                raise _Unfit(plan.name, "null, and the field is required")
        try:
            written = fitting.fit(values)
        except _Unfit as error:
            raise _Unfit(f"{plan.name}.{error.place}", error.reason) from None
        except (EncodeError, pa.ArrowInvalid) as error:
            raise _Unfit(plan.name, str(error).splitlines()[0]) from None
        if plan.oneof is not None:
            members.setdefault(plan.oneof, []).append((plan.name, written))
        arrays.append(written)
    for oneof, found in members.items():
        _only_one(oneof, found)
    return arrays


def _only_one(oneof: str, members: list[tuple[str, pa.Array]]) -> None:
    if len(members) < 2:
        return
    taken = members[0][1].is_valid()
    for name, values in members[1:]:
        valid = values.is_valid()
        if pc.any(pc.and_(taken, valid)).as_py():
            raise _Unfit(name, f"another field of the oneof {oneof} has a value too")
        taken = pc.or_(taken, valid)


def _fitted(plan: MessagePlan, columns: pa.DataType, path: str) -> tuple[FittedField, ...]:
    here = path or plan.full_name
    if not pa.types.is_struct(columns):
        raise ValueSchemaError(f"{here}: a column of the type {columns} is no message {plan.full_name}")
    known = {field.name: field for field in plan.fields}
    names = [field.name for field in columns]
    for name in names:
        if name not in known:
            raise ValueSchemaError(f"the column {_under(path, name)} is no field of the message {plan.full_name}")
        if names.count(name) > 1:
            raise ValueSchemaError(f"two columns are named {_under(path, name)}")
    if missing := [field.name for field in plan.fields if field.required and field.name not in names]:
        raise ValueSchemaError(f"no column {_under(path, missing[0])}, and {plan.full_name} requires that field")
    return tuple(_fitted_field(known[field.name], field.type, _under(path, field.name)) for field in columns)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fitted_field(plan: FieldPlan, column: pa.DataType, path: str) -> FittedField:
    if plan.key is not None and plan.value is not None:
        return _fitted_map(plan, column, path)
    if not plan.repeated:
        return _fitted_one(plan, column, path)
    if pa.types.is_null(column):
        inner = _fitted_one(plan, column, path)
    elif pa.types.is_list(column) or pa.types.is_large_list(column) or pa.types.is_fixed_size_list(column):
        inner = _fitted_one(plan, column.value_type, f"{path}[]")
    else:
        raise ValueSchemaError(f"{path}: a column of the type {column} is no list, and the field is repeated")
    kind = pa.list_(inner.type)

    def fit(values: pa.Array) -> pa.Array:
        if pa.types.is_null(values.type):
            return pa.nulls(len(values), kind)
        if not pa.types.is_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        return _list_of(values, inner.fit(_elements(values)), kind)

    return FittedField(plan, fit, kind, inner.fields)


def _elements(values: pa.Array) -> pa.Array:
    """What lists hold, of those that are not null."""
    elements = without_dictionary(values.flatten())
    if elements.null_count:
        raise EncodeError("an element is null, which Protobuf has none of")
    return elements


def _list_of(values: pa.Array, elements: pa.Array, kind: pa.DataType) -> pa.Array:
    counts = pc.fill_null(pc.list_value_length(values), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts.cast(pa.int32()))])
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=mask)


def _fitted_map(plan: FieldPlan, column: pa.DataType, path: str) -> FittedField:
    assert plan.key is not None
    assert plan.value is not None
    if not pa.types.is_map(column) and not pa.types.is_null(column):
        raise ValueSchemaError(f"{path}: a column of the type {column} is no map, and the field is one")
    of_null = pa.types.is_null(column)
    # An entry's key and value are always written, as by Protobuf's own library.
    key = _fitted_one(replace(plan.key, presence=True), pa.null() if of_null else column.key_type, f"{path}.key")
    value = _fitted_one(replace(plan.value, presence=True), pa.null() if of_null else column.item_type, f"{path}.value")
    kind = pa.list_(pa.struct([("key", key.type), ("value", value.type)]))  # as Protobuf has it

    def fit(values: pa.Array) -> pa.Array:
        if of_null:
            return pa.nulls(len(values), kind)
        entries = values.cast(pa.list_(pa.struct([("key", column.key_type), ("value", column.item_type)])))
        flat = entries.flatten()
        keys, items = (without_dictionary(pc.struct_field(flat, [place])) for place in (0, 1))
        if items.null_count:
            raise EncodeError("a value is null, which Protobuf's maps have none of")
        fit_keys, fit_items = key.fit(keys), value.fit(items)
        return _list_of(entries, pa.StructArray.from_arrays([fit_keys, fit_items], ["key", "value"]), kind)

    return FittedField(plan, fit, kind, value.fields)


def _fitted_one(plan: FieldPlan, column: pa.DataType, path: str) -> FittedField:
    """Of one value of a field."""
    if pa.types.is_null(column):
        return _fitted_null(plan)
    if pa.types.is_dictionary(column):
        return _fitted_one(plan, column.value_type, path)  # of what is in it, as `without_dictionary` gives it
    if plan.message is not None:
        fields = _fitted(plan.message, column, path)
        kind = pa.struct([pa.field(field.plan.name, field.type) for field in fields])
        return FittedField(plan, _fit_message(fields, kind), kind, fields)
    if plan.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
        wanted = pa.types.is_timestamp if plan.shape is Shape.TIMESTAMP else pa.types.is_duration
        if not wanted(column):
            raise ValueSchemaError(f"{path}: a column of the type {column} is no {plan.shape.value}")
        return FittedField(plan, _fit_time, TIME)
    return FittedField(plan, _fit_value(plan, column, path), WRITTEN[plan.kind])


def _fitted_null(plan: FieldPlan) -> FittedField:
    """Of a column that has nothing but nulls."""
    if plan.message is not None:
        kind = pa.struct([])
    else:
        kind = TIME if plan.shape in (Shape.TIMESTAMP, Shape.INTERVAL) else WRITTEN[plan.kind]
    return FittedField(plan, lambda values: pa.nulls(len(values), kind), kind)


def _fit_message(fields: tuple[FittedField, ...], kind: pa.DataType) -> Fit:
    def fit(values: pa.Array) -> pa.Array:
        mask = values.is_null() if values.null_count else None
        if not fields:
            return pa.nulls(len(values), kind) if mask is None else values.cast(kind)
        return pa.StructArray.from_arrays(fit_struct(fields, values), fields=list(kind), mask=mask)

    return fit


def _fit_time(values: pa.Array) -> pa.Array:
    """Whole seconds before a point in time, or towards zero in an interval, and the rest in nanoseconds."""
    each = _UNITS[values.type.unit]
    interval = pa.types.is_duration(values.type)
    counts = values.cast(pa.int64()) if interval else values.view(pa.int64())
    seconds = pc.divide(counts, each)  # towards zero
    rest = pc.subtract(counts, pc.multiply(seconds, each))
    if not interval:
        before = pc.less(rest, 0)
        seconds = pc.if_else(before, pc.subtract(seconds, 1), seconds)
        rest = pc.if_else(before, pc.add(rest, each), rest)
    nanos = pc.multiply(rest, 1_000_000_000 // each).cast(pa.int32())
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays([seconds, nanos], fields=list(TIME), mask=mask)


def _fit_value(plan: FieldPlan, column: pa.DataType, path: str) -> Fit:
    kind = WRITTEN[plan.kind]
    whole = pa.types.is_integer(column)
    if plan.enum is not None:
        if whole:
            return _fit_number(plan)
        if _is_text(column):
            return _fit_name(plan)
    elif plan.shape is Shape.STRING and _is_text(column):
        return _fit_text
    elif plan.shape is Shape.BYTES and _is_bytes(column):
        return lambda values: values.cast(kind)
    elif plan.shape is Shape.BOOL and pa.types.is_boolean(column):
        return lambda values: values
    elif pa.types.is_floating(kind):
        if pa.types.is_floating(column) and column.bit_width <= kind.bit_width:
            return _fit_floating(plan)
    elif plan.shape is Shape.NUMBER and whole:
        # As Spark reads and writes unsigned numbers: in the signed type of their size.
        if pa.types.is_unsigned_integer(kind) and column.bit_width == kind.bit_width:
            return lambda values: values.view(kind)
        return lambda values: values.cast(kind)
    elif kind == pa.int32() and pa.types.is_date32(column):
        return lambda values: values.cast(kind)
    name = plan.shape.value if plan.shape is not Shape.NUMBER else str(kind)
    raise ValueSchemaError(f"{path}: a column of the type {column} cannot be written as {name}")


def _fit_floating(plan: FieldPlan) -> Fit:
    kind = WRITTEN[plan.kind]
    bits = pa.int32() if kind == pa.float32() else pa.int64()

    def fit(values: pa.Array) -> pa.Array:
        found = values.cast(kind)
        if plan.presence or plan.repeated:
            return found
        default = pc.equal(found.view(bits), 0)
        return pc.if_else(default, None, found) if pc.any(default).as_py() else found

    return fit


def _is_text(column: pa.DataType) -> bool:
    return pa.types.is_string(column) or pa.types.is_large_string(column) or pa.types.is_string_view(column)


def _is_bytes(column: pa.DataType) -> bool:
    return (
        pa.types.is_binary(column)
        or pa.types.is_large_binary(column)
        or pa.types.is_binary_view(column)
        or pa.types.is_fixed_size_binary(column)
    )


def _fit_text(values: pa.Array) -> pa.Array:
    text = values.cast(pa.string())
    try:
        text.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        raise EncodeError("the string is not UTF-8") from None
    return text


def _fit_name(plan: FieldPlan) -> Fit:
    assert plan.enum is not None
    numbers = plan.enum.numbers
    names = pa.array(list(numbers), pa.string())
    held = pa.array(list(numbers.values()), pa.int32())

    def fit(values: pa.Array) -> pa.Array:
        places = pc.index_in(values.cast(pa.string()), names)
        if places.null_count > values.null_count:
            unknown = values.filter(pc.and_(values.is_valid(), places.is_null()))[0].as_py()
            raise EncodeError(f"{unknown[:100]!r} is no value of the enum; it has {', '.join(list(numbers)[:20])}")
        return held.take(places)

    return fit


def _fit_number(plan: FieldPlan) -> Fit:
    assert plan.enum is not None
    known = pa.array(list(plan.enum.names), pa.int32())
    closed = plan.enum.closed

    def fit(values: pa.Array) -> pa.Array:
        found = values.cast(pa.int32())
        if closed and pc.any(pc.and_(found.is_valid(), pc.invert(pc.is_in(found, known)))).as_py():
            raise EncodeError("a number that is no value of the enum")
        return found

    return fit
