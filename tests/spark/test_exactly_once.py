"""Exactly once against the embedded broker, and what needs no broker, or one of its own."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic
from tagwire.errors import ConfigError
from tagwire.spark.sink.decisions import TOPIC, TopicUnfitError
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter
from tagwire.spark.sink.options import parse

from .exactly_once_query import SCHEMA, Query
from .exactly_once_stories import ExactlyOnceStories


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(tmp_path_factory.mktemp("broker"), fsync="never") as broker:
        yield broker.bootstrap


@pytest.fixture
def query(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query.new(bootstrap, monkeypatch)


class TestEmbedded(ExactlyOnceStories):
    """The stories of a broker in this process."""


def test_decisions_are_kept_where_reading_them_all_stays_cheap(query: Query) -> None:
    query.run(0, [b"a"])
    with Admin(query.bootstrap) as admin:
        (configs,) = admin.describe_configs([("topic", TOPIC)]).values()
    told = {name: configs[name].value for name in ("cleanup.policy", "segment.bytes", "min.cleanable.dirty.ratio")}
    assert told == {"cleanup.policy": "compact", "segment.bytes": str(4 << 20), "min.cleanable.dirty.ratio": "0.1"}


def test_a_topic_of_decisions_that_forgets_is_refused() -> None:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, num_partitions=1)])
        with pytest.raises(TopicUnfitError, match=r"cleanup\.policy=delete"):
            pickle.dumps(writer(broker.bootstrap, exactlyOnceId="q"))


def test_a_name_is_read_from_the_checkpoint_by_the_driver_alone(query: Query, tmp_path: Path) -> None:
    """Executors may see other disks."""
    (tmp_path / "metadata").write_text(json.dumps({"id": query.own_id}))
    pickled = pickle.dumps(writer(query.bootstrap, topic=query.topic, checkpointLocation=str(tmp_path)))
    (tmp_path / "metadata").unlink()
    query.commit(0, [query.attempt(pickled, 0, [b"a"])])
    assert query.seen() == [b"a"]


def test_a_query_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="option exactlyOnceId: missing"):
        pickle.dumps(writer("127.0.0.1:1", exactlyOnce="true"))


def test_making_a_writer_asks_nobody_anything() -> None:
    writer("127.0.0.1:1", exactlyOnceId="q")


def writer(bootstrap: str, **options: str) -> ExactlyOnceWriter:
    return ExactlyOnceWriter(parse({"kafka.bootstrap.servers": bootstrap, "topic": "t", **options}), SCHEMA)
