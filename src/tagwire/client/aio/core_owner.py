"""Who ends a core that runs on an event loop: what AsyncProducer and AsyncConsumer do alike."""

from __future__ import annotations

import warnings
import weakref
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from tagwire.at_exit import quiet_at_exit
from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.aio.core_task import CoreTask, stop_soon
from tagwire.client.aio.owning import AsyncClientOwner
from tagwire.client.aio.unclosed import unclosed
from tagwire.client.core_owner import LAST_SECOND
from tagwire.errors import TagwireError


class AsyncCoreOwner(AsyncClientOwner):
    """Has work in the loop, which ends with it. Collecting one that nobody closed ends the work and nothing else: no
    transaction, no membership."""

    def _run_in(self, task: CoreTask, driver: AsyncioDriver) -> None:
        """Takes what does the work, once."""
        self._task = task
        self._is_closed = False
        self._collected = weakref.finalize(self, stop_soon, task, driver)
        self._collected.atexit = False

    @abstractmethod
    async def close(self, timeout: float = ...) -> None:
        """Does what is to be done at last, within so many seconds, and ends the work and its connections."""

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does what is to be done at last, and ends the work and its connections in any case, also where it is
        cancelled. Raises TagwireError in another loop, where nothing ends."""
        if self._is_closed:
            return
        self._task.require_waitable()
        try:
            if not self._task.is_over:
                await last()
        finally:
            self._is_closed = True
            self._task.stop()
            self._collected.detach()  # what is closed has nothing left to be collected for, and is kept by nobody
            await super().close()

    @quiet_at_exit
    def __del__(self) -> None:
        network = self._client._core.network if hasattr(self, "_collected") else None
        if network is not None and not self._is_closed and network.is_of_this_process:
            warnings.warn(unclosed(self, network.addresses), ResourceWarning, stacklevel=2, source=self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_interrupted = error is not None and not isinstance(error, Exception)
        try:
            if is_interrupted:
                await self.close(LAST_SECOND)
            else:
                await self.close()
        except TagwireError:
            if error is None:
                raise
