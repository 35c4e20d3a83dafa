"""SCRAM users that clients set and delete: who can come in then, what is stored of them, and what is refused."""

from __future__ import annotations

import base64
import errno
import hashlib
import stat

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster, Listener, clock
from tagwire.client import Client
from tagwire.errors import AuthenticationError, Error, StorageError
from tagwire.rpc import ScramClient

from ...limits import wait_until

USERS = {"alice": "wonderland", "bob": "builder"}
LISTENERS = [Listener(), Listener(sasl=("SCRAM-SHA-512", "PLAIN"))]
SALT = b"0123456789abcdef"
FILE = "tagwire-scram-credentials.json"


def credentials(wire, *names):
    """{user: (error, [(mechanism, iterations)])}."""
    request = messages.DescribeUserScramCredentialsRequest
    answer = wire.ask(request(users=[request.UserName(name=name) for name in names] or None), 0)
    assert answer.error_code == 0
    return {
        result.user: (result.error_code, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in answer.results
    }


def altered(wire, deletions=(), upsertions=(), salt=SALT):
    """{user: error}. An upsertion is user, mechanism, iterations and, unless any will do, the password."""
    request = messages.AlterUserScramCredentialsRequest
    gone = [request.ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in deletions]
    new = []
    for name, mechanism, iterations, *password in upsertions:
        digest = "sha256" if mechanism == 1 else "sha512"
        salted = hashlib.pbkdf2_hmac(digest, password[0].encode(), salt, iterations) if password else b"hidden"
        upsertion = request.ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=salt)
        upsertion.salted_password = salted
        new.append(upsertion)
    answer = wire.ask(request(deletions=gone, upsertions=new), 0)
    assert "hidden" not in str(answer)
    return {result.user: result.error_code for result in answer.results}


def comes_in(bootstrap, user, password, mechanism="SCRAM-SHA-512"):
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    try:
        with Client(bootstrap, sasl_plain_username=user, sasl_plain_password=password, **login) as client:
            client.metadata()
    except AuthenticationError:
        return False
    return True


def logged_in(wire, user, password, mechanism="SCRAM-SHA-512"):
    """The error code of a login on a connection; 0 for one that succeeds."""
    client = ScramClient(mechanism, user, password)
    assert wire.ask(messages.SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    token = client.respond(b"")
    while token is not None:
        answer = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2)
        if answer.error_code:
            return answer.error_code
        token = client.respond(answer.auth_bytes)
    return 0


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", listeners=LISTENERS, users=USERS) as running:
        yield running


@pytest.fixture
def wire(broker, connect):
    """It has come in at the door where nobody is asked."""
    return connect(broker.bootstrap)


def test_where_no_listener_asks_for_scram_no_user_of_the_settings_has_a_credential(connect):
    with Broker(listeners=[Listener(), Listener(sasl=("PLAIN",))], users=USERS) as broker:
        wire = connect(broker.bootstrap)
        assert credentials(wire) == {}
        assert credentials(wire, "alice") == {"alice": (Error.RESOURCE_NOT_FOUND, [])}


def test_a_user_of_the_settings_has_a_credential_of_each_mechanism_a_listener_asks_for(wire):
    assert credentials(wire) == {"alice": (0, [(2, 4096)]), "bob": (0, [(2, 4096)])}
    assert credentials(wire, "bob", "eve", "eve") == {
        "bob": (0, [(2, 4096)]),
        "eve": (Error.DUPLICATE_RESOURCE, []),
    }


def test_a_user_that_is_set_comes_in_at_once_and_after_a_restart(broker, wire):
    _, guarded = broker.addresses
    assert not comes_in(guarded, "eve", "apple")
    assert altered(wire, [], [("eve", 2, 4097, "apple"), ("alice", 2, 4096, "looking-glass")]) == {"eve": 0, "alice": 0}
    for _ in range(2):
        _, guarded = broker.addresses
        assert comes_in(guarded, "eve", "apple")
        assert not comes_in(guarded, "eve", "pear")
        assert comes_in(guarded, "alice", "looking-glass")
        assert not comes_in(guarded, "alice", "wonderland")
        assert comes_in(guarded, "bob", "builder")
        broker.stop()
        broker.start()


def test_a_user_that_is_deleted_does_not_come_in_also_after_a_restart(broker, wire, connect):
    altered(wire, [], [("eve", 1, 4096, "apple"), ("eva", 2, 4096, "apple")])
    altered(wire, [], [("eve", 2, 8192, "apple")])
    assert credentials(wire, "eve") == {"eve": (0, [(1, 4096), (2, 8192)])}
    assert altered(wire, [("eve", 2), ("alice", 2)]) == {"eve": 0, "alice": 0}
    for _ in range(2):
        again = connect(broker.bootstrap)
        assert credentials(again) == {"bob": (0, [(2, 4096)]), "eva": (0, [(2, 4096)]), "eve": (0, [(1, 4096)])}
        assert altered(again, [("alice", 2)]) == {"alice": Error.RESOURCE_NOT_FOUND}
        _, guarded = broker.addresses
        assert not comes_in(guarded, "eve", "apple")
        assert not comes_in(guarded, "alice", "wonderland")
        broker.stop()
        broker.start()
    again = connect(broker.bootstrap)
    assert altered(again, [], [("alice", 2, 4096, "back")]) == {"alice": 0}
    assert comes_in(broker.addresses[1], "alice", "back")


def test_a_user_that_is_deleted_or_has_another_password_stays_until_the_session_ends(tmp_path, connect, monkeypatch):
    since, read = [0], clock.monotonic_ms
    monkeypatch.setattr(clock, "monotonic_ms", lambda: read() + sum(since))
    with Broker(tmp_path / "data", listeners=LISTENERS, users=USERS, max_reauth_s=600) as broker:
        admin = connect(broker.bootstrap)
        altered(admin, [], [("eve", 2, 4096, "apple"), ("eva", 2, 4096, "apple"), ("evi", 2, 4096, "apple")])
        wires = {name: connect(broker.addresses[1]) for name in ("eve", "eva", "evi")}
        assert [logged_in(wire, name, "apple") for name, wire in wires.items()] == [0, 0, 0]
        assert altered(admin, [("eve", 2)], [("eva", 2, 4096, "pear")]) == {"eve": 0, "eva": 0}
        assert [wire.metadata().topics for wire in wires.values()] == [[], [], []]
        since.append(601_000)
        refused = Error.SASL_AUTHENTICATION_FAILED
        assert {name: logged_in(wire, name, "apple") for name, wire in wires.items()} == {
            "eve": refused,
            "eva": refused,
            "evi": 0,
        }
        assert [wires[name].is_closed() for name in ("eve", "eva")] == [True, True]
        assert wires["evi"].metadata().topics == []


def test_a_user_that_is_deleted_in_the_midst_of_a_login_does_not_come_in_with_the_next(broker, wire, connect):
    altered(wire, [], [("eve", 2, 4096, "apple")])
    other = connect(broker.addresses[1])
    client = ScramClient("SCRAM-SHA-512", "eve", "apple")
    assert other.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1).error_code == 0
    challenge = other.ask(messages.SaslAuthenticateRequest(auth_bytes=client.respond(b"")), 2)
    assert altered(wire, [("eve", 2)]) == {"eve": 0}
    last = other.ask(messages.SaslAuthenticateRequest(auth_bytes=client.respond(challenge.auth_bytes)), 2)
    assert last.error_code == 0  # the exchange goes on with the credential that it began with, as in Kafka
    assert logged_in(connect(broker.addresses[1]), "eve", "apple") == Error.SASL_AUTHENTICATION_FAILED


def test_every_node_of_a_cluster_lets_a_new_user_in(connect):
    with Cluster(3, listeners=LISTENERS, users=USERS) as cluster:
        altered(connect(cluster.nodes[2].bootstrap), [], [("eve", 2, 4096, "apple")])
        for node in cluster.nodes.values():
            assert comes_in(node.addresses[1], "eve", "apple")
            assert credentials(connect(node.bootstrap), "eve") == {"eve": (0, [(2, 4096)])}


REFUSED = [
    ([("alice", 1)], [], Error.RESOURCE_NOT_FOUND),
    ([("eve", 2)], [], Error.RESOURCE_NOT_FOUND),
    ([("", 1)], [], Error.UNACCEPTABLE_CREDENTIAL),
    ([], [("", 1, 4096)], Error.UNACCEPTABLE_CREDENTIAL),
    ([("bob", 9)], [], Error.UNSUPPORTED_SASL_MECHANISM),
    ([], [("bob", 0, 4096)], Error.UNSUPPORTED_SASL_MECHANISM),
    ([], [("eve", 1, 4095)], Error.UNACCEPTABLE_CREDENTIAL),
    ([], [("eve", 1, 16_385)], Error.UNACCEPTABLE_CREDENTIAL),
    ([("bob", 2)], [("bob", 2, 4096)], Error.DUPLICATE_RESOURCE),
    ([("bob", 2), ("bob", 2)], [], Error.DUPLICATE_RESOURCE),
    ([], [("eve", 1, 4096), ("eve", 2, 4096)], Error.DUPLICATE_RESOURCE),
]


def test_what_cannot_be_altered_is_refused_as_kafka_does_and_changes_nothing(wire, broker):
    before = credentials(wire)
    for deletions, upsertions, error in REFUSED:
        assert set(altered(wire, deletions, upsertions).values()) == {error}, (deletions, upsertions)
    assert altered(wire, [], [("eve", 1, 4096)], salt=b"s" * 1025) == {"eve": Error.UNACCEPTABLE_CREDENTIAL}
    assert credentials(wire) == before
    assert altered(wire, [], [("eve", 1, 4096), ("", 1, 4096)]) == {"eve": 0, "": Error.UNACCEPTABLE_CREDENTIAL}
    assert credentials(wire, "eve") == {"eve": (0, [(1, 4096)])}


def test_what_cannot_be_stored_has_not_changed(wire, broker):
    before = credentials(wire)
    for operation in ("write", "sync", "rename", "sync_directory"):
        broker.disk.fail(operation, errno.ENOSPC, times=1)
        assert altered(wire, [("bob", 2)], [("eve", 1, 4096)]) == dict.fromkeys(
            ("eve", "bob"), Error.KAFKA_STORAGE_ERROR
        )
        broker.disk.mend()
        assert credentials(wire) == before
    assert altered(wire, [("bob", 2)], [("eve", 1, 4096)]) == {"eve": 0, "bob": 0}


def test_of_two_who_delete_a_credential_at_once_one_is_told_that_there_is_none(wire, broker, connect, hold_renames):
    begun, go_on = hold_renames(broker)
    request = messages.AlterUserScramCredentialsRequest
    deletion = request(deletions=[request.ScramCredentialDeletion(name="bob", mechanism=2)], upsertions=[])
    first, second = connect(broker.bootstrap), connect(broker.bootstrap)
    first.send(deletion, 0)
    assert begun.wait(30)
    second.send(deletion, 0)
    wait_until(lambda: broker.requests.count("AlterUserScramCredentials") == 2)
    wire.metadata()  # by then its handler has begun
    go_on.set()
    assert [each.receive().results[0].error_code for each in (first, second)] == [0, Error.RESOURCE_NOT_FOUND]


def test_there_may_be_so_many_and_no_more(wire, monkeypatch):
    monkeypatch.setattr("tagwire.broker.scram_users.MOST_CREDENTIALS", 2)
    assert altered(wire, [("bob", 2)], [("eve", 1, 4096)]) == {"bob": 0, "eve": 0}
    assert altered(wire, [], [("eva", 1, 4096)]) == {"eva": Error.POLICY_VIOLATION}
    assert altered(wire, [("eve", 1)], [("eva", 1, 4096)]) == {"eve": 0, "eva": 0}


def test_what_is_stored_is_salted_and_for_its_owner_alone(wire, tmp_path):
    altered(wire, [], [("eve", 2, 4096, "apple-pie")])
    path = tmp_path / "data" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    stored = path.read_bytes()
    assert b"eve" in stored
    assert b"apple-pie" not in stored
    assert hashlib.pbkdf2_hmac("sha512", b"apple-pie", SALT, 4096).hex().encode() not in stored


@pytest.mark.parametrize(
    "content",
    [
        "s3cret",
        "[]",
        '{"version": 1, "entries": []}',
        '{"version": 0, "entries": {}}',
        '{"version": 0, "entries": [{"user": "eve", "mechanism": "s3cret"}]}',
        '{"version": 0, "entries": [{"user": "eve", "mechanism": "SCRAM-SHA-256", "iterations": 1, "salt": "s3cret"}]}',
        '{"version": 0, "entries": [{"user": 1, "mechanism": "SCRAM-SHA-256", "deleted": true}]}',
    ],
)
def test_a_damaged_file_stops_the_broker_and_is_named_without_its_content(tmp_path, content):
    with Broker(tmp_path / "data"):
        pass
    (tmp_path / "data" / FILE).write_text(content)
    with pytest.raises(StorageError, match=FILE) as caught:
        Broker(tmp_path / "data").start()
    assert "s3cret" not in str(caught.value)


def shown(broker, connect, user):
    """The size of the salt, and the iterations, that a user is told before the proof."""
    wire = connect(broker.addresses[1])
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1).error_code == 0
    first = f"n,,n={user},r=nonce".encode()
    told = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=first), 1).auth_bytes.decode()
    wire.socket.close()
    _, salt, iterations = told.split(",")
    return len(base64.b64decode(salt[2:])), int(iterations[2:])


def test_what_a_user_that_does_not_exist_shows_is_what_users_show(broker, wire, connect):
    names = [f"nobody-{number}" for number in range(40)]
    assert {shown(broker, connect, name) for name in names} == {shown(broker, connect, "alice")} == {(24, 4096)}
    altered(wire, [], [("eve", 2, 8192, "apple")])
    altered(wire, [], [("eve", 1, 16384, "apple")])  # which this mechanism does not show
    assert {shown(broker, connect, name) for name in names} == {(24, 4096), shown(broker, connect, "eve")}
    altered(wire, [("alice", 2), ("bob", 2)])
    assert {shown(broker, connect, name) for name in names} == {shown(broker, connect, "eve")} == {(16, 8192)}
