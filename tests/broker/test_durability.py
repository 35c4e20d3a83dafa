"""What an acknowledgement promises: crashes of the process, refusals of the disk, and two brokers on one directory."""

from __future__ import annotations

import asyncio
import errno
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from tagwire import messages
from tagwire.broker import Broker, Settings
from tagwire.broker.hooks import Hooks
from tagwire.broker.network.server import Server
from tagwire.errors import Error, StorageError, TagwireError
from tagwire.records import read

from ..limits import wait_until


@contextmanager
def serving(settings, files):
    """A broker in a thread whose files are `files`; gives its bootstrap."""
    stop = asyncio.Event()
    ready = threading.Event()
    found = {}

    async def main():
        async with Server(settings, Hooks(files)) as server:
            found.update(bootstrap=server.bootstrap, loop=asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(20)
    try:
        yield found["bootstrap"]
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join()


def values(wire, topic, partition):
    """Every (offset, value) of a partition."""
    end = wire.offset_at(topic, -1, partition=partition).offset
    found, offset = [], 0
    while offset < end:
        for batch in read(wire.fetch(topic, offset, partition=partition).records):
            found += [(record.offset, record.value) for record in batch.records()]
            offset = batch.next_offset
    return found


class Load(threading.Thread):
    """Produces numbered records to one partition, several requests ahead, until the broker is gone."""

    def __init__(self, wire, make, partition, name):
        super().__init__(daemon=True)
        self.wire, self.make, self.partition, self.name = wire, make, partition, name
        self.acknowledged = {}

    def run(self):
        sent = answered = 0
        batches = {}
        try:
            while True:
                while sent - answered < 5:
                    batches[sent] = [b"%s-%d-%d" % (self.name.encode(), sent, i) for i in range(1 + sent % 4)]
                    self.wire.send(self.make.produce("t", self.make.records(*batches[sent]), self.partition), 9)
                    sent += 1
                outcome = self.wire.receive().responses[0].partition_responses[0]
                assert outcome.error_code == 0
                for i, value in enumerate(batches.pop(answered)):
                    self.acknowledged[outcome.base_offset + i] = value
                answered += 1
        except (OSError, TagwireError):
            return


@pytest.mark.parametrize(
    "fsync", ["batch", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("interval", "never"))]
)
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(tmp_path, connect, start, make, fsync):
    acknowledged = {0: {}, 1: {}}
    for generation in range(3):
        process = start(tmp_path / "data", fsync)
        if generation == 0:
            connect(process.bootstrap).create("t", 2, segment_bytes="20000")
        loads = [
            Load(connect(process.bootstrap), make, partition, f"{generation}-{partition}-{n}")
            for partition in (0, 1)
            for n in (0, 1)
        ]
        for load in loads:
            load.start()
        wait_until(lambda: all(len(load.acknowledged) >= 200 for load in loads))  # noqa: B023
        process.end(signal.SIGKILL)
        for load in loads:
            load.join()
            assert len(load.acknowledged) >= 200
            assert not acknowledged[load.partition].keys() & load.acknowledged.keys()
            acknowledged[load.partition].update(load.acknowledged)
        process = start(tmp_path / "data", fsync)
        wire = connect(process.bootstrap)
        for partition in (0, 1):
            found = values(wire, "t", partition)
            assert [offset for offset, _ in found] == list(range(len(found)))
            assert len({value for _, value in found}) == len(found)
            assert acknowledged[partition].items() <= dict(found).items()
            for load in loads:
                mine = [int(v.split(b"-")[3]) for _, v in found if v.startswith(load.name.encode() + b"-")]
                assert mine == sorted(mine)
        assert process.end(signal.SIGTERM) == 0


def test_a_signal_stops_it_in_order(tmp_path, connect, start, make):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = start(tmp_path / "data")
        wire = connect(process.bootstrap)
        wire.metadata("t", create=True)
        wire.produce("t", make.records(b"v"))
        assert process.end(number) == 0
        assert process.errors == ""
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    process = start(tmp_path / "data")
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert len(values(connect(process.bootstrap), "t", 0)) == 3


def test_two_brokers_do_not_share_a_directory(tmp_path, connect, start, make):
    process = start(tmp_path / "data")
    pid = process.pid
    with pytest.raises(StorageError, match=rf"in use by another broker \(process {pid}\)"):
        Broker(tmp_path / "data").start()
    wire = connect(process.bootstrap)
    wire.metadata("t", create=True)
    assert wire.produce("t", make.records(b"v")).error_code == 0
    process.end(signal.SIGKILL)
    with Broker(tmp_path / "data") as broker:
        assert values(connect(broker.bootstrap), "t", 0) == [(0, b"v")]
        with pytest.raises(StorageError, match="in use"):
            Broker(tmp_path / "data").start()


def test_a_broker_whose_lock_file_was_deleted_still_has_its_directory_alone(tmp_path, start):
    data = tmp_path / "data"
    with Broker(data):
        (data / ".lock").unlink()
        with pytest.raises(StorageError, match=r"in use by another broker \(process unknown\)"):
            Broker(data).start()
        assert start(data).end(signal.SIGTERM) == 1
    with Broker(data):
        pass


AS_KAFKA_LOCKS = """
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # what Java's FileChannel.tryLock does
except BlockingIOError:
    print("refused", flush=True)
else:
    print("taken", flush=True)
    sys.stdin.read()
"""


def test_a_kafka_broker_and_this_one_keep_each_other_out_by_the_lock_file(tmp_path):
    data = tmp_path / "data"

    def kafka():
        command = [sys.executable, "-c", AS_KAFKA_LOCKS, str(data / ".lock")]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with Broker(data):
        with pytest.raises(StorageError, match="in use"):
            Broker(data).start()
        with kafka() as other:  # who was refused has not let go of the lock of who runs
            assert other.communicate() == ("refused\n", None)
    with kafka() as other:
        assert other.stdout.readline() == "taken\n"
        with pytest.raises(StorageError, match=r"in use: another process holds .*lock, as a Kafka broker does"):
            Broker(data).start()
        other.communicate()
    with Broker(data):
        pass


def test_an_fsync_that_fails_is_not_acknowledged_and_ends_the_use_of_its_partition_alone(
    tmp_path, connect, make, failing_files
):
    settings = Settings(data_dir=tmp_path / "data")
    with serving(settings, failing_files) as bootstrap:
        wire = connect(bootstrap)
        wire.create("t", 2)
        assert wire.produce("t", make.records(b"before")).error_code == 0
        failing_files.fail("sync", times=1)
        assert wire.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
        assert wire.produce("t", make.records(b"refused")).error_code == Error.KAFKA_STORAGE_ERROR
        assert wire.fetch("t", 0).error_code == Error.KAFKA_STORAGE_ERROR
        assert wire.offset_at("t", 0).error_code == Error.KAFKA_STORAGE_ERROR
        broken, sound = wire.metadata().topics[0].partitions
        assert (broken.error_code, broken.leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)
        assert (broken.isr_nodes, broken.offline_replicas) == ([], [1])
        assert (sound.error_code, sound.leader_id) == (0, 1)
        assert wire.produce("t", make.records(b"fine"), partition=1).error_code == 0
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert values(wire, "t", 0) == [(0, b"before")]
        assert values(wire, "t", 1) == [(0, b"fine")]


def test_every_append_that_shares_a_failed_fsync_is_refused(tmp_path, connect, make, failing_files):
    with serving(Settings(data_dir=tmp_path / "data"), failing_files) as bootstrap:
        wire = connect(bootstrap)
        wire.create("t")
        failing_files.fail("sync")
        for number in range(20):
            wire.send(make.produce("t", make.records(b"%d" % number)), 9)
        codes = {wire.receive().responses[0].partition_responses[0].error_code for _ in range(20)}
        failing_files.mend()
    assert codes == {Error.KAFKA_STORAGE_ERROR}


def test_a_full_disk_refuses_appends_and_takes_them_again_when_there_is_room(tmp_path, connect, make, failing_files):
    with serving(Settings(data_dir=tmp_path / "data"), failing_files) as bootstrap:
        wire = connect(bootstrap)
        wire.create("t")
        failing_files.fail("write", errno.ENOSPC)
        outcome = wire.produce("t", make.records(b"no room"))
        assert outcome.error_code == Error.KAFKA_STORAGE_ERROR
        assert "No space left" in outcome.error_message
        assert wire.create("u").error_code == Error.KAFKA_STORAGE_ERROR
        delete = messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
        assert wire.ask(delete, 5).responses[0].error_code == Error.KAFKA_STORAGE_ERROR
        assert [topic.name for topic in wire.metadata().topics] == ["t"]
        failing_files.mend()
        assert wire.produce("t", make.records(b"room")).base_offset == 0
        assert wire.create("u").error_code == 0
    with Broker(tmp_path / "data") as broker:
        assert values(connect(broker.bootstrap), "t", 0) == [(0, b"room")]


def test_what_is_read_is_on_the_disk(tmp_path, connect, make, failing_files):
    """With fsync="batch" a reader never sees what a crash could take back."""
    with serving(Settings(data_dir=tmp_path / "data"), failing_files) as bootstrap:
        wire, reader = connect(bootstrap), connect(bootstrap)
        wire.create("t")
        reader.send(make.fetch("t", 0, max_wait_ms=300), 12)
        failing_files.fail("sync", times=1)
        assert wire.produce("t", make.records(b"v")).error_code == Error.KAFKA_STORAGE_ERROR
        assert len(reader.receive().responses[0].partitions[0].records) == 0


def test_interval_and_never_do_not_wait_for_the_disk(tmp_path, connect, make, failing_files):
    with serving(Settings(data_dir=tmp_path / "data", fsync="never"), failing_files) as bootstrap:
        wire = connect(bootstrap)
        wire.create("t")
        failing_files.fail("sync", times=1)
        assert wire.produce("t", make.records(b"v")).error_code == 0
        assert values(wire, "t", 0) == [(0, b"v")]
        failing_files.mend()
