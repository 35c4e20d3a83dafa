"""Groups of KIP-848 with PyPI's confluent-kafka (librdkafka), unmodified; alone, and with classic members."""

from __future__ import annotations

from contextlib import contextmanager

import confluent_kafka
import pytest
from confluent_kafka import admin

from tagwire.broker import Broker
from tagwire.client import Admin
from tagwire.records import Record, write

from ..limits import wait_until

COUNT = 40
PARTITIONS = 4
EVERYTHING = {b"%d-%d" % (partition, n) for partition in range(PARTITIONS) for n in range(COUNT)}


@pytest.fixture
def broker(tmp_path):
    """One that tells its members to heartbeat often."""
    with Broker(tmp_path / "data", group_heartbeat_interval_s=0.05) as running:
        yield running


@pytest.fixture
def topic(wire):
    """A topic of PARTITIONS partitions with COUNT records in each."""
    wire.create("t", PARTITIONS)
    for partition in range(PARTITIONS):
        rows = [Record(None, b"%d-%d" % (partition, n), timestamp=1000) for n in range(COUNT)]
        wire.produce("t", write(rows), partition=partition)
    return "t"


class Member:
    """A consumer, and what it has seen."""

    def __init__(self, broker, protocol, **options):
        self.seen = []
        classic = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 50} if protocol == "classic" else {}
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **classic,
                **options,
            }
        )

    def has(self):
        return {partition.partition for partition in self.consumer.assignment()}

    def take(self):
        for message in self.consumer.consume(500, 0.02):
            assert message.error() is None
            self.seen.append(message.value())
        if self.seen:
            self.consumer.commit(asynchronous=True)


@contextmanager
def member(broker, protocol="consumer", subscribed="t", **options):
    one = Member(broker, protocol, **options)
    one.consumer.subscribe([subscribed])
    try:
        yield one
    finally:
        one.consumer.close()


def until(condition, *members):
    def came_true():
        for one in members:
            one.take()
        return condition()

    wait_until(came_true)


def group_of(broker):
    with Admin(broker.bootstrap) as client:
        return client.describe_groups(["g"])["g"]


@pytest.mark.parametrize("assignor", ["range", None])
def test_two_consumers_share_a_topic_and_one_takes_over_when_the_other_goes(broker, topic, assignor):
    options = {"group.remote.assignor": assignor} if assignor else {}
    with member(broker, **options) as first:
        until(lambda: len(first.has()) == PARTITIONS, first)
        with member(broker, **options) as second:
            until(lambda: len(first.has()) == len(second.has()) == PARTITIONS // 2, first, second)
            assert first.has() | second.has() == set(range(PARTITIONS))
            wait_until(lambda: group_of(broker).state == "Stable")
            assert {one.client_id for one in group_of(broker).members} == {"rdkafka"}
        until(lambda: len(first.has()) == PARTITIONS, first)
        until(lambda: {*first.seen, *second.seen} == EVERYTHING, first)
    found = group_of(broker)
    assert (found.type, found.state) == ("consumer", "Empty")


def test_a_consumer_goes_on_where_the_group_committed(broker, topic):
    with member(broker) as first:
        until(lambda: len(first.seen) >= len(EVERYTHING), first)
        first.consumer.commit(asynchronous=False)
    with member(broker) as second:
        until(lambda: len(second.has()) == PARTITIONS, second)
        broker_says = second.consumer.committed([confluent_kafka.TopicPartition("t", n) for n in range(PARTITIONS)])
        assert [partition.offset for partition in broker_says] == [COUNT] * PARTITIONS
        assert second.seen == []


def test_a_pattern_is_resolved_by_the_broker_and_finds_a_topic_that_comes(broker, wire, topic):
    with member(broker, subscribed="^(t|new)$") as one:
        until(lambda: len(one.has()) == PARTITIONS, one)
        wire.create("new", 2)
        until(lambda: len(one.consumer.assignment()) == PARTITIONS + 2, one)


def test_a_static_member_that_restarts_keeps_its_partitions(broker, topic):
    with member(broker) as other:
        with member(broker, **{"group.instance.id": "one"}) as static:
            until(lambda: len(static.has()) == len(other.has()) == 2, static, other)
            kept = static.has()
        epoch = group_of(broker)
        with member(broker, **{"group.instance.id": "one"}) as static:
            until(static.has, static, other)
            assert static.has() == kept
        assert {m.instance_id for m in epoch.members} == {"one", None}


def test_a_broker_that_restarts_has_the_group_and_its_members_go_on(tmp_path, topic, broker):
    one = Member(broker, "consumer")
    one.consumer.subscribe([topic])
    until(lambda: len(one.seen) >= COUNT, one)
    port = int(broker.bootstrap.rpartition(":")[2])
    broker.stop()
    with Broker(tmp_path / "data", port=port, group_heartbeat_interval_s=0.05) as again:
        before = group_of(again)
        until(lambda: {*one.seen} == EVERYTHING, one)
        assert before.state == "Stable"
        assert [m.member_id for m in group_of(again).members] == [m.member_id for m in before.members]
        one.consumer.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_classic_group_becomes_one_of_kip_848_and_a_classic_one_again_while_its_members_go_on(
    broker, topic, strategy
):
    classic = {"partition.assignment.strategy": strategy}
    with member(broker, "classic", **classic) as old:
        until(lambda: len(old.has()) == PARTITIONS, old)
        assert group_of(broker).type == "classic"
        with member(broker) as new:
            until(lambda: len(old.has()) == len(new.has()) == PARTITIONS // 2, old, new)
            assert group_of(broker).type == "consumer"
            assert old.has() | new.has() == set(range(PARTITIONS))
            with member(broker, "classic", **classic) as third:
                until(lambda: old.has() and new.has() and third.has(), old, new, third)
                until(lambda: old.has() | new.has() | third.has() == set(range(PARTITIONS)), old, new, third)
            until(lambda: len(old.has()) == len(new.has()) == PARTITIONS // 2, old, new)
        until(lambda: len(old.has()) == PARTITIONS, old)
        assert group_of(broker).type == "classic"
        until(lambda: {*old.seen, *new.seen, *third.seen} == EVERYTHING, old)


def test_groups_are_listed_by_type_and_deleted_when_they_are_empty(broker, topic):
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    with member(broker) as one:
        until(lambda: len(one.seen) >= COUNT, one)
        listed = client.list_consumer_groups(types={confluent_kafka.ConsumerGroupType.CONSUMER}).result(20).valid
        assert [(group.group_id, group.type) for group in listed] == [("g", confluent_kafka.ConsumerGroupType.CONSUMER)]
        none = client.list_consumer_groups(types={confluent_kafka.ConsumerGroupType.CLASSIC}).result(20).valid
        assert none == []
        described = client.describe_consumer_groups(["g"])["g"].result(20)
        assert described.type == confluent_kafka.ConsumerGroupType.CONSUMER
        with pytest.raises(confluent_kafka.KafkaException, match="NON_EMPTY_GROUP"):
            client.delete_consumer_groups(["g"])["g"].result(20)
    client.delete_consumer_groups(["g"])["g"].result(20)
    assert client.list_consumer_groups().result(20).valid == []
