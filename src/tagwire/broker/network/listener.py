"""Listeners: their addresses, TLS and SASL mechanisms."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from numbers import Integral
from os import PathLike
from typing import Final, Literal, get_args

from tagwire.broker.network.principal_mapping import DEFAULT_RULES, PrincipalMapping
from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.rpc import OAUTHBEARER, SCRAM_HASHES
from tagwire.rpc.addresses import Address, host_fault

MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES, OAUTHBEARER)


ClientAuth = Literal["required", "requested"]


def is_whole(value: object) -> bool:
    """Whether an option is a whole number, also one of NumPy's; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Tls:
    """The broker's end of TLS, 1.2 or newer. Files are PEM.

    Attributes:
        certificate: the broker's certificate and those that vouch for it; the key too, unless `key` has it.
        key: the certificate's private key.
        password: what the key is encrypted with.
        client_ca: the certificates that vouch for clients (mutual TLS), each by itself.
        client_auth: whether clients have to show a certificate: "required", or "requested" of those that have one. None
            requires one where there is a client_ca. Kafka's ssl.client.auth.
        principal_mapping_rules: how a certificate's name becomes the principal's where nothing else says who a client
            is. Kafka's ssl.principal.mapping.rules.

    Raises:
        ConfigError: a file cannot be read or does not hold what it should.
    """

    certificate: str | PathLike[str]
    key: str | PathLike[str] | None = None
    password: str | None = field(default=None, repr=False)
    client_ca: str | PathLike[str] | None = None
    client_auth: ClientAuth | None = None
    principal_mapping_rules: str = DEFAULT_RULES
    principals: PrincipalMapping = field(init=False, repr=False, compare=False)
    context: ssl.SSLContext = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.password, str | None):
            raise ConfigError(f"tls password: needs a text, not {type(self.password).__name__}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A function: without one, OpenSSL asks the terminal for the password of an encrypted key.
            context.load_cert_chain(self.certificate, self.key, lambda: self.password or "")
        except (OSError, ValueError) as error:
            raise ConfigError(f"tls certificate={str(self.certificate)!r}: {_why(error)}") from None
        if self.client_auth not in (None, *get_args(ClientAuth)):
            raise ConfigError(f"tls client_auth={self.client_auth!r} is not {' or '.join(get_args(ClientAuth))}")
        if self.client_auth is not None and self.client_ca is None:
            raise ConfigError("tls client_auth: needs client_ca, which vouches for clients")
        object.__setattr__(self, "principals", PrincipalMapping(self.principal_mapping_rules))
        if self.client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL if self.client_auth == "requested" else ssl.CERT_REQUIRED
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate one vouches, too, as with Java's
            try:
                context.load_verify_locations(self.client_ca)
            except (OSError, ValueError) as error:
                raise ConfigError(f"tls client_ca={str(self.client_ca)!r}: {_why(error)}") from None
        object.__setattr__(self, "context", context)


def _why(error: OSError | ValueError) -> str:
    """Why a file was not taken, or a path or a password that was handed over with it; nothing of a password."""
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)


@dataclass(frozen=True, slots=True)
class Listener:
    """An address that clients connect to.

    Attributes:
        host: the address to listen on; IPv4 where a name has both.
        port: the port to listen on; 0 takes a free one.
        advertise: the (host, port) that clients are told to connect to; None tells each the one it has reached, and
            port 0 the one that is listened on.
        tls: encrypts connections; None leaves them plain.
        sasl: the mechanisms by which clients have to say who they are, of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
            and OAUTHBEARER; empty lets every client in.

    Raises:
        ConfigError: a value is wrong.
    """

    host: str = "127.0.0.1"
    port: int = 0
    advertise: Address | None = None
    tls: Tls | None = None
    sasl: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tls is not None and not isinstance(self.tls, Tls):
            raise ConfigError(f'tls: needs Tls("broker.pem", "broker.key"), not {type(self.tls).__name__}')
        if not isinstance(self.sasl, tuple):
            raise ConfigError(f"sasl: needs a tuple of {', '.join(MECHANISMS)}, not {type(self.sasl).__name__}")
        here = ("host", "port", (self.host, self.port))
        for host_name, port_name, (host, port) in (here, ("advertise", "advertise", self.advertise or here[2])):
            if not isinstance(host, str):
                raise ConfigError(f'{host_name}={host!r} is no text, such as "127.0.0.1"')
            if fault := host_fault(host):
                raise ConfigError(f"{host_name}={told(host)!r}: {fault}")
            if not is_whole(port) or not 0 <= port <= 65535:
                raise ConfigError(f"{port_name}={port!r} is not 0 to 65535")
        object.__setattr__(self, "port", int(self.port))  # one of NumPy's cannot be sent
        for mechanism in self.sasl:
            if mechanism not in MECHANISMS:
                raise ConfigError(f"sasl={mechanism!r} is not {' or '.join(MECHANISMS)}")

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: what clients call it."""
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")
