"""Exactly once from Spark to Kafka.

A stream copies one topic to another in Kafka's transactions. The program runs the query twice on one checkpoint, as
after a crash: every row stands once in the target for readers of committed records.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tagwire.broker import Broker
from tagwire.client import Admin, Producer, Reader

os.environ["PYSPARK_PYTHON"] = sys.executable


def copy(spark: SparkSession, bootstrap: str, checkpoint: Path) -> None:
    """One run of the query: what is new in `orders` goes to `checked`."""
    orders = (
        spark.readStream.format("tagwire")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        orders.select("key", "value")
        .writeStream.format("tagwire")
        .trigger(availableNow=True)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", "checked")
        .option("exactlyOnce", "true")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    query.awaitTermination()


with Broker() as broker, tempfile.TemporaryDirectory() as folder:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics(["orders", "checked"])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for begin in (0, 100):  # more arrives before the second run
        with Producer(broker.bootstrap) as producer:
            for number in range(begin, begin + 100):
                producer.send("orders", b"%d" % number)
        copy(spark, broker.bootstrap, Path(folder, "checkpoint"))
    spark.stop()
    with Reader(broker.bootstrap, "checked", stop_at_end=True, isolation="read_committed") as reader:
        values = sorted(int(record.value or b"") for record in reader.records())

print(f"{len(values)} rows, {len(set(values))} of them different")
assert values == list(range(200))
