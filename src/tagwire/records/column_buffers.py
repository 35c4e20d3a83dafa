"""The Arrow buffers that records are decoded into, and the arrays over them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Literal, Protocol

from tagwire.extras import Needs
from tagwire.kernel import records as kernel
from tagwire.kernel import string_buffers
from tagwire.kernel.record_objects import text
from tagwire.records.batch import APPEND_TIME, CODEC_MASK, HEADER_SIZE, BatchHeader

with Needs("arrow"):
    import pyarrow as pa

_SHRINK_FROM = 1 << 16
_NO_TIMESTAMP_TYPE = -1


class Names(Protocol):
    """What knows header keys by name, such as a `HeaderRegister`."""

    def name_of(self, key: int) -> str | None: ...


class _Strings:
    """A variable-size column being filled: Arrow's buffers, and the kernel's view of them.

    `size`: the most bytes it can hold, which have room as soon as there is room for a row; None in a list column.
    """

    def __init__(self, rows: int, size: int | None, *, nullable: bool = True) -> None:
        self.nullable = nullable
        self.size = size
        self.data: pa.Buffer | None = None
        self.view = string_buffers.Strings(rows, *self._rooms(rows))

    def _rooms(self, rows: int) -> tuple[memoryview | None, memoryview, memoryview | None]:
        self.valid = _allocated((rows + 7) // 8) if self.nullable else None
        self.ends = _allocated(4 * (rows + 1))
        if self.data is None and self.size is not None and rows:
            self.data = _allocated(self.size + string_buffers.SLACK)
        valid = None if self.valid is None else _viewed(self.valid, "B")
        return valid, _viewed(self.ends, "i"), None if self.data is None else _viewed(self.data, "B")

    def grow(self, rows: int) -> None:
        """Makes room for `rows` rows, keeping those there are."""
        self.view.move(rows, *self._rooms(rows))

    def buffers(self) -> list[pa.Buffer | None]:
        """Validity (None when no row is null), ends, and data cut to what it holds if that frees much."""
        valid = self.valid if self.view.nulls else None
        if self.size is None:
            return [valid, self.ends]
        if self.data is None:
            return [valid, self.ends, _allocated(0)]
        if self.data.size > _SHRINK_FROM and self.view.size * 2 < self.data.size:
            self.data.resize(self.view.size, shrink_to_fit=True)
        return [valid, self.ends, self.data]


class ColumnBuffers:
    """The buffers of the columns that come from records, large enough for all of them from the start.

    Header keys and values excepted: how many there are shows only while decoding. At the first one they get room for
    two a record.

    Columns that are not among `names` have none. `register` names int header keys, if that is what there are.
    """

    def __init__(self, names: Sequence[str], rows: int, size: int, register: Names | None = None) -> None:
        self.most_headers = size // 2
        self.likely_headers = 2 * rows + 8
        self.register = register
        self.numbers = {
            name: _allocated(rows * width)
            for name, width in (("offset", 8), ("timestamp", 8), ("timestamp_type", 4))
            if name in names
        }
        self.strings = {name: _Strings(rows, size) for name in ("key", "value") if name in names}
        if "headers" in names:
            self.strings["headers"] = _Strings(rows, None)
            self.strings["header key"] = _Strings(0, size, nullable=False)
            self.strings["header value"] = _Strings(0, size)
        self.kernel = kernel.Columns(
            self._number("offset", "q"),
            self._number("timestamp", "q"),
            self._number("timestamp_type", "i"),
            *(
                self.strings[name].view if name in self.strings else None
                for name in ("key", "value", "headers", "header key", "header value")
            ),
        )

    def _number(self, name: str, letter: Literal["q", "i"]) -> memoryview | None:
        return _viewed(self.numbers[name], letter) if name in self.numbers else None

    @property
    def rows(self) -> int:
        return int(self.kernel.rows)

    def decode(self, header: BatchHeader, payload: memoryview, first: int, limit: int, microseconds: bool) -> None:
        """Appends those records of one batch whose offset is in first..limit-1."""
        before = self.rows
        while needed := self.kernel.decode(
            payload,
            header.count,
            0 if header.attributes & CODEC_MASK else HEADER_SIZE,
            header.base_offset,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            bool(header.attributes & APPEND_TIME),
            first,
            limit,
            microseconds,
        ):
            self._grow(needed)
        if header.magic == 0 and "timestamp_type" in self.numbers:
            kinds = _viewed(self.numbers["timestamp_type"], "i")
            kinds[before : self.rows] = array("i", [_NO_TIMESTAMP_TYPE]) * (self.rows - before)

    def decode_run(self, part: memoryview, at: int, end: int, first: int, limit: int, microseconds: bool) -> None:
        """The same of the plain batches from `at` to `end`. Raises CorruptRecordError for a checksum too."""
        while at < end:
            at, needed = self.kernel.decode_run(part, at, end, first, limit, microseconds)
            if needed < 0:
                BatchHeader(part, at).verify(part)
            elif needed:
                self._grow(needed)

    def _grow(self, needed: int) -> None:
        """Makes room for `needed` headers, or as many as are likely, or twice what there is, if so many may come."""
        keys, values = self.strings["header key"], self.strings["header value"]
        room = max(needed, min(max(self.likely_headers, 2 * keys.view.room), self.most_headers))
        keys.grow(room)
        values.grow(room)

    def array(self, field: pa.Field) -> pa.Array:
        """The column `field`."""
        if field.name in self.numbers:
            return pa.Array.from_buffers(field.type, self.rows, [None, self.numbers[field.name]], 0)
        column = self.strings[field.name]
        if field.name != "headers":
            return pa.Array.from_buffers(field.type, self.rows, column.buffers(), column.view.nulls)
        count = column.view.size
        kind = field.type.value_type
        keys, values = self.strings["header key"], self.strings["header value"]
        pair = [
            self._header_keys(pa.Array.from_buffers(kind[0].type, count, keys.buffers(), 0)),
            pa.Array.from_buffers(kind[1].type, count, values.buffers(), values.view.nulls),
        ]
        pairs = pa.Array.from_buffers(kind, count, [None], 0, children=pair)
        return pa.Array.from_buffers(field.type, self.rows, column.buffers(), column.view.nulls, children=[pairs])

    def _header_keys(self, keys: pa.Array) -> pa.Array:
        if self.register is not None:
            numbers = keys.dictionary_encode()
            names = [self.register.name_of(int(key)) or key for key in numbers.dictionary.to_pylist()]
            return pa.array(names, pa.string()).take(numbers.indices)
        if self.kernel.ascii_names:
            return keys
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid:
            return pa.array([text(key) for key in keys.view(pa.binary()).to_pylist()], pa.string())
        return keys


def _allocated(size: int) -> pa.Buffer:
    return pa.allocate_buffer(size, resizable=True)


def _viewed(buffer: pa.Buffer, letter: Literal["B", "i", "q"]) -> memoryview:
    return memoryview(buffer).cast(letter)
