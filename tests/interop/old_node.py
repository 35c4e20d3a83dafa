"""One broker of a release that still keeps its cluster's state in ZooKeeper, and that ZooKeeper beside it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..certificates import HOST
from .real_node import PLAIN, SECONDS, RealNode

_SETTINGS: Final = """
broker.id=1
listeners=PLAINTEXT://{host}:{port}
zookeeper.connect={host}:{zookeeper}
log.dirs={data}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@dataclass
class OldNode(RealNode):
    """What the others take for the controller's port is ZooKeeper's."""

    def format(self, jars: Sequence[Path]) -> None:
        """There is nothing to be made."""

    @contextmanager
    def running(self, jars: Sequence[Path]) -> Iterator[None]:
        port = self.voters[self.node]
        command = self._command(
            jars,
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(port),
            str(self.folder / "zookeeper"),
            options=["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true"],
        )
        with open(self.folder / "zookeeper.log", "ab") as log:
            zookeeper = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        try:
            _await_port(port)
            with super().running(jars):
                yield
        finally:
            zookeeper.terminate()
            zookeeper.wait(SECONDS)

    def _settings(self) -> str:
        path = self.folder / "server.properties"
        port, zookeeper = self.ports[PLAIN], self.voters[self.node]
        text = _SETTINGS.format(host=HOST, port=port, zookeeper=zookeeper, data=self.folder / "data")
        path.write_text(text + self.settings, encoding="utf-8")
        return str(path)


def _await_port(port: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nobody listens at {port}")
