"""Reading a topic in Spark against the most that Spark takes from Python.   make bench WHAT=land

tagwire reads a topic of the embedded broker, every column, into Spark's `noop` sink. The ceiling is a data source whose
workers hold an Arrow batch of that topic in memory and hand it over: what is missing to it is fetching, checking and
decoding. Keys of 9 bytes, values of 100 random bytes, none or two headers of about 20 bytes; two partitions, two tasks.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from rounds import alternate, table

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer
from tagwire.records import from_arrow
from tagwire.spark.columns import topic_schema
from tagwire.spark.session import session
from tagwire.spark.topic import TopicDataSource

ROWS = 2_000_000
PARTITIONS = 2
WIRE_ROWS = 1_000  # in one record batch, as a busy producer makes them
ROUNDS = 7


class Ceiling(DataSource):
    """Reads the first batch of each partition once, and gives it again and again until the task has its rows."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        return topic_schema(self.options.get("includeHeaders") == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(dict(self.options), schema)


class CeilingReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import builtins

        held: dict[Any, pa.RecordBatch] = builtins.__dict__.setdefault("_ceiling", {})
        key = self.options["subscribe"], partition.value
        if key not in held:
            source = TopicDataSource(self.options).reader(self.schema)
            held[key] = next(iter(source.read(source.partitions()[partition.value])))
        batch, left = held[key], ROWS // PARTITIONS
        while left > 0:
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows


def fill(broker: Broker, topic: str, headers: int) -> None:
    """The same record batch over and over: its content costs nothing to make and nobody compresses it."""
    data = os.urandom(100 * WIRE_ROWS)
    rows = pa.record_batch(
        {
            "key": pa.array([b"key-%05d" % i for i in range(WIRE_ROWS)], pa.binary()),
            "value": pa.array([data[100 * i : 100 * i + 100] for i in range(WIRE_ROWS)], pa.binary()),
            "timestamp": pa.array([1_372_939_200_000 + i for i in range(WIRE_ROWS)]),
            "headers": pa.array(
                [
                    [{"key": f"header-{h}", "value": b"value-%07d" % i} for h in range(headers)]
                    for i in range(WIRE_ROWS)
                ],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    encoded = from_arrow(rows)
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, configs={"retention.ms": "-1"})])
    with Producer(broker.bootstrap) as producer:
        for number in range(ROWS // WIRE_ROWS):
            producer.send_batch(topic, number % PARTITIONS, encoded)


def rows_of(spark: SparkSession, broker: Broker, source: str, topic: str, headers: int) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "includeHeaders": str(headers > 0).lower(),
    }
    return spark.read.format(source).options(**options).load()


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder, fsync="never") as broker,
        session(Path(folder) / "spark.log") as spark,
    ):
        spark.dataSource.register(Ceiling)
        for headers in (0, 2):
            topic = f"headers-{headers}"
            fill(broker, topic, headers)
            for source in ("tagwire", "ceiling"):
                counted = rows_of(spark, broker, source, topic, headers).count()
                if counted != ROWS:
                    sys.exit(f"{source} gave {counted} rows of {ROWS}")
            contenders = {
                "ceiling": lambda t=topic, h=headers: drain(rows_of(spark, broker, "ceiling", t, h)),
                "tagwire": lambda t=topic, h=headers: drain(rows_of(spark, broker, "tagwire", t, h)),
            }
            timings = alternate(contenders, rounds=ROUNDS)
            print(table(f"{headers or 'no'} headers", timings, units=ROWS, unit="rows"), flush=True)


if __name__ == "__main__":
    main()
