"""What is done by the clock, and group commit: both on topics without a server."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tagwire.broker import scheduler
from tagwire.broker.group_commit import GroupCommit
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.compaction import Compaction
from tagwire.broker.storage.data_directory import START_OFFSETS_FILE, DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.broker.topics import Topics
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.records import BatchOptions, Record, batch_headers, read, write


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def expirable(topics, partitions, batch):
    """A topic of which each partition has three records, two segments of which are too old."""

    async def made():
        found = (await topics.create("t", partitions, {"segment.bytes": "1024", "retention.ms": "1000"})).partitions
        for partition in found:
            for _ in range(3):
                await partition.append(partial(batch, 1, timestamp=1, size=900))
        return found

    return made()


def on_topics(tmp_path, pool, files, scenario):
    """Run `scenario(topics, data)` on a data directory of its own."""

    async def run():
        data = DataDirectory(files, tmp_path / "data")
        try:
            await scenario(Topics(files, data, pool, pool, "interval"), data)
        finally:
            data.close(clean=False)

    asyncio.run(run())


def test_where_many_partitions_start_is_written_down_together_before_anything_is_deleted(
    tmp_path, pool, batch, monkeypatch
):
    written = []
    replace = OffsetCheckpoint._replace

    def counted(self, offsets):
        if self._path.name == START_OFFSETS_FILE:
            written.append([len(list((tmp_path / "data").glob("t-*/*.log"))), dict(offsets)])
        replace(self, offsets)

    monkeypatch.setattr(OffsetCheckpoint, "_replace", counted)

    async def scenario(topics, data):
        partitions = await expirable(topics, 70, batch)
        scheduler.expire(topics)
        assert {partition.log.start_offset for partition in partitions} == {3}
        assert [len(offsets) for _, offsets in written] == [64, 70]
        (before, _), (between, _) = written
        assert (before, between) == (64 * 4 + 6 * 3, 64 * 1 + 6 * 4)  # the segment that was written to is closed first
        assert len(data.start_offsets.offsets) == 70

    on_topics(tmp_path, pool, Files(), scenario)


def test_nothing_expires_whose_start_could_not_be_written_down_and_all_of_it_later(
    tmp_path, pool, batch, monkeypatch, caplog
):
    raise_to, failures = OffsetCheckpoint.raise_to, [OSError("no space")]

    def failing(self, offsets):
        if failures:
            raise failures.pop()
        raise_to(self, offsets)

    async def scenario(topics, data):
        partitions = await expirable(topics, 2, batch)
        monkeypatch.setattr(OffsetCheckpoint, "raise_to", failing)
        scheduler.expire(topics)
        assert [partition.log.start_offset for partition in partitions] == [0, 0]
        assert "nothing of them deleted: no space" in caplog.text
        assert len(list((tmp_path / "data").glob("t-*/*.log"))) == 2 * 4
        scheduler.expire(topics)
        assert [partition.log.start_offset for partition in partitions] == [3, 3]

    on_topics(tmp_path, pool, Files(), scenario)


def test_retention_deletes_what_is_too_old_and_an_offline_log_does_not_stop_it(tmp_path, pool, batch):
    async def scenario(topics, data):
        configs = {"segment.bytes": "1024", "retention.ms": "1000"}
        broken, sound = (await topics.create("t", 2, configs)).partitions
        for partition in (broken, sound):
            for _ in range(3):
                await partition.append(partial(batch, 1, timestamp=1, size=900))
        broken.log.abandon("the test takes it offline")
        scheduler.expire(topics)
        assert (sound.log.start_offset, sound.log.end_offset) == (3, 3)
        assert broken.log.start_offset == 0

    on_topics(tmp_path, pool, Files(), scenario)


def test_what_a_topic_is_to_keep_by_now_is_not_deleted_by_what_was_asked_for_before(tmp_path, pool, batch):
    async def scenario(topics, data):
        configs = {"segment.bytes": "1024", "retention.ms": "1000"}
        (partition,) = (await topics.create("t", 1, configs)).partitions
        for _ in range(3):
            await partition.append(partial(batch, 1, timestamp=1, size=900))
        with partition.log._restructuring:  # as compaction does
            expiring = asyncio.create_task(asyncio.to_thread(scheduler.expire, topics))
            while partition.log._active.size:  # the segment that is written to is closed first
                await asyncio.sleep(0.01)
            altering = asyncio.create_task(topics.alter("t", {"retention.ms": "-1"}))
            await asyncio.sleep(0.1)
        await asyncio.gather(expiring, altering)
        assert (partition.log.start_offset, partition.log.end_offset) == (0, 3)

    on_topics(tmp_path, pool, Files(), scenario)


def test_recovery_points_are_what_is_on_the_disk(tmp_path, pool, batch):
    async def scenario(topics, data):
        (partition,) = (await topics.create("t", 1, {})).partitions
        await partition.append(partial(batch, 3))
        path = tmp_path / "data" / "recovery-point-offset-checkpoint"
        scheduler.save_recovery_points(topics, data)
        assert OffsetCheckpoint(Files(), path).offsets == {("t", 0): 0}
        scheduler.sync(topics)
        scheduler.save_recovery_points(topics, data)
        assert OffsetCheckpoint(Files(), path).offsets == {("t", 0): 3}

    on_topics(tmp_path, pool, Files(), scenario)


def test_a_log_whose_interval_sync_fails_goes_offline_and_keeps_what_was_acknowledged(
    tmp_path, pool, batch, failing_files
):
    async def scenario(topics, data):
        (partition,) = (await topics.create("t", 1, {})).partitions
        await partition.append(partial(batch, 3))
        size = partition.log.directory.joinpath(f"{0:020d}.log").stat().st_size
        failing_files.fail("sync", times=1)
        scheduler.sync(topics)
        assert partition.log.is_offline
        assert partition.log.directory.joinpath(f"{0:020d}.log").stat().st_size == size

    on_topics(tmp_path, pool, failing_files, scenario)


def test_what_is_due_is_done_again_and_again_until_it_is_stopped():
    async def scenario():
        stopping, done = asyncio.Event(), []
        loop = asyncio.get_running_loop()

        def act():
            done.append(threading.current_thread())
            if len(done) == 3:
                loop.call_soon_threadsafe(stopping.set)

        await scheduler.every(0.001, stopping, act)
        assert len(done) >= 3
        assert threading.current_thread() not in done

    asyncio.run(scenario())


class CountingFiles(Files):
    """Counts syncs, and holds them back until it is told."""

    def __init__(self):
        self.syncs = 0
        self.go_on = threading.Event()

    def sync(self, fd):
        self.go_on.wait(20)
        self.syncs += 1
        super().sync(fd)


def test_batches_that_wait_together_share_one_sync(tmp_path, pool, batch):
    files = CountingFiles()
    files.go_on.set()
    log = create_log(files, tmp_path, TopicConfig())
    files.go_on.clear()
    before = files.syncs

    async def scenario():
        woken = []
        commit = GroupCommit(log, pool, sync=True, advanced=lambda: woken.append(log.end_offset))
        first = commit.append(partial(batch, 1))
        await asyncio.sleep(0)
        others = [commit.append(partial(batch, 1)) for _ in range(50)]
        await asyncio.sleep(0)
        files.go_on.set()
        placed = await asyncio.gather(first, *others)
        await commit.idle()
        assert [one.base_offset for one in placed] == list(range(51))
        assert files.syncs - before == 2
        assert woken == [1, 51]

    asyncio.run(scenario())


def test_a_waiter_that_goes_away_does_not_take_its_batch_or_the_others_along(tmp_path, pool, batch):
    log = create_log(Files(), tmp_path, TopicConfig())

    async def scenario():
        commit = GroupCommit(log, pool, sync=True, advanced=lambda: None)
        gone, stays = commit.append(partial(batch, 1)), commit.append(partial(batch, 1))
        gone.cancel()
        assert (await stays).base_offset == 1
        await commit.idle()
        assert log.end_offset == 2

    asyncio.run(scenario())


def test_a_refusal_that_nobody_waited_for_is_no_error_in_the_log(tmp_path, pool, batch, failing_files):
    log = create_log(failing_files, tmp_path, TopicConfig())
    told = []

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
        commit = GroupCommit(log, pool, sync=True, advanced=lambda: None)
        failing_files.fail("sync", times=1)
        waits = commit.append(partial(batch, 1))
        commit.append(partial(batch, 1))
        with pytest.raises(StorageError, match="fsync failed"):
            await waits
        await commit.idle()
        gc.collect()

    asyncio.run(scenario())
    assert told == []


def test_a_commit_that_fails_in_an_unforeseen_way_is_told_to_everyone_who_waits(tmp_path, pool, batch, monkeypatch):
    log = create_log(Files(), tmp_path, TopicConfig())
    append, errors = log.append, [TypeError("unforeseen")]

    def failing(batches):
        if errors:
            raise errors.pop()
        return append(batches)

    monkeypatch.setattr(log, "append", failing)

    async def scenario():
        commit = GroupCommit(log, pool, sync=True, advanced=lambda: None)
        waiting = [commit.append(partial(batch, 1)) for _ in range(2)]
        outcome = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, TypeError) for one in outcome)
        assert (await commit.append(partial(batch, 1))).base_offset == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("operation", ["write", "create", "sync", "sync_directory"])
def test_a_topic_that_cannot_be_made_leaves_nothing(tmp_path, pool, failing_files, operation):
    async def scenario(topics, data):
        failing_files.fail(operation)
        with pytest.raises(KafkaError) as caught:
            await topics.create("t", 3, {})
        assert caught.value.error is Error.KAFKA_STORAGE_ERROR
        assert topics.get("t") is None
        assert not list((tmp_path / "data").glob("t-*"))
        failing_files.mend()
        await topics.create("t", 3, {})

    on_topics(tmp_path, pool, failing_files, scenario)


def test_topics_made_and_deleted_at_once_take_turns(tmp_path, pool, batch):
    async def scenario(topics, data):
        made = await asyncio.gather(*(topics.create("t", 2, {}) for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(one, KafkaError) for one in made) == 4
        (topic,) = (one for one in made if not isinstance(one, KafkaError))
        append = topic.partitions[0].append(partial(batch, 1))
        gone = await asyncio.gather(*(topics.delete(topic) for _ in range(5)), return_exceptions=True)
        assert [type(one) for one in gone].count(type(None)) == 1
        assert (await append).base_offset == 0
        with pytest.raises(StorageError):
            topic.partitions[0].log.read(0, 100)
        assert not list((tmp_path / "data").glob("t-*"))

    on_topics(tmp_path, pool, Files(), scenario)


class HeldFiles(Files):
    """Holds a renaming to a name that ends with `held`: when `begun` is set, until `go_on` is."""

    def __init__(self, held):
        self.held, self.begun, self.go_on = held, threading.Event(), threading.Event()

    def rename(self, source, target):
        if target.name.endswith(self.held):
            self.begun.set()
            assert self.go_on.wait(30)
        super().rename(source, target)


def test_nothing_is_deleted_by_a_retention_once_another_is_altered_to(tmp_path, pool, batch):
    files = HeldFiles("log-start-offset-checkpoint")

    async def scenario(topics, data):
        topic = await topics.create("t", 1, {"segment.bytes": "1024", "retention.ms": "1000"})
        log = topic.partitions[0].log
        for _ in range(3):
            await topic.partitions[0].append(partial(batch, 1, timestamp=1, size=900))
        expiring = asyncio.create_task(asyncio.to_thread(scheduler.expire, topics))
        assert await asyncio.to_thread(files.begun.wait, 30)
        asyncio.get_running_loop().call_later(0.3, files.go_on.set)
        await topics.alter("t", {"retention.ms": "-1"})
        start = log.start_offset
        await expiring
        assert log.start_offset == start

    on_topics(tmp_path, pool, files, scenario)


def test_nothing_is_compacted_any_more_once_a_topic_is_altered_not_to_be(tmp_path, pool, monkeypatch):
    finish, begun, go_on = Compaction._finish, threading.Event(), threading.Event()

    def slow(compaction, *given):
        begun.set()
        assert go_on.wait(30)
        finish(compaction, *given)

    monkeypatch.setattr(Compaction, "_finish", slow)

    async def scenario(topics, data):
        topic = await topics.create("t", 1, {"cleanup.policy": "compact", "segment.bytes": "1024"})
        log = topic.partitions[0].log
        for number in range(30):
            await topic.partitions[0].append(partial(keyed, b"%d" % number * 20))
        compacting = asyncio.create_task(asyncio.to_thread(scheduler.compact, topics, data, asyncio.Event()))
        assert await asyncio.to_thread(begun.wait, 30)
        await topics.alter("t", {"cleanup.policy": "delete"})
        size = log.size_bytes
        go_on.set()
        await compacting
        assert log.size_bytes == size

    on_topics(tmp_path, pool, Files(), scenario)


def keyed(value, key=b"k"):
    data = memoryview(write([Record(key, value, timestamp=1000)]))
    return batch_of(next(batch_headers(data)), data)


def test_compaction_goes_on_past_a_log_that_cannot_be_read_and_leaves_it_alone_then(tmp_path, pool, caplog):
    async def scenario(topics, data):
        configs = {"cleanup.policy": "compact", "segment.bytes": "1024"}
        broken, sound, kept = (await topics.create("t", 3, configs)).partitions
        for partition in (broken, sound, kept):
            for number in range(30):
                await partition.append(partial(keyed, b"%d" % number * 20))
        await topics.alter("t", {"min.cleanable.dirty.ratio": "1"})
        scheduler.compact(topics, data, asyncio.Event())
        assert kept.log.size_bytes > 2048  # nothing is dirtier than all of it
        await topics.alter("t", {"min.cleanable.dirty.ratio": None})
        first = broken.log.directory / f"{0:020d}.log"
        first.write_bytes(first.read_bytes()[:-1] + b"?")
        for _ in range(2):
            scheduler.compact(topics, data, asyncio.Event())
        assert [partition.log.end_offset for partition in (broken, sound, kept)] == [30, 30, 30]
        assert broken.log.size_bytes > 2048 > sound.log.size_bytes == kept.log.size_bytes
        assert caplog.text.count("cannot read") == 1

    on_topics(tmp_path, pool, Files(), scenario)


def test_the_time_of_a_deletion_begins_when_its_own_log_is_compacted(tmp_path, pool, monkeypatch):
    now, run = [10_000], Compaction.run

    def slow(compaction, *given):
        now[0] += 3_600_000  # what is compacted before this one takes an hour
        run(compaction, *given)

    monkeypatch.setattr(scheduler, "wall_ms", lambda: now[0])
    monkeypatch.setattr(Compaction, "run", slow)

    async def scenario(topics, data):
        configs = {"cleanup.policy": "compact", "segment.bytes": "1024", "delete.retention.ms": "1"}
        partitions = (await topics.create("t", 2, configs)).partitions
        for partition in partitions:
            await partition.append(partial(keyed, None))
            await partition.append(partial(keyed, b"v" * 900, b"other"))
            await partition.append(partial(keyed, b"w" * 900, b"other"))
        scheduler.compact(topics, data, asyncio.Event())
        horizons = [next(read(one.log.read(0, 10_000))).delete_horizon for one in partitions]
        assert sorted(horizons) == [10_001, 3_610_001]

    on_topics(tmp_path, pool, Files(), scenario)


def test_a_log_that_is_cut_before_its_turn_is_not_compacted_by_what_it_was(tmp_path, pool, monkeypatch):
    run, turns = Compaction.run, []

    def pending(value, sequence):
        options = BatchOptions(producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)
        data = memoryview(write([Record(b"k", value, timestamp=1000)], **options))
        return batch_of(next(batch_headers(data)), data)

    async def scenario(topics, data):
        loop = asyncio.get_running_loop()
        configs = {"cleanup.policy": "compact", "segment.bytes": "1024"}
        partitions = (await topics.create("t", 2, configs)).partitions
        for partition in partitions:
            for number in range(30):
                await partition.append(partial(keyed, b"%d" % number * 20))

        async def cut():
            await topics.truncate(partitions[1], 1)
            for number in range(29):
                await partitions[1].append(partial(pending, b"%d" % number * 20, number))

        def slow(compaction, *given):
            turns.append(compaction)
            if len(turns) == 1:  # while the first is compacted
                asyncio.run_coroutine_threadsafe(cut(), loop).result(30)
            run(compaction, *given)

        monkeypatch.setattr(Compaction, "run", slow)
        await asyncio.to_thread(scheduler.compact, topics, data, asyncio.Event())
        assert next(read(partitions[1].log.read(0, 1000))).base_offset == 0  # what is open may still be aborted

    on_topics(tmp_path, pool, Files(), scenario)


def test_a_log_that_is_not_to_be_compacted_any_more_when_it_has_its_turn_is_not(tmp_path, pool, monkeypatch):
    run, turns = Compaction.run, []

    async def scenario(topics, data):
        loop = asyncio.get_running_loop()
        configs = {"cleanup.policy": "compact", "segment.bytes": "1024"}
        partitions = [(await topics.create(name, 1, configs)).partitions[0] for name in ("first", "second")]
        for partition in partitions:
            for number in range(30):
                await partition.append(partial(keyed, b"%d" % number * 20))

        def slow(compaction, *given):
            turns.append(compaction)
            if len(turns) == 1:  # while the first is compacted
                altered = topics.alter("second", {"cleanup.policy": "delete"})
                asyncio.run_coroutine_threadsafe(altered, loop).result(30)
            run(compaction, *given)

        monkeypatch.setattr(Compaction, "run", slow)
        await asyncio.to_thread(scheduler.compact, topics, data, asyncio.Event())
        kept = [next(read(one.log.read(0, 1000))).base_offset for one in partitions]
        assert kept == [28, 0]

    on_topics(tmp_path, pool, Files(), scenario)


def test_compaction_stops_when_the_broker_does(tmp_path, pool):
    async def scenario(topics, data):
        configs = {"cleanup.policy": "compact", "segment.bytes": "1024"}
        (partition,) = (await topics.create("t", 1, configs)).partitions
        for number in range(30):
            await partition.append(partial(keyed, b"%d" % number * 20))
        size = partition.log.size_bytes
        stopping = asyncio.Event()
        stopping.set()
        scheduler.compact(topics, data, stopping)
        assert partition.log.size_bytes == size

    on_topics(tmp_path, pool, Files(), scenario)


def test_a_duty_that_fails_in_an_unforeseen_way_is_tried_again(caplog):
    async def scenario():
        stopping, tries = asyncio.Event(), []
        loop = asyncio.get_running_loop()

        def act():
            tries.append(1)
            if len(tries) == 2:
                loop.call_soon_threadsafe(stopping.set)
            raise RuntimeError("unforeseen")

        await scheduler.every(0.001, stopping, act)
        assert len(tries) >= 2

    asyncio.run(scenario())
    assert "unforeseen" in caplog.text
