"""One step at a time for each name, and every step carried out to its end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from typing import TypeVar

from tagwire.errors import TagwireError

logger = logging.getLogger("tagwire.broker")

Result = TypeVar("Result")


class Turns:
    """Steps of one event loop: those of one name follow one another, in the order in which they were begun.

    A step goes on when whoever waits for it stops waiting: a client that goes away must not leave on the disk what the
    broker does not know.
    """

    def __init__(self) -> None:
        # Of the names with steps under way: how many there are, and the lock they take in turn. Counted, not left to
        # the last reference: an error that a step ended with may hold one until garbage is collected.
        self._under_way: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[object]] = set()

    def is_taken(self, name: str) -> bool:
        """Whether a step of that name is under way."""
        return name in self._under_way

    async def take(self, name: str, work: Coroutine[object, None, Result]) -> Result:
        """Carry out a step in its turn."""
        return await asyncio.shield(self.begin(name, work))

    def begin(self, name: str, work: Coroutine[object, None, Result]) -> asyncio.Task[Result]:
        """Begin a step that is carried out in its turn."""
        self._under_way[name] += 1
        task = self._background(self._in_turn(self._locks.setdefault(name, asyncio.Lock()), work))
        task.add_done_callback(lambda _: self._leave(name))
        return task

    def _leave(self, name: str) -> None:
        self._under_way[name] -= 1
        if not self._under_way[name]:
            del self._under_way[name], self._locks[name]

    async def at_once(self, work: Coroutine[object, None, Result]) -> Result:
        """Carry out a step that need not wait for others."""
        return await asyncio.shield(self._background(work))

    async def close(self) -> None:
        """Finish what is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    @staticmethod
    async def _in_turn(turn: asyncio.Lock, work: Coroutine[object, None, Result]) -> Result:
        async with turn:
            return await work

    def _background(self, work: Coroutine[object, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TagwireError):  # whoever would be told may have gone
            logger.error("a step failed: %r", error, exc_info=error)
