"""Tables written to topics: batch and streaming, at least once."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import DataFrame, SparkSession

from tagwire.broker import Broker
from tagwire.client import EARLIEST, Admin, NewTopic, Reader, partition_of
from tagwire.records import Record
from tagwire.spark.failure import reason

pytestmark = pytest.mark.spark


def read(broker: Broker, topic: str, partitions: int = 2, isolation: str = "read_committed") -> list[list[Record]]:
    """The records of each partition."""
    found: list[list[Record]] = [[] for _ in range(partitions)]
    starts = {(topic, number): EARLIEST for number in range(partitions)}
    with Reader(broker.bootstrap, starts, stop_at_end=True, isolation=isolation) as reader:
        for record in reader.records():
            found[record.partition].append(record)
    return found


def write(frame: DataFrame, broker: Broker, **options: str) -> None:
    writer = frame.write.format("tagwire").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.options(**options).mode("append").save()


def test_rows_become_records_with_all_that_their_columns_say(spark: SparkSession, broker: Broker, topic: str) -> None:
    frame = spark.sql(
        "select * from values"
        " ('k', 'a', 1, timestamp'2013-07-04 12:00:00', array(named_struct('key', 'h', 'value', X'01'))),"
        " (null, null, 1, timestamp'2013-07-04 12:00:01', array(named_struct('key', 'n', 'value', null))),"
        " ('k', 'c', 0, null, null)"
        " as t(key, value, partition, timestamp, headers)"
    ).selectExpr("*", "1 as unused")
    write(frame.coalesce(1), broker, topic=topic)
    second, first = read(broker, topic)
    told = [(one.key, one.value, one.timestamp, list(one.headers)) for one in first]
    assert told[0] == (b"k", b"a", told[0][2], [("h", b"\x01")])
    assert told[1][:2] == (None, None)
    assert told[1][3] == [("n", None)]
    assert told[1][2] - told[0][2] == 1000
    assert (second[0].key, second[0].value, list(second[0].headers)) == (b"k", b"c", [])
    assert second[0].timestamp > told[1][2]  # the time of the write, where a row has none


def test_keys_go_where_kafkas_producers_put_them_and_topics_as_a_column_says(spark, broker, topic) -> None:
    other = f"{topic}-other"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(other, num_partitions=3)])
    frame = spark.range(60).selectExpr(
        f"if(id % 2 = 0, '{topic}', '{other}') as topic",
        "cast(id as string) as key",
        "cast(cast(id as string) as binary) as value",
    )
    write(frame, broker)
    for name, partitions in ((topic, 2), (other, 3)):
        records = read(broker, name, partitions)
        assert sum(map(len, records)) == 30
        for number, own in enumerate(records):
            assert all(partition_of(record.key, partitions) == number for record in own)


def test_an_empty_table_writes_nothing_and_a_missing_topic_is_created(spark, broker, topic) -> None:
    write(spark.range(0).selectExpr("cast(id as string) as value"), broker, topic=topic)
    assert read(broker, topic) == [[], []]
    write(spark.range(1).selectExpr("cast(id as string) as value"), broker, topic=f"{topic}-new")
    assert len(read(broker, f"{topic}-new", 1)[0]) == 1


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("cast(id as string) as key", {"topic": "t"}, "column value: missing; the table has key"),
        ("id as value", {"topic": "t"}, "column value is bigint: needs string or binary"),
        ("'v' as value", {}, "option topic: missing, and the table has no column topic"),
        ("'v' as value, array(1) as headers", {"topic": "t"}, "column headers is array<int>: needs array<struct<"),
        ("'v' as value", {"topic": "t", "subscribe": "t"}, "option subscribe: unknown"),
        ("'v' as value", {"topic": "t", "kafka.transactional.id": "x"}, "option kafka.transactional.id: cannot be set"),
        ("'v' as value", {"topic": "t", "kafka.ack": "all"}, "ack: no property of a Kafka client; acks is one"),
        ("'v' as value", {"topic": "t", "exactlyOnce": "true"}, "option exactlyOnce: only for streaming writes"),
        ("cast(null as string) as topic, 'v' as value", {}, "column topic is null in 1 of 1 rows"),
        ("'v' as value, 7 as partition", {"topic": "{topic}"}, "topic '{topic}' has 2 partitions"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(spark, broker, topic, columns, options, said) -> None:
    given = {name: value.format(topic=topic) for name, value in options.items()}
    with pytest.raises(Exception) as caught:
        write(spark.range(1).selectExpr(*_split(columns)), broker, **given)
    assert said.format(topic=topic) in str(reason(caught.value))


def _split(columns: str) -> list[str]:
    return [columns] if ", 'v'" not in columns and "as value, " not in columns else columns.split(", ", 1)


def test_a_stream_is_written_as_its_batches_come(spark, broker, topic, produce, tmp_path) -> None:
    target = f"{topic}-target"
    produce(topic, {0: [Record(b"k%d" % at, b"v%d" % at) for at in range(50)]})
    stream = (
        spark.readStream.format("tagwire")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "20")
        .load()
    )
    query = (
        stream.select("key", "value")
        .writeStream.format("tagwire")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert query.exception() is None
    assert json.loads(query.lastProgress.json)["batchId"] == 2
    (records,) = read(broker, target, 1)
    assert [(one.key, one.value) for one in records] == [(b"k%d" % at, b"v%d" % at) for at in range(50)]
