"""One process of Apache Kafka: a broker and a controller in one, on ports and in a folder that outlive it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..certificates import HOST, Certificates

SECONDS: Final = 60
CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"
USER: Final = "alice"
PASSWORD: Final = "correct-horse"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

PLAIN: Final = "PLAINTEXT"
PROTECTED: Final = {"LOGIN": "SASL_PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "BOTH": "SASL_SSL"}
"""Listeners by name, for a node that has certificates. All that ask for a login know `USER`; MUTUAL asks for a
certificate."""

_SETTINGS: Final = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners={listeners},CONTROLLER://{host}:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}
log.dirs={data}
offsets.topic.num.partitions=1
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
log.cleaner.backoff.ms=200
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
log.message.timestamp.before.max.ms=9223372036854775807
log.retention.ms=-1
"""
_PROTECTION: Final = """
sasl.enabled.mechanisms={mechanisms}
{logins}
ssl.keystore.type=PEM
ssl.keystore.location={broker}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.mutual.ssl.client.auth=required
"""
_JAAS: Final = {
    "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
}


@dataclass
class RealNode:
    """Any release may be started on what an older one has left.

    Attributes:
        voters: the controller's port of each node of the cluster, by node id.
        ports: of the listeners, by name.
        certificates: what the protected listeners show and trust; without them there is only the plain one.
        heap: of the process, as Java takes it.
        settings: more lines of server.properties; they win.
        options: of Java, such as the configuration of its log.
    """

    folder: Path
    voters: Mapping[int, int]
    node: int
    ports: Mapping[str, int]
    certificates: Certificates | None = None
    heap: str = "400m"
    settings: str = ""
    options: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @classmethod
    def alone(cls, folder: Path, certificates: Certificates | None = None) -> RealNode:
        """The only node of its cluster."""
        names = [PLAIN, *(PROTECTED if certificates else ())]
        controller, *ports = free_ports(1 + len(names))
        return cls(folder, {1: controller}, 1, dict(zip(names, ports)), certificates)

    @classmethod
    def several(cls, folder: Path, count: int) -> list[RealNode]:
        """The nodes of one cluster, small ones."""
        ports = free_ports(2 * count)
        voters = dict(enumerate(ports[:count], 1))
        nodes = [
            cls(folder / str(node), voters, node, {PLAIN: port}, heap="300m")
            for node, port in zip(voters, ports[count:])
        ]
        for node in nodes:
            node.folder.mkdir()
        return nodes

    def address(self, listener: str = PLAIN) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def format(self, jars: Sequence[Path], features: Sequence[str] = ()) -> None:
        """Makes the data directory, with the users of the protected listeners.

        Args:
            features: NAME=LEVEL of those that are not to be at the release's own level.
        """
        users = [
            argument
            for mechanism in MECHANISMS[1:]
            for argument in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
            if self.certificates
        ]
        levels = [argument for feature in features for argument in ("--feature", feature)]
        command = self._command(jars, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self._settings())
        done = subprocess.run([*command, *users, *levels], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    @contextmanager
    def running(self, jars: Sequence[Path]) -> Iterator[None]:
        """From listening to a clean shutdown."""
        try:
            self.start(jars)
            self.await_listening()
            yield
        finally:
            self.stop()

    def start(self, jars: Sequence[Path]) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command(jars, "kafka.Kafka", self._settings(), options=self.options),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    def await_listening(self) -> None:
        until = time.monotonic() + SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection((HOST, self.ports[PLAIN]), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("Kafka did not start:\n" + self._log.read_text(errors="replace")[-2000:])

    def stop(self) -> None:
        """Ends the process as an operator does; by force if that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Ends the process without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _settings(self) -> str:
        path = self.folder / "server.properties"
        protocols = {name: PROTECTED.get(name, name) for name in self.ports}
        text = _SETTINGS.format(
            node=self.node,
            voters=",".join(f"{node}@{HOST}:{port}" for node, port in self.voters.items()),
            listeners=",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            host=HOST,
            controller=self.voters[self.node],
            protocols=",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            data=self.folder / "data",
            replicas=len(self.voters),
        )
        if self.certificates is not None:
            guarded = [name for name, protocol in protocols.items() if protocol.startswith("SASL")]
            text += _PROTECTION.format(
                mechanisms=",".join(MECHANISMS),
                logins="\n".join(
                    f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config={login}"
                    for name in guarded
                    for mechanism, login in _JAAS.items()
                ),
                broker=self.certificates.broker,
                authority=self.certificates.authority,
            )
        path.write_text(text + self.settings, encoding="utf-8")
        return str(path)

    def _command(self, jars: Sequence[Path], program: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        small = [f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *small, *options, "-cp", ":".join(map(str, jars)), program, *arguments]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((HOST, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
