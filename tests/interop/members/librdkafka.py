"""A member of a group by librdkafka; its arguments are told in `tests.interop.group_members`."""

from __future__ import annotations

import signal
import sys
from typing import Any

import confluent_kafka as kafka

leaving = False


def leave(*_: object) -> None:
    global leaving
    leaving = True


def copy(consumer: kafka.Consumer, producer: kafka.Producer, messages: list[kafka.Message], target: str) -> None:
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(target, message.value())
        at = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata())
        producer.commit_transaction()
    except kafka.KafkaException as failed:
        if failed.args[0].fatal():
            raise
        producer.abort_transaction()
        for partition in consumer.committed(consumer.assignment(), 30):
            if partition.offset < 0:
                partition.offset = kafka.OFFSET_BEGINNING
            consumer.seek(partition)


def main(bootstrap: str, topic: str, group: str, assignor: str, path: str, target: str | None = None) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if assignor == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}
        settings["partition.assignment.strategy"] = assignor
    consumer, producer = kafka.Consumer(settings), None
    if target is not None:
        told = {"bootstrap.servers": bootstrap, "transactional.id": path, "transaction.timeout.ms": 5000}
        producer = kafka.Producer(told)
        producer.init_transactions(30)
    consumer.subscribe([topic])
    before: list[int] = []
    with open(path, "a", encoding="utf-8") as out:
        while not leaving:
            messages = [message for message in consumer.consume(500, 0.1) if message.error() is None]
            assigned = sorted(partition.partition for partition in consumer.assignment())
            if assigned != before:
                print("=", *assigned, file=out, flush=True)
            before = assigned
            if not messages:
                continue
            if producer is not None and target is not None:
                copy(consumer, producer, messages, target)
                continue
            out.writelines(f"{(message.value() or b'').decode()}\n" for message in messages)
            out.flush()
            try:
                consumer.commit(asynchronous=False)
            except kafka.KafkaException as error:  # who has the partition now reads these again
                print(error, file=sys.stderr, flush=True)
        consumer.close()


signal.signal(signal.SIGTERM, leave)
main(*sys.argv[1:])
