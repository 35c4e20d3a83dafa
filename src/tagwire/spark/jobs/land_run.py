"""One query that lands a topic: its micro-batches written, committed and counted, until it ends or is to stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import TagwireError
from tagwire.partitions import EARLIEST
from tagwire.spark.columns import arrow_schema, nullable
from tagwire.spark.failure import reason
from tagwire.spark.jobs.land_rows import header_key_lists, table_columns
from tagwire.spark.jobs.landed import Batch, Follow, LandListener, Progress, write_metrics
from tagwire.spark.jobs.landed_topic import LandedTopic, refused
from tagwire.spark.tables.data_files import DESCRIPTION, FileWriter, collected
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.opening import ICEBERG
from tagwire.spark.tables.parquet_table import newest_batch
from tagwire.spark.tables.table_format import LandTable, Written
from tagwire.spark.tables.table_settings import CORRUPT_OPTIONS, BatchSettings
from tagwire.spark.values.modes import PERMISSIVE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery

_POLL_SECONDS = 0.2
_SMALLEST_TASK = 10_000  # offsets
_TASKS_PER_CORE = 2


class LandRun:
    """One run of the query: writes its micro-batches and keeps count."""

    def __init__(
        self,
        table: LandTable,
        identity: Identity,
        batches: BatchSettings,
        listener: LandListener,
        metrics: Path | None,
        progress: Progress,
        mode: str | None,
        registry: Mapping[str, str],
    ) -> None:
        self.table = table
        self.identity = identity
        self.batches = batches
        self.listener = listener
        self.metrics = metrics
        self.progress = progress
        self.mode = mode
        self.registry = registry
        self.schema: pa.Schema | None = None
        self.published: dict[int, Batch] = {}
        self.failure: BaseException | None = None
        self._before = progress.seconds
        self._topic: LandedTopic | None = None
        self._writing = threading.Lock()
        self._stopping = False

    def run(
        self, spark: SparkSession, properties: Mapping[str, str], topic: LandedTopic, follow: Follow | None
    ) -> Progress:
        """Land what there is; with `follow` go on until told to stop. Its failure is raised as our own error."""
        options = {
            **self._options(properties, topic, spark.sparkContext.defaultParallelism),
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(self.batches.batch_offsets),
        }
        records = spark.readStream.format("tagwire").options(**options)
        partitions = topic.partitions()
        offsets = self._begin(records, partitions)
        if offsets is None:
            # The checkpoint says where the query goes on; what is lost there is named as it is of other tables.
            self._kept(_landed_ends(self.table, self.identity.topic), partitions, topic)
        else:
            start = {index: offsets.get(index, EARLIEST) for index in partitions}
            records = records.option("startingOffsets", json.dumps({self.identity.topic: start}))
        return self._follow(_query(records, self.table, self.write, follow), follow)

    def _begin(self, records: DataStreamReader | DataFrameReader, partitions: list[int]) -> dict[int, int] | None:
        """Readies the table for what these are read as; where each partition goes on, as far as the table knows."""
        try:
            self.schema = nullable(arrow_schema(table_columns(records.load(), self.identity).schema))
        except Exception as error:
            raise reason(error) from error
        offsets = self.table.begin(self.identity, self.schema, partitions)
        self.schema = self.table.columns(self.schema)
        assert self._topic is not None
        return None if offsets is None else self._kept(offsets, partitions, self._topic)

    def _options(self, properties: Mapping[str, str], topic: LandedTopic, cores: int) -> dict[str, str]:
        """The options of every read of the topic."""
        self._topic = topic
        decoding = dict(self.identity.values)
        if self.mode is not None:
            decoding["mode"] = self.mode
        if decoding and decoding["mode"].upper() != PERMISSIVE:
            decoding = {name: text for name, text in decoding.items() if name not in CORRUPT_OPTIONS.values()}
        most = max(_SMALLEST_TASK, self.batches.batch_offsets // (_TASKS_PER_CORE * cores))
        return {
            **{f"kafka.{name}": value for name, value in properties.items()},
            **decoding,
            **self.registry,
            "subscribe": self.identity.topic,
            "includeHeaders": "true",
            "failOnDataLoss": str(not topic.skip).lower(),
            # A partition that has nearly all of the rows is read by all cores, too.
            "maxRecordsPerPartition": str(most),
        }

    def _kept(self, offsets: dict[int, int], partitions: list[int], topic: LandedTopic) -> dict[int, int]:
        """Where the table goes on. Raises StorageError: brokers no longer keep that, and it is not to be skipped.

        A partition that has come since the last run is to be landed from its first offset on, 0.
        """
        lost = topic.lost({**dict.fromkeys(partitions, 0), **offsets} if offsets else {})
        if lost and not topic.skip:
            raise refused(self.table.where, self.identity.topic, lost)
        for index, (at, first) in lost.items():
            self.listener.on_loss(index, at, first)
        return {**offsets, **{index: first for index, (_, first) in lost.items()}}

    def write(self, batch: DataFrame, number: int) -> None:
        """Write one micro-batch into the table; Spark calls it, perhaps again for the batch a killed run was in."""
        try:
            with self._writing:
                if self._stopping:
                    raise TagwireError("the job is to stop")
                self._write(batch, number)
        except BaseException as error:
            self.failure = error
            raise

    def _write(self, batch: DataFrame, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        if self.table.holds(number):
            self.table.clear(number + 1)
            return
        self.table.clear(number)
        self.listener.on_step("cleared")
        seen = Observation()
        rows = table_columns(batch.observe(seen, header_key_lists()), self.identity)
        # Rebalanced, a batch, or its part of a date, is in few files, however many tasks read it; in more when large.
        folders = self.identity.folders
        rows = rows.hint("rebalance", *(folders or ("partition",)))
        far_apart = self.table.name == ICEBERG
        far = ["year(timestamp) > 9999"] if far_apart else []
        rows = rows.sortWithinPartitions(*folders, *map(F.expr, far), "partition", "offset")
        # PySpark takes names of columns for expressions here: a header's may have dots or backticks.
        rows = rows.toDF(*(f"column_{number}" for number in range(len(rows.columns))))
        assert self.schema is not None
        writer = FileWriter(
            self.table.destination(number),
            self.schema,
            folders,
            self.table.left_out(),
            self.batches.file_bytes,
            self.batches.file_rows,
            tuple(self.identity.corrupt.values()),
            far_apart,
        )
        written = collected(rows.mapInArrow(writer.write, DESCRIPTION).collect())
        self.listener.on_step("staged")
        ends = self._ends(number, written)
        # After the rows were read: a topic that is the same now was the same then.
        assert self._topic is not None
        self._topic.refuse_another()
        files, size = self.table.commit(number, written, ends, lambda: self.listener.on_step("moved"))
        self.listener.on_step("published")
        if written.rows:  # Spark keeps no observations of a batch without rows
            for row in seen.get["lists"]:
                self.progress.see_headers(json.loads(row["item"] or "[]"), row["count"])
        done = Batch(number, written.rows, files, size, written.malformed)
        self.published[number] = done
        self.progress.add(done, written.partitions)

    def _ends(self, number: int, written: Written) -> dict[int, int]:
        """Where a micro-batch ends in each partition: as Spark has planned it, else behind its last records."""
        planned = _planned(self.table.checkpoint_location() / "offsets" / str(number), self.identity.topic)
        return planned or {index: part.last_offset + 1 for index, part in written.partitions.items()}

    def _follow(self, query: StreamingQuery, follow: Follow | None) -> Progress:
        """Wait for the end of the query, or end it when it is to stop."""
        self.listener.on_step("started")
        begun, ended = time.monotonic(), False
        try:
            while not ended:
                ended = query.awaitTermination(_POLL_SECONDS)
                self.progress.seconds = self._before + time.monotonic() - begun
                self._committed(query)
                self.listener.on_progress(self.progress)
                # A micro-batch that is being written becomes part of the table before the query stops.
                if not ended and follow is not None and follow.stop.is_set():
                    with self._writing:
                        self._stopping = ended = True
        except Exception as error:
            with suppress(Exception):  # what has failed may be the listener
                self._tell_rest()
            raise reason(self.failure or error) from error
        finally:
            query.stop()
        self.progress.behind = self.progress.behind or 0
        self._tell_rest()
        self._measure(ended=True)
        self.listener.on_progress(self.progress)
        return self.progress

    def _tell_rest(self) -> None:
        """Reports the micro-batches of which Spark did not tell: they are in the table all the same."""
        for number in sorted(self.published):
            self.listener.on_batch(replace(self.published.pop(number), seconds=self.progress.seconds))

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


def _query(
    records: DataStreamReader, table: LandTable, write: Callable[[DataFrame, int], None], follow: Follow | None
) -> StreamingQuery:
    try:
        return (
            records.load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", f"file://{table.checkpoint_location()}")
            .trigger(**_trigger(follow))
            .start()
        )
    except Exception as error:
        raise reason(error) from error


def _trigger(follow: Follow | None) -> dict[str, Any]:
    return (
        {"availableNow": True} if follow is None else {"processingTime": f"{round(follow.seconds * 1000)} milliseconds"}
    )


def _planned(path: Path, topic: str) -> dict[int, int]:
    """Where Spark has planned a micro-batch to end, by its checkpoint; nothing where that cannot be read from here.

    The file has a line for the version, one about the batch, and one for the source.
    """
    try:
        document = json.loads(path.read_text("utf-8").splitlines()[-1])
        return {int(index): offset for index, offset in document[topic].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _landed_ends(table: LandTable, topic: str) -> dict[int, int]:
    """Where the last micro-batch ends that the table has, as its checkpoint tells; nothing where that has none."""
    checkpoint = table.checkpoint_location()
    done, planned = newest_batch(checkpoint / "commits"), newest_batch(checkpoint / "offsets")
    last = next(filter(table.holds, range(planned, done, -1)), done)
    return {} if last < 0 else _planned(checkpoint / "offsets" / str(last), topic)


def _behind(source: Any) -> int | None:
    """Offsets between the end of a micro-batch and the end of the topic."""
    if not source.endOffset or not source.latestOffset or source.latestOffset == "null":
        return None
    end, latest = json.loads(source.endOffset), json.loads(source.latestOffset)
    return sum(
        offset - end.get(topic, {}).get(index, 0) for topic, parts in latest.items() for index, offset in parts.items()
    )
