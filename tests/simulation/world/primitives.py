"""Locks, conditions and queues for simulated threads, with the faces of `threading` and `queue`.

Outside of a running world there is one thread only: what is free is taken, and what would be waited for is an error. A
lock that was made there, by a module that was imported, is shared by all simulated processes; who holds it is neither
interrupted nor killed, since no real process could keep it from another.
"""

from __future__ import annotations

import queue
from collections import deque
from types import TracebackType
from typing import Any

from . import scheduler
from .errors import WorldError
from .scheduler import Baton


class Lock:
    """`threading.Lock`. Who has waited longest is not preferred: the seed decides."""

    __slots__ = ("__weakref__", "_is_held", "_is_shared", "_waiters")

    def __init__(self) -> None:
        self._is_held = False
        self._is_shared = scheduler.running is None
        self._waiters: dict[Baton, None] = {}

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        world = scheduler.running
        if world is None or (current := world.current) is None:
            if not self._is_held:
                self._is_held = True
                return True
            if not blocking:
                return False
            raise WorldError("a lock is waited for where nobody can let go of it")
        world.step()
        if self._is_held:
            if not blocking:
                return False
            until = None if timeout is None or timeout < 0 else world.ns + int(timeout * 1e9)
            while self._is_held:
                if until is not None and world.ns >= until:
                    return False
                self._waiters[current] = None
                try:
                    world.block("a lock", None if until is None else (until - world.ns) / 1e9)
                finally:
                    self._waiters.pop(current, None)
        self._is_held = True
        if self._is_shared:
            current.shields += 1
        return True

    def release(self) -> None:
        self._let_go()
        if self._waiters and scheduler.running is not None:
            scheduler.running.let_go()

    def _let_go(self) -> None:
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        world = scheduler.running
        if world is None:
            return
        if self._is_shared and world.current is not None and world.current.shields:
            world.current.shields -= 1
        for waiter in list(self._waiters):
            world.wake(waiter)

    def locked(self) -> bool:
        return self._is_held

    def _at_fork_reinit(self) -> None:
        self._is_held = False
        self._waiters.clear()

    def _is_owned(self) -> bool:
        return self._is_held

    def _release_save(self) -> Any:
        self._let_go()  # who waits for a condition begins to wait in the same moment

    def _acquire_restore(self, saved: Any) -> None:
        self.acquire()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class RLock:
    """`threading.RLock`."""

    __slots__ = ("__weakref__", "_count", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: object = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = _me()
        if self._owner is me and self._count:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    __enter__ = acquire

    def release(self) -> None:
        if not self._count or self._owner is not _me():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._owner, self._count = None, 0
        self._lock._at_fork_reinit()

    def _is_owned(self) -> bool:
        return bool(self._count) and self._owner is _me()

    def _release_save(self) -> int:
        count, self._count, self._owner = self._count, 0, None
        self._lock._release_save()
        return count

    def _acquire_restore(self, saved: int) -> None:
        self._lock.acquire()
        self._owner, self._count = _me(), saved


def _me() -> object:
    """Who holds what is taken now: a thread, or whoever is outside of the world."""
    world = scheduler.running
    return world.current if world is not None else None


class _Waiter:
    __slots__ = ("baton", "is_notified")

    def __init__(self, baton: Baton) -> None:
        self.baton = baton
        self.is_notified = False


class Condition:
    """`threading.Condition`."""

    def __init__(self, lock: Any = None) -> None:
        self._lock: Any = RLock() if lock is None else lock
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self._waiting: deque[_Waiter] = deque()

    def __enter__(self) -> bool:
        entered: bool = self._lock.__enter__()
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, trace)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._lock._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        world = scheduler.running
        if world is None or world.current is None:
            raise WorldError("a condition is waited for where nobody can notify it")
        waiter = _Waiter(world.current)
        self._waiting.append(waiter)
        saved = self._lock._release_save()
        try:
            if not waiter.is_notified and (timeout is None or timeout > 0):
                world.block("a condition", timeout)
            return waiter.is_notified
        finally:
            if not waiter.is_notified:
                self._waiting.remove(waiter)
            self._lock._acquire_restore(saved)

    def wait_for(self, predicate: Any, timeout: float | None = None) -> Any:
        world = scheduler.running
        end = None if timeout is None or world is None else world.now + timeout
        while not (result := predicate()):
            left = None if end is None or world is None else end - world.now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        if not self._lock._is_owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        while self._waiting and n > 0:
            n -= 1
            waiter = self._waiting.popleft()
            waiter.is_notified = True
            assert scheduler.running is not None
            scheduler.running.wake(waiter.baton)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
        self._waiting.clear()


class Event:
    """`threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: dict[Baton, None] = {}

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if (world := scheduler.running) is not None:
            for waiter in list(self._waiters):
                world.wake(waiter)
            world.step()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        world = scheduler.running
        if world is None:
            if not self._is_set:
                raise WorldError("an event is waited for where nobody can set it")
            return True
        world.step()
        if self._is_set or (timeout is not None and timeout <= 0):
            return self._is_set
        current = world.current
        assert current is not None
        self._waiters[current] = None
        try:
            was_woken = world.block("an event", timeout)
            return was_woken or self._is_set
        finally:
            self._waiters.pop(current, None)

    def _at_fork_reinit(self) -> None:
        self._waiters.clear()


class SimpleQueue:
    """`queue.SimpleQueue`."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._has_item = Condition(Lock())

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        with self._has_item:
            self._items.append(item)
            self._has_item.notify()

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        with self._has_item:
            if not self._items and block:
                self._has_item.wait_for(lambda: self._items, timeout)
            if not self._items:
                raise queue.Empty
            return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)
