"""PyPI's confluent-kafka (librdkafka) and aiokafka, unmodified, against the broker."""

from __future__ import annotations

import asyncio

import aiokafka
import confluent_kafka
import confluent_kafka.admin as admin
import pytest

from tagwire.records import Record, read, write

from ..limits import wait_until

HEADERS = [("origin", b"EWR"), ("empty", b""), ("null", None), ("origin", b"JFK")]
RECORDS = [(b"k%d" % i, b"value-%d" % i * (i % 50), HEADERS if i % 2 else []) for i in range(500)]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def topic(wire):
    wire.create("t", segment_bytes="200000")
    return "t"


def stored(wire, topic):
    """Every record the broker has, as (key, value, headers), read by tagwire."""
    end = wire.offset_at(topic, -1).offset
    found, offset = [], 0
    while offset < end:
        for batch in read(wire.fetch(topic, offset).records):
            found += [(r.key, r.value, list(r.headers)) for r in batch.records()]
            offset = batch.next_offset
    return found


def fill(wire, topic):
    """Write RECORDS with tagwire, in batches of 50 with each codec in turn."""
    for number in range(0, len(RECORDS), 50):
        batch = [Record(k, v, headers=h, timestamp=1000 + number) for k, v, h in RECORDS[number : number + 50]]
        wire.produce(topic, write(batch, compression=CODECS[number // 50 % 5]))


def consume_with_librdkafka(bootstrap, topic, start, count):
    options = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    consumer = confluent_kafka.Consumer(options)
    found = []

    def has_all():
        for message in consumer.consume(500, 0.2):
            assert message.error() is None
            found.append(message)
        return len(found) >= count

    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])
        wait_until(has_all)
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_produces_with_headers_what_tagwire_reads(broker, wire, topic, codec):
    options = {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "acks": "all", "linger.ms": 5}
    producer = confluent_kafka.Producer(options)
    failures = []
    for key, value, headers in RECORDS:
        producer.produce(topic, value, key, 0, headers=headers, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None] * len(RECORDS)
    assert stored(wire, topic) == RECORDS
    batches = list(read(wire.fetch(topic, 0).records))
    assert {batch.compression for batch in batches} == {codec}


def test_librdkafka_reads_by_assign_what_tagwire_produced(broker, wire, topic):
    fill(wire, topic)
    found = consume_with_librdkafka(broker.bootstrap, topic, 0, len(RECORDS))
    assert [(m.key(), m.value(), m.headers() or []) for m in found] == RECORDS
    assert [m.offset() for m in found] == list(range(500))
    assert {m.timestamp() for m in found} == {
        (confluent_kafka.TIMESTAMP_CREATE_TIME, 1000 + n) for n in range(0, 500, 50)
    }
    assert [m.offset() for m in consume_with_librdkafka(broker.bootstrap, topic, 137, 10)][:10] == list(range(137, 147))


def test_librdkafka_makes_lists_and_deletes_topics_and_finds_offsets(broker, wire):
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    new = admin.NewTopic("made", 3, 1, config={"retention.ms": "-1"})
    client.create_topics([new])["made"].result(20)
    with pytest.raises(confluent_kafka.KafkaException, match=r"no\.such\.thing"):
        client.create_topics([admin.NewTopic("bad", 1, 1, config={"no.such.thing": "1"})])["bad"].result(20)
    listed = client.list_topics(timeout=20)
    assert {name: len(topic.partitions) for name, topic in listed.topics.items()} == {"made": 3}
    assert [f"{node.host}:{node.port}" for node in listed.brokers.values()] == [broker.bootstrap]
    wire.produce("made", write([Record(None, b"v", timestamp=1000 + i) for i in range(10)]), partition=2)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    partition = confluent_kafka.TopicPartition("made", 2, 1007)
    assert consumer.get_watermark_offsets(partition, 20) == (0, 10)
    assert consumer.offsets_for_times([partition], 20)[0].offset == 7
    consumer.close()
    client.delete_topics(["made"])["made"].result(20)
    assert client.list_topics(timeout=20).topics == {}


def test_librdkafka_gets_the_topic_it_produces_to_made(broker, wire):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("made", b"v")
    assert producer.flush(30) == 0
    assert stored(wire, "made") == [(None, b"v", [])]


def test_aiokafka_produces_with_headers_what_tagwire_reads(broker, wire, topic):
    async def produce(codec):
        options = {"compression_type": None if codec == "none" else codec, "acks": "all", "linger_ms": 5}
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **options)
        await producer.start()
        try:
            sent = [await producer.send(topic, v, k, 0, headers=h) for k, v, h in RECORDS]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()

    for codec in ("none", "gzip"):
        asyncio.run(produce(codec))
    assert stored(wire, topic) == RECORDS * 2


def test_aiokafka_lists_topics_and_reads_by_assign_what_tagwire_produced(broker, wire, topic):
    fill(wire, topic)

    async def consume():
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            assert await consumer.topics() == {topic}
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            assert await consumer.end_offsets([partition]) == {partition: 500}
            found = (await consumer.offsets_for_times({partition: 1101}))[partition]
            assert (found.offset, found.timestamp) == (150, 1150)
            async with asyncio.timeout(30):
                return [await consumer.getone() for _ in RECORDS]
        finally:
            await consumer.stop()

    found = asyncio.run(consume())
    assert [(m.key, m.value, list(m.headers)) for m in found] == RECORDS
    assert [m.offset for m in found] == list(range(500))
