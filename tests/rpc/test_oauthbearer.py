"""OAUTHBEARER as RFC 7628 and KIP-342 have it, both roles against each other, and what neither side lets pass."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tagwire import messages
from tagwire.errors import AuthenticationError, Error
from tagwire.rpc import Gate, OAuthBearerClient, OAuthBearerServer, ValidatedToken

# RFC 7628, section 4.1, without the host, port and authorization id that Kafka's clients do not send.
TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
PLAIN_MESSAGE = f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()


def alice(token: str, extensions: Mapping[str, str]) -> ValidatedToken:
    if token != TOKEN:
        raise AuthenticationError("expired yesterday")
    return ValidatedToken("alice", 1_700_000_000.5)


def test_the_client_says_what_rfc_7628_prints() -> None:
    client = OAuthBearerClient(TOKEN)
    assert client.respond(b"") == PLAIN_MESSAGE
    assert client.respond(b"") is None


def test_extensions_stand_behind_the_token() -> None:
    message = OAuthBearerClient(TOKEN, {"logicalCluster": "lkc-1", "traceId": "a=b c"}).respond(b"")
    assert message == f"n,,\x01auth=Bearer {TOKEN}\x01logicalCluster=lkc-1\x01traceId=a=b c\x01\x01".encode()
    server = OAuthBearerServer(alice)
    assert server.respond(message) == b""
    assert server.extensions == {"logicalCluster": "lkc-1", "traceId": "a=b c"}


def test_the_server_knows_whom_the_token_stands_for_and_until_when() -> None:
    server = OAuthBearerServer(alice)
    assert server.username is None
    assert server.respond(PLAIN_MESSAGE) == b""
    assert (server.username, server.expires_at) == ("alice", 1_700_000_000.5)
    with pytest.raises(AuthenticationError, match="goes on after the end"):
        server.respond(PLAIN_MESSAGE)


def test_a_token_that_is_refused_ends_with_the_dummy_answer() -> None:
    gate = Gate({"OAUTHBEARER": lambda: OAuthBearerServer(alice)})
    gate.handshake(messages.SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    client = OAuthBearerClient("another")
    refused = gate.authenticate(messages.SaslAuthenticateRequest(auth_bytes=client.respond(b"")))
    assert (refused.error_code, refused.auth_bytes) == (0, b'{"status":"invalid_token"}')
    dummy = client.respond(refused.auth_bytes)
    assert dummy == b"\x01"
    ended = gate.authenticate(messages.SaslAuthenticateRequest(auth_bytes=dummy))
    assert (ended.error_code, ended.error_message) == (Error.SASL_AUTHENTICATION_FAILED, '{"status":"invalid_token"}')
    assert gate.failed
    assert gate.username is None
    with pytest.raises(AuthenticationError, match=r"^the broker refused the token: invalid_token$"):
        client.respond(b"")


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            b'{"status":"insufficient_scope","scope":"kafka","openid-configuration":"https://x/"}',
            "insufficient_scope, ",
        ),
        (b"no JSON", "without a reason"),
        (b"[]", "without a reason"),
        (b'{"status":7}', "without a reason"),
        (b"[" * 8000, "without a reason"),
        (b"\xff\xfe", "without a reason"),
        (b'{"status":"' + b"x" * 1_000_000 + b'"}', r"without a reason that can be read \(1000013 bytes\)"),
    ],
)
def test_whatever_the_broker_says_of_a_refusal_is_answered_and_told_in_short(document: bytes, says: str) -> None:
    client = OAuthBearerClient(TOKEN)
    client.respond(b"")
    assert client.respond(document) == b"\x01"
    with pytest.raises(AuthenticationError, match=says) as caught:
        client.respond(document)
    assert len(str(caught.value)) < 300
    with pytest.raises(AuthenticationError, match="goes on after the end"):
        client.respond(document)


def test_a_broker_cannot_speak_first() -> None:
    with pytest.raises(AuthenticationError, match="speaks first"):
        OAuthBearerClient(TOKEN).respond(b"hello")


@pytest.mark.parametrize(
    ("token", "extensions", "says"),
    [
        ("", {}, "the token is empty"),
        ("se cret", {}, "characters that no bearer token has"),
        ("secret\x01a=b", {}, "characters that no bearer token has"),
        ("sécret", {}, "characters that no bearer token has"),
        ("a" * 1_000_000, {}, "1000000 characters; 524288 are the most"),
        ("a" * 524_288, {}, "token and extensions have 524306 bytes"),
        ("secret", {"auth": "x"}, "no extension may be named 'auth'"),
        ("secret", {"a-b": "x"}, "'a-b' is not named by ASCII letters"),
        ("secret", {"": "x"}, "'' is not named by ASCII letters"),
        ("secret", {"a": ""}, "'a' has a value that is empty"),
        ("secret", {"a": "secret\x01"}, "'a' has a value that is empty, or not printable"),
    ],
)
def test_what_cannot_be_sent_is_refused_without_telling_it(token: str, extensions: dict[str, str], says: str) -> None:
    with pytest.raises(AuthenticationError, match=says) as caught:
        OAuthBearerClient(token, extensions)
    assert "cret" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer secret\x01",
        b"p=tls,,\x01auth=Bearer secret\x01\x01",
        b"n,b=x,\x01auth=Bearer secret\x01\x01",
        b"n,a=x=y,\x01auth=Bearer secret\x01\x01",
        b"n,,\x01auth=Basic secret\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer se cret\x01\x01",
        b"n,,\x01auth=Bearer secret\x01auth=Bearer secret\x01\x01",
        b"n,,\x01auth=Bearer secret\x01host\x01\x01",
        b"n,,\x01auth=Bearer secret\x01a1=secret\x01\x01",
        b"n,,\x01auth=Bearer s\xc3\xa9cret\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * 600_000 + b"\x01\x01",
    ],
)
def test_a_message_that_is_none_is_refused_before_the_validator_sees_it(message: bytes) -> None:
    def never(token: str, extensions: Mapping[str, str]) -> ValidatedToken:
        raise AssertionError("the validator was asked")

    with pytest.raises(AuthenticationError, match=r"^OAUTHBEARER: ") as caught:
        OAuthBearerServer(never).respond(message)
    assert "cret" not in str(caught.value)


def test_a_client_may_ask_to_be_whom_its_token_names_and_nobody_else() -> None:
    server = OAuthBearerServer(alice)
    assert server.respond(PLAIN_MESSAGE.replace(b"n,,", b"n,a=alice,")) == b""
    with pytest.raises(AuthenticationError, match="another than the token's principal"):
        OAuthBearerServer(alice).respond(PLAIN_MESSAGE.replace(b"n,,", b"n,a=root,"))


def test_no_repr_tells_the_token() -> None:
    assert TOKEN not in repr(OAuthBearerClient(TOKEN)) + repr(OAuthBearerServer(alice))
