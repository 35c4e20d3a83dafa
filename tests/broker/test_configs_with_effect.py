"""Topic configurations that work by the clock: what they do, and that altering them has effect at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tagwire.broker import scheduler
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topics import Topics
from tagwire.records import Record, batch_headers, read, write


class Clock:
    """The wall's clock, in ms, for whoever dates records and segments."""

    def __init__(self, monkeypatch):
        self.now = 10**12
        for module in ("storage.log", "storage.segment", "scheduler"):
            monkeypatch.setattr(f"tagwire.broker.{module}.wall_ms", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def on_topic(tmp_path):
    """Runs `scenario(topics, data, partition)` on a topic of these configurations."""

    def run(configs, scenario):
        async def main():
            data = DataDirectory(Files(), tmp_path / "data")
            topics = Topics(Files(), data, pool, pool, "never")
            (partition,) = (await topics.create("t", 1, configs)).partitions
            await scenario(topics, data, partition)
            data.close(clean=False)

        with ThreadPoolExecutor(1) as pool:
            asyncio.run(main())

    return run


def record(key, value, timestamp):
    data = memoryview(write([Record(key, value, timestamp=timestamp)]))
    return batch_of(next(batch_headers(data)), data)


async def put(partition, clock, value=b"v", key=b"k"):
    await partition.append(partial(record, key, value, clock.now))


def segments(partition):
    return sorted(int(path.stem) for path in partition.log.directory.glob("*.log"))


def test_a_segment_is_closed_when_its_time_is_over_with_the_next_record_or_without(on_topic, clock):
    async def scenario(topics, data, partition):
        await put(partition, clock)
        clock.now += 999
        await put(partition, clock)
        scheduler.expire(topics)
        assert segments(partition) == [0]
        clock.now += 1
        await put(partition, clock)
        assert segments(partition) == [0, 2]
        clock.now += 1000
        scheduler.expire(topics)
        assert segments(partition) == [0, 2, 3]
        clock.now += 10**6
        scheduler.expire(topics)  # what is empty is not closed
        assert segments(partition) == [0, 2, 3]
        await topics.alter("t", {"segment.ms": None})
        await put(partition, clock)
        clock.now += 10**6
        await put(partition, clock)
        assert segments(partition) == [0, 2, 3]

    on_topic({"segment.ms": "1000", "retention.ms": "-1"}, scenario)


def test_a_compacted_segment_is_closed_and_compacted_before_its_records_wait_too_long(on_topic, clock):
    async def scenario(topics, data, partition):
        for number in range(5):
            await put(partition, clock, b"%d" % number)
        clock.now += 999
        scheduler.compact(topics, data, asyncio.Event())
        assert partition.log.size_bytes > 300
        clock.now += 1
        scheduler.compact(topics, data, asyncio.Event())
        data_left = partition.log.read(0, 10_000)
        assert [r.value for b in read(data_left) for r in b.records()] == [b"4"]

    configs = {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000", "min.cleanable.dirty.ratio": "1"}
    on_topic(configs, scenario)


def test_with_both_policies_records_are_replaced_and_old_segments_deleted(on_topic, clock):
    async def scenario(topics, data, partition):
        for number in range(20):
            await put(partition, clock, b"%d" % number + b"v" * 200, key=b"k%d" % (number % 3))
        scheduler.compact(topics, data, asyncio.Event())
        assert partition.log.start_offset == 0
        assert partition.log.size_bytes < 2500
        clock.now += 5001
        await put(partition, clock, key=b"new")
        scheduler.expire(topics)
        assert partition.log.start_offset > 0
        clock.now += 5001
        scheduler.expire(topics)
        assert (partition.log.start_offset, partition.log.end_offset) == (21, 21)

    configs = {"cleanup.policy": "compact,delete", "segment.bytes": "1024", "retention.ms": "5000"}
    on_topic(configs, scenario)


def test_a_topic_that_is_only_compacted_keeps_its_records_whatever_their_age_and_size(on_topic, clock):
    async def scenario(topics, data, partition):
        for number in range(8):
            await put(partition, clock, b"v" * 400, key=b"k%d" % number)
        clock.now += 10**11
        scheduler.expire(topics)
        assert partition.log.start_offset == 0
        await topics.alter("t", {"cleanup.policy": "delete"})
        scheduler.expire(topics)
        assert partition.log.start_offset == 8

    on_topic(
        {"cleanup.policy": "compact", "segment.bytes": "1024", "retention.ms": "1000", "retention.bytes": "0"}, scenario
    )


def test_altered_retention_deletes_with_the_next_round(on_topic, clock):
    async def scenario(topics, data, partition):
        for _ in range(8):
            await put(partition, clock, b"v" * 400)
        scheduler.expire(topics)
        assert partition.log.start_offset == 0
        await topics.alter("t", {"retention.bytes": "1000"})
        scheduler.expire(topics)
        assert 1000 <= partition.log.size_bytes < 2000
        await topics.alter("t", {"retention.ms": "10"})
        clock.now += 11
        scheduler.expire(topics)
        assert partition.log.start_offset == 8

    on_topic({"segment.bytes": "1024"}, scenario)
