"""Landing in a session of Spark Connect, which has no JVM here: micro-batches that this process plans itself.

The server would run what writes a micro-batch of a streaming query far from the table's lock and counts. So there is no
streaming query: each micro-batch is a batch read of offsets that are planned here, as the source plans those of a
stream, and its files are written by the server's tasks and committed here. Nothing but the table's own marks says what
is landed, and no checkpoint is needed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tagwire.errors import Error, KafkaError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.spark.failure import reason
from tagwire.spark.jobs.land_run import LandRun
from tagwire.spark.jobs.landed import Follow, Progress
from tagwire.spark.jobs.landed_topic import LandedTopic
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.source.offsets import begun_late, rate_limited, to_document, went_back
from tagwire.spark.tables.table_format import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

log = logging.getLogger(__name__)


class ConnectRun(LandRun):
    """One run of such micro-batches."""

    _planned: Mapping[int, int] = {}

    def run(
        self, spark: SparkSession, properties: Mapping[str, str], topic: LandedTopic, follow: Follow | None
    ) -> Progress:
        begun = time.monotonic()
        # How many cores the server has is not said; each of these tasks is one.
        cores = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        options = self._options(properties, topic, cores)
        del options["subscribe"]  # partitions that are new belong to the next micro-batch
        records = spark.read.format("tagwire").options(**options)
        partitions = topic.partitions()
        marked = self._begin(records.option("assign", json.dumps({self.identity.topic: partitions})), partitions) or {}
        reached: Offsets = {TopicPartition(self.identity.topic, index): at for index, at in marked.items()}
        self.listener.on_step("started")
        latest = topic.offsets(LATEST)
        number = 0
        while True:
            looked = time.monotonic()
            if lost := went_back(reached, latest):
                _judge(lost, skip=topic.skip)
                reached = {at: min(offset, latest[at]) for at, offset in reached.items() if at in latest}
            earliest = topic.offsets(EARLIEST)
            if reached and (lost := begun_late(reached, latest, earliest)):
                _judge(lost, skip=topic.skip)
            start = {at: reached.get(at, earliest.get(at, 0)) for at in latest}
            end = rate_limited(start, latest, earliest, self.batches.batch_offsets)
            self.progress.seconds = self._before + time.monotonic() - begun
            if any(end[at] > start[at] for at in end):
                self._land(records, number, start, end)
                reached |= end
                number += 1
                self._tell(number - 1, sum(latest[at] - end[at] for at in end), begun)
            elif follow is None:
                break
            if follow is not None:
                if follow.stop.wait(max(0.0, looked + follow.seconds - time.monotonic())):
                    break
                latest = topic.offsets(LATEST)
        self.progress.behind = self.progress.behind or 0
        self._measure(ended=True)
        self.listener.on_progress(self.progress)
        return self.progress

    def _land(self, records: DataFrameReader, number: int, start: Offsets, end: Offsets) -> None:
        self._planned = {at.partition: offset for at, offset in end.items()}
        bounds = {
            "assign": json.dumps({self.identity.topic: sorted(self._planned)}),
            "startingOffsets": json.dumps(to_document(start)),
            "endingOffsets": json.dumps(to_document(end)),
        }
        try:
            self._write(records.options(**bounds).load(), number)
        except Exception as error:
            raise reason(error) from error

    def _ends(self, number: int, written: Written) -> dict[int, int]:
        return dict(self._planned)

    def _tell(self, number: int, behind: int, begun: float) -> None:
        self.progress.behind = behind
        self.progress.seconds = self._before + time.monotonic() - begun
        done = self.published.pop(number)
        self.listener.on_batch(replace(done, behind=behind, seconds=self.progress.seconds))
        self._measure(ended=False)
        self.listener.on_progress(self.progress)
        self.listener.on_step("committed")


def _judge(lost: list[str], *, skip: bool) -> None:
    """As a stream of the source does with what may have been missed."""
    said = "; ".join(lost)
    if not skip:
        raise KafkaError(
            Error.OFFSET_OUT_OF_RANGE, f"records may have been missed: {said} (failOnDataLoss=false goes on)"
        )
    log.warning("records may have been missed: %s", said)
