"""What a landing did: counts per partition and micro-batch while it runs, its report, and its metrics for a monitor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import StorageError
from tagwire.extras import Needs

if TYPE_CHECKING:
    from tagwire.spark.jobs.table import Identity, Table


@dataclass(frozen=True)
class Landed:
    """What a run landed of one partition."""

    rows: int
    first_offset: int
    last_offset: int

    def __add__(self, other: Landed) -> Landed:
        first, last = min(self.first_offset, other.first_offset), max(self.last_offset, other.last_offset)
        return Landed(self.rows + other.rows, first, last)


@dataclass(frozen=True)
class Batch:
    """One micro-batch of the table.

    Attributes:
        files, bytes: Parquet files that it became, and their size.
        malformed: rows whose value could not be decoded.
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


@dataclass(frozen=True, kw_only=True)
class LandListener:
    """Who is told how a run goes on, in the thread that runs it.

    Attributes:
        on_progress: how far the run is, several times a second.
        on_batch: each micro-batch that is done.
        on_step: each step as it is reached: checked, locked, claimed, started; for each micro-batch cleared, staged,
            moved (for each file), published, committed; landed.
    """

    on_progress: Callable[[Progress], None] = lambda progress: None
    on_batch: Callable[[Batch], None] = lambda batch: None
    on_step: Callable[[str], None] = lambda step: None


@dataclass(frozen=True)
class LandReport:
    """What a run did, and what the table holds now.

    Attributes:
        files, bytes: the files that this run added, and their size.
        malformed: rows of this run whose value could not be decoded, kept with their bytes in the corrupt column.
        behind: offsets that came to the topic while the run was at it, as far as Spark knows.
        header_keys: header keys seen by this run, and in how many records.
        versions: version negotiated with the brokers, per API.
        bootstrap, cluster_id: of the brokers; the id as they name themselves, "" when they do not.
        landed_at: when the run ended, UTC, as ISO 8601 has it.
        partition_by: none, month or date: what the files of the table are kept apart by.
    """

    topic: str
    bootstrap: str
    cluster_id: str
    landed_at: str
    out: Path
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

    def document(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        partitions = [{"partition": index, **vars(part)} for index, part in self.partitions.items()]
        return {**vars(self), "out": str(self.out), "headers": list(self.headers), "partitions": partitions}


def counted(number: int, staged: Path, corrupt: str | None) -> tuple[Batch, dict[int, Landed]]:
    """A staged micro-batch, and what it holds of each partition.

    Args:
        corrupt: the column with the bytes of values that could not be decoded; None where there is none.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    files = sorted(staged.rglob("*.parquet"))
    if not files:
        return Batch(number), {}
    columns = ["partition", "offset", *([corrupt] if corrupt else [])]
    rows = malformed = 0
    partitions: dict[int, Landed] = {}
    # A file at a time: a micro-batch may be larger than memory.
    for path in files:
        table = ds.dataset(str(path), format="parquet").to_table(columns=columns)
        rows += len(table)
        malformed += pc.count(table[corrupt]).as_py() if corrupt else 0
        found = table.group_by("partition").aggregate([("offset", "count"), ("offset", "min"), ("offset", "max")])
        for row in found.to_pylist():
            part = Landed(row["offset_count"], row["offset_min"], row["offset_max"])
            before = partitions.get(row["partition"])
            partitions[row["partition"]] = before + part if before else part
    size = sum(path.stat().st_size for path in files)
    return Batch(number, rows, len(files), size, malformed), partitions


def report_of(
    table: Table, identity: Identity, bootstrap: str, progress: Progress, versions: dict[str, int]
) -> LandReport:
    """The report of a run that ended well."""
    import pyarrow.parquet as pq

    files = table.files()
    return LandReport(
        topic=identity.topic,
        bootstrap=bootstrap,
        cluster_id=identity.cluster_id,
        landed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        out=table.out,
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
        table_rows=sum(pq.read_metadata(path).num_rows for path in files),
        table_files=len(files),
        table_bytes=sum(path.stat().st_size for path in files),
    )


_METRICS: Sequence[tuple[str, str]] = (
    ("rows", "Records landed by the run."),
    ("bytes", "Size of the Parquet files written by the run."),
    ("files", "Parquet files written by the run."),
    ("batches", "Micro-batches of the run."),
    ("malformed", "Records of the run whose value could not be decoded."),
    ("behind", "Offsets of the topic that are not landed yet."),
    ("seconds", "How long the run has taken."),
)


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
