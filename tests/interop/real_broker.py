"""Apache Kafka's own broker and its tool that prints segments, from the published jars."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_jars import MavenError, classpath, kafka

from .peer import NotRunError

RELEASE: Final = "4.1.0"
"""A release whose broker's jars are all published."""

SECONDS: Final = 60
CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
SETTINGS: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
log.message.timestamp.before.max.ms=9223372036854775807
log.retention.ms=-1
"""


@dataclass(frozen=True)
class RealBroker:
    """What is needed to run Kafka's own programs."""

    jars: tuple[Path, ...]

    @classmethod
    def fetch(cls) -> RealBroker:
        """Fetches the jars. Raises NotRunError where they, or Java, are not to be had."""
        if shutil.which("java") is None:
            raise NotRunError("java (17 or newer) is not on the PATH")
        try:
            found = classpath(f"broker-{RELEASE}", [kafka("kafka_2.13", RELEASE), kafka("kafka-tools", RELEASE)], [])
        except MavenError as error:
            raise NotRunError(f"Kafka {RELEASE}: {error}") from None
        return cls(tuple(found))

    @contextmanager
    def running(self, folder: Path) -> Iterator[str]:
        """A broker of one node that keeps its data in `folder`/data; where it listens. Ends with a clean shutdown."""
        port, controller = _free_ports(2)
        settings = folder / "server.properties"
        settings.write_text(SETTINGS.format(port=port, controller=controller, data=folder / "data"))
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings))
        with open(folder / "server.log", "wb") as log:
            process = subprocess.Popen(
                self._command("kafka.Kafka", str(settings)), stdout=log, stderr=subprocess.STDOUT, cwd=folder
            )
            try:
                _await_listening(process, port, folder / "server.log")
                yield f"127.0.0.1:{port}"
            finally:
                process.terminate()
                try:
                    process.wait(SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def dump(self, files: Sequence[Path], *options: str) -> list[str]:
        """What kafka-dump-log prints of files."""
        return self._run("kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, files))).splitlines()

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(self._command(program, *arguments), capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def _command(self, program: str, *arguments: str) -> list[str]:
        return ["java", "-Xmx512m", "-cp", ":".join(map(str, self.jars)), program, *arguments]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _await_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("Kafka did not start:\n" + log.read_text(errors="replace")[-2000:])
