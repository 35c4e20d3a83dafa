"""What a landing did: counts per partition and micro-batch while it runs, its report, and its metrics for a monitor."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tagwire.errors import ConfigError, StorageError, TagwireError
from tagwire.extras import Needs
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.table_format import Landed, LandTable

_HEADER_KEYS = 1000
_SHORTEST, _LONGEST = 0.01, 86_400


@dataclass(frozen=True, kw_only=True)
class Follow:
    """Landing goes on until told to stop. Brokers, a schema registry or a store of tables that are away are tried
    again, after pauses that grow to a minute.

    Attributes:
        stop: set, it ends the run after the micro-batch that is being written.
        seconds: between the beginnings of micro-batches, at least: from a hundredth to a day.
    """

    stop: threading.Event
    seconds: float = 10.0

    def check(self) -> None:
        """Raises ConfigError: `seconds` is no time to wait, or none that Spark and threads take."""
        if not _SHORTEST <= self.seconds <= _LONGEST:  # NaN, too
            raise ConfigError(f"follow.seconds={self.seconds}: needs a number from {_SHORTEST} to {_LONGEST:,}")


@dataclass(frozen=True)
class Batch:
    """One micro-batch of the table.

    Attributes:
        files, bytes: Parquet files that it became, and their size.
        malformed: values and keys that could not be decoded.
        behind: how many offsets were left after it, None where Spark did not say.
        seconds: since the start of the query.
    """

    number: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    malformed: int = 0
    behind: int | None = None
    seconds: float = 0.0


@dataclass
class Progress:
    """How far a run is. `behind` is how many offsets are left, None until Spark has said it once."""

    batches: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    malformed: int = 0
    behind: int | None = None
    seconds: float = 0.0
    partitions: dict[int, Landed] = field(default_factory=dict)
    header_keys: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """Records per second, from the start of the query on."""
        return self.rows / self.seconds if self.seconds else 0.0

    def add(self, batch: Batch, partitions: dict[int, Landed]) -> None:
        """Counts a micro-batch."""
        self.batches += 1
        self.rows += batch.rows
        self.files += batch.files
        self.bytes += batch.bytes
        self.malformed += batch.malformed
        for partition, part in partitions.items():
            before = self.partitions.get(partition)
            self.partitions[partition] = before + part if before else part

    def see_headers(self, keys: Iterable[str], records: int) -> None:
        """Counts the header keys that so many records have; of very many different ones the rarest are forgotten."""
        for key in keys:
            self.header_keys[key] += records
        if len(self.header_keys) > 2 * _HEADER_KEYS:
            self.header_keys = Counter(dict(self.header_keys.most_common(_HEADER_KEYS)))


@dataclass(frozen=True, kw_only=True)
class LandListener:
    """Who is told how a run goes on, in the thread that runs it.

    Attributes:
        on_progress: how far the run is, several times a second.
        on_batch: each micro-batch that is done.
        on_step: each step as it is reached: checked, locked, claimed, started; for each micro-batch cleared, staged,
            moved (for each file), published, committed; landed.
        on_pause: brokers, a schema registry or the table's store are away, and how many seconds it is until they are
            tried again; with `follow` alone.
        on_loss: a partition, where the table was to go on in it, and where brokers' records begin: what is between is
            left out; with `on_data_loss="skip"` alone.
    """

    on_progress: Callable[[Progress], None] = lambda progress: None
    on_batch: Callable[[Batch], None] = lambda batch: None
    on_step: Callable[[str], None] = lambda step: None
    on_pause: Callable[[TagwireError, float], None] = lambda error, seconds: None
    on_loss: Callable[[int, int, int], None] = lambda partition, start, first: None


@dataclass(frozen=True)
class LandReport:
    """What a run did, and what the table holds now.

    Attributes:
        files, bytes: the files that this run added, and their size.
        malformed: values and keys of this run that could not be decoded, kept as bytes in columns of their own.
        behind: offsets that came to the topic while the run was at it, as far as Spark knows.
        header_keys: header keys seen by this run, and in how many records; the most frequent, of more than 1,000.
        versions: version negotiated with the brokers, per API.
        bootstrap, cluster_id: of the brokers; the id as they name themselves, "" when they do not.
        landed_at: when the run ended, UTC, as ISO 8601 has it.
        where: the table's directory, absolute, or its URL.
        format: of the table: delta, iceberg or parquet.
        partition_by: the columns that the files of the table are kept apart by, with commas; or none.
    """

    topic: str
    bootstrap: str
    cluster_id: str
    landed_at: str
    where: str
    format: str
    partition_by: str
    headers: tuple[str, ...]
    rows: int
    files: int
    bytes: int
    malformed: int
    batches: int
    behind: int
    seconds: float
    rate: float
    partitions: dict[int, Landed]
    header_keys: dict[str, int]
    versions: dict[str, int]
    table_rows: int
    table_files: int
    table_bytes: int

    @property
    def out(self) -> Path | None:
        """The table's directory; None where it is no directory of this machine."""
        return None if "://" in self.where else Path(self.where)

    def document(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        partitions = [{"partition": index, **vars(part)} for index, part in self.partitions.items()]
        told = {("out" if name == "where" else name): value for name, value in vars(self).items()}
        return {**told, "headers": list(self.headers), "partitions": partitions}


def report_of(
    table: LandTable, identity: Identity, bootstrap: str, progress: Progress, versions: dict[str, int]
) -> LandReport:
    """The report of a run that ended well."""
    totals = table.totals()
    return LandReport(
        topic=identity.topic,
        bootstrap=bootstrap,
        cluster_id=identity.cluster_id,
        landed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        where=table.where,
        format=table.name,
        partition_by=identity.partition_by,
        headers=identity.headers,
        rows=progress.rows,
        files=progress.files,
        bytes=progress.bytes,
        malformed=progress.malformed,
        batches=progress.batches,
        behind=progress.behind or 0,
        seconds=progress.seconds,
        rate=progress.rate,
        partitions=dict(sorted(progress.partitions.items())),
        header_keys=dict(progress.header_keys.most_common()),
        versions=versions,
        table_rows=totals.rows,
        table_files=totals.files,
        table_bytes=totals.size,
    )


_METRICS: Sequence[tuple[str, str]] = (
    ("rows", "Records landed by the run."),
    ("bytes", "Size of the Parquet files written by the run."),
    ("files", "Parquet files written by the run."),
    ("batches", "Micro-batches of the run."),
    ("malformed", "Values and keys of the run that could not be decoded."),
    ("behind", "Offsets of the topic that are not landed yet."),
    ("seconds", "How long the run has taken."),
)


def check_metrics(folder: Path) -> None:
    """Raises StorageError: metrics cannot be written into a directory, which is said before anything is landed."""
    if not folder.is_dir():
        raise StorageError(f"{folder}: metrics are written into a directory that is there, and this is none")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"{folder}: metrics cannot be written there: permission denied")


def write_metrics(path: Path, topic: str, progress: Progress, *, ended: bool) -> None:
    """Write how far a run is, as Prometheus reads it from a file, whole or not at all.

    Args:
        ended: whether the run has landed everything; the time of it is a metric of its own.

    Raises:
        StorageError: the file cannot be written. MissingExtraError: prometheus_client is not installed.
    """
    with Needs("spark"):
        from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    registry = CollectorRegistry()

    def tell(name: str, about: str, value: float) -> None:
        Gauge(f"tagwire_land_{name}", about, ("topic",), registry=registry).labels(topic).set(value)

    for name, about in _METRICS:
        value = getattr(progress, name)
        if value is not None:
            tell(name, about, value)
    if ended:
        tell("ended_timestamp_seconds", "When the run had landed everything.", time.time())
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
