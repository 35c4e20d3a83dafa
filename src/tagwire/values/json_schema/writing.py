"""Arrow values as JSON bodies, by Arrow's functions alone: columns become texts, texts are joined to objects."""

from __future__ import annotations

import json
import math
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

from tagwire.values.dictionaries import without_dictionary
from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.one_value import NotPlain, Text, text_of
from tagwire.values.json_schema.shapes import Property, Shape
from tagwire.values.schemas import is_encodable

_CONTROL: Final = "[\\x00-\\x1f]"
_ESCAPES: Final = {chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)}
# From the year 0 to 9999, which is as far as RFC 3339 goes: seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_167_219_200, 253_402_300_799
_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_A_DAY: Final = 86_400
_DIGITS: Final = 20
"""Of an integer of 64 bits."""


class _Written(NamedTuple):
    """A column as JSON: each value's text stands between `before` and `after`, and is null where the value is.

    Attributes:
        bad: which values cannot be written; None where all can.
    """

    text: pa.Array
    bad: pa.Array | None = None
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class JsonEncoder:
    """Values of one Arrow type as JSON of a shape. A `BodyEncoder`."""

    shape: Shape
    columns: pa.DataType

    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """UTF-8 bodies, and which rows cannot be written; those and nulls are null."""
        column = without_dictionary(column)
        written = _written(column, self.shape)
        text, bad = _whole(written), written.bad
        if text.null_count > column.null_count and bad is None:
            bad = pc.and_(text.is_null(), column.is_valid())
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            broken = pa.array([not _is_utf8(one) for one in text.cast(pa.binary()).to_pylist()])
            bad = broken if bad is None else pc.or_(bad, broken)
        bodies = text.cast(pa.binary())
        if bad is None:
            return bodies, pa.repeat(pa.scalar(False), len(column))
        return pc.if_else(bad, pa.scalar(None, pa.binary()), bodies), bad

    def encode_one(self, value: object) -> bytes | None:
        """The body of one value that is plainly of the columns' type; None where `encode` has to say."""
        if self._text is None:
            return None
        try:
            return self._text(value).encode()
        except (NotPlain, UnicodeEncodeError):
            return None

    @cached_property
    def _text(self) -> Text | None:
        try:
            return text_of(self.shape, self.columns)
        except NotPlain:
            return None

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.shape, self.columns)

    def refusal(self, row: object) -> str:
        """Why a row cannot be written, in one line."""
        if why := _why(row, self.shape, ""):
            return why
        # Which of them, the number of one that no calendar has does not tell.
        is_bad = self.shape.has(shapes.MILLIS) and self.encode(pa.array([row], self.columns))[1][0].as_py()
        return "a time is beyond the milliseconds that 64 bits hold" if is_bad else "it is good"


def _written(column: pa.Array, shape: Shape) -> _Written:
    column = without_dictionary(column)
    if pa.types.is_null(column.type):
        return _Written(pa.nulls(len(column), pa.string()))
    return _WRITERS[shape.kind](column, shape)


def _whole(written: _Written) -> pa.Array:
    if not written.before and not written.after:
        return written.text
    return pc.binary_join_element_wise(written.before, written.text, written.after, "")


def _any_of(bad: list[pa.Array | None]) -> pa.Array | None:
    found = None
    for one in bad:
        if one is not None:
            found = one if found is None else pc.or_(found, one)
    return found


def _struct(column: pa.Array, shape: Shape) -> _Written:
    names = [field.name for field in column.type]
    pieces: list[pa.Array] = []
    bad: list[pa.Array | None] = []
    is_first_always_there = True
    is_there = column.is_valid() if column.null_count else None
    for one in shape.properties:
        if one.name not in names:
            continue
        child = without_dictionary(pc.struct_field(column, [names.index(one.name)]))
        found = _written(child, one.shape)
        label = json.dumps(one.name, ensure_ascii=False) + ":"
        comma = "," if pieces else ""
        text = pc.binary_join_element_wise(comma + label + found.before, found.text, found.after, "")
        bad.append(found.bad)
        if child.null_count and one.shape.is_nullable:
            text = text.fill_null(f"{comma}{label}null")
        elif child.null_count:
            if one.is_required:
                bad.append(child.is_null() if is_there is None else pc.and_(child.is_null(), is_there))
            is_first_always_there = is_first_always_there and bool(pieces)
            text = text.fill_null("")
        pieces.append(text)
    text = pc.binary_join_element_wise(*pieces, "") if pieces else pa.repeat("", len(column))
    if not is_first_always_there:
        text = pc.utf8_ltrim(text, ",")
    if is_there is not None:
        text = pc.if_else(is_there, text, pa.scalar(None, text.type))
    return _Written(text, _any_of(bad), "{", "}")


def _list(column: pa.Array, shape: Shape) -> _Written:
    assert shape.item is not None
    found = _written(pc.list_flatten(column), shape.item)
    return _joined(column, _whole(found), found.bad, shape.item, "[", "]")


def _map(column: pa.Array, shape: Shape) -> _Written:
    assert shape.item is not None
    entries = _as_list(column)
    flat = pc.list_flatten(entries)
    keys, values = _escaped(flat.field("key")), _written(flat.field("value"), shape.item)
    text, bad = _without_nulls(_whole(values), values.bad, shape.item)
    bad = _any_of([bad, _repeated(entries, flat.field("key"))])
    return _joined(entries, pc.binary_join_element_wise('"', keys, '":', text, ""), bad, None, "{", "}")


def _repeated(entries: pa.ListArray, keys: pa.Array) -> pa.Array | None:
    """Which entries have a key that another one of the same map has; None where none has."""
    codes = pc.index_in(keys, pc.unique(keys)).cast(pa.int64())
    maps = pa.ListArray.from_arrays(_offsets(entries), keys)
    both = pc.add(pc.multiply(pc.list_parent_indices(maps).cast(pa.int64()), len(keys)), codes)
    if len(pc.unique(both)) == len(both):
        return None
    counts = pc.value_counts(both)
    several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return pc.is_in(both, several)


def _entries(column: pa.Array, shape: Shape) -> _Written:
    return _list(_as_list(column), Shape(shapes.LIST, item=Shape(shapes.STRUCT, properties=shape.properties)))


def _as_list(column: pa.MapArray) -> pa.ListArray:
    """A map as a list of structs `key`, `value`."""
    if column.offset or column.null_count:
        column = column.take(pa.array(range(len(column)), pa.int64()))
    entries = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    nulls = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(column.offsets, entries, mask=nulls)


def _without_nulls(text: pa.Array, bad: pa.Array | None, item: Shape | None) -> tuple[pa.Array, pa.Array | None]:
    """The texts of what is in a list, where a null is `null`, or bad."""
    if not text.null_count:
        return text, bad
    if item is not None and not item.is_nullable:
        bad = _any_of([bad, text.is_null()])
    return text.fill_null("null"), bad


def _joined(
    column: pa.Array, texts: pa.Array, bad: pa.Array | None, item: Shape | None, before: str, after: str
) -> _Written:
    texts, bad = _without_nulls(texts, bad, item)
    offsets = _offsets(column)
    nulls = column.is_null() if column.null_count else None
    found = pc.binary_join(pa.ListArray.from_arrays(offsets, texts, mask=nulls), ",")
    if bad is not None:
        # Of the column itself a null may stand over items, which count for the parents and are not among the texts.
        parents = pc.list_parent_indices(pa.ListArray.from_arrays(offsets, texts)).filter(bad)
        bad = pc.is_in(pa.array(range(len(column)), pa.int64()), parents.cast(pa.int64()))
    return _Written(found, bad, before, after)


def _offsets(column: pa.Array) -> pa.Array:
    """Where each list begins in what they hold, of which a null has none."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _string(column: pa.Array, shape: Shape) -> _Written:
    bad = None
    if shape.choices is not None:
        allowed = [json.loads(one) for one in shape.choices]
        values = pa.array([one for one in allowed if isinstance(one, str) and is_encodable(one)], column.type)
        bad = pc.and_(pc.invert(pc.is_in(column, values)), column.is_valid())
    return _Written(_escaped(column), bad, '"', '"')


def _escaped(column: pa.Array) -> pa.Array:
    text = column if pa.types.is_string(column.type) else column.cast(pa.string())
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"')):
        text = pc.replace_substring(text, plain, escaped)
    if pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
        for plain, escaped in _ESCAPES.items():
            text = pc.replace_substring(text, plain, escaped)
    return text


def _number(column: pa.Array, shape: Shape) -> _Written:
    bad = None
    if pa.types.is_floating(column.type):
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
        finite = pc.is_finite(column)
        if pc.all(finite).as_py() is False:
            bad = pc.fill_null(pc.invert(finite), False)
    elif shape.kind == shapes.DECIMAL and pa.types.is_integer(column.type):
        whole = shape.precision - shape.scale
        if whole < _DIGITS:
            bound = pa.scalar(Decimal(10**whole), pa.decimal128(_DIGITS, 0))
            beyond = pc.greater_equal(pc.abs(column.cast(bound.type)), bound)
            bad = pc.fill_null(beyond, False) if pc.any(beyond).as_py() else None
    return _Written(column.cast(pa.string()), bad)


def _boolean(column: pa.Array, shape: Shape) -> _Written:
    return _Written(pc.if_else(column, "true", "false"))


def _date(column: pa.Array, shape: Shape) -> _Written:
    days = column.cast(pa.date32())
    text, bad = days.cast(pa.string()), _beyond(days.cast(pa.int32()), _FIRST_SECOND // _A_DAY, _LAST_SECOND // _A_DAY)
    return _Written(text, bad, '"', '"')


def _timestamp(column: pa.Array, shape: Shape) -> _Written:
    scale = _A_SECOND[column.type.unit]
    bad = _beyond(column.cast(pa.int64()), _FIRST_SECOND * scale, (_LAST_SECOND + 1) * scale - 1)
    if bad is not None:
        column = pc.if_else(bad, pa.scalar(None, column.type), column)
    if column.type.unit == "ns":  # before 1970, too, what is below a microsecond is cut off downwards, as in Avro
        column = pc.floor_temporal(column, unit="microsecond")
    text = column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.string())
    return _Written(pc.replace_substring(text, " ", "T"), bad, '"', '"')


def _beyond(numbers: pa.Array, least: int, most: int) -> pa.Array | None:
    """Which of some numbers are out of bounds; None where none is."""
    found = pc.min_max(numbers).as_py()
    if found["min"] is None or (least <= found["min"] and found["max"] <= most):
        return None
    least, most = max(least, -(1 << 63)), min(most, (1 << 63) - 1)
    return pc.fill_null(pc.or_(pc.less(numbers, least), pc.greater(numbers, most)), False)


def _bytes(column: pa.Array, shape: Shape) -> _Written:
    texts = [None if one is None else b2a_base64(one, newline=False).decode() for one in column.to_pylist()]
    return _Written(pa.array(texts, pa.string()), None, '"', '"')


def _days(column: pa.Array, shape: Shape) -> _Written:
    return _Written(column.cast(pa.date32()).cast(pa.int32()).cast(pa.string()))


def _millis(column: pa.Array, shape: Shape) -> _Written:
    bad = None
    if column.type.unit == "s":  # of which there are more than fit
        most = ((1 << 63) - 1) // 1_000
        bad = _beyond(column.cast(pa.int64()), -most, most)
        column = column if bad is None else pc.if_else(bad, pa.scalar(None, column.type), column)
    return _Written(
        pc.floor_temporal(column, unit="millisecond")
        .cast(pa.timestamp("ms", "UTC"), safe=False)
        .cast(pa.int64())
        .cast(pa.string()),
        bad,
    )


def _any(column: pa.Array, shape: Shape) -> _Written:
    good = [one is None or _is_json(one) for one in column.cast(pa.binary()).to_pylist()]
    return _Written(column.cast(pa.string()), None if all(good) else pc.invert(pa.array(good, pa.bool_())))


_WRITERS: Final[dict[str, Callable[[pa.Array, Shape], _Written]]] = {
    shapes.BOOLEAN: _boolean,
    shapes.INTEGER: _number,
    shapes.NUMBER: _number,
    shapes.DECIMAL: _number,
    shapes.STRING: _string,
    shapes.DATE: _date,
    shapes.TIMESTAMP: _timestamp,
    shapes.BYTES: _bytes,
    shapes.DAYS: _days,
    shapes.MILLIS: _millis,
    shapes.STRUCT: _struct,
    shapes.LIST: _list,
    shapes.MAP: _map,
    shapes.ENTRIES: _entries,
    shapes.ANY: _any,
}


def _is_utf8(data: bytes | None) -> bool:
    try:
        return data is None or bool(data.decode("utf-8")) or True
    except UnicodeDecodeError:
        return False


def _is_json(data: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _why(value: Any, shape: Shape, where: str) -> str | None:
    """What keeps a value from being written, as `_written` has it; None for nothing."""
    at = f"{where}: " if where else ""
    if value is None:
        return None if shape.is_nullable else f"{at}is null, which the schema does not allow"
    if shape.kind == shapes.STRUCT:
        return _why_properties(value, shape.properties, where)
    if shape.kind in (shapes.MAP, shapes.ENTRIES):
        pairs = list(value.items()) if isinstance(value, dict) else value
        if shape.kind == shapes.MAP and len(names := [key for key, _ in pairs]) != len(set(names)):
            return f"{at}{next(key for key in names if names.count(key) > 1)[:40]!r} is there twice"
        inner = shape.item or shape.properties[1].shape
        return next((why for key, one in pairs if (why := _why(one, inner, f"{where}.{key}".lstrip(".")))), None)
    if shape.kind == shapes.LIST:
        assert shape.item is not None
        items = enumerate(value)
        return next((why for place, one in items if (why := _why(one, shape.item, f"{where}[{place}]"))), None)
    if isinstance(value, str) and not is_encodable(value):
        return f"{at}is not UTF-8"
    if shape.kind == shapes.DECIMAL and isinstance(value, int) and abs(value) >= 10 ** (shape.precision - shape.scale):
        return f"{at}{value} has more than {shape.precision - shape.scale} digits before the point"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{at}{value} is no number of JSON"
    if shape.kind == shapes.ANY and not _is_json(str(value).encode("utf-8", "surrogatepass")):
        return f"{at}is no JSON"
    if shape.kind == shapes.STRING and shape.choices is not None and json.dumps(value) not in shape.choices:
        return f"{at}{value[:40]!r} is none of the values that the schema allows"
    if shape.kind in (shapes.DATE, shapes.TIMESTAMP):
        return f"{at}lies beyond the years 0 to 9999" if not hasattr(value, "year") else None
    return None


def _why_properties(value: Any, properties: tuple[Property, ...], where: str) -> str | None:
    for one in properties:
        found = value.get(one.name)
        if found is None and not one.is_required:
            continue
        if why := _why(found, one.shape, f"{where}.{one.name}".lstrip(".")):
            return why
    return None
