"""The part of a read that runs in Spark's workers: a task reads a range of offsets of a topic partition, or several.

Source: Spark's KafkaBatchInputPartition, KafkaBatchPartitionReader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from tagwire.spark.failure import without_tracebacks
from tagwire.spark.gc_freeze import freezing_gc
from tagwire.spark.prefetch import prefetched
from tagwire.spark.row_converter import RowConverter
from tagwire.spark.source.fetch import read_range, refuse_made_anew
from tagwire.spark.source.offset_reader import OffsetReader
from tagwire.spark.source.offsets import OffsetRange, coalesced, split
from tagwire.spark.source.options import TopicOptions

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL = 10_000  # offsets


class OffsetRangesPartition(InputPartition):
    """One task: ranges of offsets, each of one partition, which are read one after the other."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        super().__init__(tuple(map(tuple, ranges)))


@without_tracebacks
class PartitionReader:
    """The part of a read that runs in the workers."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        self.options = options
        self.row_converter = RowConverter(schema, options.rows)
        self.offset_reader = OffsetReader(options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task as Arrow batches of exactly the schema of the read."""
        if partition is None or partition.value is None:  # what Spark makes of a plan without tasks
            return iter(())
        ranges = [OffsetRange(*each) for each in partition.value]
        rows = self._rows(ranges)
        # What fits into a batch or two is read sooner than a thread starts.
        return freezing_gc(prefetched(rows) if sum(each.size for each in ranges) > _SMALL else rows)

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
        """The ranges as tasks, once they are cut as the options say."""
        options, ids = self.options, self.offset_reader.topic_ids
        ranges = [each._replace(topic_id=ids.get(each.topic)) for each in ranges]
        pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
        if not options.coalesce_partitions:
            return [OffsetRangesPartition([piece]) for piece in pieces]
        return [
            OffsetRangesPartition(together)
            for together in coalesced(pieces, options.min_partitions, options.max_records_per_partition)
        ]

    def _rows(self, ranges: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        for offset_range in ranges:
            yield from self._rows_of(offset_range)
        ids = {each.topic: each.topic_id for each in ranges if each.topic_id is not None}
        refuse_made_anew(ids, self.options.client, fail_on_data_loss=self.options.fail_on_data_loss)

    def _rows_of(self, offset_range: OffsetRange) -> Iterator[pa.RecordBatch]:
        records = read_range(
            offset_range,
            self.options.client,
            self.row_converter.columns,
            fail_on_data_loss=self.options.fail_on_data_loss,
            dialect=self.options.dialect,
            register=self.options.register,
        )
        return self.row_converter.converted(records, f"{offset_range.topic}-{offset_range.partition}")
