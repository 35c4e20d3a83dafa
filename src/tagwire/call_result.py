"""What a call gives or raises that another thread carries out, for the one that waits for it.

Not a `concurrent.futures.Future`, nor any `threading.Condition`: an interrupt, such as Ctrl-C, in the midst of a wait
of theirs is hidden by an error of the lock that is given back without being held, or leaves one that is held for ever.
To wait for a lock is one step: it is interrupted, or it is not.
"""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Result = TypeVar("Result")


class CallResult(Generic[Result]):
    """Settled once, by one thread, and waited for by another.

    Attributes:
        is_given_up: whether nobody waits for it any more, so that what has not begun need not.
        is_settled: whether it is known what it gives or raises.
    """

    __slots__ = ("_error", "_lock", "_value", "is_given_up", "is_settled")

    def __init__(self) -> None:
        self.is_given_up = False
        self._value: Result | None = None
        self._error: BaseException | None = None
        self.is_settled = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self, value: Result) -> None:
        """It gives `value`."""
        self._value = value
        self._settle()

    def fail(self, error: BaseException) -> None:
        """It raises `error`."""
        self._error = error
        self._settle()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is settled, None for ever; whether it is."""
        if not self.is_settled:
            self._lock.acquire(timeout=-1 if seconds is None else min(max(seconds, 0.0), threading.TIMEOUT_MAX))
        return self.is_settled

    def result(self) -> Result:
        """What it gives, once it is settled. Raises what it raises; to be asked once."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # which its traceback would keep alive, and it the traceback
        return self._value  # type: ignore[return-value]

    def _settle(self) -> None:
        self.is_settled = True
        self._lock.release()
