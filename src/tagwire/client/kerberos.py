"""Who a client is to Kerberos: tickets from the system's cache, or by a keytab, through the package `gssapi`.

The package is the extra `gssapi`; the library below it (MIT's or Heimdal's) reads krb5.conf, finds the KDC, and keeps
tickets. No password is handled here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

from tagwire.errors import AuthenticationError, ConfigError, ConnectError
from tagwire.escaping import told
from tagwire.extras import Needs
from tagwire.rpc.gssapi import GSSAPI, GssapiClient

if TYPE_CHECKING:
    import gssapi

# What MIT's library and Heimdal's say where no KDC responds: that may pass.
_UNREACHABLE: Final = ("cannot contact any kdc", "unable to reach any kdc", "cannot find kdc")


@dataclass(frozen=True, slots=True)
class Kerberos:
    """How a client logs in with GSSAPI.

    Attributes:
        service_name: the first part of the brokers' principals (sasl.kerberos.service.name).
        domain_name: their host in it, where that is not the one that is connected to; None for that one.
        principal: who logs in; None is whom the cache of tickets is of, or the first in the keytab.
        keytab: file with the principal's key, by which tickets are got and renewed; None takes those that `kinit` has
            put into the cache.

    Raises:
        ConfigError: the keytab cannot be read. MissingExtraError: the package `gssapi` is not installed.
    """

    service_name: str = "kafka"
    domain_name: str | None = None
    principal: str | None = None
    keytab: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        with Needs("gssapi"):
            import gssapi  # noqa: F401
        if self.keytab is not None:
            path = fspath(self.keytab).removeprefix("FILE:")
            try:
                os.close(os.open(path, os.O_RDONLY))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise ConfigError(f"sasl_kerberos_keytab={told(path)!r}: {reason}") from None

    def __call__(self, host: str) -> GssapiClient:
        """An exchange with the broker at a host. Its first `respond` may ask a KDC, and wait for it; it raises
        AuthenticationError where there is no ticket for this principal or this service, and ConnectError where no KDC
        responds."""
        return GssapiClient(lambda: _Context(self, host))

    def credentials(self) -> gssapi.Credentials | None:
        """What a context is made with; None is the system's cache. Raises GSSError."""
        if self.principal is None and self.keytab is None:
            return None
        import gssapi

        name = None
        if self.principal is not None:
            name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
        if self.keytab is None:
            return gssapi.Credentials(name=name, usage="initiate")
        keytab = fspath(self.keytab).removeprefix("FILE:")
        # Of this process alone, and shared by its connections: the library renews what it has got by a keytab.
        cache = hashlib.sha256(f"{keytab}\0{self.principal}".encode()).hexdigest()[:16]
        store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:tagwire-{cache}"}
        return gssapi.Credentials(name=name, usage="initiate", store=store)


class _Context:
    """A context of the package's, whose errors are ours."""

    def __init__(self, kerberos: Kerberos, host: str) -> None:
        import gssapi

        self._error = gssapi.exceptions.GSSError
        self._mutual = gssapi.RequirementFlag.mutual_authentication
        self._service = f"{kerberos.service_name}@{kerberos.domain_name or host}"
        self._has_keytab = kerberos.keytab is not None
        self._user = f" as {kerberos.principal}" if kerberos.principal else ""
        self._user += f" by keytab {fspath(kerberos.keytab)}" if kerberos.keytab is not None else ""
        try:
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(self._service, gssapi.NameType.hostbased_service),
                creds=kerberos.credentials(),
                mech=gssapi.MechType.kerberos,
                flags=self._mutual | gssapi.RequirementFlag.integrity,
                usage="initiate",
            )
        except self._error as error:
            raise self._failure(error) from None

    @property
    def is_complete(self) -> bool:
        return bool(self._context.complete)

    def step(self, token: bytes) -> bytes:
        try:
            made = self._context.step(token or None) or b""
        except self._error as error:
            raise self._failure(error) from None
        if self.is_complete and self._mutual not in self._context.actual_flags:
            raise AuthenticationError(f"{GSSAPI}: {told(self._service)} does not prove who it is")
        return made

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.wrap(message, False).message)
        except self._error as error:
            raise self._failure(error) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.unwrap(message).message)
        except self._error as error:
            raise self._failure(error) from None

    def _failure(self, error: Any) -> AuthenticationError | ConnectError:
        """What the library says: of principals, caches and KDCs, never of keys."""
        minor = " ".join(part for part in _messages(error) if part)
        said = f"{GSSAPI}, {told(self._service)}{told(self._user)}: {told(minor, 300)}"
        if self._has_keytab and "credentials cache" in minor.lower():
            said += "; `klist -k` tells whose keys are in a keytab"
        is_late = any(text in minor.lower() for text in _UNREACHABLE)
        return ConnectError(said) if is_late else AuthenticationError(said)


def _messages(error: Any) -> list[str]:
    """The mechanism's words, which tell what is wrong; the general ones where it has none."""
    try:
        return list(error.get_all_statuses(error.min_code, False)) or list(error.get_all_statuses(error.maj_code, True))
    except Exception:  # an error about an error
        return [type(error).__name__]
