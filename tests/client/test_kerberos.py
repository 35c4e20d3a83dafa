"""What a client asks of the package `gssapi`, and what it makes of its answers; tests/interop has a real KDC."""

from __future__ import annotations

import sys
from enum import Flag, auto
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tagwire.client.kerberos import Kerberos
from tagwire.errors import AuthenticationError, ConnectError
from tagwire.extras import MissingExtraError


class GSSError(Exception):
    """As the package's: its words come in parts."""

    maj_code, min_code = 851968, 7

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        return ["Unspecified GSS failure"] if is_major else [str(self)]


class RequirementFlag(Flag):
    mutual_authentication = auto()
    integrity = auto()


class Package(SimpleNamespace):
    """The part of the package that is used. `fails`: what a step raises; `flags`: what a context has at its end."""

    def __init__(self) -> None:
        super().__init__(fails=None, flags=RequirementFlag.mutual_authentication, made=[], stores=[])
        self.exceptions = SimpleNamespace(GSSError=GSSError)
        self.RequirementFlag = RequirementFlag
        self.NameType = SimpleNamespace(hostbased_service="service", kerberos_principal="principal")
        self.MechType = SimpleNamespace(kerberos="krb5")

    def Name(self, text: str, kind: str) -> tuple[str, str]:  # noqa: N802
        return text, kind

    def Credentials(self, **options: Any) -> dict[str, Any]:  # noqa: N802
        self.stores.append(options)
        return options

    def SecurityContext(self, **options: Any) -> Context:  # noqa: N802
        self.made.append(options)
        return Context(self)


class Context:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.actual_flags = package.flags
        self.complete = False

    def step(self, token: bytes | None) -> bytes | None:
        if self.package.fails:
            raise GSSError(self.package.fails)
        self.complete = token is not None
        return None if self.complete else b"request"

    def wrap(self, message: bytes, encrypt: bool) -> SimpleNamespace:
        assert not encrypt
        return SimpleNamespace(message=b"W" + message)

    def unwrap(self, message: bytes) -> SimpleNamespace:
        if message[:1] != b"W":
            raise GSSError("A token was invalid")
        return SimpleNamespace(message=message[1:])


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Package:
    package = Package()
    monkeypatch.setitem(sys.modules, "gssapi", package)
    return package


def test_tickets_are_asked_for_the_service_at_the_host_and_the_broker_has_to_prove_itself(package: Package) -> None:
    client = Kerberos()("kafka-1")
    assert not package.made
    assert client.respond(b"") == b"request"
    assert client.respond(b"proof") == b""
    assert client.respond(b"W\x01\0\0\0") == b"W\x01\0\0\0"
    assert client.respond(b"") is None
    (made,) = package.made
    assert made["name"] == ("kafka@kafka-1", "service")
    assert made["creds"] is None
    assert RequirementFlag.mutual_authentication in made["flags"]


def test_service_host_principal_and_keytab_are_as_they_are_set(package: Package, tmp_path: Path) -> None:
    keytab = tmp_path / "alice.keytab"
    keytab.touch()
    Kerberos("events", domain_name="kafka.example", principal="alice@EXAMPLE", keytab=keytab)("10.0.0.1").respond(b"")
    Kerberos(principal="bob", keytab=f"FILE:{keytab}")("10.0.0.1").respond(b"")
    Kerberos(principal="bob")("10.0.0.1").respond(b"")
    assert package.made[0]["name"] == ("events@kafka.example", "service")
    with_keytab, other, without = package.stores
    assert with_keytab["name"] == ("alice@EXAMPLE", "principal")
    assert with_keytab["store"]["client_keytab"] == other["store"]["client_keytab"] == f"FILE:{keytab}"
    assert with_keytab["store"]["ccache"] != other["store"]["ccache"]  # each principal has tickets of its own
    assert "store" not in without


def test_a_broker_that_does_not_prove_itself_is_refused(package: Package) -> None:
    package.flags = RequirementFlag.integrity
    client = Kerberos()("kafka-1")
    client.respond(b"")
    with pytest.raises(AuthenticationError, match="kafka@kafka-1 does not prove who it is"):
        client.respond(b"proof")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Server kafka/kafka-1@EXAMPLE not found in Kerberos database", AuthenticationError),
        ("Ticket expired", AuthenticationError),
        ("Cannot contact any KDC for realm 'EXAMPLE'", ConnectError),
        ("\x1b[2J" + "x" * 9000, AuthenticationError),
    ],
)
def test_what_the_library_says_is_told_in_its_words(package: Package, words: str, kind: type[Exception]) -> None:
    package.fails = words
    with pytest.raises(kind) as caught:
        Kerberos(principal="alice")("kafka-1").respond(b"")
    said = str(caught.value)
    assert said.startswith("GSSAPI, kafka@kafka-1 as alice: ")
    assert words[5:30] in said
    assert len(said) < 500
    assert said.isprintable()


def test_a_changed_message_of_the_brokers_is_refused(package: Package) -> None:
    client = Kerberos()("kafka-1")
    client.respond(b"")
    client.respond(b"proof")
    with pytest.raises(AuthenticationError, match="A token was invalid"):
        client.respond(b"X\x01\0\0\0")


def test_a_keytab_that_cannot_be_read_is_told_at_once(package: Package) -> None:
    with pytest.raises(Exception, match=r"sasl_kerberos_keytab='/no/such': No such file"):
        Kerberos(keytab="/no/such")


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(MissingExtraError, match=r"^gssapi is not installed: pip install 'tagwire\[gssapi\]'$"):
        Kerberos()
