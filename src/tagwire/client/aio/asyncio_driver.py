"""The asyncio driver of the client's core: the sockets of connections on an event loop, and the tasks that wait.

A task that waits for a response is woken by the response. Every other is looked at when something has happened on a
connection, all of them once for all that happened in a turn of the loop, and when a time has come.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE
from typing import Protocol

from tagwire.client.aio.core_steps import core_step
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.scheduling import NEVER, Result, Wait, Work
from tagwire.client.socket_driver import Channel, SocketDriver
from tagwire.errors import TagwireError


class Hosted(Protocol):
    """What the driver runs all the time, beside the coroutines of callers."""

    def step(self) -> float:
        """Does what can be done now; when the next step is due, should nothing happen before."""


class _Waiter:
    """A task that waits."""

    __slots__ = ("future", "wait")

    def __init__(self, wait: Wait, future: asyncio.Future[None]) -> None:
        self.wait = wait
        self.future = future

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class AsyncioDriver(SocketDriver):
    """Runs the core in the event loop that runs where it is made, and in no other. `wakeup` is for any thread.

    Raises:
        TagwireError: no event loop runs.

    Attributes:
        random: where the core draws jitter from.
        loop: the event loop.
        hosted: what else it runs.
    """

    def __init__(self, owner: str) -> None:
        super().__init__()
        try:
            self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        except RuntimeError:
            raise TagwireError(f"{owner} is made where no event loop runs: make it inside of `async def`") from None
        self.hosted: Hosted | None = None
        self._owner = owner
        self._looked_at: dict[_Waiter, None] = {}  # whatever happens may have ended their waits
        self._woken: dict[_Waiter, None] = {}  # whom their sources wake
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._closings = 0

    # What the core calls -------------------------------------------------------------------------------------------

    def now(self) -> float:
        """`time.monotonic` seconds."""
        return time.monotonic()

    # What runs the core --------------------------------------------------------------------------------------------

    def require_loop(self) -> None:
        """Raises TagwireError in any other place than the event loop that it was made in."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            raise TagwireError(f"{self._owner} was made in another event loop; each loop makes its own")

    async def run(self, work: Work[Result]) -> Result:
        """What `work` gives or raises. Where the task is cancelled, `work` ends where it waits.

        Raises:
            TagwireError: this is another event loop, or `close` was called meanwhile.
        """
        closings = self._closings
        try:
            self.require_loop()
            while True:
                wait = core_step(work.send, None)
                while not wait.is_over(time.monotonic()):
                    if closings != self._closings:  # it would connect anew, for nobody to close
                        self._close_channels()
                        raise TagwireError(f"{self._owner} was closed meanwhile")
                    await self._wait(wait)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            core_step(work.close)
            if self._looked_at and not self.loop.is_closed():  # others may wait for what this one had, such as a lock
                self.turn_soon()

    @property
    def turn_due(self) -> asyncio.Handle | None:
        """What the loop's next turn has to do here; None where that is nothing."""
        return self._turn

    def turn_soon(self) -> None:
        """Has `hosted` do its next step, and tasks that wait be looked at, in the loop's next turn."""
        if self._turn is None:
            self._turn = self.loop.call_soon(self._take_turn)

    def wakeup(self) -> None:
        """`turn_soon`, from any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.turn_soon)

    def close(self) -> None:
        """Closes the sockets of every connection; what is run ends where it waits. The driver may be used again."""
        self._closings += 1
        self._close_channels()
        if self.loop.is_closed():
            return
        for waiter in (*self._looked_at, *self._woken):
            waiter.wake()
        if self._looked_at or self._woken:
            self.turn_soon()
            return
        for handle in (self._turn, self._timer):
            if handle is not None:
                handle.cancel()
        self._turn, self._timer, self._timer_at = None, None, NEVER

    async def _wait(self, wait: Wait) -> None:
        waiter = _Waiter(wait, self.loop.create_future())
        is_told = bool(wait.sources) and all(source.on_settled is None for source in wait.sources)
        waiting = self._woken if is_told else self._looked_at
        waiting[waiter] = None
        if is_told:
            for source in wait.sources:
                source.on_settled = waiter.wake
        if wait.until < self._timer_at:
            self._set_timer(wait.until)
        try:
            await waiter.future
        finally:
            del waiting[waiter]
            if is_told:
                for source in wait.sources:
                    source.on_settled = None

    # What the loop calls -------------------------------------------------------------------------------------------

    def _take_turn(self) -> None:
        self._turn = None
        try:
            self._attend()
        finally:
            now = time.monotonic()
            for waiter in self._looked_at:
                if waiter.wait.is_over(now):
                    waiter.wake()
            if self.hosted is not None:
                self._set_timer(core_step(self.hosted.step))

    def _time_has_come(self) -> None:
        self._timer, self._timer_at = None, NEVER
        now = time.monotonic()
        for connection in list(self._channels):
            if connection.deadline <= now:
                connection.expire_setup()
            self._set_timer(connection.deadline)
        for waiter in (*self._looked_at, *self._woken):
            if now >= waiter.wait.until:
                waiter.wake()
            else:
                self._set_timer(waiter.wait.until)
        self.turn_soon()

    def _set_timer(self, at: float) -> None:
        """Looks at everybody at that time, or before."""
        if at >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        # Whole milliseconds, rounded up: loops that count in them would call too early, over and over.
        delay = math.ceil(max(at - time.monotonic(), 0.0) * 1000) / 1000
        self._timer, self._timer_at = self.loop.call_later(delay, self._time_has_come), at

    # Sockets -------------------------------------------------------------------------------------------------------

    def _notified(self, connection: BrokerConnection) -> None:
        super()._notified(connection)
        if self.loop.is_closed():
            return
        if connection.deadline < self._timer_at:
            self._set_timer(connection.deadline)
        self.turn_soon()

    def _ready(self, channel: Channel, events: int) -> None:
        try:
            self._attend_socket(channel, events)
        finally:
            self.turn_soon()

    def _watch(self, channel: Channel, sock: socket.socket, events: int) -> None:
        if self.loop.is_closed():
            return
        loop, old = self.loop, channel.events
        if events & EVENT_READ and not old & EVENT_READ:
            loop.add_reader(sock, self._ready, channel, EVENT_READ)
        elif old & EVENT_READ and not events & EVENT_READ:
            loop.remove_reader(sock)
        if events & EVENT_WRITE and not old & EVENT_WRITE:
            loop.add_writer(sock, self._ready, channel, EVENT_WRITE)
        elif old & EVENT_WRITE and not events & EVENT_WRITE:
            loop.remove_writer(sock)
