"""JSON bodies as Arrow arrays: by Arrow's JSON reader where it has the types, and value by value otherwise.

Both give arrays of `raw_type`, in which dates, times and base64 are still text; `_finished` makes them what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.rows import NotRead, base64_bytes, parse, reader_of
from tagwire.values.json_schema.shapes import Shape
from tagwire.values.json_values import decode_by_halves, read_lines

# So many are read one by one where Arrow's reader fails at them: about as long as it takes to read as many again.
_FEW: Final = 64

_BY_ROW: Final = (shapes.MAP, shapes.ANY, shapes.DECIMAL)
_TO_FINISH: Final = (
    shapes.DATE,
    shapes.TIMESTAMP,
    shapes.BYTES,
    shapes.DAYS,
    shapes.MILLIS,
    shapes.NUMBER,
    shapes.ENTRIES,
)
_DATE: Final = r"^\d{4}-\d\d-\d\d$"
# RFC 3339's date-time. Arrow would take more, such as times without a zone.
_TIMESTAMP: Final = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"


@dataclass(frozen=True)
class JsonDecoder:
    """Bodies as values of a shape, whoever wrote them: JSON says itself what it holds. A `BodyDecoder`."""

    shape: Shape

    @cached_property
    def _raw(self) -> pa.DataType:
        return raw_type(self.shape)

    @cached_property
    def _is_by_row(self) -> bool:
        return self.shape.has(*_BY_ROW)

    def decode(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        """An array of the shape's type, and which bodies are bad: no JSON, or not of that shape."""
        read = self._by_row if self._is_by_row else self._by_arrow
        return decode_by_halves(bodies, self.shape.type, read, self._by_row, _FEW)

    def refusal(self, body: bytes) -> str:
        """Why a body is bad, in one line."""
        try:
            self._one(body)
        except NotRead as error:
            return str(error)
        return "it is good"

    def _by_arrow(self, bodies: pa.Array) -> tuple[pa.Array, list[int]]:
        found = read_lines(bodies, self._raw)
        if found.null_count and not self.shape.is_nullable:
            raise NotRead("null")
        return _finished(found, self.shape), []

    def _by_row(self, bodies: pa.Array) -> tuple[pa.Array, list[int]]:
        found, bad = [], []
        for place, body in enumerate(bodies.to_pylist()):
            try:
                found.append(self._parsed(body))
            except NotRead:
                found.append(None)
                bad.append(place)
        raw = pa.array(found, self._raw)
        try:
            return _finished(raw, self.shape), bad
        except ValueError:
            if len(found) == 1:
                return pa.nulls(1, self.shape.type), [0]
        # One of them has text that is no date, or the like: which, is seen from each alone.
        pieces = []
        known = set(bad)
        for place in range(len(found)):
            try:
                # Not a slice: that of the first one has all that is in the lists and maps of the others.
                pieces.append(_finished(raw.take(pa.array([place])), self.shape))
            except ValueError:
                pieces.append(pa.nulls(1, self.shape.type))
                known.add(place)
        return pa.concat_arrays(pieces), sorted(known)

    def _parsed(self, body: bytes) -> object:
        """One body as `pa.array` takes it. Raises NotRead."""
        try:
            value = parse(body, exact=self._is_exact)
            found = self._reader(value)
        except RecursionError:
            if self._is_by_row:
                raise NotRead("it is nested too deep") from None
            try:  # Arrow's reader passes over what no column takes, however deep
                return read_lines(pa.array([body], pa.binary()), self._raw)[0].as_py()
            except ValueError as error:
                raise NotRead(str(error)) from None
        if found is None and not self.shape.is_nullable:
            raise NotRead("it is null")
        return found

    def _one(self, body: bytes) -> None:
        raw = pa.array([self._parsed(body)], self._raw)
        try:
            _finished(raw, self.shape)
        except NotRead:
            raise
        except ValueError as error:
            raise NotRead(str(error)) from None

    @cached_property
    def _reader(self):  # type: ignore[no-untyped-def]
        return reader_of(self.shape)

    @cached_property
    def _is_exact(self) -> bool:
        return self.shape.has(shapes.DECIMAL, shapes.INTEGER, shapes.DAYS, shapes.MILLIS)

    def __reduce__(self) -> tuple[object, ...]:
        return JsonDecoder, (self.shape,)


def raw_type(shape: Shape) -> pa.DataType:
    """What a shape is read as, before text becomes what it says."""
    if shape.kind in (shapes.DATE, shapes.TIMESTAMP, shapes.BYTES):
        return pa.string()
    if shape.kind == shapes.DAYS:
        return pa.int32()
    if shape.kind == shapes.MILLIS:
        return pa.int64()
    if shape.kind == shapes.NUMBER:
        return pa.float64()
    if shape.kind == shapes.STRUCT:
        return pa.struct([pa.field(one.name, raw_type(one.shape)) for one in shape.properties])
    if shape.kind == shapes.ENTRIES:
        return pa.list_(pa.struct([pa.field(one.name, raw_type(one.shape)) for one in shape.properties]))
    if shape.kind == shapes.LIST:
        assert shape.item is not None
        return pa.list_(raw_type(shape.item))
    if shape.kind == shapes.MAP:
        assert shape.item is not None
        return pa.map_(pa.string(), raw_type(shape.item))
    return shape.type


def _finished(found: pa.Array, shape: Shape) -> pa.Array:
    """What was read as the shape's type. Raises a ValueError, such as ArrowInvalid, where a value cannot be that."""
    if not shape.has(*_TO_FINISH):
        return found
    if shape.kind in _FINISHERS:
        return _FINISHERS[shape.kind](found, shape)
    if found.offset:
        found = pa.concat_arrays([found])
        if found.offset:
            found = found.take(pa.array(range(len(found)), pa.int64()))
    nulls = found.is_null() if found.null_count else None
    if shape.kind == shapes.STRUCT:
        # Under a null `field` has what `pa.array` put there, which may be the text "".
        columns = [_finished(column, one.shape) for column, one in zip(found.flatten(), shape.properties)]
        return pa.StructArray.from_arrays(columns, fields=list(shape.type), mask=nulls)
    if shape.kind == shapes.MAP:
        assert shape.item is not None
        items = _finished(found.items, shape.item)
        return _maps(found.offsets, found.keys, items, shape, nulls)
    if shape.kind == shapes.ENTRIES:
        key, value = shape.properties
        keys = _finished(found.values.field("key"), key.shape)
        if found.values.null_count or keys.null_count:
            raise NotRead("an entry has no key")
        return _maps(found.offsets, keys, _finished(found.values.field("value"), value.shape), shape, nulls)
    assert shape.item is not None
    return pa.ListArray.from_arrays(found.offsets, _finished(found.values, shape.item), type=shape.type, mask=nulls)


def _maps(offsets: pa.Array, keys: pa.Array, items: pa.Array, shape: Shape, nulls: pa.Array | None) -> pa.Array:
    return pa.MapArray.from_arrays(offsets, keys, items, type=shape.type, mask=nulls)


def _date(found: pa.Array, shape: Shape) -> pa.Array:
    _matching(found, _DATE, "date")
    return found.cast(shape.type)


def _timestamp(found: pa.Array, shape: Shape) -> pa.Array:
    _matching(found, _TIMESTAMP, "date-time of RFC 3339")
    try:
        return found.cast(shape.type)
    except pa.ArrowInvalid:  # lower case, or more digits than microseconds have
        upper = pc.replace_substring(pc.utf8_upper(found), "T", " ")
        return pc.replace_substring_regex(upper, r"(\.\d{6})\d+", r"\1").cast(shape.type)


def _matching(found: pa.Array, pattern: str, what: str) -> None:
    good = pc.match_substring_regex(found, pattern)
    if pc.all(good).as_py() is False:
        first = found.filter(pc.invert(good))[0].as_py()
        raise NotRead(f"{first[:40]!r} is no {what}")


def _bytes(found: pa.Array, shape: Shape) -> pa.Array:
    return pa.array([None if one is None else base64_bytes(one) for one in found.to_pylist()], shape.type)


def _days(found: pa.Array, shape: Shape) -> pa.Array:
    return found.cast(shape.type)


def _millis(found: pa.Array, shape: Shape) -> pa.Array:
    return pc.multiply_checked(found, 1000).cast(shape.type)


def _number(found: pa.Array, shape: Shape) -> pa.Array:
    narrow = found if found.type == shape.type else found.cast(shape.type)
    if pc.all(pc.is_finite(narrow)).as_py() is False:
        raise NotRead("a number is not finite")
    return narrow


_FINISHERS: Final = {
    shapes.DATE: _date,
    shapes.TIMESTAMP: _timestamp,
    shapes.BYTES: _bytes,
    shapes.DAYS: _days,
    shapes.MILLIS: _millis,
    shapes.NUMBER: _number,
}
