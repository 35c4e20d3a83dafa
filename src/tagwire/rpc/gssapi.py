"""GSSAPI, a client's role, without the connection and without a library of Kerberos (RFC 4752).

The tokens of a security context go back and forth until both sides are sure of each other; then the broker says which
security layers it has, and the client takes the one that Kafka's brokers have: none, for TLS protects connections.
Source: RFC 4752; Kafka's SaslClientAuthenticator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tagwire.errors import AuthenticationError

GSSAPI: Final = "GSSAPI"

MAX_CHALLENGE: Final = 64 * 1024
"""Bytes of the longest token of a broker's that is looked at; Kerberos needs a few hundred."""

MAX_ROUNDS: Final = 8
"""Tokens of a context's that a broker may send; Kerberos has one."""

_NO_LAYER: Final = 1
_LAYERS_BYTES: Final = 4  # a bit mask, and how long a wrapped message may be


class SecurityContext(Protocol):
    """A client's side of a context, as a library of GSSAPI has it.

    Attributes:
        is_complete: whether both sides are sure of each other.

    Each method raises AuthenticationError: the token is refused; the text has nothing of it.
    """

    @property
    def is_complete(self) -> bool: ...

    def step(self, token: bytes) -> bytes:
        """The next token, empty where none is due; the first is for b""."""

    def wrap(self, message: bytes) -> bytes:
        """A message, protected from being changed."""

    def unwrap(self, message: bytes) -> bytes:
        """What is in a message of the broker's."""


class GssapiClient:
    """The client's side of one exchange.

    Args:
        begin: makes the context, with the first `respond`, which is where tickets are got.

    Attributes:
        blocks: `respond` may take as long as a KDC does.
    """

    mechanism = GSSAPI
    blocks = True

    def __init__(self, begin: Callable[[], SecurityContext]) -> None:
        self._begin = begin
        self._context: SecurityContext | None = None
        self._rounds = 0
        self._is_chosen = False
        self._is_over = False

    def respond(self, challenge: bytes) -> bytes | None:
        """Raises AuthenticationError: there is no ticket, or no such service; the broker cannot prove itself, or breaks
        the exchange."""
        if len(challenge) > MAX_CHALLENGE:
            raise AuthenticationError(f"{GSSAPI}: a token of {len(challenge)} bytes; {MAX_CHALLENGE} are the most")
        if self._context is None:
            if challenge:
                raise AuthenticationError(f"the broker speaks first, which {GSSAPI} does not have")
            self._context = self._begin()
            return self._context.step(b"")
        if self._is_over or (self._is_chosen and challenge):
            raise AuthenticationError(f"the broker goes on after the end of {GSSAPI}")
        if self._is_chosen:
            self._is_over = True
            return None
        if not self._context.is_complete:
            return self._step(self._context, challenge)
        return self._choose(self._context, challenge)

    def _step(self, context: SecurityContext, challenge: bytes) -> bytes:
        self._rounds += 1
        if not challenge or self._rounds > MAX_ROUNDS:
            raise AuthenticationError(f"{GSSAPI}: the broker does not prove who it is")
        return context.step(challenge)

    def _choose(self, context: SecurityContext, challenge: bytes) -> bytes:
        if not challenge:  # what the client sent last completed the context; the broker's turn was to say its layers
            raise AuthenticationError(f"{GSSAPI}: the broker does not say which security layers it has")
        layers = context.unwrap(challenge)
        if len(layers) != _LAYERS_BYTES or not layers[0] & _NO_LAYER:
            raise AuthenticationError(f"{GSSAPI}: the broker wants a security layer; Kafka's protocol has none")
        self._is_chosen = True
        return context.wrap(bytes([_NO_LAYER, 0, 0, 0]))
