"""A broker of ours in a process of its own, with a listener of each kind: `python broker_process.py DATA CERTIFICATES`.

Its first line says where each listens, as JSON. At SIGUSR1 it prints how many tasks its event loop has.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tagwire.broker import Listener, Settings, Tls, serve

USER: Final = "alice"
PASSWORD: Final = "correct-horse"
SECONDS: Final = 30
UNEXPECTED: Final = ("could not be handled", "Traceback", "never retrieved", "never awaited")
"""What a broker's log says of errors that none of its rules foresaw."""


class BrokerProcess:
    """One that can be started again on the same data, at the same ports.

    Attributes:
        folder: its data, its log and, if they are made there, the certificates `broker.pem` and `authority.pem`.
        addresses: "host:port" by kind of listener: PLAIN, TLS, SASL, SASL_TLS, MUTUAL_TLS.
    """

    def __init__(self, folder: Path, partitions: int = 1) -> None:
        self.folder = folder
        self.addresses: Mapping[str, str] = {}
        self._partitions = partitions
        self._process: subprocess.Popen[str] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """From listening to an end in order."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        asked = [str(self.folder), str(self._partitions), *self.addresses.values()]
        with open(self.folder / "log", "ab") as log:
            command = [sys.executable, __file__, *asked]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self._line()
        assert ready, (self.folder / "log").read_text(errors="replace")[-3000:]
        self.addresses = json.loads(ready)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            assert self._process.wait(SECONDS) == 0
        finally:
            self.kill()

    def kill(self) -> None:
        """End it without a word."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def tasks(self) -> int:
        """How many tasks its event loop has."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        return int(self._line())

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def unexpected(self) -> list[str]:
        """The lines of its log that should never be there."""
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        return [line for line in lines if any(sign in line for sign in UNEXPECTED)]

    def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _main(folder: Path, partitions: int, addresses: list[str]) -> None:
    ports = [int(address.rpartition(":")[2]) for address in addresses] or [0] * 5
    listeners = {"PLAIN": Listener(port=ports[0])}
    if (folder / "broker.pem").is_file():
        tls = Tls(folder / "broker.pem")
        mutual = Tls(folder / "broker.pem", client_ca=folder / "authority.pem")
        mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        listeners["TLS"] = Listener(port=ports[1], tls=tls)
        listeners["SASL"] = Listener(port=ports[2], sasl=mechanisms)
        listeners["SASL_TLS"] = Listener(port=ports[3], tls=tls, sasl=mechanisms)
        listeners["MUTUAL_TLS"] = Listener(port=ports[4], tls=mutual)

    def ready(bound: list[str]) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _print_tasks)
        print(json.dumps(dict(zip(listeners, bound))), flush=True)

    options = {"users": {USER: PASSWORD}, "num_partitions": partitions, "requests_kept": 100}
    serve(Settings(folder / "data", tuple(listeners.values()), **options), ready)


def _print_tasks() -> None:
    print(len(asyncio.all_tasks()), flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
