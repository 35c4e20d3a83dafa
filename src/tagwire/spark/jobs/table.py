"""A Parquet table on disk that grows by whole micro-batches, each exactly once, for every reader of Parquet.

    OUT/batch-00000012-0003.parquet                   the table
    OUT/date=2013-07-04/batch-00000012-0003.parquet   the same, of one that is partitioned by date
    OUT/_staging/...                                  a batch while it is written
    OUT/_tagwire/table.json                           whose table this is; `lock` beside it
    OUT/_tagwire/landed.json                          the last micro-batches that have put files into the table
    OUT/_checkpoint/                                  what the query remembers, unless it is elsewhere

The directory is the table: `spark.read.parquet(OUT)` gives its rows. Spark, Arrow and pandas pass over names that begin
with an underscore.

A file is named by its micro-batch. Spark runs a micro-batch again, under its number and with its offsets, until the
checkpoint says it is done; before it is written again whatever it, or a later one, left in the table is removed. So
the table holds each batch once, wherever the job was killed. A batch appears in the table when its files and Spark's
plan of it are on the disk, and before Spark is told: the table is never behind its checkpoint, nor unknown to it.

A table that lost its files while its checkpoint stayed is refused: the query would go on behind rows that are lost.
What is removed on purpose is not missed, as far as that differs from a loss: the directory of a date, or files beside
which there is one of somebody else's, such as a compacted one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tagwire.errors import StorageError
from tagwire.spark.jobs.land_settings import DATE, MONTH, NONE, TableSettings

_FORMAT = 2
_IN_A_FOLDER = 1
"""The format of tables that stood in OUT/table."""
_BATCH_FILE = re.compile(r"batch-(\d{8,19})-\d{4,}\.parquet")
_MARK = "_tagwire.json"
_MESSAGE = re.compile(r'"name"\s*:\s*"(\w+)"')
_SHOWN = 80
_FILES = ("*.parquet", f"{MONTH}=*/*.parquet", f"{DATE}=*/*.parquet")


@dataclass(frozen=True)
class Identity:
    """What a table was begun with. A later run has to agree with it.

    Attributes:
        id: unique; written into the table and into its checkpoint.
        cluster_id: of the brokers, as they name themselves; "" when they do not.
        headers: names of the headers that are columns.
        text: whether key and value are strings.
        values: options of the source that decode values; none where they are bytes or text. Their mode may change.
        partition_by: one of `PARTITIONINGS`.
        topic_id: of the topic (KIP-516); "" where the brokers do not tell.
    """

    id: str
    topic: str
    cluster_id: str
    headers: tuple[str, ...]
    text: bool
    values: dict[str, str] = field(default_factory=dict)
    partition_by: str = NONE
    topic_id: str = ""

    @property
    def folder(self) -> str | None:
        """The column that names the directories of the table; None where its files stand side by side."""
        return None if self.partition_by == NONE else self.partition_by

    @property
    def corrupt(self) -> str | None:
        """The column with the bytes of values that could not be decoded; None where values are not decoded."""
        return self.values.get("columnNameOfCorruptRecord")


class Table:
    """The table in `out`, with the checkpoint of the query that fills it.

    Raises:
        StorageError: from every method: the directory is not ours, is in use, or the disk fails; it names the path.
    """

    def __init__(self, out: str | Path, checkpoint: str | Path | None = None) -> None:
        if "://" in str(out) or "://" in str(checkpoint or ""):
            raise StorageError(f"{out}: the table and its checkpoint stand in local directories")
        self.out = Path(out).absolute()
        self.checkpoint = Path(checkpoint).absolute() if checkpoint else self.out / "_checkpoint"
        self.state = self.out / "_tagwire"
        self._staging = self.out / "_staging"
        self._run = uuid.uuid4().hex

    def inspect(self) -> None:
        """Look whether a table can stand here; writes nothing."""
        for path in (self.out, self.checkpoint):
            if path.exists() and not path.is_dir():
                raise StorageError(f"{path}: not a directory")
        if self.out.exists() and any(self.out.iterdir()) and not self.state.is_dir():
            raise StorageError(f"{self.out}: holds other files and no table of ours; choose another directory")
        if self.checkpoint.exists() and any(self.checkpoint.iterdir()) and not (self.checkpoint / _MARK).exists():
            raise StorageError(f"{self.checkpoint}: holds other files and no checkpoint of ours; choose another one")
        self.identity()

    def identity(self) -> Identity | None:
        """Whose table this is; None where none was begun."""
        found = _read_json(self.state / "table.json")
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

    def begin(self) -> None:
        """Make the directory ours, so that a later run knows it again however this one ends."""
        with _storage(self.state):
            self.state.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the directory for one job; the lock ends with the process, however it ends.

        It is the directory itself that is locked: the file, which says who holds it, can be deleted.
        """
        import fcntl

        self.begin()
        with ExitStack() as stack:
            with _storage(self.state):
                directory = os.open(self.state, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, directory)
                file = stack.enter_context((self.state / "lock").open("a+"))
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise StorageError(f"{self.out}: in use by process {file.read().strip() or '?'}") from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
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
        known = self.identity()
        if known is None:
            known = Identity(
                uuid.uuid4().hex,
                topic,
                cluster_id,
                tuple(settings.headers or ()),
                bool(settings.text),
                dict(settings.values or {}),
                settings.partition_by or NONE,
            )
        self._refuse_other_topic(known, topic, cluster_id, topic_id)
        self._refuse_other_columns(known, settings)
        self._refuse_other_values(known, settings.values)
        self._refuse_leftovers(known)
        return replace(known, topic_id=topic_id or known.topic_id)

    def claim(self, identity: Identity) -> None:
        """Begin the table that `judge` found good, or take it up again. Needs the lock."""
        with _storage(self.out):
            _write_json(self.state / "table.json", {"format": _FORMAT, **asdict(identity)})
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            _write_json(self.checkpoint / _MARK, {"format": _FORMAT, "id": identity.id})

    def files(self) -> list[Path]:
        """The files of the table, in order."""
        with _storage(self.out):
            return sorted(path for pattern in _FILES for path in self.out.glob(pattern))

    def clear(self, batch: int) -> int:
        """Remove what this batch or a later one left in the table and in staging; how many files of the table."""
        with _storage(self.out):
            left = [path for path in self.files() if _batch_of(path) >= batch]
            for path in left:
                path.unlink()
                with suppress(OSError):  # of others' files in it
                    path.parent.rmdir()
            shutil.rmtree(self._staging, ignore_errors=True)
        return len(left)

    def stage(self, batch: int) -> Path:
        """A directory, not there yet, to write a batch into. No other run writes there, not even a dying one."""
        with _storage(self._staging):
            (self._staging / self._run).mkdir(parents=True, exist_ok=True)
        return self._staging / self._run / f"batch-{batch}"

    def publish(
        self,
        batch: int,
        staged: Path,
        *,
        has_rows: bool = True,
        moved: Callable[[Path], None] = lambda path: None,
    ) -> list[Path]:
        """Move the files of a staged batch into the table.

        Args:
            staged: holds Parquet files, side by side or in directories such as `date=...`.
            has_rows: whether they do. An empty file, which Spark writes of a batch without rows, is moved only where
                the table has no other: it says which columns there are.
            moved: told each file as it appears in the table.
        """
        files: list[Path] = []
        with _storage(self.out):
            sources = sorted(staged.rglob("*.parquet"))
            if not has_rows:
                sources = [] if self.files() else sources[:1]
            plan = self.checkpoint / "offsets" / str(batch)
            for path in [*sources, plan, plan.parent]:
                _sync(path)
            for number, source in enumerate(sources):
                target = self.out / source.parent.relative_to(staged) / f"batch-{batch:08d}-{number:04d}.parquet"
                target.parent.mkdir(exist_ok=True)
                source.rename(target)
                files.append(target)
                moved(target)
            for directory in {path.parent for path in files} | {self.out}:
                _sync(directory)
            folders = {str(path.parent.relative_to(self.out)) for path in files if has_rows}
            self._note_landed(batch, sorted(folders))
            shutil.rmtree(self._staging / self._run, ignore_errors=True)
        return files

    def _refuse_other_topic(self, known: Identity, topic: str, cluster_id: str, topic_id: str) -> None:
        if known.topic != topic:
            raise StorageError(f"{self.out}: holds topic {known.topic!r}, not {topic!r}; choose another directory")
        if known.cluster_id and cluster_id and known.cluster_id != cluster_id:
            clusters = f"of cluster {known.cluster_id}, not of {cluster_id}"
            raise StorageError(f"{self.out}: holds {topic!r} {clusters}; choose another directory")
        if known.topic_id and topic_id and known.topic_id != topic_id:
            raise StorageError(
                f"{self.out}: holds a topic {topic!r} that was deleted and created again since (its id was "
                f"{known.topic_id}, and is {topic_id}): the offsets landed are of other records; choose another "
                "directory"
            )

    def _refuse_other_columns(self, known: Identity, settings: TableSettings) -> None:
        headers, text, partition_by = settings.headers, settings.text, settings.partition_by
        if headers is not None and tuple(headers) != known.headers:
            raise StorageError(
                f"{self.out}: was begun with headers {','.join(known.headers) or '(none)'}, "
                f"not {','.join(headers) or '(none)'}; its columns stay as they are"
            )
        if text is not None and text != known.text:
            raise StorageError(
                f"{self.out}: was begun with key and value as {'text' if known.text else 'bytes'}; its columns stay so"
            )
        if partition_by not in (None, known.partition_by):
            raise StorageError(
                f"{self.out}: was begun with partition_by={known.partition_by}, not {partition_by}; its "
                "files stay as they are"
            )

    def _refuse_other_values(self, known: Identity, values: Mapping[str, str] | None) -> None:
        if values is None:
            return
        if not known.values and values:
            raise StorageError(
                f"{self.out}: was begun with values as they are, not decoded by value.format={values['value.format']}; "
                "its columns stay so"
            )
        for name in sorted({**known.values, **values}, key=lambda name: name != "value.format"):
            begun, wanted = known.values.get(name), values.get(name)
            if name != "mode" and begun != wanted:
                given, now = _as_given(name, begun), _as_given(name, wanted)
                other = f"another {now}" if given == now else now
                raise StorageError(f"{self.out}: was begun with {name}={given}, not {other}; its columns stay so")

    def _refuse_leftovers(self, known: Identity) -> None:
        """Refuse a table and a checkpoint that do not belong together: rows would be lost or repeated."""
        mark = _read_json(self.checkpoint / _MARK)
        files = self.files()
        noted = self._noted_landed()
        landed = max([*map(_batch_of, files), *(noted if files else ())], default=-1)
        planned, done = _newest(self.checkpoint / "offsets"), _newest(self.checkpoint / "commits")
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

    @property
    def _landed(self) -> Path:
        return self.state / "landed.json"

    def _noted_landed(self) -> dict[int, list[str]]:
        """The last micro-batches that have put files into the table, and into which of its directories."""
        found = _read_json(self._landed) or {}
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
            _write_json(self._landed, {str(other): noted[other] for other in noted})


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{error.filename or path}: {error.strerror or error}") from error


def _as_given(option: str, value: str | None) -> str:
    """An option's value as people write it: a schema as columns and their types, a spec by its message's name."""
    if value is None:
        return "(none)"
    if option == "value.schema" and value.startswith("{"):
        from pyspark.sql.types import StructType

        fields = StructType.fromJson(json.loads(value)).fields
        value = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    elif option == "value.message" and (named := _MESSAGE.search(value)):
        value = f"spec of {named[1]}"
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "..."


def _batch_of(path: Path) -> int:
    """The micro-batch that wrote a file; -1 for a file somebody else put there, such as a compacted one."""
    named = _BATCH_FILE.fullmatch(path.name)
    return int(named[1]) if named else -1


def _newest(log: Path) -> int:
    """The newest batch number in one of Spark's checkpoint logs: files named 0, 1, 2, ...; -1 when there is none."""
    return max((int(path.name) for path in log.glob("[0-9]*") if path.name.isdecimal()), default=-1)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise StorageError(f"{path}: not ours")
    return found


def _write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a small file so that it is there whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    _sync(part)
    part.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
