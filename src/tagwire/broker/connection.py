"""One client's connection: requests in, handled, answers out in the order of the requests.

As Kafka does, a connection has one request under way at a time. The exception is a run of requests whose handler
`overlaps` (Produce): they are begun in order without waiting for each other, so that a producer that sends ahead
shares a sync. What a client has sent but not been answered, and what it has been answered but not read, are both
bounded: past the bound nothing is read from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from tagwire.broker.handlers.api_versions import unsupported_version
from tagwire.broker.node import Node
from tagwire.broker.served import SERVED, Call, HangUp
from tagwire.errors import DecodeError, TagwireError
from tagwire.rpc import CLOSED, Connection, Limits, Range, Request, Signal, UnservedRequest, UnsupportedApiVersions

logger = logging.getLogger("tagwire.broker")

AnyRequest = Request | UnsupportedApiVersions | UnservedRequest

MAX_OVERLAPPING = 32
MAX_OVERLAPPING_BYTES = 32 << 20
MAX_WAITING = 64
MAX_WAITING_BYTES = 8 << 20
MAX_UNREAD_BYTES = 1 << 20


def served_versions() -> Mapping[int, Range]:
    """The versions that are let through to a handler, by API key."""
    return {key: served.versions for key, served in SERVED.items()}


class ClientConnection(asyncio.BufferedProtocol):
    """The broker's end of one connection.

    Args:
        broker: what requests are answered from.
        connections: the open connections; this one is among them while it is open.
    """

    def __init__(self, broker: Node, connections: set[ClientConnection]) -> None:
        self._broker = broker
        self._connections = connections
        limits = Limits(max_frame_bytes=broker.settings.max_frame_bytes)
        # Requests are read as Kafka reads them: librdkafka ends Metadata 9-12 for all topics with three bytes too many.
        self._rpc = Connection("broker", limits, served=served_versions(), lenient=True)
        self._waiting: deque[AnyRequest] = deque()
        self._waiting_bytes = 0
        self._begun: deque[tuple[AnyRequest, asyncio.Task[Any]]] = deque()
        self._begun_bytes = 0
        self._reading = True
        self._client_reads = True
        self._ending = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=MAX_UNREAD_BYTES)
        self._host, self._port = self._transport.get_extra_info("sockname")[:2]
        self._client_host, client_port = self._transport.get_extra_info("peername")[:2]
        self._peer = f"{self._client_host}:{client_port}"
        self._connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._rpc.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._rpc.received(nbytes)
        self._advance()

    def eof_received(self) -> bool:
        self._rpc.received(0)
        self._advance()
        return True  # what was asked before is still answered

    def pause_writing(self) -> None:
        self._client_reads = False

    def resume_writing(self) -> None:
        self._client_reads = True
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._drop_requests()

    def hang_up(self) -> None:
        """Close the connection without answering anything more."""
        self._drop_requests()
        self._transport.abort()

    def _drop_requests(self) -> None:
        self._ending = True
        self._waiting.clear()
        for _, task in self._begun:
            task.cancel()

    def _advance(self) -> None:
        """Take what requests have arrived, begin those that need not wait, and see whether to read on or to close."""
        self._begin_requests()
        while not self._ending and not self._is_full() and self._take_request():
            self._begin_requests()
        if self._ending:
            if not self._waiting and not self._begun:
                self._transport.close()
        elif self._reading == self._is_full():
            self._reading = not self._reading
            if self._reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _take_request(self) -> bool:
        try:
            event = self._rpc.next_event()
        except TagwireError as error:
            logger.info("%s: closed: %s", self._peer, error)
            self._ending = True
            return False
        if isinstance(event, Signal):
            self._ending = event is CLOSED
            return False
        request = cast(AnyRequest, event)
        self._waiting.append(request)
        self._waiting_bytes += _size(request)
        return True

    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES

    def _begin_requests(self) -> None:
        while self._waiting and self._client_reads and self._may_begin(self._waiting[0]):
            request = self._waiting.popleft()
            self._waiting_bytes -= _size(request)
            self._begun_bytes += _size(request)
            task = asyncio.get_running_loop().create_task(self._handle(request))
            self._begun.append((request, task))
            task.add_done_callback(self._answer_done)

    def _may_begin(self, request: AnyRequest) -> bool:
        if not self._begun:
            return True
        if not (_overlaps(request) and _overlaps(self._begun[-1][0])):
            return False
        return len(self._begun) < MAX_OVERLAPPING and self._begun_bytes + _size(request) <= MAX_OVERLAPPING_BYTES

    async def _handle(self, request: AnyRequest) -> Any:
        """The response object to answer with; None for no answer."""
        if isinstance(request, UnsupportedApiVersions):
            return unsupported_version()
        if isinstance(request, UnservedRequest):
            if self._broker.settings.unsupported == "empty":
                return None
            raise HangUp("it is not served")
        call = Call(
            request.decode(),
            request.version,
            request.client_id,
            self._client_host,
            self._host,
            self._port,
            self._broker,
        )
        return await SERVED[request.api_key].handler(call)

    def _answer_done(self, _: asyncio.Task[Any]) -> None:
        """Send the answers that are ready and whose turn it is."""
        while self._begun and self._begun[0][1].done() and not self._transport.is_closing():
            request, task = self._begun.popleft()
            self._begun_bytes -= _size(request)
            try:
                self._send(request, task.result())
            except (HangUp, DecodeError) as error:
                logger.warning("%s: closed on %s: %s", self._peer, request, error)
                self._transport.close()
            except Exception:
                logger.exception("%s: closed on %s: it could not be handled", self._peer, request)
                self._transport.close()
        if not self._transport.is_closing():
            self._advance()

    def _send(self, request: AnyRequest, response: Any) -> None:
        if isinstance(request, UnservedRequest):
            self._transport.write(self._rpc.send_unsupported(request))
        elif data := self._rpc.send_response(request, response):
            self._transport.write(data)


def _overlaps(request: AnyRequest) -> bool:
    return isinstance(request, Request) and SERVED[request.api_key].overlaps


def _size(request: AnyRequest) -> int:
    return len(request.body) if isinstance(request, Request) else 0
