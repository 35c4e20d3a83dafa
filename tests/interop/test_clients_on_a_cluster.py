"""Members by Java, librdkafka, franz-go and tagwire on our cluster: its leaders and coordinators move, and nodes end.

Each copies records in transactions: every record is in the copy once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tagwire.broker import Cluster
from tagwire.client import EARLIEST, Admin, Client, NewTopic, Producer, Reader

from ..limits import wait_until
from .conftest import not_run_without
from .group_members import COMMANDS, SECONDS, Group, running

PARTITIONS = 4


def copied(cluster: Cluster) -> Counter[str]:
    starts = {("copy", index): EARLIEST for index in range(PARTITIONS)}
    with Reader(cluster.bootstrap, starts, stop_at_end=True, isolation="read_committed") as reader:
        return Counter((record.value or b"").decode() for record in reader.records())


def leaders_move(cluster: Cluster) -> None:
    for topic in ("t", "copy"):
        for index in range(PARTITIONS):
            cluster.move_leader(topic, index, (cluster.leader(topic, index) or 0) % 3 + 1)


def coordinators_move(cluster: Cluster) -> None:
    cluster.move_coordinator(cluster.coordinator("group-of-t") % 3 + 1, "group-of-t")
    for name in transactional_ids(cluster):
        cluster.move_coordinator(cluster.coordinator(transactional_id=name) % 3 + 1, transactional_id=name)


def transactional_ids(cluster: Cluster) -> list[str]:
    with Client(cluster.bootstrap) as client:
        return [listed.transactional_id for listed in Admin(client).list_transactions()]


def start_all(cluster: Cluster) -> None:
    for node in cluster.nodes:
        cluster.start(node)


def to_end(cluster: Cluster, client: str) -> int:
    """The node that is to end: the one whose end is worst for a member, the group's coordinator.

    Of librdkafka's (2.16) it is another one: its producer waits for ever to send offsets to a coordinator that has gone
    from the metadata, whatever the group's protocol is (https://github.com/confluentinc/librdkafka/issues/5511).
    """
    coordinator = cluster.coordinator("group-of-t")
    return coordinator % 3 + 1 if client == "librdkafka" else coordinator


@pytest.mark.parametrize("assignor", ["range", "consumer"])
@pytest.mark.parametrize("client", COMMANDS)
def test_each_record_is_copied_once_while_leaders_and_coordinators_move_and_nodes_end(
    client: str, assignor: str, tmp_path: Path
) -> None:
    with not_run_without():
        COMMANDS[client]()
    timing = {"group_session_timeout_s": 3, "group_heartbeat_interval_s": 0.3}
    with Cluster(3, tmp_path / "data", **timing) as cluster:
        with Client(cluster.bootstrap) as admin:
            Admin(admin).create_topics([NewTopic(name, PARTITIONS, replication_factor=3) for name in ("t", "copy")])
        troubles: list[Callable[[], None]] = [
            lambda: leaders_move(cluster),
            lambda: coordinators_move(cluster),
            lambda: cluster.stop(to_end(cluster, client)),
            lambda: start_all(cluster),
            lambda: cluster.kill(to_end(cluster, client)),
            lambda: start_all(cluster),
        ]
        group = Group(cluster.nodes[1].bootstrap, "t", PARTITIONS, assignor, tmp_path, "copy")
        with running(group), Producer(cluster.bootstrap, timeout=SECONDS) as producer:
            group.start(client)
            sent: Counter[str] = Counter()
            for round_, trouble in enumerate([lambda: None, *troubles]):
                trouble()
                values = [f"{round_}-{number}" for number in range(40)]
                for value in values:
                    producer.send("t", value.encode())
                producer.flush()
                sent.update(values)
                # A member that a stopped coordinator forgot joins anew after its session, and waits for the others.
                wait_until(lambda: copied(cluster).keys() >= sent.keys(), 3 * SECONDS)
            assert copied(cluster) == sent
            group.stop(*group.members)
