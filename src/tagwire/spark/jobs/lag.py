"""How far consumer groups lag behind, as a table: from Kafka's files alone, or from `__consumer_offsets` of a cluster.

Columns: those of the view `offsets` of `tagwire-segments`: group, topic, partition, offset, leaderEpoch, metadata,
committed, logEndOffset, lag. Where a topic's end is not known, logEndOffset and lag are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError, Error
from tagwire.records.internal_topics import OFFSETS
from tagwire.spark.failure import reason

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def lag_of_files(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """The lag of all groups, from a data directory that holds `__consumer_offsets` and the topics it speaks of.

    Args:
        path: a directory of this machine, or a URL that fsspec opens.
        options: further ones of the format `tagwire-segments`.

    Raises:
        StorageError, ConfigError: the path cannot be read, or holds no such topic. What is broken in the files shows
            when the table is read.
    """
    try:
        return spark.read.format("tagwire-segments").options(**{**options, "view": "offsets"}).load(path)
    except Exception as error:
        raise reason(error) from error


def lag_of_cluster(spark: SparkSession, properties: Mapping[str, str]) -> DataFrame:
    """The lag of all groups, from the topic `__consumer_offsets` of a cluster, which is read whole.

    Args:
        properties: of the client, `bootstrap.servers` among them.

    Raises:
        ConnectError, KafkaError, ...: as the brokers respond.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.client import Client
    from tagwire.spark.segments.internal_state import SCHEMAS

    if not properties.get("bootstrap.servers"):
        raise ConfigError("bootstrap.servers: missing; give the brokers as HOST:PORT,HOST:PORT")
    with Client.from_properties(properties) as client:
        # It is made when the first group commits. Looked up by its name: a list leaves out what one may not see.
        if client.metadata(OFFSETS).topics[OFFSETS].error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return spark.createDataFrame([], SCHEMAS["offsets"])
    options = {f"kafka.{name}": value for name, value in properties.items()}
    try:
        records = (
            spark.read.format("tagwire")
            .options(**{**options, "subscribe": OFFSETS, "kafka.isolation.level": "read_committed"})
            .schema("key binary, value binary, offset bigint, timestamp timestamp")
            .load()
        )
        last = records.groupBy("key").agg(F.max_by(F.struct("value", "offset", "timestamp"), "offset").alias("last"))
        kept = last.select("key", "last.*").where("value is not null")
        committed = kept.mapInArrow(_decoded, SCHEMAS["offsets"]).drop("logEndOffset", "lag")
        found = committed.join(_ends(spark, properties), ["topic", "partition"], "left")
    except Exception as error:
        raise reason(error) from error
    behind = F.greatest(F.lit(0).cast("bigint"), F.col("logEndOffset") - F.col("offset"))
    return found.withColumn("lag", F.when(F.col("logEndOffset").isNotNull(), behind)).select(
        *SCHEMAS["offsets"].fieldNames()
    )


def _decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from tagwire.spark.columns import arrow_schema
    from tagwire.spark.segments.internal_state import SCHEMAS, Kept, committed_offsets

    schema = arrow_schema(SCHEMAS["offsets"])
    for batch in batches:
        rows: list[dict[str, Any]] = batch.select(["key", "value", "offset"]).to_pylist()
        kept = {row["key"]: Kept(row["value"], row["offset"], -1) for row in rows}
        yield pa.RecordBatch.from_pylist(list(committed_offsets(kept, lambda topic, partition: None)), schema=schema)


def _ends(spark: SparkSession, properties: Mapping[str, str]) -> DataFrame:
    from tagwire.client import Admin, Client

    with Client.from_properties(properties) as client:
        topics = client.metadata().topics
        ends = Admin(client).partition_ends(
            (topic.name, index) for topic in topics.values() for index in topic.partitions
        )
    rows = [(at.topic, at.partition, end.offset) for at, end in ends.items()]
    return spark.createDataFrame(rows, "topic string, partition int, logEndOffset bigint")
