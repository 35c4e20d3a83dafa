"""TLS and SASL between our client and Kafka's own brokers."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire.client import EARLIEST, Admin, Client, NewTopic, Producer, Reader
from tagwire.errors import AuthenticationError, ConnectError, ConnectionLostError

from ..certificates import Certificates
from .real_node import MECHANISMS, PASSWORD, PROTECTED, USER, RealNode

ADMITTED = [
    ("TLS", None),
    ("MUTUAL", None),
    *((listener, mechanism) for listener in ("LOGIN", "BOTH") for mechanism in MECHANISMS),
]


def options(listener: str, mechanism: str | None, certificates: Certificates, **other: Any) -> dict[str, Any]:
    """What a client needs to be let in."""
    protocol = PROTECTED[listener]
    found: dict[str, Any] = {"security_protocol": protocol, "timeout": 20}
    if protocol.endswith("SSL"):
        found["ssl_cafile"] = str(certificates.authority)
    if listener == "MUTUAL":
        found["ssl_certfile"] = str(certificates.client)
    if mechanism is not None:
        found.update(sasl_mechanism=mechanism, sasl_plain_username=USER, sasl_plain_password=PASSWORD)
    return {**found, **other}


@pytest.mark.parametrize(("listener", "mechanism"), ADMITTED)
def test_records_go_through_every_listener(
    node: RealNode, certificates: Certificates, listener: str, mechanism: str | None
) -> None:
    topic = f"through-{listener}-{mechanism}"
    with Client(node.address(listener), **options(listener, mechanism, certificates)) as client:
        Admin(client).create_topics([NewTopic(topic)])
        with Producer(client) as producer:
            for number in range(3000):
                producer.send(topic, b"%d" % number * 50)
        read = [value for batch in Reader(client, {(topic, 0): EARLIEST}, stop_at_end=True) for value in batch["value"]]
    assert [value.as_py() for value in read] == [b"%d" % number * 50 for number in range(3000)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_and_not_told(node: RealNode, certificates: Certificates, mechanism: str) -> None:
    given = options("LOGIN", mechanism, certificates, sasl_plain_password="wrong-horse")
    with Client(node.address("LOGIN"), **given) as client, pytest.raises(AuthenticationError) as caught:
        client.metadata()
    assert mechanism in str(caught.value)
    assert "horse" not in f"{caught.value} {caught.value!r}"


def test_a_broker_that_asks_for_a_certificate_lets_nobody_in_without(
    node: RealNode, certificates: Certificates
) -> None:
    given = options("MUTUAL", None, certificates, ssl_certfile=None, timeout=2)
    with (
        Client(node.address("MUTUAL"), **given) as client,
        pytest.raises((ConnectError, ConnectionLostError)),
    ):
        client.metadata()


def test_a_broker_that_nobody_vouches_for_is_not_believed(node: RealNode, certificates: Certificates) -> None:
    given = options("TLS", None, certificates, ssl_cafile=None)
    with Client(node.address("TLS"), **given) as client, pytest.raises(ConnectError, match="is not trusted"):
        client.metadata()
