"""Who ends a core that a thread runs: what Producer and Consumer do alike."""

from __future__ import annotations

import warnings
import weakref
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final

from tagwire.at_exit import quiet_at_exit
from tagwire.client.core_thread import CoreThread
from tagwire.client.owning import ClientOwner
from tagwire.client.scheduling import completed
from tagwire.client.unclosed import unclosed
from tagwire.errors import TagwireError

# Seconds that a program which was interrupted still waits for its records, or for its last commit, at the end of a
# `with`.
LAST_SECOND: Final = 1.0


class CoreOwner(ClientOwner):
    """Has a thread of its own, which ends with it. Collecting one that nobody closed ends the thread and nothing else:
    no transaction, no membership. A process that was forked off has no such thread, and ends nothing of its parent's.
    """

    def _run_in(self, thread: CoreThread) -> None:
        """Takes the thread, once."""
        self._thread = thread
        self._is_closed = False
        self._collected = weakref.finalize(self, thread.stop, wait=False)
        self._collected.atexit = False

    @abstractmethod
    def close(self, timeout: float = ...) -> None:
        """Does what is to be done at last, within so many seconds, and ends the thread and its connections."""

    def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs what is to be done at last, and ends the thread and its connections in any case."""
        if self._is_closed:
            return
        try:
            if not self._thread.is_over and self._thread.is_of_this_process:
                completed(last())
        finally:
            self._is_closed = True
            self._thread.stop()
            self._collected.detach()  # what is closed has nothing left to be collected for, and is kept by nobody
            super().close()

    @quiet_at_exit
    def __del__(self) -> None:
        if hasattr(self, "_collected") and not self._is_closed and self._thread.is_of_this_process:
            told = unclosed(self, self._network.core.addresses)
            warnings.warn(told, ResourceWarning, stacklevel=2, source=self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_interrupted = error is not None and not isinstance(error, Exception)
        try:
            if is_interrupted:
                self.close(LAST_SECOND)
            else:
                self.close()
        except TagwireError:
            if error is None:
                raise
