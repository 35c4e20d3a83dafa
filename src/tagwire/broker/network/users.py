"""The users of listeners with SASL, and their passwords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from tagwire.rpc import Gate, PlainServer, ScramCredential, ScramServer, ServerMechanism, scram_credential


class Users:
    """The users of one broker.

    Args:
        passwords: {user: password}. For SCRAM a credential is made of each when it is first needed: that takes some
            milliseconds, which a broker that starts should not spend.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def gate(self, mechanisms: Iterable[str]) -> Gate:
        """What stands between a new connection and the broker."""
        return Gate({mechanism: self._exchange(mechanism) for mechanism in mechanisms})

    def _exchange(self, mechanism: str) -> Callable[[], ServerMechanism]:
        if mechanism == "PLAIN":
            return partial(PlainServer, self._passwords.get)
        return partial(ScramServer, mechanism, partial(self._credential, mechanism))

    def _credential(self, mechanism: str, user: str) -> ScramCredential | None:
        if user not in self._passwords:
            return None
        kept = self._credentials.get((mechanism, user))
        if kept is None:
            kept = self._credentials[mechanism, user] = scram_credential(mechanism, self._passwords[user])
        return kept
