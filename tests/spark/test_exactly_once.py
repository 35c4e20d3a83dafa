"""Exactly once against the embedded broker, and what needs no broker, or one of its own."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.cloudpickle import dumps, loads

from tagwire.broker import Broker
from tagwire.broker.transactions import coordinator, transaction
from tagwire.client import Admin, NewTopic
from tagwire.errors import ConfigError, UnsupportedVersionError
from tagwire.spark.sink.decisions import TOPIC, TopicUnfitError
from tagwire.spark.sink.driver import UndecidedError
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter
from tagwire.spark.sink.options import parse
from tagwire.spark.source.topic import TopicDataSource

from .exactly_once_query import SCHEMA, Query
from .exactly_once_stories import ExactlyOnceStories

DUPLICATES = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), lambda one: loads(dumps(one))]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(tmp_path_factory.mktemp("broker"), fsync="never") as broker:
        yield broker.bootstrap


@pytest.fixture
def query(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query.new(bootstrap, monkeypatch)


class TestEmbedded(ExactlyOnceStories):
    """The stories of a broker in this process."""


@pytest.mark.parametrize("last_epoch", [0, 1, 2])
def test_a_newer_driver_with_another_producer_id_has_overtaken_as_any_other(
    monkeypatch: pytest.MonkeyPatch, last_epoch: int
) -> None:
    """Epochs of a producer id are used up, after a few instead of tens of thousands of micro-batches."""
    for module in (coordinator, transaction):
        monkeypatch.setattr(module, "LAST_EPOCH", last_epoch)
    stories = ExactlyOnceStories()
    with Broker(fsync="never") as broker:
        stories.test_of_two_drivers_of_one_query_the_older_cannot_decide(Query.new(broker.bootstrap, monkeypatch))
        query = Query.new(broker.bootstrap, monkeypatch)
        stories.test_a_driver_that_is_overtaken_once_it_has_decided_finds_nothing_lost(query, monkeypatch, False)


def test_what_was_decided_in_transactions_of_version_2_waits_for_brokers_that_have_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Broker(tmp_path, fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        query.decided_only(0, [b"a"], [b"b"])
    with Broker(tmp_path, fsync="never", as_release="3.9") as broker:
        query.bootstrap = broker.bootstrap
        for _ in range(2):
            with pytest.raises(UnsupportedVersionError, match="a transaction of version 2 needs v5"):
                query.planned()
        assert query.seen() == []
    with Broker(tmp_path, fsync="never") as broker:
        query.bootstrap = broker.bootstrap
        query.run(0, [b"a", b"b"])
        query.run(1, [b"c"])
        assert query.seen() == [b"a", b"b", b"c"]


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
            writer(broker.bootstrap, exactlyOnceId="q").prepare()


def test_a_name_is_read_from_the_checkpoint_by_the_driver_alone(query: Query, tmp_path: Path) -> None:
    """Executors may see other disks."""
    (tmp_path / "metadata").write_text(json.dumps({"id": query.exactly_once_id}))
    planned = writer(query.bootstrap, topic=query.topic, checkpointLocation=str(tmp_path))
    planned.prepare()
    pickled = pickle.dumps(planned)
    (tmp_path / "metadata").unlink()
    query.commit(0, [query.attempt(pickled, 0, [b"a"])])
    assert query.seen() == [b"a"]


def test_a_query_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="option exactlyOnceId: missing"):
        writer("127.0.0.1:1", exactlyOnce="true").prepare()


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_making_copying_and_pickling_a_writer_asks_nobody_anything(duplicate: Callable[[Any], Any]) -> None:
    copied = duplicate(writer("127.0.0.1:1", exactlyOnceId="q"))
    with pytest.raises(UndecidedError, match="was not prepared by a driver"):
        copied.write(iter([]))


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_stray_copy_of_a_writer_fences_nobody(query: Query, duplicate: Callable[[Any], Any]) -> None:
    messages = query.tasks(0, [b"a"])
    duplicate(query.writer())
    query.commit(0, messages)
    assert query.seen() == [b"a"]


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copy_of_a_prepared_writer_is_prepared_alike(query: Query, duplicate: Callable[[Any], Any]) -> None:
    planned = query.writer()
    planned.prepare()
    copied = duplicate(planned)
    copied.prepare()  # it is, and fences nobody
    query.commit(0, [query.attempt(pickle.dumps(one), 0, [b"a"]) for one in (planned, copied)])
    assert query.seen() == [b"a", b"a"]


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_data_source_prepares_where_spark_plans_and_nowhere_else(
    query: Query, duplicate: Callable[[Any], Any]
) -> None:
    given = {"kafka.bootstrap.servers": query.bootstrap, "topic": query.topic, "exactlyOnceId": query.exactly_once_id}
    source = TopicDataSource(given)
    planned = pickle.dumps(source.streamWriter(SCHEMA, False))
    messages = [query.attempt(planned, 0, [b"a"])]
    duplicate(source).streamWriter(schema=SCHEMA, overwrite=False).commit(messages, 0)  # fences nobody before it
    assert query.seen() == [b"a"]
    TopicDataSource(given).streamWriter(SCHEMA, False)
    late = query.attempt(planned, 1, [b"b"])
    with pytest.raises(UndecidedError, match=r"another driver of query .* has begun"):
        duplicate(source).streamWriter(schema=SCHEMA, overwrite=False).commit([late], 1)


def writer(bootstrap: str, **options: str) -> ExactlyOnceWriter:
    return ExactlyOnceWriter(parse({"kafka.bootstrap.servers": bootstrap, "topic": "t", **options}), SCHEMA)
