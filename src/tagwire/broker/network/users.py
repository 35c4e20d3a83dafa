"""By which exchanges the users of listeners with SASL come in."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from tagwire.broker import clock
from tagwire.broker.bearer_tokens import TokenValidator
from tagwire.broker.scram_users import ScramUsers
from tagwire.broker.settings import Settings
from tagwire.errors import AuthenticationError
from tagwire.escaping import told
from tagwire.rpc import (
    OAUTHBEARER,
    Gate,
    OAuthBearerServer,
    PlainServer,
    ScramServer,
    ServerMechanism,
    ValidatedToken,
)

logger = logging.getLogger("tagwire.broker")


class Users:
    """The users of one broker.

    Args:
        settings: say the passwords for PLAIN, the validator of tokens, and how long sessions last.
        scram_users: those who come in by SCRAM.
    """

    def __init__(self, settings: Settings, scram_users: ScramUsers) -> None:
        self._settings = settings
        self._scram_users = scram_users

    def gate(self, mechanisms: Iterable[str]) -> Gate:
        """What stands between a new connection and the broker."""
        exchanges = {mechanism: self._exchange(mechanism) for mechanism in mechanisms}
        return Gate(
            exchanges, max_session_s=float(self._settings.max_reauth_s), clock=lambda: clock.monotonic_ms() / 1000
        )

    def _exchange(self, mechanism: str) -> Callable[[], ServerMechanism]:
        if mechanism == "PLAIN":
            return partial(PlainServer, self._settings.users.get)
        if mechanism == OAUTHBEARER:
            validator = self._settings.oauthbearer_validator
            assert validator is not None  # the settings see to it
            return partial(OAuthBearerServer, partial(_validated, validator, _takes_extensions(validator)))
        users = self._scram_users
        return partial(ScramServer, mechanism, partial(users.credential, mechanism), partial(users.shapes, mechanism))


def _takes_extensions(validator: TokenValidator) -> bool:
    try:
        parameter = inspect.signature(validator).parameters.get("extensions")
    except ValueError:  # one that is not written in Python may not say
        return False
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _validated(validator: Any, takes_extensions: bool, token: str, extensions: Mapping[str, str]) -> ValidatedToken:
    """Whom a token stands for, by the program's own validator, whatever that does with it."""
    beside = {"extensions": MappingProxyType(extensions)} if takes_extensions else {}
    try:
        found = validator(token, **beside)
    except AuthenticationError as error:
        said = str(error)  # the program's own, perhaps, and with what nobody is to read
        has_secret = token in said or (takes_extensions and any(value in said for value in extensions.values()))
        logger.warning("a token is refused: %s", "by the validator" if has_secret else told(said, 200))
        raise
    except Exception as error:
        logger.error("a token is refused: the validator has failed: %s", type(error).__name__)
        raise AuthenticationError("the validator has failed") from None
    if not _is_whole(found):
        logger.error("a token is refused: the validator gave no ValidatedToken with a principal and a finite time")
        raise AuthenticationError("the validator names nobody")
    return found  # type: ignore[no-any-return]


def _is_whole(found: object) -> bool:
    return (
        isinstance(found, ValidatedToken)
        and isinstance(found.principal, str)
        and bool(found.principal)
        and (found.expires_at is None or _is_time(found.expires_at))
    )


def _is_time(told: object) -> bool:
    return isinstance(told, (int, float)) and abs(told) < _LATEST_S


_LATEST_S: Final = 2**53
"""Seconds since 1970: whole ones up to it are floats, too."""
