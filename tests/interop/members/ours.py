"""A member of a group by tagwire; its arguments are told in `tests.interop.group_members`."""

from __future__ import annotations

import signal
import sys
from typing import Any

from tagwire.client import Consumer, Producer
from tagwire.errors import CommitFailedError, KafkaError, ProducerFencedError, TagwireError
from tagwire.records import Record

leaving = False


def leave(*_: object) -> None:
    global leaving
    leaving = True


def copy(consumer: Consumer, producer: Producer, records: list[Record], target: str) -> None:
    producer.begin_transaction()
    try:
        for record in records:
            producer.send(target, record.value)
        producer.send_offsets(consumer.positions(), consumer.group_metadata())
        producer.commit_transaction()
    except ProducerFencedError:
        raise
    except TagwireError as failed:
        print(failed, file=sys.stderr, flush=True)
        producer.abort_transaction()
        committed = consumer.committed()
        for partition in consumer.assignment():
            consumer.seek(partition, committed.get(partition, "earliest"))


def main(bootstrap: str, topic: str, group: str, assignor: str, path: str, target: str | None = None) -> None:
    options: dict[str, Any] = {"group": group, "offset_reset": "earliest", "auto_commit": False}
    if assignor == "consumer":
        options["protocol"] = "consumer"
    else:
        options |= {"assignors": assignor, "session_timeout": 3, "heartbeat_interval": 0.3}
    producer = None
    if target is not None:
        producer = Producer(bootstrap, transactional_id=path, transaction_timeout=5)
        producer.init_transactions()
    before: list[int] = []
    with open(path, "a", encoding="utf-8") as out, Consumer(bootstrap, **options) as consumer:
        consumer.subscribe(topic)
        while not leaving:
            records = consumer.poll(0.1)
            assigned = sorted(partition.partition for partition in consumer.assignment())
            if assigned != before:
                print("=", *assigned, file=out, flush=True)
            before = assigned
            if not records:
                continue
            if producer is not None and target is not None:
                copy(consumer, producer, records, target)
                continue
            out.writelines(f"{(record.value or b'').decode()}\n" for record in records)
            out.flush()
            try:
                consumer.commit()
            except (CommitFailedError, KafkaError) as error:  # who has the partition now reads these again
                print(error, file=sys.stderr, flush=True)
    if producer is not None:
        producer.close()


signal.signal(signal.SIGTERM, leave)
main(*sys.argv[1:])
