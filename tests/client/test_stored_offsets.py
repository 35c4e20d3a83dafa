"""What is committed where the application says what it is done with (librdkafka's enable.auto.offset.store=false): by a
made-up clock, in memory, and once by both faces of a consumer over sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Consumer, OffsetAndMetadata, Producer, RebalanceListener
from tagwire.client.aio import AsyncConsumer
from tagwire.client.consuming.consumer_core import ConsumerCore
from tagwire.errors import ConfigError, ConsumerStateError
from tagwire.partitions import TopicPartition
from tagwire.records import Record

from .fake_broker import Late
from .memory_consumers import MemoryConsumer, Room, subscribed

AT = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def storing(room: Room, **options: Any) -> MemoryConsumer:
    return subscribed(room, **{"auto_commit": True, "auto_offset_store": False, **options})


def test_what_was_given_is_not_committed_until_it_is_stored() -> None:
    room = Room()
    room.fill(30)
    consumer = storing(room, max_poll_records=10)
    given = consumer.drained(20)
    consumer.poll()
    room.pass_time(60)
    assert room.committed == {}
    consumer.core.store_offsets(given[4])
    room.pass_time(60)
    assert room.committed == {AT: 5}
    consumer.core.store_offsets(given[:8])
    consumer.close()
    assert room.committed == {AT: 8}


def test_partitions_that_go_are_committed_as_they_were_stored() -> None:
    room = Room(2)
    room.fill(10)
    room.fill(10, 1)
    first = storing(room, protocol="consumer", auto_commit_interval=3600.0)
    first.drained(20)
    first.core.store_offsets({AT: 3, OTHER: OffsetAndMetadata(7, metadata="half")})
    second = storing(room, protocol="consumer")
    for _ in range(100):
        first.poll(0.1)
        second.poll(0.1)
        if second.core.assignment and len(first.core.assignment) == 1:
            break
    (gone,) = second.core.assignment
    assert room.committed == {AT: 3, OTHER: 7}  # what stays, too, as by any automatic commit
    with pytest.raises(KeyError, match="not assigned"):
        first.core.store_offsets({gone: 9})
    second.close()


class Storing(RebalanceListener):
    """Stores how far it is, at last when partitions go, as who processes records in other threads waits for them."""

    def __init__(self, core: ConsumerCore, offset: int) -> None:
        self.core = core
        self.offset = offset

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.core.store_offsets(dict.fromkeys(partitions, self.offset))


@pytest.mark.parametrize("how", ["unsubscribe", "close", "rebalance"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_the_listener_stores_of_partitions_that_go_is_committed(how: str, protocol: str) -> None:
    room = Room()
    room.fill(10)
    consumer = room.consumer(auto_commit=True, auto_offset_store=False, protocol=protocol, assignors=None)
    consumer.call(consumer.core.subscribe(["t"], None, Storing(consumer.core, 6)))
    consumer.drained(10)
    if how == "close":
        consumer.close()
    elif how == "unsubscribe":
        consumer.call(consumer.core.unsubscribe())
    else:
        room.cluster.topic("u", 1)
        consumer.call(consumer.core.subscribe(["u"], None, Storing(consumer.core, 6)))
        for _ in range(100):
            consumer.poll(0.1)
    assert room.committed == {AT: 6}


def test_what_a_listener_stores_that_raises_then_is_committed() -> None:
    class Raising(Storing):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            super().on_partitions_revoked(partitions)
            raise OSError("the database is away")

    room = Room()
    room.fill(10)
    consumer = room.consumer(auto_commit=True, auto_offset_store=False)
    consumer.call(consumer.core.subscribe(["t"], None, Raising(consumer.core, 6)))
    consumer.drained(10)
    with pytest.raises(OSError, match="away"):
        consumer.close()
    assert room.committed == {AT: 6}


@pytest.mark.parametrize("how", ["commit", "commit_async"])
def test_a_commit_without_offsets_is_of_what_is_stored(how: str) -> None:
    room = Room(2)
    room.fill(10)
    consumer = storing(room, auto_commit=False)
    consumer.drained(10)

    def commit(core: ConsumerCore) -> None:
        consumer.call(core.commit(None, None) if how == "commit" else core.commit_async(None, None))
        room.pass_time(1)

    commit(consumer.core)
    assert room.committed == {}
    consumer.core.store_offsets({AT: 4})
    commit(consumer.core)
    assert room.committed == {AT: 4}


def test_what_is_committed_by_hand_beyond_what_is_stored_stays() -> None:
    room = Room()
    room.fill(10)
    consumer = storing(room)
    consumer.drained(10)
    consumer.call(consumer.core.commit({AT: 9}, None))
    consumer.core.store_offsets({AT: 4})
    room.pass_time(60)
    assert room.committed == {AT: 9}


def test_what_is_stored_late_of_records_that_another_has_had_since_takes_no_offset_back() -> None:
    room = Room()
    room.fill(20)
    room.offsets.committed["g"] = {AT: 9}  # by who had the partition meanwhile
    room.cluster.script("OffsetFetch", Late(3.0))
    consumer = storing(room, auto_commit_interval=0.1)
    while not consumer.core.assignment:
        consumer.poll(0.01)
    consumer.core.store_offsets({AT: 2})  # of records that were given when it was ours before
    room.pass_time(1)
    consumer.call(consumer.core.commit(None, None))
    assert room.committed == {AT: 9}
    assert consumer.drained(1)[0].offset == 9
    room.pass_time(1)
    consumer.call(consumer.core.commit(None, None))
    assert room.committed == {AT: 9}
    consumer.core.store_offsets({AT: 11})
    room.pass_time(1)
    assert room.committed == {AT: 11}


def test_who_goes_back_stores_less_again() -> None:
    room = Room()
    room.fill(10)
    consumer = storing(room)
    consumer.core.store_offsets(consumer.drained(10))
    room.pass_time(10)
    assert room.committed == {AT: 10}
    consumer.call(consumer.core.seek(AT, 0))
    consumer.core.store_offsets(consumer.drained(10)[1])
    room.pass_time(10)
    assert room.committed == {AT: 2}


def test_of_each_partition_the_last_record_is_stored_in_whatever_order_they_are_told() -> None:
    room = Room(2)
    room.fill(5)
    room.fill(3, 1)
    consumer = storing(room)
    consumer.core.store_offsets(sorted(consumer.drained(8), key=lambda record: record.offset, reverse=True))
    room.pass_time(60)
    assert room.committed == {AT: 5, OTHER: 3}


@pytest.mark.parametrize(
    ("done", "error"),
    [
        pytest.param(Record(b"k", b"v"), ConfigError, id="a-record-of-nowhere"),
        pytest.param([b"v"], ConfigError, id="no-records"),
        pytest.param(7, ConfigError, id="a-number"),
        pytest.param({AT: -1}, ConfigError, id="a-negative-offset"),
        pytest.param({AT: 3, TopicPartition("t", 5): 1}, KeyError, id="not-assigned"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_stored(done: Any, error: type[Exception]) -> None:
    room = Room()
    room.fill(5)
    consumer = storing(room)
    consumer.drained(5)
    with pytest.raises(error):
        consumer.core.store_offsets(done)
    room.pass_time(60)
    assert room.committed == {}


def test_offsets_are_stored_by_hand_only_where_that_was_asked_for_and_in_a_group() -> None:
    room = Room()
    with pytest.raises(ConsumerStateError, match="auto_offset_store=False"):
        room.consumer().core.store_offsets({AT: 1})
    with pytest.raises(ConsumerStateError, match="without a group"):
        room.consumer(group=None, auto_offset_store=False).core.store_offsets({AT: 1})


def test_records_are_stored_by_the_thread_that_has_processed_them() -> None:
    with Broker() as broker:
        properties = filled(broker)
        with Consumer(properties) as consumer:
            consumer.subscribe("flights")
            given = consumer.consume(10)
            worker = threading.Thread(target=consumer.store_offsets, args=(given[6],))
            worker.start()
            worker.join()
        assert where_it_stands(broker) == 7


def test_records_are_stored_by_a_task_that_waits_for_nothing() -> None:
    async def main(properties: dict[str, str]) -> None:
        async with AsyncConsumer(properties) as consumer:
            await consumer.subscribe("flights")
            given = await consumer.consume(10)
            polling = asyncio.create_task(consumer.poll(0.5))
            await asyncio.sleep(0.1)
            consumer.store_offsets(given[6])  # beside another call
            await polling

    with Broker() as broker:
        asyncio.run(main(filled(broker)))
        assert where_it_stands(broker) == 7


def filled(broker: Broker) -> dict[str, str]:
    """Properties of a consumer of ten records, by librdkafka's names."""
    with Producer(broker.bootstrap) as producer:
        for number in range(10):
            producer.send("flights", b"%d" % number)
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": "false",
    }


def where_it_stands(broker: Broker) -> int:
    with Consumer(broker.bootstrap, group="billing") as again:
        return again.committed([("flights", 0)])[TopicPartition("flights", 0)].offset
