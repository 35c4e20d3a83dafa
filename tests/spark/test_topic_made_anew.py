"""A topic that is deleted and made anew has other records under the same offsets: they are not read as the planned."""

from __future__ import annotations

import logging
import re

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Client, NewTopic
from tagwire.errors import Error, KafkaError
from tagwire.records import Record
from tagwire.spark.columns import topic_schema
from tagwire.spark.source.options import parse
from tagwire.spark.source.stream import TopicStreamReader
from tagwire.spark.source.topic import TopicReader
from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader

from .conftest import Produce

OLD, NEW = [Record(None, b"old")] * 3, [Record(None, b"new")] * 5
LOSS_IS_NONE = {"failOnDataLoss": "false"}


def made_anew(broker: Broker, topic: str, produce: Produce) -> str:
    """Makes a topic anew, with more records; what is said of that."""
    with Client(broker.bootstrap) as client, Admin(client) as admin:
        was = client.topic(topic).topic_id
        admin.delete_topics([topic])
        admin.create_topics([NewTopic(topic, num_partitions=2)])
        produce(topic, {0: NEW})
        now = client.metadata([topic]).topics[topic].topic_id
    return f"topic {topic} was deleted and made anew (its id was {was}, and is {now})"


def reader_of(kind, broker: Broker, topic: str, **options: str):
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}
    return kind(parse(given), topic_schema(False))


def values(reader, task) -> list[bytes]:
    return [value for batch in reader.read(task) for value in batch.column("value").to_pylist()]


def test_a_task_refuses_the_records_of_a_topic_that_was_made_anew_since_the_read_was_planned(broker, topic, produce):
    produce(topic, {0: OLD})
    reader = reader_of(TopicReader, broker, topic)
    (task,) = reader.partitions()
    assert values(reader, task) == [b"old"] * 3
    told = made_anew(broker, topic, produce)
    with pytest.raises(KafkaError, match=re.escape(told)) as raised:
        values(reader, task)
    assert raised.value.error is Error.INCONSISTENT_TOPIC_ID
    (task,) = reader.partitions()
    assert values(reader, task) == [b"new"] * 5


def test_where_loss_is_none_a_task_reads_them_and_says_so(broker, topic, produce, caplog):
    produce(topic, {0: OLD})
    reader = reader_of(TopicReader, broker, topic, **LOSS_IS_NONE)
    (task,) = reader.partitions()
    told = made_anew(broker, topic, produce)
    assert values(reader, task) == [b"new"] * 3
    assert [told in message for message in caplog.messages] == [True]


@pytest.mark.parametrize("kind", [TopicStreamReader, UnlimitedStreamReader])
def test_a_stream_stops_between_two_micro_batches_where_its_topic_was_made_anew(broker, topic, produce, caplog, kind):
    produce(topic, {0: OLD})
    strict = reader_of(kind, broker, topic, startingOffsets="earliest")
    lenient = reader_of(kind, broker, topic, startingOffsets="earliest", **LOSS_IS_NONE)
    readers = strict, lenient
    ends = [latest(reader, reader.initialOffset()) for reader in readers]
    told = made_anew(broker, topic, produce)
    for _ in range(2):  # asked again after its error, it has not taken the new one for the old
        with pytest.raises(KafkaError, match="records may have been missed: " + re.escape(told)):
            latest(strict, ends[0])
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        assert latest(lenient, ends[1]) == {topic: {"0": 5, "1": 0}}
    assert [told in message for message in caplog.messages] == [True]
    for reader in readers:
        reader.stop()


def latest(reader, start):
    return reader.latestOffset(start, reader.getDefaultReadLimit()) if reader.limited else reader.latestOffset()
