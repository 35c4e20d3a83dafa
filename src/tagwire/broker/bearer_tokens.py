"""Validators of bearer tokens, for listeners with OAUTHBEARER: of unsecured tokens, and of those that an issuer signed.

A token is a JWT (RFC 7519). Whom it stands for, when it ends and what its scope is are its claims; who believes them
depends on the validator. No error has a token, or a claim's value.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from tagwire.errors import AuthenticationError, ConfigError
from tagwire.rpc import ValidatedToken


class ExtensionsValidator(Protocol):
    """A validator that looks at what clients send beside the token, too (KIP-342)."""

    def __call__(self, token: str, *, extensions: Mapping[str, str]) -> ValidatedToken:
        """Gives whom a token stands for. `extensions`: {name: value}, of which nothing is believed yet."""


TokenValidator = Callable[[str], ValidatedToken] | ExtensionsValidator
"""Gives whom a token stands for; raises AuthenticationError for one that is refused."""

MOST_CHARACTERS: Final = 512 * 1024
"""Of a token; Kafka's sasl.server.max.receive.size."""

MOST_PRINCIPAL_CHARACTERS: Final = 1024

_BASE64URL: Final = re.compile(r"[-_A-Za-z0-9]*={0,2}")
_LATEST_S: Final = 253_402_300_800
"""The end of the year 9999, seconds since 1970 UTC: later than any token honestly ends."""


class ClaimsCheck:
    """What a token's claims have to say, whoever signed it.

    Args:
        principal_claim: the claim with the user's name.
        scope_claim: the claim with the token's scope: a list, or text with spaces.
        required_scope: what has to be among it.
        issuer: what `iss` has to be; None for anything.
        audience: what has to be among `aud`; None for anything.
        clock_skew_s: by how many seconds the clocks of issuer and broker may differ.
        wall: seconds since 1970 UTC.

    Raises:
        ConfigError: a value is wrong.
    """

    def __init__(
        self,
        *,
        principal_claim: str = "sub",
        scope_claim: str = "scope",
        required_scope: Sequence[str] = (),
        issuer: str | None = None,
        audience: str | None = None,
        clock_skew_s: float = 0.0,
        wall: Callable[[], float] = time.time,
    ) -> None:
        if not principal_claim or not scope_claim:
            raise ConfigError("oauthbearer: principal_claim and scope_claim need names of claims")
        if isinstance(required_scope, str):
            raise ConfigError("oauthbearer: required_scope needs a list of texts")
        if not 0 <= clock_skew_s < math.inf:
            raise ConfigError(f"oauthbearer: clock_skew_s={clock_skew_s!r} is not 0 or more")
        self._principal_claim = principal_claim
        self._scope_claim = scope_claim
        self._required_scope = frozenset(required_scope)
        self._issuer = issuer
        self._audience = audience
        self._clock_skew_s = clock_skew_s
        self._wall = wall

    def validated(self, claims: Mapping[str, Any]) -> ValidatedToken:
        """Whom claims stand for.

        Raises:
            AuthenticationError: they say nobody, have ended or not begun, or are for somebody else.
        """
        now = self._wall()
        principal = claims.get(self._principal_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise refused(f"claim {self._principal_claim} names nobody")
        if len(principal) > MOST_PRINCIPAL_CHARACTERS:
            raise refused(f"claim {self._principal_claim} has more than {MOST_PRINCIPAL_CHARACTERS} characters")
        expires = _seconds(claims, "exp")
        if expires is None:
            raise refused("claim exp is missing")
        if now - self._clock_skew_s >= expires:
            raise refused("it has expired")
        for name in ("iat", "nbf"):
            begins = _seconds(claims, name)
            if begins is not None and begins > now + self._clock_skew_s:
                raise refused(f"claim {name} is in the future")
            if begins is not None and begins >= expires:
                raise refused(f"it expires before its claim {name}")
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise refused("another issuer made it")
        if self._audience is not None and self._audience not in _texts(claims.get("aud"), split=False):
            raise refused("it is for another audience")
        if not self._required_scope <= _texts(claims.get(self._scope_claim), split=True):
            raise refused("its scope is not enough")
        # Past its end, where only the clocks' difference lets it in, it lasts for as long as that does: Kafka tells a
        # lifetime of 0 then, which clients take for a session without end, and closes the connection.
        return ValidatedToken(principal, expires if expires > now else expires + self._clock_skew_s)


class UnsecuredTokens:
    """Believes unsecured tokens, which anybody can make: for tests, never for production.

    As Kafka's OAuthBearerUnsecuredValidatorCallbackHandler (KIP-255): JWTs whose algorithm is `none`, without a
    signature. A token that is signed is refused.

    Args:
        check: what the claims have to say.
    """

    def __init__(self, check: ClaimsCheck | None = None) -> None:
        self._check = check or ClaimsCheck()

    def __call__(self, token: str) -> ValidatedToken:
        """Raises AuthenticationError: the token is refused."""
        header, claims, signature, _ = parsed(token)
        if header.get("alg") != "none" or signature:
            raise refused("it is signed, and the broker takes unsecured ones")
        return self._check.validated(claims)


def parsed(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any], bytes, bytes]:
    """A token's header, claims, signature and what is signed.

    Raises:
        AuthenticationError: it is no JWT, or longer than any is.
    """
    if len(token) > MOST_CHARACTERS:
        raise refused(f"it has {len(token)} characters; {MOST_CHARACTERS} are the most")
    parts = token.split(".", 3)
    if len(parts) != 3:
        raise refused("it is no JWT: that has three parts")
    header, claims, signature = parts
    return _object(header, "header"), _object(claims, "claims"), _decoded(signature), f"{header}.{claims}".encode()


def base64url(text: str) -> bytes:
    """The bytes of base64 without padding, as JOSE has it (RFC 7515). Raises ValueError."""
    if not _BASE64URL.fullmatch(text):
        raise ValueError("no base64url")
    text = text.rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def refused(why: str) -> AuthenticationError:
    """The error for a token that is refused."""
    return AuthenticationError(f"OAUTHBEARER: the token is refused: {why}")


def _decoded(part: str) -> bytes:
    try:
        return base64url(part)
    except (ValueError, binascii.Error):
        raise refused("it is no JWT: a part is no base64url") from None


def _object(part: str, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_decoded(part))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise refused(f"it is no JWT: its {what} are no JSON object")
    return found


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim's time; None for a claim that is not there."""
    found = claims.get(name)
    if found is None:
        return None
    if type(found) not in (int, float) or not 0 <= found <= _LATEST_S:
        raise refused(f"claim {name} is no time")
    return float(found)


def _texts(claim: Any, *, split: bool) -> frozenset[str]:
    """The texts of a claim that is one, or a list of them."""
    if isinstance(claim, str):
        return frozenset(claim.split() if split else (claim,))
    return frozenset(each for each in claim if isinstance(each, str)) if isinstance(claim, list) else frozenset()
