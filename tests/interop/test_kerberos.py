"""GSSAPI between our client, MIT's KDC and Kafka's own broker."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire.client import Admin, Client, NewTopic, Producer, Reader
from tagwire.errors import AuthenticationError

from ..certificates import HOST
from .conftest import Programs, not_run_without
from .kdc import REALM, Kdc
from .python_packages import fetched
from .real_broker import RELEASE
from .real_node import PLAIN, RealNode, free_ports

LISTENER = "LOGIN"
SESSION_MS = 2000
SETTINGS = """
sasl.enabled.mechanisms=GSSAPI
sasl.kerberos.service.name=kafka
connections.max.reauth.ms={session}
listener.name.login.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required \
useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/{host}@{realm}";
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with not_run_without(), Kdc.running(tmp_path_factory.mktemp("kdc")) as running, pytest.MonkeyPatch.context() as own:
        own.syspath_prepend(fetched("gssapi", ["gssapi"]))
        for name, value in running.environment.items():
            own.setenv(name, value)
        own.setenv("KRB5CCNAME", f"FILE:{running.folder}/nobody.cache")
        yield running
        for name in [name for name in sys.modules if name.partition(".")[0] == "gssapi"]:
            del sys.modules[name]


@pytest.fixture(scope="module")
def bootstrap(kdc: Kdc, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = programs(RELEASE).jars
    controller, plain, login = free_ports(3)
    node = RealNode(
        tmp_path_factory.mktemp("kafka"),
        {1: controller},
        1,
        {PLAIN: plain, LISTENER: login},
        settings=SETTINGS.format(session=SESSION_MS, keytab=kdc.keytab(f"kafka/{HOST}"), host=HOST, realm=REALM),
        options=(f"-Djava.security.krb5.conf={kdc.environment['KRB5_CONFIG']}",),
    )
    node.format(jars)
    with node.running(jars):
        yield node.address(LISTENER)


def by_keytab(kdc: Kdc, **other: Any) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_principal": "alice",
        "sasl_kerberos_keytab": kdc.keytab("alice"),
        **other,
    }


def test_records_go_through_by_a_keytab(bootstrap: str, kdc: Kdc) -> None:
    login = by_keytab(kdc)
    with Admin(bootstrap, **login) as admin:
        admin.create_topics([NewTopic("by-keytab")])
    with Producer(bootstrap, **login) as producer:
        for number in range(1000):
            producer.send("by-keytab", b"%d" % number)
    with Reader(bootstrap, "by-keytab", stop_at_end=True, **login) as reader:
        assert [int(record.value) for record in reader.records()] == list(range(1000))


def test_properties_of_java_log_in(bootstrap: str, kdc: Kdc) -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule"
    login = f'{module} required useKeyTab=true keyTab="{kdc.keytab("alice")}" principal="alice" serviceName="kafka";'
    given = {"bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": login}
    with Client(given) as client:
        assert client.metadata().brokers


def test_tickets_of_kinit_are_found(bootstrap: str, kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.tickets('bob')}")
    with Client(bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI") as client:
        assert client.metadata().brokers


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"sasl_kerberos_service_name": "events"}, "events/127.0.0.1@TAGWIRE.TEST not found in Kerberos database"),
        ({"sasl_kerberos_principal": "carol"}, "klist -k"),
        ({"sasl_kerberos_principal": None, "sasl_kerberos_keytab": None}, "No Kerberos credentials available"),
    ],
)
def test_who_has_no_ticket_is_told_why(bootstrap: str, kdc: Kdc, other: dict[str, Any], why: str) -> None:
    with Client(bootstrap, **by_keytab(kdc, **other)) as client, pytest.raises(AuthenticationError) as caught:
        client.metadata()
    assert why in str(caught.value)


def test_a_producer_lives_through_sessions_that_end(bootstrap: str, kdc: Kdc) -> None:
    login = by_keytab(kdc)
    with Admin(bootstrap, **login) as admin:
        admin.create_topics([NewTopic("through-sessions")])
    sent = 0
    with Producer(bootstrap, **login) as producer:
        until = time.monotonic() + 3.2 * SESSION_MS / 1000
        while time.monotonic() < until:
            assert producer.send("through-sessions", b"%d" % sent).result(20).offset == sent
            sent += 1
            time.sleep(0.02)
        again = producer.metrics()["producer-metrics"]["successful-reauthentication-total"]
    assert again is not None
    assert again >= 2
