"""A Parquet table on disk that grows by whole micro-batches, each exactly once, for every reader of Parquet.

    OUT/batch-00000012-0003.parquet                   the table
    OUT/date=2013-07-04/batch-00000012-0003.parquet   the same, of one that is partitioned by day
    OUT/_staging/...                                  a batch while it is written
    OUT/_tagwire/table.json                           whose table this is; `lock` beside it
    OUT/_tagwire/moving.json                          the files of a micro-batch that are being moved into the table
    OUT/_tagwire/landed.json                          the last micro-batches that have put files into the table
    OUT/_checkpoint/                                  what the query remembers, unless it is elsewhere

The directory is the table: `spark.read.parquet(OUT)` gives its rows. Spark, Arrow and pandas pass over names that begin
with an underscore.

A file is named by its micro-batch. Spark runs a micro-batch again, under its number and with its offsets, until the
checkpoint says it is done. One of which files had begun to move is moved whole, and stays: the topic may have forgotten
its rows since. Before any other is written again whatever it, or a later one, left in the table is removed. So the
table holds each batch once, wherever the job was killed. A batch appears in the table when its files and Spark's
plan of it are on the disk, and before Spark is told: the table is never behind its checkpoint, nor unknown to it.

A table that lost its files while its checkpoint stayed is refused: the query would go on behind rows that are lost.
What is removed on purpose is not missed, as far as that differs from a loss: the directory of a date, or files beside
which there is one of somebody else's, such as a compacted one.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.errors import StorageError
from tagwire.spark.tables.data_files import LocalDestination
from tagwire.spark.tables.iceberg_catalog import FILE as CATALOG_FILE
from tagwire.spark.tables.identity import Identity, agreed
from tagwire.spark.tables.local_files import locked, part_of, read_json, storage, sync, write_json
from tagwire.spark.tables.partition_runs import values_of
from tagwire.spark.tables.table_format import Destination, Totals, Written
from tagwire.spark.tables.table_settings import TableSettings, Upkeep

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = 2
_IN_A_FOLDER = 1
"""The format of tables that stood in OUT/table."""
_BATCH_FILE = re.compile(r"batch-(\d{8,19})-\d{4,}\.parquet")
_MARK = "_tagwire.json"
_PASSED_OVER = ("_", ".")


class ParquetTable:
    """The table in `out`, with the checkpoint of the query that fills it.

    Raises:
        StorageError: from every method: the directory is not ours, is in use, or the disk fails; it names the path.
    """

    name = "parquet"

    def __init__(self, out: str | Path, checkpoint: str | Path | None = None) -> None:
        if "://" in str(out) or "://" in str(checkpoint or ""):
            raise StorageError(f"{out}: the table and its checkpoint stand in local directories")
        self.out = Path(out).absolute()
        self.where = str(self.out)
        self.checkpoint = Path(checkpoint).absolute() if checkpoint else self.out / "_checkpoint"
        self.state = self.out / "_tagwire"
        self._staging = self.out / "_staging"
        self._run = uuid.uuid4().hex
        self._schema: pa.Schema | None = None
        self._left_out: tuple[str, ...] = ()

    def inspect(self) -> None:
        """Look whether a table can stand here; writes nothing."""
        for path in (self.out, self.checkpoint):
            if path.exists() and not path.is_dir():
                raise StorageError(f"{path}: not a directory")
        if self.out.exists() and any(self.out.iterdir()) and not self.state.is_dir():
            raise StorageError(f"{self.out}: holds other files and no table of ours; choose another directory")
        # A run that was killed as it marked its checkpoint has left a part of the mark.
        held = {path.name for path in self.checkpoint.iterdir()} if self.checkpoint.exists() else set()
        if held - {part_of(self.checkpoint / _MARK).name} and _MARK not in held:
            raise StorageError(f"{self.checkpoint}: holds other files and no checkpoint of ours; choose another one")
        if (self.out / "_delta_log").is_dir():
            raise StorageError(
                f"{self.out}: holds a Delta table; go on with the format delta, or choose another directory"
            )
        if (self.out / CATALOG_FILE).is_file():
            raise StorageError(f"{self.out}: holds an Iceberg table; go on with the format iceberg")
        self.identity()

    def identity(self) -> Identity | None:
        """Whose table this is; None where none was begun."""
        found = read_json(self.state / "table.json")
        if found is None:
            return None
        try:
            written = found.pop("format")
            if written == _IN_A_FOLDER:
                raise StorageError(
                    f"{self.out}: was landed by an older tagwire, which kept the table in {self.out / 'table'}; land "
                    "into another directory"
                )
            if written != _FORMAT:
                raise StorageError(f"{self.state}/table.json: written by another version of tagwire")
            return Identity(**{**found, "headers": tuple(found["headers"])})
        except (KeyError, TypeError):
            raise StorageError(f"{self.state}/table.json: does not describe a table") from None

    def own(self) -> None:
        """Make the directory ours, so that a later run knows it again however this one ends."""
        with storage(self.state):
            self.state.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the directory for one job; the lock ends with the process, however it ends."""
        self.own()
        with locked(self.state, str(self.out)):
            yield

    def judge(self, topic: str, cluster_id: str, topic_id: str, settings: TableSettings) -> Identity:
        """What a table of this topic is or would be here; writes nothing.

        Args:
            cluster_id, topic_id: "" where the brokers do not tell.
            settings: what of them is None is as the table was begun.

        Raises:
            StorageError: the table is of another topic or cluster, or has other columns, or its checkpoint is not its
                own.
        """
        known = agreed(str(self.out), self.identity(), topic, cluster_id, topic_id, settings)
        self._refuse_leftovers(known)
        return known

    def claim(self, identity: Identity) -> None:
        """Begin the table that `judge` found good, or take it up again. Needs the lock."""
        with storage(self.out):
            write_json(self.state / "table.json", {"format": _FORMAT, **asdict(identity)})
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            write_json(self.checkpoint / _MARK, {"format": _FORMAT, "id": identity.id})

    def files(self) -> list[Path]:
        """The files of the table, in order."""
        with storage(self.out):
            return sorted(_files(self.out)) if self.out.is_dir() else []

    def has_deletes(self) -> bool:
        return False

    def clear(self, batch: int) -> int:
        """Remove what this batch or a later one left in the table and in staging; how many files of the table."""
        with storage(self.out):
            self._moving.unlink(missing_ok=True)
            noted = self._noted_landed()
            if max(noted, default=-1) >= batch:
                self._write_noted({other: folders for other, folders in noted.items() if other < batch})
            left = [path for path in self.files() if _batch_of(path) >= batch]
            for path in left:
                path.unlink()
                with suppress(OSError):  # of others' files in it
                    for folder in self._folders(path):
                        folder.rmdir()
            shutil.rmtree(self._staging, ignore_errors=True)
        return len(left)

    def holds(self, batch: int) -> bool:
        """Moves what is left of a micro-batch whose files were being moved when a run was killed. Needs the lock."""
        folders = self._noted_landed().get(batch)
        if folders is None:
            moves = self._left_to_move(batch)
            if moves is None:
                return False
            with storage(self.out):
                self._move(batch, moves)
            folders = self._noted_landed()[batch]
        its = {path.parent for path in self.files() if _batch_of(path) == batch}
        return its >= set(map(self.out.joinpath, folders))

    def begin(self, identity: Identity, schema: pa.Schema, partitions: Sequence[int]) -> None:
        """Keeps the schema, for a table that gets no rows; the checkpoint knows where the query goes on."""
        import pyarrow as pa

        self._schema = pa.schema([field for field in schema if field.name not in identity.folders])
        self._left_out = identity.folders

    def columns(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def left_out(self) -> tuple[str, ...]:
        return self._left_out

    def partition_values(self) -> Mapping[Path, Mapping[str, str | None]]:
        return {path: values_of(path.relative_to(self.out).parts[:-1]) for path in self.files()}

    def checkpoint_location(self) -> Path:
        return self.checkpoint

    def destination(self, batch: int) -> Destination:
        return LocalDestination(self.stage(batch), statistics=False, values_in_paths=True)

    def commit(
        self, batch: int, written: Written, ends: Mapping[int, int], moved: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        """Moves the files into the table. One that has none gets an empty one, which says what columns there are."""
        import pyarrow.parquet as pq

        staged, names = self.stage(batch), [file.path for file in written.files]
        if not names and not self.files():
            assert self._schema is not None
            with storage(staged):
                staged.mkdir(exist_ok=True)
                pq.write_table(self._schema.empty_table(), staged / "part-0.parquet")
            names = ["part-0.parquet"]
        files = self.publish(batch, staged, names, has_rows=bool(written.files), moved=lambda path: moved())
        return len(files), sum(path.stat().st_size for path in files)

    def keep_up(self, upkeep: Upkeep) -> None:
        """Nothing: there is no log that says which files are the table's."""

    def totals(self) -> Totals:
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = self.files()
        rows = size = 0
        for path in files:
            try:
                with storage(path):
                    rows += pq.read_metadata(path).num_rows
                    size += path.stat().st_size
            except pa.ArrowInvalid as error:  # somebody else's
                raise StorageError(f"{path}: no Parquet file: {str(error).splitlines()[0]}") from None
        return Totals(rows, len(files), size)

    def stage(self, batch: int) -> Path:
        """A directory, not there yet, to write a batch into. No other run writes there, not even a dying one."""
        with storage(self._staging):
            (self._staging / self._run).mkdir(parents=True, exist_ok=True)
        return self._staging / self._run / f"batch-{batch}"

    def publish(
        self,
        batch: int,
        staged: Path,
        names: Sequence[str],
        *,
        has_rows: bool = True,
        moved: Callable[[Path], None] = lambda path: None,
    ) -> list[Path]:
        """Move the files of a staged batch into the table.

        Args:
            staged: holds Parquet files, side by side or in directories such as `date=...`; perhaps also those of tasks
                that failed.
            names: of its files in it.
            has_rows: whether they do.
            moved: told each file as it appears in the table.
        """
        with storage(self.out):
            sources = sorted(map(staged.joinpath, names))
            plan = self._plan(batch)
            for path in [*sources, plan, plan.parent, self.checkpoint]:
                sync(path)
            for parent in {self.checkpoint.parent, self.out.parent}:
                with suppress(PermissionError):  # what the table is in may be another's
                    sync(parent)
            moves = {
                source: self.out / source.parent.relative_to(staged) / f"batch-{batch:08d}-{number:04d}.parquet"
                for number, source in enumerate(sources)
            }
            if has_rows:
                self._note_moving(batch, moves)
            self._move(batch, moves, has_rows=has_rows, moved=moved)
            shutil.rmtree(self._staging / self._run, ignore_errors=True)
        return list(moves.values())

    def _move(
        self,
        batch: int,
        moves: Mapping[Path, Path],
        *,
        has_rows: bool = True,
        moved: Callable[[Path], None] = lambda path: None,
    ) -> None:
        """Moves files, those of them that are not moved yet, and notes the micro-batch as landed."""
        for source, target in moves.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                source.rename(target)
            moved(target)
        for directory in {folder for path in moves.values() for folder in self._folders(path)} | {self.out}:
            sync(directory)
        folders = {str(path.parent.relative_to(self.out)) for path in moves.values() if has_rows}
        self._note_landed(batch, sorted(folders))
        self._moving.unlink(missing_ok=True)

    def _note_moving(self, batch: int, moves: Mapping[Path, Path]) -> None:
        """So that a run that finds some of them moved can move the others, as long as Spark has the same plan."""
        files = {str(source.relative_to(self.out)): str(moves[source].relative_to(self.out)) for source in moves}
        write_json(self._moving, {"batch": batch, "plan": self._plan(batch).read_text("utf-8"), "files": files})

    def _left_to_move(self, batch: int) -> dict[Path, Path] | None:
        """The moves of a micro-batch that had begun, and can be ended; None where there are none."""
        found = read_json(self._moving)
        if found is None:
            return None
        try:
            moves = {self.out / source: self.out / target for source, target in found["files"].items()}
            begun, plan = found["batch"], found["plan"]
        except (KeyError, TypeError, AttributeError):
            raise StorageError(f"{self._moving}: does not name files") from None
        try:
            is_same = begun == batch and plan == self._plan(batch).read_text("utf-8")
        except OSError:
            return None
        there = all(source.exists() or target.exists() for source, target in moves.items())
        return moves if is_same and there else None

    def _folders(self, path: Path) -> list[Path]:
        """The directories of the table that a file of it is in, the innermost first."""
        return [folder for folder in path.parents if folder.is_relative_to(self.out) and folder != self.out]

    def _refuse_leftovers(self, known: Identity) -> None:
        """Refuse a table and a checkpoint that do not belong together: rows would be lost or repeated."""
        mark = read_json(self.checkpoint / _MARK)
        files = self.files()
        noted = self._noted_landed()
        landed = max([*map(_batch_of, files), *(noted if files else ())], default=-1)
        planned, done = newest_batch(self.checkpoint / "offsets"), newest_batch(self.checkpoint / "commits")
        if mark is not None and mark.get("id") != known.id:
            raise StorageError(
                f"{self.checkpoint}: is the checkpoint of another table; name that table's directory, or, to land from "
                "the start, another checkpoint"
            )
        if mark is None and files:
            raise StorageError(
                f"{self.out}: holds rows, but its checkpoint is not in {self.checkpoint}; give the checkpoint it was "
                "landed with, or another directory"
            )
        if landed > planned:
            raise StorageError(
                f"{self.checkpoint}: is older than the table (batch {planned} against {landed}); restore the newer one"
            )
        # A batch that is not done is written again, whatever is left of it.
        last = max((batch for batch in noted if batch <= done), default=None)
        if last is not None and (lost := self._lost(last, noted[last], files)):
            raise StorageError(
                f"{self.out}: {lost}, but the checkpoint {self.checkpoint} goes on behind them; put them back, or "
                "remove the table and its checkpoint to land from the start; if they were removed on purpose, remove "
                f"{self._landed}"
            )

    def _lost(self, batch: int, folders: list[str], files: list[Path]) -> str | None:
        """What is missing of a micro-batch that is done; None where nothing is, or it was removed on purpose."""
        if not files:
            return "its files are gone"
        for folder in map(self.out.joinpath, folders):
            there = {_batch_of(path) for path in files if path.parent == folder}
            if folder.is_dir() and not there & {batch, -1}:
                return f"the files of batch {batch} are gone from {folder}"
        return None

    def _plan(self, batch: int) -> Path:
        """Spark's plan of a micro-batch: where it ends, and when that was decided."""
        return self.checkpoint / "offsets" / str(batch)

    @property
    def _moving(self) -> Path:
        return self.state / "moving.json"

    @property
    def _landed(self) -> Path:
        return self.state / "landed.json"

    def _noted_landed(self) -> dict[int, list[str]]:
        """The last micro-batches that have put files into the table, and into which of its directories."""
        found = read_json(self._landed) or {}
        try:
            return {int(batch): [str(folder) for folder in folders] for batch, folders in found.items()}
        except (TypeError, ValueError):
            raise StorageError(f"{self._landed}: does not name micro-batches") from None

    def _note_landed(self, batch: int, folders: list[str]) -> None:
        """Two are kept: the newer one may not be done, and then the one before it tells whether rows are missing."""
        before = self._noted_landed()
        newest = max((other for other in before if other < batch), default=None)
        noted = {} if newest is None else {newest: before[newest]}
        if folders:
            noted[batch] = folders
        if noted != before:
            self._write_noted(noted)

    def _write_noted(self, noted: Mapping[int, list[str]]) -> None:
        write_json(self._landed, {str(batch): folders for batch, folders in noted.items()})


def _files(folder: Path) -> Iterator[Path]:
    """The Parquet files in a directory, and in those of partitions in it; what readers of directories pass over is none
    of them, such as what somebody is writing under another name first."""
    for path in folder.iterdir():
        if path.name.startswith(_PASSED_OVER):
            continue
        if path.suffix == ".parquet":
            yield path
        elif "=" in path.name and path.is_dir():
            yield from _files(path)


def _batch_of(path: Path) -> int:
    """The micro-batch that wrote a file; -1 for a file somebody else put there, such as a compacted one."""
    named = _BATCH_FILE.fullmatch(path.name)
    return int(named[1]) if named else -1


def newest_batch(log: Path) -> int:
    """The newest batch number in one of Spark's checkpoint logs: files named 0, 1, 2, ...; -1 when there is none."""
    return max((int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal()), default=-1)
