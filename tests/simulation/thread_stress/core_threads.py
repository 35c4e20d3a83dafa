"""Threads that ask things of the thread of a producer or a consumer, and wait for what it finds."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.core_thread import CoreThread
from tagwire.client.scheduling import NEVER, Tasks, Wait, completed

from .racing import race

CALLERS = 3
WAITERS = 3
PATIENCE = 5.0


class _Work:
    """Gives what was asked for, in each step all of it."""

    def __init__(self) -> None:
        self.asked: deque[tuple[int, int]] = deque()
        self.given: dict[int, int] = {}

    def step(self) -> None:
        while self.asked:
            number, count = self.asked.popleft()
            self.given[number] = count

    def has_given(self, number: int, count: int) -> bool:
        """Others run between the look and the word of it."""
        found = self.given.get(number) == count
        time.sleep(0)
        return found

    def until(self) -> float:
        return NEVER

    def failed(self, error: BaseException) -> None:
        return

    def close(self) -> None:
        return


async def _twice(count: int) -> int:
    await Wait(lambda: True, 0.0)
    return 2 * count


def stress_core_thread(seconds: float) -> list[str]:
    """What was wrong with a core's thread that others wait for; nothing, when all is well."""
    work = _Work()
    thread = CoreThread(work, Tasks(), BlockingDriver(), "consumer")

    def call(number: int, is_over: Callable[[], bool]) -> None:
        for count in itertools.count(number):
            if is_over():
                return
            found = thread.call(partial(_twice, count), time.monotonic() + PATIENCE)
            if found != 2 * count:
                raise AssertionError(f"{2 * count} was asked for, and {found} given")

    def wait(number: int, is_over: Callable[[], bool]) -> None:
        for count in itertools.count(1):
            if is_over():
                return
            work.asked.append((number, count))
            thread.wakeup()
            began = time.monotonic()
            completed(thread.wait_for(partial(work.has_given, number, count), began + PATIENCE))
            if work.given.get(number) != count or time.monotonic() - began >= PATIENCE:
                raise AssertionError(f"what was there was not told within {PATIENCE:g} s")

    try:
        together = [*(partial(call, n) for n in range(CALLERS)), *(partial(wait, n) for n in range(WAITERS))]
        # One alone, too: whoever is not told is woken by what others have done.
        return race(together, seconds / 3) or race([partial(wait, WAITERS)], seconds * 2 / 3)
    finally:
        thread.stop()
