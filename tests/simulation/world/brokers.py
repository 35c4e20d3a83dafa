"""Brokers and clusters as simulated processes: started on a simulated disk, killed, and started again."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .processes import Process

if TYPE_CHECKING:
    from .world import World

DATA_DIR: Final = "/disk/data"
FIRST_PORT: Final = 9092


class BrokerProcess:
    """An embedded `Broker`, or a `Cluster` where `nodes` are given, in a process of its own.

    Args:
        world: where it runs.
        name: the process's, and its disk's.
        nodes: how many a cluster has; None for a broker.
        options: what `Broker` and `Cluster` take; it may be changed between two runs.

    Attributes:
        bootstrap: where clients find it, whether it runs or not.
        broker: the real object while it runs.
        process: its latest run.
        starting_failed: what its latest start raised, if anything.
    """

    def __init__(self, world: World, name: str = "broker", *, nodes: int | None = None, **options: Any) -> None:
        self.world = world
        self.name = name
        self.nodes = nodes
        self.options = {"port": FIRST_PORT, "data_dir": DATA_DIR, **options}
        port = self.options["port"]
        self.bootstrap = ",".join(f"127.0.0.1:{port + node}" for node in range(nodes or 1))
        self.broker: Any = None
        self.process: Process | None = None
        self.starting_failed: BaseException | None = None
        self.has_started = threading.Event()
        self._stopping = threading.Event()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive

    def start(self) -> None:
        """Begins its process; `wait_until_ready` for when it listens."""
        assert not self.is_running
        self.has_started, self._stopping = threading.Event(), threading.Event()
        self.broker = None  # of a run that was killed it is left
        self.starting_failed = None
        self.process = self.world.spawn(self.name, self._run)

    def wait_until_ready(self, timeout: float = 600.0) -> bool:
        """Whether it listens by then. Raises what its start raised."""
        self.has_started.wait(timeout)
        if self.starting_failed is not None:
            raise self.starting_failed
        return self.has_started.is_set()

    def stop(self, timeout: float = 600.0) -> bool:
        """A clean shutdown; whether it has ended by then."""
        self._stopping.set()
        return self.process is None or self.process.join(timeout)

    def kill(self) -> None:
        """As `kill -9`."""
        if self.process is not None:
            self.process.kill()

    def lose_power(self) -> None:
        """As a machine that is switched off."""
        if self.process is not None:
            self.process.lose_power()

    def _run(self) -> None:
        from tagwire.broker import Broker, Cluster
        from tagwire.broker.registry import load_handlers

        for _ in load_handlers():  # as the rest of the broker, before it begins: not in the middle of a first run alone
            pass
        started, stopping = self.has_started, self._stopping
        try:
            broker: Any = Broker(**self.options) if self.nodes is None else Cluster(self.nodes, **self.options)
            files = self.world.disk(self.name)
            broker.disk = files
            if self.nodes is not None:
                broker._hooks = [replace(hooks, files=files) for hooks in broker._hooks]
            broker.start()
        except BaseException as error:
            self.starting_failed = error
            raise
        finally:
            started.set()
        self.broker = broker
        stopping.wait()
        self.broker = None
        broker.stop()
