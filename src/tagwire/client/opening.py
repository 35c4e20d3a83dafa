"""A connection that is being opened, which takes as long as name servers, the broker and TLS take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from tagwire.client.transport import Link
from tagwire.errors import ConnectError


class Opening:
    """Opens one connection, once: in the thread that calls `run`, or in one of its own.

    Attributes:
        broker: how errors call the other side.
        deadline: how long it is tried (`time.monotonic` seconds).

    Args:
        connect: opens it.
    """

    def __init__(self, broker: str, deadline: float, connect: Callable[[], Link]) -> None:
        self.broker = broker
        self.deadline = deadline
        self._connect = connect
        self._future: Future[Link] = Future()
        self._is_started = False

    @property
    def done(self) -> bool:
        """Whether it is open, or has failed."""
        return self._future.done()

    @property
    def is_under_way(self) -> bool:
        """Whether it is done, or being done in a thread."""
        return self._is_started or self._future.done()

    def result(self) -> Link:
        """The connection, once it is `done`. Raises what kept it from being opened: see `Link.open`."""
        return self._future.result()

    def run(self, until: float) -> None:
        """Opens it, in this thread; where a thread of its own does, waits for that, until a `time.monotonic` second."""
        if self._is_started:
            wait([self._future], max(until - time.monotonic(), 0.0))
        else:
            self._open()

    def start(self, wake: Callable[[], None]) -> None:
        """Opens it in a thread of its own, unless that was begun; `wake` is called there when it is done."""
        if self._is_started:
            return
        self._is_started = True

        def open_and_wake() -> None:
            self._open()
            wake()

        try:
            threading.Thread(target=open_and_wake, name=f"tagwire-opening {self.broker}", daemon=True).start()
        except RuntimeError as error:  # as many threads as the system allows, or the interpreter is about to end
            self._future.set_exception(ConnectError(f"{self.broker} ({error})"))

    def abandon(self) -> None:
        """Nobody wants the connection any more: it is closed as soon as it is there."""
        self._future.add_done_callback(_hang_up)

    def _open(self) -> None:
        try:
            link = self._connect()
        except Exception as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(link)


def _hang_up(future: Future[Link]) -> None:
    if future.exception() is None:
        future.result().close()
