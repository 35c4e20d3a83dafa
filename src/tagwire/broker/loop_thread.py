"""An event loop in a thread of its own, for what a program starts and stops: a broker, or a cluster of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from tagwire.broker.event_loop import run
from tagwire.call_result import CallResult
from tagwire.errors import TagwireError

Given = TypeVar("Given")


class _StoppedError(Exception):
    """Of a call: the service stopped before it was done."""


class LoopThread:
    """Runs `service` from when it is made until `stop`: inside its `async with` block.

    Raises:
        What entering `service` raises.
    """

    def __init__(self, service: AbstractAsyncContextManager[Any]) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._asked: dict[CallResult[Any], None] = {}  # what `call` waits for
        self._tasks: set[asyncio.Task[Any]] = set()  # of calls: a loop keeps none of its own
        self._has_ended = False
        self._ready: CallResult[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = CallResult()
        self._thread = threading.Thread(target=self._run, name="tagwire-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        try:
            self._loop, self._stopping = self._ready.result()
        except BaseException:
            self._thread.join()  # of a service that does not begin nothing is left, its thread neither
            raise

    def call(self, work: Coroutine[object, None, Given]) -> Given:
        """What a coroutine gives, on the service's loop.

        Raises:
            TagwireError: the service has stopped, or stops before the coroutine is done.
        """
        called: CallResult[Given] = CallResult()
        with self._lock:
            try:
                if self._has_ended:
                    raise RuntimeError
                self._loop.call_soon_threadsafe(self._begin, work, called)
            except RuntimeError:  # its loop is closed
                work.close()
                raise TagwireError("it is not running any more") from None
            self._asked[called] = None
        try:
            called.wait()
            return called.result()
        except _StoppedError:
            work.close()  # it may never have begun
            raise TagwireError("it stopped meanwhile") from None
        finally:
            with self._lock:
                self._asked.pop(called, None)

    def stop(self) -> None:
        """Leave the service, and return when that is done."""
        self.let_go()
        self._thread.join()

    def let_go(self) -> None:
        """Let it stop by itself. Any thread may say so, the service's own among them."""
        with suppress(RuntimeError):  # it has stopped already, or everything has
            self._loop.call_soon_threadsafe(self._stopping.set)

    def _begin(self, work: Coroutine[object, None, Given], called: CallResult[Given]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)

        def settle(task: asyncio.Task[Given]) -> None:
            self._tasks.discard(task)
            if task.cancelled():
                called.fail(_StoppedError())
            elif (error := task.exception()) is not None:
                called.fail(error)
            else:
                called.give(task.result())

        task.add_done_callback(settle)

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:
            if self._ready.is_settled:
                raise
            self._ready.fail(error)
        finally:
            self._release()

    def _release(self) -> None:
        """Let those go who wait for what a loop that has ended will never do."""
        with self._lock:
            self._has_ended, left = True, list(self._asked)
        for called in left:
            if not called.is_settled:
                called.fail(_StoppedError())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        async with self._service:
            self._ready.give((asyncio.get_running_loop(), stopping))
            await stopping.wait()
