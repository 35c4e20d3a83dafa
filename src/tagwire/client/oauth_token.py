"""A bearer token as a client has it: the text, until when it is good, and what can be read of it without its issuer.

Nothing here checks a signature: brokers do. What is read of a JWT tells when to ask for the next one, and finds a token
that no broker would take before one is asked.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tagwire.errors import TokenError
from tagwire.escaping import told
from tagwire.rpc.oauthbearer import extensions_fault, token_fault

DEFAULT_CLOCK_SKEW: Final = 30.0
"""Seconds by which clocks may differ. Source: Kafka's sasl.oauthbearer.clock.skew.seconds."""


@dataclass(frozen=True, slots=True)
class OAuthToken:
    """A bearer token.

    Attributes:
        value: the token itself.
        expires_at: until when it is good, seconds since 1970 UTC; None takes the `exp` claim of a JWT. One whose end
            nobody knows is asked for anew whenever one is needed.
        extensions: {name: value} for the broker beside it (KIP-342).
    """

    value: str = field(repr=False)
    expires_at: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class UsableToken:
    """A token that was looked at.

    Attributes:
        issued_at: when it was issued, or had; expires_at: infinity where nobody knows. Seconds since 1970 UTC.
    """

    value: str = field(repr=False)
    extensions: Mapping[str, str] = field(repr=False)
    issued_at: float
    expires_at: float


def usable(
    token: OAuthToken,
    now: float,
    source: str,
    *,
    clock_skew: float = DEFAULT_CLOCK_SKEW,
    expected_audience: str | None = None,
    ends: float = math.inf,
) -> UsableToken:
    """A token that was just had, checked. Times in seconds.

    Args:
        source: what gave it, as errors call that.
        ends: when it ends, where neither it nor its `exp` claim tells.

    Raises:
        TokenError: it has expired, is for another audience, or is no token. The text tells nothing of it.
    """
    if not isinstance(token.value, str) or not isinstance(token.extensions, Mapping):
        raise TokenError(f"{source}: the token is no text, or its extensions are no dict")
    if fault := token_fault(token.value) or extensions_fault(token.extensions):
        raise TokenError(f"{source}: {fault}")
    claims = _claims(token.value, source)
    told_end = token.expires_at if token.expires_at is not None else _time(claims, "exp", source)
    expires_at = ends if told_end is None else told_end
    if expires_at + clock_skew <= now:
        raise TokenError(
            f"{source}: the token expired {now - expires_at:.0f} s ago by this machine's clock; "
            f"{clock_skew:.0f} s of clock skew are allowed"
        )
    if expected_audience is not None and expected_audience not in _audiences(claims):
        raise TokenError(f"{source}: the token is for another audience than {told(expected_audience, 100)!r}")
    issued = _time(claims, "iat", source)
    return UsableToken(
        token.value, dict(token.extensions), now if issued is None else min(issued, now), max(expires_at, now)
    )


def _claims(value: str, source: str) -> dict[str, Any]:
    """The claims of a JWT (RFC 7519); none of a token that is opaque."""
    parts = value.split(".")
    if len(parts) != 3:
        return {}
    try:
        data = parts[1]
        found = json.loads(base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenError(f"{source}: the token looks like a JWT, but its claims are no JSON object")
    return found


def _time(claims: Mapping[str, Any], name: str, source: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise TokenError(f"{source}: the claim {name!r} of the token is no time")
    return float(value)


def _audiences(claims: Mapping[str, Any]) -> list[Any]:
    found = claims.get("aud")
    return found if isinstance(found, list) else [found]
