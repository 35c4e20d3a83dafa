"""Trigger.AvailableNow ends at what is there as a query begins. Spark asks for the end first, then for the start."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tagwire.broker import Broker
from tagwire.client import Admin
from tagwire.errors import KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.spark.columns import topic_schema
from tagwire.spark.source.options import parse
from tagwire.spark.source.stream import TopicStreamReader
from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader

from .conftest import Produce

A_RECORD = [Record(None, b"a")]
STARTS: Any = pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingTimestamp": "9000000000000", "startingOffsetsByTimestampStrategy": "latest"},
    ],
    ids=str,
)


@STARTS
def test_a_new_query_may_start_behind_the_end_that_was_fixed_before(
    broker: Broker, topic: str, produce: Produce, options: dict[str, str]
) -> None:
    produce(topic, {0: A_RECORD})
    reader = TopicStreamReader(
        parse({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}), topic_schema(False)
    )
    reader.prepareForTriggerAvailableNow()
    produce(topic, {0: A_RECORD})
    with Admin(broker.bootstrap) as admin:
        admin.create_partitions({topic: 3})
    start = reader.initialOffset()
    assert start == {topic: {"0": 2, "1": 0, "2": 0}}
    produce(topic, {0: A_RECORD, 2: A_RECORD})
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == start
    assert reader.partitions(start, end) == []
    reader.stop()


@STARTS
def test_so_it_may_where_spark_asks_for_the_end_as_for_that_of_any_micro_batch(
    broker: Broker, topic: str, produce: Produce, options: dict[str, str]
) -> None:
    """PySpark before 4.2."""
    produce(topic, {0: A_RECORD})
    reader = UnlimitedStreamReader(
        parse({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}), topic_schema(False)
    )
    end = reader.latestOffset()
    produce(topic, {0: A_RECORD})
    start = reader.initialOffset()
    assert reader.partitions(start, end) == []
    later = reader.latestOffset()
    (task,) = reader.partitions(end, later)
    assert [each[:4] for each in task.value] == [(topic, 0, 1, 2)]
    reader.stop()


def test_what_a_query_has_reached_and_is_gone_before_it_begins_again_is_a_loss(
    broker: Broker, topic: str, produce: Produce
) -> None:
    produce(topic, {0: A_RECORD})
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    reader = TopicStreamReader(parse(options), topic_schema(False))
    reader.prepareForTriggerAvailableNow()
    assert reader.frozen is not None
    assert reader.frozen[TopicPartition(topic, 0)] == 1
    with pytest.raises(KafkaError, match=f"{topic}-0 now ends at 1, 2 was reached"):
        reader.latestOffset({topic: {"0": 2, "1": 0}}, ReadAllAvailable())
    reader.stop()


def test_nothing_is_left_out_for_being_less_than_a_micro_batch_waits_for(
    broker: Broker, topic: str, produce: Produce
) -> None:
    produce(topic, {0: A_RECORD * 3})
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    limits = {"minOffsetsPerTrigger": "2", "maxOffsetsPerTrigger": "2"}
    reader = TopicStreamReader(parse(options | limits), topic_schema(False))
    reader.prepareForTriggerAvailableNow()
    document, ends = reader.initialOffset(), []
    for _ in range(2):
        document = reader.latestOffset(document, reader.getDefaultReadLimit())
        ends.append(document[topic]["0"])
    assert ends == [2, 3]
    reader.stop()
