"""At-least-once writes: the rows of a task are acknowledged before the task ends.

The producer is idempotent, so its retries write nothing twice. A task that Spark runs again uses another producer: its
rows are written again. A stream with `exactlyOnce` writes them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.gc_freeze import freeze_gc
from tagwire.spark.sink.client_cache import cached_producer
from tagwire.spark.sink.options import SinkOptions
from tagwire.spark.sink.record_projection import RecordProjection

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Producer


@dataclass
class Sent(WriterCommitMessage):
    """What a task has written."""

    rows: int


def send(projection: RecordProjection, batches: Iterator[pa.RecordBatch], producer: Producer) -> int:
    """Sends the rows of a task and waits for their acknowledgement; how many there were."""
    count = 0
    for batch in batches:
        for topic, own in projection.by_topic(batch):
            producer.send_arrow(topic, own)
        count += batch.num_rows
    producer.flush()
    return count


@without_tracebacks
class AtLeastOnceWriter:
    """The part of a write that runs in the workers."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._client = options.client
        self._projection = RecordProjection(schema, options.topic, options.encoded)

    def prepare(self) -> None:
        """The driver's step before its tasks: see `RecordProjection.plan`. Only copies made after it can write."""
        self._projection.plan()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the rows of one task."""
        with cached_producer(self._client) as producer:
            sent = Sent(send(self._projection, iterator, producer))
        freeze_gc()
        return sent


@without_tracebacks
class TopicWriter(AtLeastOnceWriter, DataSourceArrowWriter):
    """A batch write. What failed tasks have written stays."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("mode overwrite: a topic cannot be overwritten; use mode append")
        if options.exactly_once:
            raise ConfigError("option exactlyOnce: only for streaming writes; a batch write has nothing to resume from")
        AtLeastOnceWriter.__init__(self, options, schema)
