"""A host of real threads and sockets: what the workload is tried on before it runs in a simulated world."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.simulation.workload.nemesis import End


class NoFaults:
    """Nothing goes wrong but what really does."""

    def begin(self, kind: str, **detail: Any) -> End | None:
        raise ValueError(f"no {kind} on loopback")


class _Thread(threading.Thread):
    def join(self, timeout: float) -> bool:  # type: ignore[override]
        super().join(timeout)
        return not self.is_alive()


class Loopback:
    """Each process is a thread."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.faults = NoFaults()
        self.round_trip_s = 0.0
        self.spikes_s = 0.0
        self.moves = self.has_upkeep = False

    def start(self, name: str, main: Callable[[], None]) -> _Thread:
        thread = _Thread(target=main, name=name, daemon=True)
        thread.start()
        return thread
