"""One connection's protocol, without the socket: bytes in, events out, in either role.

A client encodes requests with `send` and reads `Response` events; responses come in the order of the requests, and each
must carry the correlation id of the oldest request in flight (docs/wire-format.md#frames). A broker reads
`Request` events and encodes responses with `send_response`, in the order of the requests.

    connection = Connection("client", client_id="example")
    sock.sendall(connection.send(messages.MetadataRequest(topics=None), version=12))
    while (event := connection.next_event()) is NEED_DATA:
        connection.receive(sock.recv(65536))

An error raised by `next_event` is final: the connection is to be closed, and every later call raises it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tagwire import messages
from tagwire.codec.classes import MessageObject
from tagwire.errors import (
    ConnectionLostError,
    DecodeError,
    Error,
    LocalProtocolError,
    RemoteProtocolError,
    TagwireError,
)
from tagwire.rpc.apis import NO_APIS, Apis, request_class, response_class
from tagwire.rpc.events import (
    CLOSED,
    NEED_DATA,
    AnyRequest,
    Request,
    Response,
    Signal,
    UnservedRequest,
    Unsupported,
    UnsupportedApiVersions,
)
from tagwire.rpc.frames import Frames, Limits, size_prefix
from tagwire.rpc.headers import (
    CORRELATION_ID_BYTES,
    RequestHeader,
    around_correlation_id,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    response_body_position,
    response_correlation_id,
)
from tagwire.rpc.names import api_name
from tagwire.rpc.ranges import Range
from tagwire.spec.api_keys import ApiKey

# Kafka's clients keep the highest eight for the exchanges of SASL (SaslClientAuthenticator).
FIRST_RESERVED_CORRELATION_ID: Final = 2_147_483_640
LOWEST_CORRELATION_ID: Final = -2_147_483_648
_NO_FIELDS: Final[Mapping[str, Any]] = {}

Event = Request | UnsupportedApiVersions | UnservedRequest | Response | Unsupported
"""What `next_event` tells of a connection, beside NEED_DATA and CLOSED."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A request whose response is still to come."""

    api_key: int
    version: int
    correlation_id: int

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.version} (correlation id {self.correlation_id})"


class Connection:
    """The protocol state of one connection.

    Methods of the other role raise LocalProtocolError: they change nothing and send nothing.

    Args:
        role: "client" sends requests, "broker" serves them.
        limits: what is accepted from the peer.
        client_id: the client's name for itself in every request header; a client's only.
        header_fields: what else request headers say, by attribute, in the header versions that have room for it; a
            client's only.
        served: a broker's only: {API key: (lowest, highest version)}; what lies outside is told as `UnservedRequest`,
            or as `UnsupportedApiVersions`, instead of as a `Request`. None: every API and version there is.
        lenient: decode as Kafka's Java reader does instead of strictly.
        apis: APIs that are not Kafka's, by key.
    """

    def __init__(
        self,
        role: Literal["client", "broker"],
        limits: Limits | None = None,
        *,
        client_id: str | None = None,
        header_fields: Mapping[str, Any] = _NO_FIELDS,
        served: Mapping[int, Range] | None = None,
        lenient: bool = False,
        apis: Apis = NO_APIS,
    ) -> None:
        self.role = role
        self._client_id = client_id
        self._header_fields = header_fields
        self._served = served
        self._lenient = lenient
        self._apis = apis
        self._frames = Frames((limits or Limits()).max_frame_bytes)
        self._due: deque[_Due] = deque()
        self._unserved: deque[AnyRequest] = deque()
        self._headers: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._next_correlation_id = 0
        self._eof = False
        self._error: TagwireError | None = None

    # Bytes in ------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Takes bytes from the peer; no bytes at all mean that it has closed its side."""
        if data:
            self._frames.receive(data)
        else:
            self._eof = True

    def space(self) -> memoryview:
        """Where the next bytes may be read to directly, instead of through `receive`: call `received` after it."""
        return self._frames.space()

    def received(self, count: int) -> None:
        """Tells that `count` bytes were written at the start of the last `space()`; 0 means that the peer closed its
        side."""
        if count:
            self._frames.received(count)
        else:
            self._eof = True

    # Events out ----------------------------------------------------------------------------------------------------

    def next_event(self) -> Event | Signal:
        """The next event; NEED_DATA while a frame is incomplete; CLOSED when the peer is gone and nothing is due.

        Raises:
            RemoteProtocolError: a frame size that cannot be, a wrong correlation id, an unsolicited response.
            DecodeError: a header, or the body of a response, does not hold what it should.
            ConnectionLostError: the peer closed the connection inside a frame, or while responses were due.
        """
        if self._error is not None:
            raise self._error
        try:
            frame = self._frames.next_frame()
            if frame is None:
                return self._at_end() if self._eof else NEED_DATA
            return self._response(frame) if self.role == "client" else self._request(frame)
        except TagwireError as error:
            self._error = error
            raise

    @property
    def due(self) -> int:
        """How many requests are in flight: without a response from the peer, for a client, or from us, for a broker."""
        return len(self._due) + len(self._unserved)

    @property
    def unfinished_bytes(self) -> int:
        """How much memory is held for a frame that is still to be completed."""
        return self._frames.unfinished_bytes

    @property
    def max_frame_bytes(self) -> int:
        """The largest frame that is accepted; may be changed, as for a client that has authenticated."""
        return self._frames.limit

    @max_frame_bytes.setter
    def max_frame_bytes(self, limit: int) -> None:
        self._frames.limit = limit

    def _at_end(self) -> Signal:
        if self._due:
            raise ConnectionLostError(f"the broker closed the connection; {self._due[0]} was still to be answered")
        if not self._frames.is_empty:
            raise ConnectionLostError("the peer closed the connection in the middle of a frame")
        return CLOSED

    # A client's side -----------------------------------------------------------------------------------------------

    def send(self, message: MessageObject, version: int, *, correlation_id: int | None = None) -> bytes:
        """The frame of a request. Produce with acks=0 has no response; everything else has one.

        Args:
            message: a request object.
            correlation_id: None takes the one after the last.

        Raises:
            EncodeError: a value cannot be written.
            UnsupportedVersionError: the message has no such version, or it cannot carry a field that is set.
            LocalProtocolError: the connection is a broker's, has failed or has ended, or the correlation id is that
                of a request in flight.
        """
        self._check_may_send(correlation_id)
        number = self._next_correlation_id if correlation_id is None else correlation_id
        api = message.api_key
        body = message.encode(version)
        around = self._headers.get((api, version)) if correlation_id is None else None
        if around is None:
            header = self._first_header(api, version, number)
        else:
            header = around[0] + number.to_bytes(CORRELATION_ID_BYTES, "big", signed=True) + around[1]
        following = number + 1
        self._next_correlation_id = LOWEST_CORRELATION_ID if following >= FIRST_RESERVED_CORRELATION_ID else following
        if not (api == ApiKey.PRODUCE and getattr(message, "acks", None) == 0):
            self._due.append(_Due(api, version, number))
        return b"".join((size_prefix(len(header) + len(body)), header, body))

    def _first_header(self, api: int, version: int, number: int) -> bytes:
        if not (api in self._apis or self._header_fields):
            self._headers[api, version] = around_correlation_id(api, version, self._client_id)
        said = RequestHeader(api, version, number, self._client_id, {}, self._header_fields)
        return encode_request_header(said, self._apis)

    def _check_may_send(self, correlation_id: int | None) -> None:
        if self.role != "client":
            raise LocalProtocolError("a broker's connection sends no requests")
        if self._error is not None or self._eof:
            raise LocalProtocolError("the connection has ended: no request can be sent on it")
        if correlation_id is not None and any(due.correlation_id == correlation_id for due in self._due):
            raise LocalProtocolError(f"correlation id {correlation_id} is still to be answered")

    def _response(self, frame: memoryview) -> Response | Unsupported:
        number = response_correlation_id(frame)
        if not self._due:
            raise RemoteProtocolError(f"the broker sent an unsolicited response, correlation id {number}")
        due = self._due[0]
        if number != due.correlation_id:
            raise RemoteProtocolError(f"the broker answered correlation id {number} where {due} was due")
        self._due.popleft()
        if len(frame) == CORRELATION_ID_BYTES:
            return Unsupported(due.api_key, due.version, number)
        body = frame[response_body_position(frame, due.api_key, due.version, lenient=self._lenient, apis=self._apis) :]
        version = due.version
        if due.api_key == ApiKey.API_VERSIONS:
            version, message = self._api_versions(body, version)
            return Response(due.api_key, version, number, message)
        kind = response_class(due.api_key, self._apis)
        return Response(due.api_key, version, number, kind.decode(body, version, lenient=self._lenient))

    def _api_versions(self, body: memoryview, version: int) -> tuple[int, messages.ApiVersionsResponse]:
        """The response to ApiVersions: a refusal has the layout of version 0, whatever version was sent (KIP-511)."""
        kind = messages.ApiVersionsResponse
        refused = int.from_bytes(body[:2], "big", signed=True) == Error.UNSUPPORTED_VERSION
        for attempt in (0, version) if refused else (version, 0):
            try:
                return attempt, kind.decode(body, attempt, lenient=self._lenient)
            except DecodeError:
                continue
        message = kind.decode(body, version, lenient=refused or self._lenient)
        # Only librdkafka's mock broker gets here: it counts the one entry of its refusal as none, so that nothing
        # that follows the code is what it seems.
        return version, kind(error_code=Error.UNSUPPORTED_VERSION) if refused else message

    # A broker's side -----------------------------------------------------------------------------------------------

    def _request(self, frame: memoryview) -> Request | UnsupportedApiVersions | UnservedRequest:
        header, position = decode_request_header(frame, lenient=self._lenient, apis=self._apis)
        event: Request | UnsupportedApiVersions | UnservedRequest
        if self._serves(header):
            event = Request(header, frame[position:], self._lenient, self._apis)
        elif header.api_key == ApiKey.API_VERSIONS:
            event = UnsupportedApiVersions(header)
        else:
            event = UnservedRequest(header)
        self._unserved.append(event)
        return event

    def _serves(self, header: RequestHeader) -> bool:
        if self._served is not None:
            lowest, highest = self._served.get(header.api_key, (0, -1))
            return lowest <= header.api_version <= highest
        try:
            return header.api_version in request_class(header.api_key, self._apis).valid_versions
        except KeyError:
            return False

    def send_response(self, request: Request | UnsupportedApiVersions, message: MessageObject | None) -> bytes:
        """The frame of a response, in the request's version; version 0 for an `UnsupportedApiVersions`.

        Args:
            message: a response object, or None where the request is to have no response (Produce with acks=0): no bytes
                then.

        Raises:
            EncodeError, UnsupportedVersionError: the message cannot be written.
            LocalProtocolError: `request` is not the oldest one without a response.
        """
        return b"".join(self.send_response_pieces(request, message))

    def send_response_pieces(
        self, request: Request | UnsupportedApiVersions, message: MessageObject | None
    ) -> list[bytes | memoryview]:
        """As `send_response`, in buffers that follow one another: records are not copied (see
        `MessageObject.encode_pieces`). None of them for no response."""
        self._check_oldest(request)
        if message is None:
            self._unserved.popleft()
            return []
        version = 0 if isinstance(request, UnsupportedApiVersions) else request.version
        first, *others = message.encode_pieces(version)
        header = encode_response_header(request.api_key, version, request.correlation_id, self._apis)
        self._unserved.popleft()
        size = len(header) + len(first) + sum(map(len, others))
        return [b"".join((size_prefix(size), header, first)), *others]

    def send_unsupported(self, request: AnyRequest) -> bytes:
        """The frame that says "request not supported by server": the correlation id alone (KIP-35, its sub-proposal).

        Raises:
            LocalProtocolError: `request` is not the oldest one without a response.
        """
        self._check_oldest(request)
        self._unserved.popleft()
        number = request.correlation_id.to_bytes(CORRELATION_ID_BYTES, "big", signed=True)
        return size_prefix(len(number)) + number

    def _check_oldest(self, request: AnyRequest) -> None:
        if not self._unserved or self._unserved[0] is not request:
            raise LocalProtocolError(
                f"{request} cannot have its response now: responses go in the order of the requests, one to each"
            )
