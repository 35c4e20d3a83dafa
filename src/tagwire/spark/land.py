"""The main job: a topic becomes a Parquet table, each record once, however often the job is killed and run again.

A Structured Streaming query (AvailableNow) lands what the topic holds now and ends; the next run lands what is new.
Columns: key, value, partition, offset, timestamp, one per named header, and the date (UTC) of the timestamp, which is
the directory. A header's column is the value of its last occurrence in a record; null where the record has none, or a
null one. Header values are text; what is not UTF-8 stands as `0x` and its hexadecimal digits. Key and value are bytes,
or with `text` written like headers. `tagwire.spark.table` says why nothing is lost or repeated.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError
from tagwire.spark.failure import reason
from tagwire.spark.session import check_spark, session
from tagwire.spark.table import Identity, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tagwire.client import Client

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "date")
BATCH_OFFSETS = 1_000_000
_POLL_SECONDS = 0.2
_KEY_LISTS = 1000
_APIS = (18, 3, 2, 1)  # ApiVersions, Metadata, ListOffsets, Fetch


@dataclass(frozen=True)
class Landed:
    """What a run landed of one partition."""

    rows: int
    first_offset: int
    last_offset: int

    def __add__(self, other: Landed) -> Landed:
        first, last = min(self.first_offset, other.first_offset), max(self.last_offset, other.last_offset)
        return Landed(self.rows + other.rows, first, last)


@dataclass
class Progress:
    """How far a run is. `behind` is how many offsets are left, None until Spark has said it once."""

    batches: int = 0
    rows: int = 0
    behind: int | None = None
    seconds: float = 0.0
    partitions: dict[int, Landed] = field(default_factory=dict)
    header_keys: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """Records per second, from the start of the query on."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class LandReport:
    """What a run did, and what the table holds now.

    Attributes:
        header_keys: header keys seen by this run, and in how many records.
        versions: version negotiated with the brokers, per API.
    """

    topic: str
    out: Path
    headers: tuple[str, ...]
    rows: int
    batches: int
    seconds: float
    rate: float
    partitions: dict[int, Landed]
    header_keys: dict[str, int]
    versions: dict[str, int]
    table_rows: int
    table_files: int


def land(
    bootstrap: str,
    topic: str,
    to: str | Path,
    *,
    checkpoint: str | Path | None = None,
    headers: Sequence[str] | None = None,
    text: bool | None = None,
    batch_offsets: int = BATCH_OFFSETS,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_step: Callable[[str], None] = lambda step: None,
) -> LandReport:
    """Land what `topic` holds now, and has not landed yet, in the table under `to`.

    Args:
        bootstrap: brokers, `HOST:PORT,HOST:PORT`.
        checkpoint: directory of what the query remembers; `to/_checkpoint` unless said otherwise.
        headers: names of the headers that become columns; None is as the table has them, none for a new one.
        text: key and value become strings instead of bytes; None is as the table has them, bytes for a new one.
        batch_offsets: offsets in one micro-batch, at most about.
        on_progress: told how far the run is, several times a second.
        on_step: told each step as it is reached: checked, locked, claimed, started; for each micro-batch cleared,
            staged, moved (for each file), published, committed; landed.

    Raises:
        ConfigError: an argument is wrong, or there is no Java or PySpark.
        StorageError: `to` or `checkpoint` is not ours, does not fit or is in use, or the disk fails.
        ConnectError, KafkaError, CorruptRecordError: as the brokers answer.
        TagwireError: Spark failed; its reason in one line.
    """
    from tagwire.client import Client

    _check(topic, headers, batch_offsets)
    check_spark()
    table = Table(to, checkpoint)
    table.inspect()
    with Client(bootstrap) as client:
        client.topic(topic, client.deadline())
        asked = (topic, client.metadata([topic]).cluster_id or "", headers, text)
        table.judge(*asked)
        on_step("checked")
        with table.lock():
            on_step("locked")
            with session(table.state / "spark.log") as spark:
                identity = table.judge(*asked)
                table.claim(identity)
                on_step("claimed")
                run = _Run(table, identity, on_step)
                progress = run.follow(_query(spark, bootstrap, identity, table, batch_offsets, run.write), on_progress)
        versions = _versions(client)
    on_step("landed")
    return _report(table, identity, progress, versions)


class _Run:
    """One run of the query: writes its micro-batches and keeps count."""

    def __init__(self, table: Table, identity: Identity, on_step: Callable[[str], None]) -> None:
        self.table = table
        self.identity = identity
        self.on_step = on_step
        self.progress = Progress()
        self.failure: BaseException | None = None

    def write(self, batch: DataFrame, number: int) -> None:
        """Write one micro-batch into the table; Spark calls it, perhaps again for the batch a killed run was in."""
        try:
            self._write(batch, number)
        except BaseException as error:
            self.failure = error
            raise

    def _write(self, batch: DataFrame, number: int) -> None:
        from pyspark.sql import Observation

        self.table.clear(number)
        self.on_step("cleared")
        staged = self.table.stage(number)
        seen = Observation()
        rows = table_columns(batch.observe(seen, _header_key_lists()), self.identity.headers, text=self.identity.text)
        # Rebalanced, a date is in few files even when a batch spans a year, and in several when it is large.
        rows = rows.hint("rebalance", "date").sortWithinPartitions("date", "partition", "offset")
        rows.write.partitionBy("date").parquet(f"file://{staged}")
        self.on_step("staged")
        landed = _counted(staged)
        self.table.publish(number, staged, moved=lambda path: self.on_step("moved"))
        self.on_step("published")
        if landed:  # Spark keeps no observations of a batch without rows
            self._count(landed, seen.get["lists"])
        self.progress.batches += 1

    def _count(self, landed: dict[int, Landed], lists: list[Any]) -> None:
        progress = self.progress
        for partition, part in landed.items():
            before = progress.partitions.get(partition)
            progress.partitions[partition] = before + part if before else part
            progress.rows += part.rows
        for row in lists:
            for key in json.loads(row["item"] or "[]"):
                progress.header_keys[key] += row["count"]

    def follow(self, query: StreamingQuery, on_progress: Callable[[Progress], None]) -> Progress:
        """Wait for the end of the query; its failure is raised as our own error."""
        self.on_step("started")
        begun, committed, ended = time.monotonic(), -1, False
        try:
            while not ended:
                ended = query.awaitTermination(_POLL_SECONDS)
                last: Any = query.lastProgress
                if last is not None and last.batchId != committed:
                    committed = last.batchId
                    self.progress.behind = _behind(last.sources[0])
                    self.on_step("committed")
                self.progress.seconds = time.monotonic() - begun
                on_progress(self.progress)
        except Exception as error:
            raise reason(self.failure or error) from error
        finally:
            query.stop()
        self.progress.behind = 0
        on_progress(self.progress)
        return self.progress


def table_columns(records: DataFrame, headers: Sequence[str], *, text: bool) -> DataFrame:
    """The columns of the table from those of the source, which include the headers."""
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.functions import header

    plain = [(_text(F.col(name)) if text else F.col(name)).alias(name) for name in ("key", "value")]
    named = [_text(header("headers", name)).alias(name) for name in headers]
    return records.select(*plain, "partition", "offset", "timestamp", *named, F.to_date("timestamp").alias("date"))


def _text(value: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(F.try_validate_utf8(value.cast("string")), F.concat(F.lit("0x"), F.lower(F.hex(value))))


def _header_key_lists() -> Column:
    """How often each list of header keys occurs: exact up to 750 different lists, and bounded in memory beyond."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = "to_json(array_distinct(transform(headers, header -> header.key)))"
    return F.expr(f"approx_top_k({keys}, {_KEY_LISTS}, {_KEY_LISTS})").alias("lists")


def _check(topic: str, headers: Sequence[str] | None, batch_offsets: int) -> None:
    if batch_offsets < 1:
        raise ConfigError(f"batch_offsets={batch_offsets}: needs a whole number above 0")
    if not topic or "," in topic:
        raise ConfigError(f"topic {topic!r}: needs the name of one topic")
    taken = set(COLUMNS)
    for name in headers or ():
        if not name:
            raise ConfigError("headers: an empty name")
        if name.lower() in taken:
            raise ConfigError(
                f"headers: {name!r} would be a second column of that name (columns: {', '.join(COLUMNS)})"
            )
        taken.add(name.lower())


def _query(
    spark: SparkSession,
    bootstrap: str,
    identity: Identity,
    table: Table,
    batch_offsets: int,
    write: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": identity.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(batch_offsets),
        "includeHeaders": "true",
    }
    try:
        records = spark.readStream.format("tagwire").options(**options).load()
        return (
            records.writeStream.foreachBatch(write)
            .option("checkpointLocation", f"file://{table.checkpoint}")
            .trigger(availableNow=True)
            .start()
        )
    except Exception as error:
        raise reason(error) from error


def _counted(staged: Path) -> dict[int, Landed]:
    """Rows and offsets per partition of a staged batch."""
    import pyarrow.dataset as ds

    files = [str(path) for path in staged.glob("*/*.parquet")]
    if not files:
        return {}
    offsets = ds.dataset(files, format="parquet").to_table(columns=["partition", "offset"])
    counted = offsets.group_by("partition").aggregate([("offset", "count"), ("offset", "min"), ("offset", "max")])
    return {
        row["partition"]: Landed(row["offset_count"], row["offset_min"], row["offset_max"])
        for row in counted.to_pylist()
    }


def _behind(source: Any) -> int | None:
    """Offsets between the end of a micro-batch and the end of the topic."""
    if not source.endOffset or not source.latestOffset or source.latestOffset == "null":
        return None
    end, latest = json.loads(source.endOffset), json.loads(source.latestOffset)
    return sum(
        offset - end.get(topic, {}).get(index, 0) for topic, parts in latest.items() for index, offset in parts.items()
    )


def _versions(client: Client) -> dict[str, int]:
    """What the driver and the workers speak with the brokers, per API the job uses."""
    from tagwire.client.versions import OURS
    from tagwire.rpc import api_name, negotiate

    versions = negotiate(OURS, client.versions())
    return {api_name(api): versions[api] for api in _APIS}


def _report(table: Table, identity: Identity, progress: Progress, versions: dict[str, int]) -> LandReport:
    import pyarrow.parquet as pq

    files = table.files()
    return LandReport(
        topic=identity.topic,
        out=table.out,
        headers=identity.headers,
        rows=progress.rows,
        batches=progress.batches,
        seconds=progress.seconds,
        rate=progress.rate,
        partitions=dict(sorted(progress.partitions.items())),
        header_keys=dict(progress.header_keys.most_common()),
        versions=versions,
        table_rows=sum(pq.read_metadata(path).num_rows for path in files),
        table_files=len(files),
    )
