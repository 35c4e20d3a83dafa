"""What `land` is told beside topic and directory: the columns of the table, the sizes of files and micro-batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tagwire.errors import ConfigError

NONE: Final = "none"
MONTH: Final = "month"
DATE: Final = "date"
HOUR: Final = "hour"
TIMES: Final = (MONTH, DATE, HOUR)
"""Of the timestamp, in UTC: columns that a table gets for its partitions."""
_DAY = "day"  # as other systems call a date
_PARTITION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

CORRUPT_OPTIONS: Final = {"value": "columnNameOfCorruptRecord", "key": "key.columnNameOfCorruptRecord"}
"""By column that may be decoded: the option that names the column with the bytes of what could not be."""
CORRUPT: Final = {"value": "_corrupt_record", "key": "_corrupt_key"}
"""How that column is called unless the option says otherwise."""

_COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp")


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """The columns and directories of a table, fixed when it is begun. None is as the table has it.

    Attributes:
        headers: names of the headers that become columns; none for a new table.
        text: whether key and value are strings; bytes for a new table.
        values: the options of the format `tagwire` that decode values and keys: `value.format`, `key.format`,
            `value.schema`, ... `mode` may change from run to run; PERMISSIVE keeps the bytes of a value that cannot be
            decoded in a column `_corrupt_record`, or as `columnNameOfCorruptRecord` names it, and those of a key in
            `_corrupt_key`, or as `key.columnNameOfCorruptRecord` does.
        partition_by: "month", "day" (column `date`) or "hour" of the timestamp (UTC), headers that are columns, or
            `partition`, separated by commas: files are kept apart by them. Or "none", which is that of a new table:
            Parquet's statistics find a time as well, and a micro-batch writes at least one file for each value that it
            holds.
        evolve: whether a table may get columns that its rows have and it has not: further headers, further fields of
            values. Without, as without a format that can, it keeps its columns.
        restart: whether a topic that was deleted and made anew is landed from its start, behind the rows of the old
            one; without, it is refused. For all other topics it means nothing.
    """

    headers: Sequence[str] | None = None
    text: bool | None = None
    values: Mapping[str, str] | None = field(default=None, repr=False)  # a registry's password may be among them
    partition_by: str | None = None
    evolve: bool = False
    restart: bool = False

    def check(self) -> None:
        """Raises ConfigError: two columns would have one name, or two partitions."""
        partitions = partition_columns(self.partition_by)
        columns = [*_COLUMNS, *(name for name in partitions if name in TIMES)]
        if len(set(partitions)) < len(partitions) or len(columns) > len(_COLUMNS) + 1:
            raise ConfigError(f"partition_by={self.partition_by}: names two times, or a column twice")
        added = [("headers", name) for name in self.headers or ()]
        values = self.values or {}
        for name, option in CORRUPT_OPTIONS.items():
            if f"{name}.format" in values or option in values:
                added.append((option, values.get(option, CORRUPT[name])))
        taken = set(columns)
        for what, name in added:
            if not name:
                raise ConfigError(f"{what}: an empty name")
            if name.lower() in taken:
                raise ConfigError(
                    f"{what}: {name!r} would be a second column of that name (columns: {', '.join(columns)})"
                )
            taken.add(name.lower())


def partition_columns(partition_by: str | None) -> tuple[str, ...]:
    """The columns that `TableSettings.partition_by` names."""
    if partition_by in (None, NONE):
        return ()
    names = (name.strip() for name in (partition_by or "").split(","))
    return tuple(DATE if name == _DAY else name for name in names)


def refuse_partitions(names: Sequence[str], headers: Sequence[str]) -> None:
    """Raises ConfigError where a table with these headers cannot be partitioned by these columns."""
    allowed = [*TIMES, "partition", *headers]
    for name in names:
        if name not in allowed:
            known = "is no column to partition by" if name in _COLUMNS else "is no column"
            raise ConfigError(f"partition_by={','.join(names)}: {name!r} {known}; {', '.join(allowed)} are")
        if not _PARTITION_NAME.fullmatch(name):
            raise ConfigError(
                f"partition_by={','.join(names)}: {name!r} has characters that readers of directories do not take"
            )


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """How large micro-batches and files become. May change from run to run.

    Attributes:
        batch_offsets: offsets in one micro-batch, at most about; each adds at least one file.
        file_bytes: how large a file becomes, about, where a micro-batch, or its part of a date, has so much, by the
            size of its rows before Parquet packs them. No file is larger than twice that, but in the first micro-batch
            of a table.
        file_rows: rows in one file, at most; None is as many as `file_bytes` makes.
    """

    batch_offsets: int = 1_000_000
    file_bytes: int = 128 << 20
    file_rows: int | None = None

    def check(self) -> None:
        """Raises ConfigError: a number is not above 0."""
        for name, count in vars(self).items():
            if count is not None and count < 1:
                raise ConfigError(f"{name}={count}: needs a whole number above 0")


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """What is done to a table when a run has landed its rows.

    Attributes:
        optimize: whether small files become large ones.
        vacuum: whether files are removed that are no part of the table: what killed runs have left, and what was
            replaced, once it is older than the table's retention (a week, unless its properties say otherwise).
    """

    optimize: bool = False
    vacuum: bool = False
