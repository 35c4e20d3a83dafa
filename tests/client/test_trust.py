"""Whom a client believes: what it names vouches by itself, and on every Python alike."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tagwire.client import ClientCredentials, Security

from ..certificates import HOST
from ..token_endpoint import CLIENT_ID, CLIENT_SECRET, TokenEndpoint

DAY = timedelta(days=1)


def made_by_hand(folder: Path) -> tuple[Path, Path]:
    """An authority, and a broker's certificate with its key, as `openssl req -x509` and `openssl x509 -req` make them:
    neither key usage nor key identifiers."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("by hand", HOST)]
    now = datetime.now(UTC)
    files = folder / "authority.pem", folder / "broker.pem"
    extensions = (
        x509.BasicConstraints(ca=True, path_length=None),
        x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]),
    )
    for file, name, key, extension in zip(files, names, keys, extensions):
        certificate = (
            x509.CertificateBuilder(names[0], name, key.public_key(), x509.random_serial_number(), now - DAY, now + DAY)
            .add_extension(extension, critical=False)
            .sign(keys[0], SHA256())
        )
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.touch(0o600)
        file.write_bytes((secret if file is files[1] else b"") + certificate.public_bytes(Encoding.PEM))
    return files


def below_an_intermediate(folder: Path) -> tuple[Path, Path]:
    """An authority that another one vouches for, and a broker's certificate with its key."""
    authority = trustme.CA().create_child_ca()
    files = folder / "authority.pem", folder / "broker.pem"
    authority.cert_pem.write_to_path(str(files[0]))
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(files[1]))
    return files


@pytest.fixture(params=[made_by_hand, below_an_intermediate])
def certificates(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An authority's file and a broker's, on a Python that checks as 3.13 and newer do."""
    usual = ssl.create_default_context

    def strict(*args: Any, **options: Any) -> ssl.SSLContext:
        context = usual(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    found: tuple[Path, Path] = request.param(tmp_path)
    return found


def served(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("option", ["ssl_cafile", "ssl_ca_pem"])
def test_an_authority_that_is_named_vouches_by_itself_and_need_not_have_been_made_well(
    certificates: tuple[Path, Path], option: str
) -> None:
    authority, broker = certificates
    given = {option: authority.read_text() if option == "ssl_ca_pem" else authority}
    client = Security("SSL", **given).tls(HOST)  # type: ignore[arg-type]
    assert client is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = served(broker).wrap_bio(incoming, outgoing, server_side=True)
    while not client.shake_hands():
        incoming.write(client.output())
        with suppress(ssl.SSLWantReadError):
            server.do_handshake()
        data = outgoing.read()
        client.space()[: len(data)] = data
        client.received(len(data))


def test_so_it_does_for_a_token_endpoint(certificates: tuple[Path, Path]) -> None:
    authority, server = certificates
    with TokenEndpoint().listening(served(server)) as endpoint:
        credentials = ClientCredentials(endpoint.url, CLIENT_ID, CLIENT_SECRET, cafile=authority)
        assert credentials.token(time.time).value
