"""The accumulator of a producer whose callers wait: for room, and for what they have appended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from tagwire.client.config import ProduceSettings
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.errors import RequestTimeoutError, TagwireError


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


class BlockingAccumulator(RecordAccumulator):
    """A `RecordAccumulator` whose `append` waits for room, up to `max_block` seconds. Takes what that does.

    Args:
        require_waitable: raises TagwireError where waiting for the sending thread would not end.
    """

    def __init__(
        self,
        settings: ProduceSettings,
        now: Callable[[], float],
        wakeup: Callable[[], None],
        require_waitable: Callable[[], None],
    ) -> None:
        super().__init__(settings, BatchCompletion(require_waitable), now, wakeup)

    def flush(self, deadline: float) -> None:
        """Waits until every batch is complete.

        Raises:
            TagwireError: the first failure since the last call. RequestTimeoutError: the deadline came first.
        """
        error = self.await_completion(deadline)
        if error is not None:
            raise error

    def await_completion(self, deadline: float) -> TagwireError | None:
        """`flush`, which returns the first failure since the last call. Raises RequestTimeoutError alone."""
        with self.completion:
            self.close_batches()
            for batch in list(self._incomplete):
                while not all(leaf.is_done for leaf in batch.leaves()):
                    left = deadline - self._now()
                    if left <= 0:
                        raise RequestTimeoutError(f"{len(self._incomplete)} batches were not delivered in time")
                    self.completion.wait(min(left, threading.TIMEOUT_MAX))
            error, self._error = self._error, None
            return error

    def _make_room(self, size: int) -> None:
        if self.refusal is None and not self.has_room(size):
            began = self._now()
            try:
                self._await_room(size, began + self._settings.max_block)
            finally:
                self.on_room(self._now() - began, self.has_room(size))
        if self.refusal is not None:
            raise self.refusal

    def _await_room(self, size: int, until: float) -> None:
        while self.refusal is None and not self.has_room(size):
            self.completion.require_waitable()
            self.close_batches()  # what waits for more records would wait in vain
            left = until - self._now()
            if left <= 0:
                raise self._no_room(size, self._settings.max_block)
            self.completion.wait(min(left, threading.TIMEOUT_MAX))
