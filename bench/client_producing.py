"""Claim: Arrow rows are produced at least 3 times as fast as confluent-kafka's `produce` takes the same records, and
records one by one at least twice as fast as by aiokafka.   make bench WHAT=client_producing

One broker in a process of its own: tagwire's, or with `--bootstrap HOST:PORT` whichever runs there. Records have values
of 100 bytes, without headers and with 2, and no keys; a topic has one partition. Every contender numbers its batches
(idempotence), waits for all replicas, gathers 256 KiB or 5 ms (confluent-kafka keeps its own default, a megabyte), and
is done when everything is acknowledged, connecting included. What was stored is counted afterwards. Memory is the most
that a process had in which one contender produced once, less what the same process had when its imports were done.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from client import run
from rounds import Timing, alternate, sized, table

MANY = sized(1_000_000, 1_000)
FEW = sized(200_000, 1_000)
BATCH_BYTES = 256 * 1024
LINGER_MS = 5
ARROW_ROWS = 50_000
HEADERS = [("origin", b"EWR"), ("trace-id", b"01J2ZK3M9Q")]
TIMESTAMP = 1_372_000_000_000


@cache
def values(count: int) -> list[bytes]:
    """Values like the flights of the examples."""
    return [
        (b'{"carrier": "UA", "flight": %07d, "origin": "EWR", "dest": "IAH", "dep_delay": 2.0}' % number).ljust(100)
        for number in range(count)
    ]


@cache
def arrow_rows(count: int, headers: int) -> Any:
    """The same as Arrow batches."""
    import pyarrow as pa

    columns: dict[str, Any] = {
        "value": pa.array(values(count), pa.binary()),
        "timestamp": pa.array(range(TIMESTAMP, TIMESTAMP + count), pa.timestamp("ms")),
    }
    if headers:
        pairs = [{"key": name, "value": value} for name, value in HEADERS[:headers]]
        kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        one = pa.array([pairs], kind)
        columns["headers"] = one.take(pa.array([0]).take(pa.nulls(count, pa.int64()).fill_null(0)))
    return pa.table(columns).combine_chunks().to_batches(ARROW_ROWS)


# The contenders: each produces `count` records to the topic, and returns when all are acknowledged -------------------


def produce_arrow(bootstrap: str, topic: str, count: int, headers: int) -> None:
    from tagwire.client import Producer

    with Producer(bootstrap) as producer:
        for batch in arrow_rows(count, headers):
            producer.send_arrow(topic, batch)


def produce_objects(bootstrap: str, topic: str, count: int, headers: int) -> None:
    from tagwire.client import Producer

    pairs = HEADERS[:headers]
    with Producer(bootstrap, batch_bytes=BATCH_BYTES, linger=LINGER_MS / 1000) as producer:
        send = producer.send
        for number, value in enumerate(values(count)):
            send(topic, value, headers=pairs, timestamp=TIMESTAMP + number)


def produce_confluent(bootstrap: str, topic: str, count: int, headers: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "broker.address.family": "v4",
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 500_000,
        }
    )
    pairs = HEADERS[:headers] or None
    failed: list[Any] = []

    def told(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    for number, value in enumerate(values(count)):
        while True:
            try:
                producer.produce(topic, value, timestamp=TIMESTAMP + number, headers=pairs, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 1000:
            producer.poll(0)
    producer.flush()
    assert not failed


def produce_aiokafka(bootstrap: str, topic: str, count: int, headers: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            max_batch_size=BATCH_BYTES,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        pairs = HEADERS[:headers]
        for number, value in enumerate(values(count)):
            await producer.send(topic, value, timestamp_ms=TIMESTAMP + number, headers=pairs)
        await producer.stop()

    asyncio.run(produce())


def produce_kafka_python(bootstrap: str, topic: str, count: int, headers: int) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        acks="all",
        batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
    )
    pairs = HEADERS[:headers]
    for number, value in enumerate(values(count)):
        producer.send(topic, value, timestamp_ms=TIMESTAMP + number, headers=pairs)
    producer.close()


Produce = Callable[[str, str, int, int], None]

CONFLUENT = "confluent-kafka, produce()"
ARROW: Mapping[str, Produce] = {CONFLUENT: produce_confluent, "tagwire, send_arrow()": produce_arrow}
OBJECTS: Mapping[str, Produce] = {
    "aiokafka, send()": produce_aiokafka,
    "tagwire, send()": produce_objects,
    "kafka-python, send()": produce_kafka_python,
}
PRODUCERS = {**ARROW, **OBJECTS}
PEAKS = sized(tuple(PRODUCERS), ("tagwire, send()",))


def into_new_topic(produce: Produce, bootstrap: str, count: int, headers: int) -> None:
    """Produces into a topic that is made for it, counts what is there, and deletes it."""
    from tagwire.client import LATEST, Admin, Client, NewTopic

    topic = f"bench-{uuid.uuid4().hex}"
    with Client(bootstrap) as client:
        admin = Admin(client)
        admin.create_topics([NewTopic(topic)])
        produce(bootstrap, topic, count, headers)
        (stored,) = client.list_offsets({(topic, 0): LATEST}).values()
        assert stored == count, f"{stored} of {count} records are stored"
        admin.delete_topics([topic])


def peak(bootstrap: str, name: str, count: int, headers: int) -> float:
    """MiB that a process which produces once takes at most, beyond its imports and the records themselves."""
    arguments = [
        sys.executable,
        __file__,
        *sized([], ["--smallest"]),
        "--peak",
        json.dumps([bootstrap, name, count, headers]),
    ]
    return float(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def print_peak(bootstrap: str, name: str, count: int, headers: int) -> None:
    import aiokafka  # noqa: F401
    import confluent_kafka  # noqa: F401
    import kafka  # noqa: F401

    import tagwire.client
    import tagwire.records.arrow_writing  # noqa: F401

    values(count)
    arrow_rows(count, headers)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: making the records was higher
    before = kibibytes("VmHWM")
    into_new_topic(PRODUCERS[name], bootstrap, count, headers)
    print((kibibytes("VmHWM") - before) / 1024)


def kibibytes(field: str) -> int:
    """What the kernel tells of this process's memory."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1])


def measured(bootstrap: str, contenders: Mapping[str, Produce], count: int, headers: int, rounds: int) -> list[Timing]:
    values(count)
    arrow_rows(count, headers)
    work = {name: partial(into_new_topic, made, bootstrap, count, headers) for name, made in contenders.items()}
    return alternate(work, rounds=rounds)


def bench(bootstrap: str, rounds: int) -> None:
    for headers in sized((0, 2), (2,)):
        for title, contenders, count in (("from Arrow", ARROW, MANY), ("one by one", OBJECTS, FEW)):
            timings = measured(bootstrap, contenders, count, headers, rounds)
            print(table(f"produced {title}, {headers} headers", timings, units=count, unit="records"))
            told = (
                f"{name} {peak(bootstrap, name, count, headers):,.0f}"
                for name in sized([*contenders], ["tagwire, send()"])
                if name in contenders
            )
            print("  peak memory, MiB: " + "; ".join(told), flush=True)


def main() -> None:
    run(__doc__, bench, print_peak)


if __name__ == "__main__":
    main()
