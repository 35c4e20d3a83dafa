"""Bodies of flat records, many at once, by the kernel: records whose fields are neither lists nor records nor unions of
several types. Most tables are such.

Whatever the kernel finds not plain makes its row suspect, and that is judged where bodies are read one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tagwire.extras import Needs
from tagwire.kernel import avro_columns as kernel
from tagwire.values.avro.wire_types import Wire

with Needs("avro"):
    import numpy as np
    import pyarrow as pa

_FLAT: Final = {"long", "boolean", "float", "double", "string", "bytes", "fixed", "nothing"}

_STRIDE_ROWS: Final = 1024
_STRIDE_BYTES: Final = 1 << 18
"""Rows, and bytes of bodies, that stay in the processor's cache from one field to the next. A longer body is read by
itself: each field of text has room for so many bytes before it is known which of them are its own."""

_MOST_FIELDS: Final = 1000
_NUMBERS: Final = {"float": pa.float32(), "double": pa.float64()}


class FlatReader:
    """Reads blocks of a flat record.

    Args:
        wire: the record.
        wanted: the places of the fields that are wanted; others are passed over.
    """

    def __init__(self, wire: Wire, wanted: Sequence[int]) -> None:
        kept = set(wanted)
        self._fields = [
            (place, each, place in kept) for place, each in enumerate(wire.fields) if each.kind != "nothing"
        ]

    @staticmethod
    def of(wire: Wire, wanted: Sequence[int]) -> FlatReader | None:
        """What reads a record; None where it is not flat, or the kernel is not compiled and others are faster."""
        inner = [each.inner if each.kind == "nullable" else each for each in wire.fields]
        flat = all(each.kind in _FLAT for each in inner)
        # Of a nullable field without bytes only the type's number is there.
        empty = any(each.kind == "nullable" and each.inner.kind == "nothing" for each in wire.fields)
        few = len(inner) <= _MOST_FIELDS
        return FlatReader(wire, wanted) if kernel.COMPILED and flat and few and not empty else None

    def read(self, bodies: pa.Array) -> tuple[dict[int, pa.Array], Any]:
        """The columns of bodies of which none is null, by their fields' places, and which rows are suspect."""
        rows = len(bodies)
        _, offsets, data = bodies.buffers()
        edges: Any = np.frombuffer(offsets, np.int32)[bodies.offset : bodies.offset + rows + 1].astype(np.int64)
        held: Any = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        if rows and not (edges[0] >= 0 and edges[-1] <= len(held) and (edges[:-1] <= edges[1:]).all()):
            raise pa.ArrowInvalid("the column's offsets lead out of its data")
        at, ends = edges[:-1].copy(), edges[1:]
        suspect: Any = (ends - at > _STRIDE_BYTES).view(np.uint8)
        columns = [_Column(each, rows) for _, each, _ in self._fields]
        views = [memoryview(each) for each in (at, ends, suspect)]
        start = 0
        while start < rows:
            near = int(np.searchsorted(edges, edges[start] + _STRIDE_BYTES, side="right")) - 1
            part = slice(start, max(start + 1, min(start + _STRIDE_ROWS, near)))
            most = min(int(edges[part.stop] - edges[start]), _STRIDE_BYTES)
            places, stops, wrong = (each[part] for each in views)
            for column in columns:
                column.read(memoryview(held), places, stops, wrong, part, most)
            start = part.stop
        suspect |= at != ends
        found = {
            place: column.array() for (place, _, wanted), column in zip(self._fields, columns, strict=True) if wanted
        }
        return found, suspect.view(bool)


class _Column:
    """A field's values, as they are read."""

    def __init__(self, wire: Wire, rows: int) -> None:
        self._rows = rows
        self._valid: Any = np.empty(rows, np.uint8) if wire.kind == "nullable" else None
        self._null_first = wire.null_first
        self._wire = wire.inner if wire.kind == "nullable" else wire
        self._kind = self._wire.kind
        self._ends: Any = None
        self._found: Any
        if self._kind == "long":
            self._found = np.empty(rows, np.int64)
        elif self._kind == "boolean":
            self._found = np.empty(rows, np.uint8)
        elif self._kind in ("string", "bytes"):
            self._ends = np.zeros(rows + 1, np.int32)
            self._found = np.empty(_STRIDE_BYTES, np.uint8)
        else:
            self._size = self._wire.node.size if self._kind == "fixed" else _NUMBERS[self._kind].byte_width
            self._found = np.empty(rows * self._size, np.uint8)

    def read(self, data: Any, at: Any, ends: Any, suspect: Any, part: slice, most: int) -> None:
        """The values of some rows, those before which are read; of text they have so many bytes at most."""
        valid = None
        if self._valid is not None:
            valid = memoryview(self._valid)[part]
            kernel.branches(data, at, ends, suspect, valid, self._null_first)
        if self._kind == "long":
            kernel.numbers(data, at, ends, suspect, valid, memoryview(self._found)[part])
        elif self._kind == "boolean":
            kernel.booleans(data, at, ends, suspect, valid, memoryview(self._found)[part])
        elif self._ends is not None:
            used = int(self._ends[part.start])
            if used + most > len(self._found):
                self._found = np.concatenate([self._found[:used], np.empty(max(used, most), np.uint8)])
            found_ends = memoryview(self._ends)[part.start : part.stop + 1]
            is_text = self._kind == "string"
            kernel.texts(data, at, ends, suspect, valid, found_ends, memoryview(self._found), is_text)
        else:
            found = memoryview(self._found)[part.start * self._size : part.stop * self._size]
            kernel.chunks(data, at, ends, suspect, valid, found, self._size)

    def array(self) -> pa.Array:
        validity = None if self._valid is None else pa.py_buffer(np.packbits(self._valid, bitorder="little"))
        if self._kind == "boolean":
            found = pa.py_buffer(np.packbits(self._found, bitorder="little"))
            return pa.Array.from_buffers(pa.bool_(), self._rows, [validity, found])
        if self._ends is not None:
            used = int(self._ends[-1])
            text = pa.py_buffer(self._found[:used] if 2 * used > len(self._found) else self._found[:used].copy())
            kind = pa.string() if self._kind == "string" else pa.binary()
            return pa.Array.from_buffers(kind, self._rows, [validity, pa.py_buffer(self._ends), text])
        found = pa.py_buffer(self._found)
        if self._kind == "fixed":
            whole = pa.Array.from_buffers(pa.binary(self._size), self._rows, [validity, found])
            return whole.cast(pa.binary())
        kind = pa.int64() if self._kind == "long" else _NUMBERS[self._kind]
        return pa.Array.from_buffers(kind, self._rows, [validity, found])
