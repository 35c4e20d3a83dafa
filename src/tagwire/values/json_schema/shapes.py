"""What a JSON Schema says that a value is, as far as it gives a column: a tree of shapes, each with its Arrow type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa

if TYPE_CHECKING:
    from typing import TypeAlias

BOOLEAN: Final = "boolean"
INTEGER: Final = "integer"
NUMBER: Final = "number"
STRING: Final = "string"
DATE: Final = "date"
"""A string in `format: date`."""
TIMESTAMP: Final = "date-time"
"""A string in `format: date-time`."""
BYTES: Final = "bytes"
"""A string that holds base64."""
DAYS: Final = "days"
"""Connect's Date: days since 1970."""
MILLIS: Final = "millis"
"""Connect's Timestamp: milliseconds since 1970."""
DECIMAL: Final = "decimal"
"""Connect's Decimal: a number, or base64 of its unscaled value."""
STRUCT: Final = "object"
LIST: Final = "array"
MAP: Final = "map"
"""An object whose names are data."""
ENTRIES: Final = "entries"
"""Connect's map with keys that are no strings: an array of objects with `key` and `value`."""
ANY: Final = "any"
"""What has no one type: the column has its JSON text."""

_PLAIN: Final = {
    BOOLEAN: pa.bool_(),
    STRING: pa.string(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    BYTES: pa.binary(),
    DAYS: pa.date32(),
    MILLIS: pa.timestamp("us", "UTC"),
    ANY: pa.string(),
}
_COUNTED: Final = {**_PLAIN, MILLIS: pa.timestamp("ms", "UTC")}
_SIZED: Final = {
    (INTEGER, 8): pa.int8(),
    (INTEGER, 16): pa.int16(),
    (INTEGER, 32): pa.int32(),
    (INTEGER, 64): pa.int64(),
    (NUMBER, 32): pa.float32(),
    (NUMBER, 64): pa.float64(),
}

Path: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True)
class Property:
    """A property of an object."""

    name: str
    shape: Shape
    is_required: bool


@dataclass(frozen=True)
class Shape:
    """What a value is.

    Attributes:
        kind: one of the words above.
        is_nullable: whether it may be null.
        properties: of a struct; for entries `key` and `value`.
        item: what a list or a map holds.
        bits: of integers and numbers. precision, scale: of decimals.
        is_closed: whether an object may have no properties but these.
        choices: the only values allowed, each as JSON; None where any is.
    """

    kind: str
    is_nullable: bool = False
    properties: tuple[Property, ...] = ()
    item: Shape | None = None
    bits: int = 64
    precision: int = 38
    scale: int = 0
    is_closed: bool = False
    choices: frozenset[str] | None = None

    @property
    def type(self) -> pa.DataType:
        """The column's type. Everything in it may be null: a value is not checked against its schema."""
        return self._type(_PLAIN)

    @property
    def json_type(self) -> pa.DataType:
        """The same with Connect's timestamps in milliseconds, as values have them."""
        return self._type(_COUNTED)

    def _type(self, plain: Mapping[str, pa.DataType]) -> pa.DataType:
        if self.kind in plain:
            return plain[self.kind]
        if self.kind in (INTEGER, NUMBER):
            return _SIZED[self.kind, self.bits]
        if self.kind == DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        if self.kind == STRUCT:
            return pa.struct([pa.field(one.name, one.shape._type(plain)) for one in self.properties])
        if self.kind == ENTRIES:
            key, value = self.properties
            return pa.map_(key.shape._type(plain), value.shape._type(plain))
        assert self.item is not None
        item = self.item._type(plain)
        return pa.map_(pa.string(), item) if self.kind == MAP else pa.list_(item)

    def of(self, fields: Sequence[str]) -> Shape:
        """The struct with these of its properties, in this order. Raises KeyError for one that it lacks."""
        by_name = {one.name: one for one in self.properties}
        return Shape(self.kind, self.is_nullable, tuple(by_name[name] for name in fields), is_closed=self.is_closed)

    @property
    def within(self) -> Iterator[Shape]:
        """The shapes that it is made of."""
        yield from (one.shape for one in self.properties)
        if self.item is not None:
            yield self.item

    def has(self, *kinds: str) -> bool:
        """Whether it, or anything within, is one of `kinds`."""
        return self.kind in kinds or any(one.has(*kinds) for one in self.within)
