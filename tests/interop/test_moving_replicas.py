"""Replicas that move and leaders that are elected on two nodes of Kafka: what we and Kafka's own tools do and tell.

Moves stay under way as long as the test wants: followers are throttled to a byte a second, and fetch a batch at a time.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tagwire.cli import main
from tagwire.client import Admin, Client, NewTopic, Producer
from tagwire.errors import KafkaError

from ..limits import wait_until
from .real_broker import RealBroker
from .real_node import SECONDS, RealNode

pytestmark = pytest.mark.nightly

TOPIC: Final = "moved"
AT: Final = (TOPIC, 0)
_REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"
_UNDER_WAY: Final = re.compile(
    r"^(\S+)-(\d+): replicas: ([\d,]+)\.(?: adding: ([\d,]+)\.)?(?: removing: ([\d,]+)\.)?$", re.M
)

Tool = Callable[..., str]
Moves = dict[tuple[str, int], tuple[list[int], list[int], list[int]]]
"""Of partitions that move: their replicas, those that come and those that go."""


@pytest.fixture(scope="module")
def bootstrap(kafka: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    nodes = RealNode.several(tmp_path_factory.mktemp("kafka-moves"), 2)
    with ExitStack() as running:
        for node in nodes:
            node.settings = "auto.leader.rebalance.enable=false\nreplica.fetch.max.bytes=1000\n"
            node.format(kafka.jars)
            running.callback(node.stop)
            node.start(kafka.jars)
        for node in nodes:
            node.await_listening()
        yield nodes[0].address()


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Client(bootstrap, timeout=SECONDS) as client:
        one = Admin(client)
        wait_until(lambda: len(one.describe_cluster().brokers) == 2, SECONDS)
        one.create_topics([NewTopic(TOPIC, 1, 1)])
        with Producer(client) as producer:
            for _ in range(200):
                producer.send(TOPIC, b"v" * 10_000)
        yield one


@pytest.fixture
def tool(kafka: RealBroker, bootstrap: str) -> Tool:
    """Runs a tool of Kafka's; what it prints."""

    def run(program: str, *arguments: str) -> str:
        small = ["-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = ["java", *small, "-cp", ":".join(map(str, kafka.jars)), program, "--bootstrap-server", bootstrap]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    return run


def plan(path: Path, replicas: list[int]) -> str:
    partitions = [{"topic": TOPIC, "partition": 0, "replicas": replicas}]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def throttled(admin: Admin, *, to: bool) -> None:
    """Throttles what moves, or no more; in force on both nodes when it returns, as far as they tell."""
    everything, rate = ("*", "1") if to else (None, None)
    sides = ("leader", "follower")
    admin.alter_configs({("topic", TOPIC): {f"{side}.replication.throttled.replicas": everything for side in sides}})
    brokers = [("broker", str(node)) for node in (1, 2)]
    admin.alter_configs({each: {f"{side}.replication.throttled.rate": rate for side in sides} for each in brokers})


def replicas(admin: Admin) -> tuple[list[int], int | None]:
    """Where the partition is, and who leads it."""
    (partition,) = next(one for one in admin.list_topics() if one.name == TOPIC).partitions.values()
    return list(partition.replicas), partition.leader


def moves_by_us(admin: Admin) -> Moves:
    return {
        (at.topic, at.partition): (list(each.replicas), list(each.adding_replicas), list(each.removing_replicas))
        for at, each in admin.list_partition_reassignments().items()
    }


def moves_by_kafka(tool: Tool) -> Moves:
    return {
        (found[1], int(found[2])): tuple([int(one) for one in (found[n] or "").split(",") if one] for n in (3, 4, 5))
        for found in _UNDER_WAY.finditer(tool(_REASSIGN, "--list"))
    }  # type: ignore[misc]


def test_both_tell_the_same_of_a_move_whoever_began_it_and_each_ends_the_others(
    admin: Admin, tool: Tool, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home,), _ = replicas(admin)
    away = 3 - home
    there, back = plan(tmp_path / "there.json", [away]), plan(tmp_path / "back.json", [home])
    under_way = {AT: ([away, home], [away], [home])}

    def ours(*words: str) -> int:
        return main(["reassign", *words, "--bootstrap", bootstrap])

    def theirs(word: str, file: str, *more: str) -> str:
        return tool(_REASSIGN, word, "--reassignment-json-file", file, *more)

    throttled(admin, to=True)
    assert ours("execute", there) == 0  # begun by us, cancelled by Kafka's tool
    assert moves_by_us(admin) == moves_by_kafka(tool) == under_way
    assert ours("verify", there) == 1
    assert "still in progress" in theirs("--verify", there, "--preserve-throttles")
    assert "Successfully cancelled" in theirs("--cancel", there, "--preserve-throttles")
    assert moves_by_us(admin) == {}
    assert replicas(admin)[0] == [home]

    assert "Successfully started" in theirs("--execute", there)  # and the other way round
    assert moves_by_us(admin) == moves_by_kafka(tool) == under_way
    capsys.readouterr()
    assert ours("cancel", there) == 0
    assert f"cancelled the move of {TOPIC}-0" in capsys.readouterr().out
    assert moves_by_kafka(tool) == {}
    assert "is completed" in theirs("--verify", back, "--preserve-throttles")

    assert ours("execute", there) == 0
    throttled(admin, to=False)
    assert ours("execute", there, "--wait") == 0
    assert replicas(admin) == ([away], away)
    assert ours("verify", there) == 0
    assert "is completed" in theirs("--verify", there)
    assert "Successfully started" in theirs("--execute", back)
    wait_until(lambda: ours("verify", back) == 0, SECONDS)
    assert replicas(admin) == ([home], home)


def test_both_elect_the_same_leaders(
    admin: Admin, tool: Tool, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, *_), _ = replicas(admin)
    second = 3 - first
    partition = ["--topic", TOPIC, "--partition", "0"]

    def prefer(node: int) -> None:
        admin.alter_partition_reassignments({AT: [node, 3 - node]})
        wait_until(lambda: replicas(admin)[0] == [node, 3 - node], SECONDS)
        wait_until(lambda: not admin.list_partition_reassignments(), SECONDS)

    prefer(first)
    assert replicas(admin)[1] == first
    prefer(second)
    assert replicas(admin)[1] == first  # nobody has elected
    assert main(["elect-leaders", TOPIC, "--bootstrap", bootstrap]) == 0
    wait_until(lambda: replicas(admin)[1] == second, SECONDS)
    assert "Valid replica already elected" in tool(_ELECT, "--election-type", "preferred", *partition)
    prefer(first)
    printed = tool(_ELECT, "--election-type", "preferred", *partition)
    assert f"Successfully completed leader election (PREFERRED) for partitions {TOPIC}-0" in printed
    wait_until(lambda: replicas(admin)[1] == first, SECONDS)
    capsys.readouterr()
    assert main(["elect-leaders", TOPIC, "--bootstrap", bootstrap]) == 0
    assert "no election was needed" in capsys.readouterr().out
    assert "Valid replica already elected" in tool(_ELECT, "--election-type", "unclean", *partition)
    assert not any(admin.elect_leaders("unclean", [AT]).values())
    with pytest.raises(KafkaError, match=f"{TOPIC}-7"):
        admin.elect_leaders("preferred", [(TOPIC, 7)])
