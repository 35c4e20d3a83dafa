"""Groups of members by Java, librdkafka, franz-go and tagwire, that join, leave and are killed while records flow.

Every record is processed at least once, and in transactions exactly once: judged from what each member wrote.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tagwire.broker import Broker, Cluster
from tagwire.client import LATEST, Admin, Client, NewTopic, Producer, Reader, TopicPartition

from .conftest import not_run_without
from .group_members import Group, running
from .real_broker import RELEASE, RealBroker
from .real_node import RealNode

PARTITIONS = 8
A_BREAK = 0.005
"""Seconds between two records."""

SHARED = {
    "range": ("java", "librdkafka", "franz-go", "tagwire"),
    "roundrobin": ("java", "librdkafka", "franz-go", "tagwire"),
    "sticky": ("java", "franz-go", "tagwire"),
    "cooperative-sticky": ("java", "librdkafka", "franz-go", "tagwire"),
    "consumer": ("java", "librdkafka", "franz-go", "tagwire"),
}
"""Clients by the assignor that they share; `consumer` is the protocol of KIP-848, where the broker assigns."""

SHORT_SESSIONS = """
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=3000
group.consumer.min.heartbeat.interval.ms=300
group.consumer.heartbeat.interval.ms=300
"""


KAFKA = f"Kafka {RELEASE}"


@pytest.fixture(scope="module", params=["tagwire", KAFKA])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of ours, then Kafka's own, on which sessions are short."""
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "tagwire":
        with Broker(folder / "data", group_session_timeout_s=3, group_heartbeat_interval_s=0.3) as broker:
            yield broker.bootstrap
        return
    with not_run_without():
        jars = RealBroker.fetch().jars
    node = RealNode.alone(folder)
    node.settings = SHORT_SESSIONS
    node.format(jars)
    with node.running(jars):
        yield node.address()


class Flow:
    """Records that are sent one after the other until it is told to end.

    Attributes:
        sent: the values that were delivered.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(bootstrap, topic))
        self._thread.start()

    def _send(self, bootstrap: str, topic: str) -> None:
        with Producer(bootstrap) as producer:
            deliveries, number = [], 0
            while not self._ended.wait(A_BREAK):
                value = f"v-{number}"
                deliveries.append((value, producer.send(topic, value.encode(), partition=number % PARTITIONS)))
                number += 1
            producer.flush()
            for value, delivery in deliveries:
                delivery.result(30)
                self.sent.add(value)

    def end(self) -> set[str]:
        """The values that were sent in all."""
        self._ended.set()
        self._thread.join()
        return self.sent


@contextmanager
def mixed_group(bootstrap: str, assignor: str, folder: Path, *, copies: bool = False) -> Iterator[tuple[Group, Flow]]:
    """A group without members yet, and what flows into its topic."""
    topic = f"t-{assignor}-{uuid.uuid4().hex[:8]}"
    target = f"{topic}-copies" if copies else None
    with Client(bootstrap) as client:
        topics = [NewTopic(topic, PARTITIONS), *([NewTopic(target, PARTITIONS)] if target else [])]
        Admin(client).create_topics(topics)
        client.list_offsets({TopicPartition(one.name, p): LATEST for one in topics for p in range(PARTITIONS)})
    flow = Flow(bootstrap, topic)
    try:
        with running(Group(bootstrap, topic, PARTITIONS, assignor, folder, target)) as group:
            yield group, flow
    finally:
        flow.end()


def come_and_go(group: Group, clients: tuple[str, ...]) -> None:
    """Members join, and each does its part; one is killed, another leaves, and both come back."""
    with not_run_without():
        members = [group.start(client) for client in clients]
    group.await_balance()
    if group.target is None:
        group.await_parts()
    group.kill(members[0])
    group.await_balance()
    group.stop(members[1])
    group.await_balance()
    group.start(members[0].client)
    group.start(members[1].client)
    group.await_balance()
    group.kill(members[-1])


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "consumer"])
def test_every_record_is_processed_whoever_joins_leaves_or_is_killed(
    bootstrap: str, assignor: str, tmp_path: Path
) -> None:
    _whoever_comes_and_goes(bootstrap, assignor, tmp_path)


# A broker does not look into what the members of a classic group agree on: Kafka's has less to show here.
@pytest.mark.parametrize(
    "bootstrap", ["tagwire", pytest.param(KAFKA, marks=pytest.mark.nightly)], indirect=True, scope="module"
)
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_every_record_is_processed_where_members_stop_before_each_assignment(
    bootstrap: str, assignor: str, tmp_path: Path
) -> None:
    _whoever_comes_and_goes(bootstrap, assignor, tmp_path)


def _whoever_comes_and_goes(bootstrap: str, assignor: str, tmp_path: Path) -> None:
    with mixed_group(bootstrap, assignor, tmp_path) as (group, flow):
        come_and_go(group, SHARED[assignor])
        sent = flow.end()
        group.await_processed(sent)
        assert set(group.processed()) == sent
        group.await_balance()
        group.stop(*group.members)
        with Admin(bootstrap) as admin:
            (lag,) = admin.group_lags(group.name)
        assert lag.lag == 0, "what was processed was committed"


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "consumer"])
def test_in_transactions_every_record_is_processed_exactly_once(bootstrap: str, assignor: str, tmp_path: Path) -> None:
    with mixed_group(bootstrap, assignor, tmp_path, copies=True) as (group, flow):
        come_and_go(group, SHARED[assignor])
        sent = flow.end()
        copies: Counter[str] = Counter()
        with Reader(bootstrap, group.target, isolation="read_committed") as reader:
            for record in reader.records():
                copies[(record.value or b"").decode()] += 1
                if len(copies) == len(sent):
                    break
        group.stop(*group.members)
        with Reader(bootstrap, group.target, isolation="read_committed", stop_at_end=True) as reader:
            copies = Counter((record.value or b"").decode() for record in reader.records())
        assert copies == Counter(sent)


def test_every_record_is_processed_while_a_group_changes_its_protocol_and_back(bootstrap: str, tmp_path: Path) -> None:
    with mixed_group(bootstrap, "range", tmp_path) as (group, flow):
        with not_run_without():
            classic = [group.start(client) for client in ("java", "tagwire")]
        group.await_balance()
        newer = [group.start(client, "consumer") for client in ("librdkafka", "franz-go", "tagwire")]
        group.await_balance()
        assert group_type(group) == "consumer"
        group.stop(classic[0])
        group.kill(classic[1])
        group.await_balance()
        older = [group.start(client) for client in ("java", "librdkafka", "tagwire")]
        group.await_balance()
        group.stop(*newer)
        group.await_balance()
        assert group_type(group) == "classic"
        sent = flow.end()
        group.await_processed(sent)
        assert set(group.processed()) == sent
        group.stop(*older)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "consumer"])
def test_every_record_is_processed_while_leaders_and_coordinators_move_and_a_node_ends(
    assignor: str, tmp_path: Path
) -> None:
    short = {"group_session_timeout_s": 3, "group_heartbeat_interval_s": 0.3}
    with (
        Cluster(3, tmp_path / "data", **short) as cluster,
        mixed_group(cluster.bootstrap, assignor, tmp_path) as (group, flow),
    ):
        with not_run_without():
            members = [group.start(client) for client in SHARED[assignor]]
        group.await_balance()
        group.await_parts()
        for partition in range(PARTITIONS):
            leader = cluster.leader(group.topic, partition) or 0
            cluster.move_leader(group.topic, partition, leader % 3 + 1)
        cluster.move_coordinator(cluster.coordinator(group.name) % 3 + 1, group.name)
        group.kill(members[0])
        group.await_balance()
        node = cluster.coordinator(group.name)
        cluster.kill(node)
        group.start(members[0].client)
        group.await_balance()
        cluster.start(node)
        group.stop(members[1])
        group.await_balance()
        sent = flow.end()
        group.await_processed(sent)
        assert set(group.processed()) == sent
        group.stop(*group.members)


def group_type(group: Group) -> str:
    with Admin(group.bootstrap) as admin:
        return admin.describe_groups(group.name)[group.name].type
