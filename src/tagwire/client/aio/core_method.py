"""How a face of tasks gets the calls of a core: each is made of the core's coroutine, with the documentation of the
blocking face's call of the same name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.scheduling import Wait

P = ParamSpec("P")
Result = TypeVar("Result")
Core = TypeVar("Core", covariant=True)
AnyCore = TypeVar("AnyCore")


class RunsCore(Protocol, Generic[Core]):
    """A face: what it calls, and what runs that."""

    @property
    def _core(self) -> Core: ...

    @property
    def _driver(self) -> AsyncioDriver: ...


def awaited(
    method: Callable[Concatenate[AnyCore, P], Coroutine[Wait, None, Result]], documented: Callable[..., object]
) -> Callable[Concatenate[RunsCore[AnyCore], P], Coroutine[Any, Any, Result]]:
    """The call of a face that awaits a call of its core; `documented` says what it does."""

    async def call(self: RunsCore[AnyCore], /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return await self._driver.run(method(self._core, *args, **kwargs))

    update_wrapper(call, documented)
    return call
