"""Clients on a cluster whose leaders and coordinators move, and whose nodes end and hang, for as long as they work.

Whatever is acknowledged is in the log once, in order, and is read once, in order.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from tagwire.broker import Cluster
from tagwire.client import Admin, Client, Consumer, NewTopic, Producer, Reader
from tagwire.errors import LogTruncationError
from tagwire.partitions import EARLIEST

from ..limits import stretch

PARTITIONS = 4
PATIENCE_S = 60.0 * stretch()
SEED = int(os.environ.get("TAGWIRE_SEED", "1"))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, fsync="never") as running:
        with Client(running.bootstrap) as client:
            Admin(client).create_topics([NewTopic("t", PARTITIONS)])
        yield running


def moves(cluster: Cluster, random: Random) -> None:
    cluster.move_leader("t", random.randrange(PARTITIONS), random.choice(list(cluster.nodes)))
    cluster.move_coordinator(random.choice(list(cluster.nodes)), "g")
    cluster.move_coordinator(random.choice(list(cluster.nodes)), transactional_id="tx")


def ends(cluster: Cluster, random: Random) -> None:
    node = random.choice(list(cluster.nodes))
    random.choice([cluster.stop, cluster.kill])(node)
    moves_among(cluster, random, node)
    cluster.start(node)


def hangs(cluster: Cluster, random: Random) -> None:
    node = random.choice(list(cluster.nodes))
    cluster.isolate(node)
    moves_among(cluster, random, node)
    cluster.heal(node)


def moves_among(cluster: Cluster, random: Random, gone: int) -> None:
    rest = [node for node in cluster.nodes if node != gone]
    cluster.move_leader("t", random.randrange(PARTITIONS), random.choice(rest))
    cluster.move_coordinator(random.choice(rest), "g")


TROUBLES = {"moves": moves, "ends": ends, "hangs": hangs}


OFTEN = 10
"""What a client is to live through at least."""


class Trouble:
    """What happens again and again, and how often it has."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[BaseException] = []

    @property
    def is_enough(self) -> bool:
        return self.count >= OFTEN or bool(self.failures)


@contextmanager
def troubled(cluster: Cluster, kind: str) -> Iterator[Trouble]:
    """One of TROUBLES again and again, until the block ends."""
    over = threading.Event()
    trouble, random = Trouble(), Random(SEED)

    def run() -> None:
        try:
            while not over.wait(0.01):
                TROUBLES[kind](cluster, random)
                trouble.count += 1
        except BaseException as error:
            trouble.failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield trouble
    finally:
        over.set()
        thread.join()
    assert not trouble.failures


def stored(cluster: Cluster, isolation: str = "read_uncommitted") -> dict[int, list[bytes | None]]:
    """What is in the log, once nothing happens any more."""
    values: dict[int, list[bytes | None]] = {index: [] for index in range(PARTITIONS)}
    starts = {("t", index): EARLIEST for index in values}
    with Reader(cluster.bootstrap, starts, stop_at_end=True, isolation=isolation) as reader:
        for record in reader.records():
            values[record.partition].append(record.value)
    return values


@pytest.mark.parametrize("kind", TROUBLES)
def test_what_a_producer_was_told_is_in_the_log_is_there_once_and_in_order(cluster: Cluster, kind: str) -> None:
    sent: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    with (
        Producer(cluster.bootstrap, timeout=PATIENCE_S, linger=0.001) as producer,
        troubled(cluster, kind) as trouble,
    ):
        deliveries = []
        for number in itertools.count():
            if trouble.is_enough:
                break
            for index in range(PARTITIONS):
                sent[index].append(b"%d" % number)
                deliveries.append(producer.send("t", b"%d" % number, partition=index))
            producer.flush()
        offsets = [(delivery.result().partition, delivery.result().offset) for delivery in deliveries]
    assert stored(cluster) == sent
    assert len(set(offsets)) == len(offsets)


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_reader_reads_each_record_once_and_in_order(cluster: Cluster, kind: str) -> None:
    values = [b"%d" % number for number in range(40)]
    with Producer(cluster.bootstrap) as producer:
        for value in values:
            for index in range(PARTITIONS):
                producer.send("t", value, partition=index)
            producer.flush()  # a batch each
    starts = {("t", index): EARLIEST for index in range(PARTITIONS)}
    with Client(cluster.bootstrap, timeout=PATIENCE_S) as client, troubled(cluster, kind) as trouble:
        while not trouble.is_enough:
            read: dict[int, list[bytes | None]] = {index: [] for index in range(PARTITIONS)}
            with Reader(client, starts, stop_at_end=True, max_partition_bytes=200) as reader:
                for record in reader.records():
                    read[record.partition].append(record.value)
            assert read == dict.fromkeys(range(PARTITIONS), values)


def test_a_reader_of_what_an_unclean_election_lost_is_told_where_the_log_parts(cluster: Cluster) -> None:
    def send(value: bytes) -> None:
        with Producer(cluster.bootstrap) as producer:
            for _ in range(10):
                producer.send("t", value, partition=0)
                producer.flush()  # a batch each

    send(b"before")
    with Reader(cluster.bootstrap, {("t", 0): EARLIEST}) as reader:
        records = reader.records()
        assert [next(records).offset for _ in range(10)] == list(range(10))
        cluster.truncate("t", 0, 4)
        send(b"after")
        with pytest.raises(LogTruncationError, match="t-0"):
            next(records)


@pytest.mark.parametrize("kind", TROUBLES)
def test_transactions_are_seen_whole_or_not_at_all(cluster: Cluster, kind: str) -> None:
    committed = []
    with (
        Producer(cluster.bootstrap, transactional_id="tx", timeout=PATIENCE_S) as producer,
        troubled(cluster, kind) as trouble,
    ):
        producer.init_transactions()
        for number in itertools.count():
            if trouble.is_enough:
                break
            producer.begin_transaction()
            for index in range(PARTITIONS):
                producer.send("t", b"%d" % number, partition=index)
            if number % 3:
                producer.commit_transaction()
                committed.append(b"%d" % number)
            else:
                producer.abort_transaction()
    assert stored(cluster, "read_committed") == dict.fromkeys(range(PARTITIONS), committed)


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_member_of_a_group_gets_every_record_at_least_once(cluster: Cluster, kind: str) -> None:
    count = 0
    seen: Counter[tuple[int, bytes | None]] = Counter()
    options = {"auto.offset.reset": "earliest", "session.timeout.ms": 20_000, "heartbeat.interval.ms": 100}
    with (
        Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", **options}) as consumer,
        Producer(cluster.bootstrap, timeout=PATIENCE_S) as producer,
        troubled(cluster, kind) as trouble,
    ):
        consumer.subscribe(["t"])
        while not trouble.is_enough:
            for index in range(PARTITIONS):
                producer.send("t", b"%d" % count, partition=index)
            producer.flush()
            count += 1
            for record in consumer.consume(100, timeout=0.01):
                seen[record.partition, record.value] += 1
            if count % 10 == 0:
                consumer.commit()
        while len(seen) < count * PARTITIONS:
            for record in consumer.consume(100, timeout=1.0):
                seen[record.partition, record.value] += 1
    assert seen.keys() == {(index, b"%d" % number) for index in range(PARTITIONS) for number in range(count)}
