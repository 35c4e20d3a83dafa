"""OAUTHBEARER, both roles, without the connection (RFC 7628; KIP-255, extensions of KIP-342).

A client hands over a bearer token, mostly a JWT that somebody else has signed, and the broker asks its validator whom
the token stands for. Neither side reads the token here; no text has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tagwire.errors import AuthenticationError
from tagwire.escaping import told

OAUTHBEARER: Final = "OAUTHBEARER"
"""The mechanism's name, as SaslHandshake has it."""

MAX_INITIAL_RESPONSE: Final = 512 * 1024
"""Bytes of the longest message with a token, of either side. Source: Kafka's sasl.server.max.receive.size."""

MAX_FAILURE: Final = 8 * 1024
"""Bytes of a broker's error document that are read; honest ones have less than a hundred."""

_SEPARATOR: Final = "\x01"
_DUMMY: Final = b"\x01"  # what a client answers an error with, so that the broker can end the exchange
_TOKEN: Final = re.compile(r"[-_~+/.A-Za-z0-9]+=*")  # RFC 6750's b64token
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_NO_EXTENSIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ValidatedToken:
    """What a validator found a token to say.

    Attributes:
        principal: the user's name.
        expires_at: when the token ends, seconds since 1970 UTC; None for one that does not.
    """

    principal: str
    expires_at: float | None = None


class OAuthBearerClient:
    """The client's side of one exchange. Source: Kafka's OAuthBearerSaslClient.

    Args:
        token: the bearer token, as its issuer gave it.
        extensions: {name: value} for the broker beside it: names of ASCII letters, values of printable ASCII.

    Raises:
        AuthenticationError: the token or an extension is none that can be sent. The text says which, not what it is.
    """

    mechanism = OAUTHBEARER

    def __init__(self, token: str, extensions: Mapping[str, str] = _NO_EXTENSIONS) -> None:
        if fault := token_fault(token) or extensions_fault(extensions):
            raise AuthenticationError(f"{OAUTHBEARER}: {fault}")
        beside = "".join(f"{_SEPARATOR}{name}={value}" for name, value in extensions.items())
        self._message = f"n,,{_SEPARATOR}auth=Bearer {token}{beside}{_SEPARATOR}{_SEPARATOR}".encode()
        if len(self._message) > MAX_INITIAL_RESPONSE:
            raise AuthenticationError(
                f"{OAUTHBEARER}: token and extensions have {len(self._message)} bytes; "
                f"{MAX_INITIAL_RESPONSE} are the most"
            )
        self._steps: Iterator[Callable[[bytes], bytes | None]] = iter((self._begin, self._look, self._fail))
        self._failure = ""

    def respond(self, challenge: bytes) -> bytes | None:
        """The token first, then None where the broker takes it. Where it does not, an answer that ends the exchange.

        Raises:
            AuthenticationError: the broker refuses, or breaks the exchange.
        """
        step = next(self._steps, None)
        if step is None:
            raise AuthenticationError(f"the broker goes on after the end of {OAUTHBEARER}")
        return step(challenge)

    def _begin(self, challenge: bytes) -> bytes:
        if challenge:
            raise AuthenticationError(f"the broker speaks first, which {OAUTHBEARER} does not have")
        return self._message

    def _look(self, challenge: bytes) -> bytes | None:
        if not challenge:
            self._steps = iter(())
            return None
        self._failure = _failure_text(challenge)
        return _DUMMY

    def _fail(self, challenge: bytes) -> None:
        raise AuthenticationError(f"the broker refused the token: {self._failure}")


class OAuthBearerServer:
    """The broker's side of one exchange. Source: Kafka's OAuthBearerSaslServer.

    Args:
        validate: takes a token and the extensions beside it, and gives whom it stands for. Raises AuthenticationError
            for a token that is refused; its text does not go to the client, which is told `invalid_token`.

    Attributes:
        username: the token's principal; None until then.
        expires_at: when the token ends, seconds since 1970 UTC; None until then, and for one that does not end.
        extensions: what the client sent beside the token.
    """

    mechanism = OAUTHBEARER

    def __init__(self, validate: Callable[[str, Mapping[str, str]], ValidatedToken]) -> None:
        self.username: str | None = None
        self.expires_at: float | None = None
        self.extensions: Mapping[str, str] = {}
        self._validate = validate
        self._failure = ""

    def respond(self, token: bytes) -> bytes:
        """b"" where the client is known; an error document where its token is refused, which the client answers.

        Raises:
            AuthenticationError: no OAUTHBEARER message, the answer to an error, or another authorization id than the
                token's principal.
        """
        if self.username is not None:
            raise AuthenticationError(f"the client goes on after the end of {OAUTHBEARER}")
        if self._failure:
            raise AuthenticationError(self._failure)
        authorized_as, bearer, extensions = _parse(token)
        try:
            found = self._validate(bearer, extensions)
        except AuthenticationError:
            self._failure = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            return self._failure.encode()
        if authorized_as not in ("", found.principal):
            raise AuthenticationError(f"{OAUTHBEARER}: the authorization id is another than the token's principal")
        self.username, self.expires_at, self.extensions = found.principal, found.expires_at, extensions
        return b""


def token_fault(token: str) -> str:
    """What makes a text no bearer token (RFC 6750), without the text; "" where it is one."""
    if not token:
        return "the token is empty"
    if len(token) > MAX_INITIAL_RESPONSE:
        return f"the token has {len(token)} characters; {MAX_INITIAL_RESPONSE} are the most"
    return "" if _TOKEN.fullmatch(token) else "the token has characters that no bearer token has (RFC 6750)"


def extensions_fault(extensions: Mapping[str, str]) -> str:
    """What makes a mapping no SASL extensions (KIP-342), without their values; "" where it is one."""
    for name, value in extensions.items():
        if not _EXTENSION_NAME.fullmatch(name):
            return f"the extension {told(name, 50)!r} is not named by ASCII letters alone"
        if name == "auth":
            return "no extension may be named 'auth': that is the token"
        if not _EXTENSION_VALUE.fullmatch(value):
            return f"the extension {told(name, 50)!r} has a value that is empty, or not printable ASCII"
    return ""


def _parse(message: bytes) -> tuple[str, str, dict[str, str]]:
    """Authorization id, token and extensions of a client's message."""
    if len(message) > MAX_INITIAL_RESPONSE:
        raise AuthenticationError(
            f"{OAUTHBEARER}: the client's message has {len(message)} bytes; {MAX_INITIAL_RESPONSE} are the most"
        )
    try:
        header, separator, rest = message.decode("ascii").partition(_SEPARATOR)
    except UnicodeDecodeError:
        raise _malformed() from None
    parts = header.split(",")
    if len(parts) != 3 or parts[0] not in ("n", "y") or parts[2] or not separator or not rest.endswith("\x01\x01"):
        raise _malformed()
    found: dict[str, str] = {}
    for pair in rest[:-2].split(_SEPARATOR):
        name, equals, value = pair.partition("=")
        if not equals or name in found:
            raise _malformed()
        found[name] = value
    scheme, _, token = found.pop("auth", "").partition(" ")
    token = token.lstrip(" ")
    if scheme.lower() != "bearer" or token_fault(token):
        raise AuthenticationError(f"{OAUTHBEARER}: the client's message has no bearer token")
    if fault := extensions_fault(found):
        raise AuthenticationError(f"{OAUTHBEARER}: {fault}")
    return _authorization_id(parts[1]), token, found


def _authorization_id(field: str) -> str:
    if not field:
        return ""
    name = field.removeprefix("a=")
    if name == field or not name or "=" in name.replace("=2C", "").replace("=3D", ""):
        raise _malformed()
    return name.replace("=2C", ",").replace("=3D", "=")


def _malformed() -> AuthenticationError:
    return AuthenticationError(f"{OAUTHBEARER}: the client's message is none of RFC 7628's")


def _failure_text(document: bytes) -> str:
    """What a broker's error document says, in words (RFC 7628, section 3.2.2)."""
    try:
        found = json.loads(document) if len(document) <= MAX_FAILURE else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("status"), str):
        return f"without a reason that can be read ({len(document)} bytes)"
    said = [found["status"]]
    said += [f"{name} {found[name]}" for name in ("scope", "openid-configuration") if isinstance(found.get(name), str)]
    return told(", ".join(said), 200)
