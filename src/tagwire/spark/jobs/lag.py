"""How far consumer groups lag behind, as a table: from Kafka's files alone, or from `__consumer_offsets` of a cluster.

Columns: those of the view `offsets` of `tagwire-segments`: group, topic, partition, offset, leaderEpoch, metadata,
committed, logEndOffset, lag. Where a topic's end is not known, logEndOffset and lag are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError, Error
from tagwire.partitions import TopicPartition
from tagwire.records.internal_topics import OFFSETS
from tagwire.spark.failure import reason, without_traceback

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tagwire.client import Client


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
        count = len(client.topic(OFFSETS).partitions)
    try:
        partitions = spark.range(0, count, 1, count)
        committed = partitions.mapInArrow(_committed(dict(properties)), SCHEMAS["offsets"]).drop("logEndOffset", "lag")
        found = committed.join(_ends(spark, properties), ["topic", "partition"], "left")
    except Exception as error:
        raise reason(error) from error
    behind = F.greatest(F.lit(0).cast("bigint"), F.col("logEndOffset") - F.col("offset"))
    is_known = F.col("logEndOffset").isNotNull() & (F.col("offset") >= 0)  # a negative one is none
    return found.withColumn("lag", F.when(is_known, behind)).select(*SCHEMAS["offsets"].fieldNames())


def _committed(properties: dict[str, str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task makes of the partitions of `__consumer_offsets` that it is given."""

    @without_traceback
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tagwire.client import Client

        with Client.from_properties(properties) as client:
            for batch in batches:
                for index in batch.column("id").to_pylist():
                    yield committed_in(client, index)

    return rows


def committed_in(client: Client, index: int) -> pa.RecordBatch:
    """What the groups of a partition of `__consumer_offsets` have committed, as their coordinator has it when it has
    loaded the partition. A transaction that is open keeps nothing back but what is its own.

    Returns:
        The columns of the view `offsets`; those about partitions' ends are null.

    Raises:
        KafkaError, ConnectError, CorruptRecordError, DecodeError, ...: the partition cannot be read.
    """
    import pyarrow as pa

    from tagwire.client.whole_log import whole_log
    from tagwire.spark.columns import arrow_schema
    from tagwire.spark.segments.internal_state import SCHEMAS, committed_offsets, replay

    kept = replay(whole_log(client, TopicPartition(OFFSETS, index)))
    rows = list(committed_offsets(kept, lambda topic, partition: None))
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SCHEMAS["offsets"]))


def _ends(spark: SparkSession, properties: Mapping[str, str]) -> DataFrame:
    from tagwire.client import Admin, Client

    with Client.from_properties(properties) as client:
        topics = client.metadata().topics
        ends = Admin(client).partition_ends(
            (topic.name, index) for topic in topics.values() for index in topic.partitions
        )
    rows = [(at.topic, at.partition, end.offset) for at, end in ends.items()]
    return spark.createDataFrame(rows, "topic string, partition int, logEndOffset bigint")
