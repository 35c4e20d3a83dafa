"""What may die when a query is written exactly once, told against Apache Kafka with both protocols of transactions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tagwire.client import Client
from tagwire.spark.sink import driver

from ..spark.exactly_once_query import Query
from ..spark.exactly_once_stories import ExactlyOnceStories
from .conftest import Programs
from .real_node import RealNode

CLUSTERS = {
    "3.9.2": ("3.9.2", (), 0),
    "4.3.1 at transaction.version 1": ("4.3.1", ("transaction.version=1",), 1),
    "4.3.1": ("4.3.1", (), 2),
}
"""Release, features that are not at its own level, and the transaction.version that this makes."""


@pytest.fixture(scope="module", params=CLUSTERS)
def node(
    request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNode]:
    release, features, version = CLUSTERS[request.param]
    jars = programs(release).jars
    node = RealNode.alone(tmp_path_factory.mktemp("kafka"))
    node.format(jars, features)
    with node.running(jars):
        with Client(node.address()) as client:
            client.versions()
            assert client.finalized_features().get("transaction.version", 0) == version
        yield node


@pytest.fixture
def query(node: RealNode, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query.new(node.address(), monkeypatch)


class TestKafka(ExactlyOnceStories):
    """The stories of every release."""


def test_a_coordinator_that_restarts_in_the_middle_of_a_commit_is_asked_again(
    query: Query, node: RealNode, programs: Programs, request: pytest.FixtureRequest
) -> None:
    jars = programs(CLUSTERS[request.node.callspec.params["node"]][0]).jars
    messages = query.tasks(0, [b"a"], [b"b"], [b"c"])
    end = driver._end
    ended: list[Any] = []

    def restarting(client: Client, transaction: Any, *, commit: bool) -> None:
        if len(ended) == 1:
            node.kill()
            threading.Timer(1, lambda: node.start(jars)).start()
        ended.append(transaction)
        end(client, transaction, commit=commit)

    query.monkeypatch.setattr(driver, "_end", restarting)
    query.commit(0, messages)
    query.monkeypatch.setattr(driver, "_end", end)
    assert len(ended) == 3
    query.run(1, [b"d"])
    assert query.seen() == [b"a", b"b", b"c", b"d"]
