"""An event loop in a thread of its own, for what a program starts and stops: a broker, or a cluster of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from tagwire.broker.event_loop import run
from tagwire.errors import TagwireError

Given = TypeVar("Given")


class LoopThread:
    """Runs `service` from when it is made until `stop`: inside its `async with` block.

    Raises:
        What entering `service` raises.
    """

    def __init__(self, service: AbstractAsyncContextManager[Any]) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._asked: set[Future[Any]] = set()  # what `call` waits for
        self._has_ended = False
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="tagwire-broker", daemon=True)
        self._thread.start()
        error = self._ready.exception()
        if error is not None:
            self._thread.join()  # of a service that does not begin nothing is left, its thread neither
            raise error
        self._loop, self._stopping = self._ready.result()

    def call(self, work: Coroutine[object, None, Given]) -> Given:
        """What a coroutine gives, on the service's loop.

        Raises:
            TagwireError: the service has stopped, or stops before the coroutine is done.
        """
        with self._lock:
            try:
                if self._has_ended:
                    raise RuntimeError
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
            except RuntimeError:  # its loop is closed
                work.close()
                raise TagwireError("it is not running any more") from None
            self._asked.add(future)
        try:
            return future.result()
        except CancelledError:
            work.close()  # it may never have begun
            raise TagwireError("it stopped meanwhile") from None
        finally:
            with self._lock:
                self._asked.discard(future)

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
        finally:
            self._release()

    def _release(self) -> None:
        """Let those go who wait for what a loop that has ended will never do."""
        with self._lock:
            self._has_ended, left = True, list(self._asked)
        for future in left:
            future.cancel()

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        async with self._service:
            self._ready.set_result((asyncio.get_running_loop(), stopping))
            await stopping.wait()
