"""Bodies as columns: checked by Protobuf's own library, many at a time, and read by ptars.

ptars alone would be twice as fast, but is lenient where Protobuf is not, and a length past 64 bits makes it panic; its
columns are taken only where the reference library has found the same bodies sound, and where nothing in them is of
the kind that the two read differently. Anything else is read a row at a time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tagwire.extras import Needs
from tagwire.values.protobuf.halving import NotAsAWhole, by_halves
from tagwire.values.protobuf.mapping import INTERVAL, TIMESTAMP, FieldPlan, MessagePlan, Shape
from tagwire.values.protobuf.message_reading import MessageReader, rows_of
from tagwire.values.protobuf.wire_descriptors import name_at, reading_handler, reads_as_a_whole

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc
with Needs("protobuf"):
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.message import DecodeError as _Refused
    from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_AT_A_TIME: Final = 4 << 20
"""Bytes of bodies that are looked at together."""

# Eight bytes before each body make it an element of a repeated field: the field's tag in three, its length in five.
_NUMBER: Final = 2048
_TAG: Final = 0x01_80_82


class ColumnReader:
    """Bodies of one message as structs of some or all of its fields.

    Args:
        plan: the fields.
        whole: the message's plan with all of its fields.
        rows: reads the same fields a row at a time.
    """

    def __init__(self, message: Descriptor, plan: MessagePlan, whole: MessagePlan, rows: MessageReader) -> None:
        self._plan = plan
        self._type = plan.type
        self._rows = rows
        self._wired = _with_what_decides(plan, whole)
        self._places = [self._wired.fields.index(field) for field in plan.fields]
        self._handler: Any = None
        if reads_as_a_whole(self._wired):
            self._handler = reading_handler(self._wired)
            self._checked = _rows_message(message)

    def read(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Structs, null for null and for bad bodies, and which bodies are bad."""
        given, bodies = bodies, self._without_what_outgrows(bodies)
        sound = bodies.drop_null() if bodies.null_count else bodies
        made: list[pa.Array] = []
        for piece in _pieces(sound):
            if self._handler is None:
                made.append(self._alone(piece))
            else:
                made += by_halves(piece, self._at_once, self._alone)
        values = pa.concat_arrays(made) if made else pa.nulls(0, self._type)
        if bodies.null_count:
            places = pc.cumulative_sum(bodies.is_valid().cast(pa.int64()))
            values = values.take(pc.if_else(bodies.is_valid(), pc.subtract(places, 1), None))
        return values, pc.and_(given.is_valid(), values.is_null())

    def _without_what_outgrows(self, bodies: pa.Array) -> pa.Array:
        growth = self._rows.growth
        long = pc.fill_null(pc.greater(pc.binary_length(bodies), growth.harmless), False)
        if not pc.any(long).as_py():
            return bodies
        outgrow = [is_long.as_py() and growth.outgrows(body.as_py()) for is_long, body in zip(long, bodies)]
        return pc.if_else(pa.array(outgrow, pa.bool_()), None, bodies)

    def _alone(self, bodies: pa.Array) -> pa.Array:
        rows, _ = rows_of(self._rows, bodies.to_pylist())
        return pa.array(rows, self._type)

    def _at_once(self, bodies: pa.Array) -> pa.Array:
        try:
            self._checked.FromString(_framed(bodies))
            batch = self._handler.array_to_record_batch(bodies)
        except (_Refused, ValueError):
            raise NotAsAWhole from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise NotAsAWhole from None
        try:
            arrays = _struct(self._wired, batch.to_struct_array(), None)
        except pa.ArrowInvalid:
            raise NotAsAWhole from None
        if not self._places:
            return pa.StructArray.from_buffers(self._type, len(bodies), [None])
        return pa.StructArray.from_arrays([arrays[place] for place in self._places], fields=list(self._type))


def _with_what_decides(plan: MessagePlan, whole: MessagePlan) -> MessagePlan:
    """Some fields, with those that decide of them or of the message: others of a oneof, and what is required."""
    if len(plan.fields) == len(whole.fields):
        return plan
    oneofs = {field.oneof for field in plan.fields if field.oneof is not None}
    fields = tuple(
        field
        for field in whole.fields
        if field in plan.fields
        or field.oneof in oneofs
        or field.required
        or (field.message is not None and field.message.requires)
        or (field.value is not None and field.value.message is not None and field.value.message.requires)
    )
    return MessagePlan(plan.full_name, fields, plan.requires, plan.groups)


def _rows_message(message: Descriptor) -> type[Message]:
    """A message that has many of these, each a row."""
    # M.N and M_N are two messages, and have two names here.
    pool, name = message.file.pool, f"Rows_{message.full_name.replace('_', '_u').replace('.', '_d')}"
    try:
        return GetMessageClass(pool.FindMessageTypeByName(f"tagwire.rows.{name}"))
    except KeyError:
        pass
    file = FileDescriptorProto(name=f"tagwire/rows/{message.full_name}", package="tagwire.rows", syntax="proto2")
    file.dependency.append(message.file.name)
    file.message_type.add(name=name).field.add(
        name="rows",
        number=_NUMBER,
        label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{message.full_name}",
    )
    with suppress(TypeError):  # another thread was first
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"tagwire.rows.{name}"))


def _pieces(bodies: pa.Array) -> list[pa.Array]:
    """Bodies in runs of about `_AT_A_TIME` bytes, as binary."""
    if not len(bodies):
        return []
    if pa.types.is_binary(bodies.type) and bodies.nbytes <= _AT_A_TIME:
        return [bodies]
    total = pc.sum(pc.binary_length(bodies).cast(pa.int64())).as_py()
    each = max(1, len(bodies) * _AT_A_TIME // max(total, 1))
    return [bodies[start : start + each].cast(pa.binary()) for start in range(0, len(bodies), each)]


def _framed(bodies: pa.Array) -> bytes:
    """Bodies one after the other, each with its eight bytes."""
    lengths = pc.binary_length(bodies).cast(pa.int64())
    head = pa.scalar(_TAG, pa.int64())
    for place in range(5):
        bits = pc.bit_wise_and(pc.shift_right(lengths, 7 * place) if place else lengths, 0x7F)
        if place < 4:
            bits = pc.bit_wise_or(bits, 0x80)
        head = pc.bit_wise_or(head, pc.shift_left(bits, 24 + 8 * place))
    heads = pa.Array.from_buffers(pa.binary(8), len(head), [None, head.buffers()[1]])
    joined = pc.binary_join_element_wise(heads.cast(pa.binary()), bodies, b"")
    _, offsets, data = joined.buffers()
    size = pa.Array.from_buffers(pa.int32(), len(joined) + 1, [None, offsets])[-1].as_py()
    return data.slice(0, size).to_pybytes() if data is not None else b""


def _struct(plan: MessagePlan, messages: pa.Array, valid: pa.Array | None) -> list[pa.Array]:
    """The fields of messages. By their names: ptars has an order of its own.

    Args:
        valid: which messages there are; None is all.

    Raises:
        NotAsAWhole: Protobuf means something else than ptars's columns say.
    """
    oneofs: dict[str, pa.Array] = {}
    arrays = []
    for place, field in enumerate(plan.fields):
        column = messages.field(name_at(place))
        if field.required:
            absent = column.is_null() if valid is None else pc.and_(valid, column.is_null())
            if pc.any(absent).as_py():
                raise NotAsAWhole
        if field.oneof is not None:
            there = column.is_valid()
            before = oneofs.get(field.oneof)
            if before is not None:
                if pc.any(pc.and_(before, there)).as_py():
                    raise NotAsAWhole
                there = pc.or_(before, there)
            oneofs[field.oneof] = there
        arrays.append(_field(field, column))
    return arrays


def _field(field: FieldPlan, column: pa.Array) -> pa.Array:
    if field.key is not None and field.value is not None:
        return _map(field, column)
    if field.repeated:
        return pa.ListArray.from_arrays(column.offsets, _one(field, column.values), type=field.type)
    if not field.presence:
        column = _without_defaults(field, column)
    column = _one(field, column)
    if field.default is not None and column.null_count:
        column = column.fill_null(pa.scalar(field.default, field.type))
    return column


def _without_defaults(field: FieldPlan, column: pa.Array) -> pa.Array:
    """Without presence a default is no value, though a writer may put it on the wire."""
    if pa.types.is_floating(column.type):
        # By its bits: minus zero is a value.
        size = pa.int32() if column.type.bit_width == 32 else pa.int64()
        default = pc.equal(column.view(size), 0)
    elif field.shape in (Shape.STRING, Shape.BYTES):
        default = pc.equal(pc.binary_length(column), 0)
    elif field.shape is Shape.BOOL:
        default = pc.invert(column)
    else:
        default = pc.equal(column, 0)
    return pc.if_else(default, None, column) if pc.any(default).as_py() else column


def _one(field: FieldPlan, column: pa.Array) -> pa.Array:
    """Single values of a field, as its column has them."""
    if field.message is not None:
        valid = column.is_valid() if column.null_count else None
        mask = None if valid is None else column.is_null()
        arrays = _struct(field.message, column, valid)
        return pa.StructArray.from_arrays(arrays, fields=list(field.one), mask=mask)
    if field.shape is Shape.ENUM:
        return _names(field, column)
    if field.shape is Shape.TIMESTAMP:
        return _microseconds(column).view(TIMESTAMP)
    if field.shape is Shape.INTERVAL:
        return _microseconds(column).view(INTERVAL)
    return column


def _names(field: FieldPlan, column: pa.Array) -> pa.Array:
    assert field.enum is not None
    names = field.enum.names
    known = pa.array(list(names), pa.int32())
    texts = list(names.values())
    places = pc.index_in(column, known)
    if places.null_count > column.null_count:
        if field.enum.closed:
            raise NotAsAWhole
        lacking = pc.unique(column.filter(pc.and_(column.is_valid(), places.is_null())))
        known = pa.concat_arrays([known, lacking])
        texts += [field.enum.name_of(number) for number in lacking.to_pylist()]
        places = pc.index_in(column, known)
    return pa.array(texts, pa.string()).take(places)


def _microseconds(column: pa.Array) -> pa.Array:
    seconds, nanos = (column.field(part).fill_null(0) for part in ("seconds", "nanos"))
    counts = pc.add_checked(pc.multiply_checked(seconds, 1_000_000), pc.divide(nanos, 1000).cast(pa.int64()))
    return pc.if_else(column.is_valid(), counts, None) if column.null_count else counts


def _map(field: FieldPlan, column: pa.Array) -> pa.Array:
    assert field.key is not None
    assert field.value is not None
    entries = column.values
    keys, values = (_there(each, entries.field(name_at(n))) for n, each in enumerate((field.key, field.value)))
    lengths = pc.list_value_length(column)
    if len(keys) and pc.max(lengths).as_py() > 1:
        # Of a key that occurs twice in a message the last value counts.
        numbers = pc.index_in(keys, pc.unique(keys)).cast(pa.int64())
        parents = pc.list_parent_indices(column).cast(pa.int64())
        both = pc.add(pc.multiply(parents, len(keys)), numbers)
        if len(pc.unique(both)) < len(both):
            raise NotAsAWhole
    return pa.MapArray.from_arrays(column.offsets, keys, _one(field.value, values), type=field.type)


_ABSENT: Final = {Shape.NUMBER: 0, Shape.BOOL: False, Shape.STRING: "", Shape.BYTES: b""}


def _there(field: FieldPlan, column: pa.Array) -> pa.Array:
    """A map's keys or values; what an entry lacks is the default."""
    if not column.null_count:
        return column
    if field.shape not in _ABSENT:
        raise NotAsAWhole
    return column.fill_null(pa.scalar(_ABSENT[field.shape], column.type))
