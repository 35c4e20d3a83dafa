"""A connection to one broker, without the socket: opened step by step, then requests pipelined, responses in order.

A driver resolves, connects, reads and writes for it and tells it what came of that; the connection gives it bytes and
deadlines. Nothing here blocks or reads a clock of its own. All times are seconds of the driver's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tagwire.client.config import MAX_FRAME_BYTES
from tagwire.client.connection_settings import ConnectionSettings, ConnectionState, ResolvedAddress
from tagwire.client.connection_setup import ConnectionSetup
from tagwire.client.in_flight_request import InFlightRequest, ResponseMessage
from tagwire.client.metadata import NO_NODE
from tagwire.client.metrics import ConnectionMetrics, Metrics
from tagwire.client.scheduling import NEVER, Wait
from tagwire.client.tls import Tls
from tagwire.codec import RequestMessage
from tagwire.errors import (
    AuthenticationError,
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
    BrokerFeatures,
    Connection,
    Limits,
    Range,
    Response,
    Unsupported,
    api_name,
    pause_after,
)
from tagwire.rpc.addresses import address_fault, address_text

LIMITS: Final = Limits(max_frame_bytes=MAX_FRAME_BYTES)

# Seconds for one address to accept a connection (socket.connection.setup.timeout.ms of Java's clients), or fewer, so
# that one that swallows packets leaves time for the next.
CONNECT_TIMEOUT: Final = 10.0

# Bytes that may wait for a broker to take them before the next request has to wait itself: with them no connection
# keeps more than this and one request.
WRITE_BUFFER: Final = 1024 * 1024

_Event = Response | Unsupported


class BrokerConnection:
    """One connection. Whatever goes wrong on it closes it: a new one is opened, never repaired.

    A driver calls what stands under "The driver's side". `state` tells it what the connection waits for:

    - RESOLVING: `resolved` or `not_resolved`.
    - CONNECTING: `connected` or `not_connected`, for `address`.
    - CLOSED: nothing more.
    - any other: bytes, through `space` and `received`, or `lost`; and `output` to be `written`.

    Attributes:
        host, port: where the broker listens.
        broker: how errors call it, such as "broker 1 at kafka-1:9092".
        node: the broker's id, -1 while it is not known.
        state: how far it has come.
        error: what closed it. failed_at: the state in which that was; None while it is open.
        attempt: counts the sockets that it has needed; the driver closes that of an earlier one.
        ranges: {API key: (lowest, highest)} as the broker told on this connection, or as the settings assume.
        features: what the broker told of features on this connection.
        chosen: {API key: version} of what was requested so far.
        throttled_until: when the broker wants to hear of this client again (KIP-219).
        unwritten_bytes: how much of what was sent the broker has not taken yet.

    Args:
        now: the driver's clock.
        deadline: how long it may take until the connection is ready.
        identity: (cluster id, node id) of the broker that is meant, where they are known (KIP-1242).
        on_ready: called when it is.
        metrics: what it measures is told.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        broker: str,
        settings: ConnectionSettings,
        now: Callable[[], float],
        deadline: float,
        identity: tuple[str, int] | None = None,
        on_ready: Callable[[BrokerConnection], None] = lambda connection: None,
        metrics: ConnectionMetrics | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.broker = broker
        self.node = NO_NODE
        self.state = ConnectionState.RESOLVING
        self.error: TagwireError | None = None
        self.failed_at: ConnectionState | None = None
        self.attempt = 0
        self.ranges: dict[int, Range] = {}
        self.features = BrokerFeatures()
        self.chosen: dict[int, int] = {}
        self.throttled_until = 0.0
        self.unwritten_bytes = 0
        self._settings = settings
        self._versions = settings.versions
        self._now = now
        self._setup_deadline = deadline
        self._identity = identity
        self._on_ready = on_ready
        self._metrics = ConnectionMetrics(Metrics(now)) if metrics is None else metrics
        self._notify: Callable[[BrokerConnection], None] = lambda connection: None
        self._assumed = self._versions.assumed
        self._addresses: deque[ResolvedAddress] = deque()
        self._failures: list[str] = []
        self._connect_until = NEVER
        self._is_connected = False
        self._protocol = self._new_protocol()
        self._tls: Tls | None = None
        self._ciphertext = memoryview(b"")
        self._encrypted = 0  # plaintext bytes that `_ciphertext` holds
        self._setup: ConnectionSetup | None = None
        self._setup_requests: Generator[tuple[str, bytes], _Event, None] | None = None
        self._setup_request: InFlightRequest[Any] | None = None
        self._in_flight: deque[InFlightRequest[Any]] = deque()
        self._unwritten: deque[tuple[memoryview, InFlightRequest[Any]]] = deque()

    # What requests are sent by -------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent."""
        return self.state is ConnectionState.READY

    @property
    def closed(self) -> bool:
        return self.state is ConnectionState.CLOSED

    @property
    def silent_since(self) -> float:
        """When the oldest request was sent that has no response yet; infinity where all have."""
        return self._in_flight[0].sent_at if self._in_flight else NEVER

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent; also where the connection is closed, and sending it fails."""
        return self.unwritten_bytes <= WRITE_BUFFER or self.closed

    async def opened(self, deadline: float) -> None:
        """Waits until it is ready, and lets it take until `deadline` for that.

        Raises:
            KafkaError: ApiVersions is refused; REBOOTSTRAP_REQUIRED by a broker that is not the one meant.
            ConnectError: no connection; the text names the address and the reason.
            AuthenticationError: the credentials are refused, or the broker cannot prove itself.
            ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError: connected, but what
                responds is no broker we can talk to.
        """
        self._setup_deadline = max(self._setup_deadline, deadline)
        await Wait(lambda: self.is_ready or self.closed, deadline)
        self.expire_setup()
        if self.closed:
            raise self.error or ConnectionLostError(f"{self.broker}: the connection is closed")
        if not self.is_ready:
            raise ConnectError(f"{self.broker} is still being connected to")

    def version(self, api: int, highest: int | None = None) -> int:
        """The version to speak on this connection, at most `highest`. Raises UnsupportedVersionError naming API, both
        ranges and broker."""
        if highest is not None:
            return self._versions.choose(api, self.ranges, self.broker, highest)
        if api not in self.chosen:
            self.chosen[api] = self._versions.choose(api, self.ranges, self.broker)
        return self.chosen[api]

    def throttle_delay(self, name: str, deadline: float) -> float:
        """Seconds until the broker wants to hear of this client again. Raises RequestTimeoutError where that is after
        the deadline of the request `name`."""
        left = self.throttled_until - self._now()
        if left > 0 and self.throttled_until >= deadline:
            raise RequestTimeoutError(f"{self.broker} throttles requests for {left:.1f} s more; {name} cannot wait")
        return max(left, 0.0)

    def send(
        self, message: RequestMessage[ResponseMessage], version: int | None = None
    ) -> InFlightRequest[ResponseMessage]:
        """Puts a request on its way. It never waits: `has_room` and `pause` tell whether to send now.

        Raises:
            UnsupportedVersionError, EncodeError: nothing was sent.
            ConnectionLostError: the connection is not ready.
        """
        if version is None:
            version = self.version(message.api_key)
        if not self.is_ready:
            raise ConnectionLostError(f"{self.broker}: the connection is closed")
        request: InFlightRequest[ResponseMessage] = self.request(f"{api_name(message.api_key)} v{version}", version)
        with self._whole():
            data = self._protocol.send(message, version)
            if self._protocol.due > len(self._in_flight):
                self._in_flight.append(request)
            else:
                request.has_response = False
            self._put(data, request)
        return request

    def request(self, name: str, version: int = 0) -> InFlightRequest[Any]:
        """A request that is to be sent here."""
        return InFlightRequest(self, name, version, self._now())

    def expire(self, request: InFlightRequest[Any]) -> TagwireError:
        """Closes the connection on which `request` had no response in time; the error that says so."""
        return self._close(request.late(self._now()))

    def close(self) -> None:
        """Closes the connection; what is in flight gets no response."""
        self._close(ConnectionLostError(f"{self.broker}: the connection was closed on this side"))

    # The driver's side ---------------------------------------------------------------------------------------------

    def attach(self, notify: Callable[[BrokerConnection], None]) -> None:
        """Called once, by the driver: `notify` is called whenever there is something new to write, or `state` or
        `attempt` has changed."""
        self._notify = notify
        if fault := address_fault((self.host, self.port)):
            self.not_resolved(fault)
        else:
            self._notify(self)

    @property
    def address(self) -> ResolvedAddress:
        """What to connect to now."""
        return self._addresses[0]

    @property
    def deadline(self) -> float:
        """When `expire_setup` is to be called; infinity where it need not be."""
        if self.state in (ConnectionState.READY, ConnectionState.CLOSED):
            return NEVER
        return min(self._setup_deadline, self._connect_until)

    def resolved(self, addresses: Sequence[ResolvedAddress]) -> None:
        """Takes the host's addresses, at least one, in the order in which to try them."""
        self._addresses, self._failures = deque(addresses), []
        self._connect()

    def not_resolved(self, reason: str) -> None:
        """Takes why the host has no address."""
        self._fail(ConnectError(f"{self._where} ({reason})"))

    def connected(self) -> None:
        """Takes that `address` is connected to."""
        self._connect_until = NEVER
        self._is_connected = True
        self._metrics.created()
        with self._guarded():
            self.state = ConnectionState.TLS
            try:
                self._tls = self._settings.security.tls(self.host)
            except ConnectError as error:
                raise self._no_tls(error) from None
            if self._tls is None:
                self._begin_setup()
            else:
                self._shake_hands()

    def not_connected(self, reason: str) -> None:
        """Takes why `address` could not be connected to; the next one is tried."""
        failed = self._addresses.popleft().address[0]
        self._failures.append(reason if failed == self.host else f"{failed}: {reason}")
        if self._addresses and self._now() < self._setup_deadline:
            self._connect()
        else:
            self._fail(ConnectError(f"{self._where} ({'; '.join(self._failures)})"))

    def space(self) -> memoryview:
        """Where the next bytes from the broker may be written: call `received` after it."""
        return self._protocol.space() if self._tls is None else self._tls.space()

    def received(self, count: int) -> None:
        """Tells that `count` bytes are in `space()`; 0 means that the broker closed its side."""
        with self._guarded():
            tls = self._tls
            if tls is None:
                self._protocol.received(count)
                self._metrics.received(self.node, count)
            else:
                tls.received(count)
                if self.state is ConnectionState.TLS and not self._shake_hands():
                    return
                if self._tls is tls:  # not begun again meanwhile
                    self._decrypt(tls)
            self._take_events()
            if self._tls is not None:
                self._notify(self)  # it may have had to hear something before it went on writing

    def output(self) -> memoryview:
        """What is to be written next; empty where that is nothing. After `written` there may be more. Of a connection
        that is closed, what TLS says last."""
        if self._tls is not None:
            if not self._ciphertext:
                self._encrypt(self._tls)
            return self._ciphertext
        return self._unwritten[0][0] if self._unwritten else self._ciphertext

    def written(self, count: int) -> None:
        """Tells that the first `count` bytes of `output()` were handed to the system."""
        if self._tls is not None:
            self._ciphertext = self._ciphertext[count:]
            if self._ciphertext:
                return
            count, self._encrypted = self._encrypted, 0
            if not count:
                return
        data, request = self._unwritten[0]
        self.unwritten_bytes -= count
        self._metrics.written(self.node, count)
        if count < len(data):
            self._unwritten[0] = data[count:], request
            return
        self._unwritten.popleft()
        request.is_written = True
        if not request.has_response:
            request.settle()

    def lost(self, reason: str) -> None:
        """Takes that the network failed."""
        if self.state is ConnectionState.TLS:
            self._fail(self._no_tls(f"{reason} in the TLS handshake; it may not speak TLS"))
            return
        due = f"; {self._in_flight[0].name} was still to be answered" if self._in_flight else ""
        self._fail(ConnectionLostError(f"{self.broker}: {reason}{due}"))

    def interrupted(self) -> None:
        """Takes that the driver was interrupted while it wrote or read: nobody knows how far."""
        self._close(ConnectionLostError(f"{self.broker}: the connection was interrupted on this side"))

    def expire_setup(self) -> None:
        """Gives up what was not done by `deadline`, as far as it is over."""
        now = self._now()
        if now < self.deadline:
            return
        if self.state is ConnectionState.RESOLVING:
            self.not_resolved("no answer of the name server in time")
        elif self.state is ConnectionState.CONNECTING:
            self.not_connected("timed out")
        elif self.state is ConnectionState.TLS:
            self._fail(self._no_tls("no answer to the TLS handshake in time"))
        elif self._setup_request is not None:
            self._fail(self._setup_request.late(now))

    @property
    def tls(self) -> Tls | None:
        """What is known of TLS, once it is connected."""
        return self._tls

    # Opening -------------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return address_text((self.host, self.port))

    def _new_protocol(self) -> Connection:
        told = self._settings
        return Connection("client", LIMITS, client_id=told.client_id, header_fields=told.header_fields, apis=told.apis)

    def _connect(self) -> None:
        self.attempt += 1
        self.state = ConnectionState.CONNECTING
        now = self._now()
        share = (self._setup_deadline - now) / len(self._addresses)
        self._connect_until = now + min(CONNECT_TIMEOUT, share)
        self._notify(self)

    def _no_tls(self, reason: object) -> ConnectError:
        return ConnectError(f"{self.broker}: no TLS: {reason}")

    def _shake_hands(self) -> bool:
        """Goes on with the handshake of TLS; whether it is complete, and the next step begun."""
        assert self._tls is not None
        try:
            if self._tls.shake_hands():
                self._begin_setup()
        except ConnectError as error:
            raise self._no_tls(error) from None
        self._notify(self)
        return self.state is not ConnectionState.TLS

    def _begin_setup(self) -> None:
        self._setup = ConnectionSetup(
            self._protocol, self._settings, broker=self.broker, assumed=self._assumed, identity=self._identity
        )
        self._setup_requests = self._setup.requests()
        self._go_on(self._setup, None)

    def _go_on(self, setup: ConnectionSetup, event: _Event | None) -> None:
        """Sends the next request of the setup; where none is left, the connection is ready."""
        assert self._setup_requests is not None
        try:
            name, data = self._setup_requests.send(event)  # type: ignore[arg-type]
        except StopIteration:
            self._setup = self._setup_requests = self._setup_request = None
            self.ranges, self.features = setup.ranges, setup.features
            self.state = ConnectionState.READY
            if self._settings.security.uses_tls or self._settings.security.uses_sasl:
                self._metrics.authenticated()
            self._on_ready(self)
        else:
            self.state = setup.state
            self._setup_request = self.request(name)
            self._put(data, self._setup_request)

    def _fall_back(self, error: ConnectionLostError) -> TagwireError | None:
        """Where the broker ended the connection before it was ready: begins again with the versions to take for granted
        then, or gives the error that says more."""
        versions = self._versions
        if self._assumed is not None:
            return error
        if versions.fallback is None:
            hint = "one that speaks TLS, or is older than Kafka 0.10, ends a plain connection like this"
            return error if self._settings.security.uses_tls else ConnectionLostError(f"{error}; {hint}")
        self._assumed = versions.fallback
        self._protocol, self._tls, self._setup = self._new_protocol(), None, None
        self._ciphertext, self._encrypted, self.unwritten_bytes = memoryview(b""), 0, 0
        self._unwritten.clear()
        self.attempt += 1
        self.state = ConnectionState.RESOLVING
        self._disconnected()
        self._notify(self)
        return None

    def _disconnected(self) -> None:
        if self._is_connected:
            self._is_connected = False
            self._metrics.closed()

    # Requests and responses ----------------------------------------------------------------------------------------

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is done whole, or ends the connection: after an interrupt nobody knows which request the next response
        is to, or how far the last bytes were taken."""
        try:
            yield
        except TagwireError:
            raise
        except BaseException:
            self.interrupted()
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """What the driver told of is taken whole; what is wrong about it closes the connection."""
        with self._whole():
            try:
                yield
            except TagwireError as error:
                self._fail(error)

    def _put(self, data: bytes, request: InFlightRequest[Any]) -> None:
        self._unwritten.append((memoryview(data), request))
        self.unwritten_bytes += len(data)
        self._metrics.requested(self.node, len(data))
        self._notify(self)

    def _encrypt(self, tls: Tls) -> None:
        try:
            if self._unwritten and self.state is not ConnectionState.TLS:
                self._encrypted = tls.encrypt(self._unwritten[0][0])
        except OSError as error:
            self.lost(error.strerror or str(error))
        else:
            self._ciphertext = memoryview(tls.output())

    def _decrypt(self, tls: Tls) -> None:
        try:
            while (count := tls.decrypt(self._protocol.space())) is not None:
                self._protocol.received(count)
                if not count:
                    return
                self._metrics.received(self.node, count)
        except OSError as error:
            self.lost(error.strerror or str(error))

    def _take_events(self) -> None:
        while not self.closed and (event := self._next_event()) is not None:
            request = self._setup_request if self._setup is not None else self._in_flight.popleft()
            assert request is not None
            self._metrics.responded(self.node, self._now() - request.sent_at)
            if self._setup is not None:
                self._go_on(self._setup, event)
                continue
            if isinstance(event, Unsupported):
                request.settle(error=UnsupportedVersionError(event.told_by(self.broker)))
            else:
                request.settle(event.message)

    def _next_event(self) -> _Event | None:
        try:
            event = self._protocol.next_event()
        except (ProtocolError, ConnectionLostError) as error:
            raise type(error)(f"{self.broker}: {error}") from error
        if event is CLOSED:
            raise ConnectionLostError(f"{self.broker} closed the connection")
        if isinstance(event, Response):
            pause = pause_after(event.api_key, event.version, event.message)
            self.throttled_until = max(self.throttled_until, self._now() + pause) if pause else self.throttled_until
        return None if event is NEED_DATA else event  # type: ignore[return-value]

    def _fail(self, error: TagwireError) -> None:
        if self.closed:
            return
        is_lost = isinstance(error, ConnectionLostError) and not self.is_ready
        told = self._fall_back(error) if is_lost else error  # type: ignore[arg-type]
        if told is not None:
            self._close(told)

    def _close(self, error: TagwireError) -> TagwireError:
        """Ends it, unless it has ended; `error`."""
        if self.closed:
            return error
        self.failed_at, self.state, self.error = self.state, ConnectionState.CLOSED, error
        self._disconnected()
        if isinstance(error, AuthenticationError):
            self._metrics.refused()
        lost = [*self._in_flight, *(request for _, request in self._unwritten if not request.has_response)]
        self._in_flight.clear()
        self._unwritten.clear()
        self._ciphertext, self.unwritten_bytes = memoryview(b""), 0
        try:
            for request in lost:
                request.settle(error=error)
        finally:  # also where that is interrupted: nobody closes it again
            self._notify(self)
        return error
