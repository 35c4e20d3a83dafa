"""Rows that are sorted by partition columns, cut where these change; the values as a table format writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    import pyarrow as pa

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""How a directory is called whose rows have null in its column."""

_NAME = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{}\[\]^\x7f]""")  # by Hive, and all that read its directories


def runs(rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, str | None], pa.RecordBatch]]:
    """The rows in pieces with one value in each of `columns`, which are kept, and those values as text."""
    import pyarrow.compute as pc

    if not rows.num_rows:
        return
    if not columns:
        yield {}, rows
        return
    ends = {rows.num_rows}
    for name in columns:
        ends.update(pc.run_end_encode(rows.column(name)).run_ends.to_pylist())
    start = 0
    for end in sorted(ends):
        yield {name: _text(rows.column(name)[start].as_py()) for name in columns}, rows.slice(start, end - start)
        start = end


def folder_of(values: Mapping[str, str | None], *, exact: bool) -> str:
    """The directory of rows with these values, ending in `/`; "" where there is none.

    Args:
        exact: whether the values are read from it, by Hive's rules; else it is for people alone.
    """

    def told(value: str | None) -> str:
        if not value:  # Hive has no empty text
            return NULL
        if exact:
            return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value)
        return _UNSAFE.sub("_", value)[:_NAME]

    return "".join(f"{name}={told(value)}/" for name, value in values.items())


def values_of(folders: Sequence[str]) -> dict[str, str | None]:
    """The values that directories tell by Hive's rules."""
    pairs = (folder.partition("=") for folder in folders)
    return {name: None if value == NULL else unquote(value) for name, _, value in pairs}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
