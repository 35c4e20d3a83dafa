"""Coroutines that run one after another for each key, each to its end, as events of Kafka's CoordinatorRuntime."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from typing import TypeVar

from tagwire.broker.busy_time import counted
from tagwire.errors import TagwireError

logger = logging.getLogger("tagwire.broker")

Result = TypeVar("Result")


class SerialTasks:
    """Tasks of one event loop: those of one key run one after another, in the order in which they were submitted.

    A task goes on when whoever waits for it stops waiting: a client that goes away must not leave on the disk what the
    broker does not know.
    """

    def __init__(self) -> None:
        # Of the keys with tasks under way: how many there are, and the lock they take in turn. Counted, not left to
        # the last reference: an error that a task ended with may hold one until garbage is collected.
        self._under_way: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: dict[asyncio.Task[object], None] = {}

    def is_busy(self, key: str) -> bool:
        """Whether a task of that key is under way."""
        return key in self._under_way

    async def run(self, key: str, work: Coroutine[object, None, Result]) -> Result:
        """Run a task after those of its key that were submitted before."""
        return await asyncio.shield(self.submit(key, work))

    def submit(self, key: str, work: Coroutine[object, None, Result]) -> asyncio.Task[Result]:
        """As `run`, without waiting for its end."""
        self._under_way[key] += 1
        task = self._background(self._in_turn(self._locks.setdefault(key, asyncio.Lock()), work))
        task.add_done_callback(lambda _: self._leave(key))
        return task

    def _leave(self, key: str) -> None:
        self._under_way[key] -= 1
        if not self._under_way[key]:
            del self._under_way[key], self._locks[key]

    async def run_concurrently(self, work: Coroutine[object, None, Result]) -> Result:
        """Run a task that need not wait for others."""
        return await asyncio.shield(self._background(work))

    async def close(self) -> None:
        """Finish what is under way."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    @staticmethod
    async def _in_turn(turn: asyncio.Lock, work: Coroutine[object, None, Result]) -> Result:
        async with turn:
            return await work

    def _background(self, work: Coroutine[object, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(counted(work))
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, TagwireError):  # whoever would be told may have gone
            logger.error("a task failed: %r", error, exc_info=error)
