"""Writes that may be repeated: each task's rows are acknowledged before the task ends.

A producer numbers its batches, so that what it sends again stands once. A task that Spark runs again is another
producer: its rows stand twice. Who needs them once writes as a stream with `exactlyOnce`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tagwire.errors import ConfigError
from tagwire.spark.failure import causes_alone
from tagwire.spark.settling import settle
from tagwire.spark.sink.options import SinkOptions
from tagwire.spark.sink.rows import Rows
from tagwire.spark.sink.workers import shared_producer

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Producer


@dataclass
class Sent(WriterCommitMessage):
    """What a task has written."""

    rows: int


def send(rows: Rows, batches: Iterator[pa.RecordBatch], producer: Producer) -> int:
    """Sends the rows of a task and waits for their acknowledgement; how many there were."""
    count = 0
    for batch in batches:
        for topic, own in rows.by_topic(batch):
            producer.send_arrow(topic, own)
        count += batch.num_rows
    producer.flush()
    return count


@causes_alone
class AtLeastOnce:
    """The part of a write that runs in the workers."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._client = options.client
        self._rows = Rows(schema, options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the rows of one task."""
        with shared_producer(self._client) as producer:
            sent = Sent(send(self._rows, iterator, producer))
        settle()
        return sent


@causes_alone
class TopicWriter(AtLeastOnce, DataSourceArrowWriter):
    """A batch write. What failed tasks have written stays."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("mode overwrite: a topic cannot be overwritten; use mode append")
        if options.exactly_once:
            raise ConfigError("option exactlyOnce: only for streaming writes; a batch write has nothing to resume from")
        AtLeastOnce.__init__(self, options, schema)
