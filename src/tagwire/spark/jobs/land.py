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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError
from tagwire.spark.failure import reason
from tagwire.spark.jobs.land_settings import CORRUPT, MONTH, BatchSettings, TableSettings
from tagwire.spark.jobs.landed import Batch, LandListener, LandReport, Progress, counted, report_of, write_metrics
from tagwire.spark.jobs.table import Identity, Table
from tagwire.spark.session import check_spark, check_streams, session
from tagwire.spark.values.formats import resolved_options
from tagwire.spark.values.modes import PERMISSIVE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tagwire.client import Client

__all__ = ["BatchSettings", "LandListener", "TableSettings", "land"]

_TABLE = TableSettings()
_BATCHES = BatchSettings()
_LISTENER = LandListener()
_POLL_SECONDS = 0.2
_KEY_LISTS = 1000
_APIS = (18, 3, 2, 1)  # ApiVersions, Metadata, ListOffsets, Fetch


def land(
    bootstrap: str,
    topic: str,
    to: str | Path,
    *,
    table: TableSettings = _TABLE,
    batches: BatchSettings = _BATCHES,
    spark: SparkSession | None = None,
    properties: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    metrics: str | Path | None = None,
    listener: LandListener = _LISTENER,
) -> LandReport:
    """Land what `topic` holds now, and has not landed yet, in the table that `to` is.

        land("kafka-1:9092", "orders", "lake/orders", table=TableSettings(headers=["tenant"]))

    Args:
        bootstrap: brokers, `HOST:PORT,HOST:PORT`.
        to: a directory of this machine, which becomes the table.
        table: columns and directories of the table; a table that was begun needs none.
        batches: how large micro-batches and files become.
        spark: a classic session, whose settings stay as they are; None takes the one that runs, or starts one.
        properties: further ones of the client: security, `isolation.level`, ...
        checkpoint: directory of the query's checkpoint; `to/_checkpoint` unless said otherwise.
        metrics: a file that holds how far the run is, as Prometheus reads it; written anew after each micro-batch.
        listener: is told how the run goes on.

    Raises:
        ConfigError: an argument is wrong, or there is no Java or PySpark.
        SpecError, UnsupportedVersionError: `table.values` names no message.
        StorageError: `to` or `checkpoint` is not ours, does not fit or is in use, or the disk fails.
        ConnectError, KafkaError, CorruptRecordError: as the brokers respond.
        DecodeError: a value cannot be decoded, with mode FAILFAST.
        TagwireError: Spark failed; its reason in one line.
    """
    from tagwire.client import Client

    if not topic or "," in topic:
        raise ConfigError(f"topic {topic!r}: needs the name of one topic")
    table.check()
    batches.check()
    check_spark(spark)
    check_streams(spark)
    client_properties = {**(properties or {}), "bootstrap.servers": bootstrap}
    there = Table(to, checkpoint)
    there.inspect()
    mode = (table.values or {}).get("mode")
    if table.values is not None:
        table = replace(table, values=_decoding(table.values, there.identity()))
    with Client.from_properties(client_properties) as client:
        topic_id = client.topic(topic).topic_id
        wanted = (topic, client.metadata([topic]).cluster_id or "", str(topic_id) if topic_id.int else "", table)
        there.judge(*wanted)
        listener.on_step("checked")
        with there.lock():
            listener.on_step("locked")
            with session(there.state / "spark.log", spark) as own:
                identity = there.judge(*wanted)
                there.claim(identity)
                listener.on_step("claimed")
                if mode is not None:
                    identity = replace(identity, values={**identity.values, "mode": mode})
                own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(batches.file_bytes))
                # Else Spark makes as many files as there are cores, however small.
                own.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
                run = _Run(there, identity, batches, listener, None if metrics is None else Path(metrics))
                query = _query(own, client_properties, identity, there, batches.batch_offsets, run.write)
                progress = run.follow(query)
        versions = _versions(client)
    listener.on_step("landed")
    return report_of(there, identity, bootstrap, progress, versions)


class _Run:
    """One run of the query: writes its micro-batches and keeps count."""

    def __init__(
        self, table: Table, identity: Identity, batches: BatchSettings, listener: LandListener, metrics: Path | None
    ) -> None:
        self.table = table
        self.identity = identity
        self.batches = batches
        self.listener = listener
        self.metrics = metrics
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
        self.listener.on_step("cleared")
        staged = self.table.stage(number)
        seen = Observation()
        rows = table_columns(batch.observe(seen, _header_key_lists()), self.identity)
        # Rebalanced, a batch, or its part of a date, is in few files, however many tasks read it; in more when large.
        folder = self.identity.folder
        rows = rows.hint("rebalance", folder or "partition")
        rows = rows.sortWithinPartitions(*([folder] if folder else []), "partition", "offset")
        writer = rows.write.option("maxRecordsPerFile", self._most_rows())
        (writer.partitionBy(folder) if folder else writer).parquet(f"file://{staged}")
        self.listener.on_step("staged")
        done, partitions = counted(number, staged, self.identity.corrupt)
        files = self.table.publish(
            number, staged, has_rows=done.rows > 0, moved=lambda path: self.listener.on_step("moved")
        )
        if not done.rows:
            done = replace(done, files=len(files), bytes=sum(path.stat().st_size for path in files))
        self.listener.on_step("published")
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
        if self.batches.file_rows is not None:
            return self.batches.file_rows
        rows, size = self.progress.rows, self.progress.bytes
        if not rows and (files := self.table.files()):
            import pyarrow.parquet as pq

            rows, size = pq.read_metadata(files[-1]).num_rows, files[-1].stat().st_size
        return max(1, 2 * self.batches.file_bytes * rows // size) if rows else 0

    def follow(self, query: StreamingQuery) -> Progress:
        """Wait for the end of the query; its failure is raised as our own error."""
        self.listener.on_step("started")
        begun, ended = time.monotonic(), False
        try:
            while not ended:
                ended = query.awaitTermination(_POLL_SECONDS)
                self.progress.seconds = time.monotonic() - begun
                self._committed(query)
                self.listener.on_progress(self.progress)
        except Exception as error:
            raise reason(self.failure or error) from error
        finally:
            query.stop()
        self.progress.behind = self.progress.behind or 0
        for done in self.published.values():  # of which Spark did not tell
            self.listener.on_batch(replace(done, seconds=self.progress.seconds))
        self._measure(ended=True)
        self.listener.on_progress(self.progress)
        return self.progress

    def _committed(self, query: StreamingQuery) -> None:
        """Reports the micro-batches that are new in the query's recent progress."""
        last: Any = query.lastProgress
        recent: list[Any] = list(query.recentProgress) if last is not None and last.batchId in self.published else []
        for told in recent:
            done = self.published.pop(told.batchId, None)
            if done is None:
                continue
            self.progress.behind = _behind(told.sources[0])
            self.listener.on_batch(replace(done, behind=self.progress.behind, seconds=self.progress.seconds))
            self._measure(ended=False)
            self.listener.on_step("committed")

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


def _decoding(values: Mapping[str, str], begun: Identity | None) -> dict[str, str]:
    """How values are decoded; what is not said is as the table was begun with."""
    there = begun.values if begun is not None else {}
    if "value.format" not in values:
        return resolved_options({**there, **values})
    return resolved_options({"columnNameOfCorruptRecord": there.get("columnNameOfCorruptRecord", CORRUPT), **values})


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
