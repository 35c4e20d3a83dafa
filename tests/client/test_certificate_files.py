"""Certificates replaced below a client that runs: new connections use them, and half a file is no certificate."""

from __future__ import annotations

import logging
import os
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tagwire.client import Client
from tagwire.client.certificate_files import CertificateFiles
from tagwire.errors import ConfigError

from ..certificates import Certificates
from .fake_broker import FakeCluster


@pytest.fixture
def old(tmp_path: Path) -> Certificates:
    folder = tmp_path / "old"
    folder.mkdir()
    return Certificates.make(folder)


def files(of: Certificates) -> CertificateFiles:
    return CertificateFiles(of.authority, of.client, None, None, check_hostname=True)


def trusted(context: ssl.SSLContext) -> list[bytes]:
    return sorted(context.get_ca_certs(binary_form=True))


def replace(path: Path, by: Path) -> None:
    """As a mounted secret changes: another file under the name, at once."""
    beside = path.with_suffix(".new")
    shutil.copyfile(by, beside)
    os.replace(beside, path)


def test_files_that_stay_are_read_once(old: Certificates) -> None:
    found = files(old)
    assert found.context() is found.context()


def test_new_connections_use_the_new_certificates_and_those_that_are_open_go_on(
    old: Certificates, certificates: Certificates
) -> None:
    """The broker's certificate is of another authority from one connection to the next."""
    with FakeCluster(tls=old.server(mutual=True)) as cluster:
        options = {"security_protocol": "SSL", "ssl_cafile": old.authority, "ssl_certfile": old.client}
        with Client(cluster.bootstrap, timeout=5, **options) as client:  # type: ignore[arg-type]
            client.metadata()
            replace(old.authority, certificates.authority)
            replace(old.client, certificates.client)
            client.metadata()
            assert cluster.brokers[0].connections == 1
            cluster.tls = certificates.server(mutual=True)
            client.close()
            client.metadata()
            assert cluster.brokers[0].connections == 2
            cluster.tls = Certificates.make(old.client.parent).server()  # which the files are of now, too
            client.close()
            client.metadata()


@pytest.mark.parametrize("half", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB"])
def test_half_a_file_keeps_the_old_ones_and_is_told_once(
    old: Certificates, certificates: Certificates, caplog: pytest.LogCaptureFixture, half: bytes
) -> None:
    caplog.set_level(logging.INFO, "tagwire.client")
    found = files(old)
    before = found.context()
    for path in (old.client, old.authority):
        path.write_bytes(half)
        assert found.context() is before
        assert found.context() is before
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "ssl_cafile" in caplog.text
    replace(old.client, certificates.client)
    replace(old.authority, certificates.authority)
    after = found.context()
    assert after is not before
    assert trusted(after) == trusted(ssl.create_default_context(cafile=certificates.authority))
    assert caplog.records[-1].levelname == "INFO"


def test_a_certificate_without_its_key_keeps_the_old_ones(
    old: Certificates, certificates: Certificates, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    shutil.copyfile(old.client, key)
    found = CertificateFiles(old.authority, old.client, key, None, check_hostname=True)
    before = found.context()
    replace(old.client, certificates.client)
    assert found.context() is before
    replace(key, certificates.client)
    assert found.context() is not before


def test_a_file_that_is_gone_keeps_the_old_ones(old: Certificates) -> None:
    found = files(old)
    before = found.context()
    old.authority.unlink()
    assert found.context() is before


def test_files_of_one_size_and_time_are_told_apart(old: Certificates, certificates: Certificates) -> None:
    found = files(old)
    before = found.context()
    was = old.authority.stat()
    replace(old.authority, certificates.authority)
    os.utime(old.authority, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert found.context() is not before


def test_what_was_read_before_the_last_change_is_not_used_after_it(
    old: Certificates, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections of a client are begun by several threads."""
    found, read = files(old), ssl.create_default_context
    newest: list[ssl.SSLContext] = []

    def slow(*args: Any, **options: Any) -> ssl.SSLContext:
        monkeypatch.undo()
        context = read(*args, **options)
        replace(old.authority, certificates.authority)
        newest.append(found.context())  # as another thread's
        return context

    os.utime(old.authority, (1, 1))
    monkeypatch.setattr(ssl, "create_default_context", slow)
    assert found.context() is newest[0]
    assert found.context() is newest[0]


def test_what_is_wrong_from_the_start_is_refused(old: Certificates) -> None:
    old.authority.write_bytes(b"no certificate")
    with pytest.raises(ConfigError, match="ssl_cafile="):
        files(old)


@pytest.mark.parametrize("password", ["x" * 1025, "hunter\ud800"])
def test_a_password_that_opens_nothing_is_refused_without_being_told(old: Certificates, password: str) -> None:
    key = load_pem_private_key(old.client.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"alice"))
    keyfile = old.client.with_suffix(".key")
    keyfile.write_bytes(locked)
    with pytest.raises(ConfigError, match="ssl_certfile=") as caught:
        CertificateFiles(None, old.client, keyfile, password, check_hostname=True)
    assert "d800" not in str(caught.value)
