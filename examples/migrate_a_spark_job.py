"""Migrate a Spark job.

A job that reads with Spark's own Kafka connector changes one word, and loses its JAR. Options and columns stay; record
headers come as an array, or, as here, each as a column.
"""

import os
import sys

from pyspark.sql import SparkSession

from tagwire.broker import Broker
from tagwire.client import Producer

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers are to run this Python: Spark looks for formats there

with Broker() as broker:
    with Producer(broker.bootstrap) as producer:
        for number in range(1000):
            origin = b"JFK" if number % 4 else b"EWR"
            producer.send("flights", b"%d" % number, key=b"UA-%d" % number, headers={"origin": origin})

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    flights = (
        spark.read.format("tagwire")  # was: kafka
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", "flights")
        .option("startingOffsets", "earliest")
        .option("headers.columns", "origin")  # was: a lookup in an array of headers
        .load()
    )
    counts = flights.selectExpr("CAST(origin AS STRING) AS origin").groupBy("origin").count()
    found = {row["origin"]: row["count"] for row in counts.collect()}
    spark.stop()

print(found)
assert found == {"EWR": 250, "JFK": 750}
