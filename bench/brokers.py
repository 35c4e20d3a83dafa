"""Two brokers of one node as processes: Apache Kafka from its published jars, and `tagwire broker`.

Apache Kafka runs with the memory and garbage collector options of its own start script, and the settings it is
published with.
"""

from __future__ import annotations

import compileall
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from kafka_jars import classpath, kafka

import tagwire
from tagwire import messages
from tagwire.records import Record, write
from tagwire.rpc import NEED_DATA, Connection

RELEASE: Final = "4.3.1"
"""The newest release that is published whole."""

HOST: Final = "127.0.0.1"
SECONDS: Final = 60
CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
JAVA: Final = (
    "-server",
    "-Xmx1G",
    "-Xms1G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
SETTINGS: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class BrokerProcess(ABC):
    """A broker whose data outlives its process.

    Attributes:
        bootstrap: "host:port".
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.port, self._controller = free_ports(2)
        self.bootstrap = f"{HOST}:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it."""

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        finally:
            self._process.kill()

    @contextmanager
    def running(self) -> Iterator[None]:
        """From its first answer to its end."""
        self.start()
        try:
            self.await_listening()
            yield
        finally:
            self.stop()

    def await_listening(self) -> socket.socket:
        """The first connection that is accepted."""
        assert self._process is not None
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            try:
                return socket.create_connection((HOST, self.port), 5)
            except OSError:
                time.sleep(0.001)
        raise RuntimeError(f"it did not start: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")

    def resident_bytes(self) -> int:
        """The memory it takes now."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


class ApacheKafka(BrokerProcess):
    """Formatted when it is made.

    Raises:
        MavenError: its jars cannot be fetched.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        jars = classpath(
            f"broker-and-tools-{RELEASE}", [kafka("kafka_2.13", RELEASE), kafka("kafka-tools", RELEASE)], []
        )
        self.path = ":".join(map(str, jars))
        self._settings = folder / "server.properties"
        ports = {"port": self.port, "controller": self._controller}
        self._settings.write_text(SETTINGS.format(host=HOST, data=folder / "data", **ports))
        tool = ["java", "-cp", self.path, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._settings)]
        subprocess.run(tool, check=True, capture_output=True, timeout=SECONDS)

    def command(self) -> list[str]:
        return ["java", *JAVA, "-cp", self.path, "kafka.Kafka", str(self._settings)]


class Tagwire(BrokerProcess):
    """With the durability given: "batch", an fsync before each acknowledgement, or "never"."""

    def __init__(self, folder: Path, fsync: str = "batch") -> None:
        super().__init__(folder)
        self._fsync = fsync
        # An installation has its bytecode compiled; a checkout may not.
        compileall.compile_dir(Path(tagwire.__file__).parent, quiet=2)

    def command(self) -> list[str]:
        program = shutil.which("tagwire", path=str(Path(sys.executable).parent))
        start = [program] if program else [sys.executable, "-m", "tagwire"]
        return [
            *start,
            "broker",
            "--data",
            str(self.folder / "data"),
            "--listen",
            self.bootstrap,
            "--fsync",
            self._fsync,
        ]


class FirstRecord:
    """Produces one record with acks=all over a plain connection, again and again until it is acknowledged."""

    def __init__(self, topic: str) -> None:
        request = messages.ProduceRequest
        data = request.PartitionProduceData(index=0, records=write([Record(None, b"first", timestamp=0)]))
        topics = [request.TopicProduceData(name=topic, partition_data=[data])]
        self._request = request(acks=-1, timeout_ms=30_000, topic_data=topics)

    def send(self, broker: BrokerProcess) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with broker.await_listening() as connection:
                try:
                    if self._acknowledged(connection):
                        return
                except OSError:
                    pass
            time.sleep(0.001)
        raise RuntimeError("no record was acknowledged")

    def _acknowledged(self, connection: socket.socket) -> bool:
        connection.settimeout(5)
        rpc = Connection("client", client_id="bench")
        connection.sendall(rpc.send(self._request, 9))
        while (event := rpc.next_event()) is NEED_DATA:
            received = connection.recv(65536)
            if not received:
                return False
            rpc.receive(received)
        answer = event.message.responses[0].partition_responses[0]
        return bool(answer.error_code == 0)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((HOST, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
