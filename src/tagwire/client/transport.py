"""A TCP connection to one broker: connected, versions asked, requests pipelined, answers in order.

This is the one place where errors of sockets become errors of tagwire. All deadlines are `time.monotonic` seconds.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tagwire.client.config import MAX_FRAME_BYTES
from tagwire.client.versions import range_of
from tagwire.errors import (
    ConnectError,
    ConnectionLostError,
    ProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.rpc import (
    CLOSED,
    NEED_DATA,
    Connection,
    Event,
    Excluded,
    Handshake,
    Limits,
    Range,
    Unsupported,
    api_name,
    choose,
)

LIMITS: Final = Limits(max_frame_bytes=MAX_FRAME_BYTES)

# Seconds for one address to accept a connection, so that one that swallows packets leaves time for the next
# (socket.connection.setup.timeout.ms of Java's clients).
CONNECT_TIMEOUT: Final = 10.0


class Pending:
    """A request on its way.

    Attributes:
        name: the request and its version, such as "Fetch v12".
        done: whether it is answered, or will never be.
    """

    __slots__ = ("_answer", "_error", "done", "name", "version")

    def __init__(self, name: str, version: int) -> None:
        self.name = f"{name} v{version}"
        self.version = version
        self.done = False
        self._answer: Any = None
        self._error: TagwireError | None = None

    def settle(self, answer: Any = None, error: TagwireError | None = None) -> None:
        """Called once, by the link."""
        self.done, self._answer, self._error = True, answer, error

    def result(self) -> Any:
        """The answer's message; None for a request that has no answer. Raises what went wrong instead."""
        if self._error is not None:
            raise self._error
        return self._answer


class Link:
    """One connection, ready for requests. Whatever goes wrong on it closes it: a new one is opened, never repaired.

    Attributes:
        broker: how errors call the other side, such as "broker 1 at kafka-1:9092".
        ranges: {API key: (lowest, highest)} as the broker answered on this connection.
        chosen: {API key: version} of what was asked so far.
    """

    def __init__(self, sock: socket.socket, *, broker: str, client_id: str, excluded: Excluded) -> None:
        self.broker = broker
        self.ranges: dict[int, Range] = {}
        self.chosen: dict[int, int] = {}
        self._socket = sock
        self._excluded = excluded
        self._connection = Connection("client", LIMITS, client_id=client_id)
        self._pending: deque[Pending] = deque()
        self._closed = False

    @classmethod
    def open(cls, host: str, port: int, *, broker: str, client_id: str, excluded: Excluded, deadline: float) -> Link:
        """Connects and asks ApiVersions.

        Raises:
            ConnectError: no connection; the text names the address and the reason.
            ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError: connected, but what
            answers is
                no broker we can talk to.
        """
        link = cls(connected_socket(host, port, deadline), broker=broker, client_id=client_id, excluded=excluded)
        try:
            link._shake(deadline)
        except ConnectionLostError as error:
            link.close()
            hint = "one that speaks TLS, or is older than Kafka 0.10, ends a plain connection like this"
            raise ConnectionLostError(f"{error}; {hint}") from error
        except BaseException:
            link.close()
            raise
        return link

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._pending)

    def fileno(self) -> int:
        """The socket's descriptor, for waiting on several links."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the connection; what is still to be answered never will be."""
        if not self._closed:
            self._fail(ConnectionLostError(f"{self.broker}: the connection was closed on this side"))

    def version(self, api: int) -> int:
        """The version to speak on this connection. Raises UnsupportedVersionError naming API, both ranges and
        broker."""
        if api not in self.chosen:
            ours = {api: range_of(api)}
            self.chosen[api] = choose(api, ours, self.ranges, broker=self.broker, excluded=self._excluded)
        return self.chosen[api]

    def send(self, message: Any, deadline: float, version: int | None = None) -> Pending:
        """Sends a request; `wait` gives its answer.

        Raises:
            UnsupportedVersionError, EncodeError: nothing was sent.
            ConnectionLostError, RequestTimeoutError: the link is closed.
        """
        if version is None:
            version = self.version(message.api_key)
        data = self._connection.send(message, version)
        pending = Pending(api_name(message.api_key), version)
        self._write(data, deadline, pending.name)
        if self._connection.due > len(self._pending):
            self._pending.append(pending)
        else:
            pending.settle()
        return pending

    def wait(self, pending: Pending, deadline: float) -> Any:
        """The answer to `pending`, a message; answers to requests before it are taken on the way.

        Raises:
            RequestTimeoutError: not before the deadline; the link is closed.
            ConnectionLostError, ProtocolError, DecodeError: the link is closed.
            UnsupportedVersionError: the broker says that it does not support the request.
        """
        started = time.monotonic()
        while not pending.done:
            self._read(deadline, pending.name, started)
        return pending.result()

    def poll(self) -> None:
        """Takes what has arrived, without waiting. What went wrong shows in the pending requests and in `closed`."""
        if self._closed:
            return
        try:
            self._socket.settimeout(0)
            while True:
                self._connection.received(self._socket.recv_into(self._connection.space()))
                self._take_events()
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(self._lost(error))
        except TagwireError as error:
            self._fail(error)

    def _shake(self, deadline: float) -> None:
        handshake = Handshake(self._connection, broker=self.broker)
        data = handshake.request()
        while not handshake.done:
            self._write(data, deadline, "ApiVersions")
            started = time.monotonic()
            while (event := self._next_event()) is None:
                self._receive(deadline, "ApiVersions", started)
            data = handshake.answer(event)  # type: ignore[arg-type]
        self.ranges = handshake.ranges

    def _write(self, data: bytes, deadline: float, name: str) -> None:
        if self._closed:
            raise ConnectionLostError(f"{self.broker}: the connection is closed")
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(data)
        except TimeoutError:
            raise self._fail(RequestTimeoutError(f"{self.broker} did not take {name} in time")) from None
        except OSError as error:
            raise self._fail(self._lost(error)) from error

    def _read(self, deadline: float, name: str, started: float) -> None:
        """Waits for bytes and settles what they answer."""
        if self._closed:
            raise ConnectionLostError(f"{self.broker}: the connection is closed")
        try:
            self._receive(deadline, name, started)
            self._take_events()
        except TagwireError as error:
            raise self._fail(error) from error.__cause__

    def _receive(self, deadline: float, name: str, started: float) -> None:
        try:
            self._socket.settimeout(_left(deadline))
            self._connection.received(self._socket.recv_into(self._connection.space()))
        except TimeoutError:
            waited = time.monotonic() - started
            raise RequestTimeoutError(f"{self.broker} did not answer {name} within {waited:.1f} s") from None
        except OSError as error:
            raise self._lost(error) from error

    def _take_events(self) -> None:
        while (event := self._next_event()) is not None:
            pending = self._pending.popleft()
            if isinstance(event, Unsupported):
                pending.settle(error=UnsupportedVersionError(f"{self.broker} does not support {pending.name}"))
            else:
                pending.settle(event.message)  # type: ignore[union-attr]

    def _next_event(self) -> Event | None:
        try:
            event = self._connection.next_event()
        except (ProtocolError, ConnectionLostError) as error:
            raise type(error)(f"{self.broker}: {error}") from error
        if event is CLOSED:
            raise ConnectionLostError(f"{self.broker} closed the connection")
        return None if event is NEED_DATA else event  # type: ignore[return-value]

    def _lost(self, error: OSError) -> ConnectionLostError:
        due = f"; {self._pending[0].name} was still to be answered" if self._pending else ""
        return ConnectionLostError(f"{self.broker}: {error.strerror or error}{due}")

    def _fail(self, error: TagwireError) -> TagwireError:
        self._closed = True
        self._socket.close()
        while self._pending:
            self._pending.popleft().settle(error=error)
        return error


def wait_any(links: Iterable[Link], deadline: float) -> bool:
    """Waits until something has arrived on one of the links, and takes it. False when the deadline passed first."""
    poller = select.poll()
    by_descriptor = {link.fileno(): link for link in links if not link.closed}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.POLLIN)
    ready = poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
    for descriptor, _ in ready:
        by_descriptor[descriptor].poll()
    return bool(ready)


def connected_socket(host: str, port: int, deadline: float) -> socket.socket:
    """A TCP connection, every address of `host` tried in turn.

    Raises:
        ConnectError: naming each address and why it failed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectError(f"{host}:{port} ({error.strerror or error})") from None
    failures: list[str] = []
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(min(_left(deadline), CONNECT_TIMEOUT))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as error:
            sock.close()
            failures.append(_failure(host, address, error))
        else:
            return sock
    raise ConnectError(f"{host}:{port} ({'; '.join(failures)})")


def _failure(host: str, address: Sequence[Any], error: OSError) -> str:
    reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
    return reason if address[0] == host else f"{address[0]}: {reason}"


def _left(deadline: float) -> float:
    """Seconds left, as a socket timeout; never 0, which would mean not to wait at all."""
    return max(deadline - time.monotonic(), 0.001)
