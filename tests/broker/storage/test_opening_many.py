"""Opening many logs that a killed broker has left: side by side, and without waiting more often than needed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topics import Topics

PARTITIONS = 4


@pytest.fixture
def killed(tmp_path, batch):
    """What is left of a broker with a topic of four partitions, a record in each."""

    async def fill():
        data = DataDirectory(Files(), tmp_path / "data")
        with ThreadPoolExecutor(1) as pool:
            topics = Topics(Files(), data, pool, pool, "batch")
            topic = await topics.create("t", PARTITIONS, {})
            for partition in topic.partitions:
                await partition.append(partial(batch, 1))
            topics.abandon()
        data.close(clean=False)

    asyncio.run(fill())
    return tmp_path / "data"


@contextmanager
def opened(path, files, threads):
    data = DataDirectory(Files(), path)
    with ThreadPoolExecutor(threads) as pool:
        topics = Topics(files, data, pool, pool, "batch")
        topics.load()
        yield topics
        topics.close()
    data.close(clean=False)


class Meeting(Files):
    """Lets nobody sync a log before all are about to."""

    def __init__(self):
        self.all_are_here = threading.Barrier(PARTITIONS)
        self._logs = set()
        self.is_over = False

    def open(self, path, *, write=False):
        fd = super().open(path, write=write)
        if path.suffix == ".log":
            self._logs.add(fd)
        return fd

    def close(self, fd):
        self._logs.discard(fd)
        super().close(fd)

    def sync(self, fd):
        if fd in self._logs and not self.is_over:
            with suppress(threading.BrokenBarrierError):
                self.all_are_here.wait(5)
        super().sync(fd)


def test_logs_are_recovered_side_by_side(killed):
    files = Meeting()
    with opened(killed, files, PARTITIONS) as topics:
        files.is_over = True
        assert not files.all_are_here.broken
        assert [partition.log.end_offset for partition in topics.partitions()] == [1] * PARTITIONS


class Counting(Files):
    def __init__(self):
        self.syncs = 0

    def sync(self, fd):
        self.syncs += 1
        super().sync(fd)

    def sync_directory(self, path):
        self.syncs += 1
        super().sync_directory(path)


def test_a_log_of_one_segment_is_recovered_with_three_syncs(killed):
    """Of the segment, of the leader epoch that begins, and of its name."""
    files = Counting()
    with opened(killed, files, 1):
        assert files.syncs == 3 * PARTITIONS


def test_a_directory_is_opened_by_one_thread_as_by_many(killed):
    for threads in (1, 8):
        with opened(killed, Files(), threads) as topics:
            assert [(p.topic, p.index) for p in topics.partitions()] == [("t", index) for index in range(PARTITIONS)]
            assert [partition.log.end_offset for partition in topics.partitions()] == [1] * PARTITIONS
