"""What runs the core of a producer or a consumer on an event loop (`tagwire.client.core_host`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.aio.core_steps import core_step
from tagwire.client.core_host import CoreWork, broken_down
from tagwire.client.scheduling import NEVER, Tasks, Wait, Work
from tagwire.errors import RequestTimeoutError, TagwireError

logger = logging.getLogger("tagwire.client")

Result = TypeVar("Result")

# A caller's deadline is also that of what the core does for it; this is how much later the result may be there.
_GRACE: Final = 1.0


class CoreTask:
    """Steps of the core's work between those of everybody else's tasks. For the event loop of its driver.

    Attributes:
        driver: what runs the connections.

    Args:
        tasks: where what callers ask of it runs, beside the work.
        driver: what runs the connections of both; it is closed with the work.
        owner: what the work is of, "producer" or "consumer", as errors say.
    """

    def __init__(self, work: CoreWork, tasks: Tasks, driver: AsyncioDriver, owner: str) -> None:
        self._work = work
        self._tasks = tasks
        self.driver = driver
        self._owner = owner
        self._begun: dict[asyncio.Future[Any], None] = {}  # in the order in which they began
        self._is_over = False
        self._failure: BaseException | None = None
        driver.hosted = self

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._is_over

    def require_waitable(self) -> None:
        """Raises TagwireError in another event loop."""
        self.driver.require_loop()

    def wakeup(self) -> None:
        """Lets the work look for something to do."""
        self.driver.turn_soon()

    async def aside(self, call: Callable[[], None]) -> None:
        """Calls it in a thread, where it goes on if the task that waits is cancelled."""
        await asyncio.to_thread(call)

    async def wait_for(self, is_ready: Callable[[], bool], until: float) -> None:
        """Waits until a step has made `is_ready` true, or until a time, which is nothing to fail by: where the loop was
        kept from running, or the process stopped, it is over as soon as that goes on. Raises TagwireError: the work has
        ended."""
        future = self._begin(lambda: _readiness(is_ready, until))
        try:
            await future
        finally:  # nobody waits for it any more
            if future in self._begun:
                self._begun.pop(future)
                self._tasks.stop(future)

    async def result(self, function: Callable[[], Work[Result]], deadline: float) -> Result:
        """What the coroutine that `function` begins gives or raises. It goes on where the task is cancelled.

        Raises:
            RequestTimeoutError: it was not done by the deadline. TagwireError: the work has ended.
        """
        future = self._begin(function)
        late = self.driver.loop.call_later(max(deadline - self.driver.now(), 0.0) + _GRACE, self._expire, future)
        try:
            return await future
        finally:
            late.cancel()

    def step(self) -> float:
        """For the driver: the work's next step, and when the one after it is due."""
        if self._is_over:
            return NEVER
        try:
            self._work.step()
            return self._work.until()
        except BaseException as error:
            logger.exception("the %s's work failed", self._owner)
            self._failure = error
            self._work.failed(error)
            self.stop()
            if not isinstance(error, Exception):
                raise
            return NEVER

    def stop(self) -> None:
        """Ends the work, and closes its connections."""
        if self._is_over:
            return
        self._is_over = True
        self._work.close()
        if not self.driver.loop.is_closed():
            for future in self._begun:
                _fail(future, self._closed())
        self._begun.clear()
        self.driver.close()

    def _begin(self, function: Callable[[], Work[Result]]) -> asyncio.Future[Result]:
        self.require_waitable()
        if self._is_over:
            raise self._closed()
        future: asyncio.Future[Result] = self.driver.loop.create_future()
        self._begun[future] = None
        core_step(self._tasks.start, future, function(), partial(self._settle, future))
        self.driver.turn_soon()
        return future

    def _settle(self, future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        self._begun.pop(future, None)
        if error is not None:
            _fail(future, error)
        elif not future.done():
            future.set_result(result)

    def _expire(self, future: asyncio.Future[Any]) -> None:
        _fail(future, RequestTimeoutError(f"the {self._owner} was busy with brokers that do not respond"))

    def _closed(self) -> TagwireError:
        """Why nothing more is done: it was closed, or broke down."""
        if self._failure is not None:
            return broken_down(self._owner, self._failure)
        return TagwireError(f"the {self._owner} is closed")


async def _readiness(is_ready: Callable[[], bool], until: float) -> None:
    await Wait(is_ready, until)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Has who waits, unless that is over, be told of an error; where they are cancelled meanwhile, nobody need be."""
    if not future.done():
        future.set_exception(error)
        future.exception()


def stop_soon(task: CoreTask, driver: AsyncioDriver) -> None:
    """Ends what somebody who was collected has left, from any thread."""
    if driver.loop.is_closed():
        task.stop()
    else:
        with suppress(RuntimeError):  # the loop was closed meanwhile, by another thread
            driver.loop.call_soon_threadsafe(task.stop)
