"""Many topics in one request: what shares a sync, what a client's timeout bounds, and that others have their turn."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import pytest

from tagwire import client, messages
from tagwire.broker import Broker
from tagwire.broker.deadlines import TIMED_OUT
from tagwire.broker.storage import data_directory
from tagwire.broker.storage.data_directory import TOPICS_FILE, DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topic import NewTopic
from tagwire.broker.topics import SHARE, SIDE_BY_SIDE, Topics
from tagwire.errors import Error

Create, Delete, Grow = messages.CreateTopicsRequest, messages.DeleteTopicsRequest, messages.CreatePartitionsRequest


def create_request(*names, timeout_ms=60_000, partitions=1):
    topics = [Create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return Create(topics=topics, timeout_ms=timeout_ms)


def codes(answers):
    """{topic: error code}."""
    return {answer.name: answer.error_code for answer in answers}


def names(wire):
    return {topic.name for topic in wire.metadata().topics}


def directories(path):
    return {found.name.rpartition("-")[0] for found in path.iterdir() if found.is_dir()}


MANY = [f"t{number}" for number in range(300)]


def test_what_there_is_no_time_to_create_is_refused_and_is_nowhere(wire, tmp_path):
    answer = codes(wire.ask(create_request(*MANY, timeout_ms=20), 7).topics)
    assert list(answer) == MANY
    assert set(answer.values()) <= {0, Error.REQUEST_TIMED_OUT}
    created = {name for name, code in answer.items() if not code}
    assert len(created) < len(MANY)
    assert names(wire) == directories(tmp_path / "data") == created


def test_a_topic_of_many_partitions_that_takes_too_long_is_not_half_created(wire, tmp_path):
    assert codes(wire.ask(create_request("wide", timeout_ms=20, partitions=1000), 7).topics) == {
        "wide": Error.REQUEST_TIMED_OUT
    }
    assert names(wire) == directories(tmp_path / "data") == set()
    wire.create("t")
    grown = Grow.CreatePartitionsTopic(name="t", count=1000, assignments=None)
    (result,) = wire.ask(Grow(topics=[grown], timeout_ms=20), 3).results
    assert result.error_code == Error.REQUEST_TIMED_OUT
    assert len(wire.metadata("t").topics[0].partitions) == 1
    assert len([path for path in (tmp_path / "data").iterdir() if path.is_dir()]) == 1


def test_what_there_is_no_time_to_delete_is_still_there(wire, make):
    wire.ask(create_request(*MANY), 7)
    answer = codes(wire.ask(Delete(topic_names=MANY, timeout_ms=5), 5).responses)
    assert set(answer.values()) <= {0, Error.REQUEST_TIMED_OUT}
    left = {name for name, code in answer.items() if code}
    assert left
    assert names(wire) == left
    assert wire.produce(left.pop(), make.records(b"v")).error_code == 0


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_any_time_nothing_is_done(wire, timeout_ms):
    wire.create("t")
    assert codes(wire.ask(create_request("u", timeout_ms=timeout_ms), 7).topics) == {"u": Error.REQUEST_TIMED_OUT}
    deleted = wire.ask(Delete(topic_names=["t", "no"], timeout_ms=timeout_ms), 5).responses
    assert set(codes(deleted).values()) == {Error.REQUEST_TIMED_OUT}
    grown = Grow.CreatePartitionsTopic(name="t", count=2, assignments=None)
    assert codes(wire.ask(Grow(topics=[grown], timeout_ms=timeout_ms), 3).results) == {"t": Error.REQUEST_TIMED_OUT}
    assert names(wire) == {"t"}
    assert TIMED_OUT.__traceback__ is None  # it would keep these requests, and all that come after them


def test_others_are_served_while_many_topics_are_created_and_deleted(wire, broker, connect, make):
    other = connect(broker.bootstrap)
    other.create("mine")
    wire.send(create_request(*MANY), 7)
    assert other.produce("mine", make.records(b"v")).error_code == 0
    assert other.create("between").error_code == 0
    assert not names(other) >= set(MANY)
    assert set(codes(wire.receive().topics).values()) == {0}
    wire.send(Delete(topic_names=MANY, timeout_ms=60_000), 5)
    assert other.produce("mine", make.records(b"v")).base_offset == 1
    assert set(codes(wire.receive().responses).values()) == {0}
    assert names(wire) == {"mine", "between"}


def test_each_topic_of_a_request_has_its_own_outcome(wire):
    wire.create("t1")
    asked = create_request("t0", "t1", "../t", "t2")
    asked.topics[3].configs.append(Create.CreatableTopicConfig(name="no.such", value="1"))
    assert codes(wire.ask(asked, 7).topics) == {
        "t0": 0,
        "t1": Error.TOPIC_ALREADY_EXISTS,
        "../t": Error.INVALID_TOPIC_EXCEPTION,
        "t2": Error.INVALID_CONFIG,
    }
    deleted = wire.ask(Delete(topic_names=["t0", "no", "t1"], timeout_ms=30_000), 5).responses
    assert codes(deleted) == {"t0": 0, "no": Error.UNKNOWN_TOPIC_OR_PARTITION, "t1": 0}


def test_when_the_disk_refuses_the_list_none_of_its_topics_is_created_or_deleted(wire, broker):
    broker.disk.fail("rename", errno.EIO)
    refused = codes(wire.ask(create_request("a", "b", "c"), 7).topics)
    broker.disk.mend()
    assert refused == dict.fromkeys("abc", Error.KAFKA_STORAGE_ERROR)
    assert names(wire) == set()
    assert set(codes(wire.ask(create_request("d", "e", "f"), 7).topics).values()) == {0}
    broker.disk.fail("rename", errno.EIO)
    refused = codes(wire.ask(Delete(topic_names=["d", "e"], timeout_ms=30_000), 5).responses)
    broker.disk.mend()
    assert refused == dict.fromkeys("de", Error.KAFKA_STORAGE_ERROR)
    assert names(wire) == set("def")


class CountingFiles(Files):
    """Real files that count how often a name is taken."""

    def __init__(self):
        self.taken = Counter()

    def rename(self, source, target):
        super().rename(source, target)
        self.taken[target.name] += 1


def test_topics_that_are_created_or_deleted_together_are_listed_once(tmp_path):
    files = CountingFiles()

    async def story(topics):
        files.taken.clear()
        made = await topics.create_all([NewTopic(name, 1, {}) for name in MANY[:50]])
        assert (len(made), files.taken[TOPICS_FILE]) == (50, 1)
        gone = await topics.delete_all(made)
        assert (gone, files.taken[TOPICS_FILE], topics.count) == (made, 2, 0)

    on_topics(tmp_path, files, story)


def on_topics(tmp_path, files, story):
    """Runs `story` with the topics of a new data directory."""

    async def main():
        data = DataDirectory(files, tmp_path / "data")
        await story(Topics(files, data, pool, pool, "never"))
        data.close(clean=False)

    with ThreadPoolExecutor(8) as pool:
        asyncio.run(main())


def test_of_the_list_of_topics_only_what_has_changed_is_made_anew(tmp_path, monkeypatch):
    made = []

    def dumps(*arguments, **options):
        made.append(arguments)
        return json.dumps(*arguments, **options)

    async def story(topics):
        await topics.create_all([NewTopic(name, 1, {}) for name in MANY[:50]])
        monkeypatch.setattr(data_directory, "json", SimpleNamespace(dumps=dumps))
        await topics.create("one-more", 2, {"retention.ms": "1"})
        await topics.alter(MANY[0], {"retention.ms": "2"})
        await topics.add_partitions(MANY[1], 3)
        await topics.delete(topics.get(MANY[2]))

    on_topics(tmp_path, Files(), story)
    assert [line["name"] for (line,) in made] == ["one-more", MANY[0], MANY[1]]
    listed = {one["name"]: one for one in json.loads((tmp_path / "data" / TOPICS_FILE).read_text())["topics"]}
    assert set(listed) == {*MANY[:50], "one-more"} - {MANY[2]}
    assert listed[MANY[0]]["configs"] == {"retention.ms": "2"}
    assert (listed["one-more"]["partitions"], listed[MANY[1]]["partitions"], listed[MANY[3]]["partitions"]) == (2, 3, 1)


class TogetherFiles(Files):
    """Real files whose directories are made by so many threads at a time, or not at all."""

    def __init__(self):
        self.threads = Barrier(SIDE_BY_SIDE, timeout=10)

    def make_directory(self, path):
        self.threads.wait()
        super().make_directory(path)


def test_the_partitions_of_one_topic_are_made_side_by_side(tmp_path):
    async def story(topics):
        topic = await topics.create("wide", SIDE_BY_SIDE * SHARE, {})
        assert [partition.index for partition in topic.partitions] == list(range(SIDE_BY_SIDE * SHARE))

    on_topics(tmp_path, TogetherFiles(), story)


def test_a_partition_is_few_objects_for_the_garbage_collector_to_look_at():
    """Ten thousand of them are looked at again and again while they are filled: more than half of the time it took."""
    with Broker(fsync="never") as broker, client.Admin(broker.bootstrap) as admin:
        admin.create_topics([client.NewTopic("first", num_partitions=200)])
        gc.collect()
        before = len(gc.get_objects())
        admin.create_topics([client.NewTopic("second", num_partitions=200)])
        gc.collect()
        assert (len(gc.get_objects()) - before) / 200 < 34  # 30, what the client was told of them included
