"""Simulated processes: threads, a host on the network, a wall clock, and an end at any step."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from . import scheduler
from .errors import Killed
from .scheduler import Baton
from .threads import Thread

if TYPE_CHECKING:
    from .network import Host
    from .world import World

logger = logging.getLogger("tests.simulation")


class Process:
    """A program of the simulated world. Made by `World.spawn`.

    Attributes:
        name, number: which program, and which of its runs, from 1.
        title: both, as the trace has them.
        world: where it runs.
        host: what it is on the network.
        machine: whose disk it has.
        random: what `os.urandom` and all that draws from it gives it.
        is_dead: whether it was killed, or has ended.
        leaks: what was left when its function was done: threads, tasks, sockets, files.
        errors: what its threads raised and nobody caught.
        steps: how many switch points it has come to.
    """

    def __init__(self, world: World, name: str, number: int, machine: str, function: Callable[[], Any]) -> None:
        self.world = world
        self.name = name
        self.number = number
        self.title = f"{name}#{number}"
        self.machine = machine
        self.host: Host = world.network.host(name)
        self.random: Random = world.random_of(f"entropy/{self.title}")
        self.is_dead = False
        self.is_paused = False
        self.was_killed = False
        self.leaks: list[str] = []
        self.errors: list[BaseException] = []
        self.steps = 0
        self.dies_at = 0
        self._dies = self.kill
        self.batons: dict[Baton, None] = {}
        self.held: dict[Baton, None] = {}
        self.loops: dict[Any, None] = {}
        self.thread_names = 0
        self._function = function
        self._given: Any = None
        self._raised: BaseException | None = None
        self._waiting: dict[Baton, None] = {}
        self._resuming: scheduler.Timer | None = None

    def __repr__(self) -> str:
        return f"<process {self.title}>"

    @property
    def wall_offset(self) -> float:
        """How far the wall clock of its machine is from the world's, in seconds."""
        return self.world.wall_offsets.get(self.machine, 0.0)

    @property
    def is_alive(self) -> bool:
        return not self.is_dead

    def begin(self) -> None:
        """Lets its first thread run."""
        thread = Thread(target=self._run, name="main", daemon=False)
        thread._baton = Baton("main", self, thread.run, thread)
        self.world.scheduler.begin(thread._baton)

    def _run(self) -> None:
        world = self.world
        try:
            if inspect.iscoroutinefunction(self._function):
                with asyncio.Runner() as runner:
                    self._given = runner.run(self._function())
            else:
                self._given = self._function()
        except BaseException as error:
            self._raised = error
        self.leaks = self._left() if self is not world.main else []
        world.leaks += [f"{self.title} left {leak}" for leak in self.leaks]
        world.trace(f"{self.title} ends{'' if self._raised is None else f': {type(self._raised).__name__}'}")
        if self is world.main:
            world.scheduler.end(self._raised)
        self._leave()

    def _left(self) -> list[str]:
        current = self.world.scheduler.current
        left = [f"thread {baton.name}" for baton in self.batons if baton is not current]
        for loop in self.loops:
            left.append(f"event loop with {len(loop.tasks())} tasks")
        left += [f"socket {sock}" for sock in self.host.open]
        return left + self.world.open_files(self)

    def _leave(self) -> None:
        """It is gone, with whatever it still had."""
        self.is_dead = True
        self.world.ended(self)
        world = self.world.scheduler
        for waiter in list(self._waiting):
            world.wake(waiter)
        world.drop(self)

    def kill(self) -> None:
        """As `kill -9`: nothing of it runs again, no `finally` either; its sockets are closed by the system."""
        if self.is_dead:
            return
        self.was_killed = True
        self.world.trace(f"{self.title} is killed")
        self._leave()

    def kill_after(self, steps: int) -> None:
        """The same when it has come to so many switch points more, wherever that is."""
        self._die_after(steps, self.kill)

    def lose_power(self) -> None:
        """The machine it is on is gone in a moment: what was not synced is lost, and no connection is told."""
        if not self.is_dead:
            self.was_killed = True
            self.world.trace(f"{self.title} loses power")
            self.world.lost_power(self)
            self._leave()

    def lose_power_after(self, steps: int) -> None:
        """The same when it has come to so many switch points more: in the middle of a write, or before its sync."""
        self._die_after(steps, self.lose_power)

    def _die_after(self, steps: int, dies: Callable[[], None]) -> None:
        self.dies_at, self._dies = self.steps + max(1, steps), dies

    def die(self) -> None:
        """What is to befall it at `dies_at`."""
        self._dies()

    def pause(self, seconds: float | None = None) -> None:
        """As SIGSTOP: none of its threads runs until `resume`, or until so much time has passed."""
        if self.is_dead or self.is_paused:
            return
        self.world.trace(f"{self.title} is paused{'' if seconds is None else f' for {seconds:g} s'}")
        self.is_paused = True
        if seconds is not None:
            self._resuming = self.world.scheduler.after(seconds, self.resume)
        self.world.scheduler.hold(self)

    def resume(self) -> None:
        if not self.is_paused or self.is_dead:
            return
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        self.world.trace(f"{self.title} goes on")
        self.is_paused = False
        self.world.scheduler.release(self)

    def jump_wall_clock(self, seconds: float) -> None:
        """Sets what `time.time` tells it forward, or back."""
        self.world.trace(f"{self.title} has its wall clock set by {seconds:+g} s")
        self.world.wall_offsets[self.machine] = self.wall_offset + seconds

    def join(self, timeout: float | None = None) -> bool:
        """Waits until it has ended; whether it has."""
        world = self.world.scheduler
        until = None if timeout is None else world.now + timeout
        while not self.is_dead:
            left = None if until is None else until - world.now
            if left is not None and left <= 0:
                return False
            current = world.current
            assert current is not None
            self._waiting[current] = None
            world.block(f"the end of {self.title}", left)
            self._waiting.pop(current, None)
        return True

    def result(self) -> Any:
        """What its function gave, or raises what that raised; waits for it. Killed where it was killed."""
        self.join()
        if self._raised is not None:
            raise self._raised
        if self.was_killed:
            raise Killed(f"{self.title} was killed")
        return self._given

    def thread_failed(self, baton: Baton, error: BaseException) -> None:
        """A thread of it ended with an error that nobody caught."""
        self.errors.append(error)
        self.world.errors.append(f"{baton.name}: {type(error).__name__}: {error}")
        self.world.trace(f"{baton.name} ends: {type(error).__name__}")
        if not isinstance(error, SystemExit):
            logger.error("%s: a thread failed", baton.name, exc_info=error)


def current() -> Process:
    """The simulated process that runs now."""
    world = scheduler.running
    if world is None or world.current is None:
        raise RuntimeError("this is outside of any simulated process")
    return world.current.process
