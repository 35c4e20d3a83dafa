"""SASL over a connection: which mechanism, then its tokens, in both roles (docs/wire-format.md#sasl).

A client names its mechanism in SaslHandshake and then exchanges tokens in SaslAuthenticate; a broker serves nothing
but ApiVersions and these two until the client has authenticated. Secrets are in no `repr` and in no error.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
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
    """A client's side of a mechanism: a token for each challenge, the first for b""; None when nothing is left."""

    mechanism: str

    def respond(self, challenge: bytes) -> bytes | None: ...


class ServerMechanism(Protocol):
    """A broker's side of a mechanism: a challenge for each token; `username` once the client is known."""

    username: str | None

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

    Args:
        connection: on which ApiVersions has had its response.
        mechanism: the client's side of PLAIN or SCRAM.
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
        self._connection = connection
        self._mechanism = mechanism
        self._broker = broker
        self._versions = {api: choose(api, OURS, ranges, broker=broker, excluded=excluded) for api in OURS}
        self._agreed = False

    def request(self) -> bytes:
        """The first request's frame."""
        return self._send(messages.SaslHandshakeRequest(mechanism=self._mechanism.mechanism))

    def receive(self, event: Response | Unsupported) -> bytes:
        """Takes the broker's response; returns the frame to send next, empty when the exchange is done.

        Raises:
            AuthenticationError: the mechanism or the credentials are refused, or the broker cannot prove itself.
            LocalProtocolError: the event is the response to another request.
        """
        if event.api_key != (ApiKey.SASL_AUTHENTICATE if self._agreed else ApiKey.SASL_HANDSHAKE) or self.done:
            raise LocalProtocolError(f"{self._broker}: a response to API {event.api_key} where SASL was due")
        if isinstance(event, Unsupported):
            raise UnsupportedVersionError(event.told_by(self._broker))
        message: messages.SaslHandshakeResponse | messages.SaslAuthenticateResponse = event.message
        if message.error_code:
            raise AuthenticationError(f"{self._broker} refused {self._refusal(message)}")
        challenge = message.auth_bytes if isinstance(message, messages.SaslAuthenticateResponse) else b""
        try:
            token = self._mechanism.respond(challenge)
        except AuthenticationError as error:
            raise AuthenticationError(f"{self._broker}: {error}") from None
        self._agreed = True
        if token is None:
            self.done = True
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


class Gate:
    """A broker's side: serves SaslHandshake and SaslAuthenticate until a client has authenticated.

    Args:
        mechanisms: {name: a function that begins an exchange}.

    Attributes:
        username: who has authenticated; None until then. Until then, serve nothing but ApiVersions besides.
        failed: whether the client was refused: the connection is to be closed after the response.
    """

    def __init__(self, mechanisms: Mapping[str, Callable[[], ServerMechanism]]) -> None:
        self.username: str | None = None
        self.failed = False
        self._mechanisms = mechanisms
        self._exchange: ServerMechanism | None = None

    def handshake(self, request: messages.SaslHandshakeRequest) -> messages.SaslHandshakeResponse:
        """The response to a SaslHandshakeRequest."""
        kind = messages.SaslHandshakeResponse
        names = sorted(self._mechanisms)
        if self._exchange is not None or self.username is not None:
            self.failed = True
            return kind(error_code=Error.ILLEGAL_SASL_STATE, mechanisms=names)
        begin = self._mechanisms.get(request.mechanism)
        if begin is None:
            self.failed = True
            return kind(error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
        self._exchange = begin()
        return kind(mechanisms=names)

    def authenticate(self, request: messages.SaslAuthenticateRequest) -> messages.SaslAuthenticateResponse:
        """The response to a SaslAuthenticateRequest."""
        kind = messages.SaslAuthenticateResponse
        if self._exchange is None or self.username is not None or self.failed:
            self.failed = True
            return kind(error_code=Error.ILLEGAL_SASL_STATE, error_message="no mechanism was agreed on")
        try:
            token = self._exchange.respond(request.auth_bytes)
        except AuthenticationError as error:
            self.failed = True
            return kind(error_code=Error.SASL_AUTHENTICATION_FAILED, error_message=str(error))
        self.username = self._exchange.username
        return kind(error_message=None, auth_bytes=token)
