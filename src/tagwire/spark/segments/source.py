"""The data source `tagwire-segments`: Kafka's log files as a table, with no broker running.

    spark.read.format("tagwire-segments").load("/var/lib/kafka/data")           # the records of every topic in there
    spark.read.format("tagwire-segments").option("view", "batches").load("/var/lib/kafka/data/flights-0")

Views: `records`, with the columns of the format `tagwire`; `batches`, a row for each record batch; and of Kafka's own
topics `offsets` (what groups have committed, and their lag), `groups`, `transactions` and `metadata`. A large segment
is read by many tasks. A schema given with `.schema(...)` names the columns that are read.

Which records are committed shows from `.txnindex` files and from markers: option `isolation`. Of a broker that runs,
the files are read as they are, the newest records perhaps not yet among them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError
from tagwire.partitions import TopicPartition
from tagwire.spark.columns import arrow_schema, chosen
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.filter_pushdown import PushedFilters, accept_filters
from tagwire.spark.gc_freeze import freezing_gc
from tagwire.spark.prefetch import prefetched
from tagwire.spark.refused_stream import RefusedStreamReader
from tagwire.spark.row_converter import RowConverter
from tagwire.spark.segments.file_splits import PartitionLog, file_splits, partition_logs, start_before
from tagwire.spark.segments.internal_state import SCHEMAS, rows_of
from tagwire.spark.segments.options import BATCHES, COMMITTED, RECORDS, SegmentOptions, parse_segment_options
from tagwire.spark.segments.read import BATCH_SCHEMA, RecordSelection, headers, read_batches, read_records
from tagwire.spark.segments.transactions import transactions_of

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_ROWS = 10_000
_NAMED = 5


@without_tracebacks
class SegmentsDataSource(DataSource):
    """Format `tagwire-segments`. A wrong option is a `ConfigError` at load."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.segment_options = parse_segment_options(options)

    @cached_property
    def planned_options(self) -> SegmentOptions:
        """The options with the columns of records fixed: Spark pickles them, and asks the copies for readers."""
        options = self.segment_options
        topic = options.topics[0] if len(options.topics) == 1 else None
        return replace(options, rows=options.rows.planned(topic))

    @classmethod
    def name(cls) -> str:
        return "tagwire-segments"

    def schema(self) -> StructType:
        view = self.segment_options.view
        if view == RECORDS:
            return self.planned_options.rows.schema()
        return BATCH_SCHEMA if view == BATCHES else SCHEMAS[view]

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self.segment_options
        if options.view == RECORDS:
            return RecordsReader(self.planned_options, schema)
        return BatchesReader(options, schema) if options.view == BATCHES else StateReader(options, schema)

    def streamReader(self, schema: StructType) -> RefusedStreamReader:  # noqa: N802
        said = f"format {self.name()}: has no stream; files are read as they are now, by spark.read"
        return RefusedStreamReader(ConfigError(said))


@without_tracebacks
class RecordsReader(DataSourceReader):
    """The view records: one task for each range of a segment."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self.options = options
        self.row_converter = RowConverter(schema, options.rows)
        self.pushed_filters = PushedFilters()
        accept_filters(self, options.filter_pushdown)

    def partitions(self) -> list[InputPartition]:
        """The tasks. Raises StorageError and ConfigError as `partition_logs` does."""
        tasks: list[InputPartition] = []
        pushed_filters = self.pushed_filters
        for log in _taken(self.options):
            topic, index = log.topic, log.partition
            if topic is not None and index is not None and not pushed_filters.selects(TopicPartition(topic, index)):
                continue
            committed = self.options.isolation == COMMITTED
            known = transactions_of(log, drop=self.options.drop) if committed else None
            ends = [None if known is None else known.stable_end, pushed_filters.end_offset]
            wanted = RecordSelection(
                self.row_converter.columns,
                start_offset=max(pushed_filters.start_offset, log.start_offset),
                end_offset=min((end for end in ends if end is not None), default=None),
                aborted=None if known is None else known.aborted,
                drop=self.options.drop,
                dialect=self.options.dialect,
                register=self.options.register,
            )
            log = log.within(wanted.start_offset, wanted.end_offset)
            splits = file_splits([log], self.options.split_bytes, self.options.dialect)
            tasks += [InputPartition((split, wanted)) for split in splits]
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task."""
        if partition is None or partition.value is None:  # what Spark makes of a plan without tasks
            return iter(())
        split, wanted = partition.value
        return freezing_gc(
            prefetched(self.row_converter.converted(read_records(split, wanted), f"{split.topic}-{split.partition}"))
        )


@without_tracebacks
class BatchesReader(DataSourceReader):
    """The view batches: one task for each range of a segment."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self.options = options
        self.arrow_schema = arrow_schema(chosen(schema, BATCH_SCHEMA))

    def partitions(self) -> list[InputPartition]:
        """The tasks. Raises StorageError and ConfigError as `partition_logs` does."""
        return [
            InputPartition(split)
            for split in file_splits(_taken(self.options), self.options.split_bytes, self.options.dialect)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one task."""
        if partition is None or partition.value is None:
            return iter(())
        return read_batches(partition.value, self.options.dialect, self.arrow_schema, drop=self.options.drop)


@without_tracebacks
class StateReader(DataSourceReader):
    """The views of Kafka's own topics: one task for each of their partitions, which hold different keys.

    Raises:
        StorageError, ConfigError: as `partition_logs` does, or the topic's files are not there.
    """

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self.options = options
        self.arrow_schema = arrow_schema(chosen(schema, SCHEMAS[options.view]))
        everything = partition_logs(options)
        self.taken = _of_view(options, everything)
        # Spark pickles the reader for its tasks before it asks for the partitions.
        self.logs = {(log.topic, log.partition): log for log in everything} if options.view == "offsets" else {}

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        return [InputPartition(log) for log in self.taken]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows from one partition."""
        import pyarrow as pa

        if partition is None or partition.value is None:
            return
        rows: list[dict[str, Any]] = []
        end_of = cache(self._end_of)  # many groups have committed offsets of one partition
        for row in rows_of(self.options.view, partition.value, end_of, drop=self.options.drop):
            rows.append(row)
            if len(rows) == _ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=self.arrow_schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=self.arrow_schema)

    def _end_of(self, topic: str, partition: int) -> int | None:
        log = self.logs.get((topic, partition))
        return None if log is None else _log_end(log, drop=self.options.drop)


def check_files(given: Mapping[str, str]) -> None:
    """Looks whether there is what a read would begin with, which is told long before Spark could tell it.

    Args:
        given: options of the format, `path` among them.

    Raises:
        StorageError, ConfigError: as when the read begins.
    """
    options = parse_segment_options(given)
    if options.view in SCHEMAS:
        _of_view(options, partition_logs(options))
    else:
        _taken(options)


def topics_in(given: Mapping[str, str]) -> list[str]:
    """The topics that a read has records of, as far as their files tell their names.

    Args:
        given: options of the format, `path` among them.

    Raises:
        StorageError, ConfigError: as when the read begins.
    """
    return sorted({log.topic for log in _taken(parse_segment_options(given)) if log.topic is not None})


def _of_view(options: SegmentOptions, logs: list[PartitionLog]) -> list[PartitionLog]:
    """The partitions of the topic that a view of Kafka's own topics is about. Raises ConfigError: there are none."""
    taken = [log for log in logs if options.takes(log.topic)]
    if not taken:
        raise ConfigError(f"view {options.view}: its topic is not among the files of {options.paths[0]}")
    return taken


def _taken(options: SegmentOptions) -> list[PartitionLog]:
    """The partitions to read. Raises as `partition_logs`, and ConfigError: a topic that is named is not there."""
    logs = partition_logs(options)
    there = {each.topic for each in logs if each.topic is not None}
    for name in options.topics:
        if name not in there:
            found = ", ".join(sorted(there)[:_NAMED]) or "none whose name shows"
            raise ConfigError(f"option subscribe: topic {name!r} is not among the files; there are {found}")
    taken = [each for each in logs if options.takes(each.topic)]
    if not taken:
        log.warning("tagwire: option subscribePattern=%r: no topic among the files has such a name", options.pattern)
    return taken


def _log_end(log: PartitionLog, *, drop: bool) -> int:
    """The offset after the last batch of a partition's files. Raises CorruptRecordError, StorageError."""
    file = log.files[-1]
    end = max(file.base_offset, log.start_offset)
    for header, _ in headers(file, start_before(log, file, file.size), file.size, drop=drop):
        end = max(header.next_offset, log.start_offset)
    return end
