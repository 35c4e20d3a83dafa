"""What a task does with its rows: Parquet files, each described by one row that goes back to the driver.

A row group is 64 MiB of Arrow data or a million rows; a file ends when it has the size that was asked for. A task that
is run again writes files of other names; only those that the driver is told of become part of a table.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tagwire.errors import StorageError, StorageUnavailableError
from tagwire.spark.failure import without_traceback
from tagwire.spark.tables.file_statistics import FileStatistics
from tagwire.spark.tables.local_files import sync
from tagwire.spark.tables.partition_runs import folder_of, runs
from tagwire.spark.tables.table_format import DataFile, Destination, Landed, Written

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIPTION: Final = (
    "path string, size bigint, rows bigint, partition_values string, statistics string, partitions string, "
    "malformed bigint"
)
"""The columns of the rows that `FileWriter.write` gives, one for each file."""

_GROUP_BYTES = 64 << 20
_GROUP_ROWS = 1 << 20
_LONGEST = 1000
"""Characters of a value that files are kept apart by: Parquet has no bounds of much longer ones."""
_YEAR_10000 = 253_402_300_800_000_000  # in microseconds


@dataclass(frozen=True)
class LocalDestination:
    """A directory of this machine, which every worker sees under the same path."""

    folder: Path
    statistics: bool
    values_in_paths: bool = False

    @property
    def place(self) -> str:
        return str(self.folder)

    def create(self, path: str) -> Any:
        import pyarrow as pa

        at = self.folder / path
        at.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(at), "wb")

    def close(self, path: str, file: Any) -> None:
        """Closes the file when it and its name are on the disk: a commit may rely on it then."""
        file.close()
        at = self.folder / path
        sync(at)
        for folder in at.relative_to(self.folder.parent).parents:
            with suppress(PermissionError):  # the one that the table is in may be another's
                sync(self.folder.parent / folder)

    def remove(self, path: str, file: Any) -> None:
        with suppress(OSError):  # the disk is full, still
            file.close()
        (self.folder / path).unlink(missing_ok=True)

    def told(self, error: OSError) -> str:
        return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]


@dataclass(frozen=True)
class FileWriter:
    """How the rows of a micro-batch become files. Pickled to the workers.

    Attributes:
        schema: of the table; rows come in it, with their partition columns, whatever these are called.
        folders: columns that files are kept apart by; rows come sorted by them.
        left_out: those of them that files lack.
        file_bytes: how large a file becomes, about.
        file_rows: rows in one file, at most; None is any number.
        corrupt: the columns with the bytes of what could not be decoded.
        far_apart: whether records with a time after the year 9999 get files of their own, which have no bounds of it,
            since what commits them cannot read such. Rows come sorted by that, behind `folders`.
    """

    to: Destination
    schema: pa.Schema
    folders: tuple[str, ...]
    left_out: tuple[str, ...]
    file_bytes: int
    file_rows: int | None
    corrupt: tuple[str, ...]
    far_apart: bool = False

    @without_traceback
    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of a task; gives one row for each file. Raises StorageError, StorageUnavailableError."""
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        stem = f"{context.partitionId() if context else 0:05d}-{uuid.uuid4().hex[:16]}"
        described = list(self._files(batches, stem))
        names = [part.partition(" ")[0] for part in DESCRIPTION.split(", ")]
        kinds = [pa.int64() if part.endswith("bigint") else pa.string() for part in DESCRIPTION.split(", ")]
        columns = zip(*described) if described else [()] * len(names)
        yield pa.record_batch([pa.array(list(column), kind) for column, kind in zip(columns, kinds)], names)

    def _files(self, batches: Iterable[pa.RecordBatch], stem: str) -> Iterator[tuple[Any, ...]]:
        current: _File | None = None
        number = 0
        try:
            for batch in batches:
                for values, far, rows in self._apart(self._fitted(batch)):
                    for piece in self._pieces(rows):
                        left = piece
                        while left.num_rows:
                            if current is not None and (current.full or (current.values, current.far) != (values, far)):
                                yield current.end()
                                current = None
                            if current is None:
                                name = f"part-{stem}-{number:04d}.parquet"
                                current, number = _File(self, self._folder(values) + name, values, far), number + 1
                            left = current.add(left)
            if current is not None:
                yield current.end()
                current = None
        finally:
            if current is not None:
                current.abandon()

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the table's schema: Spark says of some columns that they hold no null, and of none its name."""
        batch = batch.rename_columns(self.schema.names)
        return batch if batch.schema.equals(self.schema) else batch.cast(self.schema)

    def _folder(self, values: Mapping[str, str | None]) -> str:
        for name, value in values.items():
            if value is not None and len(value) > _LONGEST:
                raise StorageError(
                    f"{self.to.place}: column {name!r}: a value of {len(value):,} characters is too long for partitions"
                )
        return folder_of(values, exact=self.to.values_in_paths)

    def _apart(self, batch: pa.RecordBatch) -> Iterator[tuple[Mapping[str, str | None], bool, pa.RecordBatch]]:
        """The rows of each kind of file: values of partition columns, whether their times are far, and they."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for values, rows in runs(batch, self.folders):
            if not self.far_apart:
                yield values, False, rows
                continue
            far = pc.greater_equal(rows.column("timestamp").cast(pa.int64()), _YEAR_10000)
            start = 0
            found = pc.run_end_encode(far.fill_null(False))
            for end, value in zip(found.run_ends.to_pylist(), found.values.to_pylist()):
                yield values, value, rows.slice(start, end - start)
                start = end

    def _pieces(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows in pieces, none much larger than a file."""
        most = max(1, min(self.file_bytes, _GROUP_BYTES) * rows.num_rows // max(rows.nbytes, 1))
        for start in range(0, rows.num_rows, most):
            yield rows.slice(start, most)


class _File:
    """A file that is being written."""

    def __init__(self, writer: FileWriter, path: str, values: Mapping[str, str | None], far: bool) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.writer = writer
        self.path = path
        self.values = values
        self.far = far
        self.rows = 0
        self.malformed = 0
        self.partitions: dict[int, Landed] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        fields = [field for field in writer.schema if field.name not in writer.left_out]
        self._schema = pa.schema(fields, writer.schema.metadata)
        self._statistics = FileStatistics(self._schema) if writer.to.statistics else None
        self._footers: list[Any] = []
        try:
            self._file = writer.to.create(path)
        except OSError as error:
            raise self._refused(error) from None
        plain = [field.name for field in fields if not pa.types.is_nested(field.type) and field.name != "timestamp"]
        bounds = plain if far else True
        self._parquet = pq.ParquetWriter(
            self._file, self._schema, metadata_collector=self._footers, write_statistics=bounds
        )

    def add(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Takes as many rows as the file has room for; the rest."""
        room = rows.num_rows if self.writer.file_rows is None else self.writer.file_rows - self.rows
        taken, left = rows.slice(0, room), rows.slice(room)
        self._count(taken)
        taken = taken.select(self._schema.names)
        self._waiting.append(taken)
        self.rows += taken.num_rows
        self._waiting_rows += taken.num_rows
        self._waiting_bytes += taken.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= min(_GROUP_BYTES, self.writer.file_bytes):
            self._write_group()
        return left

    @property
    def full(self) -> bool:
        """Whether no more rows should come."""
        return self.rows == self.writer.file_rows or self._file.tell() >= self.writer.file_bytes

    def end(self) -> tuple[Any, ...]:
        """Closes the file; its description."""
        try:
            self._write_group()
            self._parquet.close()
            size = self._file.tell()
            self.writer.to.close(self.path, self._file)
        except OSError as error:
            self.abandon()
            raise self._refused(error) from None
        statistics = self._statistics.json(self._footers[0]) if self._statistics else ""
        partitions = {index: astuple(part) for index, part in self.partitions.items()}
        values = json.dumps(self.values)
        return self.path, size, self.rows, values, statistics, json.dumps(partitions), self.malformed

    def abandon(self) -> None:
        """Takes the file away."""
        self._parquet.is_open = False  # or it would be closed once more when it is collected, and say so
        self.writer.to.remove(self.path, self._file)

    def _write_group(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting, self._schema)
        try:
            self._parquet.write_table(table, row_group_size=table.num_rows)
        except OSError as error:
            self.abandon()
            raise self._refused(error) from None
        if self._statistics:
            self._statistics.see(table)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _refused(self, error: OSError) -> StorageError:
        """To be raised without its cause: a traceback would show the secrets that the line does not."""
        # A directory is named by the values of its rows: such a name stays too long, however often it is tried.
        kind = StorageError if error.errno == errno.ENAMETOOLONG else StorageUnavailableError
        return kind(f"{self.writer.to.place}/{self.path}: cannot be written: {self.writer.to.told(error)}")

    def _count(self, rows: pa.RecordBatch) -> None:
        import pyarrow as pa

        for name in self.writer.corrupt:
            self.malformed += rows.num_rows - rows.column(name).null_count
        places = pa.table({"partition": rows.column("partition"), "offset": rows.column("offset")})
        found = places.group_by("partition").aggregate([("offset", "count"), ("offset", "min"), ("offset", "max")])
        for row in found.to_pylist():
            part = Landed(row["offset_count"], row["offset_min"], row["offset_max"])
            before = self.partitions.get(row["partition"])
            self.partitions[row["partition"]] = before + part if before else part


def collected(rows: Iterable[Any]) -> Written:
    """What the rows that tasks gave back say together."""
    written = Written()
    for row in sorted(rows, key=lambda row: row["path"]):
        values = json.loads(row["partition_values"])
        written.files.append(DataFile(row["path"], row["size"], row["rows"], values, row["statistics"]))
        written.malformed += row["malformed"]
        for index, counts in json.loads(row["partitions"]).items():
            part, before = Landed(*counts), written.partitions.get(int(index))
            written.partitions[int(index)] = before + part if before else part
    return written
