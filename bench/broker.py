"""Claims about `tagwire broker` beside a single node of Apache Kafka, on the same disk, with the same clients in turns:

1. from the start of the process to the first acknowledged record, on formatted storage: at least 20 times faster;
2. resident memory at rest: at most a tenth;
3. produce and consume MB/s, 100-byte and 1 KiB records, 1 and 6 partitions, acks=all: at least 0.7 of Apache Kafka's;
4. the 99th percentile of the time to produce one record at 1,000 records/s: no more than Apache Kafka's.

    make bench WHAT=broker                         # about 8 minutes
    python bench/broker.py --short                 # about 2: one round, smaller loads
    python bench/broker.py --java                  # about 20: with the perf tests of Kafka too
    python bench/broker.py --only consume          # under 1: 1 KiB, 6 partitions, reads in turns

What an acknowledgement promises is compared both ways. Apache Kafka's default leaves records to the operating system,
tagwire's puts them on the disk first (`--fsync batch`). So each is measured as it comes, then both with an fsync before
each acknowledgement (Kafka's flush.messages=1), then both without (tagwire's `--fsync never`).
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import confluent_kafka
from brokers import RELEASE, ApacheKafka, BrokerProcess, FirstRecord, Tagwire
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_jars import MavenError

SYNCED = {"flush.messages": "1"}
LOADS = [(100, 1), (100, 6), (1024, 1), (1024, 6)]
PERF = re.compile(r"\(([\d.]+) MB/sec\).*\n?$")
PAUSE_AT_REST_S = 3
READS = 5
"""How often each load is read: it takes a fraction of a second, in which a neighbour can be in the way."""

UNBOUNDED = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 2_000_000}
"""With more than 100,000 records at hand librdkafka pauses for a second: who serves fast would be read slowly."""

READING, READ_MEGABYTES = (1024, 6), 200
"""The load of --only consume, which is read more often."""

NUMBERS = count()


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: of each measurement.
        megabytes: of each load.
        latency_s: for how long records are sent one by one.
        java: whether Java's tools take turns too.
    """

    rounds: int
    megabytes: int
    latency_s: float
    java: bool


@dataclass(frozen=True)
class Contender:
    """A broker and what its topics are created with.

    Attributes:
        promise: what an acknowledgement means.
    """

    name: str
    broker: BrokerProcess
    promise: str
    configs: Mapping[str, str]

    def topic(self, partitions: int) -> str:
        """A new topic."""
        name = f"bench-{next(NUMBERS)}"
        create(self.broker, NewTopic(name, partitions, 1, config=dict(self.configs)))
        return name


def create(broker: BrokerProcess, topic: NewTopic) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    client.create_topics([topic])[topic.topic].result(30)


def produce(contender: Contender, size: int, partitions: int, megabytes: int) -> tuple[str, float]:
    """A topic filled by confluent-kafka, and at how many MB/s."""
    topic = contender.topic(partitions)
    options = {"bootstrap.servers": contender.broker.bootstrap, "acks": "all", "linger.ms": 5}
    producer = confluent_kafka.Producer({**options, "queue.buffering.max.messages": 1_000_000})
    producer.list_topics(topic, 10)
    value, records = bytes(size), megabytes * 1_000_000 // size
    started = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(120):
        raise RuntimeError(f"{contender.name} did not acknowledge everything")
    return topic, records * size / 1e6 / (time.perf_counter() - started)


def consume(contender: Contender, topic: str, size: int, partitions: int, megabytes: int) -> float:
    """At how many MB/s confluent-kafka reads it."""
    options = {"bootstrap.servers": contender.broker.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**options, **UNBOUNDED})
    consumer.list_topics(topic, 10)
    left = megabytes * 1_000_000 // size
    started = time.perf_counter()
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    until = started + 120
    while left > 0:
        left -= len(consumer.consume(min(left, 10_000), 1))
        if time.perf_counter() > until:
            raise RuntimeError(f"{contender.name} did not serve everything")
    rate = megabytes / (time.perf_counter() - started)
    consumer.close()
    return rate


def java_produce(path: str, contender: Contender, size: int, partitions: int, megabytes: int) -> tuple[str, float]:
    """A topic filled by kafka-producer-perf-test, and at how many MB/s (of 2**20 bytes, as it says)."""
    topic = contender.topic(partitions)
    tool = ["java", "-Xmx512m", "-cp", path, "org.apache.kafka.tools.ProducerPerformance", "--topic", topic]
    load = ["--num-records", str(megabytes * 1_000_000 // size), "--record-size", str(size), "--throughput", "-1"]
    options = ["--producer-props", f"bootstrap.servers={contender.broker.bootstrap}", "acks=all", "linger.ms=5"]
    done = subprocess.run([*tool, *load, *options], capture_output=True, text=True, check=True, timeout=180)
    found = PERF.search(done.stdout)
    if found is None:
        raise RuntimeError(done.stdout[-2000:])
    return topic, float(found[1])


def java_consume(path: str, contender: Contender, topic: str, size: int, megabytes: int) -> float:
    """At how many MB/s kafka-consumer-perf-test fetches it, without the time to join a group."""
    tool = ["java", "-Xmx512m", "-cp", path, "org.apache.kafka.tools.ConsumerPerformance", "--topic", topic]
    load = ["--bootstrap-server", contender.broker.bootstrap, "--messages", str(megabytes * 1_000_000 // size)]
    done = subprocess.run([*tool, *load, "--timeout", "30000"], capture_output=True, text=True, check=True, timeout=180)
    *_, last = (line for line in done.stdout.splitlines() if line.count(",") > 8)
    return float(last.split(",")[8])


def latency_p99(contender: Contender, seconds: float) -> float:
    """Milliseconds from producing a record of 1 KiB to its acknowledgement, at 1,000 a second."""
    topic = contender.topic(1)
    options = {"bootstrap.servers": contender.broker.bootstrap, "acks": "all", "linger.ms": 0}
    producer = confluent_kafka.Producer(options)
    producer.produce(topic, b"first")
    producer.flush(30)
    value, taken = bytes(1024), []

    def sent(at: float) -> Callable[[object, object], None]:
        return lambda error, message: taken.append(time.perf_counter() - at)

    started = time.perf_counter()
    for number in range(int(seconds * 1000)):
        while (left := started + number / 1000 - time.perf_counter()) > 0:
            producer.poll(left)
        producer.produce(topic, value, on_delivery=sent(time.perf_counter()))
    producer.flush(30)
    return statistics.quantiles(taken, n=100)[98] * 1000


def starts(brokers: Mapping[str, BrokerProcess], rounds: int) -> None:
    """Claims 1 and 2."""
    first = FirstRecord("first")
    seconds: dict[str, list[float]] = {name: [] for name in brokers}
    resident: dict[str, list[float]] = {name: [] for name in brokers}
    for broker in brokers.values():
        with broker.running():
            create(broker, NewTopic("first", 1, 1))
    for _ in range(rounds):
        for name, broker in brokers.items():
            started = time.perf_counter()
            broker.start()
            try:
                first.send(broker)
                seconds[name].append(time.perf_counter() - started)
                time.sleep(PAUSE_AT_REST_S)
                resident[name].append(broker.resident_bytes() / 1e6)
            finally:
                broker.stop()
    apache, ours = brokers
    print("process start to first acknowledged record, and memory at rest (medians)")
    _row("", apache, ours, "ratio", "bar")
    times = [statistics.median(seconds[name]) for name in (apache, ours)]
    _row("seconds", f"{times[0]:.2f}", f"{times[1]:.3f}", f"{times[0] / times[1]:.1f}x", "20x faster")
    sizes = [statistics.median(resident[name]) for name in (apache, ours)]
    _row("resident MB", f"{sizes[0]:.0f}", f"{sizes[1]:.0f}", f"{sizes[1] / sizes[0]:.3f}", "at most 0.1")


def compare(pairs: Sequence[tuple[Contender, Contender]], plan: Plan, java_path: str) -> None:
    """Claims 3 and 4: what Apache Kafka does first, ours second, every measurement in turns."""
    for apache, ours in pairs:
        print(f"\n{apache.name}: {apache.promise}\n{ours.name}: {ours.promise}")
        _row("MB/s (median)", apache.name, ours.name, "ratio", "bar")
        for size, partitions in LOADS:
            found: dict[tuple[str, str], list[float]] = {}
            for number in range(plan.rounds + 1):
                for contender in (apache, ours):
                    for what, rate in _rates(contender, size, partitions, plan, java_path):
                        if number:  # the first round is to warm up
                            found.setdefault((what, contender.name), []).append(rate)
            for what in dict.fromkeys(what for what, _ in found):
                rates = [statistics.median(found[what, contender.name]) for contender in (apache, ours)]
                title = f"{what}, {size} B, {partitions} partition{'s' * (partitions > 1)}"
                _row(title, f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{rates[1] / rates[0]:.2f}", "at least 0.7")
        delays: dict[str, list[float]] = {apache.name: [], ours.name: []}
        for _ in range(plan.rounds):
            for contender in (apache, ours):
                delays[contender.name].append(latency_p99(contender, plan.latency_s))
        p99 = [statistics.median(delays[contender.name]) for contender in (apache, ours)]
        _row("p99 at 1,000/s, ms", f"{p99[0]:.2f}", f"{p99[1]:.2f}", f"{p99[1] / p99[0]:.2f}", "at most 1")


def read_in_turns(apache: Contender, ours: Contender, rounds: int) -> None:
    """Consume, of claim 3, each one's topic again and again."""
    size, partitions = READING
    topics = {each.name: produce(each, size, partitions, READ_MEGABYTES)[0] for each in (apache, ours)}
    found: dict[str, list[float]] = {each.name: [] for each in (apache, ours)}
    for number in range(rounds + 1):
        for each in (apache, ours):
            rate = consume(each, topics[each.name], size, partitions, READ_MEGABYTES)
            if number:  # the first round is to warm up
                found[each.name].append(rate)
    _row("MB/s (median)", apache.name, ours.name, "ratio", "bar")
    rates = [statistics.median(found[each.name]) for each in (apache, ours)]
    title = f"consume, {size} B, {partitions} partitions, {READ_MEGABYTES} MB"
    _row(title, f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{rates[1] / rates[0]:.2f}", "1")


def _rates(contender: Contender, size: int, partitions: int, plan: Plan, path: str) -> Iterator[tuple[str, float]]:
    topic, rate = produce(contender, size, partitions, plan.megabytes)
    yield "produce", rate
    for _ in range(READS):
        yield "consume", consume(contender, topic, size, partitions, plan.megabytes)
    if plan.java:
        topic, rate = java_produce(path, contender, size, partitions, plan.megabytes)
        yield "produce (Java)", rate
        yield "consume (Java)", java_consume(path, contender, topic, size, plan.megabytes)


def _row(title: str, apache: str, ours: str, ratio: str, bar: str) -> None:
    print(f"  {title:38} {apache:>22} {ours:>22} {ratio:>8}  {bar}", flush=True)


@contextmanager
def _all_running(*brokers: BrokerProcess) -> Iterator[None]:
    with ExitStack() as stack:
        for broker in brokers:
            stack.enter_context(broker.running())
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="one round, smaller loads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--java", action="store_true", help="let Java's perf tools take turns too")
    parser.add_argument("--only", choices=["start", "speed", "consume"], help="one part of it")
    chosen = parser.parse_args()
    plan = Plan(1, 20, 3, False) if chosen.short else Plan(chosen.rounds, 40, 5, chosen.java)
    with tempfile.TemporaryDirectory(prefix="tagwire-bench-") as name:
        folder = Path(name)
        try:
            kafka = ApacheKafka(folder / "kafka")
        except MavenError as error:
            print(f"NOT RUN: Apache Kafka {RELEASE}: {error}")
            return
        synced, unsynced = Tagwire(folder / "synced"), Tagwire(folder / "unsynced", "never")
        if chosen.only in (None, "start"):
            starts({f"Kafka {RELEASE}": kafka, "tagwire": synced}, plan.rounds + 2)
        if chosen.only == "consume":
            with _all_running(kafka, synced):
                read_in_turns(
                    Contender("Kafka", kafka, "", {}), Contender("tagwire", synced, "", {}), plan.rounds * READS
                )
        elif chosen.only != "start":
            by_default = Contender("Kafka", kafka, "acknowledged when the operating system has it (default)", {})
            by_sync = Contender("Kafka, flush.messages=1", kafka, "acknowledged when it is on the disk", SYNCED)
            ours = Contender("tagwire", synced, "acknowledged when it is on the disk (default)", {})
            lazy = Contender("tagwire --fsync never", unsynced, "acknowledged when the operating system has it", {})
            with _all_running(kafka, synced, unsynced):
                compare([(by_default, ours), (by_sync, ours), (by_default, lazy)], plan, kafka.path)


if __name__ == "__main__":
    main()
