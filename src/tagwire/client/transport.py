"""A connection to one broker: TCP or TLS, versions asked, authenticated, requests pipelined, answers in order.

This is the one place where errors of sockets become errors of tagwire. Once it is open, nothing but `wait` blocks: what
the broker does not take yet is kept, and written when it does. All deadlines are `time.monotonic` seconds.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tagwire.client.config import MAX_FRAME_BYTES
from tagwire.client.metadata import NO_NODE
from tagwire.client.security import PLAINTEXT, Security
from tagwire.client.versions import VersionPolicy
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
    Authentication,
    BrokerFeatures,
    Connection,
    Event,
    Handshake,
    Limits,
    Range,
    Response,
    Unsupported,
    api_name,
    pause_after,
)
from tagwire.rpc.addresses import address_fault, address_text
from tagwire.rpc.apis import Apis

LIMITS: Final = Limits(max_frame_bytes=MAX_FRAME_BYTES)

# Seconds for one address to accept a connection, so that one that swallows packets leaves time for the next
# (socket.connection.setup.timeout.ms of Java's clients).
CONNECT_TIMEOUT: Final = 10.0

# Bytes that may wait for a broker to take them before the next request has to wait itself: with them no connection
# keeps more than this and one request.
WRITE_BUFFER: Final = 1024 * 1024

# Seconds that one wait for descriptors takes at most: more milliseconds than an int holds are an error of the system's.
_LONGEST_POLL: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Setup:
    """How every connection of a client begins."""

    client_id: str
    versions: VersionPolicy = field(default_factory=VersionPolicy)
    security: Security = PLAINTEXT
    apis: Apis = field(default_factory=dict)
    header_fields: Mapping[str, Any] = field(default_factory=dict)


class Pending:
    """A request on its way.

    Attributes:
        name: the request and its version, such as "Fetch v12".
        since: when it was sent (`time.monotonic`).
        is_written: whether all of it was handed to the system: before, the broker cannot have read it.
        has_answer: False for a request that brokers do not answer, which is done when it is written.
        done: whether it is answered, or will never be.
    """

    __slots__ = ("_answer", "_error", "done", "has_answer", "is_written", "name", "since", "version")

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.since = time.monotonic()
        self.is_written = False
        self.has_answer = True
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
        node: the broker's id, -1 while it is not known.
        ranges: {API key: (lowest, highest)} as the broker answered on this connection, or as the setup assumes.
        features: what the broker told of features on this connection.
        chosen: {API key: version} of what was asked so far.
        quiet_until: when the broker wants to hear of this client again (KIP-219).
        unwritten_bytes: how much of what was sent the broker has not taken yet.
    """

    def __init__(self, sock: socket.socket, *, broker: str, setup: Setup) -> None:
        self.broker = broker
        self.node = NO_NODE
        self.ranges: dict[int, Range] = {}
        self.features = BrokerFeatures()
        self.chosen: dict[int, int] = {}
        self.quiet_until = 0.0
        self._socket = sock
        self._versions = setup.versions
        self._connection = Connection(
            "client", LIMITS, client_id=setup.client_id, header_fields=setup.header_fields, apis=setup.apis
        )
        self._pending: deque[Pending] = deque()
        self._unwritten: deque[tuple[memoryview, Pending]] = deque()
        self.unwritten_bytes = 0
        self._write_needs_read = False  # TLS wants to read before it goes on writing
        self._closed = False

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        *,
        broker: str,
        setup: Setup,
        deadline: float,
        identity: tuple[str, int] | None = None,
    ) -> Link:
        """Connects, asks ApiVersions and authenticates, as the setup says.

        Args:
            identity: (cluster id, node id) of the broker that is meant, where they are known.

        Raises:
            KafkaError: ApiVersions is refused; REBOOTSTRAP_REQUIRED by a broker that is not the one meant.
            ConnectError: no connection; the text names the address and the reason.
            AuthenticationError: the credentials are refused, or the broker cannot prove itself.
            ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError: connected, but what
            answers is
                no broker we can talk to.
        """
        versions = setup.versions
        if versions.assumed is not None:
            return cls._begun(host, port, broker, setup, deadline, dict(versions.assumed))
        try:
            return cls._begun(host, port, broker, setup, deadline, None, identity)
        except ConnectionLostError as error:
            if versions.fallback is None:
                hint = "one that speaks TLS, or is older than Kafka 0.10, ends a plain connection like this"
                told = str(error) if setup.security.uses_tls else f"{error}; {hint}"
                raise ConnectionLostError(told) from error
        return cls._begun(host, port, broker, setup, deadline, dict(versions.fallback))

    @classmethod
    def _begun(
        cls,
        host: str,
        port: int,
        broker: str,
        setup: Setup,
        deadline: float,
        ranges: dict[int, Range] | None,
        identity: tuple[str, int] | None = None,
    ) -> Link:
        sock = setup.security.wrap(connected_socket(host, port, deadline), host, broker, deadline)
        sock.setblocking(False)
        link = cls(sock, broker=broker, setup=setup)
        try:
            if ranges is None:
                link._shake(deadline, identity)
            else:
                link.ranges = ranges
            if setup.security.uses_sasl:
                link._authenticate(setup.security, deadline)
                if ranges is None:
                    link._shake(deadline, identity)  # a broker may tell more to somebody it knows
        except BaseException:
            link.close()
            raise
        return link

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def has_unread(self) -> bool:
        """Whether bytes lie between TLS and us, which waiting for the socket does not tell."""
        return isinstance(self._socket, ssl.SSLSocket) and not self._closed and self._socket.pending() > 0

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._pending)

    @property
    def silent_since(self) -> float:
        """When the oldest request was sent that is not answered yet; infinity where all are."""
        return self._pending[0].since if self._pending else float("inf")

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes wait for the broker to take them."""
        return bool(self._unwritten) and not self._write_needs_read

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent; also where the link is closed, and sending it fails."""
        return self.unwritten_bytes <= WRITE_BUFFER or self._closed

    def fileno(self) -> int:
        """The socket's descriptor, for waiting on several links."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the connection; what is still to be answered never will be."""
        if not self._closed:
            self._fail(ConnectionLostError(f"{self.broker}: the connection was closed on this side"))

    def version(self, api: int, highest: int | None = None) -> int:
        """The version to speak on this connection, at most `highest`. Raises UnsupportedVersionError naming API, both
        ranges and broker."""
        if highest is not None:
            return self._versions.choose(api, self.ranges, self.broker, highest)
        if api not in self.chosen:
            self.chosen[api] = self._versions.choose(api, self.ranges, self.broker)
        return self.chosen[api]

    def pause(self, name: str, deadline: float) -> float:
        """Seconds until the broker wants to hear of this client again. Raises RequestTimeoutError where that is after
        the deadline of the request `name`."""
        left = self.quiet_until - time.monotonic()
        if left > 0 and self.quiet_until >= deadline:
            raise RequestTimeoutError(f"{self.broker} asked to be left alone for {left:.1f} s more; {name} cannot wait")
        return max(left, 0.0)

    def send(self, message: Any, version: int | None = None) -> Pending:
        """Puts a request on its way; `wait` gives its answer. It never waits: `has_room` and `pause` tell whether to
        send now.

        Raises:
            UnsupportedVersionError, EncodeError: nothing was sent.
            ConnectionLostError: the link is closed.
        """
        if version is None:
            version = self.version(message.api_key)
        if self._closed:
            raise ConnectionLostError(f"{self.broker}: the connection is closed")
        pending = Pending(f"{api_name(message.api_key)} v{version}", version)
        with self._whole():
            data = self._connection.send(message, version)
            if self._connection.due > len(self._pending):
                self._pending.append(pending)
            else:
                pending.has_answer = False
            self._put(data, pending)
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
            self._read(deadline, pending, started)
        return pending.result()

    def expire(self, pending: Pending) -> TagwireError:
        """Closes the link on which `pending` was not answered in time; the error that says so."""
        return self._fail(self._late(pending, time.monotonic() - pending.since))

    def poll(self) -> None:
        """Takes what has arrived and writes what the broker takes, without waiting. What went wrong shows in the
        pending requests and in `closed`."""
        if self._closed:
            return
        with self._whole():
            try:
                while self._receive_some():
                    self._take_events()
                self._write_some()
            except OSError as error:
                self._fail(self._lost(error))
            except TagwireError as error:
                self._fail(error)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is done whole, or ends the connection: after an interrupt nobody knows which request the next answer is
        to, or how far the last bytes were taken."""
        try:
            yield
        except TagwireError:
            raise
        except BaseException:
            self._fail(ConnectionLostError(f"{self.broker}: the connection was interrupted on this side"))
            raise

    def _shake(self, deadline: float, identity: tuple[str, int] | None) -> None:
        handshake = Handshake(self._connection, broker=self.broker, excluded=self._versions.excluded, identity=identity)
        self._exchange(handshake, "ApiVersions", deadline)
        self.ranges, self.features = handshake.ranges, handshake.features

    def _authenticate(self, security: Security, deadline: float) -> None:
        exchange = Authentication(
            self._connection,
            security.mechanism(),
            self.ranges,
            broker=self.broker,
            excluded=self._versions.excluded,
        )
        self._exchange(exchange, "SaslAuthenticate", deadline)

    def _exchange(self, exchange: Handshake | Authentication, name: str, deadline: float) -> None:
        """One question at a time until the exchange is done."""
        data = exchange.request()
        while not exchange.done:
            pending = Pending(name, version=0)
            self._put(data, pending)
            while (event := self._next_event()) is None:
                self._wait_for_bytes(deadline, pending, pending.since)
            data = exchange.answer(event)  # type: ignore[arg-type]

    def _put(self, data: bytes, pending: Pending) -> None:
        """Writes what the broker takes now, keeps the rest."""
        self._unwritten.append((memoryview(data), pending))
        self.unwritten_bytes += len(data)
        try:
            self._write_some()
        except OSError as error:
            raise self._fail(self._lost(error)) from error

    def _write_some(self) -> None:
        while self._unwritten:
            data, pending = self._unwritten[0]
            try:
                count = self._socket.send(data)
            except ssl.SSLWantReadError:
                self._write_needs_read = True
                return
            except (BlockingIOError, ssl.SSLWantWriteError):
                return
            self.unwritten_bytes -= count
            if count < len(data):
                self._unwritten[0] = data[count:], pending
                continue
            self._unwritten.popleft()
            pending.is_written = True
            if not pending.has_answer:
                pending.settle()

    def _receive_some(self) -> bool:
        """Whether any bytes had arrived; they are with the connection now."""
        try:
            self._connection.received(self._socket.recv_into(self._connection.space()))
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self._write_needs_read = False
        return True

    def _read(self, deadline: float, pending: Pending, started: float) -> None:
        """Waits for bytes and settles what they answer."""
        if self._closed:
            raise ConnectionLostError(f"{self.broker}: the connection is closed")
        with self._whole():
            try:
                self._wait_for_bytes(deadline, pending, started)
                self._take_events()
            except TagwireError as error:
                raise self._fail(error) from error.__cause__

    def _wait_for_bytes(self, deadline: float, pending: Pending, started: float) -> None:
        """Receives something, writing meanwhile what the broker takes."""
        try:
            while True:
                if (now := time.monotonic()) > max(deadline, started):  # though bytes of something may still drip in
                    raise self._late(pending, now - started)
                self._write_some()
                if pending.done:
                    return
                if self.has_unread or _ready([self], deadline):
                    if self._receive_some():
                        return
                elif time.monotonic() >= deadline:
                    raise self._late(pending, time.monotonic() - started)
        except OSError as error:
            raise self._lost(error) from error

    def _take_events(self) -> None:
        while (event := self._next_event()) is not None:
            pending = self._pending.popleft()
            if isinstance(event, Unsupported):
                pending.settle(error=UnsupportedVersionError(event.told_by(self.broker)))
            else:
                pending.settle(event.message)  # type: ignore[union-attr]

    def _next_event(self) -> Event | None:
        try:
            event = self._connection.next_event()
        except (ProtocolError, ConnectionLostError) as error:
            raise type(error)(f"{self.broker}: {error}") from error
        if event is CLOSED:
            raise ConnectionLostError(f"{self.broker} closed the connection")
        if isinstance(event, Response):
            pause = pause_after(event.api_key, event.version, event.message)
            self.quiet_until = max(self.quiet_until, time.monotonic() + pause) if pause else self.quiet_until
        return None if event is NEED_DATA else event  # type: ignore[return-value]

    def _late(self, pending: Pending, waited: float) -> RequestTimeoutError:
        failed = "answer" if pending.is_written else "take"
        return RequestTimeoutError(f"{self.broker} did not {failed} {pending.name} within {waited:.1f} s")

    def _lost(self, error: OSError) -> ConnectionLostError:
        due = f"; {self._pending[0].name} was still to be answered" if self._pending else ""
        return ConnectionLostError(f"{self.broker}: {error.strerror or error}{due}")

    def _fail(self, error: TagwireError) -> TagwireError:
        self._closed = True
        self._socket.close()
        lost = [*self._pending, *(pending for _, pending in self._unwritten if not pending.has_answer)]
        self._pending.clear()
        self._unwritten.clear()
        self.unwritten_bytes = 0
        for pending in lost:
            pending.settle(error=error)
        return error


class Waitable(Protocol):
    """What `wait_any` waits for: a link, or anything else with a descriptor that becomes readable."""

    @property
    def closed(self) -> bool: ...

    @property
    def has_unread(self) -> bool: ...

    @property
    def wants_to_write(self) -> bool: ...

    def fileno(self) -> int: ...

    def poll(self) -> None: ...


def wait_any(links: Iterable[Waitable], deadline: float) -> bool:
    """Waits until something has arrived on one of the links or can be written to it, and does that. False when the
    deadline passed first."""
    links = [link for link in links if not link.closed]
    ready = [link for link in links if link.has_unread] or _ready(links, deadline)
    for link in ready:
        link.poll()
    return bool(ready)


def _ready(links: Iterable[Waitable], deadline: float) -> list[Waitable]:
    """Waits for the descriptors of the links; those on which something can be done."""
    poller = select.poll()
    by_descriptor = {link.fileno(): link for link in links}
    for descriptor, link in by_descriptor.items():
        poller.register(descriptor, select.POLLIN | select.POLLOUT if link.wants_to_write else select.POLLIN)
    left = min(max(deadline - time.monotonic(), 0.0), _LONGEST_POLL)
    return [by_descriptor[descriptor] for descriptor, _ in poller.poll(left * 1000)]


def connected_socket(host: str, port: int, deadline: float) -> socket.socket:
    """A TCP connection, every address of `host` tried in turn.

    Raises:
        ConnectError: naming each address and why it failed, or why `host` and `port` can be none.
    """
    where = address_text((host, port))
    if fault := address_fault((host, port)):
        raise ConnectError(f"{where} ({fault})")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectError(f"{where} ({error.strerror or error})") from None
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
    raise ConnectError(f"{where} ({'; '.join(failures)})")


def _failure(host: str, address: Sequence[Any], error: OSError) -> str:
    reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
    return reason if address[0] == host else f"{address[0]}: {reason}"


def _left(deadline: float) -> float:
    """Seconds left, as a socket timeout; never 0, which would mean not to wait at all."""
    return max(deadline - time.monotonic(), 0.001)
