"""How the client's protocol work waits: it is written as coroutines, once, and a driver does the waiting.

A coroutine awaits a `Wait`: a condition, and a time at which it goes on in any case. Nothing here reads a clock or
blocks: whoever resumes the coroutines passes the time in (`tagwire.client.blocking_driver`, or another `Driver`).
`Tasks` runs many beside each other, none of which delays another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

Result = TypeVar("Result")

NEVER: Final = float("inf")


class Source(Protocol):
    """What tells when it has changed.

    Attributes:
        on_settled: called then, by one who waits.
    """

    on_settled: Callable[[], None] | None


class Wait:
    """What a coroutine awaits.

    Args:
        ready: whether it may go on.
        until: when it goes on all the same (seconds of the driver's clock).
        sources: what has to change before `ready` can, so that nobody need look before; without any, whatever happens
            may have changed it.
    """

    __slots__ = ("ready", "sources", "until")

    def __init__(self, ready: Callable[[], bool], until: float, sources: Sequence[Source] = ()) -> None:
        self.ready = ready
        self.until = until
        self.sources = sources

    def __await__(self) -> Generator[Wait, None, None]:
        if not self.ready():
            yield self

    def is_over(self, now: float) -> bool:
        """Whether the coroutine goes on now. Whoever runs it resumes it then and not before."""
        return self.ready() or now >= self.until


Work = Coroutine[Wait, None, Result]


def sleep(until: float) -> Wait:
    """Waits for a time."""
    return Wait(_never, until)


def _never() -> bool:
    return False


def completed(work: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives or raises that awaits only what blocks instead of waiting."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    work.close()
    raise RuntimeError(f"{work!r} waits, where nobody runs it")


class Lock:
    """An `async with` block that one coroutine at a time may be in, in the order in which they came."""

    def __init__(self) -> None:
        self._turns: deque[object] = deque()  # the first is of the one that is in it

    async def __aenter__(self) -> None:
        turn = object()
        self._turns.append(turn)
        try:
            await Wait(lambda: self._turns[0] is turn, NEVER)
        except BaseException:  # it is ended where it waits
            self._turns.remove(turn)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.popleft()


@dataclass(slots=True, eq=False)
class _Task:
    work: Work[Any]
    done: Callable[[Any, Exception | None], None]
    wait: Wait | None = None


class Tasks:
    """Coroutines that run beside each other in one thread, which calls every method."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, _Task] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._tasks

    @property
    def until(self) -> float:
        """When the first of them goes on whatever happens (seconds of the driver's clock)."""
        until = NEVER
        for task in self._tasks.values():
            if task.wait is not None and task.wait.until < until:
                until = task.wait.until
        return until

    @property
    def sources(self) -> list[Source]:
        """What has to change before any of them goes on, but for the time; empty where whatever happens may do."""
        waits = [task.wait for task in self._tasks.values()]
        if not all(wait is not None and wait.sources for wait in waits):
            return []
        return [source for wait in waits if wait is not None for source in wait.sources]

    def is_any_over(self, now: float) -> bool:
        """Whether any of them goes on now."""
        # Asked several times a request, of tasks that mostly wait: not a call more than `ready` for each.
        for task in self._tasks.values():
            wait = task.wait
            if wait is None or now >= wait.until or (wait.ready is not _never and wait.ready()):
                return True
        return False

    def start(self, key: Hashable, work: Work[Result], done: Callable[[Any, Exception | None], None]) -> None:
        """Runs `work` until it waits for the first time; `done` is called with its result or its error at its end.

        Nothing is started while something with the same key runs: the caller looks before.
        """
        self._tasks[key] = _Task(work, done)
        self._resume(key)

    def step(self, now: float) -> bool:
        """Goes on with all whose wait is over, and with those whose wait is over thereby; whether there were any."""
        has_resumed = False
        while self._tasks and self.is_any_over(now):
            has_resumed = True
            for key in [key for key, task in self._tasks.items() if task.wait is None or task.wait.is_over(now)]:
                if key in self._tasks:
                    self._resume(key)
        return has_resumed

    def stop(self, key: Hashable) -> None:
        """Ends one of them where it is; nobody is told."""
        task = self._tasks.pop(key, None)
        if task is not None:
            task.work.close()

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


async def gather(works: Iterable[Work[Result]], now: Callable[[], float]) -> list[Result | Exception]:
    """What each gives, or the error that it raises, in their order. They run beside each other.

    Args:
        now: the driver's clock.
    """
    begun = list(works)
    ended: dict[int, Any] = {}
    tasks = Tasks()

    def end(key: int, result: Any, error: Exception | None) -> None:
        ended[key] = result if error is None else error

    try:
        for key, work in enumerate(begun):
            tasks.start(key, work, partial(end, key))
        while len(ended) < len(begun):
            await Wait(lambda: tasks.is_any_over(now()), tasks.until, tasks.sources)
            tasks.step(now())
    finally:
        tasks.close()
    return [ended[key] for key in sorted(ended)]
