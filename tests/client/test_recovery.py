"""What brokers ask of a client besides: to pause (KIP-219), to find the cluster anew (KIP-1102), to know features."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client, Reader
from tagwire.errors import ConnectionLostError, Error, KafkaError, RequestTimeoutError, TagwireError

from .fake_broker import SERVED, Close, FakeCluster, Silence
from .logs import fill, offsets

NEWEST = {**SERVED, 3: (0, 13), 1: (4, 18)}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(served=NEWEST) as one:
        yield one


@pytest.fixture
def pair() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2, served=NEWEST) as two:
        yield two


def metadata(client: Client) -> str | None:
    cluster_id: str | None = client.request(messages.MetadataRequest(topics=None)).cluster_id
    return cluster_id


def throttled(milliseconds: int) -> Any:
    return lambda _: messages.MetadataResponse(throttle_time_ms=milliseconds)


# Throttling ---------------------------------------------------------------------------------------------------------


def test_a_client_is_silent_for_as_long_as_it_is_asked_to(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        cluster.script("Metadata", throttled(400))
        metadata(client)
        before = time.monotonic()
        assert metadata(client) == "fake"
    assert time.monotonic() - before > 0.35


def test_a_pause_longer_than_the_timeout_is_an_error_and_nothing_is_sent(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=5) as client:
        cluster.script("Metadata", throttled(2**31 - 1))
        metadata(client)
        says = r"broker at .* throttles requests for 2147483\.\d s more; Metadata cannot wait"
        with pytest.raises(RequestTimeoutError, match=says):
            metadata(client)
    assert len(cluster.requests("Metadata")) == 1


def test_versions_in_which_the_broker_has_paused_already_cost_no_second_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCluster(served={**SERVED, 3: (0, 5)}) as cluster, Client(cluster.bootstrap, timeout=5) as client:
        cluster.script("Metadata", throttled(60_000))
        metadata(client)
        assert metadata(client) == "fake"


def test_the_pause_holds_for_the_broker_that_asked_for_it(pair: FakeCluster) -> None:
    with Client(pair.bootstrap, timeout=5) as client:
        client.metadata()
        pair.script("Metadata", throttled(60_000))
        client.request(messages.MetadataRequest(topics=None), node=0)
        assert client.request(messages.MetadataRequest(topics=None), node=1).cluster_id == "fake"


def test_a_reader_reads_from_others_while_one_broker_is_to_be_left_alone(pair: FakeCluster) -> None:
    for log in pair.topic("t", 2):
        fill(log, 3)

    def throttle(message: Any) -> Any:
        answer = pair.respond("Fetch", message, 0 if message.topics[0].partitions[0].partition == 0 else 1)
        answer.throttle_time_ms = 50
        return answer

    pair.script("Fetch", throttle, throttle)
    limit = len(pair.topics["t"][0].batches[0][2])
    starts = {("t", index): 0 for index in range(2)}
    with Reader(pair.bootstrap, starts, stop_at_end=True, max_partition_bytes=limit) as reader:
        assert offsets(reader) == {("t", index): list(range(30)) for index in range(2)}


def test_a_reader_does_not_wait_for_ever_for_a_broker_that_wants_to_be_left_alone(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    cluster.script("Fetch", lambda _: messages.FetchResponse(throttle_time_ms=2**31 - 1))
    with (
        Client(cluster.bootstrap, timeout=5) as client,
        pytest.raises(RequestTimeoutError, match="throttles requests"),
    ):
        next(Reader(client, {("t", 0): 0}, max_wait_ms=0))


# Another cluster ----------------------------------------------------------------------------------------------------


def test_a_broker_that_asks_for_it_has_the_cluster_found_anew(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.request(messages.MetadataRequest(topics=None), node=1)
        before = [broker.connections for broker in pair.brokers]
        pair.script("Metadata", lambda _: messages.MetadataResponse(error_code=Error.REBOOTSTRAP_REQUIRED))
        assert client.metadata().cluster_id == "fake"
    assert [broker.connections for broker in pair.brokers] == [before[0] + 1, before[1]]


def test_a_cluster_that_sends_everybody_away_is_an_error(cluster: FakeCluster) -> None:
    cluster.script("Metadata", *[lambda _: messages.MetadataResponse(error_code=Error.REBOOTSTRAP_REQUIRED)] * 100)
    with (
        Client(cluster.bootstrap, timeout=1) as client,
        pytest.raises(ConnectionLostError, match="REBOOTSTRAP_REQUIRED"),
    ):
        client.metadata()
    assert len(cluster.requests("Metadata")) < 30


def test_brokers_of_the_cluster_are_told_whom_they_are_taken_for(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.metadata()
        client.request(messages.MetadataRequest(topics=None), node=1)
    assert [(asked.cluster_id, asked.node_id) for asked in pair.requests("ApiVersions")] == [(None, -1), ("fake", 1)]


def test_a_broker_that_is_another_one_than_was_meant_has_the_cluster_found_anew(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.metadata()
        pair.script("ApiVersions", lambda _: messages.ApiVersionsResponse(error_code=Error.REBOOTSTRAP_REQUIRED))
        with pytest.raises(ConnectionLostError, match=r"broker 1 at .*REBOOTSTRAP_REQUIRED"):
            client.request(messages.MetadataRequest(topics=None), node=1)
        assert client.request(messages.MetadataRequest(topics=None), node=1).cluster_id == "fake"


# Features -----------------------------------------------------------------------------------------------------------


def test_the_features_of_the_cluster_are_those_of_the_highest_epoch_heard_of(pair: FakeCluster) -> None:
    kind = messages.ApiVersionsResponse

    def answer(epoch: int, level: int) -> Any:
        entries = [kind.ApiVersion(api_key=api, min_version=low, max_version=up) for api, (low, up) in SERVED.items()]
        feature = kind.FinalizedFeatureKey(name="f", max_version_level=level, min_version_level=level)
        return lambda _: kind(api_keys=entries, finalized_features_epoch=epoch, finalized_features=[feature])

    with Client(pair.bootstrap) as client:
        assert client.finalized_features() == {}
        pair.script("ApiVersions", answer(7, 2), answer(5, 1))
        client.metadata()
        client.request(messages.MetadataRequest(topics=None), node=1)
        assert client.finalized_features() == {"f": 2}
        assert client.features(node=1).finalized == {"f": 1}


# Connections that end: the rules of Kafka's NetworkClient ------------------------------------------------------------


def test_a_refused_apiversions_ends_the_connection_and_the_next_request_asks_anew(cluster: FakeCluster) -> None:
    cluster.script("ApiVersions", lambda _: messages.ApiVersionsResponse(error_code=Error.INVALID_REQUEST))
    with Client(cluster.bootstrap) as client:
        with pytest.raises(KafkaError, match=r"INVALID_REQUEST \(42\): broker at .* refused ApiVersions v5"):
            client.metadata()
        assert metadata(client) == "fake"
    assert cluster.brokers[0].connections == 2
    assert cluster.requested_versions("ApiVersions") == [5, 5]


@pytest.mark.parametrize(
    ("actions", "kind"), [([Close()], ConnectionLostError), ([Silence(), Silence()], RequestTimeoutError)]
)
def test_all_that_is_under_way_on_a_connection_ends_with_it(
    cluster: FakeCluster, actions: list[Any], kind: type[TagwireError]
) -> None:
    with Client(cluster.bootstrap, timeout=1.5) as client:
        network = client.network
        deadline = network.deadline()
        connection = network.connection(None, deadline)
        cluster.script("Metadata", None, *actions)
        sent = [connection.send(messages.MetadataRequest(topics=None)) for _ in range(3)]
        assert network.run(sent[0].response(deadline)).cluster_id == "fake"
        for request in sent[1:]:
            with pytest.raises(kind):
                network.run(request.response(deadline))
        assert connection.closed
        assert all(request.done for request in sent)
        assert metadata(client) == "fake"
    assert cluster.brokers[0].connections == 2


def test_what_was_learned_of_versions_is_forgotten_with_the_connection(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        assert client.versions()[3] == (0, 13)
        cluster.brokers[0].stop()
        cluster.served[3] = (0, 5)
        cluster.brokers[0].start()
        assert client.versions()[3] == (0, 5)
