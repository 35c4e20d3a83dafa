"""The token that the connections of a client share: asked for once, kept while it is good, replaced before it ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tagwire.client import Client, OAuthToken, TokenRefresh, process
from tagwire.client.aio import AsyncClient
from tagwire.client.oauth_login import PATIENCE, PAUSE_AFTER_FAILURE, TokenLogin
from tagwire.client.oauth_token import UsableToken
from tagwire.errors import AuthenticationError, ConfigError, ConnectError, TokenError
from tagwire.rpc import OAuthBearerServer, ValidatedToken

from ..token_endpoint import jwt
from .fake_broker import FakeCluster


class World:
    """A clock that is made up, a source of tokens, and threads that run when they are told to."""

    def __init__(self, lifetime: float = 1000.0, **refresh: float) -> None:
        self.now = 1_000_000.0
        self.set_back = 0.0
        self.asked = 0
        self.answer: Callable[[], Any] = self._token
        self.threads: list[Callable[[], None]] = []
        self.login = TokenLogin(
            self._ask,
            TokenRefresh(**refresh),
            clock=lambda: self.now - self.set_back,
            ticks=lambda: self.now,
            random=Random(1),
            run=lambda work, name: self.threads.append(work),
        )
        self._lifetime = lifetime

    def request(self, count: int = 1) -> list[str]:
        """What so many connections have that ask at a time: the token, or the error."""
        requests = [self.login.request() for _ in range(count)]
        for request in requests:
            if not request.is_done:
                request.begin(lambda: None, None)
        self.run()
        return [self._outcome(request) for request in requests]

    def run(self) -> None:
        while self.threads:
            self.threads.pop(0)()

    def _outcome(self, request: Any) -> str:
        assert request.is_done
        try:
            return str(request.result().value)
        except (AuthenticationError, ConnectError) as error:
            return f"{type(error).__name__}: {error}"

    def _ask(self) -> Any:
        self.asked += 1
        return self.answer()

    def _token(self) -> OAuthToken:
        return OAuthToken(f"token-{self.asked}", self.now + self._lifetime)


def test_connections_that_open_together_ask_once() -> None:
    world = World()
    assert world.request(20) == ["token-1"] * 20
    assert world.request(5) == ["token-1"] * 5
    assert world.asked == 1


def test_a_token_is_replaced_after_its_window_and_not_before() -> None:
    world = World(10_000.0)
    assert world.request() == ["token-1"]
    world.now += 7_999
    assert world.request() == ["token-1"]
    world.now += 502
    assert world.request(3) == ["token-2"] * 3


DUE = [
    # lifetime, had after, options, when it is due after it was had
    (10_000.0, 0.0, {}, 8_000.0),
    (1_000.0, 0.0, {}, 700.0),  # the buffer
    (10_000.0, 7_990.0, {}, 60.0),  # the least period
    (300.0, 0.0, {}, 240.0),  # shorter than both together
    (300.0, 200.0, {}, 80.0),
    (10_000.0, 0.0, {"window_factor": 0.5, "min_period": 0.0, "buffer": 0.0}, 5_000.0),
]


@pytest.mark.parametrize(("lifetime", "after", "options", "due"), DUE)
def test_it_is_due_when_kafkas_clients_have_it_so(
    lifetime: float, after: float, options: dict[str, float], due: float
) -> None:
    token = UsableToken("t", {}, 0.0, lifetime)
    assert TokenRefresh(**options).due(token, after, 0.0) == pytest.approx(after + due)


@pytest.mark.parametrize(
    "option", [{"window_factor": 0.4}, {"window_jitter": 0.3}, {"min_period": 901.0}, {"buffer": -1.0}]
)
def test_a_refresh_out_of_kafkas_bounds_is_refused(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(option))):
        TokenRefresh(**option)


def test_a_good_token_is_kept_while_no_newer_one_can_be_had(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1_000.0)
    world.request()
    world.now += 900
    world.answer = lambda: (_ for _ in ()).throw(ConnectError("token endpoint x: status 503"))
    assert world.request(2) == ["token-1"] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "the token is kept, for no newer one can be had: token endpoint x: status 503"
    ]
    assert world.request() == ["token-1"]
    assert world.asked == 2
    world.now += PAUSE_AFTER_FAILURE
    assert world.request() == ["token-1"]
    assert world.asked == 3
    world.now += 100
    assert world.request() == ["ConnectError: token endpoint x: status 503"]


def test_a_token_that_could_not_be_renewed_is_given_no_longer_than_it_is_good() -> None:
    world = World(1_000.0)
    world.request()
    world.now += 1_000 - PAUSE_AFTER_FAILURE / 2
    world.answer = lambda: (_ for _ in ()).throw(ConnectError("token endpoint x: status 503"))
    assert world.request() == ["token-1"]
    world.now += PAUSE_AFTER_FAILURE / 2
    assert world.request() == ["ConnectError: token endpoint x: status 503"]


def test_no_share_of_its_lifetime_makes_a_token_due_after_its_end() -> None:
    world = World(100.0, window_factor=1.0, window_jitter=0.25)
    world.request()
    world.now += 100
    assert world.request() == ["token-2"]
    world = World(10_000.0, window_factor=1.0, window_jitter=0.25, min_period=0.0, buffer=0.0)
    world.request()
    world.now += 10_000
    assert world.request() == ["token-2"]


def test_a_token_whose_end_nobody_knows_is_asked_for_each_time() -> None:
    world = World()
    world.answer = lambda: "opaque"
    assert world.request(2) == ["opaque", "opaque"]
    assert world.request() == ["opaque"]
    assert world.asked == 2


def test_the_end_of_a_jwt_is_read_from_it() -> None:
    world = World()
    world.answer = lambda: jwt({"exp": world.now + 10_000})
    world.request()
    world.now += 7_000
    world.request()
    assert world.asked == 1


REFUSED = [
    (None, "the token callback gave NoneType"),
    (b"hunter", "the token callback gave bytes"),
    (OAuthToken(5), "the token callback: the token is no text"),  # type: ignore[arg-type]
    ("", "the token callback: the token is empty"),
    ("hunter 2", "the token callback: the token has characters"),
    (OAuthToken("hunter", 900_000.0), "the token callback: the token expired 100000 s ago"),
    (OAuthToken("hunter", None, {"a1": "x"}), "the token callback: the extension 'a1'"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED)
def test_what_is_no_token_is_refused_by_name(given: Any, says: str) -> None:
    world = World()
    world.answer = lambda: given
    (said,) = world.request()
    assert said.startswith(f"TokenError: {says}")
    assert "hunter" not in said


@pytest.mark.parametrize("error", [ValueError("hunter"), SystemExit("hunter")])
def test_whatever_a_callback_raises_ends_no_more_than_what_waits(error: BaseException) -> None:
    def fail() -> None:
        raise error

    world = World()
    world.answer = fail
    assert world.request(2) == [f"TokenError: the token callback raised {type(error).__name__}"] * 2
    world.answer = lambda: OAuthToken("good", world.now + 1000)
    assert world.request() == ["good"]


def test_a_callback_that_hangs_is_called_again_after_a_minute() -> None:
    world = World()
    first = world.login.request()
    first.begin(lambda: None, None)
    world.login.request().begin(lambda: None, None)
    assert len(world.threads) == 1
    world.now += PATIENCE
    world.login.request().begin(lambda: None, None)
    assert len(world.threads) == 2
    assert first.not_yet() == "no token in time from the token callback"
    world.threads.pop()()
    assert first.is_done


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_call_says_after_a_later_one_was_answered_is_not_heard(fails: bool) -> None:
    """It began long before: its token may have ended since, and its failure is nobody's any more."""
    world = World()
    first, second = world.login.request(), world.login.request()
    first.begin(lambda: None, None)
    world.now += PATIENCE
    second.begin(lambda: None, None)
    hung = world.threads.pop(0)
    world.run()
    assert [first.result().value, second.result().value] == ["token-1"] * 2
    world.now += 990
    third = world.login.request()
    third.begin(lambda: None, None)
    good, world.answer = world.answer, lambda: None if fails else OAuthToken("old", world.now - 20)
    hung()
    assert not third.is_done
    world.answer = good
    world.run()
    assert third.result().value == "token-3"
    assert world.request() == ["token-3"]


def test_a_callback_that_hangs_is_called_again_after_a_minute_though_the_clock_was_set_back() -> None:
    world = World()
    world.login.request().begin(lambda: None, None)
    world.set_back = 3600.0
    world.now += PATIENCE
    world.login.request().begin(lambda: None, None)
    assert len(world.threads) == 2


def test_a_process_that_was_forked_off_asks_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.login.request().begin(lambda: None, None)  # by a thread that the child does not have
    world.threads.clear()
    monkeypatch.setattr(process, "current", process.Process())
    assert world.request() == ["token-1"]


def served(token: str, extensions: Any) -> ValidatedToken:
    if not token.startswith("good"):
        raise AuthenticationError("hunter")
    return ValidatedToken("alice")


OPTIONS: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER", "timeout": 10}
SASL = {"OAUTHBEARER": lambda: OAuthBearerServer(served)}


def test_a_callback_runs_beside_the_client_and_an_async_one_too() -> None:
    threads: list[str] = []

    def token() -> str:
        threads.append(threading.current_thread().name)
        return "good"

    async def token_soon() -> str:
        await asyncio.sleep(0)
        return token()

    with FakeCluster(sasl=SASL) as cluster:
        for given in (token, token_soon):
            with Client(cluster.bootstrap, **OPTIONS, sasl_oauth_token=given) as client:
                assert client.metadata().cluster_id == "fake"
    assert threads == ["tagwire-aside token"] * 2


def test_an_async_callback_runs_in_the_loop_of_its_client_and_another_beside_it() -> None:
    async def run(cluster: FakeCluster) -> None:
        loop, thread = asyncio.get_running_loop(), threading.current_thread()

        async def token() -> OAuthToken:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            return OAuthToken("good-1")

        def blocking() -> str:
            assert threading.current_thread() is not thread
            return "good-2"

        for given in (token, blocking):
            async with AsyncClient(cluster.bootstrap, **OPTIONS, sasl_oauth_token=given) as client:
                assert (await client.metadata()).cluster_id == "fake"

    with FakeCluster(sasl=SASL) as cluster:
        asyncio.run(run(cluster))


def test_a_refused_token_is_told_as_the_broker_has_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        FakeCluster(sasl=SASL) as cluster,
        Client(cluster.bootstrap, **OPTIONS, sasl_oauth_token=lambda: "hunter2") as client,
        pytest.raises(
            AuthenticationError, match=r'OAUTHBEARER\): SASL_AUTHENTICATION_FAILED: .*"invalid_token"'
        ) as told,
    ):
        client.metadata()
    assert "hunter" not in f"{told.value!r} {client!r} {caplog.text}"


def test_an_error_of_the_callback_is_the_clients() -> None:
    def fail() -> str:
        raise TokenError("no ticket today")

    with (
        FakeCluster(sasl=SASL) as cluster,
        Client(cluster.bootstrap, **OPTIONS, sasl_oauth_token=fail) as client,
        pytest.raises(TokenError, match="no ticket today"),
    ):
        client.metadata()
