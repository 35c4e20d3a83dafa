"""Callbacks of records, and what a producer keeps: how much, who waits for room, and who is told that there is none."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tagwire.client import Delivery, Producer
from tagwire.errors import BufferFullError, ConfigError, EncodeError, Error, KafkaError, TagwireError

from .fake_broker import FakeCluster, Late
from .produce_responses import refusing


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def test_each_record_has_its_callback_called_by_the_producers_thread(cluster: FakeCluster) -> None:
    cluster.topic("t")
    told: list[tuple[int, str]] = []

    def on_delivery(delivery: Delivery) -> None:
        told.append((delivery.result().offset, threading.current_thread().name))

    with Producer(cluster.bootstrap) as producer:
        for number in range(20):
            producer.send("t", b"%d" % number, on_delivery=on_delivery)
    assert told == [(offset, "tagwire-producer") for offset in range(20)]


def test_the_callback_of_a_record_that_fails_is_told_why(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", refusing(Error.TOPIC_AUTHORIZATION_FAILED))
    told: list[TagwireError | None] = []
    producer = Producer(cluster.bootstrap)
    producer.send("t", b"v", on_delivery=lambda delivery: told.append(delivery.exception()))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        producer.close()
    (error,) = told
    assert isinstance(error, KafkaError)
    assert error.error is Error.TOPIC_AUTHORIZATION_FAILED


def test_a_callback_that_raises_is_logged_and_harms_no_other_record(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topic("t")
    told: list[int] = []

    def broken(delivery: Delivery) -> None:
        raise RuntimeError("the shop is closed")

    with Producer(cluster.bootstrap) as producer, caplog.at_level(logging.ERROR, "tagwire.client"):
        producer.send("t", b"1", on_delivery=broken)
        producer.send("t", b"2", on_delivery=lambda delivery: told.append(delivery.result().offset))
        producer.flush()
        assert producer.send("t", b"3").result(60).offset == 2
    assert told == [1]
    assert "the shop is closed" in caplog.text


def test_a_record_that_is_refused_at_once_has_no_callback(cluster: FakeCluster) -> None:
    cluster.topic("t")
    told: list[Delivery] = []
    with Producer(cluster.bootstrap) as producer, pytest.raises(EncodeError):
        producer.send("t", "text", on_delivery=told.append)  # type: ignore[arg-type]
    assert not told


def test_rows_have_one_callback_when_all_of_them_are_done(cluster: FakeCluster) -> None:
    cluster.topic("t", 2)
    told: list[int] = []
    rows = pa.table({"value": [b"%d" % number for number in range(10)], "partition": [0, 1] * 5})
    with Producer(cluster.bootstrap) as producer:
        producer.send_arrow("t", rows, on_delivery=lambda delivery: told.append(delivery.result().rows))
        producer.flush()
    assert told == [10]


def test_a_callback_may_send_but_not_wait(cluster: FakeCluster) -> None:
    cluster.topic("t")
    told: list[str] = []

    def on_delivery(delivery: Delivery) -> None:
        again = producer.send("t", b"again", on_delivery=lambda other: told.append(str(other.result().offset)))
        try:
            again.result()
        except TagwireError as error:
            told.append(str(error))

    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"first", on_delivery=on_delivery).result(60)
        producer.flush()
    assert len(told) == 2
    assert "a callback" in told[0]
    assert told[1] == "1"


def test_who_does_not_want_to_wait_is_told_at_once_that_the_buffer_is_full(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, buffer_memory=5000, block_on_buffer_full=False) as producer:
        producer.send("t", b"first").result(60)
        cluster.script("Produce", Late(0.5))
        producer.send("t", b"y" * 4000)
        with pytest.raises(
            BufferFullError, match=r"buffer_memory allows 5000; there was no room for 4036 more$"
        ) as full:
            producer.send("t", b"z" * 4000)
        assert full.value.retriable
        with pytest.raises(BufferFullError):
            producer.send_arrow("t", pa.table({"value": [b"z" * 4000]}))
        assert producer.metrics()["producer-metrics"]["buffer-exhausted-total"] == 2
        producer.flush()
        producer.send("t", b"z" * 4000)


def test_how_many_records_may_wait_is_bounded_as_librdkafka_bounds_it(cluster: FakeCluster) -> None:
    cluster.topic("t")
    properties = {"bootstrap.servers": cluster.bootstrap, "queue.buffering.max.messages": 3}
    with Producer(properties, linger=3600, block_on_buffer_full=False) as producer:
        assert not len(producer)
        assert producer
        for _ in range(3):
            producer.send("t", b"v")
        assert len(producer) == 3
        with pytest.raises(BufferFullError, match="3 records are not delivered yet, and buffer_records allows 3"):
            producer.send("t", b"v")
        producer.flush()
        assert not len(producer)
        producer.send("t", b"v")


def test_how_many_records_wait_counts_those_of_arrow_and_of_failed_batches(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", refusing(Error.TOPIC_AUTHORIZATION_FAILED))
    producer = Producer(cluster.bootstrap)
    producer.send_arrow("t", pa.table({"value": [b"1", b"2", b"3"]}))
    with pytest.raises(KafkaError):
        producer.flush()
    assert not len(producer)
    producer.send("t", b"v").result(60)
    assert not len(producer)
    producer.close()


def test_the_partitions_of_a_topic_are_told_with_their_leaders(cluster: FakeCluster) -> None:
    cluster.topic("t", 3)
    with Producer(cluster.bootstrap) as producer:
        found = producer.partitions_for("t")
        assert list(found) == [0, 1, 2]
        assert all(partition.leader == 0 for partition in found.values())
        with pytest.raises(ConfigError, match="topic"):
            producer.partitions_for(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"buffer_records": 0}, "buffer_records"),
        ({"block_on_buffer_full": 1}, "block_on_buffer_full"),
        ({"compression_level": 3}, "compression none takes no level"),
        ({"compression": "gzip", "compression_level": 99}, "level 99 is not in gzip's range"),
        ({"partitioner": "murmur3"}, "partitioner='murmur3': allowed is murmur2_random, murmur2"),
        ({"availability_timeout": -1}, "availability_timeout"),
    ],
)
def test_what_a_producer_cannot_be_told_is_said(options: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Producer("localhost:1", **options)  # type: ignore[arg-type]


def test_a_level_makes_the_batches_of_its_codec_smaller(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    words = random.Random(1)
    value = b" ".join(b"%d" % int(words.expovariate(0.01)) for _ in range(20_000))

    def stored(properties: dict[str, object], **options: object) -> int:
        before = len(log.batches)
        with Producer({"bootstrap.servers": cluster.bootstrap, **properties}, **options) as producer:  # type: ignore[arg-type]
            producer.send("t", value)
        ((_, _, data),) = log.batches[before:]
        return len(data)

    fast = stored({}, compression="gzip", compression_level=1)
    best = stored({}, compression="gzip", compression_level=9)
    assert best < fast
    assert stored({"compression.type": "gzip", "compression.level": "9"}) == best
    assert stored({"compression.type": "gzip", "compression.gzip.level": "1", "compression.level": 9}) == fast
    assert stored({"compression.type": "snappy", "compression.level": "9"}) > 0  # librdkafka says nothing either
