"""Kafka Connect on a broker of ours: a source exactly once and a sink, while a worker and the broker are killed."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from kafka_jars import kafka

from tagwire.client import Admin, NewTopic, Reader, TopicPartition

from ..certificates import HOST
from .broker_process import BrokerProcess
from .conftest import Count, not_run_without
from .java_process import JavaProcess, fetch, properties
from .real_node import free_ports

RELEASE: Final = "4.3.1"
SECONDS: Final = 90
MODULES: Final = ("connect-runtime", "connect-file")
WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
TOPIC: Final = "lines"
STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS: Final = {
    "group.id": "workers",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "exactly.once.source.support": "enabled",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": 1,
    "offset.storage.partitions": 3,
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": 1,
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": 1,
    "status.storage.partitions": 2,
    "offset.flush.interval.ms": 500,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "scheduled.rebalance.max.delay.ms": 0,
    "producer.transaction.timeout.ms": 5000,
    "consumer.session.timeout.ms": 6000,
    "plugin.discovery": "service_load",
}
"""Of a worker: who was killed is missed, and its tasks are given to others, within seconds."""


BUSY: Final = (404, 409, 500, 503)
"""What a worker answers that still starts, whose group rebalances, or that has lost the leader it forwards to."""


class Worker:
    """A worker, at one address however often it is started."""

    def __init__(self, folder: Path, name: str, port: int, jars: list[Path], bootstrap: str) -> None:
        self.address = f"{HOST}:{port}"
        own = {"bootstrap.servers": bootstrap, "listeners": f"http://{self.address}", "client.id": name, **SETTINGS}
        self._settings = properties(folder / f"{name}.properties", own)
        self._log, self._jars = folder / f"{name}.log", jars
        self._process: JavaProcess | None = None

    def start(self) -> None:
        self._process = JavaProcess(self._log, self._jars, WORKER, self._settings)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> int:
        assert self._process is not None
        return self._process.stop(SECONDS)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What it answers; None while it cannot yet, because it starts or its group rebalances.

        Raises:
            AssertionError: it refuses.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.address}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            if error.code not in BUSY:
                raise AssertionError(f"{method} {path}: {error.code} {error.read()[:1000]!r}") from None
            return None
        except OSError:
            return None

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-5000:]


class Cluster:
    """Two workers and their broker."""

    def __init__(self, folder: Path, jars: list[Path], broker: BrokerProcess) -> None:
        self.folder, self.broker = folder, broker
        self.bootstrap = broker.addresses["PLAIN"]
        names = zip(("first", "second"), free_ports(2))
        workers = [Worker(folder, name, port, jars, self.bootstrap) for name, port in names]
        self.workers = {worker.address: worker for worker in workers}

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the first worker that can answer does."""
        return self.until(
            f"{method} {path}",
            lambda: next(
                (found for worker in self.workers.values() if (found := worker.ask(method, path, body)) is not None),
                None,
            ),
        )

    def until(self, what: str, holds: Callable[[], Any]) -> Any:
        """Tries until it gives something else than None or False."""
        deadline = time.monotonic() + SECONDS
        while (found := holds()) is None or found is False:
            assert time.monotonic() < deadline, "\n\n".join((what, *(each.said() for each in self.workers.values())))
            time.sleep(0.2)
        return found

    def status(self, connector: str) -> Any:
        return self.ask("GET", f"/connectors/{connector}/status")

    def await_task(self, connector: str, at: Callable[[str], bool] = lambda address: True) -> str:
        """Waits until the connector's task runs at a worker whose address will do; the address."""

        def found() -> str | None:
            tasks = self.status(connector)["tasks"]
            running = [task["worker_id"] for task in tasks if task["state"] == "RUNNING" and at(task["worker_id"])]
            return running[0] if running else None

        return str(self.until(f"a task of {connector}", found))

    def busy(self) -> set[str]:
        """The addresses of workers that run a task."""
        return {self.await_task(name) for name in self.ask("GET", "/connectors")}

    def topic(self) -> list[str]:
        """The committed values of the topic."""
        reader = Reader(self.bootstrap, {TopicPartition(TOPIC, 0): 0}, stop_at_end=True, isolation="read_committed")
        return [value.decode() for batch in reader for value in batch["value"].to_pylist()]


class Source:
    """A file that grows by numbered lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0

    @contextmanager
    def growing(self) -> Iterator[None]:
        stop = threading.Event()

        def grow() -> None:
            with open(self.path, "a", encoding="utf-8") as file:
                while not stop.wait(0.02):
                    file.writelines(f"line {number}\n" for number in range(self.lines, self.lines + 5))
                    file.flush()
                    self.lines += 5

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def expected(self) -> set[str]:
        return {f"line {number}" for number in range(self.lines)}


@pytest.fixture
def jars() -> list[Path]:
    with not_run_without():
        return fetch(f"connect-{RELEASE}", [kafka(module, RELEASE) for module in MODULES])


@pytest.fixture
def cluster(jars: list[Path], tmp_path: Path) -> Iterator[Cluster]:
    broker = BrokerProcess(tmp_path)
    with broker.running(), ExitStack() as running:
        with Admin(broker.addresses["PLAIN"]) as admin:
            admin.create_topics([NewTopic(TOPIC, num_partitions=1)])
        cluster = Cluster(tmp_path, jars, broker)
        for worker in cluster.workers.values():
            running.callback(worker.kill)
            worker.start()
        for worker in cluster.workers.values():
            cluster.until("two workers", lambda worker=worker: worker.ask("GET", "/connectors"))
        yield cluster
    assert broker.unexpected() == []


def test_connect_moves_lines_exactly_once_while_a_worker_and_the_broker_are_killed(
    cluster: Cluster, tmp_path: Path, count: Count
) -> None:
    source, sink = Source(tmp_path / "source.txt"), tmp_path / "sink.txt"
    reading = {"connector.class": "FileStreamSource", "file": str(source.path), "topic": TOPIC}
    exactly = {"exactly.once.support": "required", "transaction.boundary": "poll"}
    writing = {"connector.class": "FileStreamSink", "file": str(sink), "topics": TOPIC}
    committed = {"consumer.override.isolation.level": "read_committed"}

    def moved(count: int) -> Callable[[], bool]:
        return lambda: len(cluster.topic()) >= count

    def written() -> set[str]:
        return set(sink.read_text(encoding="utf-8").splitlines())

    with source.growing():
        cluster.ask("PUT", "/connectors/source/config", {**reading, **exactly})
        cluster.ask("PUT", "/connectors/sink/config", {**writing, **committed})
        at = cluster.await_task("source")
        cluster.await_task("sink")
        cluster.until("the first lines", moved(200))
        cluster.workers[at].kill()
        before = len(cluster.topic())
        cluster.await_task("source", lambda address: address != at)
        cluster.until("lines by the other worker", moved(before + 200))
        cluster.workers[at].start()
        cluster.broker.kill()
        cluster.broker.start()
        before = len(cluster.topic())
        cluster.until("lines by the new broker", moved(before + 200))
        cluster.until("work for both workers", lambda: cluster.busy() == set(cluster.workers))
    cluster.until("every line", lambda: len(cluster.topic()) >= source.lines and written() >= source.expected())
    assert cluster.topic() == [f"line {number}" for number in range(source.lines)]
    assert written() == source.expected()
    count(f"Kafka Connect {RELEASE}: {source.lines} lines exactly once, a worker and the broker killed")

    def offsets() -> Any:
        return cluster.ask("GET", "/connectors/sink/offsets")["offsets"]

    cluster.until("a commit", lambda: offsets()[0]["offset"]["kafka_offset"] > source.lines)  # markers count, too
    cluster.ask("PUT", "/connectors/sink/stop")
    cluster.until("no task", lambda: not cluster.status("sink")["tasks"])
    sink.unlink()
    altered = [{**offsets()[0], "offset": {"kafka_offset": 3}}]
    cluster.ask("PATCH", "/connectors/sink/offsets", {"offsets": altered})
    assert offsets() == altered
    cluster.ask("DELETE", "/connectors/sink/offsets")
    assert offsets() == []
    cluster.ask("PUT", "/connectors/sink/resume")
    cluster.until("every line again", lambda: sink.exists() and written() == source.expected())
