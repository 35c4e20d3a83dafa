"""One step at a time for each name, and every step carried out to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tagwire.errors import TagwireError

logger = logging.getLogger("tagwire.broker")

Result = TypeVar("Result")


class Turns:
    """Steps of one event loop: those of one name follow one another, in the order in which they were begun.

    A step goes on when whoever waits for it stops waiting: a client that goes away must not leave on the disk what the
    broker does not know.
    """

    def __init__(self) -> None:
        # Held by whoever waits for its turn: a lock that nobody waits for is gone.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    def is_taken(self, name: str) -> bool:
        """Whether a step of that name is under way."""
        return name in self._locks

    async def take(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Carry out a step in its turn."""
        return await asyncio.shield(self.begin(name, work))

    def begin(self, name: str, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Begin a step that is carried out in its turn."""
        return self._background(self._in_turn(self._locks.setdefault(name, asyncio.Lock()), work))

    async def at_once(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Carry out a step that need not wait for others."""
        return await asyncio.shield(self._background(work))

    async def close(self) -> None:
        """Finish what is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    @staticmethod
    async def _in_turn(turn: asyncio.Lock, work: Coroutine[Any, Any, Result]) -> Result:
        async with turn:
            return await work

    def _background(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TagwireError):  # whoever would be told may have gone
            logger.error("a step failed: %r", error, exc_info=error)
