"""The conversations in a capture of packets.

A kernel follows the connections; here is told who their ends are, and what requests say of the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tagwire import messages
from tagwire.capture.ends import endpoints
from tagwire.capture.observation import Endpoint, Losses, Place
from tagwire.capture.packets import PACKETS, File, packet_columns
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.kernel import conversations as kernel
from tagwire.kernel.packets import Segments, find_segments
from tagwire.kernel.request_rows import Rows
from tagwire.kernel.watching import Watcher
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES
from tagwire.rpc.headers import decode_request_header
from tagwire.spec.api_keys import API_NAMES, CLIENT_ID_SINCE, ApiKey

FRAGMENT: Final = "a fragment of an IP packet"
CUT: Final = "a packet whose headers the capture cut off"
LINK: Final = "a packet of a link type that is not read"
_PACKETS_LOST: Final = (FRAGMENT, CUT, LINK)

NO_HEADER: Final = "a request whose header cannot be read"
UNMATCHED: Final = "a response to no request that was seen"
OUT_OF_STEP: Final = "bytes between frames that were lost from sight"
TLS: Final = "a connection under TLS, which cannot be read"
NOT_KAFKA: Final = "a connection that does not speak Kafka's protocol"
LET_GO: Final = "bytes that were let go unread, since too many waited for what the capture lacks"
_LOST: Final = {
    kernel.NO_HEADER: NO_HEADER,
    kernel.UNMATCHED: UNMATCHED,
    kernel.OUT_OF_STEP: OUT_OF_STEP,
    kernel.TLS: TLS,
    kernel.NOT_KAFKA: NOT_KAFKA,
    kernel.LET_GO: LET_GO,
}

MAX_CONNECTIONS: Final = 65_536
"""Connections followed at a time; those that have been silent longest are then taken as ended."""

MAX_HELD_BYTES: Final = 256 << 20
"""Of all connections together: what waits for what is missing before it, frames that are not complete, requests
without responses. Past it, connections that have been silent longest keep nothing any longer."""

KEPT_BYTES: Final = 65_536
"""Of a frame, where bodies are not wanted: room for any header, and for the ApiVersions of any release."""


TOKEN_AUTH: Final = "tokenauth=true"
"""What SCRAM's first message has where a delegation token is used (KIP-48)."""

_APIS: Final = bytes(1 + CLIENT_ID_SINCE.get(api, 0) if api in API_NAMES else 0 for api in range(max(API_NAMES) + 1))


class Speaker(NamedTuple):
    """Who makes a request, as far as its connection knew by then.

    Attributes:
        client, broker: the ends of the connection.
        client_id: None where the client sent null.
        software_name, software_version: as the client's ApiVersions request told them, "" where it told none.
        principal: such as "User:alice", "" where it was not seen.
    """

    client: Endpoint
    broker: Endpoint
    client_id: str | None
    software_name: str
    software_version: str
    principal: str


def requests_in(
    file: File, name: str, losses: Losses, *, requests: bool = False, responses: bool = False
) -> Iterator[Rows]:
    """The requests in a capture of packets, with their responses, as the responses come.

    Args:
        file: read from its start, forwards only.
        name: its path, for the evidence.
        losses: counts what is not understood.
        requests, responses: whether the rows have the requests, and all responses, whole.

    Raises:
        CaptureError: the file is no capture file.
    """
    listener = _Listener(name, losses)
    limits = DEFAULT_MAX_FRAME_BYTES, KEPT_BYTES
    watcher = Watcher(listener, _APIS, *limits, requests, responses, MAX_CONNECTIONS, MAX_HELD_BYTES)
    segments = Segments(PACKETS)
    for data, found in packet_columns(file, name, losses):
        find_segments(data, found, segments)
        for reason, text in enumerate(_PACKETS_LOST):
            if segments.lost[reason]:
                losses.add(text, Place(name, segments.lost[len(_PACKETS_LOST) + reason]), segments.lost[reason])
        watcher.take(data, segments)
        yield from watcher.done
        watcher.done.clear()
    watcher.finish()
    yield from watcher.done


@dataclass(slots=True)
class _Known:
    """What is known of a connection's client."""

    client: Endpoint
    broker: Endpoint
    software: tuple[str, str] = ("", "")
    principal: str = ""
    mechanism: str = ""


class _Listener:
    """What the kernel asks and tells; see `Watcher`."""

    def __init__(self, name: str, losses: Losses) -> None:
        self._name = name
        self._losses = losses

    def met(self, ends: bytes, by_higher: bool) -> _Known:
        lower, higher = endpoints(ends)
        return _Known(higher, lower) if by_higher else _Known(lower, higher)

    def speaker(self, known: _Known, client_id: bytes | None) -> Speaker:
        text = None if client_id is None else client_id.decode("utf-8", "replace")
        return Speaker(known.client, known.broker, text, *known.software, known.principal)

    def learn(self, known: _Known, frame: bytes) -> bool:
        try:
            header, body = decode_request_header(memoryview(frame), lenient=True)
            kind = messages.request(header.api_key)
            request: Any = kind.decode(frame[body:], header.api_version, lenient=True)
        except (DecodeError, UnsupportedVersionError):
            return False
        if header.api_key == ApiKey.API_VERSIONS:
            before = known.software
            if request.client_software_name:  # a client that was refused asks again in a version without it
                known.software = (request.client_software_name, request.client_software_version)
            return known.software != before
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            known.mechanism = request.mechanism
            return False
        return self.token(known, bytes(request.auth_bytes))

    def token(self, known: _Known, data: bytes) -> bool:
        name, before = user_of(known.mechanism, data), known.principal
        if name:
            known.principal = f"User:{name}"
        return known.principal != before

    def lost(self, reason: int, position: int, count: int) -> None:
        self._losses.add(_LOST[reason], Place(self._name, position), count)


def user_of(mechanism: str, token: bytes) -> str:
    """Whom the first token of a SASL exchange names: PLAIN's and SCRAM's; "" for others, for later tokens, and where a
    delegation token comes in, which is named instead of its owner, who is the principal (Kafka's ScramSaslServer).
    Never more than the name is looked at: the password of PLAIN stands behind it."""
    with suppress(UnicodeDecodeError):
        if mechanism == "PLAIN" and token.count(b"\0") == 2:
            return token.split(b"\0")[1].decode()
        if mechanism.startswith("SCRAM-") and token[:2] in (b"n,", b"y,", b"p="):
            fields = token.decode().split(",")
            if TOKEN_AUTH in fields:
                return ""
            name = next((field[2:] for field in fields[2:] if field.startswith("n=")), "")
            return name.replace("=2C", ",").replace("=3D", "=")
    return ""
