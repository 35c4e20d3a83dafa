"""The event loop the broker runs on: uvloop's where it is installed, else Python's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


def run(main: Coroutine[object, None, None]) -> None:
    """Run `main` on a new event loop in this thread, until it is done."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # there is none for Windows and PyPy
        return asyncio.new_event_loop
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new_event_loop
