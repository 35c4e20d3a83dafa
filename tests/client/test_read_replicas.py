"""The replica that a leader prefers is fetched from (KIP-392), for a while, and never without a way back."""

from __future__ import annotations

import pytest

from tagwire.client.config import parse
from tagwire.client.fetch_positions import FetchPosition
from tagwire.client.reader_settings import settings_of
from tagwire.errors import ConfigError, Error, RemoteProtocolError

from .fetching_in_memory import T0, Brokers, Fetching
from .logs import fill

MAX_AGE = 60.0


@pytest.fixture
def cluster() -> Brokers:
    """Broker 0 leads the only partition, brokers 1 and 2 follow."""
    cluster = Brokers(3)
    fill(cluster.topic("t")[0], 3)
    cluster.followed = {0}
    return cluster


def near(cluster: Brokers) -> Fetching:
    return Fetching(cluster, [FetchPosition(T0, 0)], rack="r1", metadata_max_age=MAX_AGE)


def test_the_preferred_replica_is_fetched_from_and_after_a_while_asked_for_again(cluster: Brokers) -> None:
    cluster.replicas[0] = 2
    fetching = near(cluster)
    assert fetching.offsets(30) == list(range(30))
    fetching.run(seconds=0.2)
    assert cluster.sources(0)[:3] == [0, 2, 2]
    assert {message.rack_id for message in cluster.requests("Fetch")} == {"r1"}
    before = len(cluster.sources(0))
    fetching.run(seconds=MAX_AGE)
    assert cluster.sources(0)[before:].count(0) == 1
    assert cluster.sources(0)[-1] == 2


def test_without_a_rack_the_leader_is_fetched_from(cluster: Brokers) -> None:
    cluster.replicas[0] = 2
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    assert fetching.offsets(30) == list(range(30))
    assert set(cluster.sources(0)) == {0}


@pytest.mark.parametrize("error", [Error.OFFSET_OUT_OF_RANGE, Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_SERVER_ERROR])
def test_a_follower_that_refuses_is_left_for_the_leader_at_once(cluster: Brokers, error: Error) -> None:
    cluster.replicas[0] = 2
    fetching = near(cluster)
    fetching.run(lambda: cluster.sources(0) == [0, 2])
    assert fetching.offsets(30) == list(range(30))
    del cluster.replicas[0]

    def refused(message: object) -> object:
        response = cluster._Fetch(message, 0)
        entry = response.responses[0].partitions[0]
        entry.error_code, entry.records = error, b""
        return response

    before = len(cluster.sources(0))
    cluster.script("Fetch", refused)
    fill(cluster.topics["t"][0], 1)
    fetching.run(lambda: len(cluster.sources(0)) == before + 2)
    assert cluster.sources(0)[before:] == [2, 0]
    assert fetching.offsets(10) == list(range(30, 40))
    assert not fetching.errors


def test_a_follower_that_is_away_is_left_for_the_leader(cluster: Brokers) -> None:
    cluster.replicas[0] = 2
    fetching = near(cluster)
    fetching.driver.unreachable.add("kafka-2")
    assert fetching.offsets(30, seconds=60) == list(range(30))
    assert set(cluster.sources(0)) == {0}
    assert not fetching.errors


def test_a_replica_that_does_not_exist_is_not_waited_for(cluster: Brokers) -> None:
    cluster.replicas[0] = 7
    fetching = near(cluster)
    began = fetching.driver.now()
    assert fetching.offsets(30) == list(range(30))
    assert fetching.driver.now() - began < 1
    assert set(cluster.sources(0)) == {0}
    assert len(cluster.requests("Metadata")) < 5


def test_a_replica_that_moves_at_every_response_ends_at_the_leader(cluster: Brokers) -> None:
    def elsewhere(message: object) -> object:
        node = cluster.seen[-1][0]
        response = cluster._Fetch(message, node)
        if message.rack_id:  # type: ignore[attr-defined]
            entry = response.responses[0].partitions[0]
            entry.preferred_read_replica, entry.records = (node + 1) % 3, b""
        return response

    cluster.script("Fetch", *[elsewhere] * 1000)
    fetching = near(cluster)
    assert fetching.offsets(30) == list(range(30))
    assert cluster.sources(0)[:3] == [0, 1, 0]
    assert [message.rack_id for message in cluster.requests("Fetch")][:3] == ["r1", "r1", ""]
    before = len(cluster.sources(0))
    fetching.run(seconds=MAX_AGE - 5)
    assert set(cluster.sources(0)[before:]) == {0}


def test_a_leader_that_names_a_replica_to_who_has_no_rack_is_told_on(cluster: Brokers) -> None:
    def elsewhere(message: object) -> object:
        response = cluster._Fetch(message, 0)
        entry = response.responses[0].partitions[0]
        entry.preferred_read_replica, entry.records = 1, b""
        return response

    cluster.script("Fetch", *[elsewhere] * 1000)
    fetching = near(cluster)
    error = fetching.error()
    assert isinstance(error, RemoteProtocolError)
    assert "wants t-0 to be fetched from broker 1, and gives no records, though it was told of no rack" in str(error)
    fetching.run(seconds=3)
    assert len(cluster.sources(0)) < 12
    cluster._scripts["Fetch"].clear()
    assert fetching.offsets(30) == list(range(30))


def test_a_new_leader_is_asked_for_its_own_preference(cluster: Brokers) -> None:
    cluster.replicas[0] = 2
    fetching = near(cluster)
    assert fetching.offsets(30) == list(range(30))
    cluster.topics["t"][0].leader, cluster.topics["t"][0].epoch = 1, 1
    cluster.replicas[0] = 0
    fetching.network.forget({"t"})
    fetching.run(lambda: 1 in cluster.sources(0))
    fill(cluster.topics["t"][0], 1)
    assert fetching.offsets(10) == list(range(30, 40))
    assert cluster.sources(0)[cluster.sources(0).index(1) + 1] == 0


def test_a_reader_is_told_its_rack_by_option_or_by_property() -> None:
    defaults = parse({"bootstrap.servers": "kafka-1:9092", "client.rack": "a", "metadata.max.age.ms": "1500"}).fetch
    assert (defaults.rack, defaults.metadata_max_age) == ("a", 1.5)
    assert settings_of(defaults, {})[0] == defaults
    assert settings_of(defaults, {"rack": "b", "metadata_max_age": 2})[0].rack == "b"
    with pytest.raises(ConfigError, match="rack: needs the rack's name as text"):
        settings_of(defaults, {"rack": 3})
    with pytest.raises(ConfigError, match="metadata_max_age=-1: needs a number from 0 on"):
        settings_of(defaults, {"metadata_max_age": -1})
