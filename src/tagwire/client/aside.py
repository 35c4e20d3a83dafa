"""What a connection needs that no broker gives. It is done in a thread, so that no core and no event loop waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Result = TypeVar("Result")


class Aside(Protocol):
    """Something that a connection waits for.

    Attributes:
        is_done: whether it is there, or has failed.
    """

    is_done: bool

    def begin(self, done: Callable[[], None], loop: AbstractEventLoop | None) -> None:
        """Called once, by the driver: `done` is called when it is there, from any thread.

        Args:
            loop: the event loop that the client runs in; None where it has none.
        """

    def not_yet(self) -> str:
        """What is missing, and why it may be late."""


class AsideCall(Generic[Result]):
    """A call that may block.

    Args:
        call: what is called, once.
        name: what is missing until then.
    """

    def __init__(self, call: Callable[[], Result], name: str) -> None:
        self.is_done = False
        self._call = call
        self._name = name
        self._result: Result | None = None
        self._error: BaseException | None = None

    def begin(self, done: Callable[[], None], loop: AbstractEventLoop | None) -> None:
        run_aside(lambda: self._run(done), self._name)

    def not_yet(self) -> str:
        return f"{self._name} is not there in time"

    def result(self) -> Result:
        """What it gave. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def _run(self, done: Callable[[], None]) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # the connection's, whatever it is
            self._error = error
        self.is_done = True
        done()


def run_aside(work: Callable[[], None], name: str) -> None:
    """Runs it in a thread of its own, which does not keep the process."""
    try:
        threading.Thread(target=work, name=f"tagwire-aside {name}", daemon=True).start()
    except RuntimeError:  # as many threads as the system allows, or the interpreter is about to end: others wait
        work()
