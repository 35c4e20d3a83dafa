"""Certificates and keys for the tests of TLS, made anew for every run."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Certificates:
    """PEM files in one folder; an authority vouches for the certificates of the others.

    Attributes:
        authority: the authority's certificate alone.
        broker, elsewhere, client: key and certificate in one file, of a broker at 127.0.0.1, of one at another host,
            and of a client. The key comes first and is PKCS #8, the only kind that Kafka reads.
    """

    authority: Path
    broker: Path
    elsewhere: Path
    client: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        authority = trustme.CA(organization_name="tagwire tests")
        made = cls(*(folder / f"{name}.pem" for name in ("authority", "broker", "elsewhere", "client")))
        authority.cert_pem.write_to_path(str(made.authority))
        hosts = {made.broker: HOST, made.elsewhere: "elsewhere.invalid", made.client: "client.invalid"}
        for path, host in hosts.items():
            issued = authority.issue_cert(host, common_name=host)
            key = load_pem_private_key(issued.private_key_pem.bytes(), None)
            path.touch(0o600)
            path.write_bytes(
                key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                + b"".join(pem.bytes() for pem in issued.cert_chain_pems)
            )
        return made

    def server(self, certificate: Path | None = None, *, mutual: bool = False) -> ssl.SSLContext:
        """What a broker wraps connections in; `certificate` is its own, `broker` if it is left out.

        Args:
            mutual: whether clients have to show a certificate of the authority's.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate or self.broker)
        if mutual:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority)
        return context
