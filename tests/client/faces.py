"""The faces of the client as walks use them: those of threads, and those of tasks, which a loop in a thread runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from tagwire.client import Admin, Client, Consumer, Producer, Reader
from tagwire.client.aio import (
    AsyncAdmin,
    AsyncClient,
    AsyncConsumer,
    AsyncDelivery,
    AsyncProducer,
    AsyncReader,
    AsyncRowsDelivery,
)

SECONDS = 120


@dataclass(frozen=True)
class Face:
    """What makes clients, and what works with one."""

    name: str
    client: Callable[..., Any]
    admin: Callable[..., Any]
    producer: Callable[..., Any]
    reader: Callable[..., Any]
    consumer: Callable[..., Any]


THREADS = Face("threads", Client, Admin, Producer, Reader, Consumer)


class LoopThread:
    """An event loop in a thread of its own.

    Attributes:
        said: what it told of tasks and callbacks that went wrong.
    """

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
        self.loop = factory()
        self.said: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda loop, context: self.said.append(context))
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What a function or a coroutine function gives in the loop, as threads can use it."""

        if threading.current_thread() is self._thread:
            return function(*args, **options)  # by a listener, which gives it on to be awaited

        async def run() -> Any:
            found = function(*args, **options)
            return await found if isawaitable(found) else found

        return self._adapted(asyncio.run_coroutine_threadsafe(run(), self.loop).result(SECONDS))

    def make(self, kind: Callable[..., Any]) -> Callable[..., InLoop]:
        """Makes objects of a kind in the loop."""

        def made(*args: Any, **options: Any) -> InLoop:
            given = [arg.target if isinstance(arg, InLoop) else arg for arg in args]
            return InLoop(self, self.call(lambda: _Made(kind(*given, **options))).target)

        return made

    def close(self) -> None:
        async def rest() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

        self.call(rest)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _adapted(self, found: Any) -> Any:
        if isinstance(found, AsyncDelivery | AsyncRowsDelivery):
            return DeliveryInLoop(self, found)
        if isinstance(found, AsyncIterator):
            return self.iterated(found)
        if isinstance(found, AbstractAsyncContextManager) and not isinstance(found, _Made):
            return self._entered(found)
        return found

    def iterated(self, found: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self.call(found.__anext__)
            except StopAsyncIteration:
                return

    @contextmanager
    def _entered(self, block: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        self.call(block.__aenter__)
        try:
            yield
        except BaseException as error:
            if not self.call(block.__aexit__, type(error), error, error.__traceback__):
                raise
        else:
            self.call(block.__aexit__, None, None, None)


@dataclass(frozen=True)
class _Made:
    target: Any


class InLoop:
    """A client, or what works with one, whose methods are called in its loop."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        self.thread = thread
        self.target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.target, name)
        if not callable(found):
            return found
        if name == "identity":  # what threads have as a property is awaited by tasks
            return self.thread.call(found)
        return lambda *args, **options: self.thread.call(found, *args, **options)

    def __enter__(self) -> InLoop:
        self.thread.call(self.target.__aenter__)
        return self

    def __exit__(self, *error: Any) -> None:
        self.thread.call(self.target.__aexit__, *error)

    def __iter__(self) -> Iterator[Any]:
        return self.thread.iterated(aiter(self.target))

    def __next__(self) -> Any:
        try:
            return self.thread.call(anext, self.target)
        except StopAsyncIteration:
            raise StopIteration from None

    def __del__(self) -> None:  # as what threads use: readers of a client need not be closed
        if isinstance(self.target, AsyncReader) and not self.thread.loop.is_closed():
            asyncio.run_coroutine_threadsafe(self.target.close(), self.thread.loop)


class DeliveryInLoop:
    """A delivery that a thread waits for."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def result(self, timeout: float | None = None) -> Any:
        async def wait() -> Any:
            async with asyncio.timeout(timeout):
                return await self._target

        return self._thread.call(wait)


@contextmanager
def tasks(name: str, factory: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[Face]:
    """The faces of tasks, in a loop of theirs. Raises AssertionError where the loop told of what went wrong."""
    thread = LoopThread(factory)
    made = (AsyncClient, AsyncAdmin, AsyncProducer, AsyncReader, AsyncConsumer)
    try:
        yield Face(name, *map(thread.make, made))
    finally:
        thread.close()
    assert not thread.said, thread.said
