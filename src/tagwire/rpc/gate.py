"""A broker's side of SASL on one connection: who may come in, for how long, and how to stay (docs/wire-format.md#sasl).

A session lasts as long as its connection, unless its lifetime is bounded: then the client authenticates again on the
connection, as the same user by the same mechanism (KIP-368). Source: Kafka's SaslServerAuthenticator and KafkaChannel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from tagwire import messages
from tagwire.errors import AuthenticationError, Error
from tagwire.escaping import told
from tagwire.rpc.sasl import ServerMechanism
from tagwire.spec.api_keys import ApiKey

BEFORE: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""What may be requested before a client has authenticated."""

_DURING: Final = BEFORE - {ApiKey.API_VERSIONS}
"""A second handshake is refused by its response."""

LEAST_BETWEEN_REAUTHENTICATIONS_S: Final = 1.0
"""Seconds from the beginning of one to the next; Kafka's."""


class Gate:
    """A broker's side: serves SaslHandshake and SaslAuthenticate.

    Args:
        mechanisms: {name: a function that begins an exchange}.
        max_session_s: how long a session lasts at most, in seconds, before the client has to authenticate again; 0 for
            as long as its credentials. Kafka's connections.max.reauth.ms.
        clock: seconds that are never set back.
        wall: seconds since 1970 UTC.

    Attributes:
        username: who has authenticated; None until then.
        failed: whether the client was refused: the connection is to be closed after the response.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[], ServerMechanism]],
        *,
        max_session_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.username: str | None = None
        self.failed = False
        self._mechanisms = mechanisms
        self._max_session_s = max_session_s
        self._clock = clock
        self._wall = wall
        self._mechanism = ""
        self._exchange: ServerMechanism | None = None
        self._is_another = False
        self._ends: float | None = None
        self._began_again: float | None = None

    def admits(self, api_key: int) -> bool:
        """Whether a request may be served now; one that may not closes the connection.

        Before a client authenticates these are ApiVersions and those of SASL, between its SaslHandshake and the last
        token those of SASL alone, while it does so again SaslAuthenticate, and after the end of its session a
        SaslHandshake by which it may begin to.
        """
        if self.username is None:
            return api_key in (BEFORE if self._exchange is None else _DURING)
        if self._exchange is not None or self._is_another:
            return api_key == ApiKey.SASL_AUTHENTICATE
        if self._ends is not None and self._clock() > self._ends:
            return api_key == ApiKey.SASL_HANDSHAKE and self._may_begin_again()
        return True

    def handshake(self, request: messages.SaslHandshakeRequest) -> messages.SaslHandshakeResponse:
        """The response to a SaslHandshakeRequest."""
        kind = messages.SaslHandshakeResponse
        names = sorted(self._mechanisms)
        if self.username is not None:
            if not self._may_begin_again():
                return kind(error_code=Error.ILLEGAL_SASL_STATE)
            self._began_again = self._clock()
        elif self._exchange is not None:
            self.failed = True
            return kind(error_code=Error.ILLEGAL_SASL_STATE, mechanisms=names)
        begin = self._mechanisms.get(request.mechanism)
        if begin is None:
            self.failed = True
            return kind(error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
        # What is wrong with another mechanism is told when the first token comes.
        self._is_another = self.username is not None and request.mechanism != self._mechanism
        if not self._is_another:
            self._mechanism, self._exchange = request.mechanism, begin()
        return kind(mechanisms=names)

    def authenticate(self, request: messages.SaslAuthenticateRequest) -> messages.SaslAuthenticateResponse:
        """The response to a SaslAuthenticateRequest.

        Raises:
            AuthenticationError: a client that authenticates again does so by another mechanism. It gets no response, as
                from Kafka: the connection is closed.
        """
        kind = messages.SaslAuthenticateResponse
        if self._is_another:
            self.failed = True
            raise AuthenticationError(f"re-authentication is by another mechanism than {self._mechanism}")
        if self._exchange is None:
            if self.username is not None:
                problem = "the client has authenticated already"
                return kind(error_code=Error.ILLEGAL_SASL_STATE, error_message=problem)
            return self._refusal(Error.ILLEGAL_SASL_STATE, "no mechanism was agreed on")
        if self.failed:
            return self._refusal(Error.ILLEGAL_SASL_STATE, "authentication has failed")
        try:
            token = self._exchange.respond(request.auth_bytes)
        except AuthenticationError as error:
            return self._refusal(Error.SASL_AUTHENTICATION_FAILED, str(error))
        found, expires_at = self._exchange.username, self._exchange.expires_at
        if found is None:
            return kind(error_message=None, auth_bytes=token)
        if self.username not in (None, found):
            was, now = told(self.username or "", 100), told(found, 100)
            problem = f"Cannot change principals during re-authentication from User.{was}: User.{now}"
            return self._refusal(Error.SASL_AUTHENTICATION_FAILED, problem)
        self.username, self._exchange = found, None
        lifetime_ms = self._begin_session(expires_at)
        return kind(error_message=None, auth_bytes=token, session_lifetime_ms=lifetime_ms)

    def _refusal(self, error: Error, problem: str) -> messages.SaslAuthenticateResponse:
        self.failed = True
        return messages.SaslAuthenticateResponse(error_code=error, error_message=problem)

    def _begin_session(self, expires_at: float | None) -> int:
        """Note when the session ends; its lifetime in milliseconds, 0 for one that does not end."""
        bounds = [] if expires_at is None else [expires_at - self._wall()]
        if self._max_session_s > 0:
            bounds.append(self._max_session_s)
        if not bounds:
            self._ends = None
            return 0
        # At least 1, as 0 says that it does not end: the client would not authenticate again, and be closed for it.
        lifetime_ms = max(int(min(*bounds, _LONGEST_S) * 1000), 1)
        self._ends = self._clock() + lifetime_ms / 1000
        return lifetime_ms

    def _may_begin_again(self) -> bool:
        """Whether a client that has authenticated may do so again: where its session ends, and not too often."""
        if self._ends is None:
            return False
        since = self._began_again
        return since is None or self._clock() - since >= LEAST_BETWEEN_REAUTHENTICATIONS_S


_LONGEST_S: Final = 100 * 365 * 86400.0
"""A token may say any number."""
