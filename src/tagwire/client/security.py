"""How a connection is protected: TLS and SASL, from the options that users of Kafka clients know.

Secrets stand in no `repr` and in no error.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final, TypedDict

from tagwire.client.config import of_type
from tagwire.client.tls import Tls
from tagwire.errors import ConfigError, no_such_option
from tagwire.rpc import SCRAM_HASHES, ClientMechanism, PlainClient, ScramClient

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES)


class SecurityOptions(TypedDict, total=False):
    """The attributes of `Security`, for signatures."""

    security_protocol: str
    ssl_context: ssl.SSLContext | None
    ssl_cafile: str | PathLike[str] | None
    ssl_certfile: str | PathLike[str] | None
    ssl_keyfile: str | PathLike[str] | None
    ssl_password: str | None
    ssl_check_hostname: bool
    sasl_mechanism: str | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None


@dataclass(frozen=True, slots=True)
class Security:
    """What every connection of a client begins with.

    Attributes:
        security_protocol: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT, or SASL_SSL (both).
        ssl_context: a context made by the caller; instead of the files below.
        ssl_cafile: PEM file of the certificates to trust; None trusts those of the system.
        ssl_certfile, ssl_keyfile, ssl_password: PEM files of the client's own certificate and key, for brokers that ask
            for one, and what the key is encrypted with.
        ssl_check_hostname: whether the broker's certificate must name its host.
        sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        sasl_plain_username, sasl_plain_password: for any of the three.

    Raises:
        ConfigError: an option is wrong, missing, or has no effect with this protocol.
    """

    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    ssl_cafile: str | PathLike[str] | None = None
    ssl_certfile: str | PathLike[str] | None = None
    ssl_keyfile: str | PathLike[str] | None = None
    ssl_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    sasl_mechanism: str | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)
    _context: ssl.SSLContext | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in _FILES[:3]:
            of_type(name, getattr(self, name), (str, PathLike), "a path")
        for name in ("security_protocol", "ssl_password", *_SASL):
            of_type(name, getattr(self, name), str, "text")
        of_type("ssl_context", self.ssl_context, ssl.SSLContext, "an ssl.SSLContext")
        of_type("ssl_check_hostname", self.ssl_check_hostname, bool, "True or False")
        if self.security_protocol not in PROTOCOLS:
            raise ConfigError(f"security_protocol={self.security_protocol!r}: allowed is {', '.join(PROTOCOLS)}")
        self._check_sasl()
        files = [name for name in _FILES if getattr(self, name) is not None]
        if not self.uses_tls:
            unused = [*files, *(["ssl_context"] if self.ssl_context else [])]
            if unused:
                raise ConfigError(f"{unused[0]}: has no effect with security_protocol={self.security_protocol}")
        elif self.ssl_context is not None and files:
            raise ConfigError(f"{files[0]}: has no effect beside ssl_context")
        else:
            object.__setattr__(self, "_context", self.ssl_context or self._made_context())

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    def mechanism(self) -> ClientMechanism:
        """A new exchange of the mechanism, for a connection that uses SASL."""
        username, password = self.sasl_plain_username or "", self.sasl_plain_password or ""
        if self.sasl_mechanism == "PLAIN":
            return PlainClient(username, password)
        return ScramClient(self.sasl_mechanism or "", username, password)

    def tls(self, host: str) -> Tls | None:
        """A new handshake of TLS with a host, where this asks for it. Raises ConnectError: its text is the reason."""
        return None if self._context is None else Tls(self._context, host)

    def _check_sasl(self) -> None:
        if not self.uses_sasl:
            given = [name for name in _SASL if getattr(self, name) is not None]
            if given:
                raise ConfigError(f"{given[0]}: has no effect with security_protocol={self.security_protocol}")
            return
        if self.sasl_mechanism not in MECHANISMS:
            raise ConfigError(f"sasl_mechanism={self.sasl_mechanism!r}: allowed is {', '.join(MECHANISMS)}")
        missing = [name for name in _SASL[1:] if not getattr(self, name)]
        if missing:
            raise ConfigError(f"{missing[0]}: missing; {self.sasl_mechanism} needs it")

    def _made_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"ssl_cafile={str(self.ssl_cafile)!r}: {error.strerror or error}") from None
        context.check_hostname = self.ssl_check_hostname
        if self.ssl_certfile is not None:
            try:
                # A function: without one, OpenSSL asks the terminal for the password of an encrypted key.
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, lambda: self.ssl_password or "")
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"ssl_certfile={str(self.ssl_certfile)!r}: {error.strerror or error}") from None
        elif self.ssl_keyfile is not None:
            raise ConfigError("ssl_keyfile: has no effect without ssl_certfile")
        return context


_FILES: Final = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password")
_SASL: Final = ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password")

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
