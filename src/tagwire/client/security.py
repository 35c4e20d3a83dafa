"""How a connection is protected: TLS and SASL, from the options that users of Kafka clients know.

Secrets stand in no `repr` and in no error.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final, TypedDict

from tagwire.client.certificate_files import CertificateFiles
from tagwire.client.kerberos import Kerberos
from tagwire.client.oauth_endpoint import ClientCredentials
from tagwire.client.oauth_login import TokenCallback, TokenLogin, TokenRefresh
from tagwire.client.option_types import of_type
from tagwire.client.pem import PemTexts
from tagwire.client.tls import Tls
from tagwire.errors import ConfigError, no_such_option
from tagwire.rpc import OAUTHBEARER, SCRAM_HASHES, ClientMechanism, PlainClient, ScramClient
from tagwire.rpc.gssapi import GSSAPI
from tagwire.rpc.sasl import credential_fault

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES, OAUTHBEARER, GSSAPI)

MechanismFactory = Callable[[str], ClientMechanism]
"""Begins an exchange of a mechanism with the broker at a host: one for each connection, and each time that it
authenticates again. Where the mechanism's attribute `blocks` is true, its `respond` is called in a thread."""


class SecurityOptions(TypedDict, total=False):
    """The attributes of `Security`, for signatures."""

    security_protocol: str
    ssl_context: ssl.SSLContext | None
    ssl_cafile: str | PathLike[str] | None
    ssl_certfile: str | PathLike[str] | None
    ssl_keyfile: str | PathLike[str] | None
    ssl_password: str | None
    ssl_ca_pem: str | None
    ssl_certificate_pem: str | None
    ssl_key_pem: str | None
    ssl_check_hostname: bool
    ssl_verify: bool
    sasl_mechanism: str | MechanismFactory | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_oauth_token: TokenCallback | ClientCredentials | None
    sasl_oauth_refresh: TokenRefresh | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_domain_name: str | None
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | PathLike[str] | None


@dataclass(frozen=True, slots=True)
class Security:
    """What every connection of a client begins with.

    Attributes:
        security_protocol: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT, or SASL_SSL (both).
        ssl_context: a context made by the caller; instead of the files below.
        ssl_cafile: PEM file of the certificates to trust, each by itself; None trusts those of the system.
        ssl_certfile, ssl_keyfile, ssl_password: PEM files of the client's own certificate and key, for brokers that ask
            for one, and what the key is encrypted with. Where any of the three files changes, connections from then on
            use the new ones.
        ssl_ca_pem, ssl_certificate_pem, ssl_key_pem: the same three as PEM text, instead of the files.
        ssl_check_hostname: whether the broker's certificate must name its host.
        ssl_verify: whether it must be trusted at all; False believes whoever answers.
        sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI; or a `MechanismFactory` for any
            other.
        sasl_plain_username, sasl_plain_password: for the first three.
        sasl_oauth_token: for OAUTHBEARER, where tokens come from: `ClientCredentials`, or a function, `async` or not,
            that gives a JWT or an `OAuthToken`. It is called in a thread, or where it is `async` in the event loop of
            an `AsyncClient`; one token serves all connections.
        sasl_oauth_refresh: when a token is had anew; None is Kafka's default.
        sasl_kerberos_service_name, sasl_kerberos_domain_name, sasl_kerberos_principal, sasl_kerberos_keytab: for
            GSSAPI, see `tagwire.client.kerberos.Kerberos`.

        mechanism_name: what the mechanism is called, "" where only its factory knows.

    Raises:
        ConfigError: an option is wrong, missing, or has no effect with this protocol.
        MissingExtraError: GSSAPI needs the package `gssapi`.
    """

    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    ssl_cafile: str | PathLike[str] | None = None
    ssl_certfile: str | PathLike[str] | None = None
    ssl_keyfile: str | PathLike[str] | None = None
    ssl_password: str | None = field(default=None, repr=False)
    ssl_ca_pem: str | None = field(default=None, repr=False)
    ssl_certificate_pem: str | None = field(default=None, repr=False)
    ssl_key_pem: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    ssl_verify: bool = True
    sasl_mechanism: str | MechanismFactory | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)
    sasl_oauth_token: TokenCallback | ClientCredentials | None = field(default=None, repr=False)
    sasl_oauth_refresh: TokenRefresh | None = None
    sasl_kerberos_service_name: str | None = None
    sasl_kerberos_domain_name: str | None = None
    sasl_kerberos_principal: str | None = None
    sasl_kerberos_keytab: str | PathLike[str] | None = None
    login: TokenLogin | None = field(default=None, init=False, repr=False, compare=False)
    _files: CertificateFiles | None = field(default=None, init=False, repr=False, compare=False)
    _kerberos: Kerberos | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in (*_FILES[:3], "sasl_kerberos_keytab"):
            of_type(name, getattr(self, name), (str, PathLike), "a path")
        for name in ("security_protocol", *_FILES[3:], *_PASSWORD, *_KERBEROS[:3]):
            of_type(name, getattr(self, name), str, "text")
        if not callable(self.sasl_mechanism):
            of_type("sasl_mechanism", self.sasl_mechanism, str, "text, or a function that gives a mechanism")
        of_type("sasl_oauth_refresh", self.sasl_oauth_refresh, TokenRefresh, "a TokenRefresh")
        of_type("ssl_context", self.ssl_context, ssl.SSLContext, "an ssl.SSLContext")
        for name in ("ssl_check_hostname", "ssl_verify"):
            of_type(name, getattr(self, name), bool, "True or False")
        if self.security_protocol not in PROTOCOLS:
            raise ConfigError(f"security_protocol={self.security_protocol!r}: allowed is {', '.join(PROTOCOLS)}")
        self._check_sasl()
        files = [name for name in _FILES if getattr(self, name) is not None]
        if not self.uses_tls:
            unused = [*files, *(["ssl_context"] if self.ssl_context else [])]
            if unused:
                raise ConfigError(f"{unused[0]}: has no effect with security_protocol={self.security_protocol}")
        elif self.ssl_context is not None and (files or not self.ssl_verify):
            raise ConfigError(f"{[*files, 'ssl_verify'][0]}: has no effect beside ssl_context")
        elif self.ssl_context is None:
            object.__setattr__(self, "_files", self._certificates())

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def mechanism_name(self) -> str:
        return self.sasl_mechanism if isinstance(self.sasl_mechanism, str) else ""

    def mechanism(self, host: str) -> ClientMechanism:
        """A new exchange of the mechanism with the broker at a host, for a connection that uses SASL; of OAUTHBEARER,
        `login` gives one."""
        if callable(self.sasl_mechanism):
            return self.sasl_mechanism(host)
        if self._kerberos is not None:
            return self._kerberos(host)
        username, password = self.sasl_plain_username or "", self.sasl_plain_password or ""
        if self.sasl_mechanism == "PLAIN":
            return PlainClient(username, password)
        return ScramClient(self.sasl_mechanism or "", username, password)

    def tls(self, host: str) -> Tls | None:
        """A new handshake of TLS with a host, where this asks for it. Raises ConnectError: its text is the reason."""
        context = self.ssl_context if self._files is None else self._files.context()
        return None if context is None else Tls(context, host)

    def _check_sasl(self) -> None:
        if not self.uses_sasl:
            given = [name for name in _SASL if getattr(self, name) is not None]
            if given:
                raise ConfigError(f"{given[0]}: has no effect with security_protocol={self.security_protocol}")
            return
        needed = () if callable(self.sasl_mechanism) else _NEEDED.get(self.sasl_mechanism or "")
        if needed is None:
            raise ConfigError(
                f"sasl_mechanism={self.sasl_mechanism!r}: allowed is {', '.join(MECHANISMS)}, or a function that gives "
                "a mechanism"
            )
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ConfigError(f"{missing[0]}: missing; {self.sasl_mechanism} needs it")
        for name in ("sasl_plain_username", "sasl_plain_password"):
            if (problem := credential_fault(getattr(self, name))) is not None:
                raise ConfigError(f"{name}: {problem}")
        effective = (*needed, *_OPTIONAL.get(self.mechanism_name, ()))
        unused = [name for name in _SASL[1:] if name not in effective and getattr(self, name) is not None]
        if unused:
            raise ConfigError(f"{unused[0]}: has no effect with sasl_mechanism={self.mechanism_name or 'a function'}")
        if self.sasl_oauth_token is not None:
            if not callable(self.sasl_oauth_token) and not isinstance(self.sasl_oauth_token, ClientCredentials):
                raise ConfigError("sasl_oauth_token: needs a function, or ClientCredentials")
            refresh = self.sasl_oauth_refresh or TokenRefresh()
            object.__setattr__(self, "login", TokenLogin(self.sasl_oauth_token, refresh))
        if self.sasl_mechanism == GSSAPI:
            service = self.sasl_kerberos_service_name or "kafka"
            user = self.sasl_kerberos_principal, self.sasl_kerberos_keytab
            object.__setattr__(self, "_kerberos", Kerberos(service, self.sasl_kerberos_domain_name, *user))

    def _certificates(self) -> CertificateFiles:
        for name, instead in _INSTEAD.items():
            if getattr(self, name) is not None and getattr(self, instead) is not None:
                raise ConfigError(f"{name}: has no effect beside {instead}")
        return CertificateFiles(
            self.ssl_cafile,
            self.ssl_certfile,
            self.ssl_keyfile,
            self.ssl_password,
            check_hostname=self.ssl_check_hostname,
            verify=self.ssl_verify,
            texts=PemTexts(self.ssl_ca_pem, self.ssl_certificate_pem, self.ssl_key_pem),
        )


_FILES: Final = (
    "ssl_cafile",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_ca_pem",
    "ssl_certificate_pem",
    "ssl_key_pem",
)
_INSTEAD: Final = {
    "ssl_ca_pem": "ssl_cafile",
    "ssl_certificate_pem": "ssl_certfile",
    "ssl_key_pem": "ssl_keyfile",
}
_PASSWORD: Final = ("sasl_plain_username", "sasl_plain_password")
_KERBEROS: Final = (
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_kerberos_principal",
    "sasl_kerberos_keytab",
)
_SASL: Final = ("sasl_mechanism", *_PASSWORD, "sasl_oauth_token", "sasl_oauth_refresh", *_KERBEROS)
_NEEDED: Final = {
    "PLAIN": _PASSWORD,
    **dict.fromkeys(SCRAM_HASHES, _PASSWORD),
    OAUTHBEARER: ("sasl_oauth_token",),
    GSSAPI: (),
}
_OPTIONAL: Final = {OAUTHBEARER: ("sasl_oauth_refresh",), GSSAPI: _KERBEROS}

PLAINTEXT: Final = Security()


def security_of(options: Mapping[str, Any], beside: Iterable[str] = ()) -> Security:
    """The `Security` of keyword options. Raises ConfigError, also for a name that is no option.

    Args:
        beside: other options that stand where these do, one of which may be meant by such a name.
    """
    for name in options:
        if name not in Security.__match_args__:
            raise no_such_option(name, (*beside, *Security.__match_args__))
    return Security(**options)
