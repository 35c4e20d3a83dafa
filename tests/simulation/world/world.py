"""A world: one seed, its scheduler, network, disks and processes, and the trace of what happened."""

from __future__ import annotations

import gc
import hashlib
import inspect
import random
from collections.abc import Callable
from random import Random
from typing import Any, Final

from . import scheduler
from .disk import SimulatedDisk
from .network import Network
from .processes import Process
from .scheduler import Scheduler, Timer

CACHED: Final = (0.0, 0.7, 1.0, 1.0)
"""How often a machine's system has in its memory what is read, and can tell, one of which each has."""

MOST_SECONDS: Final = 7 * 86_400.0


class World:
    """One at a time in a process of the operating system.

    Args:
        seed: decides everything.
        trace: takes each line of what happens.
        most_seconds: of simulated time; then it ends with TooLong.

    Attributes:
        seed, network, scheduler, random: `random` is the network's.
        main: the process that `run` began.
        processes: those that live, by name.
        wall_offsets: how far the wall clock of a machine is from the world's, in seconds; its processes come and go.
        leaks: what processes that ended by themselves had not closed, in words.
        errors: what threads raised and nobody caught, in words.
    """

    def __init__(
        self,
        seed: int | str,
        trace: Callable[[str], object] | None = None,
        *,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self.seed = seed
        self._told = trace
        self._hash = hashlib.sha256()
        self.lines = 0
        self.random = self.random_of("network")
        self.timer_order = self.random_of("timers")
        self.scheduler = Scheduler(self.random_of("schedule"), self._tell, most_seconds)
        self.network = Network(self)
        self.network.trace = self.trace
        self.main: Process | None = None
        self.processes: dict[str, Process] = {}
        self.wall_offsets: dict[str, float] = {}
        self.leaks: list[str] = []
        self.errors: list[str] = []
        self._runs: dict[str, int] = {}
        self._disks: dict[str, SimulatedDisk] = {}

    # What others draw and tell ---------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since it began."""
        return self.scheduler.ns / 1e9

    def after(self, seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Has `callback` called then, while nobody runs."""
        return self.scheduler.after(seconds, callback, *args)

    def random_of(self, name: str) -> Random:
        """A stream of its own, so that who draws less changes nothing for others."""
        return random.Random(f"{self.seed}/{name}")

    def trace(self, text: str) -> None:
        """Writes a line, with the time before it."""
        self._tell(f"{self.scheduler.ns / 1e9:.9f} * {text}")

    def _tell(self, line: str) -> None:
        self.lines += 1
        self._hash.update(f"{line}\n".encode())
        if self._told is not None:
            self._told(line)

    def digest(self) -> str:
        """Of the trace so far, and of every byte that crossed the network."""
        told = self._hash.copy()
        told.update(self.network.digest().encode())
        return told.hexdigest()

    # Processes -------------------------------------------------------------------------------------------------------

    def run(self, main: Callable[[], Any]) -> Any:
        """What `main` gives, as the first process of the world. The world ends with it.

        Raises:
            Deadlock, BusyLoop, TooLong: see there.
            What `main` raises.
        """
        assert scheduler.running is None
        random.seed(f"{self.seed}/module random")
        scheduler.running = self.scheduler
        self.main = self._process("main", "main", main)
        gc_was_on = gc.isenabled()
        gc.disable()
        try:
            self.scheduler.run(self.main.begin)
        finally:
            scheduler.running = None
            if gc_was_on:
                gc.enable()
        if self.scheduler.failure is not None:
            raise self.scheduler.failure
        return self.main._given

    def spawn(self, name: str, function: Callable[..., Any], *args: Any, machine: str | None = None) -> Process:
        """Begins a process; one of the same name has to have ended.

        Args:
            name: the program's, and its host's.
            function: what its first thread runs; a coroutine function is run on a loop.
            machine: whose disk and power it has; its own name's where nobody says.
        """
        assert name not in self.processes, f"{name} runs"
        call = function if not args else _with(function, args)
        process = self._process(name, machine or name, call)
        self.network.power_on(process.host)
        self.trace(f"{process.title} begins")
        process.begin()
        self.scheduler.step()
        return process

    def _process(self, name: str, machine: str, function: Callable[[], Any]) -> Process:
        self._runs[name] = self._runs.get(name, 0) + 1
        self.processes[name] = process = Process(self, name, self._runs[name], machine, function)
        return process

    @property
    def current(self) -> Process | None:
        """The process that runs now; None while what is due is done."""
        baton = self.scheduler.current
        return baton.process if baton is not None else None

    def ended(self, process: Process) -> None:
        """Its sockets and files are closed by the system."""
        self.processes.pop(process.name, None)
        self.network.kill(process.host)
        if (disk := self._disks.get(process.machine)) is not None:
            disk.process_ended(process)

    def lost_power(self, process: Process) -> None:
        self.network.power_off(process.host)
        if (disk := self._disks.get(process.machine)) is not None:
            disk.lose_power()

    # Disks -----------------------------------------------------------------------------------------------------------

    def disk(self, machine: str) -> SimulatedDisk:
        """The disk of a machine, which outlives its processes."""
        if machine not in self._disks:
            remembers = self.random_of(f"memory/{machine}")
            self._disks[machine] = SimulatedDisk(
                self.random_of(f"disk/{machine}"),
                pause=self._disk_pause,
                process=lambda: self.current,
                cached=remembers.choice(CACHED),
                remembers=remembers,
            )
        return self._disks[machine]

    def _disk_pause(self, what: str, seconds: float) -> None:
        if self.scheduler.current is None:
            return
        self.trace(f"{self.scheduler.current.process.title} disk: {what}")
        if seconds > 0:
            self.scheduler.block("the disk", seconds)
        else:
            self.scheduler.step()

    def open_files(self, process: Process) -> list[str]:
        """What a process has open on its disk, in words."""
        disk = self._disks.get(process.machine)
        return [f"file {path}" for path in disk.descriptors(process)] if disk is not None else []


def _with(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    if inspect.iscoroutinefunction(function):

        async def begun() -> Any:
            return await function(*args)

        return begun
    return lambda: function(*args)
