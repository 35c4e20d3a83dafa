"""What the Spark bench reads: topics on a real Kafka, the connector, and a source that has its batches in memory."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tagwire.client import Admin, NewTopic, Producer
from tagwire.errors import Error, KafkaError
from tagwire.records import from_arrow
from tagwire.spark.gc_freeze import freeze_gc
from tagwire.spark.session import SETTINGS
from tagwire.spark.source.topic import TopicDataSource

PARTITIONS = 2
PRODUCER_BATCH = 16_384  # bytes: batch.size of Kafka's producer, unless it is told otherwise
NOON = 1_372_939_200_000

# Workers find `Ceiling` here.
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])

CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Beside `SETTINGS`, for every contender alike."""


@dataclass(frozen=True)
class Topic:
    """A topic to be read: its rows have keys of 9 bytes, and values as given over and over.

    Attributes:
        headers: of about 20 bytes each.
        values: one batch's worth of values is taken from these; None is random bytes of `size`.
        batch_bytes: of a record batch, about.
    """

    name: str
    rows: int
    size: int = 100
    headers: int = 0
    compression: str = "none"
    values: Sequence[bytes] | None = None
    batch_bytes: int = PRODUCER_BATCH

    def batch(self) -> tuple[bytes, int]:
        """The record batch that the topic repeats, and how many records it has."""
        value = len(self.values[0]) if self.values else self.size
        count = max(1, self.batch_bytes // (value + 20 + 24 * self.headers))
        data = os.urandom(self.size * count)
        values = [data[self.size * i : self.size * (i + 1)] for i in range(count)]
        if self.values:
            values = [self.values[i % len(self.values)] for i in range(count)]
        pairs = [
            [{"key": f"header-{h}", "value": b"value-%07d" % i} for h in range(self.headers)] for i in range(count)
        ]
        rows = pa.record_batch(
            {
                "key": pa.array([b"key-%05d" % i for i in range(count)], pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp": pa.array([NOON + i for i in range(count)]),
                "headers": pa.array(pairs, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            }
        )
        return from_arrow(rows, compression=self.compression), count


def fill(bootstrap: str, topic: Topic) -> int:
    """Writes the topic unless it is there; how many records it has."""
    data, count = topic.batch()
    batches = max(PARTITIONS, topic.rows // count)
    with Admin(bootstrap) as admin:
        try:
            admin.create_topics([NewTopic(topic.name, num_partitions=PARTITIONS, configs={"retention.ms": "-1"})])
        except KafkaError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
            return batches * count
    with Producer(bootstrap) as producer:
        for number in range(batches):
            producer.send_batch(topic.name, number % PARTITIONS, data)
    return batches * count


@contextmanager
def spark_session(cores: int, jars: Sequence[Path]) -> Iterator[SparkSession]:
    """A session with the connector's jars."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.jars", ",".join(map(str, jars)))
    for name, value in (CONFS | SETTINGS).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(Ceiling)
    try:
        yield spark
    finally:
        spark.stop()


def read(
    spark: SparkSession, source: str, bootstrap: str, topic: str, schema: str | None = None, **options: str
) -> DataFrame:
    """A batch read of a topic with the source of that format."""
    reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader = reader.options(**options)
    return (reader.schema(schema) if schema else reader).load()


def drain(frame: DataFrame) -> None:
    """Every row and column of it, and nothing else."""
    frame.write.format("noop").mode("overwrite").save()


class Ceiling(DataSource):
    """Reads some batches of each partition once, and gives them again and again until the task has its rows."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        return TopicDataSource(_without_rows(self.options)).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return CeilingStreamReader(dict(self.options), schema)


class Rounds:
    """The part of the ceiling that runs in the workers."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.rows = int(options["rows"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, left = partition.value
        batch = self._held(number)
        while left > 0:
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows
        freeze_gc()

    def _held(self, number: int) -> pa.RecordBatch:
        import builtins

        held: dict[Any, pa.RecordBatch] = builtins.__dict__.setdefault("_ceiling", {})
        key = self.options["subscribe"], str(self.schema), number
        if key not in held:
            source = TopicDataSource(_without_rows(self.options)).reader(self.schema)
            held[key] = next(iter(source.read(source.partitions()[number])))
        return held[key]

    def tasks(self, rows: int) -> list[InputPartition]:
        return [InputPartition((number, rows // PARTITIONS)) for number in range(PARTITIONS)]


class CeilingReader(Rounds, DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return self.tasks(self.rows)


class CeilingStreamReader(Rounds, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Its offset is how many rows were given."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.options.get("maxoffsetspertrigger")
        return ReadMaxRows(int(most)) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.rows
        return {"rows": min(self.rows, start["rows"] + most)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self.tasks(end["rows"] - start["rows"])


def _without_rows(options: Any) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() not in ("rows", "startingoffsets")}
