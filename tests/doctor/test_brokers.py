"""The doctor on the way to the brokers: one planted fault for each step, and no secret in what is found."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tagwire.broker import Broker, Listener, Tls
from tagwire.client import Producer
from tagwire.doctor import OK, PROBLEM, WARNING, Finding
from tagwire.doctor.brokers import look

from ..certificates import Certificates
from ..client.fake_broker import FakeCluster, Late

SECRET = "pen,c=il-hunter2"


def found(bootstrap: str, timeout: float = 5.0, **properties: str) -> dict[str, Finding]:
    """The findings by what was looked at, the last of each; property names with `_` for `.`."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    findings = list(look({"bootstrap.servers": bootstrap, **given}, timeout))
    assert SECRET not in repr(findings)
    assert all(finding.advice for finding in findings if finding.state != OK)
    return {finding.check: finding for finding in findings}


def of_broker(certificate: Path, **options: Path) -> Broker:
    return Broker(listeners=[Listener(tls=Tls(str(certificate), str(certificate), **options))], fsync="never")


@pytest.fixture
def plain() -> Iterator[Broker]:
    with Broker(fsync="never") as broker:
        yield broker


@pytest.fixture
def guarded() -> Iterator[Broker]:
    with Broker(sasl="SCRAM-SHA-512", users={"alice": SECRET}, fsync="never") as broker:
        yield broker


def login(mechanism: str = "SCRAM-SHA-512", password: str = SECRET) -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": "alice",
        "sasl_password": password,
    }


def test_nobody_named_a_broker():
    (told,) = look(None, 1.0)
    assert told.state == OK
    assert "tagwire doctor HOST:PORT" in told.said


def test_a_broker_that_is_well(plain):
    with Producer(plain.bootstrap) as producer:
        producer.send("t", b"1")
    told = found(plain.bootstrap)
    assert {name: finding.state for name, finding in told.items()} == {"broker": OK, "advertised": OK, "clock": OK}
    assert "answered in" in told["broker"].said
    assert f"broker 1 at {plain.bootstrap}" in told["advertised"].said


def test_a_property_that_is_wrong_is_named(plain):
    assert "security.protocol" in found(plain.bootstrap, security_protocl="SSL")["brokers"].said


def test_librdkafkas_name_of_the_brokers_names_them(plain):
    findings = list(look({"metadata.broker.list": f"127.0.0.1:1,{plain.bootstrap}"}, 2.0))
    assert [finding.check for finding in findings if finding.state == PROBLEM] == ["broker"]
    assert "advertised" in {finding.check for finding in findings}


def test_a_name_that_does_not_resolve():
    told = found("nosuch.invalid:9092")["broker"]
    assert told.state == PROBLEM
    assert "nosuch.invalid:9092" in told.said


def test_a_name_without_an_address(monkeypatch):
    def asked(*_arguments, **_options):
        raise socket.gaierror(socket.EAI_NODATA, "No address associated with hostname")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    told = found("mail-only.example:9092")["broker"]
    assert told.state == PROBLEM
    assert "A and AAAA records" in told.advice


def test_a_port_where_nothing_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    told = found(address)["broker"]
    assert told.state == PROBLEM
    assert "Connection refused" in told.said
    assert "nothing listens at that port" in told.advice


def test_what_takes_connections_and_says_nothing_is_told_in_bounded_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        told = found(f"127.0.0.1:{listener.getsockname()[1]}", 0.3)["broker"]
        assert time.monotonic() - started < 10.0
    assert told.state == PROBLEM
    assert "did not answer ApiVersions" in told.said


def test_a_name_server_that_never_answers_keeps_nobody_waiting(monkeypatch, plain):
    ask = socket.getaddrinfo

    def asked(host, *arguments, **options):
        if host == "slow.invalid":
            time.sleep(30)
        return ask(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    started = time.monotonic()
    told = [finding.state for finding in look({"bootstrap.servers": f"slow.invalid:1,{plain.bootstrap}"}, 0.5)]
    assert time.monotonic() - started < 20.0
    assert told[:2] == [PROBLEM, OK]


def test_a_broker_that_is_slow_is_a_warning():
    with FakeCluster() as cluster:
        cluster.script("ApiVersions", Late(1.2))
        told = found(cluster.bootstrap)["broker"]
    assert told.state == WARNING


def test_a_broker_that_lacks_what_tagwire_speaks_is_a_warning():
    with Broker(as_release="2.8", fsync="never") as broker:
        told = found(broker.bootstrap)["broker"]
    assert told.state == WARNING
    assert "no version in common for" in told.said
    assert "tagwire versions" in told.advice


# TLS -----------------------------------------------------------------------------------------------------------------


def test_tls_where_all_is_well(certificates: Certificates):
    with of_broker(certificates.broker) as broker:
        told = found(broker.bootstrap, security_protocol="SSL", ssl_ca_location=str(certificates.authority))
    assert {name: finding.state for name, finding in told.items()} == dict.fromkeys(
        ("tls", "broker", "advertised", "clock"), OK
    )
    assert "its certificate ends in" in told["tls"].said


def test_a_plain_client_of_a_tls_listener(certificates: Certificates):
    with of_broker(certificates.broker) as broker:
        told = found(broker.bootstrap)["broker"]
    assert told.state == PROBLEM
    assert "security.protocol=SSL" in told.advice


def test_a_tls_client_of_a_plain_listener(plain, certificates: Certificates):
    told = found(plain.bootstrap, security_protocol="SSL", ssl_ca_location=str(certificates.authority))["tls"]
    assert told.state == PROBLEM
    assert "the listener is plaintext" in told.advice


def test_a_certificate_that_nobody_known_has_issued(certificates: Certificates):
    with of_broker(certificates.broker) as broker:
        told = found(broker.bootstrap, security_protocol="SSL")["tls"]
    assert told.state == PROBLEM
    assert "ssl.ca.location" in told.advice


def test_a_certificate_of_another_host(certificates: Certificates):
    with of_broker(certificates.elsewhere) as broker:
        told = found(broker.bootstrap, security_protocol="SSL", ssl_ca_location=str(certificates.authority))["tls"]
    assert told.state == PROBLEM
    assert "certificate is not valid for '127.0.0.1'" in told.said
    assert told.advice == "connect by a name that the certificate has, or have one issued for this address"


def test_a_client_without_the_certificate_that_is_asked_for(certificates: Certificates):
    with of_broker(certificates.broker, client_ca=certificates.authority) as broker:
        told = found(broker.bootstrap, security_protocol="SSL", ssl_ca_location=str(certificates.authority))["broker"]
    assert told.state == PROBLEM
    assert "ssl.certificate.location" in told.advice


@pytest.mark.parametrize(
    ("begins", "ends", "state", "said"),
    [(-20, -10, PROBLEM, "expired"), (10, 20, PROBLEM, "not yet valid"), (-20, 5, WARNING, "ends in")],
    ids=["expired", "of the future: a clock is wrong", "about to expire"],
)
def test_when_a_certificate_is_good(tmp_path, begins, ends, state, said):
    now, authority = datetime.now(UTC).replace(tzinfo=None), trustme.CA()
    at = [now + timedelta(days=days) for days in (begins, ends)]
    issued = authority.issue_cert("127.0.0.1", not_before=at[0], not_after=at[1])
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "broker.pem"))
    with of_broker(tmp_path / "broker.pem") as broker:
        told = found(broker.bootstrap, security_protocol="SSL", ssl_ca_location=str(tmp_path / "ca.pem"))["tls"]
    assert told.state == state
    assert said in told.said
    assert ("clock" in told.advice) == (state == PROBLEM)


# SASL ----------------------------------------------------------------------------------------------------------------


def test_a_user_that_is_known(guarded):
    told = found(guarded.bootstrap, **login())
    assert {finding.state for finding in told.values()} == {OK}
    assert "SASL_PLAINTEXT SCRAM-SHA-512" in told["broker"].said


def test_a_wrong_password(guarded):
    told = found(guarded.bootstrap, **login(password=SECRET + "x"))["broker"]
    assert told.state == PROBLEM
    assert "SASL_AUTHENTICATION_FAILED" in told.said
    assert "check user and password" in told.advice


def test_a_mechanism_that_is_not_offered(guarded):
    told = found(guarded.bootstrap, **login("PLAIN"))["broker"]
    assert told.state == PROBLEM
    assert "it offers SCRAM-SHA-512" in told.said


def test_no_user_where_one_is_asked_for(guarded):
    told = found(guarded.bootstrap, 1.0)["cluster"]
    assert told.state == PROBLEM
    assert "it offers SCRAM-SHA-512" in told.said
    assert "security.protocol=SASL_PLAINTEXT, sasl.mechanism=SCRAM-SHA-512" in told.advice


def test_a_user_where_none_is_asked_for(plain):
    told = found(plain.bootstrap, **login())["broker"]
    assert told.state == PROBLEM
    assert "asks for no user" in told.advice


# The cluster ---------------------------------------------------------------------------------------------------------


def test_an_advertised_address_that_cannot_be_reached():
    with Broker(listeners=[Listener(advertise=("127.0.0.1", 1))], fsync="never") as broker:
        told = found(broker.bootstrap)
    assert told["broker"].state == OK
    assert told["advertised"].state == PROBLEM
    assert (
        "broker 1 is advertised where it cannot be reached: 127.0.0.1:1 (Connection refused)" in told["advertised"].said
    )
    assert "advertised.listeners" in told["advertised"].advice


def test_a_record_of_this_machines_future_is_a_warning(plain):
    with Producer(plain.bootstrap) as producer:
        producer.send("t", b"1", timestamp=int(time.time() * 1000) + 600_000)
    told = found(plain.bootstrap)["clock"]
    assert told.state == WARNING
    assert "t-0" in told.said
    assert "ahead of this machine's clock" in told.said
