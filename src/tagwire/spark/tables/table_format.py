"""What `land` asks of a table format: where tasks write files, and how the driver makes them part of the table at once.

A run begins with `judge`, which writes nothing. Under the lock come `claim` and, when the columns are known, `begin`:
where the query starts. Each micro-batch then is `destination`, files that tasks write there, and `commit`: all of its
files become visible together, once, or none. A format keeps its own mark of what is committed, in the commit itself;
`parquet_table`, `delta_table` and `iceberg_table`, of `tagwire.spark.tables`, say which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.table_settings import TableSettings, Upkeep

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Landed:
    """What a run landed of one partition."""

    rows: int
    first_offset: int
    last_offset: int

    def __add__(self, other: Landed) -> Landed:
        first, last = min(self.first_offset, other.first_offset), max(self.last_offset, other.last_offset)
        return Landed(self.rows + other.rows, first, last)


class DataFile(NamedTuple):
    """A Parquet file that a task has written.

    Attributes:
        path: below the destination, with `/`.
        size: in bytes.
        partition_values: by partition column: text, or None. To Delta and in directories, no text is None.
        statistics: JSON as Delta's: numRecords, minValues, maxValues, nullCount; "" where the destination wants none.
    """

    path: str
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    statistics: str


@dataclass
class Written:
    """What the tasks of a micro-batch have written.

    Attributes:
        partitions: what of each partition of the topic.
        malformed: values and keys that could not be decoded.
    """

    files: list[DataFile] = field(default_factory=list)
    partitions: dict[int, Landed] = field(default_factory=dict)
    malformed: int = 0

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Totals(NamedTuple):
    """What a table holds; `size` in bytes."""

    rows: int
    files: int
    size: int


class Destination(Protocol):
    """Where tasks create files; pickled to them."""

    @property
    def place(self) -> str:
        """What paths are below, as errors name it."""

    @property
    def statistics(self) -> bool:
        """Whether `DataFile.statistics` is wanted."""

    @property
    def values_in_paths(self) -> bool:
        """Whether directories have to tell the values of partition columns, by Hive's names."""

    def create(self, path: str) -> Any:
        """A new file to write to, a `pyarrow.NativeFile`. Raises OSError."""

    def close(self, path: str, file: Any) -> None:
        """Closes it; it is whole then, and stays. Raises OSError."""

    def remove(self, path: str, file: Any) -> None:
        """Takes a file away that could not be written; raises nothing."""

    def told(self, error: OSError) -> str:
        """What an error of these says, in a line without secrets."""


class LandTable(Protocol):
    """A table that micro-batches of one topic are committed to.

    Every method raises StorageError: the place is not ours, is in use or cannot be read or written; it names the place.

    Attributes:
        name: of the format, as `--format` has it.
        where: the table's place, as it was named.
        state: a local directory beside it, for the lock and Spark's log; there once the lock is held.
    """

    name: str
    where: str
    state: Path

    def inspect(self) -> None:
        """Look whether a table can stand here; writes nothing."""

    def identity(self) -> Identity | None:
        """Whose table this is; None where none was begun."""

    def judge(self, topic: str, cluster_id: str, topic_id: str, settings: TableSettings) -> Identity:
        """What a table of this topic is or would be here; writes nothing. Raises StorageError: it does not fit."""

    def own(self) -> None:
        """Make the place ours, so that a later run knows it again however this one ends."""

    def lock(self) -> AbstractContextManager[None]:
        """Hold the table's place for one job, as far as it can be held."""

    def claim(self, identity: Identity) -> None:
        """Begin the table that `judge` found good, or take it up again. Needs the lock."""

    def begin(self, identity: Identity, schema: pa.Schema, partitions: Sequence[int]) -> dict[int, int] | None:
        """Make the table ready for rows of this schema.

        Args:
            partitions: those that the topic has.

        Returns:
            The offset that each partition of the topic goes on at, as far as the table has any of it; None where
            Spark's checkpoint knows.
        """

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """How rows of this schema stand in the files of the table that was begun: the same columns in order."""

    def left_out(self) -> tuple[str, ...]:
        """The partition columns of the table that was begun which are not in its files."""

    def partition_values(self) -> Mapping[Path, Mapping[str, str | None]]:
        """By each of `files`: the values of columns that it lacks."""

    def checkpoint_location(self) -> Path:
        """The directory of the query's checkpoint in this run."""

    def holds(self, batch: int) -> bool:
        """Whether the table has all of a micro-batch that Spark runs again, since it was ended before it noted that."""

    def clear(self, batch: int) -> int:
        """Remove what this micro-batch or a later one left behind, when a run was killed; how many files."""

    def destination(self, batch: int) -> Destination:
        """Where the tasks of a micro-batch write."""

    def commit(
        self, batch: int, written: Written, ends: Mapping[int, int], moved: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        """Make the files of a micro-batch part of the table.

        Args:
            ends: where the micro-batch ends in each partition of the topic.
            moved: told each file that appears for itself, where not all appear together.

        Returns:
            How many files the table has got, and their size in bytes.
        """

    def keep_up(self, upkeep: Upkeep) -> None:
        """What is done when a run has landed its rows."""

    def totals(self) -> Totals:
        """What the table holds."""

    def files(self) -> list[Path]:
        """The files of the table on this machine, in order; none where it is elsewhere."""

    def has_deletes(self) -> bool:
        """Whether rows that stand in `files` are no part of the table, since somebody has deleted them."""
