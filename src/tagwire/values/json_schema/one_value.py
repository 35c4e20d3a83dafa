"""One Python value as JSON of a shape, without a column: what `Producer.send` does for each record.

Only values are written that are plainly of their type, as the same bytes as those of a column of one row. For every
other, good or not, the column says what becomes of it.
"""

from __future__ import annotations

import datetime
import json
from binascii import b2a_base64
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from tagwire.extras import Needs
from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.shapes import Shape

with Needs("arrow"):
    import pyarrow as pa

Text = Callable[[Any], str]
"""The JSON of a value that is not null. Raises NotPlain."""

_SHORTEST: Final = 1e10
"""From where on Arrow writes whole numbers with an exponent."""


class NotPlain(Exception):
    """A value, or a type, that is left to columns."""


def text_of(shape: Shape, columns: pa.DataType) -> Text:
    """What writes values that Arrow would make a column of the type `columns` of.

    Raises:
        NotPlain: none of this type are written here.
    """
    if shape.kind == shapes.STRUCT and pa.types.is_struct(columns):
        return _struct(shape, columns)
    if columns != shape.type:
        raise NotPlain
    if shape.kind == shapes.LIST and shape.item is not None:
        return _list(shape.item)
    if shape.kind == shapes.MAP and shape.item is not None:
        return _map(shape.item)
    if shape.kind == shapes.INTEGER:
        return _integer(1 << (shape.bits - 1))
    if shape.kind == shapes.STRING:
        return _string(shape)
    if shape.kind == shapes.NUMBER and shape.bits == 64:
        return _number
    if shape.kind not in _TEXTS:
        raise NotPlain
    return _TEXTS[shape.kind]


def _struct(shape: Shape, columns: pa.StructType) -> Text:
    names = frozenset(field.name for field in columns)
    parts = [
        (one.name, json.dumps(one.name, ensure_ascii=False) + ":", text_of(one.shape, columns.field(one.name).type),
         one.shape.is_nullable, one.is_required)
        for one in shape.properties if one.name in names
    ]  # fmt: skip

    def write(value: Any) -> str:
        if type(value) is not dict or not names.issuperset(value):
            raise NotPlain
        texts = []
        for name, label, text, is_nullable, is_required in parts:
            given = value.get(name)
            if given is not None:
                texts.append(label + text(given))
            elif is_nullable:
                texts.append(label + "null")
            elif is_required:
                raise NotPlain
        return "{" + ",".join(texts) + "}"

    return write


def _within(item: Shape) -> Text:
    """What is in a list or a map, where null is `null` or bad."""
    text = text_of(item, item.type)

    def write(value: Any) -> str:
        if value is not None:
            return text(value)
        if not item.is_nullable:
            raise NotPlain
        return "null"

    return write


def _list(item: Shape) -> Text:
    text = _within(item)

    def write(value: Any) -> str:
        if type(value) is not list and type(value) is not tuple:
            raise NotPlain
        return "[" + ",".join(map(text, value)) + "]"

    return write


def _map(item: Shape) -> Text:
    text = _within(item)

    def write(value: Any) -> str:
        if type(value) is not dict or any(type(name) is not str for name in value):
            raise NotPlain
        return "{" + ",".join(encode_basestring(name) + ":" + text(each) for name, each in value.items()) + "}"

    return write


def _integer(limit: int) -> Text:
    def write(value: Any) -> str:
        if type(value) is not int or not -limit <= value < limit:
            raise NotPlain
        return str(value)

    return write


def _string(shape: Shape) -> Text:
    choices = None
    if shape.choices is not None:
        choices = frozenset(one for one in map(json.loads, shape.choices) if type(one) is str)

    def write(value: Any) -> str:
        if type(value) is not str or (choices is not None and value not in choices):
            raise NotPlain
        return encode_basestring(value)

    return write


def _number(value: Any) -> str:
    if type(value) not in (int, float) or not -_SHORTEST < value < _SHORTEST:
        raise NotPlain
    text = str(value)
    if "e" in text:  # which Arrow writes another way
        raise NotPlain
    return text.removesuffix(".0")


def _boolean(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    raise NotPlain


def _date(value: Any) -> str:
    if type(value) is not datetime.date:
        raise NotPlain
    return f'"{value.isoformat()}"'


def _timestamp(value: Any) -> str:
    if type(value) is not datetime.datetime or value.tzinfo not in (None, datetime.UTC):
        raise NotPlain
    return f'"{value.replace(tzinfo=None).isoformat(timespec="microseconds")}Z"'


def _bytes(value: Any) -> str:
    if type(value) is not bytes:
        raise NotPlain
    return f'"{b2a_base64(value, newline=False).decode()}"'


_TEXTS: Final[dict[str, Text]] = {
    shapes.BOOLEAN: _boolean,
    shapes.DATE: _date,
    shapes.TIMESTAMP: _timestamp,
    shapes.BYTES: _bytes,
}
