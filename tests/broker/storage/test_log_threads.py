"""A log that several threads use: its lock is held by whoever changes it, and what is read is of one moment."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tagwire import messages
from tagwire.broker import Settings, scheduler
from tagwire.broker.storage import log_lock
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.storage.log_lock import UnguardedAccessError
from tagwire.broker.storage.producer_state import EXPIRES_AFTER_MS
from tagwire.broker.topic_config import TopicConfig
from tagwire.broker.topics import Topics
from tagwire.errors import Error, StorageError
from tagwire.records import Record, batch_headers, write

from ..asking import add_partitions, begin, end, send_in_transaction
from ..test_durability import serving
from .compacted import WHERE, Compacted, batch, fill

OLD_MS = 1000
NOW_MS = OLD_MS + EXPIRES_AFTER_MS + 1


@pytest.fixture
def often():
    """Threads take turns a thousand times as often as they do by themselves."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def old_batch(producer, sequence=0, *, transactional=False):
    """A batch of a producer that has been silent for longer than producers are known."""
    data = write(
        [Record(None, b"v", timestamp=OLD_MS)],
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=transactional,
    )
    return batch_of(next(batch_headers(data)), memoryview(data))


class Held(Files):
    """Holds one sync back until it is told."""

    def __init__(self):
        self.go_on, self.waits = threading.Event(), threading.Event()
        self.was_told = None
        self.holds = False

    def sync(self, fd):
        if self.holds:
            self.holds = False
            self.waits.set()
            self.was_told = self.go_on.wait(5)
        super().sync(fd)


def test_the_scheduler_forgets_producers_while_others_append_and_never_one_that_has_a_transaction_open(tmp_path, often):
    log = create_log(Files(), tmp_path, TopicConfig(retention_ms=-1))
    problems, is_over = [], threading.Event()

    def forget():
        try:
            while not is_over.is_set():
                log.expired_before(NOW_MS)
        except Exception as error:
            problems.append(error)

    scheduler_thread = threading.Thread(target=forget)
    scheduler_thread.start()
    have_open = range(0, 6000, 2)
    try:
        for first in range(0, 6000, 100):
            log.append([old_batch(producer) for producer in range(first, first + 100)])
            log.publish()
            log.append([old_batch(producer, 1, transactional=True) for producer in range(first, first + 100, 2)])
            log.publish()
            assert not problems
            assert log.stable_offset == 100
    finally:
        is_over.set()
        scheduler_thread.join(20)
    assert not problems
    known = log.known_producers()
    assert [
        producer for producer in have_open if producer not in known or known[producer].transaction_start is None
    ] == []


def test_producers_are_not_forgotten_while_somebody_writes(tmp_path, monkeypatch):
    files = Held()
    log = create_log(files, tmp_path, TopicConfig(retention_ms=-1))
    log.append([old_batch(7), old_batch(8)])
    roll_if_due = log.roll_if_due

    def and_then_somebody_writes(now_ms):
        roll_if_due(now_ms)
        files.holds = True
        writer.start()
        assert files.waits.wait(20)

    monkeypatch.setattr(log, "roll_if_due", and_then_somebody_writes)
    writer = threading.Thread(target=log.flush)
    forgetting = threading.Thread(target=log.expired_before, args=(NOW_MS,))
    forgetting.start()
    assert files.waits.wait(20)
    forgetting.join(0.3)
    assert forgetting.is_alive()
    files.go_on.set()
    forgetting.join(20)
    writer.join(20)
    assert log.known_producers() == {}


def test_what_belongs_to_a_log_cannot_be_changed_without_its_lock(tmp_path):
    log = create_log(Files(), tmp_path, TopicConfig())
    with pytest.raises(UnguardedAccessError, match="recovery_point"):
        log.recovery_point = 7
    assert log.recovery_point == 0
    (segment,) = log._segments
    with pytest.raises(UnguardedAccessError, match="size"):
        segment.size = 7
    assert [access.rpartition(": ")[2] for access in log_lock.unguarded] == [
        "PartitionLog.recovery_point",
        "LogSegment.size",
    ]
    log_lock.unguarded.clear()


def test_a_guard_tells_threads_apart_and_lets_what_is_of_no_lock_alone():
    @log_lock.guarded("lock", changed=("seen",), used=("kept",))
    class Guarded:
        def __init__(self, lock):
            self.lock = lock
            self.seen = self.kept = 1

    free = Guarded(None)
    free.kept = free.seen = free.kept + 1
    found = Guarded(log_lock.log_lock())
    with found.lock:
        found.kept += 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: found.seen).result() == 1
            with pytest.raises(UnguardedAccessError):
                pool.submit(lambda: found.kept).result()
    assert len(log_lock.unguarded) == 1
    log_lock.unguarded.clear()


class Hooked(Files):
    """Calls `hook`, once, with the path of a file that was opened for reading and is closed, or is opened."""

    def __init__(self):
        self.opened, self.closed = None, None
        self._paths = {}

    def open(self, path, *, write=False):
        if self.opened is not None and not write:
            hook, self.opened = self.opened, None
            hook(path)
        fd = super().open(path, write=write)
        self._paths[fd] = None if write else path
        return fd

    def close(self, fd):
        path = self._paths.pop(fd, None)
        super().close(fd)
        if self.closed is not None and path is not None and path.suffix == ".log":
            hook, self.closed = self.closed, None
            hook(path)


def test_a_reader_of_committed_records_is_told_of_what_was_aborted_though_it_is_deleted_meanwhile(
    tmp_path, connect, make
):
    files = Hooked()
    with serving(Settings(data_dir=tmp_path / "data"), files) as bootstrap:
        wire, other = connect(bootstrap), connect(bootstrap)
        wire.create("t", segment_bytes="1024")
        who = begin(wire, "tx")
        add_partitions(wire, "tx", who, "t", 0)
        send_in_transaction(wire, "tx", who, "t", 0, 0, b"v" * 900)
        end(wire, "tx", who, commit=False)
        wire.produce("t", make.records(b"w" * 900))
        wire.produce("t", make.records(b"w" * 900))

        def delete(path):
            asked = messages.DeleteRecordsRequest
            partitions = [asked.DeleteRecordsPartition(partition_index=0, offset=-1)]
            topics = [asked.DeleteRecordsTopic(name="t", partitions=partitions)]
            answer = other.ask(asked(topics=topics, timeout_ms=1000), 2)
            assert answer.topics[0].partitions[0].error_code == 0

        files.closed = delete
        answer = wire.fetch("t", 0, isolation_level=1)
        assert files.closed is None
        first = next(batch_headers(answer.records))
        assert (first.base_offset, first.producer_id) == (0, who.producer_id)
        assert [(a.producer_id, a.first_offset) for a in answer.aborted_transactions] == [(who.producer_id, 0)]
        assert answer.log_start_offset == 0


def numbered(sequence, *pairs):
    return batch(*pairs, producer_id=7, producer_epoch=0, base_sequence=sequence)


def test_compaction_keeps_what_a_producer_is_known_from_until_its_next_batch_is_on_the_disk(tmp_path):
    files = Hooked()
    kept = Compacted(tmp_path, files=files)
    kept.add(numbered(0, (b"k", b"1")), batch((b"k", b"2")))
    kept.roll()
    active = max(kept.directory.glob("*.log"))
    # While compaction reads, the producer's next batch comes, and power is lost before it is on the disk.
    files.opened = lambda path: kept.log.append([numbered(1, (b"k", b"3"))])
    kept.compact()
    assert files.opened is None
    kept.log.abandon("the test crashes it")
    active.write_bytes(b"")
    again = open_log(Files(), kept.directory, kept.log.config, clean=False, gaps_before=kept.gaps.get(*WHERE))
    assert again.known_producers()[7].last_sequence == 0


def test_how_far_a_log_was_compacted_is_not_written_down_of_one_that_was_deleted_meanwhile(tmp_path):
    kept = Compacted(tmp_path)
    fill(kept, rounds=1)
    kept.roll()
    asked = []
    kept.compact(stop=lambda: asked.append(1))
    kept.cleaned.forget({WHERE[0]})
    last = len(asked)

    def stop():
        asked.append(1)
        if len(asked) == 2 * last:  # all that is left to do is to write it down
            kept.log.abandon("its topic was deleted")

    with pytest.raises(StorageError, match="offline"):
        kept.compact(stop=stop)
    assert kept.cleaned.offsets == {}


@pytest.mark.parametrize("act", ["delete", "describe"])
def test_the_event_loop_never_waits_for_the_lock_of_a_log(tmp_path, batch, act):
    files = Held()

    async def scenario(topics):
        topic = await topics.create("t", 1, {})
        (partition,) = topic.partitions
        await partition.append(partial(batch, 1))
        files.holds = True
        syncing = asyncio.create_task(asyncio.to_thread(scheduler.sync, topics))
        await asyncio.to_thread(files.waits.wait, 20)
        acting = asyncio.create_task(topics.delete(topic) if act == "delete" else partition.producers())
        await asyncio.sleep(0.3)
        files.go_on.set()
        await asyncio.gather(syncing, acting)
        assert files.was_told

    async def run():
        data = DataDirectory(files, tmp_path / "data")
        with ThreadPoolExecutor(4) as pool:
            await scenario(Topics(files, data, pool, pool, "interval"))
        data.close(clean=False)

    asyncio.run(run())


def test_a_log_stays_offline_for_its_first_reason(tmp_path, connect, make, failing_files, caplog):
    with serving(Settings(data_dir=tmp_path / "data"), failing_files) as bootstrap:
        wire = connect(bootstrap)
        wire.create("t")
        failing_files.fail("sync", times=1)
        assert wire.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
        told = {wire.produce("t", make.records(b"refused")).error_message for _ in range(3)}
    assert len(told) == 1
    assert caplog.text.count("offline until the next start") == 1
