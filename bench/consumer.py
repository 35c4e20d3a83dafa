"""Claim: a member of a group reads Arrow at least 8 times as fast as confluent-kafka's `consume(500)` gives messages,
and records one by one at least as fast as confluent-kafka's fastest loop and twice as fast as aiokafka. Told beside it,
without a claim: the time from producer to consumer.   make bench WHAT=consumer

One broker in a process of its own: tagwire's, or with `--bootstrap HOST:PORT` whichever runs there. A million records
with values of 100 bytes and keys of 10, without headers and with 2, are written in batches of 16 KiB. Every contender
joins a new group, whose only member it is, and reads the topic from the first record to the last, with the automatic
commits that each has by default; the clock runs from the assignment of the partition to the last record. Every field
of every record is touched; checksums are checked.

End to end: a producer that waits for all replicas and lingers for nothing sends 1,000 records a second, each with the
time in it; a consumer of the same client, in the same process and a group, takes the difference. Told are the medians
over the rounds of each round's median and 99th percentile.   python bench/consumer.py --latency   tells that alone.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import struct
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from client import RECORDS, run, write_topic
from rounds import Timing, sized, table

PER_SECOND = 1_000
LATENCY_SECONDS = sized(5.0, 0.2)
ROUNDS = sized(7, 1)
WARMUP = sized(1, 0)
NOW = struct.Struct(">d")
VALUE = bytes(100 - NOW.size)


def group() -> str:
    return f"bench-{uuid.uuid4().hex}"


# Throughput: each joins a group, reads the topic, and gives the seconds from its assignment to the last record --------


class Clock:
    """Runs from the assignment of partitions."""

    def __init__(self) -> None:
        self.began: float | None = None

    def assigned(self, *_: object) -> None:
        if self.began is None:
            self.began = time.perf_counter()

    def seconds(self) -> float:
        assert self.began is not None
        return time.perf_counter() - self.began


def read_arrow(bootstrap: str, topic: str) -> float:
    clock, rows = Clock(), 0
    with tagwire_consumer(bootstrap, topic, clock) as consumer:
        for batch in consumer.batches():
            rows += batch.num_rows
            if rows == RECORDS:
                return clock.seconds()
    raise AssertionError(rows)


def read_records(bootstrap: str, topic: str) -> float:
    clock, rows = Clock(), 0
    with tagwire_consumer(bootstrap, topic, clock) as consumer:
        while rows < RECORDS:
            for record in consumer.poll(1.0):
                record.topic, record.partition, record.offset, record.timestamp  # noqa: B018
                record.key, record.value, record.headers  # noqa: B018
                rows += 1
        return clock.seconds()


def read_one_by_one(bootstrap: str, topic: str) -> float:
    clock, rows = Clock(), 0
    with tagwire_consumer(bootstrap, topic, clock) as consumer:
        for record in consumer:
            record.topic, record.partition, record.offset, record.timestamp  # noqa: B018
            record.key, record.value, record.headers  # noqa: B018
            rows += 1
            if rows == RECORDS:
                return clock.seconds()
    raise AssertionError(rows)


def tagwire_consumer(bootstrap: str, topic: str, clock: Clock):  # type: ignore[no-untyped-def]
    from tagwire.client import Consumer, RebalanceListener

    class Starts(RebalanceListener):
        on_partitions_assigned = clock.assigned

    consumer = Consumer(bootstrap, group=group(), offset_reset="earliest")
    consumer.subscribe(topic, Starts())
    return consumer


def read_confluent(bootstrap: str, topic: str) -> float:
    """Its fastest loop: `consume(10_000)` gives two thirds as many messages a second, `poll()` half."""
    from confluent_kafka import Consumer

    clock, rows = Clock(), 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group(),
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "broker.address.family": "v4",
        }
    )
    consumer.subscribe([topic], on_assign=clock.assigned)
    while rows < RECORDS:
        for message in consumer.consume(500, 1.0):
            message.topic(), message.partition(), message.offset(), message.timestamp()
            message.key(), message.value(), message.headers()
            rows += 1
    seconds = clock.seconds()
    consumer.close()
    return seconds


def read_aiokafka(bootstrap: str, topic: str) -> float:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

    clock = Clock()

    class Starts(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: object) -> None: ...

        def on_partitions_assigned(self, assigned: object) -> None:
            clock.assigned()

    async def read() -> float:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group(), auto_offset_reset="earliest", check_crcs=True
        )
        consumer.subscribe([topic], listener=Starts())
        await consumer.start()
        rows = 0
        while rows < RECORDS:
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                for message in messages:
                    message.topic, message.partition, message.offset, message.timestamp  # noqa: B018
                    message.key, message.value, message.headers  # noqa: B018
                    rows += 1
        seconds = clock.seconds()
        await consumer.stop()
        return seconds

    return asyncio.run(read())


Read = Callable[[str, str], float]
ARROW: Mapping[str, Read] = {
    "confluent-kafka, consume(500)": read_confluent,
    "tagwire, batches()": read_arrow,
}
OBJECTS: Mapping[str, Read] = {
    "confluent-kafka, consume(500)": read_confluent,
    "aiokafka, getmany()": read_aiokafka,
    "tagwire, poll()": read_records,
    "tagwire, for record in": read_one_by_one,
}


def alternate(contenders: Mapping[str, Callable[[], float]], rounds: int) -> list[Timing]:
    """As `rounds.alternate`, of contenders that tell their seconds themselves."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(WARMUP + rounds):
        for name, work in contenders.items():
            gc.collect()
            seconds = work()
            if number >= WARMUP:
                taken[name].append(seconds)
    return [Timing(name, tuple(seconds)) for name, seconds in taken.items()]


# Latency: each gives the seconds of every record from `send` to the consumer ------------------------------------------


def paced(seconds: float) -> Iterator[float]:
    """When each record is due, `PER_SECOND`, from now on."""
    began = time.perf_counter()
    for number in range(int(seconds * PER_SECOND)):
        yield began + number / PER_SECOND


def stamped() -> bytes:
    return NOW.pack(time.perf_counter()) + VALUE


def send_paced(send: Callable[[bytes], object]) -> None:
    for due in paced(LATENCY_SECONDS):
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        send(stamped())


async def send_paced_on_loop(send: Callable[[bytes], Awaitable[object]]) -> None:
    for due in paced(LATENCY_SECONDS):
        while (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        await send(stamped())


def taken(value: bytes) -> float:
    return time.perf_counter() - NOW.unpack_from(value)[0]


def wait_tagwire(bootstrap: str, topic: str) -> list[float]:
    from tagwire.client import Producer

    found: list[float] = []
    clock = Clock()
    with tagwire_consumer(bootstrap, topic, clock) as consumer, Producer(bootstrap, linger=0) as producer:
        while clock.began is None:
            consumer.poll(0.1)
        producer.partitions_for(topic)
        sending = threading.Thread(target=send_paced, args=[partial(producer.send, topic)])
        sending.start()
        while len(found) < LATENCY_SECONDS * PER_SECOND:
            for record in consumer.poll(1.0):
                found.append(taken(record.value))
        sending.join()
    return found


def wait_confluent(bootstrap: str, topic: str) -> list[float]:
    from confluent_kafka import Consumer, Producer

    found: list[float] = []
    clock = Clock()
    own = {"bootstrap.servers": bootstrap, "broker.address.family": "v4"}
    producer = Producer({**own, "linger.ms": 0, "acks": "all", "enable.idempotence": True})
    consumer = Consumer({**own, "group.id": group(), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic], on_assign=clock.assigned)
    while clock.began is None:
        consumer.poll(0.1)
    producer.list_topics(topic)

    def send(value: bytes) -> None:
        producer.produce(topic, value)
        producer.poll(0)

    sending = threading.Thread(target=send_paced, args=[send])
    sending.start()
    while len(found) < LATENCY_SECONDS * PER_SECOND:
        message = consumer.poll(1.0)
        if message is not None:
            found.append(taken(message.value()))
    sending.join()
    producer.flush()
    consumer.close()
    return found


def wait_aiokafka(bootstrap: str, topic: str) -> list[float]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    found: list[float] = []

    async def wait() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=0, acks="all", enable_idempotence=True)
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group(), auto_offset_reset="earliest")
        await producer.start()
        await consumer.start()
        await producer.partitions_for(topic)

        sending = asyncio.create_task(send_paced_on_loop(partial(producer.send, topic)))
        async for message in consumer:
            found.append(taken(message.value))
            if len(found) >= LATENCY_SECONDS * PER_SECOND:
                break
        await sending
        await consumer.stop()
        await producer.stop()

    asyncio.run(wait())
    return found


def wait_on_loop(bootstrap: str, topic: str) -> list[float]:
    from tagwire.client.aio import AsyncConsumer, AsyncProducer

    found: list[float] = []

    async def wait() -> None:
        own = group()
        async with (
            AsyncProducer(bootstrap, linger=0) as producer,
            AsyncConsumer(bootstrap, group=own, offset_reset="earliest") as consumer,
        ):
            await consumer.subscribe(topic)
            while not consumer.assignment():
                await consumer.poll(0.1)
            await producer.partitions_for(topic)

            sending = asyncio.create_task(send_paced_on_loop(partial(producer.send, topic)))
            async for record in consumer:
                assert record.value is not None
                found.append(taken(record.value))
                if len(found) >= LATENCY_SECONDS * PER_SECOND:
                    break
            await sending

    asyncio.run(wait())
    return found


OWN = ("tagwire", "tagwire, asyncio")
WAITS: Mapping[str, Callable[[str, str], list[float]]] = {
    "confluent-kafka": wait_confluent,
    "aiokafka": wait_aiokafka,
    "tagwire": wait_tagwire,
    "tagwire, asyncio": wait_on_loop,
}


def in_new_topic(wait: Callable[[str, str], list[float]], bootstrap: str) -> list[float]:
    from tagwire.client import Admin

    topic = group()
    with Admin(bootstrap) as admin:
        admin.create_topics(topic)
        found = wait(bootstrap, topic)
        admin.delete_topics(topic)
    return found


def latencies(bootstrap: str, rounds: int) -> str:
    """One line a contender: the median over the rounds of each round's percentiles, and their ratio to the least of the
    other clients'."""
    at: dict[str, list[tuple[float, float]]] = {name: [] for name in WAITS}
    for number in range(WARMUP + rounds):
        for name, wait in WAITS.items():
            gc.collect()
            cuts = statistics.quantiles(in_new_topic(wait, bootstrap), n=100)
            if number >= WARMUP:
                at[name].append((cuts[49] * 1000, cuts[98] * 1000))
    told = {name: [statistics.median(figures) for figures in zip(*rounds_of)] for name, rounds_of in at.items()}
    best = [min(told[name][which] for name in WAITS if name not in OWN) for which in (0, 1)]
    lines = [
        f"from send to poll, {PER_SECOND:,} records/s, ms",
        f"  {'':32} {'p50':>8} {'p99':>8}  ratios to the better peer",
    ]
    for name, (median, high) in told.items():
        lines.append(f"  {name:32} {median:8.2f} {high:8.2f}  {median / best[0]:.2f} {high / best[1]:.2f}")
    return "\n".join(lines)


def bench(bootstrap: str, rounds: int) -> None:
    for headers in () if "--latency" in sys.argv[1:] else sized((0, 2), (2,)):
        topic = f"bench-{headers}"
        write_topic(bootstrap, topic, headers)
        for title, contenders in (("as Arrow", ARROW), ("as objects", OBJECTS)):
            work = {name: partial(read, bootstrap, topic) for name, read in contenders.items()}
            timings = alternate(work, rounds)
            print(table(f"consumed {title}, {headers} headers", timings, units=RECORDS, unit="records"), flush=True)
    print(latencies(bootstrap, rounds), flush=True)


def no_peak() -> None:
    raise AssertionError("this bench measures no memory")


def main() -> None:
    run(__doc__, bench, no_peak, rounds=ROUNDS)


if __name__ == "__main__":
    main()
