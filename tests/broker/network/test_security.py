"""TLS and SASL: who is let in, what is answered before, and that no secret is ever told."""

from __future__ import annotations

import socket
import ssl
import struct

import aiokafka
import confluent_kafka.admin
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tagwire import messages
from tagwire.broker import Broker, Listener, Tls
from tagwire.broker.network import connection
from tagwire.client import Client, Producer
from tagwire.errors import AuthenticationError, ConfigError, ConnectError, ConnectionLostError, Error
from tagwire.rpc import NEED_DATA, Authentication, ScramClient, api_of

from ...certificates import Certificates

PASSWORD = "pen,c=il-hunter2"
USERS = {"alice": PASSWORD, "bob": "br1ckl4yer"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def login(mechanism, username="alice", password=PASSWORD, protocol="SASL_PLAINTEXT", **other):
    return {
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": password,
        **other,
    }


@pytest.fixture
def guarded(tmp_path):
    with Broker(tmp_path / "data", sasl=MECHANISMS, users=USERS) as broker:
        yield broker


@pytest.fixture
def encrypted(tmp_path, certificates):
    with Broker(tmp_path / "data", tls=Tls(certificates.broker)) as broker:
        yield broker


def seen_by(broker):
    """What the broker takes each client to be that asks for groups."""
    seen = []

    def list_groups(call):
        seen.append((call.session.principal, call.session.client_host))
        return messages.ListGroupsResponse()

    broker.register(api_of(messages.ListGroupsRequest, messages.ListGroupsResponse), list_groups)
    return seen


def hello(wire):
    return wire.ask(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_with_the_right_password_is_let_in(guarded, mechanism):
    with Client(guarded.bootstrap, **login(mechanism)) as client:
        assert client.metadata().topics == {}
    assert {entry.user for entry in guarded.requests.select("Metadata")} == {"alice"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_has_authenticated_is_a_principal_of_the_type_user(guarded, mechanism):
    seen = seen_by(guarded)
    with Client(guarded.bootstrap, **login(mechanism)) as client:
        client.request(messages.ListGroupsRequest())
    assert seen == [("User:alice", "127.0.0.1")]


def test_where_nobody_has_to_authenticate_everybody_is_the_anonymous_principal(broker):
    seen = seen_by(broker)
    with Client(broker.bootstrap) as client:
        client.request(messages.ListGroupsRequest())
    assert seen == [("User:ANONYMOUS", "127.0.0.1")]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("username", "password"), [("alice", "br1ckl4yer"), ("carol", PASSWORD), ("bob", PASSWORD)])
def test_nobody_else_is(guarded, mechanism, username, password, caplog):
    with (
        Client(guarded.bootstrap, **login(mechanism, username, password)) as client,
        pytest.raises(AuthenticationError),
    ):
        client.metadata()
    assert guarded.requests.count("Metadata") == 0
    told = caplog.text + repr(list(guarded.requests))
    assert "authentication failed" in told
    assert PASSWORD not in told
    assert "br1ckl4yer" not in told


def test_a_mechanism_that_the_listener_does_not_offer_is_refused(tmp_path):
    with (
        Broker(tmp_path / "data", sasl="SCRAM-SHA-512", users=USERS) as broker,
        Client(broker.bootstrap, **login("PLAIN")) as client,
        pytest.raises(AuthenticationError, match="it offers SCRAM-SHA-512"),
    ):
        client.metadata()


def test_api_versions_is_answered_before_authentication_and_nothing_else(guarded, connect):
    wire = connect(guarded.bootstrap)
    assert hello(wire).error_code == 0
    told = {entry.api_key for entry in hello(wire).api_keys}
    assert {0, 1, 3, 17, 18, 36} <= told
    for key in sorted(told - {17, 18, 36}):
        other = connect(guarded.bootstrap)
        other.socket.sendall(struct.pack(">ihhih", 10, key, 0, 1, -1))
        assert other.is_closed()
    assert guarded.requests.count("Metadata") == 0 or all(
        entry.seconds is None for entry in guarded.requests.select("Metadata")
    )


def test_an_api_versions_that_is_not_known_is_answered_before_authentication_too(guarded, connect):
    wire = connect(guarded.bootstrap)
    wire.socket.sendall(struct.pack(">ihhihb", 11, 18, 99, 7, -1, 0))
    assert wire.socket.recv(100) == struct.pack(">iihihhh", 16, 7, 35, 1, 18, 0, 5)


def test_what_is_asked_behind_a_login_is_not_answered_before_it_succeeds(guarded, connect):
    wire = connect(guarded.bootstrap)
    wire.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    wire.send(messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    wire.send(messages.MetadataRequest(topics=None), 12)
    assert wire.receive().error_code == 0
    assert wire.receive().error_code == Error.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed()


def test_a_login_without_a_mechanism_and_a_second_mechanism_are_out_of_order(guarded, connect):
    wire = connect(guarded.bootstrap)
    answer = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + PASSWORD.encode()), 2)
    assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert wire.is_closed()
    wire = connect(guarded.bootstrap)
    wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == Error.ILLEGAL_SASL_STATE
    assert wire.is_closed()


def test_where_nobody_has_to_authenticate_nobody_can(wire):
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == Error.ILLEGAL_SASL_STATE
    assert wire.ask(messages.SaslAuthenticateRequest(auth_bytes=b""), 2).error_code == Error.ILLEGAL_SASL_STATE
    assert wire.metadata().topics == []


HOSTILE_TOKENS = [b"", b"\0", b"\0\0", b"a\0b\0c\0d", b"\xff\xfe", b"n,,n=alice,r=", b"p=tls,,n=alice,r=x", b"," * 5000]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_hostile_tokens_are_refused(guarded, connect, mechanism, caplog):
    for token in HOSTILE_TOKENS:
        wire = connect(guarded.bootstrap)
        wire.ask(messages.SaslHandshakeRequest(mechanism=mechanism), 1)
        assert wire.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2).error_code
        assert wire.is_closed()
    assert "could not be handled" not in caplog.text


def test_before_authentication_only_small_frames_are_taken(guarded, connect, make):
    wire = connect(guarded.bootstrap)
    wire.socket.sendall(struct.pack(">i", (64 << 10) + 1))
    assert wire.is_closed()
    wire = connect(guarded.bootstrap)
    exchange = Authentication(wire.rpc, ScramClient("SCRAM-SHA-256", "alice", PASSWORD), {17: (1, 1), 36: (0, 2)})
    data = exchange.request()
    while data:
        wire.socket.sendall(data)
        while (event := wire.rpc.next_event()) is NEED_DATA:
            wire.rpc.receive(wire.socket.recv(65536))
        data = exchange.receive(event)
    wire.create("t")
    assert wire.produce("t", make.records(b"v" * 500_000)).error_code == 0


def test_a_client_that_never_authenticates_is_closed(guarded, connect, monkeypatch):
    wire = connect(guarded.bootstrap)
    assert hello(wire).error_code == 0
    monkeypatch.setattr(connection, "AUTHENTICATION_TIMEOUT_S", 0.0)
    assert wire.is_closed()


def test_a_connection_can_be_encrypted(encrypted, certificates):
    options = {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority)}
    with Client(encrypted.bootstrap, **options) as client:
        client.metadata(["t"], allow_auto_create=True)
        with Producer(client) as producer:
            for number in range(1000):
                producer.send("t", b"v" * 1000, key=b"%d" % number)
        assert client.list_offsets({("t", 0): -1}) == {("t", 0): 1000}


def test_a_plain_client_of_an_encrypted_listener_is_closed_and_the_others_go_on(encrypted, certificates, connect):
    wire = connect(encrypted.bootstrap)
    wire.send(messages.MetadataRequest(topics=None), 12)
    wire.socket.settimeout(20)
    assert wire.socket.recv(100)[:2] in (b"\x15\x03", b"")
    with Client(encrypted.bootstrap, security_protocol="SSL", ssl_cafile=str(certificates.authority)) as client:
        client.metadata()


def test_an_encrypted_client_of_a_plain_listener_is_told_so(broker, certificates):
    with (
        Client(broker.bootstrap, security_protocol="SSL", ssl_cafile=str(certificates.authority)) as client,
        pytest.raises((ConnectError, ConnectionLostError), match="TLS"),
    ):
        client.metadata()


def test_mutual_tls_asks_every_client_for_a_certificate(tmp_path, certificates):
    tls = Tls(certificates.broker, client_ca=certificates.authority)
    trusting = {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority)}
    with Broker(tmp_path / "data", tls=tls) as broker:
        with Client(broker.bootstrap, ssl_certfile=str(certificates.client), **trusting) as client:
            client.metadata()
        with Client(broker.bootstrap, **trusting) as client, pytest.raises((ConnectError, ConnectionLostError)):
            client.metadata()
        assert broker.requests.count("Metadata") == 1


def test_an_authority_vouches_for_clients_that_another_one_vouches_for(tmp_path, certificates):
    """As in a truststore of Java's: it was named, and the other one was not."""
    other = trustme.CA()
    authority, client = tmp_path / "authority.pem", tmp_path / "client.pem"
    child = other.create_child_ca()
    child.cert_pem.write_to_path(str(authority))
    child.issue_cert("client.invalid").private_key_and_cert_chain_pem.write_to_path(str(client))
    trusting = {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority)}
    with Broker(tmp_path / "data", tls=Tls(certificates.broker, client_ca=authority)) as broker:
        with Client(broker.bootstrap, ssl_certfile=str(client), **trusting) as known:
            known.metadata()
        other.issue_cert("client.invalid").private_key_and_cert_chain_pem.write_to_path(str(client))
        with (
            Client(broker.bootstrap, ssl_certfile=str(client), **trusting) as unknown,
            pytest.raises((ConnectError, ConnectionLostError)),
        ):
            unknown.metadata()


def test_old_tls_is_not_spoken(encrypted):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    host, _, port = encrypted.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port))) as sock, pytest.raises(OSError):
        context.wrap_socket(sock)


def test_several_listeners_ask_different_things_and_serve_one_broker(tmp_path, certificates, connect):
    listeners = [
        Listener(),
        Listener(tls=Tls(certificates.broker), sasl=("SCRAM-SHA-512",)),
        Listener(advertise=("kafka.example.org", 19092)),
    ]
    with Broker(tmp_path / "data", listeners=listeners, users=USERS) as broker:
        plain, secure, advertised = broker.addresses
        assert plain == broker.bootstrap
        connect(plain).create("t")
        options = login("SCRAM-SHA-512", protocol="SASL_SSL", ssl_cafile=str(certificates.authority))
        with Client(secure, **options) as client:
            assert set(client.metadata().topics) == {"t"}
        (node,) = connect(advertised).metadata().brokers
        assert (node.host, node.port) == ("kafka.example.org", 19092)
        (node,) = connect(plain).metadata().brokers
        assert f"{node.host}:{node.port}" == plain


def test_an_advertised_port_of_0_is_the_one_that_is_listened_on(tmp_path, connect):
    with Broker(tmp_path / "data", advertise="localhost:0") as broker:
        (node,) = connect(broker.bootstrap).metadata().brokers
        assert f"127.0.0.1:{node.port}" == broker.bootstrap
        assert node.host == "localhost"


def test_librdkafka_logs_in_over_tls(tmp_path, certificates):
    with Broker(tmp_path / "data", tls=Tls(certificates.broker), sasl="SCRAM-SHA-256", users=USERS) as broker:
        client = confluent_kafka.admin.AdminClient(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(certificates.authority),
                "sasl.mechanisms": "SCRAM-SHA-256",
                "sasl.username": "alice",
                "sasl.password": PASSWORD,
            }
        )
        assert client.list_topics(timeout=20).brokers[1].port == int(broker.bootstrap.rpartition(":")[2])


async def _metadata_by_aiokafka(bootstrap, **options):
    client = aiokafka.AIOKafkaClient(bootstrap_servers=bootstrap, **options)
    await client.bootstrap()
    try:
        return len(client.cluster.brokers())
    finally:
        await client.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in(guarded, mechanism):
    import asyncio

    assert asyncio.run(_metadata_by_aiokafka(guarded.bootstrap, **login(mechanism))) == 1


@pytest.mark.parametrize(
    ("password", "why"),
    [("x" * 1025, "password cannot be longer than 1024 bytes"), ("hunter\ud800", "surrogates not allowed")],
)
def test_a_password_that_opens_no_key_is_refused_without_being_told(tmp_path, certificates, password, why):
    key = load_pem_private_key(certificates.broker.read_bytes(), None)
    locked = tmp_path / "broker.key"
    locked.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"alice")))
    with pytest.raises(ConfigError, match=f"^tls certificate=.*: {why}$") as caught:
        Tls(certificates.broker, locked, password=password)
    assert "d800" not in str(caught.value)


def test_no_secret_is_in_the_text_of_anything(certificates):
    tls = Tls(certificates.broker, password="s3cret-key")
    broker = Broker(sasl="PLAIN", users=USERS, tls=tls)
    told = f"{broker!r} {broker._settings!r} {tls!r} {broker._settings.listeners!r}"
    assert "s3cret" not in told
    assert PASSWORD not in told


def test_users_whom_nobody_asks_for_are_told_of(caplog):
    Broker(sasl="PLAIN", users=USERS)
    assert caplog.messages == []
    Broker(users=USERS)
    assert caplog.messages == ["users: nobody is asked who he is, and everybody let in: no listener has sasl"]


WRONG = [
    (lambda c: {"sasl": "GSSAPI", "users": USERS}, "sasl='GSSAPI' is not PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or O"),
    (lambda c: {"sasl": "SCRAM-SHA-256"}, "users: missing"),
    (lambda c: {"sasl": "OAUTHBEARER"}, "oauthbearer_validator: missing"),
    (lambda c: {"sasl": "OAUTHBEARER", "oauthbearer_validator": "none"}, "oauthbearer_validator: needs a function"),
    (lambda c: {"max_reauth_s": -1.0}, "max_reauth_s=-1.0 is not 0 or more than 0"),
    (lambda c: {"sasl": "PLAIN"}, "users: missing"),
    (lambda c: {"advertise": "nowhere"}, "advertise='nowhere' is not HOST:PORT"),
    (lambda c: {"port": 1, "listeners": [Listener()]}, "listeners: says all of"),
    (lambda c: {"tls": Tls("missing.pem")}, "tls certificate='missing.pem': No such file"),
    (lambda c: {"tls": Tls(c.authority)}, "tls certificate="),
    (lambda c: {"tls": Tls(c.broker, client_ca="missing.pem")}, "tls client_ca='missing.pem'"),
    (lambda c: {"tls": Tls("broker\0.pem")}, "tls certificate='broker\\x00.pem': embedded null byte"),
    (lambda c: {"tls": Tls(c.broker, client_ca="\0")}, "tls client_ca='\\x00': embedded null byte"),
    (lambda c: {"tls": Tls(c.broker, password=5)}, "tls password: needs a text, not int"),
    (lambda c: {"max_connections": 0}, "max_connections=0 is not 1 or more"),
    (lambda c: {"idle_timeout_s": 0}, "idle_timeout_s=0 is not more than 0"),
]


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_what_is_wrong_is_named(certificates: Certificates, options, text):
    with pytest.raises(ConfigError) as caught:
        Broker(**options(certificates))
    assert text in str(caught.value)
