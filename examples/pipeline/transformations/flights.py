"""Tables of the topic `flights`, and the topic `late_flights`."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
BROKER = {"kafka.bootstrap.servers": os.environ["FLIGHTS_BOOTSTRAP"]}
TOPIC = {
    **BROKER,
    "subscribe": "flights",
    "value.format": "json",
    "value.schema": "carrier string, origin string, delay int",
}


@dp.temporary_view(comment="The topic as a stream, for SQL: a pipeline's SQL gives a source no options.")
def flights() -> DataFrame:
    return spark.readStream.format("tagwire").options(**TOPIC, startingOffsets="earliest").load()


@dp.table(comment="Each record once: the flow's checkpoint says how far it has come.")
def departures() -> DataFrame:
    rows = spark.readStream.format("tagwire").options(**TOPIC, startingOffsets="earliest").load()
    return rows.selectExpr("value.*", "partition", "offset", "timestamp")


@dp.materialized_view(comment="The topic as it is now, read whole at each run.")
def records_of_partitions() -> DataFrame:
    rows = spark.read.format("tagwire").options(**TOPIC).load()
    return rows.groupBy("partition").count()


@dp.materialized_view(comment="What the broker's files hold: one row for each record batch.")
def batches() -> DataFrame:
    files = spark.read.format("tagwire-segments").option("view", "batches").option("subscribe", "flights")
    return files.load(os.environ["FLIGHTS_LOG"])


dp.create_sink("late_flights", "tagwire", {**BROKER, "topic": "late_flights", "exactlyOnce": "true"})


@dp.append_flow(target="late_flights")
def late() -> DataFrame:
    rows = spark.readStream.table("departures").where("delay > 50")
    return rows.selectExpr("carrier AS key", "to_json(struct(origin, delay)) AS value")
