"""What the threads of a producer's callers wait for: for room, and for what they have appended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from tagwire.call_result import CallResult
from tagwire.client import process
from tagwire.client.producing.producer_batch import News


class BatchCompletion:
    """Tells whoever waits whenever a batch is complete: see `Completion`.

    Who waits holds nothing meanwhile, and waits for a lock of their own: an interrupt, such as Ctrl-C, leaves no lock
    that is held for ever, and releases none of another thread's.

    Args:
        require_waitable: raises TagwireError where waiting for that would not end.
    """

    def __init__(self, require_waitable: Callable[[], None]) -> None:
        self.lock: AbstractContextManager[object] = threading.RLock()
        self.require_waitable = require_waitable
        self._made_in = process.current
        self._waiting: dict[BlockingNews, None] = {}  # in the order in which they came

    def held(self) -> AbstractContextManager[object]:
        """As `Completion.held`. Raises TagwireError in a process that was forked off, where nobody may be to let go of
        the lock."""
        process.require(self._made_in, "producer")
        return self.lock

    def news(self) -> News:
        """As `Completion.news`."""
        news = BlockingNews(self)
        self._waiting[news] = None
        return news

    def notify_all(self) -> None:
        """Some batches are complete. The lock is held."""
        if self._waiting:
            waiting = list(self._waiting)  # at once: some of them may give up meanwhile
            self._waiting.clear()
            for news in waiting:
                news.come.give(None)

    def forget(self, news: BlockingNews) -> None:
        """Nobody waits for these any more."""
        self._waiting.pop(news, None)


class BlockingNews:
    """What one thread waits for.

    Attributes:
        come: given when they have.
    """

    __slots__ = ("_completion", "come")

    def __init__(self, completion: BatchCompletion) -> None:
        self._completion = completion
        self.come: CallResult[None] = CallResult()

    async def wait(self, until: float) -> None:
        """Blocks until they come, or until a time (`time.monotonic` seconds).

        Raises:
            TagwireError: waiting would not end.
        """
        try:
            self._completion.require_waitable()
            self.come.wait(until - time.monotonic())
        finally:
            self._completion.forget(self)
