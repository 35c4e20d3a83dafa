"""The part of a read that runs in Spark's workers: a task reads one range of offsets of one topic partition.

Source: Spark's KafkaBatchInputPartition, KafkaBatchPartitionReader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from tagwire.spark.failure import without_tracebacks
from tagwire.spark.gc_freeze import freezing_gc
from tagwire.spark.prefetch import prefetched
from tagwire.spark.row_converter import RowConverter
from tagwire.spark.source.fetch import read_range
from tagwire.spark.source.offset_reader import OffsetReader
from tagwire.spark.source.offsets import OffsetRange
from tagwire.spark.source.options import TopicOptions

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL = 10_000  # offsets


class OffsetRangePartition(InputPartition):
    """One task: a range of offsets of one partition."""

    def __init__(self, offset_range: OffsetRange) -> None:
        super().__init__(tuple(offset_range))


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
        offset_range = OffsetRange(*partition.value)
        records = read_range(
            offset_range,
            self.options.client,
            self.row_converter.columns,
            fail_on_data_loss=self.options.fail_on_data_loss,
            dialect=self.options.dialect,
            register=self.options.register,
        )
        rows = self.row_converter.converted(records, f"{offset_range.topic}-{offset_range.partition}")
        # What fits into a batch or two is read sooner than a thread starts.
        return freezing_gc(prefetched(rows) if offset_range.size > _SMALL else rows)
