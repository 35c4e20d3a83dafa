"""SASL over a connection: which mechanism, then its tokens, in both roles (docs/wire-format.md#sasl).

A client names its mechanism in SaslHandshake and then exchanges tokens in SaslAuthenticate; a broker serves nothing
but ApiVersions and these two until the client has authenticated. Secrets are in no `repr` and in no error.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final, Protocol

from tagwire import messages
from tagwire.codec.classes import MessageObject
from tagwire.errors import AuthenticationError, Error, LocalProtocolError, UnsupportedVersionError
from tagwire.escaping import told
from tagwire.rpc.connection import Connection
from tagwire.rpc.events import Response, Unsupported
from tagwire.rpc.negotiation import Excluded, choose
from tagwire.rpc.ranges import Ranges
from tagwire.spec.api_keys import ApiKey

# SaslHandshake 0 is followed by bare tokens outside any request, which only Kafka 0.10 needs.
OURS: Final[Ranges] = {ApiKey.SASL_HANDSHAKE: (1, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}

MAX_OFFERED: Final = 20
"""Mechanisms of a broker's that an error names."""

_NOTHING: Excluded = {}


class ClientMechanism(Protocol):
    """A client's side of a mechanism: a token for each challenge, the first for b""; None when nothing is left. It
    raises AuthenticationError where the broker cannot be believed."""

    mechanism: str

    def respond(self, challenge: bytes) -> bytes | None: ...


class ServerMechanism(Protocol):
    """A broker's side of a mechanism: a challenge for each token; `username` once the client is known, and when its
    credentials end, in seconds since 1970 UTC, where they do."""

    username: str | None
    expires_at: float | None

    def respond(self, token: bytes) -> bytes: ...


class PlainClient:
    """PLAIN (RFC 4616): name and password in the clear, for connections that are encrypted."""

    mechanism = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()
        self._sent = False

    def respond(self, challenge: bytes) -> bytes | None:
        if self._sent:
            return None
        self._sent = True
        return self._token


class PlainServer:
    """PLAIN, a broker's side.

    Args:
        passwords: a user's password, None for a user that does not exist.
    """

    def __init__(self, passwords: Callable[[str], str | None]) -> None:
        self.username: str | None = None
        self.expires_at: float | None = None
        self._passwords = passwords

    def respond(self, token: bytes) -> bytes:
        """Raises AuthenticationError: no PLAIN token, or a wrong user or password."""
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            parts = []
        if len(parts) != 3 or not parts[1] or not parts[2]:
            raise AuthenticationError("PLAIN: the token is not authorization id, user and password")
        authorized_as, username, password = parts
        known = self._passwords(username)
        is_right = hmac.compare_digest(password.encode(), (known or "").encode())
        if known is None or not is_right or authorized_as not in ("", username):
            raise AuthenticationError("PLAIN: wrong user or password")
        self.username = username
        return b""


class Authentication:
    """A client's exchange, without the socket.

        exchange = Authentication(connection, PlainClient("alice", password), handshake.ranges)
        send(exchange.request())
        while not exchange.done:
            send(exchange.receive(event))     # event: from connection.next_event()

    A mechanism that may block responds elsewhere: `challenge`, the mechanism's `respond`, and `answer` are the three
    steps of `receive`.

    Attributes:
        done: whether the client is known.
        session_lifetime_ms: milliseconds after which the broker wants to be authenticated to again (KIP-368); 0 for
            never, and until `done`.

    Args:
        connection: on which ApiVersions has had its response.
        mechanism: the client's side of a mechanism.
        ranges: of the broker's ApiVersions response.
        broker: how errors call the other side.
        excluded: versions of the two APIs not to send, as `exclusions` gives it.

    Raises:
        UnsupportedVersionError: the broker does not serve what is needed: it authenticates nobody, or is older than
            Kafka 1.0.
    """

    def __init__(
        self,
        connection: Connection,
        mechanism: ClientMechanism,
        ranges: Ranges,
        *,
        broker: str = "the broker",
        excluded: Excluded = _NOTHING,
    ) -> None:
        self.done = False
        self.session_lifetime_ms = 0
        self._connection = connection
        self._mechanism = mechanism
        self._broker = broker
        self._versions = {api: choose(api, OURS, ranges, broker=broker, excluded=excluded) for api in OURS}
        self._agreed = False
        self._last_lifetime_ms = 0

    def request(self) -> bytes:
        """The first request's frame."""
        return self._send(messages.SaslHandshakeRequest(mechanism=self._mechanism.mechanism))

    def receive(self, event: Response | Unsupported) -> bytes:
        """Takes the broker's response; returns the frame to send next, empty when the exchange is done.

        Raises:
            AuthenticationError: the mechanism or the credentials are refused, or the broker cannot prove itself.
            LocalProtocolError: the event is the response to another request.
        """
        return self.answer(self.respond(self.challenge(event)))

    def challenge(self, event: Response | Unsupported) -> bytes:
        """What the broker's response asks of the mechanism. Raises as `receive`."""
        if event.api_key != (ApiKey.SASL_AUTHENTICATE if self._agreed else ApiKey.SASL_HANDSHAKE) or self.done:
            raise LocalProtocolError(f"{self._broker}: a response to API {event.api_key} where SASL was due")
        if isinstance(event, Unsupported):
            raise UnsupportedVersionError(event.told_by(self._broker))
        message: messages.SaslHandshakeResponse | messages.SaslAuthenticateResponse = event.message
        if message.error_code:
            raise AuthenticationError(f"{self._broker} refused {self._refusal(message)}")
        self._agreed = True
        if isinstance(message, messages.SaslHandshakeResponse):
            return b""
        self._last_lifetime_ms = max(message.session_lifetime_ms, 0)
        return message.auth_bytes

    def respond(self, challenge: bytes) -> bytes | None:
        """What the mechanism says to a challenge. Raises AuthenticationError."""
        try:
            return self._mechanism.respond(challenge)
        except AuthenticationError as error:
            raise type(error)(f"{self._broker}: {error}") from None

    def answer(self, token: bytes | None) -> bytes:
        """The frame that carries what the mechanism said; empty where nothing is left, and the exchange is done."""
        if token is None:
            self.done, self.session_lifetime_ms = True, self._last_lifetime_ms
            return b""
        return self._send(messages.SaslAuthenticateRequest(auth_bytes=token))

    def _refusal(self, message: messages.SaslHandshakeResponse | messages.SaslAuthenticateResponse) -> str:
        error = Error.of(message.error_code).name
        if isinstance(message, messages.SaslHandshakeResponse):
            offered = told(", ".join(message.mechanisms[:MAX_OFFERED]), 200) or "none"
            return f"mechanism {self._mechanism.mechanism}: {error}; it offers {offered}"
        said = f": {told(message.error_message, 200)}" if message.error_message else ""
        return f"the credentials ({self._mechanism.mechanism}): {error}{said}"

    def _send(self, message: MessageObject) -> bytes:
        return self._connection.send(message, self._versions[message.api_key])


def credential_fault(given: object) -> str | None:
    """Why this can be no name or secret of a login; None if it can, or is not given. Tells nothing of it."""
    if given is None:
        return None
    if not isinstance(given, str):
        return f"needs text, not {type(given).__name__}"
    if "\0" in given:
        return "has a character 0, which SASL forbids"
    try:
        given.encode()
    except UnicodeEncodeError:
        return "has half of a character (a surrogate), which is no text"
    return None
