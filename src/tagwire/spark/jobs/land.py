"""The main job: a topic becomes a Parquet table, each record once, however often the job is killed and run again.

A Structured Streaming query (AvailableNow) lands what the topic holds now and ends; the next run lands what is new.
Columns: key, value, partition, offset, timestamp and one per named header; with `partition_by`, the month or date (UTC)
of the timestamp, which is the directory. A header's column is the value of its last occurrence in a record; null where
the record has none, or a null one. Header values are text; what is not UTF-8 stands as `0x` and its hexadecimal digits.
Key and value are bytes, or with `text` written like headers. With `values` the value is a struct of typed columns, and
one more column holds the bytes of those that could not be decoded. `tagwire.spark.jobs.table` says why nothing is lost
or repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError
from tagwire.spark.failure import reason
from tagwire.spark.jobs.landed import Batch, LandReport, Progress, counted, report_of, write_metrics
from tagwire.spark.jobs.table import MONTH, NONE, PARTITIONINGS, Identity, Table
from tagwire.spark.session import check_spark, check_streams, session
from tagwire.spark.values.formats import PERMISSIVE, settled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tagwire.client import Client

COLUMNS = ("key", "value", "partition", "offset", "timestamp")
CORRUPT = "_corrupt_record"
BATCH_OFFSETS = 1_000_000
FILE_BYTES = 128 << 20
_POLL_SECONDS = 0.2
_KEY_LISTS = 1000
_APIS = (18, 3, 2, 1)  # ApiVersions, Metadata, ListOffsets, Fetch


def land(
    bootstrap: str,
    topic: str,
    to: str | Path,
    *,
    spark: SparkSession | None = None,
    properties: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    headers: Sequence[str] | None = None,
    text: bool | None = None,
    values: Mapping[str, str] | None = None,
    partition_by: str | None = None,
    batch_offsets: int = BATCH_OFFSETS,
    file_bytes: int = FILE_BYTES,
    file_rows: int | None = None,
    metrics: str | Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_batch: Callable[[Batch], None] = lambda batch: None,
    on_step: Callable[[str], None] = lambda step: None,
) -> LandReport:
    """Land what `topic` holds now, and has not landed yet, in the table that `to` is.

    Args:
        bootstrap: brokers, `HOST:PORT,HOST:PORT`.
        spark: a classic session, whose settings stay as they are; None takes the one that runs, or starts one.
        properties: further ones of the client: security, `isolation.level`, ...
        checkpoint: directory of what the query remembers; `to/_checkpoint` unless said otherwise.
        headers: names of the headers that become columns; None is as the table has them, none for a new one.
        text: key and value become strings instead of bytes; None is as the table has them, bytes for a new one.
        values: the options of the format `tagwire` that decode values: `value.format`, `value.schema`, ... None is as
            the table has them. `mode` may change from run to run; PERMISSIVE keeps the bytes of a value that cannot be
            decoded in a column `_corrupt_record`, or as `columnNameOfCorruptRecord` names it.
        partition_by: whether files are kept apart by the "month" or "date" (UTC) of the timestamp, each in a directory
            of its own. None is as the table has it, "none" for a new one: Parquet's statistics find a time as well, and
            a micro-batch writes at least one file for each month or date that it holds.
        batch_offsets: offsets in one micro-batch, at most about; each adds at least one file.
        file_bytes: how large a file becomes, about, where a micro-batch, or its part of a date, has so much, by the
            size of its rows before Parquet packs them. No file is larger than twice that, but in the first micro-batch
            of a table.
        file_rows: rows in one file, at most; None is as many as `file_bytes` makes.
        metrics: a file that holds how far the run is, as Prometheus reads it; written anew after each micro-batch.
        on_progress: told how far the run is, several times a second.
        on_batch: told each micro-batch that is done.
        on_step: told each step as it is reached: checked, locked, claimed, started; for each micro-batch cleared,
            staged, moved (for each file), published, committed; landed.

    Raises:
        ConfigError: an argument is wrong, or there is no Java or PySpark.
        SpecError, UnsupportedVersionError: `values` names no message.
        StorageError: `to` or `checkpoint` is not ours, does not fit or is in use, or the disk fails.
        ConnectError, KafkaError, CorruptRecordError: as the brokers answer.
        DecodeError: a value cannot be decoded, with mode FAILFAST.
        TagwireError: Spark failed; its reason in one line.
    """
    from tagwire.client import Client

    _check(
        topic, headers, values, partition_by, batch_offsets=batch_offsets, file_bytes=file_bytes, file_rows=file_rows
    )
    check_spark(spark)
    check_streams(spark)
    client_properties = {**(properties or {}), "bootstrap.servers": bootstrap}
    table = Table(to, checkpoint)
    table.inspect()
    decoding = None if values is None else _decoding(values, table.identity())
    with Client.from_properties(client_properties) as client:
        client.topic(topic)
        asked = (topic, client.metadata([topic]).cluster_id or "", headers, text, decoding, partition_by)
        table.judge(*asked)
        on_step("checked")
        with table.lock():
            on_step("locked")
            with session(table.state / "spark.log", spark) as own:
                identity = table.judge(*asked)
                table.claim(identity)
                on_step("claimed")
                if values is not None and "mode" in values:
                    identity = replace(identity, values={**identity.values, "mode": values["mode"]})
                own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(file_bytes))
                # Else Spark makes as many files as there are cores, however small.
                own.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
                run = _Run(table, identity, file_bytes, file_rows, on_batch, on_step)
                if metrics is not None:
                    run.metrics = Path(metrics)
                query = _query(own, client_properties, identity, table, batch_offsets, run.write)
                progress = run.follow(query, on_progress)
        versions = _versions(client)
    on_step("landed")
    return report_of(table, identity, bootstrap, progress, versions)


class _Run:
    """One run of the query: writes its micro-batches and keeps count."""

    def __init__(
        self,
        table: Table,
        identity: Identity,
        file_bytes: int,
        file_rows: int | None,
        on_batch: Callable[[Batch], None],
        on_step: Callable[[str], None],
    ) -> None:
        self.table = table
        self.identity = identity
        self.file_bytes = file_bytes
        self.file_rows = file_rows
        self.on_batch = on_batch
        self.on_step = on_step
        self.metrics: Path | None = None
        self.progress = Progress()
        self.published: dict[int, Batch] = {}
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
        rows = table_columns(batch.observe(seen, _header_key_lists()), self.identity)
        # Rebalanced, a batch, or its part of a date, is in few files, however many tasks read it; in more when large.
        folder = self.identity.folder
        rows = rows.hint("rebalance", folder or "partition")
        rows = rows.sortWithinPartitions(*([folder] if folder else []), "partition", "offset")
        writer = rows.write.option("maxRecordsPerFile", self._most_rows())
        (writer.partitionBy(folder) if folder else writer).parquet(f"file://{staged}")
        self.on_step("staged")
        done, partitions = counted(number, staged, self.identity.corrupt)
        self.table.publish(number, staged, moved=lambda path: self.on_step("moved"))
        self.on_step("published")
        if done.rows:  # Spark keeps no observations of a batch without rows
            for row in seen.get["lists"]:
                for key in json.loads(row["item"] or "[]"):
                    self.progress.header_keys[key] += row["count"]
        self.published[number] = done
        self.progress.add(done, partitions)

    def _most_rows(self) -> int:
        """The most rows of a file; 0 is any number.

        Spark splits what it rebalances between its tasks only: a task that read much of one date makes one large file
        of it. So a file ends at twice its size, as the rows so far have it.
        """
        if self.file_rows is not None:
            return self.file_rows
        rows, size = self.progress.rows, self.progress.bytes
        if not rows and (files := self.table.files()):
            import pyarrow.parquet as pq

            rows, size = pq.read_metadata(files[-1]).num_rows, files[-1].stat().st_size
        return max(1, 2 * self.file_bytes * rows // size) if rows else 0

    def follow(self, query: StreamingQuery, on_progress: Callable[[Progress], None]) -> Progress:
        """Wait for the end of the query; its failure is raised as our own error."""
        self.on_step("started")
        begun, ended = time.monotonic(), False
        try:
            while not ended:
                ended = query.awaitTermination(_POLL_SECONDS)
                self.progress.seconds = time.monotonic() - begun
                self._committed(query)
                on_progress(self.progress)
        except Exception as error:
            raise reason(self.failure or error) from error
        finally:
            query.stop()
        self.progress.behind = self.progress.behind or 0
        for done in self.published.values():  # of which Spark did not tell
            self.on_batch(replace(done, seconds=self.progress.seconds))
        self._measure(ended=True)
        on_progress(self.progress)
        return self.progress

    def _committed(self, query: StreamingQuery) -> None:
        """Tells of the micro-batches that Spark has told of since it was asked last."""
        last: Any = query.lastProgress
        recent: list[Any] = list(query.recentProgress) if last is not None and last.batchId in self.published else []
        for told in recent:
            done = self.published.pop(told.batchId, None)
            if done is None:
                continue
            self.progress.behind = _behind(told.sources[0])
            self.on_batch(replace(done, behind=self.progress.behind, seconds=self.progress.seconds))
            self._measure(ended=False)
            self.on_step("committed")

    def _measure(self, *, ended: bool) -> None:
        if self.metrics is not None:
            write_metrics(self.metrics, self.identity.topic, self.progress, ended=ended)


def table_columns(records: DataFrame, identity: Identity) -> DataFrame:
    """The columns of the table from those of the source, which include the headers."""
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.functions import header

    corrupt = identity.corrupt
    texts = (["key"] if corrupt else ["key", "value"]) if identity.text else []
    plain = [(_text(F.col(name)) if name in texts else F.col(name)).alias(name) for name in ("key", "value")]
    named = [_text(header("headers", name)).alias(name) for name in identity.headers]
    broken = []
    if corrupt:
        there = corrupt in records.columns  # the source has it with mode=PERMISSIVE alone
        broken = [F.col(f"`{corrupt}`") if there else F.lit(None).cast("binary").alias(corrupt)]
    folders = []
    if identity.folder is not None:
        date = F.to_date("timestamp")
        folders = [(F.trunc(date, "month") if identity.folder == MONTH else date).alias(identity.folder)]
    return records.select(*plain, "partition", "offset", "timestamp", *named, *broken, *folders)


def _text(value: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(F.try_validate_utf8(value.cast("string")), F.concat(F.lit("0x"), F.lower(F.hex(value))))


def _header_key_lists() -> Column:
    """How often each list of header keys occurs: exact up to 750 different lists, and bounded in memory beyond."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = "to_json(array_distinct(transform(headers, header -> header.key)))"
    return F.expr(f"approx_top_k({keys}, {_KEY_LISTS}, {_KEY_LISTS})").alias("lists")


def _check(
    topic: str,
    headers: Sequence[str] | None,
    values: Mapping[str, str] | None,
    partition_by: str | None,
    **counts: int | None,
) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{name}={count}: needs a whole number above 0")
    if not topic or "," in topic:
        raise ConfigError(f"topic {topic!r}: needs the name of one topic")
    corrupt = {} if values is None else {"columnNameOfCorruptRecord": values.get("columnNameOfCorruptRecord", CORRUPT)}
    if partition_by not in (None, *PARTITIONINGS):
        raise ConfigError(
            f"partition_by={partition_by!r}: needs {', '.join(PARTITIONINGS[:-1])} or {PARTITIONINGS[-1]}"
        )
    columns = (*COLUMNS, *([partition_by] if partition_by not in (None, NONE) else []))
    taken = set(columns)
    for what, names in (("headers", headers or ()), *((name, (column,)) for name, column in corrupt.items())):
        for name in names:
            if not name:
                raise ConfigError(f"{what}: an empty name")
            if name.lower() in taken:
                raise ConfigError(
                    f"{what}: {name!r} would be a second column of that name (columns: {', '.join(columns)})"
                )
            taken.add(name.lower())


def _decoding(values: Mapping[str, str], begun: Identity | None) -> dict[str, str]:
    """How values are decoded; what is not said is as the table was begun with."""
    there = begun.values if begun is not None else {}
    if "value.format" not in values:
        return settled({**there, **values})
    return settled({"columnNameOfCorruptRecord": there.get("columnNameOfCorruptRecord", CORRUPT), **values})


def _query(
    spark: SparkSession,
    properties: Mapping[str, str],
    identity: Identity,
    table: Table,
    batch_offsets: int,
    write: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    decoding = dict(identity.values)
    if decoding and decoding["mode"].upper() != PERMISSIVE:
        del decoding["columnNameOfCorruptRecord"]
    options = {
        **{f"kafka.{name}": value for name, value in properties.items()},
        **decoding,
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
