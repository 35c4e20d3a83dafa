"""Lands topics as Spark's Kafka connector and `delta-spark` do, for the bench of landed tables.

A process of its own, since Delta Lake's jar is for an older PySpark. It reads lines of JSON, each naming a topic and a
directory, lands it by a query of AvailableNow, and answers each with a line.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

COLUMNS = ("key", "value", "partition", "offset", "timestamp")


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.config("spark.jars", ",".join(given["jars"]))
    for name, value in given["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps({"spark": spark.version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", asked["bootstrap"])
        reader = reader.option("subscribe", asked["topic"]).option("startingOffsets", "earliest")
        records = reader.option("maxOffsetsPerTrigger", asked["batch"]).load().select(*COLUMNS)
        writer = records.writeStream.format("delta").option("checkpointLocation", asked["to"] + "-checkpoint")
        writer.trigger(availableNow=True).start(asked["to"]).awaitTermination()
        print(json.dumps({"landed": asked["to"]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
