"""Topics read in Spark, batch and streaming, from a real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic
from tagwire.errors import ConfigError, ConnectError, Error, KafkaError, TagwireError
from tagwire.records import Record
from tagwire.spark.columns import topic_schema
from tagwire.spark.failure import reason

pytestmark = pytest.mark.spark

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC
DUPLICATED = (("k", b"1"), ("k", None), ("", b"\xff"))


def numbered(start: int, end: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%d" % i, (), NOON + i) for i in range(start, end)]


def batch(spark: SparkSession, broker: Broker, schema: str | StructType | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("tagwire").option("kafka.bootstrap.servers", broker.bootstrap).options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


def offsets_of(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def test_a_topic_is_read_by_format_name_with_the_connectors_columns(spark, broker, topic, produce):
    produce(topic, {0: [Record(None, b"a", DUPLICATED, NOON), Record(b"k", None, (), NOON + 1)], 1: numbered(0, 1)})
    frame = batch(spark, broker, subscribe=topic, includeHeaders="true")
    assert frame.schema == topic_schema(True)
    assert batch(spark, broker, subscribe=topic).schema == topic_schema(False)
    first, second, other = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    assert (first.key, first.value, first.topic, first.partition, first.offset) == (None, b"a", topic, 0, 0)
    assert (second.key, second.value, second.headers, second.offset) == (b"k", None, None, 1)
    assert [tuple(header) for header in first.headers] == list(DUPLICATED)
    assert (other.partition, other.timestampType) == (1, 0)
    stamps = frame.selectExpr("unix_millis(timestamp) as ms").collect()
    assert sorted(row.ms for row in stamps) == [NOON, NOON, NOON + 1]


def test_a_schema_prunes_the_columns_in_its_own_order(spark, broker, topic, produce):
    produce(topic, {1: numbered(0, 3)})
    frame = batch(spark, broker, "offset bigint, value binary", subscribe=topic)
    assert frame.columns == ["offset", "value"]
    assert sorted(tuple(row) for row in frame.collect()) == [(0, b"v0"), (1, b"v1"), (2, b"v2")]


def test_bounds_and_splits_read_exactly_the_offsets_asked_for(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 100), 1: numbered(0, 10)})
    start, end = {topic: {"0": 7, "1": -2}}, {topic: {"0": 95, "1": -1}}
    frame = batch(
        spark,
        broker,
        assign=json.dumps({topic: [0, 1]}),
        startingOffsets=json.dumps(start),
        endingOffsets=json.dumps(end),
        minPartitions="5",
    )
    assert offsets_of(frame) == [(0, i) for i in range(7, 95)] + [(1, i) for i in range(10)]
    assert frame.rdd.getNumPartitions() >= 5


def test_a_pattern_reads_every_topic_it_matches(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 2)})
    assert batch(spark, broker, subscribePattern=f"{topic[:-1]}[{topic[-1]}]").count() == 2
    assert batch(spark, broker, subscribePattern="no-such-.*").count() == 0


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"subscribe": "{topic}", "startingOfsets": "x"}, ConfigError, "startingofsets"),
        ({"subscribe": "no-such"}, KafkaError, "UNKNOWN_TOPIC_OR_PARTITION (3): topic 'no-such'"),
        ({"subscribe": "{topic}s"}, KafkaError, "topic '{topic}s'. Did you mean '"),
        ({"assign": '{"{topic}":[0,9]}'}, KafkaError, "{topic}-9"),
        ({"subscribe": "{topic}", "startingOffsets": '{"{topic}":{"0":1}}'}, ConfigError, "misses {topic}-1"),
        ({"subscribe": "{topic}", "startingOffsets": '{"{topic}":{"0":5,"1":0}}'}, ConfigError, "outside 0..0"),
        ({"subscribe": "{topic}", "kafka.bootstrap.servers": "127.0.0.1:1"}, ConnectError, "127.0.0.1:1"),
        ({"subscribe": "{topic}", "kafka.security.protocol": "TLS"}, ConfigError, "security_protocol='TLS'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(spark, broker, topic, options, kind, said):
    options = {name: value.replace("{topic}", topic) for name, value in options.items()}
    with pytest.raises(Exception) as caught:
        batch(spark, broker, **options).count()
    found = reason(caught.value)
    assert type(found) is kind
    assert said.replace("{topic}", topic) in str(found)
    assert "\n" not in str(found)


class Stream:
    """A streaming query over a topic that notes what each micro-batch held."""

    def __init__(self, spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.checkpoint = checkpoint

    def run(self, **options: str) -> list[list[tuple[int, int]]]:
        """Run it to the end of what there is; the offsets of each micro-batch that held any."""
        batches: list[list[tuple[int, int]]] = []
        reader = self.spark.readStream.format("tagwire").option("kafka.bootstrap.servers", self.broker.bootstrap)
        query = (
            reader.options(**{"startingOffsets": "earliest", **options})
            .load()
            .writeStream.foreachBatch(lambda frame, number: batches.append(offsets_of(frame)))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            raise reason(error) from error
        return [offsets for offsets in batches if offsets]


def spread(count: int, start: int = 0) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in (0, 1) for offset in range(start, count)]


def test_a_stream_reads_what_is_new_under_its_limit_and_goes_on_from_its_checkpoint(
    spark, broker, topic, produce, tmp_path
):
    stream = Stream(spark, broker, tmp_path / "cp")
    produce(topic, {0: numbered(0, 30), 1: numbered(0, 30)})
    batches = stream.run(subscribe=topic, maxOffsetsPerTrigger="40")
    assert len(batches) == 2
    assert sorted(chain.from_iterable(batches)) == spread(30)
    assert stream.run(subscribe=topic) == []
    produce(topic, {0: numbered(30, 32), 1: numbered(30, 32)})
    assert stream.run(subscribe=topic) == [spread(32, start=30)]


def test_a_stream_takes_over_the_checkpoint_of_the_kafka_connector(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: numbered(0, 5), 1: numbered(0, 5)})
    for folder in ("offsets", "commits"):
        (tmp_path / "cp" / folder).mkdir(parents=True)
    (tmp_path / "cp/metadata").write_text('{"id":"3d8a2b1e-0000-4000-8000-000000000001"}')
    state = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
    (tmp_path / "cp/offsets/0").write_text(f'v1\n{state}\n{{"{topic}":{{"1":4,"0":2}}}}')
    (tmp_path / "cp/commits/0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert Stream(spark, broker, tmp_path / "cp").run(subscribe=topic) == [[(0, 2), (0, 3), (0, 4), (1, 4)]]


@pytest.mark.long
def test_offsets_that_went_back_fail_a_stream_unless_loss_is_allowed(spark, broker, topic, produce, tmp_path):
    stream = Stream(spark, broker, tmp_path / "cp")
    produce(topic, {0: numbered(0, 9), 1: numbered(0, 9)})
    stream.run(subscribe=topic)
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([topic])
        admin.create_topics([NewTopic(topic, num_partitions=3, configs={"retention.ms": "-1"})])
    produce(topic, {0: numbered(0, 4), 1: numbered(0, 9), 2: numbered(0, 3)})
    with pytest.raises(KafkaError, match=f"{topic}-0 now ends at 4, 9 was reached") as caught:
        stream.run(subscribe=topic)
    assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
    assert stream.run(subscribe=topic, failOnDataLoss="false") == [[(2, 0), (2, 1), (2, 2)]]
    produce(topic, {0: numbered(4, 5)})
    assert stream.run(subscribe=topic) == [[(0, 4)]]


def test_a_stream_without_an_end_refuses_one(spark, broker, topic, tmp_path):
    with pytest.raises(TagwireError, match="endingOffsets: only for batch reads"):
        Stream(spark, broker, tmp_path / "cp").run(subscribe=topic, endingOffsets="latest")


def test_the_timestamp_is_the_records_own(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 1)})
    (row,) = (
        batch(spark, broker, subscribe=topic).selectExpr("date_format(timestamp, 'yyyy-MM-dd HH:mm') as at").collect()
    )
    assert row.at == f"{datetime.fromtimestamp(NOON / 1000, UTC):%Y-%m-%d %H:%M}"
