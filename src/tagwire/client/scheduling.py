"""How the client's protocol work waits: it is written as coroutines, once, and whoever runs them does the waiting.

A coroutine awaits a `Wait`: something that becomes ready, the connections on which that shows, and a time at which it
goes on in any case. `run` runs one to its end in the calling thread, which is how `Client`, `Reader` and `Admin` work,
and `together` several, so that several brokers are asked at once; `Tasks` runs many beside each other, none of which
delays another, which is how a producer's thread works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from threading import Event
from types import TracebackType
from typing import Any, Final, TypeVar

from tagwire.client.opening import Opening
from tagwire.client.transport import Link, wait_any

Result = TypeVar("Result")

NEVER: Final = float("inf")

# Seconds between two looks at a connection that is being opened while others are listened to.
_LOOK: Final = 0.02


class Wait:
    """What a coroutine awaits.

    Args:
        ready: whether it may go on.
        until: when it goes on all the same (`time.monotonic` seconds).
        links: the connections whose bytes make it ready.
        opening: the connection whose opening makes it ready; whoever waits sees to it that it is opened.
    """

    __slots__ = ("links", "opening", "ready", "until")

    def __init__(
        self,
        ready: Callable[[], bool],
        until: float,
        links: Iterable[Link] = (),
        opening: Opening | None = None,
    ) -> None:
        self.ready = ready
        self.until = until
        self.links = tuple(links)
        self.opening = opening

    def __await__(self) -> Generator[Wait, None, None]:
        while not self.is_over:
            yield self

    @property
    def is_over(self) -> bool:
        """Whether the coroutine goes on now."""
        return self.ready() or time.monotonic() >= self.until


Work = Coroutine[Wait, None, Result]


def sleep(until: float) -> Wait:
    """Waits for a time."""
    return Wait(lambda: False, until)


class Turn:
    """An `async with` block that one coroutine at a time may be in."""

    def __init__(self) -> None:
        self._is_taken = False

    async def __aenter__(self) -> None:
        while self._is_taken:
            await Wait(lambda: not self._is_taken, NEVER)
        self._is_taken = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_taken = False


def run(work: Work[Result]) -> Result:
    """What `work` gives or raises. Blocks meanwhile."""
    try:
        while True:
            _block(work.send(None))
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        work.close()


def _block(wait: Wait) -> None:
    while not wait.is_over:
        if wait.opening is not None and not wait.links:
            wait.opening.run(wait.until)
        elif wait.opening is not None:
            wait.opening.start(wake=lambda: None)
            wait_any(wait.links, min(wait.until, time.monotonic() + _LOOK))
        elif wait.links:
            wait_any(wait.links, wait.until)
        else:
            time.sleep(max(wait.until - time.monotonic(), 0.0))


@dataclass(slots=True, eq=False)
class _Task:
    work: Work[Any]
    done: Callable[[Any, Exception | None], None]
    wait: Wait | None = None


class Tasks:
    """Coroutines that run beside each other in one thread, which calls every method.

    Args:
        wake: lets that thread call `step`; called from the threads in which connections are opened.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._tasks: dict[Hashable, _Task] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._tasks

    @property
    def links(self) -> set[Link]:
        """The connections that any of them waits for."""
        return {link for task in self._tasks.values() if task.wait is not None for link in task.wait.links}

    @property
    def is_opening(self) -> bool:
        """Whether any of them waits for a connection that is being opened."""
        return any(task.wait is not None and task.wait.opening is not None for task in self._tasks.values())

    @property
    def until(self) -> float:
        """When the first of them goes on whatever happens (`time.monotonic` seconds)."""
        return min((task.wait.until for task in self._tasks.values() if task.wait is not None), default=NEVER)

    @property
    def is_any_over(self) -> bool:
        """Whether any of them goes on now."""
        return any(task.wait is None or task.wait.is_over for task in self._tasks.values())

    def start(self, key: Hashable, work: Work[Result], done: Callable[[Any, Exception | None], None]) -> None:
        """Runs `work` until it waits for the first time; `done` is called with its result or its error at its end.

        Nothing is started while something with the same key runs: the caller looks before.
        """
        self._tasks[key] = _Task(work, done)
        self._resume(key)

    def step(self) -> None:
        """Goes on with all whose wait is over, and with those whose wait is over thereby."""
        is_any_over = True
        while is_any_over:
            over = [key for key, task in self._tasks.items() if task.wait is None or task.wait.is_over]
            for key in over:
                if key in self._tasks:
                    self._resume(key)
            is_any_over = bool(over)

    def close(self) -> None:
        """Ends all of them where they are; nobody is told."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.work.close()

    def _resume(self, key: Hashable) -> None:
        task = self._tasks[key]
        try:
            task.wait = task.work.send(None)
        except StopIteration as end:
            del self._tasks[key]
            task.done(end.value, None)
        except Exception as error:
            del self._tasks[key]
            task.done(None, error)
        else:
            if task.wait.opening is not None:
                task.wait.opening.start(self._wake)


def together(works: Iterable[Work[Result]]) -> list[Result | Exception]:
    """What each gives, or the error that it raises, in their order. They run beside each other; blocks meanwhile."""
    begun = list(works)
    ended: dict[int, Any] = {}
    woken = Event()
    tasks = Tasks(woken.set)

    def end(key: int, result: Any, error: Exception | None) -> None:
        ended[key] = result if error is None else error

    try:
        for key, work in enumerate(begun):
            tasks.start(key, work, partial(end, key))
        while len(ended) < len(begun):
            _block_all(tasks, woken)
            tasks.step()
    finally:
        tasks.close()
    return [ended[key] for key in sorted(ended)]


def _block_all(tasks: Tasks, woken: Event) -> None:
    """Until one of them goes on, or a connection is open."""
    if tasks.is_any_over:
        return
    if tasks.links:
        until = min(tasks.until, time.monotonic() + _LOOK) if tasks.is_opening else tasks.until
        wait_any(tasks.links, until)
    else:
        woken.wait(max(tasks.until - time.monotonic(), 0.0))
        woken.clear()
