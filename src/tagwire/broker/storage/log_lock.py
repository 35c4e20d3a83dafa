"""The lock of a log, and proof that whoever changes the log holds it.

A log is used by many threads: of appends, of reads, of tasks. With TAGWIRE_CHECK_LOCKS=1 in the environment, as in
the tests, every access to guarded state by a thread that does not hold the lock raises UnguardedAccessError, and is
noted in `unguarded`, for what is raised in a thread may only be logged. Without it a lock is Python's own, and nothing
is checked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

CHECKED = os.environ.get("TAGWIRE_CHECK_LOCKS") == "1"

unguarded: list[str] = []
"""Every access so far that should have been guarded and was not, as `thread: class.attribute`."""

Class = TypeVar("Class", bound=type)

LogLock = AbstractContextManager[Any]


class UnguardedAccessError(AssertionError):
    """Guarded state was touched by a thread that does not hold its lock: a fault of the broker."""


class _OwnedLock:
    """A lock that knows which thread holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holder = None
        self._lock.release()

    @property
    def is_mine(self) -> bool:
        return self._holder == threading.get_ident()


def log_lock() -> LogLock:
    """A new lock, for `with`."""
    return _OwnedLock() if CHECKED else threading.Lock()


def guarded(lock: str, *, changed: Iterable[str] = (), used: Iterable[str] = ()) -> Callable[[Class], Class]:
    """A class decorator: some attributes belong to the lock that the attribute `lock` holds; None there frees them.

    Args:
        changed: attributes that only the holder of the lock may set. Anyone may read them: each is one reference to
            what never changes, or one number.
        used: attributes that only the holder may set or read. Setting one for the first time is free: nobody else
            knows the object then.
    """

    def decorate(owner: Class) -> Class:
        if CHECKED:
            for name in changed:
                setattr(owner, name, _Guard(owner.__name__, name, lock, reads=False))
            for name in used:
                setattr(owner, name, _Guard(owner.__name__, name, lock, reads=True))
        return owner

    return decorate


class _Guard:
    """Stands in for an attribute, whose value stays where it always is."""

    def __init__(self, owner: str, name: str, lock: str, *, reads: bool) -> None:
        self._owner = owner
        self._name = name
        self._lock = lock
        self._reads = reads

    def __get__(self, found: Any, owner: type) -> Any:
        if found is None:
            return self
        if self._reads:
            self._check(found)
        try:
            return found.__dict__[self._name]
        except KeyError:
            raise AttributeError(f"{self._owner} has no {self._name} yet") from None

    def __set__(self, found: Any, value: Any) -> None:
        if self._name in found.__dict__:
            self._check(found)
        found.__dict__[self._name] = value

    def _check(self, found: Any) -> None:
        lock = found.__dict__.get(self._lock)
        if lock is None or lock.is_mine:
            return
        access = f"{threading.current_thread().name}: {self._owner}.{self._name}"
        unguarded.append(access)
        raise UnguardedAccessError(f"{access} is of whoever holds {self._lock}")
