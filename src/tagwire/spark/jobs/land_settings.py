"""What `land` is told beside topic and directory: the columns of the table, the sizes of files and micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tagwire.errors import ConfigError

NONE: Final = "none"
DATE: Final = "date"
MONTH: Final = "month"
PARTITIONINGS: Final = (NONE, MONTH, DATE)
"""What the rows of a table are partitioned by: nothing, or the month or date (UTC) of their timestamps."""

CORRUPT: Final = "_corrupt_record"
"""The column of values that cannot be decoded, unless `columnNameOfCorruptRecord` names it."""

_COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp")


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """The columns and directories of a table, fixed when it is begun. None is as the table has it.

    Attributes:
        headers: names of the headers that become columns; none for a new table.
        text: whether key and value are strings; bytes for a new table.
        values: the options of the format `tagwire` that decode values: `value.format`, `value.schema`, ... `mode` may
            change from run to run; PERMISSIVE keeps the bytes of a value that cannot be decoded in a column
            `_corrupt_record`, or as `columnNameOfCorruptRecord` names it.
        partition_by: "month" or "date" (UTC) of the timestamp, each with a directory of its own, or "none", which is
            that of a new table: Parquet's statistics find a time as well, and a micro-batch writes at least one file
            for each month or date that it holds.
    """

    headers: Sequence[str] | None = None
    text: bool | None = None
    values: Mapping[str, str] | None = None
    partition_by: str | None = None

    def check(self) -> None:
        """Raises ConfigError: two columns would have one name, or there is no such partitioning."""
        if self.partition_by not in (None, *PARTITIONINGS):
            allowed = f"{', '.join(PARTITIONINGS[:-1])} or {PARTITIONINGS[-1]}"
            raise ConfigError(f"partition_by={self.partition_by!r}: needs {allowed}")
        columns = [*_COLUMNS, *([self.partition_by] if self.partition_by not in (None, NONE) else [])]
        added = [("headers", name) for name in self.headers or ()]
        if self.values is not None:
            option = "columnNameOfCorruptRecord"
            added.append((option, self.values.get(option, CORRUPT)))
        taken = set(columns)
        for what, name in added:
            if not name:
                raise ConfigError(f"{what}: an empty name")
            if name.lower() in taken:
                raise ConfigError(
                    f"{what}: {name!r} would be a second column of that name (columns: {', '.join(columns)})"
                )
            taken.add(name.lower())


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
