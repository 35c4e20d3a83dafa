"""Topics that are made anew and leaders that change under a reader: found again, by what brokers tell or by asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from tagwire.client import Admin, Client, Reader, TopicPartition
from tagwire.errors import Error, KafkaError

from .fake_broker import SERVED, FakeCluster
from .logs import fill, offsets
from .test_reader_failures import fetch_error


def leader_of(client: Client) -> int:
    """The node that leads the partition, as last heard or asked now."""
    network = client.network
    return network.run(network.core.partition(TopicPartition("t", 0), network.deadline())).leader


@pytest.fixture
def pair() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2, served={**SERVED, 1: (4, 18)}) as two:
        yield two


def one_at_a_time(cluster: FakeCluster, **options: Any) -> Reader:
    limit = len(cluster.topics["t"][0].batches[0][2])
    settings = {"stop_at_end": True, "max_partition_bytes": limit, "batch_rows": 10, **options}
    return Reader(cluster.bootstrap, {("t", 0): 0}, **settings)


def test_topics_are_fetched_by_their_ids(pair: FakeCluster) -> None:
    fill(pair.topic("t")[0], 2)
    with Reader(pair.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): list(range(20))}
    assert {(topic.topic, topic.topic_id) for message in pair.requests("Fetch") for topic in message.topics} == {
        ("", pair.ids["t"])
    }


@pytest.mark.parametrize("refusal", ["UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"])
def test_a_topic_with_another_id_is_asked_about_and_read_on(pair: FakeCluster, refusal: str) -> None:
    fill(pair.topic("t")[0], 4)
    with one_at_a_time(pair) as reader:
        next(reader)
        pair.ids["t"] = UUID(int=77)
        if refusal == "INCONSISTENT_TOPIC_ID":
            pair.script("Fetch", fetch_error(Error.INCONSISTENT_TOPIC_ID))
        assert offsets(reader) == {("t", 0): list(range(10, 40))}
    assert pair.requests("Fetch")[-1].topics[0].topic_id == UUID(int=77)


def test_a_leader_epoch_that_is_old_is_asked_about(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    fill(log, 4)
    log.epoch = 5
    with one_at_a_time(pair) as reader:
        next(reader)
        log.epoch = 6
        assert offsets(reader) == {("t", 0): list(range(10, 40))}
    epochs = [message.topics[0].partitions[0].current_leader_epoch for message in pair.requests("Fetch")]
    assert epochs == sorted(epochs)
    assert set(epochs) == {5, 6}


def test_a_broker_that_lags_behind_a_leader_epoch_is_waited_for(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    fill(log, 4)
    log.epoch = 5
    with Client(pair.bootstrap, timeout=5) as client:
        reader = Reader(client, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=1, batch_rows=10)
        next(reader)
        pair.script("Fetch", *[fetch_error(Error.UNKNOWN_LEADER_EPOCH)] * 3)
        assert offsets(reader) == {("t", 0): list(range(10, 40))}


def test_metadata_of_an_older_leader_epoch_is_not_believed(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    log.epoch = 5
    with Client(pair.bootstrap) as client:
        client.metadata(["t"])
        log.epoch, log.leader = 4, 1
        client.metadata(["t"])
        assert leader_of(client) == 0
        log.epoch = 6
        client.metadata(["t"])
        assert leader_of(client) == 1


def test_a_topic_made_anew_may_begin_with_a_lower_leader_epoch(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    log.epoch = 5
    with Client(pair.bootstrap) as client:
        client.metadata(["t"])
        log.epoch, log.leader, pair.ids["t"] = 0, 1, UUID(int=77)
        client.metadata(["t"])
        assert leader_of(client) == 1


def test_a_leader_that_the_refusal_names_is_followed_at_once_without_asking(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    fill(log, 6)
    log.epoch, pair.endpoints = 3, True
    with one_at_a_time(pair) as reader:
        next(reader)
        requests = len(pair.requests("Metadata"))
        log.leader, log.epoch = 1, 4
        assert offsets(reader) == {("t", 0): list(range(10, 60))}
        assert len(pair.requests("Metadata")) == requests
    assert {node for node, api, _, _ in pair.seen if api == "Fetch"} == {0, 1}


def test_a_leader_named_by_an_epoch_that_is_known_already_is_no_news(pair: FakeCluster) -> None:
    log = pair.topic("t")[0]
    fill(log, 2)
    log.epoch, pair.endpoints = 3, True
    with Client(pair.bootstrap, timeout=2) as client:
        reader = Reader(client, {("t", 0): 0}, max_wait_ms=1)
        next(reader)
        log.leader = 1  # and its metadata still say so, by the same epoch
        fill(log, 1)
        assert next(reader).num_rows == 10
        pair.script("Fetch", *[fetch_error(Error.NOT_LEADER_OR_FOLLOWER)] * 500)
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            next(reader)
    assert len(pair.requests("Fetch")) < 60


@pytest.mark.parametrize("asks", ["list_offsets", "reset", "ends"])
def test_offsets_are_asked_of_the_leader_of_the_epoch_that_is_known(pair: FakeCluster, asks: str) -> None:
    log = pair.topic("t")[0]
    fill(log, 4)
    log.epoch = 5
    at = TopicPartition("t", 0)
    with Client(pair.bootstrap) as client:
        client.metadata(["t"])
        log.epoch = 6
        if asks == "list_offsets":
            assert client.list_offsets({at: "latest"}) == {at: 40}
        elif asks == "reset":
            reader = Reader(client, {at: 100}, stop_at_end=False, offset_reset="earliest")
            assert next(reader).column("offset")[0].as_py() == 0
        else:
            assert Admin(client).partition_ends("t")[at].offset == 40
    epochs = [message.topics[0].partitions[0].current_leader_epoch for message in pair.requests("ListOffsets")]
    assert -1 not in epochs
    assert epochs[-1] == log.epoch
