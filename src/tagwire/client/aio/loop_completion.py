"""What the tasks of a producer's callers wait for: for room, and for what they have appended."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager

from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.scheduling import NEVER


class LoopCompletion:
    """Wakes tasks whenever a batch is complete: see `tagwire.client.producing.producer_batch.Completion`.

    Attributes:
        lock: nobody ever waits for it, since all tasks are of one thread.
    """

    def __init__(self, driver: AsyncioDriver) -> None:
        self.lock: AbstractContextManager[object] = threading.RLock()  # nothing that does nothing is faster to enter
        self._driver = driver
        self._loop = driver.loop
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order in which they came

    def held(self) -> AbstractContextManager[object]:
        """As `Completion.held`."""
        return self.lock

    def news(self) -> LoopCompletion:
        """As `Completion.news`: between looking and waiting nothing else runs."""
        return self

    def future(self) -> asyncio.Future[None]:
        """One of the loop's. Raises TagwireError in another loop."""
        if asyncio.get_running_loop() is not self._loop:
            self._driver.require_loop()
        return self._loop.create_future()

    def notify_all(self) -> None:
        """Some batches are complete."""
        waiting, self._waiting = self._waiting, {}
        if not self._driver.loop.is_closed():
            for future in waiting:
                wake(future)

    def require_waitable(self) -> None:
        """Raises TagwireError in another loop."""
        self._driver.require_loop()

    async def wait(self, until: float) -> None:
        """Waits for that, or for a time of the driver's clock. Raises TagwireError in another loop."""
        future = self.future()
        self._waiting[future] = None
        late = None
        if until < NEVER:
            delay = max(until - self._driver.now(), 0.0)
            late = self._driver.loop.call_later(delay, wake, future)
        try:
            await future
        finally:
            self._waiting.pop(future, None)
            if late is not None:
                late.cancel()


def wake(future: asyncio.Future[None]) -> None:
    """Wakes who waits, unless that is over."""
    if not future.done():
        future.set_result(None)
