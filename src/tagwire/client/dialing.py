"""Connections that are being opened, each in a thread of its own: a broker that takes long delays no other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from tagwire.client.client import Client
from tagwire.client.metadata import Node
from tagwire.client.transport import Link


class Dialing:
    """The connections of a client that one thread asks for without waiting.

    Args:
        ring: called from other threads when a connection is there, or has failed.
    """

    def __init__(self, client: Client, ring: Callable[[], None]) -> None:
        self._client = client
        self._ring = ring
        self._calls: dict[int, tuple[Node, Future[Link]]] = {}

    def link(self, node: int, deadline: float) -> Link | None:
        """The connection to a broker, None while it is being opened. Raises as `Client.link`."""
        if node not in self._calls:
            ready = self._client.ready_link(node)
            if ready is None:
                self._calls[node] = self._dial(node, deadline)
            return ready
        found, call = self._calls[node]
        if not call.done():
            return None
        del self._calls[node]
        return self._client.opened(found, call.result)

    def close(self) -> None:
        """Whatever is still being opened is closed when it is there."""
        for _, call in self._calls.values():
            call.add_done_callback(_hang_up)
        self._calls.clear()

    def _dial(self, node: int, deadline: float) -> tuple[Node, Future[Link]]:
        found, connect = self._client.opening(node, deadline)
        call: Future[Link] = Future()

        def run() -> None:
            try:
                call.set_result(connect())
            except BaseException as error:
                call.set_exception(error)
            self._ring()

        threading.Thread(target=run, name=f"tagwire-dialing-{node}", daemon=True).start()
        return found, call


def _hang_up(call: Future[Link]) -> None:
    if call.exception() is None:
        call.result().close()
