"""The least that has the world's time, for tests of what needs no more."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random


class Timed:
    def __init__(self, act):
        self.act = act

    def cancel(self):
        self.act = None


class HeapScheduler:
    """`tick`: what waits are rounded to, as a world's are to nanoseconds."""

    def __init__(self, seed, tick=None):
        self.now, self.random = 1000.0, Random(seed)
        self._tick = tick
        self._heap, self._count = [], 0

    def after(self, seconds, act):
        self._count += 1
        timed = Timed(act)
        wait = max(seconds, 0.0)
        if self._tick is not None:
            wait = round(wait / self._tick) * self._tick
        heappush(self._heap, (self.now + wait, self._count, timed))
        return timed

    def run(self, seconds=10_000.0):
        """Lets time pass, until nothing is left to happen or so many seconds are over."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            self.now, _, timed = heappop(self._heap)
            act, timed.act = timed.act, None
            if act is not None:
                act()
        self.now = end if self._heap else self.now
