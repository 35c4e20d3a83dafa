"""What crosses the socket of one connection, both ways, as it is or as TLS has encrypted it; without the socket."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.tls import Tls
from tagwire.rpc import Connection


class Transport:
    """Frames of requests that the broker has not taken yet, and bytes from it on their way to the protocol.

    Attributes:
        protocol: what makes frames of requests, and responses of bytes.
        tls: None where bytes go as they are, and before `begin`.
        size: bytes of frames that are not written yet, before they are encrypted.

    Args:
        received, written: told how many bytes of frames the protocol, or the system, has taken.
    """

    def __init__(
        self, protocol: Connection, *, received: Callable[[int], None], written: Callable[[int], None]
    ) -> None:
        self.protocol = protocol
        self.tls: Tls | None = None
        self.size = 0
        self._received = received
        self._written = written
        self._is_held = False  # whether frames have to wait for the handshake
        self._frames: deque[tuple[memoryview, InFlightRequest[Any]]] = deque()
        self._ciphertext = memoryview(b"")
        self._encrypted = 0  # bytes of the first frame that `_ciphertext` holds

    # The handshake -------------------------------------------------------------------------------------------------

    def begin(self, tls: Tls | None) -> bool:
        """Begins with a socket that is connected; whether frames can be sent at once. Raises as `shake_hands`."""
        self.tls, self._is_held = tls, tls is not None
        return self.shake_hands()

    def shake_hands(self) -> bool:
        """Goes on with the handshake of TLS; whether it is complete. Raises ConnectError: its text is the reason."""
        self._is_held = self.tls is not None and not self.tls.shake_hands()
        return not self._is_held

    # Bytes from the broker -----------------------------------------------------------------------------------------

    def received(self, count: int) -> None:
        """Tells that `count` bytes are in the `space()` of TLS, or else of the protocol; 0 means that the broker closed
        its side."""
        if self.tls is None:
            self.protocol.received(count)
            self._received(count)
        else:
            self.tls.received(count)

    def decrypt(self) -> None:
        """Gives the protocol what was received encrypted.

        Raises:
            OSError: TLS has failed.
        """
        while self.tls is not None and (count := self.tls.decrypt(self.protocol.space())) is not None:
            self.protocol.received(count)
            if not count:
                return
            self._received(count)

    # Bytes to the broker -------------------------------------------------------------------------------------------

    def put(self, frame: bytes, request: InFlightRequest[Any]) -> None:
        """Adds the frame of a request."""
        self._frames.append((memoryview(frame), request))
        self.size += len(frame)

    def output(self) -> memoryview:
        """What is to be written next, also what TLS says by itself; empty where that is nothing.

        Raises:
            OSError: TLS takes nothing more.
        """
        if self.tls is None:
            return self._frames[0][0] if self._frames else self._ciphertext
        if not self._ciphertext:
            if self._frames and not self._is_held:
                self._encrypted = self.tls.encrypt(self._frames[0][0])
            self._ciphertext = memoryview(self.tls.output())
        return self._ciphertext

    def written(self, count: int) -> bool:
        """Takes that the first `count` bytes of `output` were handed to the system; whether there may be more."""
        if self.tls is not None:
            self._ciphertext = self._ciphertext[count:]
            if self._ciphertext:
                return True
            count, self._encrypted = self._encrypted, 0
            if not count:
                return True
        data, request = self._frames[0]
        self.size -= count
        self._written(count)
        if count < len(data):
            self._frames[0] = data[count:], request
            return True
        self._frames.popleft()
        request.is_written = True
        if not request.has_response:
            request.settle()
        return bool(self._frames) or self.tls is not None

    def without_response(self) -> Iterator[InFlightRequest[Any]]:
        """The requests among those that wait that have no response."""
        return (request for _, request in self._frames if not request.has_response)

    def clear(self) -> None:
        """Forgets all that waits."""
        self._frames.clear()
        self._ciphertext, self._encrypted, self.size = memoryview(b""), 0, 0
