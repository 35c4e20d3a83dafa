"""The streaming side of the data source `tagwire`: offsets per partition, limits, and what to do about lost records.

Offsets in the checkpoint have the shape that Spark's Kafka connector writes, so its checkpoints can be taken over.
Source: facts/spark_data_source.md sections 1.3 and 4.
"""

from __future__ import annotations

import logging
import math
import time

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.spark.bounds import Offsets
from tagwire.spark.offsets import (
    Document,
    from_document,
    outside,
    plan,
    split,
    take,
    to_document,
    went_back,
)
from tagwire.spark.options import TopicOptions, stream_start
from tagwire.spark.topic import SliceReader, TopicSlice

log = logging.getLogger(__name__)


class TopicStreamReader(SliceReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. One instance lives on the driver for the life of a query and keeps its connection."""

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.starting = stream_start(options)
        self.frozen: Offsets | None = None
        self.newest: Document | None = None
        self.planned: tuple[Document, Offsets, Offsets] | None = None
        self.triggered = -math.inf

    def initialOffset(self) -> Document:  # noqa: N802
        """Where a query without a checkpoint starts.

        Raises:
            ConfigError: startingOffsets does not fit the partitions, or the broker does not hold it (failOnDataLoss).
        """
        earliest, latest = self.cluster.held()
        start = self.cluster.resolved(self.starting, "startingOffsets", earliest, latest)
        start, lost = outside(start, "startingOffsets", earliest, latest)
        if lost and self.options.fail_on_data_loss:
            raise ConfigError(f"option {'; '.join(lost)} (failOnDataLoss=false starts at what there is)")
        return to_document(start)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """maxOffsetsPerTrigger, or no limit."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of a query that reads what is there now and then stops."""
        self.frozen = self._held()[1]

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:  # noqa: N802
        """Where the next micro-batch ends: `start` when there is nothing new, or not enough yet.

        Raises:
            KafkaError: a partition is gone or ends before `start` (failOnDataLoss).
        """
        begin = from_document(start)
        # Spark never commits the last batch of AvailableNow: what it starts from is done all the same.
        self.cluster.commit(begin)
        earliest, latest = self._held()
        self.newest = to_document(latest)
        until = latest
        if self.frozen is not None:
            self._judge(went_back(self.frozen, latest))
            until = {at: min(end, latest[at]) for at, end in self.frozen.items() if at in latest}
        self._judge(went_back(begin, until))
        if self._too_few(begin, earliest, until):
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = to_document(take(begin, until, earliest, most))
        self.planned = end, earliest, latest
        return end

    def reportLatestOffset(self) -> Document | None:  # noqa: N802
        """The end of every partition when last asked, for the lag in a query's progress."""
        return self.newest

    def partitions(self, start: Document, end: Document) -> list[InputPartition]:
        """The tasks of a micro-batch; none when `start` and `end` are equal.

        Raises:
            KafkaError: the broker no longer holds a range (failOnDataLoss).
        """
        begin, until = from_document(start), from_document(end)
        if begin == until:
            return []
        # What was asked for this end a moment ago is not asked again: a range that is lost meanwhile fails its task.
        planned, self.planned = self.planned, None
        held = planned[1:] if planned is not None and planned[0] == end else self._held()
        ranges, lost = plan(begin, until, *held)
        self._judge(lost)
        spans = split(ranges, self.options.min_partitions, self.options.max_records_per_partition)
        return [TopicSlice(span) for span in spans]

    def commit(self, end: Document) -> None:
        """What is done up to `end` shows in the group that `groupId` names."""
        self.cluster.commit(from_document(end))

    def stop(self) -> None:
        """Close the driver's connection."""
        self.cluster.close()

    def _held(self) -> tuple[Offsets, Offsets]:
        return self.cluster.held(missing_ok=not self.options.fail_on_data_loss)

    def _too_few(self, start: Offsets, earliest: Offsets, until: Offsets) -> bool:
        """Whether to wait for minOffsetsPerTrigger. The first micro-batch and AvailableNow do not wait."""
        least, now = self.options.min_offsets_per_trigger, time.monotonic()
        waited = now - self.triggered
        if least is not None and self.frozen is None and waited < self.options.max_trigger_delay:
            backlog = sum(max(0, end - start.get(at, earliest.get(at, 0))) for at, end in until.items())
            if backlog < least:
                return True
        self.triggered = now
        return False

    def _judge(self, lost: list[str]) -> None:
        if not lost:
            return
        if self.options.fail_on_data_loss:
            said = f"records may have been missed: {'; '.join(lost)} (failOnDataLoss=false goes on)"
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE, said)
        log.warning("records may have been missed: %s", "; ".join(lost))
