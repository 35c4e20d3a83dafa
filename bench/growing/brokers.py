"""Brokers of rows: each a process of its own, whose time and memory are then not the bench's.

    python -m growing.brokers '{"data_dir": ..., ...}'

starts one, says so in a line of JSON, and stops it when its standard input ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from growing.lines import Line, open_files, raise_open_files, resident
from tagwire.rpc.headers import RequestHeader, encode_request_header

FEW_LIMITS = {"max_topics": 300_000, "max_partitions": 300_000, "max_groups": 300_000, "max_groups_bytes": 1 << 33}
AT_ONCE = 200


@dataclass
class BrokerProcess:
    """A broker that runs. `start`: what it took from its first line of Python after its imports to being ready."""

    process: subprocess.Popen[str]
    bootstrap: str
    start: Line

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """As it should be stopped."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def start(**options: Any) -> BrokerProcess:
    """Starts one with options of `Broker`; `simulated` is how many partitions a made-up cluster has instead."""
    command = [sys.executable, "-m", "growing.brokers", json.dumps(options)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[1]), *sys.path])}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    told = process.stdout.readline()
    if not told:
        raise RuntimeError(f"the broker did not start: status {process.wait()}")
    said = json.loads(told)
    return BrokerProcess(process, said.pop("bootstrap"), Line(**said))


@contextmanager
def running(**options: Any) -> Iterator[BrokerProcess]:
    """One that is stopped at the end."""
    broker = start(**options)
    try:
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.stop()


class Pipeline:
    """One connection on which many requests are under way at once, in bytes that are made only here."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._file = self._socket.makefile("rb")

    def send_all(self, requests: Iterable[tuple[Any, int]]) -> Iterator[bytes]:
        """The frames of the responses to messages in versions, in their order."""
        waiting = 0
        out = bytearray()
        for message, version in requests:
            header = encode_request_header(RequestHeader(message.spec.api_key, version, 0, "growth"))
            body = message.encode(version)
            out += struct.pack(">i", len(header) + len(body)) + header + body
            waiting += 1
            if waiting == AT_ONCE:
                yield from self._responses(out, waiting)
                waiting, out = 0, bytearray()
        yield from self._responses(out, waiting)

    def _responses(self, out: bytearray, count: int) -> Iterator[bytes]:
        self._socket.sendall(out)
        for _ in range(count):
            (size,) = struct.unpack(">i", self._file.read(4))
            yield self._file.read(size)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def _serve(options: dict[str, Any]) -> None:
    from growing.simulated import simulate
    from tagwire.broker import Broker

    raise_open_files()
    simulated = options.pop("simulated", None)
    nodes = options.pop("nodes", 1)
    before = resident(os.getpid(), "VmRSS")
    cpu, started = time.process_time(), time.perf_counter()
    broker = Broker(**FEW_LIMITS, requests_kept=0, **options)
    with broker:
        told = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
        if simulated:
            simulate(broker, simulated, nodes)
        told["mib"] = resident(os.getpid(), "VmHWM") - before
        notes = {"open files": open_files(os.getpid()), "MiB resident": resident(os.getpid(), "VmRSS")}
        print(json.dumps({"bootstrap": broker.bootstrap, **told, "notes": notes}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
