"""Altering a topic, giving it partitions, and deleting records: durable when it returns, and nothing when it fails."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import pytest

from tagwire.broker.handlers.alter_configs import _values as as_a_whole
from tagwire.broker.handlers.describe_configs import TOPIC
from tagwire.broker.handlers.incremental_alter_configs import APPEND, SET, Alteration, Change, alter_all
from tagwire.broker.handlers.incremental_alter_configs import _values as in_steps
from tagwire.broker.storage.data_directory import DataDirectory, StoredTopic
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.broker.topics import Topics
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.records import read


@pytest.fixture
def on_topics(tmp_path):
    """Runs `scenario(topics)` on the data directory of the test, as a broker that starts, and crashes at the end."""

    def run(scenario, files=None):
        async def main():
            files_used = files or Files()
            data = DataDirectory(files_used, tmp_path / "data")
            try:
                topics = Topics(files_used, data, pool, pool, "batch")
                topics.load()
                await scenario(topics)
                topics.abandon()
            finally:
                data.close(clean=False)

        with ThreadPoolExecutor(2) as pool:
            asyncio.run(main())

    return run


def refused(code, text=""):
    return pytest.raises(KafkaError, match=rf"{code.name}.*{text}")


def values(log):
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        for stored in read(log.read(offset, 1)):
            found += [record.offset for record in stored.records() if record.offset >= offset]
            offset = stored.next_offset
    return found


def test_what_was_altered_has_effect_at_once_and_after_a_crash(on_topics, batch):
    async def change(topics):
        made = await topics.create("t", 1, {"retention.ms": "1000", "max.message.bytes": "500"})
        log = made.partitions[0].log
        altered = await topics.alter("t", {"retention.ms": None, "segment.bytes": "2000"})
        assert (altered.topic_id, topics.get("t"), topics.by_id(made.topic_id)) == (made.topic_id, altered, altered)
        assert altered.configs == {"max.message.bytes": "500", "segment.bytes": "2000"}
        assert (log.config.segment_bytes, log.config.retention_ms) == (2000, 604_800_000)
        await topics.delete(made)
        await topics.create("t", 1, {})
        await topics.alter("t", {"segment.bytes": "3000"})

    async def look(topics):
        assert topics.get("t").configs == {"segment.bytes": "3000"}
        assert topics.get("t").partitions[0].log.config.segment_bytes == 3000

    on_topics(change)
    on_topics(look)


def test_a_topic_as_it_was_at_the_start_is_not_kept(on_topics):
    def kept():
        gc.collect()
        return [each.configs for each in gc.get_objects() if type(each) is StoredTopic and each.name == "altered-since"]

    async def make(topics):
        await topics.create("altered-since", 1, {"retention.ms": "1000"})

    async def change(topics):
        assert kept() == [{"retention.ms": "1000"}]
        await topics.alter("altered-since", {"retention.ms": "2000"})
        assert kept() == [{"retention.ms": "2000"}]

    on_topics(make)
    on_topics(change)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"no.such": "1"}, "no.such"),
        ({"no.such": None}, "no.such"),
        ({"retention.ms": "soon"}, "retention.ms=soon"),
        ({"segment.bytes": "1"}, "segment.bytes=1"),
    ],
)
def test_what_is_not_implemented_is_refused_and_changes_nothing(on_topics, changes, text):
    async def change(topics):
        await topics.create("t", 1, {"retention.ms": "1000"})
        with refused(Error.INVALID_CONFIG, text):
            await topics.alter("t", {"max.message.bytes": "5", **changes})
        assert topics.get("t").configs == {"retention.ms": "1000"}

    on_topics(change)


def test_no_change_is_made_to_topics_that_are_missing_or_the_brokers_own(on_topics):
    async def change(topics):
        await topics.create_internal("__consumer_offsets")
        for change in (partial(topics.alter, changes={}), partial(topics.add_partitions, count=2)):
            with refused(Error.UNKNOWN_TOPIC_OR_PARTITION):
                await change("t")
            with refused(Error.INVALID_TOPIC_EXCEPTION):
                await change("__consumer_offsets")

    on_topics(change)


def test_partitions_that_are_added_are_empty_and_the_others_keep_their_records(on_topics, batch):
    async def change(topics):
        made = await topics.create("t", 1, {"segment.bytes": "2000"})
        await made.partitions[0].append(partial(batch, 3))
        grown = await topics.add_partitions("t", 3)
        assert grown.partitions[0] is made.partitions[0]
        await grown.partitions[2].append(partial(batch, 1))
        for count in (3, 2, 1001):
            with refused(Error.INVALID_PARTITIONS):
                await topics.add_partitions("t", count)

    async def look(topics):
        assert [partition.log.end_offset for partition in topics.get("t").partitions] == [3, 0, 1]
        assert {partition.log.config.segment_bytes for partition in topics.partitions()} == {2000}

    on_topics(change)
    on_topics(look)


@pytest.mark.parametrize("operation", ["create", "sync", "sync_directory", "write"])
def test_a_disk_that_refuses_leaves_topic_and_partitions_as_they_were(on_topics, failing_files, operation):
    async def change(topics):
        await topics.create("t", 1, {})
        failing_files.fail(operation)
        with refused(Error.KAFKA_STORAGE_ERROR):
            await topics.add_partitions("t", 2)
        if operation != "create":
            with refused(Error.KAFKA_STORAGE_ERROR):
                await topics.alter("t", {"retention.ms": "1"})
        failing_files.mend()
        assert topics.get("t").configs == {}
        assert len(topics.get("t").partitions) == 1
        await topics.add_partitions("t", 2)

    async def look(topics):
        assert topics.get("t").configs == {}
        assert len(topics.get("t").partitions) == 2

    on_topics(change, failing_files)
    on_topics(look)


def test_deleted_records_are_gone_at_once_and_after_a_crash(on_topics, batch, tmp_path):
    async def change(topics):
        made = await topics.create("t", 1, {"segment.bytes": "1024"})
        (partition,) = made.partitions
        for number in range(5):
            await partition.append(partial(batch, 2, timestamp=1000 * number, size=350))
        assert await partition.delete_records(5) == 5
        assert await partition.delete_records(3) == 5
        assert values(partition.log) == [5, 6, 7, 8, 9]
        assert len(list((tmp_path / "data" / "t-0").glob("*.log"))) == 3
        with pytest.raises(OffsetOutOfRangeError):
            partition.log.read(4, 1000)
        assert partition.log.offset_for_timestamp(0) == (2001, 5)
        for before in (11, -2):
            with pytest.raises(OffsetOutOfRangeError):
                await partition.delete_records(before)

    async def look(topics):
        log = topics.get("t").partitions[0].log
        assert (log.start_offset, values(log)) == (5, [5, 6, 7, 8, 9])

    async def empty(topics):
        (partition,) = topics.get("t").partitions
        assert await partition.delete_records(-1) == 10
        assert values(partition.log) == []

    async def look_again(topics):
        (partition,) = topics.get("t").partitions
        assert (partition.log.start_offset, partition.log.end_offset) == (10, 10)
        assert (await partition.append(partial(batch, 1))).base_offset == 10

    for scenario in (change, look, empty, look_again):
        on_topics(scenario)


def test_a_deletion_that_cannot_be_written_down_deletes_nothing(on_topics, batch, failing_files):
    async def change(topics):
        (partition,) = (await topics.create("t", 1, {})).partitions
        await partition.append(partial(batch, 4))
        failing_files.fail("sync", times=1)
        with pytest.raises(StorageError):
            await partition.delete_records(3)
        assert values(partition.log) == [0, 1, 2, 3]
        assert await partition.delete_records(3) == 3

    on_topics(change, failing_files)


def test_a_new_topic_inherits_no_offsets_from_a_deleted_one_of_its_name(on_topics, batch):
    async def change(topics):
        made = await topics.create("t", 1, {})
        await made.partitions[0].append(partial(batch, 9))
        await made.partitions[0].delete_records(8)
        await topics.delete(made)
        made = await topics.create("t", 1, {})
        await made.partitions[0].append(partial(batch, 2))

    async def look(topics):
        assert values(topics.get("t").partitions[0].log) == [0, 1]

    on_topics(change)
    on_topics(look)


def test_the_end_of_a_leader_epoch_is_where_the_next_begins(on_topics, batch):
    """Each start after a crash begins an epoch."""

    async def add(topics, count):
        partition = topics.get("t") or await topics.create("t", 1, {})
        await partition.partitions[0].append(partial(batch, count))

    for count in (3, 2, 4):
        on_topics(partial(add, count=count))

    async def look(topics):
        (partition,) = topics.get("t").partitions
        log = partition.log
        assert log.leader_epoch == 3
        assert [log.end_of_epoch(epoch) for epoch in range(4)] == [(0, 3), (1, 5), (2, 9), (3, 9)]
        assert log.end_of_epoch(4) is None
        assert [log.epochs.at(offset) for offset in (0, 2, 3, 4, 5, 8, 9)] == [0, 0, 1, 1, 2, 2, 3]
        await partition.delete_records(4)
        assert [log.end_of_epoch(epoch) for epoch in (-1, 0, 1)] == [None, (0, 4), (1, 5)]

    on_topics(look)


def test_what_is_added_to_a_list_by_two_at_a_time_is_all_added(on_topics):
    async def scenario(topics):
        name = "leader.replication.throttled.replicas"
        await topics.create("t", 1, {})
        node = SimpleNamespace(topics=topics)
        changes = [Alteration(TOPIC, "t", [Change(name, APPEND, f"{number}:0")]) for number in range(5)]
        outcomes = await asyncio.gather(*(alter_all(node, [one], in_steps, validate_only=False) for one in changes))
        assert all(refusal is None for outcome in outcomes for refusal in outcome.values())
        assert topics.get("t").configs[name] == "0:0,1:0,2:0,3:0,4:0"

    on_topics(scenario)


def test_what_is_added_to_a_list_twice_at_once_is_in_it_once(on_topics):
    async def scenario(topics):
        name = "leader.replication.throttled.replicas"
        await topics.create("t", 1, {name: "0:0"})
        one = Alteration(TOPIC, "t", [Change(name, APPEND, "1:0, 1:0,0:0")])
        outcomes = await alter_all(SimpleNamespace(topics=topics), [one], in_steps, validate_only=False)
        assert list(outcomes.values()) == [None]
        assert topics.get("t").configs[name] == "0:0,1:0"

    on_topics(scenario)


def test_what_is_set_as_a_whole_leaves_nothing_of_what_another_sets_meanwhile(on_topics):
    async def scenario(topics):
        await topics.create("t", 1, {})
        node = SimpleNamespace(topics=topics)
        one = Alteration(TOPIC, "t", [Change("retention.ms", SET, "1000")])
        other = Alteration(TOPIC, "t", [Change("segment.bytes", SET, "2000")])
        await asyncio.gather(
            alter_all(node, [one], in_steps, validate_only=False),
            alter_all(node, [other], as_a_whole, validate_only=False),
        )
        assert topics.get("t").configs == {"segment.bytes": "2000"}

    on_topics(scenario)
