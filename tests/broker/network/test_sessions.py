"""Sessions that end, on a connection: KIP-368, and tokens that expire."""

from __future__ import annotations

import base64
import json
import time
from contextlib import suppress

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster, clock
from tagwire.broker.bearer_tokens import UnsecuredTokens
from tagwire.errors import AuthenticationError, Error
from tagwire.rpc import OAuthBearerClient, ValidatedToken

PASSWORD = "wonderland"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    mechanisms, users = ["PLAIN", "OAUTHBEARER"], {"alice": PASSWORD, "bob": PASSWORD}
    with Broker(
        data / "d", sasl=mechanisms, users=users, max_reauth_s=600, oauthbearer_validator=UnsecuredTokens()
    ) as one:
        yield one


@pytest.fixture
def ahead(monkeypatch):
    """Sets the clock ahead by which sessions end, by seconds."""
    since, read = [0], clock.monotonic_ms
    monkeypatch.setattr(clock, "monotonic_ms", lambda: read() + sum(since))
    return lambda seconds: since.append(seconds * 1000)


def log_in(wire, token=b"\0alice\0wonderland", mechanism="PLAIN", version=2):
    assert wire.ask(messages.SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    return wire.ask(messages.SaslAuthenticateRequest(auth_bytes=token), version)


def token_of(**claims):
    """The client's message with an unsecured token."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims))
    return OAuthBearerClient(b".".join((*parts, b"")).decode()).respond(b"")


def test_a_client_is_told_how_long_its_session_lasts_and_ends_with_it(broker, connect, ahead):
    wire = connect(broker.bootstrap)
    assert log_in(wire).session_lifetime_ms == 600_000
    assert wire.metadata().topics == []
    ahead(601)
    assert log_in(wire).session_lifetime_ms == 600_000
    assert wire.metadata().topics == []
    ahead(601)
    wire.send(messages.MetadataRequest(topics=[]), 12)
    assert wire.is_closed()


def test_an_old_client_that_cannot_be_told_is_closed_as_well(broker, connect, ahead):
    wire = connect(broker.bootstrap)
    assert log_in(wire, version=0).error_code == 0
    ahead(601)
    wire.send(messages.ApiVersionsRequest(), 0)
    assert wire.is_closed()


def test_a_token_ends_the_session(broker, connect, ahead):
    wire = connect(broker.bootstrap)
    answer = log_in(wire, token_of(sub="carol", exp=time.time() + 30), "OAUTHBEARER")
    assert answer.error_code == 0
    assert 25_000 < answer.session_lifetime_ms <= 30_000
    assert wire.metadata().topics == []
    assert broker.requests.select("Metadata")[-1].user == "carol"
    ahead(31)
    assert log_in(wire, token_of(sub="carol", exp=time.time() + 30), "OAUTHBEARER").session_lifetime_ms > 25_000
    ahead(31)
    answer = log_in(wire, token_of(sub="eve", exp=time.time() + 30), "OAUTHBEARER")
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed()


def test_another_mechanism_closes_the_connection_without_a_response(broker, connect):
    wire = connect(broker.bootstrap)
    log_in(wire)
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
    wire.send(messages.SaslAuthenticateRequest(auth_bytes=token_of(sub="alice", exp=time.time() + 30)), 2)
    assert wire.is_closed()


def test_a_client_that_authenticates_too_often_is_refused_and_goes_on(broker, connect):
    wire = connect(broker.bootstrap)
    log_in(wire)
    log_in(wire)
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == Error.ILLEGAL_SASL_STATE
    answer = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland"), 2)
    assert answer.error_code == Error.ILLEGAL_SASL_STATE
    assert wire.metadata().topics == []


def test_a_refused_token_is_told_as_rfc_7628_has_it_and_stands_nowhere(broker, connect, caplog):
    caplog.set_level("DEBUG")
    expired = token_of(sub="carol", exp=1)
    wire = connect(broker.bootstrap)
    assert json.loads(log_in(wire, expired, "OAUTHBEARER").auth_bytes) == {"status": "invalid_token"}
    answer = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed()
    assert "a token is refused: OAUTHBEARER: the token is refused: it has expired" in caplog.text
    assert expired.split(b".")[1].decode() not in caplog.text


def test_a_token_of_a_megabyte_is_not_read(broker, connect):
    wire = connect(broker.bootstrap)
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
    with suppress(ConnectionError):  # it may be closed before all is sent
        wire.send(messages.SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Bearer " + b"a" * (1 << 20)), 2)
    assert wire.is_closed()


VALIDATORS = [
    (lambda token: ValidatedToken(token), ""),
    (lambda token: None, "the validator gave no ValidatedToken"),
    (lambda token: ValidatedToken(""), "the validator gave no ValidatedToken"),
    (lambda token: ValidatedToken("alice", float("nan")), "the validator gave no ValidatedToken"),
    (lambda token: ValidatedToken("alice", "2030-01-01"), "the validator gave no ValidatedToken"),
    (lambda token: ValidatedToken("alice", 10**400), "the validator gave no ValidatedToken"),
    (lambda token: {}[token], "the validator has failed: KeyError"),
    (lambda token: (_ for _ in ()).throw(AuthenticationError(f"not {token}")), "a token is refused: by the validator"),
]


@pytest.mark.parametrize(("validator", "logged"), VALIDATORS)
def test_a_validator_of_the_program_is_asked_and_whatever_it_does_no_log_has_the_token(
    connect, caplog, validator, logged
):
    with Broker(sasl="OAUTHBEARER", oauthbearer_validator=validator) as broker:
        wire = connect(broker.bootstrap)
        answer = log_in(wire, OAuthBearerClient("s3cret").respond(b""), "OAUTHBEARER")
        assert (answer.auth_bytes == b"") == (not logged)
        assert "s3cret" not in caplog.text
        assert logged in caplog.text


def of_tenant(token, extensions):
    if extensions.get("tenant") != "blue":
        raise AuthenticationError(f"{extensions} is of another tenant")
    return ValidatedToken(f"{token}@{extensions['tenant']}")


class OfTenant:
    def __call__(self, token, *, extensions):
        return of_tenant(token, extensions)


@pytest.mark.parametrize("validator", [of_tenant, OfTenant()])
def test_a_validator_that_takes_extensions_is_given_them_and_no_log_has_them(connect, caplog, validator):
    with Broker(sasl="OAUTHBEARER", oauthbearer_validator=validator) as broker:
        wire = connect(broker.bootstrap)
        log_in(wire, OAuthBearerClient("carol", {"tenant": "blue"}).respond(b""), "OAUTHBEARER")
        wire.metadata()
        assert broker.requests.select("Metadata")[-1].user == "carol@blue"
        refused = log_in(
            connect(broker.bootstrap), OAuthBearerClient("carol", {"tenant": "s3cret"}).respond(b""), "OAUTHBEARER"
        )
        assert json.loads(refused.auth_bytes) == {"status": "invalid_token"}
    assert "a token is refused: by the validator" in caplog.text
    assert "s3cret" not in caplog.text


def test_what_a_client_sends_beside_its_token_reaches_no_validator_that_does_not_ask(connect):
    def validator(token, beside="kept"):
        return ValidatedToken(f"{token}-{beside}")

    with Broker(sasl="OAUTHBEARER", oauthbearer_validator=validator) as broker:
        wire = connect(broker.bootstrap)
        log_in(wire, OAuthBearerClient("carol", {"beside": "blue"}).respond(b""), "OAUTHBEARER")
        wire.metadata()
        assert broker.requests.select("Metadata")[-1].user == "carol-kept"


def test_each_node_of_a_cluster_has_it(connect):
    with Cluster(2, sasl="OAUTHBEARER", oauthbearer_validator=UnsecuredTokens(), max_reauth_s=5) as cluster:
        for node in cluster.nodes.values():
            token = token_of(sub="carol", exp=time.time() + 30)
            assert log_in(connect(node.bootstrap), token, "OAUTHBEARER").session_lifetime_ms == 5_000
