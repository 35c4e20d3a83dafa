"""What the threads of a producer's callers wait in: for room, and for what they have appended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from tagwire.client import process


class BatchCompletion(threading.Condition):
    """Notified whenever a batch is complete: see `Completion`.

    Args:
        require_waitable: raises TagwireError where waiting for that would not end.
    """

    def __init__(self, require_waitable: Callable[[], None]) -> None:
        # Not a Lock: an interrupt while it is taken back after a wait would have `with` release it for another thread.
        lock = threading.RLock()
        super().__init__(lock)
        self.lock: AbstractContextManager[object] = lock
        self.require_waitable = require_waitable
        self._made_in = process.current
        self._blocked = 0  # threads that wait

    def __enter__(self) -> bool:
        """Takes the lock. Raises TagwireError in a process that was forked off, where nobody may be to let go of it."""
        process.require(self._made_in, "producer")
        return super().__enter__()

    def block(self, until: float) -> None:
        """Lets go until it is notified, or until a time (`time.monotonic` seconds), while the thread waits.

        Raises:
            TagwireError: waiting would not end.
        """
        self.require_waitable()
        self._blocked += 1  # the lock is held
        try:
            self.wait(min(max(until - time.monotonic(), 0.0), threading.TIMEOUT_MAX))
        finally:
            self._blocked -= 1

    def notify_all(self) -> None:
        """Some batches are complete. The lock is held."""
        if self._blocked:
            super().notify_all()

    async def changed(self, until: float) -> None:
        """`block`, for what may be awaited elsewhere."""
        self.block(until)
