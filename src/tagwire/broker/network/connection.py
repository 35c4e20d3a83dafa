"""One client's connection: requests in, responses out, in the order of the requests.

As Kafka does, a connection has one request under way at a time. The exception is a run of requests whose handler
`overlaps` (Produce): they are begun in order without waiting for each other, so that a producer that sends ahead
shares a sync. Requests without a response yet, and responses that the client has not read, are both bounded:
past the bound nothing is read from it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import pack
from typing import Final, cast

from tagwire.broker.apis import Apis
from tagwire.broker.network.dispatch import respond
from tagwire.broker.network.distinguished_names import subject_of
from tagwire.broker.network.listener import Listener, Tls
from tagwire.broker.network.memory_budget import MemoryBudget
from tagwire.broker.network.users import Users
from tagwire.broker.node import Node
from tagwire.broker.session import AnyResponse, HangUp, Session
from tagwire.broker.telemetry.requests import LoggedRequest
from tagwire.errors import AuthenticationError, DecodeError, TagwireError
from tagwire.rpc import CLOSED, OAUTHBEARER, AnyRequest, Connection, Gate, Limits, Request, Signal, UnservedRequest
from tagwire.rpc.addresses import Address
from tagwire.rpc.frames import SIZE_BYTES

logger = logging.getLogger("tagwire.broker")

MAX_OVERLAPPING: Final = 32
MAX_OVERLAPPING_BYTES: Final = 32 << 20
MAX_WAITING: Final = 64
MAX_WAITING_BYTES: Final = 8 << 20
MAX_UNREAD_BYTES: Final = 1 << 20

NO_LINGERING: Final = pack("ii", 1, 0)
"""SO_LINGER: what is not sent when a socket is closed is thrown away, and the other end is sent a reset."""

MAX_FRAME_BYTES_BEFORE_AUTHENTICATION: Final = 64 << 10
MAX_FRAME_BYTES_WITH_TOKEN: Final = (512 << 10) + 1024
"""Where bearer tokens are taken: one of Kafka's sasl.server.max.receive.size, and what is around it."""

AUTHENTICATION_TIMEOUT_S: Final = 30.0


@dataclass(slots=True)
class _Begun:
    """A request under way."""

    request: AnyRequest
    task: asyncio.Task[AnyResponse]
    logged: LoggedRequest
    overlaps: bool
    waits: bool


class ClientConnection(asyncio.BufferedProtocol):
    """The broker's end of one connection.

    Args:
        broker: what serves the requests.
        listener, number: where the client came in, and which of the node's listeners that is.
        client: its host and port. The socket of a client that has gone again does not tell them any more.
        users, budget: shared by all connections.
        connections: the open connections; this one is among them while it is open.
    """

    def __init__(
        self,
        broker: Node,
        apis: Apis,
        listener: Listener,
        number: int,
        client: Address,
        users: Users,
        budget: MemoryBudget,
        connections: dict[ClientConnection, None],
    ) -> None:
        self._broker = broker
        self._apis = apis
        self._listener = listener
        self._listener_number = number
        self._client = client
        self._budget = budget
        self._connections = connections
        self._gate = users.gate(listener.sasl) if listener.sasl else None
        most = broker.settings.max_frame_bytes
        if self._gate is not None:
            has_tokens = OAUTHBEARER in listener.sasl
            most = min(most, MAX_FRAME_BYTES_WITH_TOKEN if has_tokens else MAX_FRAME_BYTES_BEFORE_AUTHENTICATION)
        # Requests are read as Kafka reads them: librdkafka ends Metadata 9-12 for all topics with three bytes too many.
        self._rpc = Connection(
            "broker",
            Limits(max_frame_bytes=most),
            served=apis.versions,
            lenient=True,
            apis=apis.added,
        )
        self._waiting: deque[AnyRequest] = deque()
        self._waiting_bytes = 0
        self._begun: deque[_Begun] = deque()
        self._begun_bytes = 0
        self._reading = True
        self._client_reads = True
        self._ending = False
        self._frozen = False
        self._unmute: asyncio.TimerHandle | None = None
        self._opened = self._last_active = time.monotonic()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=MAX_UNREAD_BYTES)
        self._writes_at_once = self._listener.tls is not None or _is_uvloop(transport)
        reached = self._transport.get_extra_info("sockname")[:2]
        host, port = self._listener.advertise or reached
        self.session = Session(
            *self._client,
            host,
            port or reached[1],
            self._apis.advertised,
            self._budget.for_a_response,
            self._listener_number,
            self._gate,
        )
        self._connections[self] = None
        if self._gate is None and self._listener.tls is not None:
            self._name_by_certificate(self._listener.tls)

    def _name_by_certificate(self, tls: Tls) -> None:
        """Let the client be who its certificate says, if it has shown one."""
        encrypted = self._transport.get_extra_info("ssl_object")
        certificate = encrypted.getpeercert(binary_form=True) if encrypted is not None else None
        if certificate is None:
            return
        try:
            self.session.principal = f"User:{tls.principals.principal(subject_of(certificate))}"
        except (AuthenticationError, ValueError) as error:
            logger.warning("%s: closed: %s", self.session.address, error)
            self.hang_up()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._rpc.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._rpc.received(nbytes)
        self._advance()

    def eof_received(self) -> bool:
        self._rpc.received(0)
        self._advance()
        return self._listener.tls is None  # earlier requests still get their responses, which TLS does not allow

    def pause_writing(self) -> None:
        self._client_reads = False

    def resume_writing(self) -> None:
        self._client_reads = True
        self._last_active = time.monotonic()
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._unmute is not None:
            self._unmute.cancel()
        self._connections.pop(self, None)
        self._drop_requests()
        self._budget.leave(self)
        if not self.closed.done():
            self.closed.set_result(None)

    def hang_up(self) -> None:
        """Close the connection without sending anything more."""
        self._drop_requests()
        self._transport.abort()

    def reset(self) -> None:
        """Close the connection as a process that is killed does: the client sees a reset, not an end."""
        with suppress(OSError, ValueError):  # it is closed already: uvloop's socket has no number then
            if (sock := self._transport.get_extra_info("socket")) is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
        self.hang_up()

    def freeze(self) -> None:
        """Read nothing and send nothing until `thaw`; what is under way goes on."""
        self._frozen = True
        if self._reading and not self._transport.is_closing():
            self._transport.pause_reading()

    def thaw(self) -> None:
        """Go on where `freeze` stopped."""
        self._frozen = False
        self._last_active = time.monotonic()
        if self._reading and not self._transport.is_closing():
            self._transport.resume_reading()
        self._send_what_is_ready()

    def drain(self) -> None:
        """Close the connection as soon as requests under way have responses; those that wait for others get none."""
        self._ending = True
        self._waiting.clear()
        if self._frozen or not self._client_reads or any(begun.waits for begun in self._begun):
            self.hang_up()
        else:
            self._advance()

    def is_stale(self, now: float) -> bool:
        """Whether it has been silent, unfinished, unread or unknown for too long."""
        is_muted = self._unmute is not None and not self._ending  # who sends nothing more may be gone, for all we know
        is_served = (self._begun and self._client_reads) or is_muted
        idle_since = now if is_served else self._last_active
        if not self.session.is_known and now - self._opened > AUTHENTICATION_TIMEOUT_S:
            return True
        return now - idle_since > self._broker.settings.idle_timeout_s

    def memory_is_free(self) -> None:
        """Read on."""
        asyncio.get_running_loop().call_soon(self._advance)

    def _drop_requests(self) -> None:
        self._ending = True
        self._waiting.clear()
        while self._begun:
            self._begun.popleft().task.cancel()
        self._begun_bytes = 0

    def _advance(self) -> None:
        """Take what requests have arrived, begin those that need not wait, and see whether to read on or to close."""
        if self._transport.is_closing() or self._frozen:
            return
        self._begin_requests()
        while not self._ending and not self._is_full() and self._take_request():
            self._begin_requests()
        self._count_memory()
        if self._ending:
            if not self._waiting and not self._begun:
                self._transport.close()  # when the client has read what it was sent, which counts until then
            elif self._reading and not self._transport.is_closing():
                self._reading = False
                self._transport.pause_reading()  # nobody would take it out of the buffer any more
            return
        full = self._is_full() or self._budget.is_full_for(self)
        if self._reading == full and not self._transport.is_closing():
            self._reading = not full
            if self._reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def held(self) -> tuple[int, int]:
        """As `tagwire.broker.network.memory_budget.Holder`."""
        for_others = sum(_size(begun.request) for begun in self._begun if begun.waits)
        slow = self._rpc.unfinished_bytes + self._transport.get_write_buffer_size() + for_others
        busy = self._begun_bytes - for_others
        if self._unmute is None:
            busy += self._waiting_bytes
        else:  # it waits for its quota, which others must not
            slow += self._waiting_bytes
        return slow, busy

    def _count_memory(self) -> None:
        self._budget.hold(self, *self.held())

    def _take_request(self) -> bool:
        try:
            event = self._rpc.next_event()
        except TagwireError as error:
            logger.info("%s: closed: %s", self.session.address, error)
            # `_rpc` keeps the error, and its traceback would keep this connection with all its buffers.
            error.__traceback__ = None
            self._ending = True
            return False
        if isinstance(event, Signal):
            self._ending = event is CLOSED
            return False
        request = cast(AnyRequest, event)
        self._last_active = time.monotonic()
        self._waiting.append(request)
        self._waiting_bytes += _size(request)
        return True

    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES

    def _begin_requests(self) -> None:
        while self._waiting and self._client_reads and self._may_begin(self._waiting[0]):
            request = self._waiting.popleft()
            size = _size(request)
            self._waiting_bytes -= size
            self._begun_bytes += size
            logged = self._broker.hooks.requests.begin(request, self.session, size)
            task = asyncio.get_running_loop().create_task(respond(request, self.session, self._broker, self._apis))
            self._begun.append(_Begun(request, task, logged, self._overlaps(request), self._waits(request)))
            task.add_done_callback(self._response_done)

    def _mute(self) -> None:
        """Begin no request for as long as the client is throttled; what is under way goes on."""
        seconds, self.session.muted_ms = self.session.muted_ms / 1000, 0
        loop = asyncio.get_running_loop()
        if self._unmute is not None:
            seconds = max(seconds, self._unmute.when() - loop.time())
            self._unmute.cancel()
        self._unmute = loop.call_later(seconds, self._end_mute)

    def _end_mute(self) -> None:
        self._unmute = None
        self._last_active = time.monotonic()
        self._advance()

    def _may_begin(self, request: AnyRequest) -> bool:
        if self._unmute is not None:
            return False
        if not self._begun:
            return True
        if not (self._overlaps(request) and self._begun[-1].overlaps):
            return False
        return len(self._begun) < MAX_OVERLAPPING and self._begun_bytes + _size(request) <= MAX_OVERLAPPING_BYTES

    def _overlaps(self, request: AnyRequest) -> bool:
        return (
            isinstance(request, Request)
            and self._apis.serving(request.api_key).overlaps
            and not self._is_intercepted(request)
        )

    def _waits(self, request: AnyRequest) -> bool:
        return isinstance(request, Request) and (
            self._apis.serving(request.api_key).waits or self._is_intercepted(request)
        )

    def _is_intercepted(self, request: AnyRequest) -> bool:
        return self._broker.hooks.interceptions.of(request.api_key) is not None

    def _response_done(self, _: asyncio.Task[AnyResponse]) -> None:
        if not self._frozen:
            self._send_what_is_ready()

    def _send_what_is_ready(self) -> None:
        """Send the responses that are there and whose turn it is."""
        while self._begun and self._begun[0].task.done() and not self._transport.is_closing():
            begun = self._begun.popleft()
            self._begun_bytes -= _size(begun.request)
            try:
                self._send(begun)
            except (HangUp, DecodeError) as error:
                logger.warning("%s: closed on %s: %s", self.session.address, begun.request, error)
                self._transport.close()
            except (Exception, asyncio.CancelledError):  # what handled it may have been cancelled, as by `wait_for`
                logger.exception("%s: closed on %s: it could not be handled", self.session.address, begun.request)
                self._transport.close()
        self._advance()

    def _send(self, begun: _Begun) -> None:
        request, response = begun.request, begun.task.result()
        if isinstance(request, UnservedRequest):
            pieces: list[bytes | memoryview] = [self._rpc.send_unsupported(request)]
        else:
            pieces = self._rpc.send_response_pieces(cast(Request, request), response)
        self._last_active = time.monotonic()
        self._broker.hooks.requests.responded(begun.logged, max(sum(map(len, pieces)) - SIZE_BYTES, 0))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: responded to %s", self.session.address, request, extra={"fields": begun.logged.fields()})
        if self._gate is not None:
            self._heed(self._gate)
        if self.session.muted_ms:
            self._mute()
        self._write(pieces)

    def _write(self, pieces: Sequence[bytes | memoryview]) -> None:
        try:
            if self._writes_at_once:
                # With TLS, since between two pieces it may find that the client reads again, and then it could be
                # closed. With uvloop, since it hands all of them to the system in one call, and copies none.
                self._transport.writelines(pieces)
                return
            # One by one: `writelines` would join them, or in some releases of asyncio never say that a client is slow.
            for piece in pieces:
                if not self._transport.is_closing():
                    self._transport.write(piece)
        except RuntimeError as error:  # uvloop, where the connection was reset and nobody has been told of it yet
            raise HangUp("the connection was reset") from error

    def _heed(self, gate: Gate) -> None:
        """Take more from a client that has authenticated, and no more from one that could not."""
        if gate.failed:
            logger.warning("%s: closed: authentication failed", self.session.address)
            self._ending = True
            self._waiting.clear()
        elif self.session.is_known:
            self._rpc.max_frame_bytes = self._broker.settings.max_frame_bytes


def _is_uvloop(transport: asyncio.BaseTransport) -> bool:
    return type(transport).__module__.partition(".")[0] == "uvloop"


def _size(request: AnyRequest) -> int:
    return len(request.body) if isinstance(request, Request) else 0
