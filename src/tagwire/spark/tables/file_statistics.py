"""Statistics of a file's columns as Delta's log has them, from the footer of the Parquet file.

Source: Delta's protocol, "Per-file Statistics". Left out is what could mislead a reader: bounds of floats with a NaN
among them, of times outside the years 1 to 9999, of text that Parquet keeps none of. Text is cut to 32 characters, the
upper bound with a character behind it that nothing exceeds; timestamps are whole milliseconds, outwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = 32
"""Columns that have statistics, fields of structs counted, as Delta's `delta.dataSkippingNumIndexedCols` has it."""

_TEXT = 32
_LAST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECOND = -62_135_596_800_000
_LAST_MILLISECOND = 253_402_300_799_999


class _Leaf(NamedTuple):
    """A column of the file: its names from the outside in, its place among the file's columns, and its type."""

    path: tuple[str, ...]
    place: int
    type: Any


class _Range(NamedTuple):
    lowest: Any
    highest: Any


class FileStatistics:
    """The statistics of one file, of rows in this schema."""

    def __init__(self, schema: pa.Schema) -> None:
        leaves: list[_Leaf] = []
        place = 0
        for field in schema:
            leaves += _leaves(field, (), place)
            place += _width(field.type)
        # The columns of every table come before the fields of a value, of which there may be any number.
        self._leaves = sorted(leaves, key=lambda leaf: len(leaf.path) > 1)[:COLUMNS]
        self._with_nan: set[tuple[str, ...]] = set()

    def see(self, rows: pa.Table) -> None:
        """Looks at rows of the file for what its footer does not tell."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for leaf in self._leaves:
            if pa.types.is_floating(leaf.type) and leaf.path not in self._with_nan:
                column = rows.column(leaf.path[0])
                for name in leaf.path[1:]:
                    column = pc.struct_field(column, name)
                if pc.any(pc.is_nan(column)).as_py():
                    self._with_nan.add(leaf.path)

    def json(self, footer: Any) -> str:
        """The statistics of the file with this footer, a `pyarrow.parquet.FileMetaData`."""
        lowest: dict[str, Any] = {}
        highest: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for leaf in self._leaves:
            missing = _nulls(footer, leaf.place)
            if missing is not None:
                _put(nulls, leaf.path, str(missing))
            found = None if leaf.path in self._with_nan else _range(footer, leaf)
            if found is not None:
                _put(lowest, leaf.path, found.lowest)
                _put(highest, leaf.path, found.highest)
        parts = {"minValues": lowest, "maxValues": highest, "nullCount": nulls}
        return _document({"numRecords": str(footer.num_rows), **parts})


def _leaves(field: pa.Field, above: tuple[str, ...], place: int) -> Iterator[_Leaf]:
    """The columns that have statistics: all but lists, maps and what is in them."""
    import pyarrow as pa

    path = (*above, field.name)
    if pa.types.is_struct(field.type):
        for child in field.type:
            yield from _leaves(child, path, place)
            place += _width(child.type)
    elif not pa.types.is_nested(field.type):
        yield _Leaf(path, place, field.type)


def _width(kind: pa.DataType) -> int:
    """How many columns of a Parquet file a type takes."""
    import pyarrow as pa

    if not pa.types.is_nested(kind):
        return 1
    return sum(_width(kind.field(index).type) for index in range(kind.num_fields))


def _nulls(footer: Any, place: int) -> int | None:
    found = 0
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(place).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        found += statistics.null_count
    return found


def _range(footer: Any, leaf: _Leaf) -> _Range | None:
    """The least and the greatest value as JSON texts; None where they are not known, or cannot be written."""
    import pyarrow as pa

    if pa.types.is_boolean(leaf.type) or pa.types.is_binary(leaf.type):
        return None
    lowest = highest = None
    for group in range(footer.num_row_groups):
        column = footer.row_group(group).column(leaf.place)
        statistics = column.statistics
        if statistics is None:
            return None
        if not statistics.has_min_max:
            if statistics.has_null_count and statistics.null_count == column.num_values:
                continue
            return None
        # Text is compared as bytes; times are numbers still, whatever year they are in.
        raw = pa.types.is_string(leaf.type) or pa.types.is_temporal(leaf.type)
        least, most = (statistics.min_raw, statistics.max_raw) if raw else (statistics.min, statistics.max)
        lowest = least if lowest is None else min(lowest, least)
        highest = most if highest is None else max(highest, most)
    if lowest is None:
        return None
    texts = _text(lowest, leaf.type, upper=False), _text(highest, leaf.type, upper=True)
    return None if texts[0] is None or texts[1] is None else _Range(*texts)


def _text(value: Any, kind: pa.DataType, *, upper: bool) -> str | None:
    """A bound as JSON has it."""
    import pyarrow as pa

    if pa.types.is_string(kind):
        return _cut(value.decode("utf-8"), upper=upper)
    if pa.types.is_date(kind):
        days = _EPOCH.date().toordinal() + value
        return json.dumps(date.fromordinal(days).isoformat()) if 1 <= days <= date.max.toordinal() else None
    if pa.types.is_timestamp(kind):
        return _time(-(-value // 1000) if upper else value // 1000, "Z" if kind.tz else "")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return json.dumps(value) if abs(value) != float("inf") else None
    return str(value) if isinstance(value, int) else None


def _time(milliseconds: int, zone: str) -> str | None:
    if not _FIRST_MILLISECOND <= milliseconds <= _LAST_MILLISECOND:
        return None
    at = _EPOCH + timedelta(milliseconds=milliseconds)
    return json.dumps(at.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone)


def _cut(text: str, *, upper: bool) -> str | None:
    if len(text) <= _TEXT:
        return json.dumps(text, ensure_ascii=False)
    if not upper:
        return json.dumps(text[:_TEXT], ensure_ascii=False)
    return None if text[_TEXT] == _LAST else json.dumps(text[:_TEXT] + _LAST, ensure_ascii=False)


def _put(into: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = text


def _document(parts: dict[str, Any]) -> str:
    """Objects whose leaves are JSON already: a decimal keeps all its digits."""
    return (
        "{"
        + ",".join(
            f"{json.dumps(name, ensure_ascii=False)}:{_document(part) if isinstance(part, dict) else part}"
            for name, part in parts.items()
        )
        + "}"
    )
