"""Frames of requests that one broker has not taken yet: as they are, or as TLS has encrypted them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.tls import Tls


class Outgoing:
    """What a connection has yet to write, in order.

    Attributes:
        size: bytes of frames, before they are encrypted.

    Args:
        taken: told how many bytes of a frame the system has taken.
    """

    def __init__(self, taken: Callable[[int], None]) -> None:
        self.size = 0
        self._taken = taken
        self._frames: deque[tuple[memoryview, InFlightRequest[Any]]] = deque()
        self._ciphertext = memoryview(b"")
        self._encrypted = 0  # bytes of the first frame that `_ciphertext` holds

    def put(self, frame: bytes, request: InFlightRequest[Any]) -> None:
        """Adds the frame of a request."""
        self._frames.append((memoryview(frame), request))
        self.size += len(frame)

    def next(self, tls: Tls | None, *, is_held: bool) -> memoryview:
        """What is to be written next; with TLS, also what that says by itself.

        Args:
            is_held: whether frames have to wait for the handshake.

        Raises:
            OSError: TLS takes nothing more.
        """
        if tls is None:
            return self._frames[0][0] if self._frames else self._ciphertext
        if not self._ciphertext:
            if self._frames and not is_held:
                self._encrypted = tls.encrypt(self._frames[0][0])
            self._ciphertext = memoryview(tls.output())
        return self._ciphertext

    def written(self, count: int, tls: Tls | None) -> None:
        """Takes that the first `count` bytes of `next` were handed to the system."""
        if tls is not None:
            self._ciphertext = self._ciphertext[count:]
            if self._ciphertext:
                return
            count, self._encrypted = self._encrypted, 0
            if not count:
                return
        data, request = self._frames[0]
        self.size -= count
        self._taken(count)
        if count < len(data):
            self._frames[0] = data[count:], request
            return
        self._frames.popleft()
        request.is_written = True
        if not request.has_response:
            request.settle()

    def without_response(self) -> Iterator[InFlightRequest[Any]]:
        """The requests among them that have no response."""
        return (request for _, request in self._frames if not request.has_response)

    def clear(self) -> None:
        """Forgets all of it."""
        self._frames.clear()
        self._ciphertext, self._encrypted, self.size = memoryview(b""), 0, 0
