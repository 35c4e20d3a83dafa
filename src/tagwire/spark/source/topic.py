"""The data source `tagwire`: topics as Spark tables, read and written, batch and streaming, in Arrow batches.

    spark.read.format("tagwire").option("kafka.bootstrap.servers", "h:9092").option("subscribe", "flights").load()
    table.write.format("tagwire").option("kafka.bootstrap.servers", "h:9092").option("topic", "t").mode("append").save()

Options and columns are those of Spark's Kafka connector. A schema given with `.schema(...)` names the columns that are
read; the others are not decoded. Reading needs PySpark 4.0, limits of streams 4.2, writing as a stream 4.1.
Source: pyspark.sql.datasource; Spark's KafkaSourceProvider.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError, TagwireError
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.filter_pushdown import PushedFilters, accept_filters
from tagwire.spark.sink.options import parse as parse_sink
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.source.offsets import OffsetRange, backwards, outside, plan
from tagwire.spark.source.options import TopicOptions, batch_bounds, parse
from tagwire.spark.source.partition_reader import PartitionReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader


@without_tracebacks
class TopicDataSource(DataSource):
    """Format `tagwire`. A wrong option is a `ConfigError` at load, a wrong column when the read is planned.

    Spark plans the write of a micro-batch with a data source that it makes for that, and commits or aborts it with a
    pickled copy of one: so only the writer of the former is prepared for tasks.
    """

    _is_copy = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_is_copy": True}

    @cached_property
    def topic_options(self) -> TopicOptions:
        """The options as those of a read, its columns fixed: Spark pickles them, and asks the copies for readers."""
        options = parse(self.options)
        return replace(options, rows=options.rows.planned(options.selection.only_topic))

    @classmethod
    def name(cls) -> str:
        return "tagwire"

    def schema(self) -> StructType:
        return self.topic_options.rows.schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicReader(self.topic_options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        kind = _stream_reader()
        try:
            return kind(self.topic_options, schema)
        except TagwireError as error:
            return kind.refused(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tagwire.spark.sink.writers import TopicWriter

        writer = TopicWriter(parse_sink(self.options), schema, overwrite)
        writer.prepare()
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        try:
            from tagwire.spark.sink.exactly_once import ExactlyOnceWriter
            from tagwire.spark.sink.stream_writers import StreamWriter
        except ImportError:
            raise ConfigError("format tagwire: writing as a stream needs PySpark 4.1 or newer") from None
        options = parse_sink(self.options)
        kind = ExactlyOnceWriter if options.exactly_once else StreamWriter
        writer = kind(options, schema)
        if not self._is_copy:
            writer.prepare()
        return writer


def _stream_reader() -> type[UnlimitedStreamReader]:
    try:
        from tagwire.spark.source.stream import TopicStreamReader
    except ImportError:  # PySpark before 4.2
        from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader

        return UnlimitedStreamReader
    return TopicStreamReader


@without_tracebacks
class TopicReader(PartitionReader, DataSourceReader):
    """A batch read: what the partitions hold between two bounds, fixed when the read is planned."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.starting, self.ending = batch_bounds(options)
        self.pushed_filters = PushedFilters()
        accept_filters(self, options.filter_pushdown)

    def partitions(self) -> list[InputPartition]:
        """The tasks of the read.

        Raises:
            ConfigError: the bounds do not fit the partitions, or the broker does not hold them (failOnDataLoss).
            KafkaError, ConnectError: as the brokers respond.
        """
        try:
            return self.tasks(self.offset_reader.planned(self._planned))
        finally:
            self.offset_reader.close()

    def _planned(self, earliest: Offsets, latest: Offsets) -> list[OffsetRange]:
        start = self.offset_reader.resolved(self.starting, "startingOffsets", earliest, latest)
        end = self.offset_reader.resolved(self.ending, "endingOffsets", earliest, latest)
        start, early = outside(start, "startingOffsets", earliest, latest)
        end, late = outside(end, "endingOffsets", earliest, latest)
        lost = early + late
        if lost and self.options.fail_on_data_loss:
            raise ConfigError(f"option {'; '.join(lost)} (failOnDataLoss=false reads what there is)")
        wrong = backwards(start, end)
        if wrong:
            raise ConfigError(f"option startingOffsets: {'; '.join(wrong)}")
        start, end = self.pushed_filters.restrict(start, end)
        earliest_time = self.pushed_filters.since
        # Brokers take negative times for something else: -1 is the end of a partition.
        if earliest_time is not None and earliest_time >= 0 and start:
            since = self.offset_reader.fetch_timestamp_offsets(dict.fromkeys(start, earliest_time))
            start = {at: min(end[at], max(start[at], since[at])) if since[at] >= 0 else end[at] for at in start}
        held = {at: latest[at] for at in end}
        return plan(start, end, earliest, held)[0]
