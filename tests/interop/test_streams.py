"""Kafka Streams' own smoke test on a broker of ours, exactly once, while its clients and the broker are killed.

The test jar of Kafka Streams brings the topology, the client that runs it, and the driver that sends its records and
judges what was made of them: windows, aggregates, joins and suppressed updates, each counted once, and no transaction
left open.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from kafka_jars import Coordinates, kafka

from .broker_process import BrokerProcess
from .conftest import Count, not_run_without
from .java_process import JavaProcess, fetch, properties
from .peer import NotRunError, Peer, compiled

RELEASE: Final = "4.3.1"
SECONDS: Final = 240
BESIDE: Final[list[Coordinates]] = [
    kafka("kafka-streams", RELEASE, "test"),
    kafka("kafka-clients", RELEASE, "test"),
    ("org.junit.jupiter", "junit-jupiter-api", "5.13.1"),
    ("org.hamcrest", "hamcrest", "3.0"),
]
"""The smoke test, and what its classes name."""

CLIENT: Final = "org.apache.kafka.streams.tests.StreamsSmokeTest"
SETTINGS: Final = {
    "processing.guarantee": "exactly_once_v2",
    "replication.factor": 1,
    "commit.interval.ms": 500,
    "consumer.session.timeout.ms": 6000,
    "consumer.heartbeat.interval.ms": 500,
    "producer.transaction.timeout.ms": 5000,
}
"""Of a client: who was killed is missed, and its transaction aborted, within seconds."""


@pytest.fixture
def jars() -> list[Path]:
    """The driver and everything it needs."""
    with not_run_without():
        if shutil.which("javac") is None:
            raise NotRunError("javac (17 or newer) is not on the PATH")
        found = fetch(f"streams-{RELEASE}", [kafka("kafka-streams", RELEASE)], BESIDE)
    return [compiled(Peer(RELEASE, tuple(found)), "StreamsSmoke"), *found]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path)
    with broker.running():
        yield broker
    assert broker.unexpected() == []


def test_streams_is_exactly_once_while_clients_and_broker_are_killed(
    jars: list[Path], broker: BrokerProcess, tmp_path: Path, count: Count
) -> None:
    bootstrap = broker.addresses["PLAIN"]
    with ExitStack() as running:

        def started(log: str, program: str, *arguments: str) -> JavaProcess:
            process = JavaProcess(tmp_path / f"{log}.log", jars, program, *arguments)
            running.callback(process.kill)
            return process

        def client(name: str) -> JavaProcess:
            own = {"bootstrap.servers": bootstrap, "state.dir": tmp_path / name, **SETTINGS}
            return started(name, CLIENT, properties(tmp_path / f"{name}.properties", own), "process")

        driver = started("driver", "StreamsSmoke", bootstrap)
        driver.await_line("^topics made", SECONDS)
        first, second = client("first"), client("second")
        driver.await_line(" 1000 records produced", SECONDS)
        first.kill()
        first = client("first")
        driver.await_line(" 2000 records produced", SECONDS)
        broker.kill()
        broker.start()
        driver.await_line(" 3500 records produced", SECONDS)
        second.kill()
        second = client("second")
        driver.await_line("^all sent", SECONDS)
        broker.kill()
        broker.start()
        code = driver.wait(SECONDS)
        printed = driver.printed()
        assert code == 0, printed[-10000:]
        assert printed.rstrip().endswith("SUCCESS"), printed[-10000:]
        for each in (first, second):
            assert each.stop(SECONDS) == 143  # by the signal, after it has closed
            assert "SMOKE-TEST-CLIENT-CLOSED" in each.printed(), each.printed()[-5000:]
    count(f"Kafka Streams {RELEASE}: SUCCESS of its smoke test, exactly once, two clients and the broker twice killed")
