"""Members of a group that come, leave and are killed while records flow and brokers end: what each of them consumed."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from tagwire.broker import Cluster
from tagwire.client import Admin, Client, Consumer, NewTopic, Producer, RebalanceListener, TopicPartition
from tagwire.errors import CommitFailedError

from ..limits import stretch

PARTITIONS = 6
SESSION = 2.0
BATCH = 20


class Ledger(RebalanceListener):
    """What one member consumed: of a partition that it keeps, each record comes once, and in order."""

    def __init__(self) -> None:
        self.values: set[int] = set()
        self.next: dict[TopicPartition, int] = {}
        self.faults: list[str] = []

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.next.update(dict.fromkeys(partitions, -1))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self.next.pop(partition, None)

    def take(self, records: Sequence[Any]) -> None:
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            expected = self.next.get(partition)
            if expected is None:
                self.faults.append(f"{partition} is not the member's")
            elif expected not in (-1, record.offset):
                self.faults.append(f"{partition}: {record.offset} comes, and {expected} is next")
            self.next[partition] = record.offset + 1
            self.values.add(int(record.value))


class Member(threading.Thread):
    """A program that consumes and commits, until it is told to leave or is killed."""

    def __init__(self, client: Client, options: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.ledger = Ledger()
        self.consumer = Consumer(client, group="g", offset_reset="earliest", auto_commit=False, **options)
        self.error: BaseException | None = None
        self.leaves = threading.Event()
        self.is_killed = False
        self.start()

    def run(self) -> None:
        try:
            self.consumer.subscribe("t", self.ledger)
            while not self.leaves.is_set():
                self.ledger.take(self.consumer.poll(0.05))
                try:
                    self.consumer.commit(timeout=5.0)
                except CommitFailedError:  # a rebalance came first: who has the partitions now gets the records again
                    continue
            if not self.is_killed:
                self.consumer.close(5.0)
        except BaseException as error:
            if not self.is_killed:
                self.error = error

    def leave(self) -> None:
        self.leaves.set()
        self.join(20 * stretch())
        assert not self.is_alive()

    def kill(self) -> None:
        """Its connections end, and it says nothing."""
        self.is_killed = True
        self.leaves.set()
        self.consumer._thread.stop()
        self.join(20 * stretch())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_record_is_processed_while_members_and_brokers_come_and_go(protocol: str) -> None:
    timing = {"group_session_timeout_s": SESSION, "group_heartbeat_interval_s": 0.1}
    options: dict[str, Any] = {"protocol": protocol}
    if protocol == "classic":
        options |= {"assignors": "cooperative-sticky", "session_timeout": SESSION, "heartbeat_interval": 0.1}
    with Cluster(nodes=3, fsync="never", **timing) as cluster, Client(cluster.bootstrap) as client:
        Admin(client).create_topics([NewTopic("t", PARTITIONS, replication_factor=3)])
        members: list[Member] = []
        sent = 0
        with Producer(client, linger=0) as producer:

            def fill(batches: int) -> None:
                nonlocal sent
                for _ in range(batches):
                    for _ in range(BATCH):
                        producer.send("t", str(sent).encode(), partition=sent % PARTITIONS)
                        sent += 1
                    time.sleep(0.02)

            members += [Member(client, options), Member(client, options)]
            fill(10)
            members.append(Member(client, options))
            fill(10)
            cluster.move_coordinator(cluster.coordinator("g") % 3 + 1, "g")
            fill(10)
            members[0].leave()
            fill(10)
            members[1].kill()
            members.append(Member(client, options))
            fill(10)
            ended = cluster.coordinator("g")
            cluster.kill(ended)
            fill(10)
            cluster.start(ended)
            fill(10)
            producer.flush(20 * stretch())

        def consumed() -> set[int]:
            return set().union(*(member.ledger.values for member in members))

        until = time.monotonic() + 30 * stretch()
        while len(consumed()) < sent and time.monotonic() < until:
            time.sleep(0.05)
        for member in members[2:]:
            member.leave()
        assert consumed() == set(range(sent))
        assert [fault for member in members for fault in member.ledger.faults] == []
        assert [member.error for member in members if member.error is not None] == []
        committed = defaultdict(int, {at.partition: one.offset for at, one in Admin(client).group_offsets("g").items()})
        assert sum(committed.values()) == sent
