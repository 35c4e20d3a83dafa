"""Streaming reads of the data source `tagwire` with read limits and Trigger.AvailableNow. Needs PySpark 4.2.

Source: pyspark.sql.streaming.datasource; Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import math
import time

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tagwire.spark.failure import without_tracebacks
from tagwire.spark.refused_stream import RefusedStreamReader
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.source.offsets import Document, from_document, rate_limited, to_document, went_back
from tagwire.spark.source.options import TopicOptions
from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader


@without_tracebacks
class RefusedTopicStreamReader(RefusedStreamReader, SupportsTriggerAvailableNow):
    """The same for Trigger.AvailableNow, where Spark asks for a stream's end first."""

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raises the error."""
        raise self.error


@without_tracebacks
class TopicStreamReader(UnlimitedStreamReader, SupportsTriggerAvailableNow):
    """A streaming read with read limits."""

    limited = True
    refused = RefusedTopicStreamReader

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.frozen: Offsets | None = None
        self.newest: Document | None = None
        self.triggered = -math.inf

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """maxOffsetsPerTrigger, or no limit."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of a query with Trigger.AvailableNow."""
        self.frozen = self._available_offsets()[1]

    def initialOffset(self) -> Document:  # type: ignore[override]  # noqa: N802
        """As without limits. A query with Trigger.AvailableNow does not end before it starts: Spark fixes the end
        first, and records come meanwhile."""
        start = super().initialOffset()
        if self.frozen is not None:
            self.frozen |= {at: max(offset, self.frozen.get(at, offset)) for at, offset in from_document(start).items()}
        return start

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:  # type: ignore[override]  # noqa: N802
        """Where the next micro-batch ends: `start` when there is nothing new, or not enough yet.

        Raises:
            KafkaError: a partition is gone or ends before `start` (failOnDataLoss).
        """
        self.is_end_asked = True
        begin = from_document(start)
        # Spark never commits the last batch of AvailableNow: what it starts from is done all the same.
        self.offset_reader.commit(begin)
        earliest, latest = self._available_offsets()
        self.newest = to_document(latest)
        until = latest
        if self.frozen is not None:
            self._judge(went_back(self.frozen, latest))
            until = {at: min(end, latest[at]) for at, end in self.frozen.items() if at in latest}
        self._judge(went_back(begin, until))
        if self._too_few(begin, earliest, until):
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = to_document(rate_limited(begin, until, earliest, most))
        self.planned = end, earliest, latest
        return end

    def reportLatestOffset(self) -> Document | None:  # noqa: N802
        """The latest offset of every partition when last requested, for the lag in a query's progress."""
        return self.newest

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
