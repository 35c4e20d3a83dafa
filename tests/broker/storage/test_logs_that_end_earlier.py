"""A log that ends before what a checkpoint knows of it: what is written there next is neither on the disk nor
compacted, and must not pass for either."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from tagwire.broker import scheduler
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topics import Topics
from tagwire.partitions import TopicPartition

WHERE = TopicPartition("t", 0)


@contextmanager
def opened(path):
    data = DataDirectory(Files(), path)
    with ThreadPoolExecutor(1) as pool:
        topics = Topics(Files(), data, pool, pool, "batch")
        topics.load()
        yield topics, data
        topics.abandon()
    data.close(clean=False)


def known(data):
    return [checkpoint.get(*WHERE) for checkpoint in (data.recovery_points, data.cleaned, data.gaps)]


async def fill(topics, data, batch):
    topic = await topics.create("t", 1, {"segment.bytes": "1024"})
    for _ in range(6):
        await topic.partitions[0].append(partial(batch, 1, size=800))
    scheduler.save_recovery_points(topics, data)
    data.cleaned.raise_to({WHERE: 5})
    data.gaps.raise_to({WHERE: 5})
    return topic.partitions[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data"


def test_a_truncated_log_is_known_up_to_its_new_end_only(path, batch):
    async def truncate():
        with opened(path) as (topics, data):
            cut = await fill(topics, data, batch)
            await topics.truncate(cut, 2)
            assert known(data) == [2, 2, 2]
            scheduler.save_recovery_points(topics, data)
            assert data.recovery_points.get(*WHERE) == 2

    asyncio.run(truncate())
    with opened(path) as (_, data):
        assert known(data) == [2, 2, 2]


def test_a_log_that_damage_made_shorter_is_known_up_to_its_new_end_only(path, batch):
    async def write():
        with opened(path) as (topics, data):
            await fill(topics, data, batch)

    asyncio.run(write())
    log = max((path / "t-0").glob("*.log"))
    log.write_bytes(b"")
    with opened(path) as (topics, data):
        end = topics.partition("t", 0).log.end_offset
        assert 0 < end < 6
        assert known(data) == [end, min(end, 5), min(end, 5)]


def test_a_log_that_is_whole_keeps_what_is_known_of_it(path, batch):
    async def write():
        with opened(path) as (topics, data):
            await fill(topics, data, batch)

    asyncio.run(write())
    with opened(path) as (_, data):
        assert known(data) == [6, 5, 5]
