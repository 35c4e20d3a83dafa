"""Compacted topics as clients see them: offsets with gaps, and what is left of each key."""

from __future__ import annotations

import asyncio

import aiokafka
import confluent_kafka
import pytest

from tagwire.broker import Broker
from tagwire.client import Producer, Reader

from .compacting import compact_all

ROUNDS, KEYS = 40, 5


@pytest.fixture
def compacted(tmp_path, connect):
    """A broker with a topic that was compacted, but for one record that was written after that."""
    with Broker(tmp_path) as broker:
        connect(broker.bootstrap).create("t", cleanup_policy="compact", segment_bytes="4000")
        with Producer(broker.bootstrap) as producer:
            for number in range(ROUNDS):
                for key in range(KEYS):
                    value = None if (number, key) == (ROUNDS - 1, 0) else b"%d" % number
                    producer.send("t", value, key=b"k%d" % key)
                producer.flush()
    compact_all(tmp_path, clean=True)
    with Broker(tmp_path) as broker:
        with Producer(broker.bootstrap) as producer:
            producer.send("t", b"last", key=b"k1")
        yield broker


END = ROUNDS * KEYS
LEFT = [
    (END - KEYS, b"k0", None),
    *((END - KEYS + key, b"k%d" % key, b"%d" % (ROUNDS - 1)) for key in range(1, KEYS)),
    (END, b"k1", b"last"),
]


@pytest.mark.parametrize("start", [0, 7, END - KEYS, END - KEYS + 2, END])
def test_a_client_that_starts_anywhere_gets_the_records_that_are_left(compacted, start):
    wanted = [entry for entry in LEFT if entry[0] >= start]
    consumer = confluent_kafka.Consumer({"bootstrap.servers": compacted.bootstrap, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition("t", 0, start)])
    found = consumer.consume(len(wanted), timeout=20)
    consumer.close()
    assert [(message.offset(), message.key(), message.value()) for message in found] == wanted
    with Reader(compacted.bootstrap, {("t", 0): start}, stop_at_end=True) as reader:
        assert [(record.offset, record.key, record.value) for record in reader.records()] == wanted


def test_aiokafka_reads_over_the_gaps(compacted):
    async def run():
        consumer = aiokafka.AIOKafkaConsumer("t", bootstrap_servers=compacted.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        found = [await asyncio.wait_for(consumer.getone(), 20) for _ in LEFT]
        await consumer.stop()
        return [(record.offset, record.key, record.value) for record in found]

    assert asyncio.run(run()) == LEFT


def test_the_ends_of_the_log_are_what_they_were(compacted, connect):
    wire = connect(compacted.bootstrap)
    assert [wire.offset_at("t", timestamp).offset for timestamp in (-2, -1)] == [0, END + 1]


@pytest.mark.parametrize("harm", ["0\n9\n", "\xff"])
def test_a_broken_note_of_where_gaps_are_loses_nothing_now_or_later(tmp_path, connect, harm):
    with Broker(tmp_path) as broker:
        for topic in ("t", "u"):
            connect(broker.bootstrap).create(topic, cleanup_policy="compact", segment_bytes="1024")
        with Producer(broker.bootstrap) as producer:
            for number in range(30):
                producer.send("t", b"%d" % number + b"v" * 50, key=b"k%d" % (number * number % 7))
                producer.flush()
    compact_all(tmp_path, clean=False)
    (tmp_path / "tagwire-gap-offset-checkpoint").write_text(harm, encoding="latin-1")
    left = None
    for _ in range(2):
        (tmp_path / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (tmp_path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
        with Broker(tmp_path) as broker:
            with Reader(broker.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
                found = [record.offset for record in reader.records()]
            assert left in (None, found)
            left = found
            assert connect(broker.bootstrap).offset_at("t", -1).offset == 30
            with Producer(broker.bootstrap) as producer:
                for number in range(10):
                    producer.send("u", b"%d" % number, key=b"k")
                    producer.flush()
        compact_all(tmp_path, clean=False)
    assert len(left) == 4
