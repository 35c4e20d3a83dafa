"""The event loop of a simulated process: asyncio's, but for how it waits, and for the order of timers due at once."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import weakref
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any

from . import processes, scheduler
from .selecting import SimulatedSelector
from .threads import Thread
from .transports import SocketLoop


class SimulatedLoop(SocketLoop, asyncio.BaseEventLoop):
    """Run by a simulated thread, in simulated time. Callbacks run in the order asyncio promises; timers that are due at
    the same time, in the seed's."""

    def __init__(self) -> None:
        super().__init__()
        process = processes.current()
        self.host = process.host
        self.sockets = process.host.sockets
        self._order: Random = process.world.timer_order
        self._selector = SimulatedSelector(wait, self._order)
        self._due: list[tuple[int, float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[Any]] = weakref.WeakValueDictionary()
        process.loops[self] = None

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that are not done, in the order in which they were made."""
        return [task for _, task in sorted(self._tasks.items()) if not task.done()]

    def create_task(self, *args: Any, **named: Any) -> Any:
        task = super().create_task(*args, **named)
        self._tasks[next(self._numbers)] = task
        return task

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._check_closed()  # type: ignore[attr-defined]
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        now = self.time()
        # What is less than a nanosecond away is not now: whoever sleeps until then would never let time pass.
        when_ns = max(_to_ns(when), _to_ns(now) + 1) if when > now else _to_ns(when)
        heapq.heappush(self._due, (when_ns, self._order.random(), next(self._numbers), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is left where it is until its time."""

    def _write_to_self(self) -> None:
        self._selector.wake()
        world = scheduler.running
        assert world is not None
        world.step()

    def _run_once(self) -> None:
        world = scheduler.running
        assert world is not None
        world.step()
        due, ready = self._due, self._ready  # type: ignore[attr-defined]
        while due and due[0][3].cancelled():
            heapq.heappop(due)
        timeout: float | None = None
        if ready or self._stopping:  # type: ignore[attr-defined]
            timeout = 0.0
        elif due:
            timeout = max(0, due[0][0] - _to_ns(self.time())) / 1e9
        self._process_events(self._selector.select(timeout))
        now = _to_ns(self.time())
        while due and due[0][0] <= now:
            ready.append(heapq.heappop(due)[3])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        executor = self._default_executor  # type: ignore[attr-defined]
        self._executor_shutdown_called = True
        if executor is None:
            return
        future = self.create_future()

        def shut() -> None:
            executor.shutdown(wait=True)
            self.call_soon_threadsafe(future.set_result, None)

        thread = Thread(target=shut, name="executor-shutdown")
        thread.start()
        await future
        thread.join()

    def close(self) -> None:
        super().close()
        self._due.clear()
        self._selector.close()
        processes.current().loops.pop(self, None)


def wait(selector: Any, seconds: float | None) -> None:
    """Parks the thread until a socket is ready, or somebody wakes the selector."""
    world = scheduler.running
    assert world is not None
    baton = world.current
    if baton is None or (seconds is not None and seconds <= 0):
        return
    selector.wake = lambda: world.wake(baton)
    try:
        world.block("sockets", seconds)
    finally:
        selector.wake = _nobody


def _to_ns(seconds: float) -> int:
    """How often a loop looks before a time has come is its own: what is left of it is the same each time."""
    return round(seconds * 1e9)


def _nobody() -> None:
    """Nobody waits."""


def cancel_all_tasks(loop: Any) -> None:
    """What `asyncio.Runner` does at its end, in an order that no address decides."""
    tasks = loop.tasks() if isinstance(loop, SimulatedLoop) else []
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_all_over(tasks))
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            told = {"message": "unhandled exception at the end of a loop", "exception": error, "task": task}
            loop.call_exception_handler(told)


async def _all_over(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
