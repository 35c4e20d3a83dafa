"""A broker's side of SASL: how long a session lasts, and how a client stays (KIP-368)."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.errors import AuthenticationError, Error
from tagwire.rpc import Gate, PlainServer
from tagwire.spec.api_keys import ApiKey

PASSWORDS = {"alice": "wonderland", "bob": "builder"}


class Clock:
    """Both clocks of a gate; seconds."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Token:
    """A mechanism whose token is the user's name, and when it ends."""

    def __init__(self):
        self.username = self.expires_at = None

    def respond(self, token):
        name, _, ends = token.decode().partition(" ")
        self.username, self.expires_at = name, float(ends) if ends else None
        return b""


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return opened(clock, 60.0)


def opened(clock, max_session_s):
    mechanisms = {"PLAIN": lambda: PlainServer(PASSWORDS.get), "TOKEN": Token}
    return Gate(mechanisms, max_session_s=max_session_s, clock=clock, wall=clock)


def handshake(gate, mechanism="PLAIN"):
    return gate.handshake(messages.SaslHandshakeRequest(mechanism=mechanism)).error_code


def authenticate(gate, token=b"\0alice\0wonderland"):
    return gate.authenticate(messages.SaslAuthenticateRequest(auth_bytes=token))


def log_in(gate, mechanism="PLAIN", token=b"\0alice\0wonderland"):
    """The session's lifetime in milliseconds."""
    assert handshake(gate, mechanism) == 0
    answer = authenticate(gate, token)
    assert (answer.error_code, gate.failed) == (0, False)
    return answer.session_lifetime_ms


def test_nothing_but_tokens_is_served_between_the_handshake_and_the_last_token(gate):
    assert gate.admits(ApiKey.API_VERSIONS)
    assert handshake(gate) == 0
    assert not gate.admits(ApiKey.API_VERSIONS)
    assert gate.admits(ApiKey.SASL_AUTHENTICATE)
    authenticate(gate)
    assert gate.admits(ApiKey.API_VERSIONS)


@pytest.mark.parametrize(
    ("max_session_s", "token", "lifetime_ms"),
    [
        (0.0, b"alice", 0),
        (60.0, b"alice", 60_000),
        (0.0, b"alice 1030", 30_000),
        (60.0, b"alice 1030", 30_000),
        (10.0, b"alice 1030", 10_000),
        (60.0, b"alice 1000", 1),
        (60.0, b"alice 900", 1),
        (0.0, b"alice 1e300", 100 * 365 * 86_400_000),
    ],
)
def test_a_session_lasts_as_long_as_the_broker_and_the_token_let_it(clock, max_session_s, token, lifetime_ms):
    assert log_in(opened(clock, max_session_s), "TOKEN", token) == lifetime_ms


@pytest.mark.parametrize("ends", ["900", "1000", "1000.0004"])
def test_a_session_that_has_ended_is_not_told_as_one_without_end_and_can_be_renewed(clock, ends):
    gate = opened(clock, 0.0)
    assert log_in(gate, "TOKEN", f"alice {ends}".encode()) == 1
    clock.now += 60
    assert not gate.admits(ApiKey.PRODUCE)
    assert gate.admits(ApiKey.SASL_HANDSHAKE)
    assert log_in(gate, "TOKEN", b"alice 1100") == 40_000
    assert gate.admits(ApiKey.PRODUCE)


def test_a_session_that_is_not_bounded_never_ends(clock):
    gate = opened(clock, 0.0)
    log_in(gate)
    clock.now += 1e9
    assert gate.admits(ApiKey.PRODUCE)


def test_before_a_client_is_known_it_may_ask_for_versions_and_authenticate(gate):
    admitted = [key for key in range(100) if gate.admits(key)]
    assert admitted == [ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE]


def test_after_a_session_has_ended_only_a_handshake_is_served(gate, clock):
    log_in(gate)
    clock.now += 60
    assert gate.admits(ApiKey.PRODUCE)
    clock.now += 0.001
    assert [key for key in range(100) if gate.admits(key)] == [ApiKey.SASL_HANDSHAKE]
    assert handshake(gate) == 0
    assert [key for key in range(100) if gate.admits(key)] == [ApiKey.SASL_AUTHENTICATE]
    assert authenticate(gate).session_lifetime_ms == 60_000
    assert gate.admits(ApiKey.PRODUCE)


def test_while_a_client_authenticates_again_nothing_else_is_served(gate):
    log_in(gate)
    assert handshake(gate) == 0
    assert gate.username == "alice"
    assert not any(gate.admits(key) for key in (ApiKey.PRODUCE, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE))


def test_a_client_does_not_authenticate_again_within_a_second(gate, clock):
    log_in(gate)
    log_in(gate)  # the first time it may at once
    clock.now += 0.999
    assert handshake(gate) == Error.ILLEGAL_SASL_STATE
    assert not gate.failed
    assert gate.admits(ApiKey.PRODUCE)
    clock.now += 0.001
    assert log_in(gate) == 60_000


def test_a_session_that_ended_within_that_second_is_over(clock):
    gate = opened(clock, 0.5)
    log_in(gate)
    log_in(gate)
    clock.now += 0.9
    assert not gate.admits(ApiKey.SASL_HANDSHAKE)
    clock.now += 0.1
    assert gate.admits(ApiKey.SASL_HANDSHAKE)


def test_where_sessions_do_not_end_nobody_authenticates_again_and_goes_on_as_before(clock):
    gate = opened(clock, 0.0)
    log_in(gate)
    assert handshake(gate) == Error.ILLEGAL_SASL_STATE
    assert authenticate(gate).error_code == Error.ILLEGAL_SASL_STATE
    assert not gate.failed
    assert gate.admits(ApiKey.PRODUCE)


def test_a_client_stays_who_it_is(gate):
    log_in(gate)
    assert handshake(gate) == 0
    answer = authenticate(gate, b"\0bob\0builder")
    assert (answer.error_code, gate.failed) == (Error.SASL_AUTHENTICATION_FAILED, True)
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert gate.username == "alice"


def test_a_client_keeps_its_mechanism_or_gets_no_response(gate):
    log_in(gate)
    assert handshake(gate, "TOKEN") == 0
    assert not gate.admits(ApiKey.PRODUCE)
    with pytest.raises(AuthenticationError, match="by another mechanism than PLAIN"):
        authenticate(gate, b"alice")
    assert gate.failed


def test_a_mechanism_that_there_is_not_ends_it(gate):
    log_in(gate)
    assert handshake(gate, "GSSAPI") == Error.UNSUPPORTED_SASL_MECHANISM
    assert gate.failed


def test_a_wrong_password_ends_it(gate):
    log_in(gate)
    handshake(gate)
    assert authenticate(gate, b"\0alice\0builder").error_code == Error.SASL_AUTHENTICATION_FAILED
    assert gate.failed
