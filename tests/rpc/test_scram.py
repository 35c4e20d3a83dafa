"""SCRAM as the RFCs print it, both roles against each other, and what neither side lets pass."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import AuthenticationError, ConfigError
from tagwire.rpc import ScramClient, ScramServer, scram_credential

# RFC 7677, section 3: user "user", password "pencil".
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_LAST = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_LAST = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SALT = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")


def test_the_client_says_what_rfc_7677_prints() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=CLIENT_NONCE)
    assert client.respond(b"") == CLIENT_FIRST
    assert client.respond(SERVER_FIRST) == CLIENT_LAST
    assert client.respond(SERVER_LAST) is None


def test_the_server_says_what_rfc_7677_prints() -> None:
    users = {"user": scram_credential("SCRAM-SHA-256", "pencil", salt=SALT)}
    server = ScramServer("SCRAM-SHA-256", users.get, nonce=SERVER_NONCE)
    assert server.respond(CLIENT_FIRST) == SERVER_FIRST
    assert server.username is None
    assert server.respond(CLIENT_LAST) == SERVER_LAST
    assert server.username == "user"


def exchange(client: ScramClient, server: ScramServer) -> None:
    token = client.respond(b"")
    while token is not None:
        token = client.respond(server.respond(token))


@settings(max_examples=15)
@given(username=st.text(min_size=1, max_size=8), password=st.text(max_size=8))
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_any_name_and_password_cross_the_exchange(mechanism: str, username: str, password: str) -> None:
    users = {username: scram_credential(mechanism, password)}
    server = ScramServer(mechanism, users.get)
    exchange(ScramClient(mechanism, username, password), server)
    assert server.username == username


@pytest.mark.parametrize(("username", "password"), [("user", "Pencil"), ("nobody", "pencil"), ("user", "")])
def test_a_wrong_password_and_a_wrong_user_are_refused_alike(username: str, password: str) -> None:
    users = {"user": scram_credential("SCRAM-SHA-512", "pencil")}
    server = ScramServer("SCRAM-SHA-512", users.get)
    with pytest.raises(AuthenticationError, match=r"^SCRAM-SHA-512: wrong user or password$"):
        exchange(ScramClient("SCRAM-SHA-512", username, password), server)
    assert server.username is None


@pytest.mark.parametrize(("said", "is_let_in"), [(",tokenauth=true", False), (",tokenauth=false", True)])
def test_the_id_of_a_delegation_token_is_nobodys_name(said: str, is_let_in: bool) -> None:
    """As with Kafka, who asks by a token (KIP-48) is not let in by the password of a user who is called so."""
    mechanism = "SCRAM-SHA-256"
    client = ScramClient(mechanism, "user", "pencil")
    client._first += said  # of which our own client has none
    server = ScramServer(mechanism, {"user": scram_credential(mechanism, "pencil")}.get)
    if is_let_in:
        exchange(client, server)
        assert server.username == "user"
        return
    with pytest.raises(AuthenticationError, match=r"^SCRAM-SHA-256: wrong user or password$"):
        exchange(client, server)


def test_a_user_that_does_not_exist_always_has_the_same_salt() -> None:
    salts = {ScramServer("SCRAM-SHA-256", lambda _: None).respond(b"n,,n=x,r=a").split(b",")[1] for _ in range(3)}
    assert len(salts) == 1
    other = ScramServer("SCRAM-SHA-512", lambda _: None).respond(b"n,,n=x,r=a").split(b",")[1]
    assert other not in salts  # as of a user that exists


def shown(name: str, shapes: list[tuple[int, int]]) -> tuple[int, int]:
    """The size of the salt, and the iterations, that a user who does not exist is told."""
    first = ScramServer("SCRAM-SHA-256", lambda _: None, lambda: shapes).respond(f"n,,n={name},r=a".encode())
    _, salt, iterations = first.decode().split(",")
    return len(base64.b64decode(salt[2:])), int(iterations[2:])


def test_a_user_that_does_not_exist_shows_what_those_do_who_exist() -> None:
    names = [f"user-{number}" for number in range(200)]
    assert {shown(name, []) for name in names} == {(24, 4096)}
    shapes = [(24, 4096), (16, 8192), (70, 4096)]
    before = [shown(name, shapes) for name in names]
    assert set(before) == set(shapes)
    assert before == [shown(name, shapes[::-1]) for name in names]


def test_another_shape_changes_no_answer_but_those_that_have_it() -> None:
    shapes = [(24, 4096), (16, 8192)]
    for name in [f"user-{number}" for number in range(200)]:
        assert shown(name, [*shapes, (24, 16384)]) in (shown(name, shapes), (24, 16384))


NONCE = CLIENT_NONCE.encode()
HOSTILE_FIRST = [
    ("another nonce", b"r=xxxx,s=AAAA,i=4096", "does not carry on our nonce"),
    ("our nonce alone", b"r=" + NONCE + b",s=AAAA,i=4096", "does not carry on our nonce"),
    ("too few iterations", b"r=" + NONCE + b"x,s=AAAA,i=4095", "asks for 4095 iterations"),
    ("too many iterations", b"r=" + NONCE + b"x,s=AAAA,i=1000001", "asks for 1000001 iterations"),
    ("endless iterations", b"r=" + NONCE + b"x,s=AAAA,i=" + b"9" * 5000, "no iteration count"),
    ("a negative count", b"r=" + NONCE + b"x,s=AAAA,i=-1", "no iteration count"),
    ("digits that are not ASCII", b"r=" + NONCE + "x,s=AAAA,i=٤٠٩٦".encode(), "no iteration count"),
    ("no salt", b"r=" + NONCE + b"x,i=4096", "lacks 's'"),
    ("a salt that is no base64", b"r=" + NONCE + b"x,s=A,i=4096", "lacks 's'"),
    ("an extension that must be understood", b"m=x,r=" + NONCE + b"x,s=AAAA,i=4096", "holds 'm'"),
    ("an attribute twice", b"r=" + NONCE + b"x,r=y,s=AAAA,i=4096", "no list of attributes"),
    ("no attributes", b"hello", "no list of attributes"),
    ("no UTF-8", b"r=\xff", "no UTF-8"),
    ("nothing", b"", "message is empty"),
    ("a megabyte", b"r=" + NONCE + b"x" * 2**20 + b",s=AAAA,i=4096", "are the most"),
]


@pytest.mark.parametrize(("name", "challenge", "says"), HOSTILE_FIRST, ids=[row[0] for row in HOSTILE_FIRST])
def test_a_first_message_of_a_hostile_broker_is_refused(name: str, challenge: bytes, says: str) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=CLIENT_NONCE)
    client.respond(b"")
    with pytest.raises(AuthenticationError, match=says):
        client.respond(challenge)


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (b"v=" + b"A" * 43 + b"=", "could not prove"),
        (b"v=", "lacks 'v'"),
        (b"e=other-error", "refused SCRAM-SHA-256: 'other-error'"),
        (b"x=1", "lacks 'v'"),
        (b"", "message is empty"),
    ],
)
def test_a_broker_that_does_not_know_the_password_is_not_believed(last: bytes, says: str) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=CLIENT_NONCE)
    client.respond(b"")
    client.respond(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match=says):
        client.respond(last)


def test_extensions_of_a_broker_that_need_not_be_understood_are_passed_over() -> None:
    """RFC 5802, section 5.1: they stand behind what is known, and count for the proofs of both sides."""
    mechanism = "SCRAM-SHA-256"
    credential = scram_credential(mechanism, "pencil", salt=SALT)
    client = ScramClient(mechanism, "user", "pencil", nonce=CLIENT_NONCE)
    client.respond(b"")
    first = SERVER_FIRST + b",x=told,yz=a=b"
    last = client.respond(first)
    assert last is not None
    without_proof = last.rpartition(b",p=")[0]
    signed = b",".join((CLIENT_FIRST.removeprefix(b"n,,"), first, without_proof))
    proved = base64.b64encode(hmac.digest(credential.server_key, signed, "sha256"))
    assert client.respond(b"v=" + proved + b",x=told") is None


def test_a_broker_that_goes_on_after_the_end_is_refused() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil")
    server = ScramServer("SCRAM-SHA-256", {"user": scram_credential("SCRAM-SHA-256", "pencil")}.get)
    exchange(client, server)
    for challenge in (b"", b"v=AAAA"):
        with pytest.raises(AuthenticationError, match="after the end"):
            client.respond(challenge)


def test_a_broker_does_not_speak_first() -> None:
    with pytest.raises(AuthenticationError, match="speaks first"):
        ScramClient("SCRAM-SHA-256", "user", "pencil").respond(SERVER_FIRST)


HOSTILE_CLIENTS = [
    ("channel binding", b"p=tls-unique,,n=user,r=a", "channel binding"),
    ("nothing", b"", "message is empty"),
    ("a megabyte", b"n,,n=user,r=" + b"a" * 2**20, "are the most"),
    ("no name", b"n,,r=a", "lacks a name or a nonce"),
    ("no nonce", b"n,,n=user,r=", "lacks a name or a nonce"),
    ("somebody else", b"n,a=admin,n=user,r=a", "asks to be somebody else"),
    ("what is no authorization id", b"n,user,n=user,r=a", "asks to be somebody else"),
    ("an extension that must be understood", b"n,,n=user,r=a,m=x", "holds 'm'"),
    # RFC 5802, section 5.1: the server has to end the exchange.
    ("a name with = as it is", b"n,,n=us=er,r=a", "neither =2C nor =3D"),
    ("a name with = escaped in small letters", b"n,,n=us=2cer,r=a", "neither =2C nor =3D"),
    ("a name with half of an escape", b"n,,n=user=2,r=a", "neither =2C nor =3D"),
]


@pytest.mark.parametrize(("name", "token", "says"), HOSTILE_CLIENTS, ids=[row[0] for row in HOSTILE_CLIENTS])
def test_a_first_message_of_a_hostile_client_is_refused(name: str, token: bytes, says: str) -> None:
    with pytest.raises(AuthenticationError, match=says):
        ScramServer("SCRAM-SHA-256", lambda _: None).respond(token)


@pytest.mark.parametrize("header", [b"n,,", b"y,,", b"n,a=us=2Cer,"])
def test_a_client_may_ask_to_be_the_user_that_it_is(header: bytes) -> None:
    server = ScramServer("SCRAM-SHA-256", lambda _: None)
    assert server.respond(header + b"n=us=2Cer,r=abc").startswith(b"r=abc")


@pytest.mark.parametrize(
    "last",
    [
        CLIENT_LAST.replace(b"biws", b"eSws"),
        CLIENT_LAST.replace(b"$k0,", b"$k1,"),
        CLIENT_LAST.rpartition(b",")[0],
        CLIENT_LAST + b"AAAA",
    ],
    ids=["another binding", "another nonce", "no proof", "a longer proof"],
)
def test_a_last_message_that_was_changed_is_refused(last: bytes) -> None:
    server = ScramServer(
        "SCRAM-SHA-256", {"user": scram_credential("SCRAM-SHA-256", "pencil", salt=SALT)}.get, nonce=SERVER_NONCE
    )
    server.respond(CLIENT_FIRST)
    with pytest.raises(AuthenticationError):
        server.respond(last)
    assert server.username is None


def test_a_credential_holds_what_the_rfc_says_and_shows_none_of_it() -> None:
    credential = scram_credential("SCRAM-SHA-512", "pencil", salt=SALT, iterations=8192)
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", SALT, 8192)
    assert credential.server_key == hmac.digest(salted, b"Server Key", "sha512")
    assert repr(credential) == "ScramCredential(iterations=8192)"


def test_other_mechanisms_and_counts_are_refused() -> None:
    with pytest.raises(ConfigError, match="SCRAM-SHA-1"):
        ScramClient("SCRAM-SHA-1", "user", "pencil")
    with pytest.raises(ConfigError, match="iterations=10"):
        scram_credential("SCRAM-SHA-256", "pencil", iterations=10)
