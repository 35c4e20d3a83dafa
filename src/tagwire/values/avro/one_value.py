"""One Python value as a body of an Avro schema, without a column: what `Producer.send` does for each record.

Only values are written that are plainly of their type, as the same bytes as those of a column of one row. For every
other, good or not, the column says what becomes of it.

Source: the Avro specification, 1.11, "Binary Encoding".
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable
from typing import Any, Final
from zoneinfo import ZoneInfo

from tagwire.extras import Needs
from tagwire.values.avro.arrow_types import arrow_type, is_struct, members
from tagwire.values.avro.column_writer import missing_body
from tagwire.values.avro.schema_nodes import Node

with Needs("avro"):
    import pyarrow as pa

Put = Callable[[Any, bytearray], None]
"""Appends one value. Raises NotPlain."""


class NotPlain(Exception):
    """A value, or a type, that is left to columns."""


_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FIRST_DAY: Final = _EPOCH.toordinal()
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_EXACT: Final = {"float": 1 << 24, "double": 1 << 53}
"""Up to where every whole number is one of the type; Arrow refuses others."""
_DIGITS: Final = decimal.Context(prec=100, traps=[decimal.Inexact])
_FLOAT: Final = struct.Struct("<f").pack
_DOUBLE: Final = struct.Struct("<d").pack


def put_of(node: Node, column: pa.DataType) -> Put:
    """What appends values of a schema that Arrow would make a column of the type `column` of.

    Raises:
        NotPlain: no values of this type are written here.
        ValueSchemaError: a field that has no column has to have one.
    """
    if node.kind == "record" and pa.types.is_struct(column):
        return _record(node, column)
    if column != arrow_type(node):
        raise NotPlain
    if node.kind == "union":
        return _union(node)
    if node.kind == "array":
        return _array(node)
    if node.kind == "map":
        return _map(node)
    return _leaf(node)


def _leaf(node: Node) -> Put:
    logical = node.logical.name if node.logical is not None else ""
    if logical == "decimal":
        return _decimal(node)
    if logical == "date":
        return _date
    if "timestamp" in logical and not logical.endswith("nanos"):
        return _timestamp(1000 if logical.endswith("millis") else 1, logical.startswith("local"))
    if node.kind in ("int", "long"):
        return _integer(1 << 31 if node.kind == "int" else 1 << 63)
    if node.kind in ("float", "double"):
        return _floating(node.kind)
    if node.kind == "fixed":
        return _fixed(node.size)
    if node.kind == "enum":
        return _enum(node.symbols)
    return {"null": _null, "boolean": _boolean, "string": _text, "bytes": _bytes}[node.kind]


def put_long(number: int, out: bytearray) -> None:
    """Appends a number of 64 bits: zigzag, seven bits to a byte."""
    number = (number << 1) ^ (number >> 63)
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _null(value: Any, out: bytearray) -> None:
    if value is not None:
        raise NotPlain


def _boolean(value: Any, out: bytearray) -> None:
    if value is True:
        out.append(1)
    elif value is False:
        out.append(0)
    else:
        raise NotPlain


def _integer(limit: int) -> Put:
    def put(value: Any, out: bytearray) -> None:
        if type(value) is not int or not -limit <= value < limit:
            raise NotPlain
        number = (value << 1) ^ (value >> 63)
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)

    return put


def _floating(kind: str) -> Put:
    pack = _FLOAT if kind == "float" else _DOUBLE
    exact = _EXACT[kind]

    def put(value: Any, out: bytearray) -> None:
        # What a NaN's bits are in another size is for Arrow to say.
        if (type(value) is not float or value != value) and (type(value) is not int or not -exact <= value <= exact):
            raise NotPlain
        try:
            out += pack(value)
        except OverflowError:
            raise NotPlain from None

    return put


def _text(value: Any, out: bytearray) -> None:
    if type(value) is not str:
        raise NotPlain
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise NotPlain from None
    if len(data) < 64:
        out.append(len(data) << 1)
    else:
        put_long(len(data), out)
    out += data


def _bytes(value: Any, out: bytearray) -> None:
    if type(value) is not bytes:
        raise NotPlain
    put_long(len(value), out)
    out += value


def _fixed(size: int) -> Put:
    def put(value: Any, out: bytearray) -> None:
        if type(value) is not bytes or len(value) != size:
            raise NotPlain
        out += value

    return put


def _enum(symbols: tuple[str, ...]) -> Put:
    numbers = {symbol: place for place, symbol in enumerate(symbols)}

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not str or value not in numbers:
            raise NotPlain
        put_long(numbers[value], out)

    return put


def _date(value: Any, out: bytearray) -> None:
    if type(value) is not datetime.date:
        raise NotPlain
    put_long(value.toordinal() - _FIRST_DAY, out)


def _timestamp(each: int, is_local: bool) -> Put:
    """Of so many microseconds each. A time without a zone is in UTC, as Arrow has it."""

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not datetime.datetime:
            raise NotPlain
        zone = value.tzinfo
        if zone is None:
            put_long((value - _EPOCH) // _MICROSECOND // each, out)
        elif not is_local and (zone is datetime.UTC or type(zone) is ZoneInfo):
            put_long((value - _EPOCH_UTC) // _MICROSECOND // each, out)
        else:
            raise NotPlain

    return put


def _decimal(node: Node) -> Put:
    assert node.logical is not None
    limit, scale = 10**node.logical.precision, node.logical.scale
    size = node.size if node.kind == "fixed" else None

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not decimal.Decimal or not value.is_finite() or not -100 < value.adjusted() < 100:
            raise NotPlain
        try:
            scaled = value.scaleb(scale, _DIGITS)
        except decimal.Inexact:  # of more digits, which may be all behind those that are kept
            raise NotPlain from None
        unscaled = int(scaled)
        if unscaled != scaled or not -limit < unscaled < limit:
            raise NotPlain
        if size is None:
            length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
            put_long(length, out)
        else:
            length = size
        out += unscaled.to_bytes(length, "big", signed=True)

    return put


def _union(node: Node) -> Put:
    nothing = next((place for place, branch in enumerate(node.branches) if branch.kind == "null"), -1)
    if is_struct(node):
        return _union_struct(node, nothing)
    types = members(node)
    if not types:
        return _tagged_null(nothing)
    if len(types) > 1 and any(branch.logical is not None for branch in types):
        raise NotPlain
    # Of two numbers it is the larger that the column has the type of.
    branch = next((each for each in types if each.kind in ("long", "double")), types[0])
    put = put_of(branch, arrow_type(branch))
    place = node.branches.index(branch)

    def put_union(value: Any, out: bytearray) -> None:
        if value is not None:
            put_long(place, out)
            put(value, out)
        elif nothing >= 0:
            put_long(nothing, out)
        else:
            raise NotPlain

    return put_union


def _tagged_null(place: int) -> Put:
    def put(value: Any, out: bytearray) -> None:
        if value is not None:
            raise NotPlain
        put_long(place, out)

    return put


def _union_struct(node: Node, nothing: int) -> Put:
    named = {
        f"member{number}": (node.branches.index(branch), put_of(branch, arrow_type(branch)))
        for number, branch in enumerate(members(node))
    }

    def put(value: Any, out: bytearray) -> None:
        if value is None and nothing >= 0:
            put_long(nothing, out)
            return
        if type(value) is not dict or len(value) != 1:
            raise NotPlain
        ((name, given),) = value.items()
        if given is None or name not in named:
            raise NotPlain
        place, put_member = named[name]
        put_long(place, out)
        put_member(given, out)

    return put


def _array(node: Node) -> Put:
    put = put_of(node.element, arrow_type(node.element))

    def put_array(value: Any, out: bytearray) -> None:
        if type(value) is not list and type(value) is not tuple:
            raise NotPlain
        if value:
            put_long(len(value), out)
            for each in value:
                put(each, out)
        out.append(0)

    return put_array


def _map(node: Node) -> Put:
    put = put_of(node.element, arrow_type(node.element))

    def put_map(value: Any, out: bytearray) -> None:
        if type(value) is not dict:
            raise NotPlain
        if value:
            put_long(len(value), out)
            for name, each in value.items():
                _text(name, out)
                put(each, out)
        out.append(0)

    return put_map


def _always(raw: bytes) -> Put:
    """For a field that there is no column for."""

    def put(value: Any, out: bytearray) -> None:
        out += raw

    return put


def _record(node: Node, column: pa.StructType) -> Put:
    names = frozenset(field.name for field in column)
    if len(names) != column.num_fields or not names <= {field.name for field in node.fields}:
        raise NotPlain
    puts: list[tuple[str, Put]] = []
    for field in node.fields:
        if field.name in names:
            puts.append((field.name, put_of(field.node, column.field(field.name).type)))
        else:
            puts.append((field.name, _always(missing_body(field, field.name))))

    def put(value: Any, out: bytearray) -> None:
        if type(value) is not dict or not names.issuperset(value):
            raise NotPlain
        given = value.get
        for name, put_field in puts:
            put_field(given(name), out)

    return put
