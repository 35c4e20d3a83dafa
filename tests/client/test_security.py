"""TLS and SASL over real sockets: who is let in, who is believed, and that no secret is ever told."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tagwire.client import Client, Security, TopicPartition
from tagwire.client.reader import Reader
from tagwire.client.tls import Tls
from tagwire.errors import AuthenticationError, ConfigError, ConnectError, ConnectionLostError, UnsupportedVersionError
from tagwire.rpc import PlainServer, ScramServer, scram_credential

from ..certificates import Certificates
from .fake_broker import FakeCluster
from .logs import batch_of

PASSWORD = "pen,c=il-hunter2"
USERS = {name: scram_credential(name, PASSWORD) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")}
SASL = {
    "PLAIN": lambda: PlainServer({"alice": PASSWORD}.get),
    "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", {"alice": USERS["SCRAM-SHA-256"]}.get),
    "SCRAM-SHA-512": lambda: ScramServer("SCRAM-SHA-512", {"alice": USERS["SCRAM-SHA-512"]}.get),
}
MECHANISMS = sorted(SASL)


def trusting(certificates: Certificates, **other: Any) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority), **other}


def login(mechanism: str, **other: Any) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
        **other,
    }


def refused(
    bootstrap: str, *, kind: type[Exception] | tuple[type[Exception], ...], match: str = ".", **options: Any
) -> str:
    """What a client is told that cannot begin."""
    with Client(bootstrap, **options) as client, pytest.raises(kind, match=match) as caught:
        client.metadata()
    return f"{caught.value} {caught.value!r}"


@pytest.fixture
def guarded() -> Iterator[FakeCluster]:
    with FakeCluster(sasl=SASL) as cluster:
        yield cluster


@pytest.fixture
def encrypted(certificates: Certificates) -> Iterator[FakeCluster]:
    with FakeCluster(tls=certificates.server()) as cluster:
        yield cluster


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_versions_are_asked_before_and_after_authenticating(guarded: FakeCluster, mechanism: str) -> None:
    with Client(guarded.bootstrap, **login(mechanism)) as client:
        assert client.metadata().cluster_id == "fake"
    steps = 1 if mechanism == "PLAIN" else 2
    asked = [api for _, api, _, _ in guarded.seen]
    assert asked == ["ApiVersions", "SaslHandshake", *["SaslAuthenticate"] * steps, "ApiVersions", "Metadata"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("wrong", [{"sasl_plain_password": "hunter3"}, {"sasl_plain_username": "bob"}])
def test_wrong_credentials_are_refused_without_being_told(
    guarded: FakeCluster, mechanism: str, wrong: dict[str, str]
) -> None:
    said = refused(
        guarded.bootstrap,
        **login(mechanism, **wrong),
        kind=AuthenticationError,
        match=rf"refused the credentials \({mechanism}\)",
    )
    assert "hunter" not in said


def test_a_mechanism_the_broker_lacks_is_told_with_those_it_has() -> None:
    with FakeCluster(sasl={"PLAIN": SASL["PLAIN"]}) as cluster:
        refused(
            cluster.bootstrap,
            **login("SCRAM-SHA-256"),
            kind=AuthenticationError,
            match="SCRAM-SHA-256: UNSUPPORTED_SASL_MECHANISM; it offers PLAIN",
        )


def test_sasl_is_not_tried_where_the_broker_does_not_list_it() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, **login("PLAIN")) as client:
        with pytest.raises(UnsupportedVersionError, match="does not serve SaslHandshake"):
            client.metadata()
        assert [api for _, api, _, _ in cluster.seen] == ["ApiVersions"]


def test_a_client_without_credentials_is_told_that_the_connection_ended(guarded: FakeCluster) -> None:
    with Client(guarded.bootstrap, timeout=0.3) as client, pytest.raises(ConnectionLostError, match="Metadata"):
        client.metadata()


def test_tls_carries_everything(encrypted: FakeCluster, certificates: Certificates) -> None:
    encrypted.topic("t")[0].append(batch_of(0, 20_000))
    with Reader(
        Client(encrypted.bootstrap, **trusting(certificates)),
        {TopicPartition("t", 0): 0},
        stop_at_end=True,
    ) as reader:
        assert sum(found.num_rows for found in reader) == 20_000


def test_a_certificate_that_nobody_vouches_for_is_not_believed(encrypted: FakeCluster) -> None:
    refused(
        encrypted.bootstrap,
        security_protocol="SSL",
        kind=ConnectError,
        match=r"no TLS: its certificate is not trusted: .*",
    )


def test_a_certificate_for_another_host_is_not_believed_unless_told_to(certificates: Certificates) -> None:
    with FakeCluster(tls=certificates.server(certificates.elsewhere)) as cluster:
        options = trusting(certificates)
        refused(
            cluster.bootstrap, **options, kind=ConnectError, match=r"its certificate is not trusted: .*127\.0\.0\.1"
        )
        with Client(cluster.bootstrap, ssl_check_hostname=False, **options) as client:
            assert client.metadata().cluster_id == "fake"


def test_a_broker_may_ask_for_a_certificate(certificates: Certificates) -> None:
    with FakeCluster(tls=certificates.server(mutual=True)) as cluster:
        options = trusting(certificates)
        with Client(cluster.bootstrap, **options, ssl_certfile=str(certificates.client)) as client:
            assert client.metadata().cluster_id == "fake"
        refused(cluster.bootstrap, timeout=1, **options, kind=(ConnectError, ConnectionLostError))


def test_a_client_without_the_certificate_that_is_asked_for_is_told_which_option_gives_it(
    certificates: Certificates,
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    broker = certificates.server(mutual=True).wrap_bio(incoming, outgoing, server_side=True)
    client = Tls(ssl.create_default_context(cafile=certificates.authority), "127.0.0.1")

    def pass_on() -> None:
        incoming.write(client.output())
        with suppress(ssl.SSLError):
            broker.do_handshake()
        data = outgoing.read()
        client.space()[: len(data)] = data
        client.received(len(data))

    while not client.shake_hands():
        pass_on()
    pass_on()
    with pytest.raises(OSError, match=r"^TLSV13_ALERT_CERTIFICATE_REQUIRED; .*ssl_certfile$"):
        client.decrypt(memoryview(bytearray(100)))


def test_sasl_goes_inside_tls(certificates: Certificates) -> None:
    with FakeCluster(tls=certificates.server(), sasl=SASL) as cluster:
        options = login("SCRAM-SHA-512", **trusting(certificates, security_protocol="SASL_SSL"))
        with Client(cluster.bootstrap, **options) as client:
            assert client.metadata().cluster_id == "fake"


def test_a_broker_without_tls_is_told() -> None:
    with FakeCluster() as cluster:
        refused(cluster.bootstrap, security_protocol="SSL", timeout=2, kind=ConnectError, match="no TLS")


WRONG = [
    ({"security_protocol": "TLS"}, "security_protocol='TLS': allowed is PLAINTEXT, SSL"),
    ({"ssl_cafile": "x"}, "ssl_cafile: has no effect with security_protocol=PLAINTEXT"),
    ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism: has no effect with security_protocol=PLAINTEXT"),
    ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_mechanism=None: allowed is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
    (login("AWS_MSK_IAM"), "sasl_mechanism='AWS_MSK_IAM'"),
    (login("PLAIN", sasl_plain_password=None), "sasl_plain_password: missing; PLAIN needs it"),
    (login("PLAIN", sasl_plain_password=b"hunter2"), "sasl_plain_password: needs text, not bytes"),
    (login("PLAIN", sasl_plain_password="hunter2\0"), "sasl_plain_password: has a character 0"),
    (login("SCRAM-SHA-256", sasl_plain_username="hunter2\ud800"), "sasl_plain_username: has half of a character"),
    ({"security_protocol": "SSL", "ssl_cafile": "/no/such.pem"}, "ssl_cafile='/no/such.pem': No such file"),
    ({"security_protocol": "SSL", "ssl_certfile": "/no/such.pem"}, "ssl_certfile='/no/such.pem': No such file"),
    ({"security_protocol": "SSL", "ssl_cafile": "/no\0"}, "ssl_cafile='/no\\x00': embedded null"),
    ({"security_protocol": "SSL", "ssl_certfile": "/no\0"}, "ssl_certfile='/no\\x00': embedded null"),
    ({"security_protocol": "SSL", "ssl_keyfile": "x"}, "ssl_keyfile: has no effect without ssl_certfile"),
    ({"sasl_password": "hunter2"}, "sasl_password: no such option"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client("127.0.0.1:9092", **options)
    assert says in str(caught.value)
    assert "hunter" not in str(caught.value)


def test_no_repr_tells_a_secret() -> None:
    assert "hunter" not in repr(Security(**login("PLAIN")))
    mechanism = Security(**login("SCRAM-SHA-256")).mechanism("broker")
    assert "hunter" not in repr(mechanism)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("challenges", [[b""], [b"r=x", b""], [b"v=AAAA"]], ids=["empty", "no nonce", "the last first"])
def test_a_broker_cannot_keep_scram_going(mechanism: str, challenges: list[bytes]) -> None:
    class Pingpong:
        username = expires_at = None

        def respond(self, token: bytes) -> bytes:
            asked.append(token)
            return challenges[min(len(asked), len(challenges)) - 1]

    asked: list[bytes] = []
    with FakeCluster(sasl={mechanism: Pingpong}) as cluster:
        refused(cluster.bootstrap, **login(mechanism), timeout=20, kind=AuthenticationError, match="the broker's first")
    assert len(asked) == 1


def test_a_broker_ends_scram_with_its_proof(guarded: FakeCluster) -> None:
    class Silent(ScramServer):
        def respond(self, token: bytes) -> bytes:
            answer = super().respond(token)
            return b"" if self.username else answer

    sasl = {"SCRAM-SHA-256": lambda: Silent("SCRAM-SHA-256", {"alice": USERS["SCRAM-SHA-256"]}.get)}
    with FakeCluster(sasl=sasl) as cluster:
        said = refused(cluster.bootstrap, **login("SCRAM-SHA-256"), timeout=20, kind=AuthenticationError)
    assert "the broker's last message is empty" in said
