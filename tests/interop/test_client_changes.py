"""Clusters that change under a client: a broker that comes back as another release, a leader that dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tagwire.client import EARLIEST, Admin, Client, NewTopic, Producer, Reader, TopicPartition

from .conftest import Programs, ends_of
from .real_broker import RELEASES
from .real_node import SECONDS, RealNode

OLD, *NEWER = RELEASES
AT = TopicPartition("kept", 0)


def fill(producer: Producer, numbers: range) -> None:
    for number in numbers:
        producer.send("kept", b"%d" % number, headers=[("n", b"%d" % number)], partition=0)
    producer.flush()


def take(reader: Reader, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += next(reader)["value"].to_pylist()
    return found


@pytest.mark.parametrize("newer", ends_of(NEWER))
def test_a_broker_that_comes_back_as_another_release_is_asked_anew(
    programs: Programs, tmp_path: Path, newer: str
) -> None:
    node = RealNode.alone(tmp_path)
    node.format(programs(OLD).jars)
    jars = programs(newer).jars
    with ExitStack() as running:
        running.enter_context(node.running(programs(OLD).jars))
        client = running.enter_context(Client(node.address(), timeout=SECONDS))
        Admin(client).create_topics([NewTopic("kept"), NewTopic("moved")])
        producer, reader = Producer(client), Reader(client, {AT: EARLIEST})
        fill(producer, range(100))
        assert take(reader, 100) == [b"%d" % number for number in range(100)]
        mover = Producer(client, transactional_id="mover")
        mover.init_transactions()
        mover.begin_transaction()
        mover.send("moved", b"across the releases")
        mover.flush()
        before = client.versions()
        node.stop()
        node.start(jars)
        fill(producer, range(100, 200))  # while the broker is still starting
        assert take(reader, 100) == [b"%d" % number for number in range(100, 200)]
        after = client.versions()
        assert before[0][1] < after[0][1]
        assert before[1][0] < after[1][0]
        mover.commit_transaction(SECONDS)
        moved = Reader(client, {("moved", 0): 0}, end_offsets={("moved", 0): 1}, isolation="read_committed")
        assert take(moved, 1) == [b"across the releases"]
        assert Admin(client).describe_cluster().brokers.keys() == {1}


@pytest.fixture
def three(programs: Programs, tmp_path: Path) -> Iterator[list[RealNode]]:
    nodes = RealNode.several(tmp_path, 3)
    jars = programs(RELEASES[-1]).jars
    for node in nodes:
        node.format(jars)
    with ExitStack() as running:
        for node in nodes:
            running.callback(node.kill)
            node.start(jars)
        for node in nodes:
            node.await_listening()
        yield nodes


def test_reading_and_producing_go_on_when_a_leader_dies(three: list[RealNode]) -> None:
    with Client(",".join(node.address() for node in three), timeout=SECONDS) as client:
        _eventually(lambda: len(client.metadata([]).brokers) == 3)
        Admin(client).create_topics([NewTopic("kept", replication_factor=3, configs={"min.insync.replicas": "2"})])
        producer, reader = Producer(client), Reader(client, {AT: EARLIEST})
        fill(producer, range(100))
        assert take(reader, 100) == [b"%d" % number for number in range(100)]
        first = client.metadata([AT.topic]).topics[AT.topic].partitions[0].leader
        next(node for node in three if node.node == first).kill()
        fill(producer, range(100, 1100))
        assert take(reader, 1000) == [b"%d" % number for number in range(100, 1100)]
        assert client.metadata([AT.topic]).topics[AT.topic].partitions[0].leader not in (first, -1)


def _eventually(done: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < until
        time.sleep(0.2)
