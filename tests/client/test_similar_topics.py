"""Whoever names a topic that does not exist is told which one looks like it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tagwire.client import EARLIEST, Admin, Client, Producer, Reader
from tagwire.errors import Error, KafkaError
from tests.client.fake_broker import FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("flights")
        one.topic("orders")
        yield one


CALLS: dict[str, Callable[[Client], object]] = {
    "a reader of the topic": lambda client: Reader(client, "flihgts"),
    "a reader of a partition": lambda client: Reader(client, ("flihgts", 0)),
    "a reader from an offset": lambda client: next(Reader(client, {("flihgts", 0): 5})),
    "its offsets": lambda client: client.list_offsets({"flihgts": EARLIEST}),
    "an administrator": lambda client: Admin(client).describe_producers("flihgts"),
    "a producer": lambda client: Producer(client, max_block=0.3).send("flihgts", b"v"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_topic_that_does_not_exist_is_told_with_the_one_that_looks_like_it(
    cluster: FakeCluster, call: Callable[[Client], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.client.network_client.UNKNOWN_TOPIC_PATIENCE", 0.0)
    told = r"topic 'flihgts'\. Did you mean 'flights'\?$"
    with Client(cluster.bootstrap, timeout=5) as client, pytest.raises(KafkaError, match=told) as caught:
        call(client)
    assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_looks_like_none_is_told_alone(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagwire.client.network_client.UNKNOWN_TOPIC_PATIENCE", 0.0)
    with Client(cluster.bootstrap, timeout=5) as client, pytest.raises(KafkaError, match=r"topic 'missing'$"):
        Reader(client, "missing")
