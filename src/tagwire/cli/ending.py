"""SIGTERM, and the SIGHUP of a terminal that is closed, for commands that have something to bring to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _Ended(KeyboardInterrupt):
    """A signal came; it goes the way of Ctrl-C."""


@contextmanager
def answered_once(signals: tuple[signal.Signals, ...], answer: Callable[[int], None]) -> Iterator[None]:
    """Has `answer` called with the first of these signals that comes; from then on, and afterwards, they are as they
    were before. One that is ignored, as nohup has it, goes on to be.

    Outside of the main thread, where signals never arrive, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {each: signal.getsignal(each) for each in signals}
    before = {each: handler for each, handler in handlers.items() if handler is not signal.SIG_IGN}

    def put_back() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        put_back()
        answer(number)

    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        put_back()


@contextmanager
def ending_in_order() -> Iterator[None]:
    """What such a signal interrupts ends as at Ctrl-C: what was printed is committed, a member leaves its group, a
    transaction is aborted. A second one ends it at once. The exit code is a shell's."""
    came: list[int] = []

    def end(number: int) -> None:
        came.append(number)
        raise _Ended

    try:
        with answered_once(_SIGNALS, end):
            yield
    except _Ended:
        raise typer.Exit(128 + came[0]) from None
