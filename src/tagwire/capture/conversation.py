"""One connection between a client and a broker as a watcher sees it: requests matched with their answers.

Answers come in the order of the requests, but not every request has one (Produce with acks=0), and a capture may lack
either. So an answer belongs to the oldest request with its correlation id; older requests then had none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from tagwire import messages
from tagwire.capture.frames import Cutter, Frame
from tagwire.capture.observation import Endpoint, Losses, Place
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES, SIZE_BYTES
from tagwire.rpc.headers import API_VERSIONS, RequestHeader, decode_request_header, response_body_position
from tagwire.spec.api_keys import API_NAMES

NO_HEADER: Final = "a request whose header cannot be read"
UNMATCHED: Final = "an answer to no request that was seen"
OUT_OF_STEP: Final = "bytes between frames that were lost from sight"
TLS: Final = "a connection under TLS, which cannot be read"
NOT_KAFKA: Final = "a connection that does not speak Kafka's protocol"

MAX_OPEN: Final = 10_000
"""Requests waiting for their answers on one connection; the oldest is then taken as never answered."""

MAX_ANSWERS: Final = 1_000
"""Answers captured before their requests, as captures of several network queues have them."""

KEPT_BYTES: Final = 65_536
"""Of a frame, where bodies are not asked for: room for any header, and for the ApiVersions of any release."""

STRANGE_SEGMENTS: Final = 20
"""After so many segments that are nothing of Kafka's, a connection that was met in the middle is left alone."""

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
MIN_REQUEST_BYTES: Final = 14
"""A frame's size and a header whose client id is empty or null."""

_TOP_VERSION: Final = 40  # above any version that an API has had, for telling headers from other bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and its answer if there was one.

    Attributes:
        time: of the request, in microseconds since 1970 UTC; -1 if the capture has none.
        answered: of the answer, -1 if there was none.
        client, broker: the ends of the connection.
        header: the request's.
        request, response: the bodies, where they were kept whole.
        request_bytes, response_bytes: whole frames with their sizes; `response_bytes` None if there was no answer.
        software_name, software_version, principal: as the connection knew them by then, "" for what it did not.
        place: where the request begins.
    """

    time: int
    client: Endpoint
    broker: Endpoint
    header: RequestHeader
    request: bytes | None
    request_bytes: int
    place: Place
    software_name: str = ""
    software_version: str = ""
    principal: str = ""
    answered: int = -1
    response: bytes | None = None
    response_bytes: int | None = None


class Conversation:
    """The protocol state of a watched connection.

    Args:
        client, broker: its ends.
        taken: given each exchange: when its answer came, or when it is known that none will.
        losses: counts what is not understood.
        file: the capture's path, for the evidence.
        bodies: whether bodies are kept, of any size, rather than only what observations need.
    """

    def __init__(
        self,
        client: Endpoint,
        broker: Endpoint,
        taken: Callable[[Exchange], None],
        losses: Losses,
        file: str,
        *,
        bodies: bool = False,
    ) -> None:
        self.client = client
        self.broker = broker
        self._taken = taken
        self._losses = losses
        self._file = file
        self._open: OrderedDict[int, Exchange] = OrderedDict()
        self._early: OrderedDict[int, Frame] = OrderedDict()
        self._software = ("", "")
        self._principal = ""
        self._mechanism = ""
        self._raw_tokens = False
        self._last = Place(file, 0)
        keep = DEFAULT_MAX_FRAME_BYTES if bodies else KEPT_BYTES
        self.requests = Cutter(self._request, looks_like_request, self._lost, keep=keep, found=False)
        self.responses = Cutter(self._response, self._looks_like_response, self._lost, keep=keep, found=False)

    def begin(self) -> None:
        """Both directions are seen from their first byte."""
        self.requests.begin()
        self.responses.begin()

    def finish(self) -> None:
        """The connection has ended, or the capture: what is unanswered stays so."""
        while self._open:
            self._taken(self._open.popitem(last=False)[1])
        for frame in self._early.values():
            self._losses.add(UNMATCHED, Place(self._file, frame.position))
        self._early.clear()

    def _request(self, frame: Frame) -> None:
        place = self._last = Place(self._file, frame.position)
        if self._raw_tokens:
            if not looks_like_request(frame.size.to_bytes(SIZE_BYTES, "big") + frame.data):
                self._learn_principal(frame.data)
                return
            self._raw_tokens = False
        try:
            header, body = decode_request_header(memoryview(frame.data), lenient=True)
        except DecodeError:
            self._losses.add(NO_HEADER, place)
            return
        request = frame.data[body:] if frame.whole else None
        self._learn(header, request)
        exchange = Exchange(
            time=frame.time,
            client=self.client,
            broker=self.broker,
            header=header,
            request=request,
            request_bytes=frame.size + SIZE_BYTES,
            place=place,
            software_name=self._software[0],
            software_version=self._software[1],
            principal=self._principal,
        )
        early = self._early.pop(header.correlation_id, None)
        if early is not None:
            self._taken(self._answered(exchange, early))
            return
        known = self._open.pop(header.correlation_id, None)
        if known is not None:  # the same id again: the one before was never answered
            self._taken(known)
        self._open[header.correlation_id] = exchange
        if len(self._open) > MAX_OPEN:
            self._taken(self._open.popitem(last=False)[1])

    def _response(self, frame: Frame) -> None:
        if self._raw_tokens:
            return
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        if correlation_id not in self._open:
            self._early[correlation_id] = frame
            if len(self._early) > MAX_ANSWERS:
                old = self._early.popitem(last=False)[1]
                self._losses.add(UNMATCHED, Place(self._file, old.position))
            return
        while True:
            due, exchange = self._open.popitem(last=False)
            if due == correlation_id:
                break
            self._taken(exchange)
        self._taken(self._answered(exchange, frame))
        if exchange.header.api_key == SASL_HANDSHAKE and exchange.header.api_version == 0:
            self._raw_tokens = True

    def _answered(self, exchange: Exchange, frame: Frame) -> Exchange:
        response = None
        if frame.whole:
            api, version = exchange.header.api_key, exchange.header.api_version
            with suppress(DecodeError, KeyError):
                body = response_body_position(memoryview(frame.data), api, version, lenient=True)
                response = frame.data[body:]
        return replace(exchange, answered=frame.time, response=response, response_bytes=frame.size + SIZE_BYTES)

    def _learn(self, header: RequestHeader, body: bytes | None) -> None:
        """Takes in what a request says of its client."""
        if body is None or header.api_key not in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return
        try:
            request: Any = messages.request(header.api_key).decode(body, header.api_version, lenient=True)
        except (DecodeError, UnsupportedVersionError):
            return
        if header.api_key == API_VERSIONS:
            self._software = (request.client_software_name, request.client_software_version)
        elif header.api_key == SASL_HANDSHAKE:
            self._mechanism = request.mechanism
        else:
            self._learn_principal(bytes(request.auth_bytes))

    def _learn_principal(self, token: bytes) -> None:
        name = user_of(self._mechanism, token)
        if name:
            self._principal = f"User:{name}"

    def _looks_like_response(self, data: bytes) -> bool:
        size = int.from_bytes(data[:SIZE_BYTES], "big")
        correlation_id = int.from_bytes(data[SIZE_BYTES : SIZE_BYTES + 4], "big", signed=True)
        return len(data) >= 8 and 4 <= size <= DEFAULT_MAX_FRAME_BYTES and correlation_id in self._open

    def _lost(self, size: int) -> None:
        self._losses.add(OUT_OF_STEP, self._last, max(size, 1))


def looks_like_request(data: bytes) -> bool:
    """Whether these bytes begin with a request's frame, as far as anybody can tell: a size, an API there is, a version
    it may have, a client id that is text."""
    if len(data) < MIN_REQUEST_BYTES:
        return False
    size, api, version = (
        int.from_bytes(data[:4], "big"),
        int.from_bytes(data[4:6], "big"),
        int.from_bytes(data[6:8], "big"),
    )
    if not 8 <= size <= DEFAULT_MAX_FRAME_BYTES or api not in API_NAMES or version > _TOP_VERSION:
        return False
    length = int.from_bytes(data[12:14], "big", signed=True)
    if length < -1 or 10 + length > size:
        return False
    try:
        return data[14 : 14 + max(length, 0)].decode().isprintable()
    except UnicodeDecodeError as error:
        return error.end == len(data) - 14  # a character that the packet's end cuts


def user_of(mechanism: str, token: bytes) -> str:
    """Whom the first token of a SASL exchange names: PLAIN's and SCRAM's; "" for others and for later tokens.
    Never more than the name is looked at: the password of PLAIN stands behind it."""
    with suppress(UnicodeDecodeError):
        if mechanism == "PLAIN" and token.count(b"\0") == 2:
            return token.split(b"\0")[1].decode()
        if mechanism.startswith("SCRAM-") and token[:2] in (b"n,", b"y,", b"p="):
            fields = token.decode().split(",")
            name = next((field[2:] for field in fields[2:] if field.startswith("n=")), "")
            return name.replace("=2C", ",").replace("=3D", "=")
    return ""
