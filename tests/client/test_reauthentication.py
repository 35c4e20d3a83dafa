"""Sessions that end are renewed on the connection as it is (KIP-368), in a network in memory, by a made-up clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.network_client import NetworkClient
from tagwire.client.oauth_login import TokenLogin, TokenRefresh
from tagwire.client.oauth_token import OAuthToken
from tagwire.client.scheduling import Wait, gather, sleep
from tagwire.client.security import Security
from tagwire.errors import AuthenticationError, ConnectError, ConnectionLostError, RequestTimeoutError, TokenError
from tagwire.rpc import (
    OAuthBearerServer,
    PlainClient,
    PlainServer,
    ScramServer,
    ServerMechanism,
    ValidatedToken,
    scram_credential,
)

from . import memory_network
from .fake_broker import FakeCluster, Late, Silence
from .memory_network import MemoryDriver

PASSWORD = "pen,c=il-hunter2"
CREDENTIAL = scram_credential("SCRAM-SHA-256", PASSWORD)
TIMEOUT = 30.0
LIFETIME = 10.0


def validated(token: str, extensions: Mapping[str, str]) -> ValidatedToken:
    return ValidatedToken(token.partition("-")[0])


SASL: dict[str, Callable[[], ServerMechanism]] = {
    "PLAIN": lambda: PlainServer({"alice": PASSWORD, "bob": PASSWORD}.get),
    "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", {"alice": CREDENTIAL}.get),
    "OAUTHBEARER": lambda: OAuthBearerServer(validated),
}


def security(mechanism: str = "PLAIN", **options: Any) -> Security:
    login = {"sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
    return Security(
        **{"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, **(options or login)}  # type: ignore[arg-type]
    )


def begun(
    secured: Security | None = None, lifetime_s: float = LIFETIME, seed: int = 1
) -> tuple[FakeCluster, MemoryDriver, NetworkClient]:
    cluster = FakeCluster(sasl=SASL)
    cluster.max_session_s = lifetime_s
    cluster.topic("t")
    driver = MemoryDriver(cluster, seed)
    settings = ConnectionSettings("core", security=secured or security())
    return cluster, driver, NetworkClient([("kafka-0", 9092)], settings, TIMEOUT, driver)


async def requested(client: NetworkClient, count: int, every: float) -> BrokerConnection:
    """So many requests on one connection, one at a time."""
    connection = await client.connection(None, client.deadline())
    for _ in range(count):
        await sleep(client.now() + every)
        await client.request(connection, messages.MetadataRequest(), client.deadline())
    return connection


def renewals(cluster: FakeCluster) -> int:
    """How often the one connection was authenticated again."""
    assert cluster.brokers[0].connections == 1
    return len(cluster.requests("SaslHandshake")) - 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_busy_connection_outlives_many_sessions(mechanism: str) -> None:
    cluster, driver, client = begun(security(mechanism))
    connection = driver.run(requested(client, 200, 0.5))
    assert cluster.brokers[0].connections == 1
    assert len(cluster.requests("Metadata")) == 200
    assert 10 <= renewals(cluster) <= 12
    assert not connection.closed
    measured = client.metrics.values("client")["client-metrics"]
    assert measured["successful-reauthentication-total"] == renewals(cluster)
    assert measured["failed-reauthentication-total"] == 0
    assert 0 < (measured["reauthentication-latency-avg"] or 0) < 100


def test_versions_are_not_asked_for_again() -> None:
    cluster, driver, client = begun()
    driver.run(requested(client, 100, 0.1))
    assert len(cluster.requests("ApiVersions")) == 2
    asked = [api for _, api, _, _ in cluster.seen if api.startswith("Sasl")]
    assert asked == ["SaslHandshake", "SaslAuthenticate"] * 2


@pytest.mark.parametrize("seed", range(5))
def test_it_begins_between_85_and_95_percent_of_the_lifetime(seed: int) -> None:
    lifetime = 60.0
    cluster, driver, client = begun(lifetime_s=lifetime, seed=seed)
    connection = driver.run(requested(client, 1, 0))
    began = driver.now()
    assert lifetime * 0.85 - 0.01 <= connection.deadline - began <= lifetime * 0.95
    driver.run(requested(client, 84, lifetime / 100))
    assert renewals(cluster) == 0
    driver.run(requested(client, 11, lifetime / 100))
    assert renewals(cluster) == 1


@pytest.mark.parametrize(("lifetime", "begins"), [(10.0, 9.0), (3.0, 2.0), (2.0, 1.0), (1.5, 1.0)])
def test_it_begins_a_second_before_the_end_and_not_twice_a_second(lifetime: float, begins: float) -> None:
    cluster, driver, client = begun(lifetime_s=lifetime)
    connection = driver.run(requested(client, 1, 0))
    assert connection.deadline - driver.now() <= begins
    driver.run(requested(client, 100, 0.1))
    assert 10 / begins - 2 <= renewals(cluster) <= 10 / begins + 2


def test_without_a_lifetime_nothing_is_renewed() -> None:
    cluster, driver, client = begun(lifetime_s=0)
    driver.run(requested(client, 10, 100_000))
    assert renewals(cluster) == 0


def test_what_is_in_flight_has_its_responses_and_what_comes_meanwhile_waits() -> None:
    cluster, driver, client = begun()

    async def work() -> list[Any]:
        connection = await client.connection(None, client.deadline())
        cluster.script("Metadata", Late(3))
        await Wait(lambda: client.now() >= connection.deadline - 1, connection.deadline - 1)
        late = await client.put(connection, messages.MetadataRequest(), client.deadline())
        await Wait(lambda: not connection.has_room, client.deadline())
        assert not late.done
        assert connection.is_ready
        with pytest.raises(ConnectionLostError, match="authenticated again"):
            connection.send(messages.MetadataRequest())
        return await gather(
            [late.response(client.deadline())]
            + [client.request(connection, messages.MetadataRequest(), client.deadline()) for _ in range(3)],
            client.now,
        )

    responses = driver.run(work())
    assert [type(response).__name__ for response in responses] == ["MetadataResponse"] * 4
    asked = [api for _, api, _, _ in cluster.seen]
    assert asked[-6:] == ["Metadata", "SaslHandshake", "SaslAuthenticate", "Metadata", "Metadata", "Metadata"]
    assert cluster.brokers[0].connections == 1


def test_who_cannot_wait_for_the_renewal_leaves_the_connection_to_others() -> None:
    cluster, driver, client = begun()

    async def work() -> BrokerConnection:
        connection = await client.connection(None, client.deadline())
        cluster.script("Metadata", Late(3))
        await sleep(connection.deadline - 1)
        late = await client.put(connection, messages.MetadataRequest(), client.deadline())
        await Wait(lambda: not connection.has_room, client.deadline())
        with pytest.raises(RequestTimeoutError, match="Metadata"):
            await client.put(connection, messages.MetadataRequest(), client.now() + 0.1)
        await late.response(client.deadline())
        await client.request(connection, messages.MetadataRequest(), client.deadline())
        return connection

    assert not driver.run(work()).closed
    assert renewals(cluster) == 1


def test_a_client_that_slept_past_the_end_authenticates_before_it_asks() -> None:
    cluster, driver, client = begun()
    driver.run(requested(client, 3, 35.0))
    assert cluster.brokers[0].connections == 1
    assert len(cluster.requests("Metadata")) == 3


def test_another_principal_is_refused_and_ends_the_connection() -> None:
    names = iter(["alice", "bob", "alice"])
    hosts = []

    def mechanism(host: str) -> PlainClient:
        hosts.append(host)
        return PlainClient(next(names), PASSWORD)

    secured = Security(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism)
    _, driver, client = begun(secured)
    connection = driver.run(requested(client, 1, 0))

    async def until_closed() -> None:
        await Wait(lambda: connection.closed, client.deadline())

    driver.run(until_closed())
    assert isinstance(connection.error, AuthenticationError)
    assert "Cannot change principals during re-authentication from User.alice: User.bob" in str(connection.error)
    assert "hunter" not in str(connection.error)
    assert client.metrics.values("client")["client-metrics"]["failed-reauthentication-total"] == 1
    driver.run(requested(client, 1, 0))  # a new connection, as after any that is lost
    assert hosts == ["kafka-0"] * 3


@pytest.mark.parametrize("throttled", [0.0, 5.0])
def test_a_broker_that_does_not_answer_the_renewal_loses_the_connection(throttled: float) -> None:
    cluster, driver, client = begun()
    connection = driver.run(requested(client, 1, 0))
    cluster.script("SaslHandshake", Silence())
    due = connection.deadline + throttled  # it reads nothing until it may be heard of again
    if throttled:
        connection.throttled_until = due

    async def until_closed() -> None:
        await Wait(lambda: connection.closed, client.deadline())

    driver.run(until_closed())
    assert driver.now() == pytest.approx(due + 10, abs=0.1)
    assert f"did not answer SaslAuthenticate within {10 + throttled} s" in str(connection.error)


class Mechanism(PlainClient):
    """One that fails, or blocks."""

    blocks = True
    error: Exception | None = None

    def respond(self, challenge: bytes) -> bytes | None:
        if self.error is not None:
            raise self.error
        return super().respond(challenge)


@pytest.mark.parametrize(("blocks", "error"), [(False, ValueError("hunter")), (True, OSError("hunter")), (True, None)])
def test_a_mechanism_may_be_anybodys(monkeypatch: pytest.MonkeyPatch, blocks: bool, error: Exception | None) -> None:
    threads: list[str] = []

    def run(work: Callable[[], None], name: str) -> None:
        threads.append(name)
        work()

    monkeypatch.setattr("tagwire.client.aside.run_aside", run)
    monkeypatch.setattr(Mechanism, "blocks", blocks)
    monkeypatch.setattr(Mechanism, "error", error)
    secured = Security(security_protocol="SASL_PLAINTEXT", sasl_mechanism=lambda host: Mechanism("alice", PASSWORD))
    cluster, driver, client = begun(secured)
    if error is None:
        driver.run(requested(client, 100, 0.1))
        assert renewals(cluster) == 1
    else:
        with pytest.raises(AuthenticationError, match=f"the mechanism raised {type(error).__name__}$"):
            driver.run(requested(client, 1, 0))
    assert bool(threads) == blocks


class Tokens:
    """A token callback by a made-up clock, and what becomes of it: `late` seconds after it was asked."""

    def __init__(self, driver: MemoryDriver, lifetime: float = 100.0) -> None:
        self.asked = 0
        self.late = 0.0
        self.error: Exception | None = None
        self._driver = driver
        self._lifetime = lifetime

    def __call__(self) -> OAuthToken:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return OAuthToken(f"alice-{self.asked}", self._driver.wall_clock() + self._lifetime)

    def run(self, work: Callable[[], None], name: str) -> None:
        self._driver.after(self.late, work)


def with_tokens(lifetime_s: float = LIFETIME, token: float = 100.0) -> tuple[Any, MemoryDriver, NetworkClient, Tokens]:
    secured = security("OAUTHBEARER", sasl_oauth_token=lambda: "never")
    cluster, driver, client = begun(secured, lifetime_s)
    tokens = Tokens(driver, token)
    login = TokenLogin(tokens, TokenRefresh(), clock=driver.wall_clock, run=tokens.run)
    object.__setattr__(secured, "login", login)
    return cluster, driver, client, tokens


def test_a_session_is_renewed_with_the_token_that_is_there_until_it_is_to_be_replaced() -> None:
    cluster, driver, client, tokens = with_tokens(token=100.0)
    driver.run(requested(client, 200, 0.5))
    assert renewals(cluster) == 10 or renewals(cluster) == 11
    assert tokens.asked == 2  # after 80 to 85 s


def test_requests_go_on_while_a_token_is_had_for_the_renewal() -> None:
    cluster, driver, client, tokens = with_tokens(token=9.0)
    connection = driver.run(requested(client, 1, 0))
    tokens.late = 0.5

    async def work() -> None:
        await sleep(connection.deadline + 0.1)
        assert connection.has_room
        await client.request(connection, messages.MetadataRequest(), client.deadline())
        assert renewals(cluster) == 0
        await Wait(lambda: renewals(cluster) == 1, client.deadline())

    driver.run(work())
    assert tokens.asked == 2


def test_in_the_last_half_second_of_a_session_nothing_is_asked_that_could_be_read_after_its_end() -> None:
    cluster, driver, client, tokens = with_tokens(token=9.0)
    connection = driver.run(requested(client, 1, 0))
    tokens.late = 3.0

    async def work() -> None:
        begins = connection.deadline  # a second before the end
        await sleep(begins + 0.4)
        assert connection.has_room
        await sleep(begins + 0.6)
        assert not connection.has_room
        await client.request(connection, messages.MetadataRequest(), client.deadline())

    driver.run(work())
    assert cluster.brokers[0].connections == 1
    assert [api for _, api, _, _ in cluster.seen][-3:] == ["SaslHandshake", "SaslAuthenticate", "Metadata"]


def test_after_the_sessions_end_requests_wait_for_the_token() -> None:
    cluster, driver, client, tokens = with_tokens(token=9.0)
    connection = driver.run(requested(client, 1, 0))
    tokens.late = 8.0

    async def work() -> None:
        await sleep(connection.deadline + 2)
        await client.request(connection, messages.MetadataRequest(), client.deadline())

    driver.run(work())
    assert cluster.brokers[0].connections == 1
    assert [api for _, api, _, _ in cluster.seen][-3:] == ["SaslHandshake", "SaslAuthenticate", "Metadata"]


@pytest.mark.parametrize(
    ("late", "error", "says"),
    [
        (0.1, TokenError("the token callback: no token"), "the token callback: no token"),
        (0.1, ValueError("hunter"), "the token callback raised ValueError"),
        (1000.0, None, "no token in time from the token callback"),
    ],
)
def test_without_a_token_the_session_ends_and_what_is_in_flight_is_lost(
    late: float, error: Exception | None, says: str
) -> None:
    cluster, driver, client, tokens = with_tokens(token=9.0)

    async def work() -> tuple[BrokerConnection, Any]:
        connection = await client.connection(None, client.deadline())
        tokens.late, tokens.error = late, error
        await sleep(connection.deadline - 0.1)
        cluster.script("Metadata", Silence())
        request = await client.put(connection, messages.MetadataRequest(), client.deadline())
        return connection, (await gather([request.response(client.deadline())], client.now))[0]

    connection, lost = driver.run(work())
    assert says in str(connection.error)
    assert isinstance(connection.error, TokenError if error else ConnectError)
    assert type(lost) is ConnectionLostError
    assert says in str(lost)
    assert "hunter" not in str(lost)


def test_one_token_is_had_for_connections_that_open_together() -> None:
    secured = security("OAUTHBEARER", sasl_oauth_token=lambda: "never")
    cluster = FakeCluster(5, sasl=SASL)
    driver = MemoryDriver(cluster)
    tokens = Tokens(driver)
    tokens.late = 1.0
    object.__setattr__(secured, "login", TokenLogin(tokens, TokenRefresh(), clock=driver.wall_clock, run=tokens.run))
    at = [("kafka-0", broker.port) for broker in cluster.brokers]
    client = NetworkClient(at, ConnectionSettings("core", security=secured), TIMEOUT, driver)

    async def work() -> list[Any]:
        await client.refresh([], client.deadline())
        return await gather([client.connection(node, client.deadline()) for node in range(5)], client.now)

    assert all(connection.is_ready for connection in driver.run(work()))
    assert tokens.asked == 1


def test_a_token_that_does_not_come_is_told_to_whoever_connects() -> None:
    _, driver, client, tokens = with_tokens()
    tokens.late = 1e6
    with pytest.raises(ConnectError, match="no token in time from the token callback"):
        driver.run(requested(client, 1, 0))


def test_a_session_counts_from_the_request_whenever_its_response_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy may read it when half of the session is over."""
    monkeypatch.setattr(memory_network, "LATENCY", 2.0)
    cluster, driver, client = begun()
    driver.run(requested(client, 10, 1.0))
    assert cluster.brokers[0].connections == 1
    assert renewals(cluster) > 0
    asked = [api for _, api, _, _ in cluster.seen if api != "Metadata"]
    assert asked.count("ApiVersions") == 2
