"""Streaming reads of the data source `tagwire` without limits, as every PySpark has them: offsets, and data loss.

The checkpoint holds the JSON that Spark's Kafka connector writes, so its checkpoints can be taken over.
`tagwire.spark.source.stream` adds read limits and Trigger.AvailableNow.
Source: pyspark.sql.datasource; Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.partitions import LATEST
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.refused_stream import RefusedStreamReader
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.source.offsets import Document, from_document, named, outside, plan, to_document, went_back
from tagwire.spark.source.options import TopicOptions, stream_start
from tagwire.spark.source.partition_reader import PartitionReader

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

_NAMED = 5


@without_tracebacks
class UnlimitedStreamReader(PartitionReader, DataSourceStreamReader):
    """A streaming read whose micro-batches take all that there is: PySpark before 4.2 has no read limits.

    One instance lives on the driver for the life of a query and keeps its connection.

    Raises:
        ConfigError: an option says how much a micro-batch takes.
    """

    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.starting = stream_start(options)
        self.planned: tuple[Document, Offsets, Offsets] | None = None
        self.initial: Document | None = None
        self.is_end_asked = False
        limits = {
            "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
            "minOffsetsPerTrigger": options.min_offsets_per_trigger,
        }
        for option, value in limits.items():
            if value is not None and not self.limited:
                raise ConfigError(f"option {option}: needs PySpark 4.2 or newer; older ones ask for all that there is")

    limited = False
    """Whether Spark hands over a start and a read limit when it asks for the latest offset."""

    refused = RefusedStreamReader
    """What stands in for a reader whose options are wrong."""

    def initialOffset(self) -> Document:  # noqa: N802
        """Where a query without a checkpoint starts. Spark asks twice, before it plans its first micro-batch and before
        it reads it: what retention takes in between is missed.

        Raises:
            ConfigError: startingOffsets does not fit the partitions, or the broker does not hold it (failOnDataLoss).
        """
        if self.initial is None:
            self.initial = self.offset_reader.planned(self._initial_offset)
        return self.initial

    def _initial_offset(self, earliest: Offsets, latest: Offsets) -> Document:
        start = self.offset_reader.resolved(self.starting, "startingOffsets", earliest, latest)
        start, lost = outside(start, "startingOffsets", earliest, latest)
        if lost and self.options.fail_on_data_loss:
            raise ConfigError(f"option {'; '.join(lost)} (failOnDataLoss=false starts at what there is)")
        if self.starting == LATEST:
            self._say_left_out(earliest, latest)
        return to_document(start)

    def latestOffset(self) -> Document:  # noqa: N802
        """Where the next micro-batch ends."""
        self.is_end_asked = True
        earliest, latest = self._available_offsets()
        end = to_document(latest)
        self.planned = end, earliest, latest
        return end

    def partitions(self, start: Document, end: Document) -> list[InputPartition]:
        """The tasks of a micro-batch; none when `start` and `end` are equal.

        Raises:
            KafkaError: the broker no longer holds a range (failOnDataLoss).
        """
        begin, until = from_document(start), from_document(end)
        is_begun_anew = start == self.initial and not self.is_end_asked
        if is_begun_anew:
            self._say_begun_behind(begin, until)
        if start == self.initial and not self.limited:  # of Trigger.AvailableNow, Spark asks for the end first
            begin = {at: min(offset, until[at]) for at, offset in begin.items() if at in until}
        if begin == until:
            return []
        # The offsets behind this end are not requested again: a range that is lost meanwhile fails its task.
        planned, self.planned = self.planned, None
        held = planned[1:] if planned is not None and planned[0] == end else self._available_offsets()
        if is_begun_anew and self.starting != LATEST:
            self._say_begun_anew(begin, until, held[0])
        ranges, lost = plan(begin, until, *held)
        self._judge(lost if self.limited else went_back(begin, until) + lost)
        return self.tasks(ranges)

    def commit(self, end: Document) -> None:
        """Commits `end` to the group of option `groupId`, if there is one."""
        self.offset_reader.commit(from_document(end))

    def stop(self) -> None:
        """Close the driver's connection."""
        self.offset_reader.close()

    def _say_left_out(self, earliest: Offsets, latest: Offsets) -> None:
        """Warns that a new query leaves out the records that are there: nothing else shows it."""
        left_out = sum(latest[at] - earliest[at] for at in latest)
        if not left_out:
            return
        topics = sorted({topic for topic, _ in latest})
        log.warning(
            "tagwire: the stream starts at the end of %s: what is there, %s, is left out (startingOffsets is latest%s; "
            "earliest reads it)",
            ", ".join(topics[:_NAMED]) + (f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else ""),
            "1 offset" if left_out == 1 else f"{left_out:,} offsets",
            " unless it is set" if self.options.starting is None else "",
        )

    def _say_begun_anew(self, begin: Offsets, until: Offsets, earliest: Offsets) -> None:
        """Warns that a query which was ended in its first micro-batch may miss records: Spark has kept the end of that,
        and asks for its start anew. What is no longer there cannot be told from what never was."""
        late = [at for at in sorted(begin.keys() & until.keys()) if 0 < begin[at] <= earliest.get(at, 0)]
        if late:
            log.warning(
                "tagwire: the query was ended in its first micro-batch, and begins anew at the first offsets that "
                "there are now (%s): what was deleted since it began is not read, and nothing is kept to tell it by",
                named(late),
            )

    def _say_begun_behind(self, begin: Offsets, until: Offsets) -> None:
        """Warns where such a query begins anew behind the end of that micro-batch, as one does that starts at the
        latest offsets: what it was to read is left out."""
        behind = [at for at in sorted(begin.keys() & until.keys()) if begin[at] > until[at]]
        if behind:
            log.warning(
                "tagwire: the query was ended in its first micro-batch, and begins anew behind it (%s): what came "
                "between its start and that micro-batch's end is not read, and nothing is kept to tell it by",
                named(behind),
            )

    def _available_offsets(self) -> tuple[Offsets, Offsets]:
        found = self.offset_reader.available_offsets(missing_ok=not self.options.fail_on_data_loss)
        self._judge(self.offset_reader.made_anew)
        self.offset_reader.made_anew.clear()
        return found

    def _judge(self, lost: list[str]) -> None:
        if not lost:
            return
        if self.options.fail_on_data_loss:
            said = f"records may have been missed: {'; '.join(lost)} (failOnDataLoss=false goes on)"
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE, said)
        log.warning("records may have been missed: %s", "; ".join(lost))
