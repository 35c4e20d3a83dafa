"""A connection to one broker, without the socket: opened step by step, then requests pipelined, responses in order.

A driver resolves, connects, reads and writes for it and tells it what came of that; the connection gives it bytes and
deadlines. Nothing here blocks or reads a clock of its own. All times are seconds of the driver's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import Any, Final

from tagwire.client.aside import Aside
from tagwire.client.config import MAX_FRAME_BYTES
from tagwire.client.connection_settings import ConnectionSettings, ConnectionState, ResolvedAddress
from tagwire.client.connection_setup import ConnectionSetup
from tagwire.client.in_flight_request import InFlightRequest, ResponseMessage
from tagwire.client.metadata import NO_NODE
from tagwire.client.metrics import ConnectionMetrics, Metrics
from tagwire.client.scheduling import NEVER, Wait
from tagwire.client.session_steps import SessionSteps
from tagwire.client.tls import Tls
from tagwire.client.transport import Transport
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


@lru_cache(1024, typed=True)
def _request_name(api: int, version: int) -> str:
    return f"{api_name(api)} v{version}"


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

    Args:
        now: the driver's clock.
        deadline: how long it may take until the connection is ready, also where nobody waits as long.
        identity: (cluster id, node id) of the broker that is meant, where they are known (KIP-1242).
        on_ready: called when it is.
        random: where jitter is drawn from.
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
        random: Random | None = None,
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
        self._settings = settings
        self._versions = settings.versions
        self._now = now
        self._setup_began = now()
        self._setup_deadline = deadline
        self._awaited_until = 0.0
        self._identity = identity
        self._on_ready = on_ready
        self._metrics = ConnectionMetrics(Metrics(now)) if metrics is None else metrics
        self._notify: Callable[[BrokerConnection], None] = lambda connection: None
        self._assumed = self._versions.assumed
        self._addresses: deque[ResolvedAddress] = deque()
        self._failures: list[str] = []
        self._connect_until = NEVER
        self._is_connected = False
        self._transport = self._new_transport()
        self._begin_aside: Callable[[BrokerConnection, Aside], None] = lambda connection, aside: None
        self._session = SessionSteps(random or Random())
        self._in_flight: deque[InFlightRequest[Any]] = deque()

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
    def unwritten_bytes(self) -> int:
        """How much of what was sent the broker has not taken yet."""
        return self._transport.size

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent; also where the connection is closed, and sending it fails. Not while the
        session is renewed: a broker takes nothing else meanwhile."""
        is_free = self._transport.size <= WRITE_BUFFER and not (self._session.ends and self._is_renewing)
        return is_free or self.state is ConnectionState.CLOSED

    async def opened(self, deadline: float) -> None:
        """Waits until it is ready, at most until `deadline`; it goes on to become ready after that.

        Who waits patiently gives it as long as that, from when it began, and not from now: a broker that has lost power
        says nothing any more, and were a connection to it waited for again and again, it would never be given up.
        Java's clients count so, too: request.timeout.ms of ApiVersions, and socket.connection.setup.timeout.ms.

        Raises:
            KafkaError: ApiVersions is refused; REBOOTSTRAP_REQUIRED by a broker that is not the one meant.
            ConnectError: no connection yet, or at all; the text names the address and the reason.
            AuthenticationError: the credentials are refused, or the broker cannot prove itself.
            ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError: connected, but what
                responds is no broker we can talk to; RequestTimeoutError also before the deadline, where it began long
                before and is given up.
        """
        self._awaited_until = max(self._awaited_until, deadline)
        self._setup_deadline = max(self._setup_deadline, self._setup_began + deadline - self._now())
        await Wait(lambda: self.is_ready or self.closed, deadline)
        self.expire_setup()
        if self.closed:
            raise self.error or ConnectionLostError(f"{self.broker}: the connection is closed")
        if not self.is_ready:
            raise self._not_yet()

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
        if self.state is not ConnectionState.READY or (
            self._session.ends and self._session.takes_nothing_else(self._now())
        ):
            raise ConnectionLostError(f"{self.broker}: the connection is closed, or is authenticated again")
        name = _request_name(message.api_key, version)
        request: InFlightRequest[ResponseMessage] = InFlightRequest(self, name, version, self._now())
        try:
            protocol = self._transport.protocol
            data = protocol.send(message, version)
            if protocol.due > len(self._in_flight):
                self._in_flight.append(request)
            else:
                request.has_response = False
            self._put(data, request)
        except TagwireError:
            raise
        except BaseException:
            self.interrupted()
            raise
        return request

    def request(self, name: str, version: int = 0) -> InFlightRequest[Any]:
        """A request that is to be sent here."""
        return InFlightRequest(self, name, version, self._now())

    def expire(self, request: InFlightRequest[Any]) -> TagwireError:
        """Closes the connection on which `request` had no response in time, or no room; the error that says so. A
        request that only waited for the session to be renewed closes nothing: others wait longer."""
        if self._is_renewing and not request.is_written and request not in self._in_flight:
            return request.late(self._now())
        return self._close(request.late(self._now()))

    def close(self) -> None:
        """Closes the connection; what is in flight gets no response."""
        self._close(ConnectionLostError(f"{self.broker}: the connection was closed on this side"))

    # The driver's side ---------------------------------------------------------------------------------------------

    def attach(
        self, notify: Callable[[BrokerConnection], None], begin_aside: Callable[[BrokerConnection, Aside], None]
    ) -> None:
        """Called once, by the driver.

        Args:
            notify: called whenever there is something new to write, or `state` or `attempt` has changed.
            begin_aside: called to have something begun; `aside_done` is to be called when it is there.
        """
        self._notify, self._begin_aside = notify, begin_aside
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
        if self.state is ConnectionState.CLOSED:
            return NEVER
        if self.state is ConnectionState.READY:
            if not self._session.is_busy:
                return self._session.renewal_at
            return self._session.deadline(self._in_flight[0] if self._in_flight else None, self.throttled_until)
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
            self._shake_hands(lambda: self._transport.begin(self._settings.security.tls(self.host)))

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
        transport = self._transport
        return transport.protocol.space() if transport.tls is None else transport.tls.space()

    def received(self, count: int) -> None:
        """Tells that `count` bytes are in `space()`; 0 means that the broker closed its side."""
        try:
            transport = self._transport
            transport.received(count)
            if transport.tls is not None:
                if self.state is ConnectionState.TLS and not self._shake_hands(transport.shake_hands):
                    return
                if self._transport is transport:  # not begun again meanwhile
                    self._decrypt()
            self._take_events()
            if self._transport.tls is not None:
                self._notify(self)  # it may have had to hear something before it went on writing
        except TagwireError as error:
            self._fail_whole(error)
        except BaseException:
            self.interrupted()
            raise

    def output(self) -> memoryview:
        """What is to be written next; empty where that is nothing. After `written` there may be more. Of a connection
        that is closed, what TLS says last."""
        try:
            return self._transport.output()
        except OSError as error:
            self.lost(error.strerror or str(error))
            return memoryview(b"")

    def written(self, count: int) -> bool:
        """Tells that the first `count` bytes of `output()` were handed to the system; whether there may be more."""
        return self._transport.written(count)

    def lost(self, reason: str) -> None:
        """Takes that the network failed."""
        if self.state is ConnectionState.TLS:
            self._fail(self._no_tls(f"{reason} in the TLS handshake; it may not speak TLS"))
            return
        due = f"; {self._in_flight[0].name} had no response yet" if self._in_flight else ""
        self._fail(ConnectionLostError(f"{self.broker}: {reason}{due}"))

    def interrupted(self) -> None:
        """Takes that the driver was interrupted while it wrote or read: nobody knows how far."""
        self._close(ConnectionLostError(f"{self.broker}: the connection was interrupted on this side"))

    def aside_done(self, aside: Aside) -> None:
        """Takes that what was begun elsewhere is there."""
        if self._session.had(aside):
            with self._guarded():
                self._go_on(None)

    def expire_setup(self) -> None:
        """Gives up what was not done by `deadline`, as far as it is over; or begins to renew the session."""
        now = self._now()
        if now < self.deadline:
            return
        if self.state is ConnectionState.READY:
            if self._session.is_busy:
                self._not_renewed(self._not_yet())
            else:
                self._renew(now)
        elif self.state is ConnectionState.CONNECTING:
            self.not_connected("timed out")
        else:
            self._fail(self._not_yet())

    @property
    def tls(self) -> Tls | None:
        """What is known of TLS, once it is connected."""
        return self._transport.tls

    # Opening -------------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return address_text((self.host, self.port))

    def _not_yet(self) -> TagwireError:
        """What it waits for, as an error of whoever cannot wait longer."""
        if self.state is ConnectionState.RESOLVING:
            return ConnectError(f"{self._where} (no answer of the name server in time)")
        if self.state is ConnectionState.TLS:
            return self._no_tls("no answer to the TLS handshake in time")
        if self._session.aside is not None:
            return ConnectError(f"{self.broker}: {self._session.aside.not_yet()}")
        if self._session.request is not None:
            return self._session.request.late(self._now())
        return ConnectError(f"{self._where} ({'; '.join([*self._failures, 'timed out'])})")

    def _new_transport(self) -> Transport:
        told = self._settings
        return Transport(
            Connection("client", LIMITS, client_id=told.client_id, header_fields=told.header_fields, apis=told.apis),
            received=lambda count: self._metrics.received(self.node, count),
            written=lambda count: self._metrics.written(self.node, count),
        )

    def _connect(self) -> None:
        self.attempt += 1
        self.state = ConnectionState.CONNECTING
        now = self._now()
        left = len(self._addresses)
        # Who waits is to get to the last address, too.
        until = self._awaited_until if left > 1 and self._awaited_until > now else self._setup_deadline
        share = (until - now) / left
        self._connect_until = now + min(CONNECT_TIMEOUT, share)
        self._notify(self)

    def _no_tls(self, reason: object) -> ConnectError:
        return ConnectError(f"{self.broker}: no TLS: {reason}")

    def _shake_hands(self, step: Callable[[], bool]) -> bool:
        """Begins with the handshake of TLS, or goes on; whether it is complete, and what comes behind it begun."""
        try:
            is_complete = step()
        except ConnectError as error:
            raise self._no_tls(error) from None
        if is_complete:
            self._begin_setup()
        if self.tls is not None:
            self._notify(self)
        return self.state is not ConnectionState.TLS

    def _begin_setup(self) -> None:
        setup = ConnectionSetup(
            self._transport.protocol,
            self._settings,
            host=self.host,
            broker=self.broker,
            assumed=self._assumed,
            identity=self._identity,
        )
        self._session.begin(setup)
        self._go_on(None)

    def _go_on(self, event: _Event | None) -> None:
        """Does the next step of the setup, or of what renews the session; where none is left, requests can be sent."""
        try:
            step = self._session.next(event)
        except TagwireError as error:
            if not self.is_ready:
                raise
            self._not_renewed(error)
            return
        if step is None:
            self._begin_session()
            return
        if not self.is_ready:
            self.state = self._session.setup.state
        if not isinstance(step, tuple):
            self._begin_aside(self, step)
            return
        name, data = step
        request = self.request(name)
        self._session.requested(request)
        if self.is_ready:
            self._in_flight.append(request)
        self._put(data, request)

    def _begin_session(self) -> None:
        if self.is_ready:
            self._metrics.reauthenticated(self._now() - self._session.renewal_began)
            self._notify(self)  # whoever waited may send
            return
        self.ranges, self.features = self._session.setup.ranges, self._session.setup.features
        self.state = ConnectionState.READY
        if self._settings.security.uses_tls or self._settings.security.uses_sasl:
            self._metrics.authenticated()
        self._on_ready(self)
        if self._session.ends:
            self._notify(self)  # `deadline` is news

    # The session's renewal (KIP-368) -------------------------------------------------------------------------------

    @property
    def _is_renewing(self) -> bool:
        return self.is_ready and self._session.ends and self._session.is_renewing(self._now())

    def _renew(self, now: float) -> None:
        """Authenticates again, on the connection as it is: what is in flight has its responses first."""
        with self._guarded():
            self._session.renew(now)
            self._go_on(None)

    def _not_renewed(self, error: TagwireError) -> None:
        """Ends a session that was not renewed. What is in flight fares as on any connection that is lost."""
        self._metrics.not_reauthenticated()
        self._close(error, ConnectionLostError(f"{self.broker}: the session could not be renewed: {error}"))

    # What becomes of it when something is wrong --------------------------------------------------------------------

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
        self._transport = self._new_transport()
        self._session.give_up()
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
    def _guarded(self) -> Iterator[None]:
        """What the driver told of is taken whole; what is wrong about it closes the connection. After an interrupt
        nobody knows which request the next response is to, or how far the last bytes were taken: it ends, too."""
        try:
            yield
        except TagwireError as error:
            self._fail_whole(error)
        except BaseException:
            self.interrupted()
            raise

    def _fail_whole(self, error: TagwireError) -> None:
        try:
            self._fail(error)
        except TagwireError:
            raise
        except BaseException:
            self.interrupted()
            raise

    def _put(self, data: bytes, request: InFlightRequest[Any]) -> None:
        self._transport.put(data, request)
        self._metrics.requested(self.node, len(data))
        self._notify(self)

    def _decrypt(self) -> None:
        try:
            self._transport.decrypt()
        except OSError as error:
            self.lost(error.strerror or str(error))

    def _take_events(self) -> None:
        while self.state is not ConnectionState.CLOSED and (event := self._next_event()) is not None:
            request = self._in_flight.popleft() if self.state is ConnectionState.READY else self._session.request
            assert request is not None
            now = self._session.responded_at = self._now()
            self._metrics.responded(self.node, now - request.sent_at)
            if request is self._session.request:
                self._go_on(event)
            elif isinstance(event, Unsupported):
                request.settle(error=UnsupportedVersionError(event.told_by(self.broker)))
            else:
                request.settle(event.message)
        if self._session.is_busy and self.is_ready:
            self._notify(self)  # `deadline` may be news

    def _next_event(self) -> _Event | None:
        try:
            event = self._transport.protocol.next_event()
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

    def _close(self, error: TagwireError, in_flight: TagwireError | None = None) -> TagwireError:
        """Ends it, unless it has ended; `error`. `in_flight`: what requests on their way end with, where that is
        another one."""
        if self.closed:
            return error
        self.failed_at, self.state, self.error = self.state, ConnectionState.CLOSED, error
        self._session.aside = None
        self._disconnected()
        if isinstance(error, AuthenticationError) and self.failed_at is not ConnectionState.READY:
            self._metrics.refused()
        lost = [*self._in_flight, *self._transport.without_response()]
        self._in_flight.clear()
        self._transport.clear()
        try:
            for request in lost:
                request.settle(error=in_flight or error)
        finally:  # also where that is interrupted: nobody closes it again
            self._notify(self)
        return error
