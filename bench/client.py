"""Claim: a topic is read as Arrow at least 3 times as fast as confluent-kafka's `consume(500)` gives its messages, and
as objects at least twice as fast as aiokafka gives its own.   make bench WHAT=client

One broker in a process of its own: tagwire's, or with `--bootstrap HOST:PORT` whichever runs there. A million records
with values of 100 bytes and keys of 10, without headers and with 2, are written in batches of 16 KiB, which is what
Kafka's own producer makes by default, and read by each client in turn from the first to the last, connections and all.
Every client checks the checksums, and every field of every record is touched. Memory is the most that a process had in
which one client read the topic once, less what the same process had when its imports were done.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rounds import alternate, arguments, sized, table

RECORDS = sized(1_000_000, 1_000)
BATCH_BYTES = 16_384
ROUNDS = sized(5, 1)
PRODUCING = Path(__file__).with_name("client_producing.py")

_SERVE = """
import sys
from pathlib import Path
from tagwire.broker import Listener, Settings, serve

settings = Settings(Path(sys.argv[1]), (Listener("127.0.0.1", 0),), fsync="never", requests_kept=0)
serve(settings, lambda addresses: print(addresses[0], flush=True))
"""


@contextmanager
def broker() -> Iterator[str]:
    """The address of a broker that ends with the block."""
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen([sys.executable, "-c", _SERVE, directory], stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def write_topic(bootstrap: str, topic: str, headers: int) -> None:
    """Values like the flights of the examples, in batches of `BATCH_BYTES`."""
    from confluent_kafka import Producer

    from tagwire.client import Admin, NewTopic

    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, configs={"retention.ms": "-1"})])
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "batch.size": BATCH_BYTES,
            "linger.ms": 50,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 500_000,
            "broker.address.family": "v4",
        }
    )
    pairs = [("origin", b"EWR"), ("trace-id", b"01J2ZK3M9Q")][:headers]
    for number in range(RECORDS):
        value = b'{"carrier": "UA", "flight": %07d, "origin": "EWR", "dest": "IAH", "dep_delay": 2.0}' % number
        while True:
            try:
                producer.produce(
                    topic, value.ljust(100), b"UA-%07d" % number, 0, timestamp=1_372_000_000_000 + number, headers=pairs
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()


# The contenders: each reads all of the topic once, and touches every field of every record --------------------------


def read_arrow(bootstrap: str, topic: str) -> None:
    from tagwire.client import Reader

    rows = 0
    with Reader(bootstrap, {(topic, 0): 0}, end_offsets={(topic, 0): RECORDS}) as reader:
        for batch in reader:
            rows += batch.num_rows
    assert rows == RECORDS


def read_objects(bootstrap: str, topic: str) -> None:
    from tagwire.client import Reader

    rows = 0
    with Reader(bootstrap, {(topic, 0): 0}, end_offsets={(topic, 0): RECORDS}) as reader:
        for record in reader.records():
            record.topic, record.partition, record.offset, record.timestamp  # noqa: B018
            record.key, record.value, record.headers  # noqa: B018
            rows += 1
    assert rows == RECORDS


def read_confluent(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "check.crcs": True,
            "broker.address.family": "v4",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows = 0
    while rows < RECORDS:
        for message in consumer.consume(500, 1.0):
            message.topic(), message.partition(), message.offset(), message.timestamp()
            message.key(), message.value(), message.headers()
            rows += 1
    consumer.close()


def read_aiokafka(bootstrap: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, check_crcs=True)
        await consumer.start()
        at = TopicPartition(topic, 0)
        consumer.assign([at])
        consumer.seek(at, 0)
        rows = 0
        while rows < RECORDS:
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                for message in messages:
                    message.topic, message.partition, message.offset, message.timestamp  # noqa: B018
                    message.key, message.value, message.headers  # noqa: B018
                    rows += 1
        await consumer.stop()

    asyncio.run(read())


def read_kafka_python(bootstrap: str, topic: str) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, check_crcs=True)
    at = TopicPartition(topic, 0)
    consumer.assign([at])
    consumer.seek(at, 0)
    rows = 0
    while rows < RECORDS:
        for messages in consumer.poll(1000, max_records=5000).values():
            for message in messages:
                message.topic, message.partition, message.offset, message.timestamp  # noqa: B018
                message.key, message.value, message.headers  # noqa: B018
                rows += 1
    consumer.close()


ARROW: dict[str, Callable[[str, str], None]] = {
    "confluent-kafka, consume(500)": read_confluent,
    "tagwire, Arrow": read_arrow,
}
OBJECTS: dict[str, Callable[[str, str], None]] = {
    "aiokafka, getmany()": read_aiokafka,
    "tagwire, records()": read_objects,
}
READERS = {**ARROW, **OBJECTS, "kafka-python, poll()": read_kafka_python}
PEAKS = sized(tuple(READERS), ("tagwire, Arrow",))


def peak(bootstrap: str, topic: str, name: str) -> float:
    """MiB that a process which reads the topic takes at most, beyond its imports."""
    arguments = [sys.executable, __file__, *sized([], ["--smallest"]), "--peak", json.dumps([bootstrap, topic, name])]
    return float(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def print_peak(bootstrap: str, topic: str, name: str) -> None:
    import aiokafka  # noqa: F401
    import confluent_kafka  # noqa: F401
    import kafka  # noqa: F401
    import pyarrow  # noqa: F401

    import tagwire.client
    import tagwire.records.arrow  # noqa: F401

    before = memory("VmRSS")
    READERS[name](bootstrap, topic)
    print((memory("VmHWM") - before) / 1024)


def memory(line: str) -> int:
    """KiB of this process: `VmRSS` now, `VmHWM` at most so far. Linux only; getrusage counts the parent's too."""
    found = re.search(rf"{line}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def bench(bootstrap: str, rounds: int) -> None:
    for headers in sized((0, 2), (2,)):
        topic = f"bench-{headers}"
        write_topic(bootstrap, topic, headers)
        for title, contenders in (("as Arrow", ARROW), ("as objects", OBJECTS)):
            work = {name: partial(read, bootstrap, topic) for name, read in contenders.items()}
            timings = alternate(work, rounds=rounds)
            print(table(f"read {title}, {headers} headers", timings, units=RECORDS, unit="records"), flush=True)
        slow = {"kafka-python, poll()": partial(read_kafka_python, bootstrap, topic)}
        print(
            table(
                f"read as objects, {headers} headers",
                alternate(slow, rounds=1, warmup=0),
                units=RECORDS,
                unit="records",
            )
        )
        print(
            "  peak memory, MiB: " + "; ".join(f"{name} {peak(bootstrap, topic, name):,.0f}" for name in PEAKS),
            flush=True,
        )


def run(
    about: str | None, bench: Callable[[str, int], None], print_peak: Callable[..., None], rounds: int = ROUNDS
) -> bool:
    """What the command line asks for, of this bench or its other half; whether that was the bench itself."""
    parser = arguments(about)
    parser.add_argument("--bootstrap", help="a broker to use instead of tagwire's")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    given, _ = parser.parse_known_args()
    if given.peak:
        print_peak(*json.loads(given.peak))
    elif given.bootstrap:
        bench(given.bootstrap, given.rounds)
    else:
        with broker() as bootstrap:
            bench(bootstrap, given.rounds)
    return not given.peak


def main() -> None:
    if run(__doc__, bench, print_peak):
        runpy.run_path(str(PRODUCING))["main"]()


if __name__ == "__main__":
    main()
