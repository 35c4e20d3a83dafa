"""Sessions that end after three seconds at Kafka's own broker: our clients outlive ten of them by every mechanism."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tagwire.client import Admin, Client, ClientCredentials, Consumer, NewTopic, OAuthToken, Producer, Reader
from tagwire.client.aio import AsyncClient, AsyncConsumer, AsyncProducer
from tagwire.errors import AuthenticationError
from tagwire.rpc import OAuthBearerClient

from ..certificates import Certificates
from ..token_endpoint import CLIENT_ID, CLIENT_SECRET, TokenEndpoint
from .conftest import Count, Programs
from .real_broker import RELEASE, RELEASES
from .real_node import PASSWORD, PROTECTED, USER, RealNode, free_ports

SESSION_MS = 3000
RENEWALS = 10
PATIENCE = 60.0

# Kafka asks a key set of http only where the program's options name its address.
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"

BEARER = "org.apache.kafka.common.security.oauthbearer"
SETTINGS = """
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BEARER:SASL_PLAINTEXT,{protected}
connections.max.reauth.ms={session}
listener.name.bearer.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.bearer.oauthbearer.sasl.jaas.config={bearer}.OAuthBearerLoginModule required;
listener.name.bearer.oauthbearer.sasl.server.callback.handler.class={bearer}.OAuthBearerValidatorCallbackHandler
sasl.oauthbearer.jwks.endpoint.url={url}/jwks
sasl.oauthbearer.expected.audience=kafka
sasl.oauthbearer.expected.issuer=tests
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[TokenEndpoint]:
    """Tokens that live for a few sessions: they are replaced, too."""
    with TokenEndpoint(lifetime=12.0).listening() as listening:
        yield listening


@pytest.fixture(scope="module", params=[RELEASE, pytest.param(RELEASES[-1], marks=pytest.mark.nightly)])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def forgetful(
    release: str,
    endpoint: TokenEndpoint,
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
    programs: Programs,
) -> Iterator[RealNode]:
    """A broker whose sessions end, with a listener for bearer tokens beside the others."""
    jars = programs(release).jars
    node = RealNode.alone(tmp_path_factory.mktemp("forgetful"), certificates)
    node.ports = {**node.ports, "BEARER": free_ports(1)[0]}
    protected = ",".join(f"{name}:{protocol}" for name, protocol in PROTECTED.items())
    node.settings = SETTINGS.format(bearer=BEARER, protected=protected, session=SESSION_MS, url=endpoint.url)
    node.options = (f"{ALLOWED}={endpoint.url}/jwks",)
    node.format(jars)
    with node.running(jars):
        yield node


def login(mechanism: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
        "timeout": 20,
    }


def bearer(token: Any) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token": token,
        "timeout": 20,
    }


def credentials(endpoint: TokenEndpoint) -> ClientCredentials:
    return ClientCredentials(f"{endpoint.url}/token", CLIENT_ID, CLIENT_SECRET)


def renewed(*metrics: Any) -> int:
    """The fewest renewals of any of these clients; none has lost a connection, or had one refused."""
    told = [values for groups in metrics for values in groups.values() if "connection-count" in values]
    for values in told:
        lost = {name: values[f"{name}-total"] for name in ("failed-reauthentication", "connection-close")}
        assert not any(lost.values()), (lost, values["reauthentication-latency-max"])
    return min(int(values["successful-reauthentication-total"]) for values in told)


def lived_through(address: str, topic: str, options: dict[str, Any]) -> int:
    """Transactions and a member of a group, until both have been renewed so often; how many records went through."""
    sent, read = 0, []
    until = time.monotonic() + PATIENCE
    with Client(address, **options) as client:
        Admin(client).create_topics([NewTopic(topic)])
        with (
            Producer(client, transactional_id=topic) as producer,
            Consumer(client, group=topic, offset_reset="earliest", isolation="read_committed") as consumer,
        ):
            producer.init_transactions()
            consumer.subscribe(topic)
            while time.monotonic() < until and renewed(producer.metrics(), consumer.metrics()) < RENEWALS:
                with producer.transaction():
                    for _ in range(5):
                        producer.send(topic, b"%d" % sent)
                        sent += 1
                read += [record.value for record in consumer.poll(0.05)]
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until and len(read) < sent:
                read += [record.value for record in consumer.poll(0.2)]
            assert renewed(producer.metrics(), consumer.metrics()) >= RENEWALS
    assert read == [b"%d" % number for number in range(sent)]
    return sent


async def lived_through_in_a_loop(address: str, topic: str, options: dict[str, Any]) -> int:
    """The same for asyncio."""
    sent, read = 0, []
    until = time.monotonic() + PATIENCE
    async with (
        AsyncClient(address, **options) as client,
        AsyncProducer(client, transactional_id=topic) as producer,
        AsyncConsumer(client, group=topic, offset_reset="earliest", isolation="read_committed") as consumer,
    ):
        await producer.init_transactions()
        await consumer.subscribe(topic)
        while time.monotonic() < until and renewed(producer.metrics(), consumer.metrics()) < RENEWALS:
            async with producer.transaction():
                for _ in range(5):
                    await producer.send(topic, b"%d" % sent)
                    sent += 1
            read += [record.value for record in await consumer.poll(0.05)]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and len(read) < sent:
            read += [record.value for record in await consumer.poll(0.2)]
        assert renewed(producer.metrics(), consumer.metrics()) >= RENEWALS
    assert read == [b"%d" % number for number in range(sent)]
    return sent


def test_transactions_and_groups_live_through_ten_renewals_by_every_mechanism(
    forgetful: RealNode, release: str, endpoint: TokenEndpoint, count: Count
) -> None:
    asked, before = 0, len(endpoint.requests)

    async def token() -> OAuthToken:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return OAuthToken(endpoint.token())

    with Client(forgetful.address()) as client:
        Admin(client).create_topics([NewTopic("asyncio")])
    with ThreadPoolExecutor(4) as threads:
        works = {
            mechanism: threads.submit(lived_through, forgetful.address("LOGIN"), mechanism, login(mechanism))
            for mechanism in ("PLAIN", "SCRAM-SHA-512")
        }
        address = forgetful.address("BEARER")
        works["OAUTHBEARER"] = threads.submit(lived_through, address, "OAUTHBEARER", bearer(credentials(endpoint)))
        looped = lived_through_in_a_loop(address, "asyncio", bearer(token))
        works["OAUTHBEARER, asyncio"] = threads.submit(asyncio.run, looped)
        for name, work in works.items():
            count(f"{RENEWALS} sessions of Kafka {release} by {name}: {work.result()} records in transactions")
    # Shared by connections, and asked for as they end.
    assert 2 <= len(endpoint.requests) - before <= 8
    assert 2 <= asked <= 8


def test_a_token_for_another_audience_is_refused_and_not_told(forgetful: RealNode, endpoint: TokenEndpoint) -> None:
    token = endpoint.token(aud="elsewhere")
    with (
        Client(forgetful.address("BEARER"), **bearer(lambda: token)) as client,
        pytest.raises(AuthenticationError, match="invalid_token") as caught,
    ):
        client.metadata()
    assert token.rpartition(".")[2] not in str(caught.value)


def test_somebody_else_is_refused_on_a_connection_in_use(forgetful: RealNode, endpoint: TokenEndpoint) -> None:
    tokens = iter([endpoint.token(), endpoint.token(sub="bob"), endpoint.token(sub="bob")])

    def exchange(host: str) -> OAuthBearerClient:
        return OAuthBearerClient(next(tokens))

    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": exchange, "timeout": 20}
    with Client(forgetful.address("BEARER"), **options) as client:
        client.metadata()
        until = time.monotonic() + 5
        while time.monotonic() < until and client.metrics()["client-metrics"]["connection-close-total"] == 0:
            client.metadata()
        values = client.metrics()["client-metrics"]
    assert values["failed-reauthentication-total"] == 1
    assert values["connection-close-total"] == 1


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_spark_stream_goes_on_through_ten_sessions(forgetful: RealNode, tmp_path: Path, count: Count) -> None:
    pytest.importorskip("pyspark")
    from tagwire.spark.session import session

    login = {
        "bootstrap.servers": forgetful.address("LOGIN"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    options = {f"kafka.{name}": value for name, value in login.items()}
    sent = 0
    with Admin(login) as admin:
        admin.create_topics([NewTopic("spark-from", num_partitions=2), NewTopic("spark-to")])
    with session(tmp_path / "spark.log") as spark, Producer(login) as producer:
        source = spark.readStream.format("tagwire").options(**options, startingOffsets="earliest")
        query = (
            source.option("subscribe", "spark-from")
            .load()
            .select("key", "value")
            .writeStream.format("tagwire")
            .options(**options, topic="spark-to", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(processingTime="300 milliseconds")
            .start()
        )
        try:
            until = time.monotonic() + (RENEWALS + 1) * SESSION_MS / 1000
            while query.isActive and (time.monotonic() < until or not query.recentProgress):
                producer.send("spark-from", b"%d" % sent).result(20)
                sent += 1
                time.sleep(0.05)  # the sessions' ends are real
            query.processAllAvailable()
            batches = query.lastProgress["batchId"]
        finally:
            query.stop()
        assert query.exception() is None
    with Reader(login, "spark-to", stop_at_end=True) as reader:
        assert sorted(int(record.value) for record in reader.records()) == list(range(sent))
    count(f"a Spark stream through {RENEWALS} sessions: {sent} records in {batches} micro-batches")
