"""An event loop in a thread of its own, for what a program starts and stops: a broker, or a cluster of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from tagwire.broker.event_loop import run

Given = TypeVar("Given")


class LoopThread:
    """Runs `service` from when it is made until `stop`: inside its `async with` block.

    Raises:
        What entering `service` raises.
    """

    def __init__(self, service: AbstractAsyncContextManager[Any]) -> None:
        self._service = service
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="tagwire-broker", daemon=True)
        self._thread.start()
        self._loop, self._stopping = self._ready.result()

    def call(self, work: Coroutine[object, None, Given]) -> Given:
        """What a coroutine gives, on the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        """Leave the service, and return when that is done."""
        self.let_go()
        self._thread.join()

    def let_go(self) -> None:
        """Let it stop by itself. Any thread may say so, the service's own among them."""
        with suppress(RuntimeError):  # it has stopped already, or everything has
            self._loop.call_soon_threadsafe(self._stopping.set)

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        async with self._service:
            self._ready.set_result((asyncio.get_running_loop(), stopping))
            await stopping.wait()
