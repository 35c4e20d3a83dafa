"""Idempotent and transactional producers of confluent-kafka (librdkafka), aiokafka and kafka-python, unmodified."""

from __future__ import annotations

import asyncio

import aiokafka
import confluent_kafka
import kafka
import pytest

from tagwire.records import read


@pytest.fixture(autouse=True)
def topic(wire):
    wire.create("t")
    wire.create("in")


def stored_batches(wire):
    return list(read(wire.fetch("t", 0).records))


def librdkafka_producer(broker, **options):
    return confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **options})


def librdkafka_values(broker, isolation, count):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"reader-{isolation}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    values, at_end = [], False
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        while not at_end:
            for message in consumer.consume(100, 1):
                if message.error():
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                    at_end = True
                else:
                    values.append(message.value())
    finally:
        consumer.close()
    assert len(values) == count
    return values


def test_librdkafka_produces_idempotently(broker, wire):
    producer = librdkafka_producer(broker, **{"enable.idempotence": True})
    for number in range(2000):
        producer.produce("t", b"%d" % number)
    assert producer.flush(30) == 0
    batches = stored_batches(wire)
    assert batches[0].producer_id >= 0
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]


def test_librdkafka_commits_and_aborts_transactions(broker):
    producer = librdkafka_producer(broker, **{"transactional.id": "tx"})
    producer.init_transactions(20)
    for round_, finish in enumerate([producer.commit_transaction, producer.abort_transaction] * 3):
        producer.begin_transaction()
        for number in range(5):
            producer.produce("t", b"%d-%d" % (round_, number))
        producer.flush(20)
        finish(20)
    committed = librdkafka_values(broker, "read_committed", 15)
    assert {value[:1] for value in committed} == {b"0", b"2", b"4"}
    assert len(librdkafka_values(broker, "read_uncommitted", 30)) == 30


def test_librdkafka_is_fenced_by_whoever_takes_its_transactional_id_over(broker):
    first = librdkafka_producer(broker, **{"transactional.id": "tx"})
    first.init_transactions(20)
    first.begin_transaction()
    first.produce("t", b"first")
    first.flush(20)
    second = librdkafka_producer(broker, **{"transactional.id": "tx"})
    second.init_transactions(20)
    second.begin_transaction()
    second.produce("t", b"second")
    second.commit_transaction(20)
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.commit_transaction(20)
    assert refused.value.args[0].fatal()
    assert librdkafka_values(broker, "read_committed", 1) == [b"second"]


def test_librdkafka_reads_processes_and_writes_exactly_once(broker, wire, make):
    for number in range(20):
        wire.produce("in", make.records(b"%d" % number))
    options = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    producer = librdkafka_producer(broker, **{"transactional.id": "tx"})
    producer.init_transactions(20)
    done = 0
    for attempt in range(4):
        consumer = confluent_kafka.Consumer(options)
        consumer.subscribe(["in"])
        messages = []
        while len(messages) < 5:
            messages += consumer.consume(5 - len(messages), 1)
        producer.begin_transaction()
        for message in messages:
            producer.produce("t", b"done " + message.value())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 20)
        if attempt == 1:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
            done += 5
        consumer.close()
    expected = [b"done %d" % number for number in range(done)]
    assert librdkafka_values(broker, "read_committed", done) == expected


def test_aiokafka_commits_and_aborts_transactions(broker):
    async def run():
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="tx")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("t", b"kept")
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"gone")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait("t", b"kept too")
        finally:
            await producer.stop()

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap, enable_auto_commit=False, isolation_level="read_committed"
        )
        await consumer.start()
        try:
            partition = aiokafka.TopicPartition("t", 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            async with asyncio.timeout(20):
                return [(await consumer.getone()).value for _ in range(2)]
        finally:
            await consumer.stop()

    assert asyncio.run(run()) == [b"kept", b"kept too"]


def test_kafka_python_produces_idempotently_and_in_transactions(broker, wire):
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    for number in range(200):
        producer.send("t", b"%d" % number)
    producer.close(20)
    assert stored_batches(wire)[0].producer_id >= 0
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"gone")
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("t", b"kept")
    producer.commit_transaction()
    producer.close(20)
    assert librdkafka_values(broker, "read_committed", 201)[-1] == b"kept"
