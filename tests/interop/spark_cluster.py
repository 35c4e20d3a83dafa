"""A standalone cluster of Spark on this machine: a master, and workers as if each were on a host of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from ..spark import killing
from .real_node import free_ports
from .spark_job import QUICK

HOME: Final = Path(pyspark.__file__).parent
SECONDS: Final = 60
SETTINGS: Final = {"spark.executor.memory": "500m", "spark.executor.cores": "1"}
"""Of a session, so that each worker takes one executor that runs a task at a time."""


class SparkCluster:
    """One that stands.

    Attributes:
        master: its address, as a session takes it.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self._log = folder / "log"
        self._workers: list[subprocess.Popen[str]] = []
        self._master = self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._await(port)
        for number in range(workers):
            # Spark runs the second attempt of a task on another host.
            self._workers.append(
                self._start(
                    *("worker.Worker", "--host", f"127.0.0.{2 + number}", "--cores", "1", "--memory", "600m"),
                    *("--webui-port", "0", "--work-dir", str(folder / str(number)), self.master),
                )
            )

    @classmethod
    @contextmanager
    def running(cls, folder: Path, workers: int) -> Iterator[SparkCluster]:
        cluster = cls(folder, workers)
        try:
            yield cluster
        finally:
            for each in [*cluster._workers, cluster._master]:
                killing.kill(each)
                each.communicate()

    def kill_worker_of(self, process: int) -> None:
        """Kills a worker dead, with its executors and theirs, of which this process is one."""
        (worker,) = [each for each in self._workers if each.pid == os.getsid(process)]
        killing.kill(worker)
        worker.wait()

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments],
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
                env=os.environ
                | {
                    "SPARK_HOME": str(HOME),
                    "SPARK_DAEMON_MEMORY": "128m",
                    "SPARK_DAEMON_JAVA_OPTS": QUICK,
                    "SPARK_NO_DAEMONIZE": "1",
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
            )

    def _await(self, port: int) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("Spark did not start:\n" + self._log.read_text(errors="replace")[-2000:])
