"""What of asyncio takes more turns of a loop in one Python than in another, as the world has it in all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def wait_for(fut: Awaitable[Any], timeout: float | None) -> Any:
    """`asyncio.wait_for`, as it is from Python 3.12 on."""
    async with asyncio.timeout(timeout):
        return await fut


def gather(*works: Awaitable[Any], return_exceptions: bool = False) -> asyncio.Future[list[Any]]:
    """`asyncio.gather`, as it is from Python 3.12 on: what is done already is not waited for."""
    loop = asyncio.get_running_loop()
    children = [asyncio.ensure_future(work) for work in works]
    left = len(children)
    outer: Any = asyncio.tasks._GatheringFuture(children, loop=loop)  # type: ignore[attr-defined]

    def is_done(child: asyncio.Future[Any]) -> None:
        nonlocal left
        left -= 1
        failure = asyncio.CancelledError() if child.cancelled() else child.exception()
        if outer.done():
            return
        if failure is not None and not return_exceptions:
            outer.set_exception(failure)
        elif not left and outer._cancel_requested:
            outer.set_exception(asyncio.CancelledError())
        elif not left:
            outer.set_result([_given(each) for each in children])

    if not children:
        outer.set_result([])
    for child in children:
        if child.done():
            is_done(child)
        else:
            child.add_done_callback(is_done)
    return outer


def _given(child: asyncio.Future[Any]) -> Any:
    if child.cancelled():
        return asyncio.CancelledError()
    error = child.exception()
    return child.result() if error is None else error
