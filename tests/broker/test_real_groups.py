"""Consumer groups of PyPI's confluent-kafka (librdkafka), aiokafka and kafka-python, unmodified, against the broker."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import admin

from tagwire.records import Record, write

from ..limits import wait_until

COUNT = 40
PARTITIONS = 4


@pytest.fixture
def topic(wire):
    """A topic of PARTITIONS partitions with COUNT records in each."""
    wire.create("t", PARTITIONS)
    for partition in range(PARTITIONS):
        rows = [Record(None, b"%d-%d" % (partition, n), timestamp=1000) for n in range(COUNT)]
        wire.produce("t", write(rows), partition=partition)
    return "t"


EVERYTHING = {b"%d-%d" % (partition, n) for partition in range(PARTITIONS) for n in range(COUNT)}


@contextmanager
def librdkafka(broker, group="g", **options):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            **options,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer, seen, seconds=0.1):
    for message in consumer.consume(500, seconds):
        assert message.error() is None
        seen.append(message.value())


def until(condition, *acts):
    def came_true():
        if condition():
            return True
        for act in acts:
            act()
        return False

    wait_until(came_true)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_two_librdkafka_consumers_share_a_topic_and_one_takes_over_when_the_other_goes(broker, topic, strategy):
    options = {"partition.assignment.strategy": strategy}
    first_seen, second_seen = [], []
    with librdkafka(broker, **options) as first:
        first.subscribe([topic])
        until(lambda: len(first.assignment()) == PARTITIONS, lambda: take(first, first_seen))
        with librdkafka(broker, **options) as second:
            second.subscribe([topic])
            until(
                lambda: len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2,
                lambda: take(first, first_seen),
                lambda: take(second, second_seen),
            )
            shared = {(p.topic, p.partition) for p in first.assignment() + second.assignment()}
            assert len(shared) == PARTITIONS
        until(lambda: len(first.assignment()) == PARTITIONS, lambda: take(first, first_seen))
        until(lambda: {*first_seen, *second_seen} == EVERYTHING, lambda: take(first, first_seen))


def test_a_librdkafka_consumer_goes_on_where_the_group_committed(broker, topic):
    seen, again = [], []
    with librdkafka(broker) as consumer:
        consumer.subscribe([topic])
        while len(seen) < 60:
            take(consumer, seen)
        consumer.commit(asynchronous=False)
    with librdkafka(broker) as consumer:
        consumer.subscribe([topic])
        until(lambda: len(seen) + len(again) >= len(EVERYTHING), lambda: take(consumer, again))
        assert {*seen, *again} == EVERYTHING
        assert len(seen) + len(again) == len(EVERYTHING)


def test_a_static_member_that_restarts_keeps_its_partitions_without_a_rebalance(broker, topic):
    revoked = []
    with librdkafka(broker) as other:
        other.subscribe([topic], on_revoke=lambda _, partitions: revoked.append(partitions))
        kept = []
        with librdkafka(broker, **{"group.instance.id": "one"}) as static:
            static.subscribe([topic])
            until(lambda: static.assignment() and other.assignment(), lambda: take(static, []), lambda: take(other, []))
            until(lambda: len(other.assignment()) == 2, lambda: take(static, []), lambda: take(other, []))
            kept = sorted(p.partition for p in static.assignment())
        revoked.clear()
        with librdkafka(broker, **{"group.instance.id": "one"}) as static:
            static.subscribe([topic])
            until(static.assignment, lambda: take(static, []), lambda: take(other, []))
            assert sorted(p.partition for p in static.assignment()) == kept
        assert revoked == []


def test_librdkafka_lists_describes_and_deletes_groups_and_changes_their_offsets(broker, topic):
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    with librdkafka(broker) as consumer:
        consumer.subscribe([topic])
        until(consumer.assignment, lambda: take(consumer, []))
        consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 7)], asynchronous=False)
        (listed,) = client.list_consumer_groups().result(20).valid
        assert (listed.group_id, listed.state) == ("g", confluent_kafka.ConsumerGroupState.STABLE)
        described = client.describe_consumer_groups(["g"])["g"].result(20)
        assert [len(member.assignment.topic_partitions) for member in described.members] == [PARTITIONS]
    changed = confluent_kafka.ConsumerGroupTopicPartitions("g", [confluent_kafka.TopicPartition(topic, 0, 3)])
    client.alter_consumer_group_offsets([changed])["g"].result(20)
    asked = confluent_kafka.ConsumerGroupTopicPartitions("g", [confluent_kafka.TopicPartition(topic, 0)])
    found = client.list_consumer_group_offsets([asked])["g"].result(20)
    assert [partition.offset for partition in found.topic_partitions] == [3]
    client.delete_consumer_groups(["g"])["g"].result(20)
    assert client.list_consumer_groups().result(20).valid == []


def test_aiokafka_consumers_share_a_topic_commit_and_go_on(broker, topic):
    async def consume(count, seen, commit=False):
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        await consumer.start()
        try:
            while len(seen) < count:
                for messages in (await consumer.getmany(timeout_ms=100, max_records=20)).values():
                    seen += [message.value for message in messages]
            if commit:
                await consumer.commit()
        finally:
            await consumer.stop()

    async def both():
        seen = []
        async with asyncio.timeout(30):
            await consume(60, seen, commit=True)
            first = len(seen)
            await asyncio.gather(*(consume(len(EVERYTHING), seen) for _ in range(2)))
        return first, seen

    first, seen = asyncio.run(both())
    assert first >= 60
    assert set(seen) == EVERYTHING
    assert not {*seen[:first]} & {*seen[first:]}


def test_kafka_python_subscribes_commits_and_goes_on(broker, topic):
    seen = []
    for count in (60, len(EVERYTHING)):
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        try:

            def take_some(consumer=consumer):
                # A poll that ends while the client joins drops what it is assigned, and the client waits for ever.
                for messages in consumer.poll(timeout_ms=5000, max_records=20).values():
                    seen.extend(message.value for message in messages)

            until(lambda count=count: len(seen) >= count, take_some)
            consumer.commit()
        finally:
            consumer.close()
    assert sorted(seen) == sorted(EVERYTHING)
