"""How long the event loop is busy with a request, in whatever tasks: what Kafka counts of its threads' time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class BusyTime:
    """Adds up the time of one request. `elapsed_s`: so far."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    async def of(self, work: Awaitable[Result]) -> Result:
        """Awaits what responds; the tasks that it begins are counted where they say so, by `counted`."""
        before = _MEASURED.set(self)
        try:
            return await _Timed(work, self)
        finally:
            _MEASURED.reset(before)


def counted(work: Coroutine[Any, Any, Result]) -> Coroutine[Any, Any, Result]:
    """Work that is to be a task of its own, so that its time is the request's for which it is begun."""
    measured = _MEASURED.get()
    return work if measured is None else _counted(work, measured)


async def _counted(work: Coroutine[Any, Any, Result], measured: BusyTime) -> Result:
    return await _Timed(work, measured)


_MEASURED: ContextVar[BusyTime | None] = ContextVar("measured", default=None)


class _Timed(Generic[Result]):
    """Awaits something, and adds up how long each of its steps takes."""

    def __init__(self, awaited: Awaitable[Result], measured: BusyTime) -> None:
        self._awaited = awaited
        self._measured = measured

    def __await__(self) -> Generator[Any, Any, Result]:
        steps = self._awaited.__await__()
        sent: Any = None
        error: BaseException | None = None
        try:
            while True:
                began = time.perf_counter()
                try:
                    pending = steps.send(sent) if error is None else steps.throw(error)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                finally:
                    self._measured.elapsed_s += time.perf_counter() - began
                sent = error = None
                try:
                    sent = yield pending
                except BaseException as raised:
                    error = raised
        finally:
            steps.close()
