"""Threads and pools of them, with the faces of `threading.Thread` and `concurrent.futures.ThreadPoolExecutor`."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final

from . import real, scheduler
from .scheduler import Baton

USUAL_WORKERS: Final = 6
"""How many threads a pool has where nobody says: what Python makes of two processors, on every machine."""


class Thread(real.Thread):
    """A thread of the simulated process that starts it; a real one outside of the world."""

    _baton: Baton | None = None

    def start(self) -> None:
        world = scheduler.running
        if world is None or world.current is None:
            super().start()
            return
        if self._baton is not None:
            raise RuntimeError("threads can only be started once")
        self._baton = Baton(self.name, world.current.process, self.run, self)
        world.begin(self._baton)
        world.step()

    def join(self, timeout: float | None = None) -> None:
        world, baton = scheduler.running, self._baton
        if world is None or baton is None:
            super().join(timeout)
            return
        if baton is world.current:
            raise RuntimeError("cannot join current thread")
        world.step()
        current = world.current
        assert current is not None
        if not baton.is_over and (timeout is None or timeout > 0):
            baton.joiners[current] = None
            world.block(f"the end of {baton.name}", timeout)
            baton.joiners.pop(current, None)

    def is_alive(self) -> bool:
        if self._baton is None:
            return super().is_alive()
        return not self._baton.is_over

    @property
    def ident(self) -> int | None:
        return super().ident if self._baton is None else self._baton.ident

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def current_thread() -> real.Thread:
    """The simulated thread that has the baton."""
    world = scheduler.running
    if world is None or world.current is None:
        return real.current_thread()
    thread: real.Thread = world.current.thread
    return thread


class _Pool:
    """What the threads of an executor know of it: its work, not itself, so that it can be collected."""

    def __init__(self) -> None:
        self.work: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = deque()
        self.idle: dict[Baton, None] = {}
        self.is_shut = False

    def run(self) -> None:
        world = scheduler.running
        assert world is not None
        assert world.current is not None
        me = world.current
        while True:
            world.step()
            if self.work:
                self._do(*self.work.popleft())
            elif self.is_shut:
                return
            else:
                self.idle[me] = None
                world.block("work")
                self.idle.pop(me, None)

    @staticmethod
    def _do(future: Future[Any], function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function(*args, **named)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def wake(self) -> None:
        """One for the work that has come, or all at the end."""
        world = scheduler.running
        if world is None:
            return
        for baton in list(self.idle) if self.is_shut else list(self.idle)[:1]:
            self.idle.pop(baton)
            world.wake(baton)

    def shut(self) -> None:
        self.is_shut = True
        self.wake()


class ThreadPoolExecutor(Executor):
    """A pool of simulated threads, whose interleavings are the seed's."""

    _names = 0

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: None = None,
        initargs: tuple[()] = (),
    ) -> None:
        assert initializer is None
        self._max_workers = max_workers or USUAL_WORKERS
        self._prefix = thread_name_prefix or "pool"
        self._threads: list[Thread] = []
        self._pool = _Pool()
        self._ended = weakref.finalize(self, self._pool.shut)
        self._ended.atexit = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._pool.is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        self._pool.work.append((future, fn, args, kwargs))
        if self._pool.idle:
            self._pool.wake()
        elif len(self._threads) < self._max_workers:
            thread = Thread(target=self._pool.run, name=f"{self._prefix}_{len(self._threads)}")
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            while self._pool.work:
                self._pool.work.popleft()[0].cancel()
        self._pool.shut()
        if wait:
            for thread in self._threads:
                thread.join()
