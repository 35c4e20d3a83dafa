"""JSON values read one by one, where Arrow's reader cannot: maps, what has no one type, decimals, and broken values.

What is read has the type that `reading.raw_type` gives, as what Arrow's reader reads.
"""

from __future__ import annotations

import json
import math
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation, localcontext
from typing import Any, Final, TypeAlias

from tagwire.escaping import told
from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.shapes import Shape

Reader: TypeAlias = Callable[[Any], Any]

_SHOWN: Final = 40
_WIDE: Final = Context(prec=100_000)
_MOST_BITS: Final = (10**38).bit_length()
"""Of a decimal's unscaled value, which has 38 digits at most."""


class NotRead(ValueError):
    """A value is not what its schema says. Its text says where and why."""

    def __init__(self, why: str, path: str = "") -> None:
        self._why, self._path = why, path
        super().__init__(f"{path}: {why}" if path else why)

    def under(self, place: str) -> NotRead:
        """The same in something larger, at a name that may be anything."""
        separator = "." if self._path and not self._path.startswith("[") else ""
        return NotRead(self._why, f"{told(place, _SHOWN)}{separator}{self._path}")


class _Twice(dict[str, Any]):
    """An object that names a property more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.twice = {name for name, count in counts.items() if count > 1}


class _Written(float):
    """A number with a point or an exponent that knows how it was written, for decimals and integers."""

    text: str

    def __new__(cls, text: str) -> _Written:
        found = super().__new__(cls, text)
        found.text = text
        return found


def parse(body: bytes, *, exact: bool = False) -> Any:
    """A value as Python has JSON, in which NaN may still be.

    Args:
        exact: whether numbers keep all their digits, for decimals and integers.

    Raises:
        NotRead: it is no JSON. RecursionError: it is nested deeper than Python goes.
    """
    try:
        return (_EXACT if exact else _DECODER).decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NotRead(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotRead(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise
    except ValueError:
        raise NotRead("a number has thousands of digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(pairs)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
_EXACT: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_Written)


def reader_of(shape: Shape) -> Reader:
    """What makes parsed JSON what the raw Arrow type takes, or raises NotRead. Nulls stay, whatever the schema says."""
    found = _MAKERS[shape.kind](shape)

    def read(value: Any) -> Any:
        return None if value is None else found(value)

    return read


def _boolean(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not bool:
            raise _refused(shape, value)
        return value

    return read


def _string(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not str:
            raise _refused(shape, value)
        return _text(value)

    return read


def _integer(shape: Shape) -> Reader:
    bits = {shapes.DAYS: 32, shapes.MILLIS: 64}.get(shape.kind, shape.bits)
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> Any:
        if type(value) is _Written and value.is_integer():  # 1.0 is an integer to JSON Schema
            value = _whole(value)
        if type(value) is not int:
            raise _refused(shape, value)
        if not least <= value <= most:
            raise NotRead(f"{_shown(value)} is no integer of {bits} bits")
        return value

    return read


def _whole(value: _Written) -> float:
    """The integer that a number is by its digits, of which a float has but some; itself where it is none."""
    try:
        found = Decimal(value.text)
    except InvalidOperation:  # its exponent is beyond any
        return value
    return int(found) if found == found.to_integral_value() else value


def _number(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, float) and type(value) is not int:
            raise _refused(shape, value)
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise NotRead(f"{_shown(value)} is no finite number")
        return found

    return read


def _decimal(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is str:
            unscaled = int.from_bytes(base64_bytes(value), "big", signed=True)
            if unscaled.bit_length() > _MOST_BITS:  # to make a Decimal of a long one takes the square of its length
                raise NotRead(f"{_shown(value)} is no decimal({shape.precision},{shape.scale})")
            found = Decimal(unscaled).scaleb(-shape.scale, _WIDE)
        elif type(value) is _Written:
            try:
                found = Decimal(value.text)
            except InvalidOperation:  # its exponent is beyond any
                raise NotRead(f"{_shown(value)} is no decimal({shape.precision},{shape.scale})") from None
        elif type(value) is int:
            found = Decimal(value)
        else:
            raise _refused(shape, value)
        with localcontext(prec=shape.precision):
            try:
                exact = found.quantize(Decimal(1).scaleb(-shape.scale))
            except InvalidOperation:
                exact = None
        if exact is None or exact != found:
            raise NotRead(f"{_shown(value)} is no decimal({shape.precision},{shape.scale})")
        return exact

    return read


def _struct(shape: Shape) -> Reader:
    readers = [(one.name, reader_of(one.shape)) for one in shape.properties]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _refused(shape, value)
        if type(value) is _Twice and (twice := [name for name, _ in readers if name in value.twice]):
            raise NotRead("is there twice").under(twice[0])
        found = {}
        for name, reader in readers:
            try:
                found[name] = reader(value.get(name))
            except NotRead as error:
                raise error.under(name) from None
        return found

    return read


def _list(shape: Shape) -> Reader:
    assert shape.item is not None
    reader = reader_of(shape.item)

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _refused(shape, value)
        found = []
        for place, one in enumerate(value):
            try:
                found.append(reader(one))
            except NotRead as error:
                raise error.under(f"[{place}]") from None
        return found

    return read


def _map(shape: Shape) -> Reader:
    assert shape.item is not None
    reader = reader_of(shape.item)

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _refused(shape, value)
        if type(value) is _Twice:
            raise NotRead("is there twice").under(min(value.twice))
        found = []
        for name, one in value.items():
            try:
                found.append((_text(name), reader(one)))
            except NotRead as error:
                raise error.under(name) from None
        return found

    return read


def _entries(shape: Shape) -> Reader:
    entry = _list(Shape(shapes.LIST, item=Shape(shapes.STRUCT, properties=shape.properties)))

    def read(value: Any) -> Any:
        found = [None if one is None else (one["key"], one["value"]) for one in entry(value)]
        if any(one is None or one[0] is None for one in found):
            raise NotRead("an entry has no key")
        return found

    return read


def _any(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        try:
            return _text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
        except ValueError as error:
            if isinstance(error, NotRead):
                raise
            raise NotRead("a number is not finite") from None

    return read


_MAKERS: Final[dict[str, Callable[[Shape], Reader]]] = {
    shapes.BOOLEAN: _boolean,
    shapes.STRING: _string,
    shapes.DATE: _string,
    shapes.TIMESTAMP: _string,
    shapes.BYTES: _string,
    shapes.INTEGER: _integer,
    shapes.DAYS: _integer,
    shapes.MILLIS: _integer,
    shapes.NUMBER: _number,
    shapes.DECIMAL: _decimal,
    shapes.STRUCT: _struct,
    shapes.LIST: _list,
    shapes.MAP: _map,
    shapes.ENTRIES: _entries,
    shapes.ANY: _any,
}


def base64_bytes(text: str) -> bytes:
    """What base64 holds, in either alphabet's padding. Raises NotRead."""
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError):  # ValueError: it is not ASCII
        raise NotRead(f"{_shown(text)} is no base64") from None


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise NotRead("half a surrogate pair is no character") from None
    return value


def _refused(shape: Shape, value: object) -> NotRead:
    return NotRead(f"{_shown(value)} is no {shape.kind}")


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        text = "it"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
