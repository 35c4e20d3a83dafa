"""One Python value as a body of a message, without columns: what `Producer.send` does for each record.

Only values are written that are plainly of their type, as the same bytes as those of columns of one row: fields in the
order of their numbers. For every other, good or not, the columns say what becomes of it.

Source: Protobuf's encoding.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tagwire.extras import Needs
from tagwire.values.protobuf.mapping import FieldPlan, MessagePlan, Shape

with Needs("arrow"):
    import pyarrow as pa
with Needs("protobuf"):
    from google.protobuf.descriptor import FieldDescriptor as F

Put = Callable[[Any, bytearray], None]
"""Appends a message's fields, or one value without its tag. Raises NotPlain."""


class NotPlain(Exception):
    """A value, or a type, that is left to columns."""


_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_A_SECOND: Final = 1_000_000
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5
_ZIGZAG: Final = (F.TYPE_SINT32, F.TYPE_SINT64)
_BITS: Final = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_UINT32, F.TYPE_FIXED32, F.TYPE_SFIXED32), 32),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_UINT64, F.TYPE_FIXED64, F.TYPE_SFIXED64), 64),
}
_WIRE: Final = {
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_SFIXED32, F.TYPE_FLOAT), _FOUR),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64, F.TYPE_DOUBLE), _EIGHT),
    **dict.fromkeys((F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE), _SIZED),
}
_DEFAULTS: Final = {Shape.NUMBER: 0, Shape.BOOL: False, Shape.STRING: "", Shape.BYTES: b""}


def put_of(plan: MessagePlan, columns: pa.DataType) -> Put:
    """What appends messages that Arrow would make a column of the type `columns` of.

    Raises:
        NotPlain: none of this type are written here.
    """
    known = {field.name: field for field in plan.fields}
    puts: list[tuple[str, Put]] = []
    required: set[str] = set()
    oneofs: dict[str, list[str]] = {}
    for field in sorted((known[column.name] for column in columns), key=lambda each: each.number):
        if columns.field(field.name).type != field.type:
            raise NotPlain
        puts.append((field.name, _field(field)))
        if field.required:
            required.add(field.name)
        if field.oneof is not None:
            oneofs.setdefault(field.oneof, []).append(field.name)
    names = frozenset(name for name, _ in puts)
    choices = [members for members in oneofs.values() if len(members) > 1]

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not dict or not names.issuperset(value):
            raise NotPlain
        given = value.get
        for members in choices:
            if sum(given(name) is not None for name in members) > 1:
                raise NotPlain
        for name, put_field in puts:
            each = given(name)
            if each is not None:
                put_field(each, out)
            elif name in required:
                raise NotPlain

    return put


def put_varint(number: int, out: bytearray) -> None:
    """Appends an unsigned number, seven bits to a byte."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _field(plan: FieldPlan) -> Put:
    """With its tag; nothing for the default of a field whose absence cannot be told from it."""
    if plan.key is not None and plan.value is not None:
        return _map(plan, plan.key, plan.value)
    wire = _WIRE.get(plan.kind, _VARINT)
    put = _value(plan)
    if plan.repeated:
        # Packed whatever the schema says, as ptars has it: readers take both.
        return _packed(plan, put) if wire != _SIZED else _repeated(_tag(plan, wire), put)
    tag = _tag(plan, wire)
    if plan.presence:

        def put_field(value: Any, out: bytearray) -> None:
            out += tag
            put(value, out)

        return put_field
    if plan.kind in (F.TYPE_FLOAT, F.TYPE_DOUBLE):
        zero = bytes(4 if plan.kind == F.TYPE_FLOAT else 8)

        def put_floating(value: Any, out: bytearray) -> None:
            out += tag
            put(value, out)
            if out.endswith(zero):
                del out[-len(zero) - len(tag) :]

        return put_floating
    defaults = (
        (_DEFAULTS[plan.shape],)
        if plan.enum is None
        else tuple(name for name, number in plan.enum.numbers.items() if number == 0)
    )
    kind = type(defaults[0])

    def put_unless_default(value: Any, out: bytearray) -> None:
        if type(value) is kind and value in defaults:
            return
        out += tag
        put(value, out)

    return put_unless_default


def _tag(plan: FieldPlan, wire: int) -> bytes:
    out = bytearray()
    put_varint(plan.number << 3 | wire, out)
    return bytes(out)


def _repeated(tag: bytes, put: Put) -> Put:
    def put_repeated(value: Any, out: bytearray) -> None:
        if type(value) is not list and type(value) is not tuple:
            raise NotPlain
        for each in value:
            out += tag
            put(each, out)

    return put_repeated


def _packed(plan: FieldPlan, put: Put) -> Put:
    tag = _tag(plan, _SIZED)

    def put_packed(value: Any, out: bytearray) -> None:
        if type(value) is not list and type(value) is not tuple:
            raise NotPlain
        if value:
            inner = bytearray()
            for each in value:
                put(each, inner)
            out += tag
            put_varint(len(inner), out)
            out += inner

    return put_packed


def _map(plan: FieldPlan, key: FieldPlan, value: FieldPlan) -> Put:
    tag = _tag(plan, _SIZED)
    # An entry's key and value are always written, as by Protobuf's own library.
    put_key, put_value = _field(replace(key, presence=True)), _field(replace(value, presence=True))

    def put_map(given: Any, out: bytearray) -> None:
        if type(given) is not dict:
            raise NotPlain
        for name, each in given.items():
            inner = bytearray()
            put_key(name, inner)
            put_value(each, inner)
            out += tag
            put_varint(len(inner), out)
            out += inner

    return put_map


def _value(plan: FieldPlan) -> Put:
    if plan.message is not None:
        return _sized(put_of(plan.message, plan.one))
    if plan.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
        return _time(plan)
    if plan.enum is not None:
        return _enum(plan.enum.numbers)
    if plan.kind in (F.TYPE_FLOAT, F.TYPE_DOUBLE):
        return _floating(plan.kind)
    if plan.kind in _BITS:
        return _integer(plan)
    return {Shape.BOOL: _bool, Shape.STRING: _text, Shape.BYTES: _bytes}[plan.shape]


def _sized(put: Put) -> Put:
    def put_sized(value: Any, out: bytearray) -> None:
        inner = bytearray()
        put(value, inner)
        put_varint(len(inner), out)
        out += inner

    return put_sized


def _time(plan: FieldPlan) -> Put:
    """Seconds and nanoseconds: of an interval of one sign, of a point in time nanoseconds after the second."""
    seconds_tag, nanos_tag = (part << 3 for part in plan.parts)
    mask = (1 << 64) - 1

    def put(value: Any, out: bytearray) -> None:
        if plan.shape is Shape.INTERVAL:
            if type(value) is not datetime.timedelta:
                raise NotPlain
            micros = value // _MICROSECOND
            seconds, rest = divmod(abs(micros), _A_SECOND)
            if micros < 0:
                seconds, rest = -seconds, -rest
        else:
            if type(value) is not datetime.datetime or value.tzinfo not in (None, datetime.UTC):
                raise NotPlain
            seconds, rest = divmod((value - (_EPOCH_UTC if value.tzinfo else _EPOCH)) // _MICROSECOND, _A_SECOND)
        if seconds:
            put_varint(seconds_tag, out)
            put_varint(seconds & mask, out)
        if rest:
            put_varint(nanos_tag, out)
            put_varint(rest * 1000 & mask, out)

    return _sized(put)


def _enum(numbers: dict[str, int]) -> Put:
    def put(value: Any, out: bytearray) -> None:
        if type(value) is not str or value not in numbers:
            raise NotPlain
        put_varint(numbers[value] & (1 << 64) - 1, out)

    return put


def _floating(kind: int) -> Put:
    pack = struct.Struct("<f" if kind == F.TYPE_FLOAT else "<d").pack
    exact = 1 << (24 if kind == F.TYPE_FLOAT else 53)

    def put(value: Any, out: bytearray) -> None:
        if (type(value) is not float or value != value) and (type(value) is not int or not -exact <= value <= exact):
            raise NotPlain
        try:
            out += pack(value)
        except OverflowError:
            raise NotPlain from None

    return put


def _integer(plan: FieldPlan) -> Put:
    """A number of the signed column; an unsigned field has its bits."""
    bits = _BITS[plan.kind]
    limit, is_zigzag = 1 << (bits - 1), plan.kind in _ZIGZAG
    # A negative number takes ten bytes, as if it had 64 bits.
    mask = (1 << (bits if plan.kind == F.TYPE_UINT32 else 64)) - 1
    width = bits // 8 if plan.kind in _WIRE else 0

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not int or not -limit <= value < limit:
            raise NotPlain
        if width:
            out += value.to_bytes(width, "little", signed=True)
            return
        number = (value << 1) ^ (value >> 63) if is_zigzag else value & mask
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)

    return put


def _bool(value: Any, out: bytearray) -> None:
    if value is not True and value is not False:
        raise NotPlain
    out.append(value)


def _text(value: Any, out: bytearray) -> None:
    if type(value) is not str:
        raise NotPlain
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise NotPlain from None
    put_varint(len(data), out)
    out += data


def _bytes(value: Any, out: bytearray) -> None:
    if type(value) is not bytes:
        raise NotPlain
    put_varint(len(value), out)
    out += value
