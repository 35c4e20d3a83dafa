"""Damage in a data directory: a partition's takes that partition, that of the broker's own files is told by name."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import time

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.telemetry.statistics import tables
from tagwire.errors import Error, StorageError
from tagwire.records import read
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS

from ..limits import wait_until
from .asking import add_partitions, begin, commit, committed, committed_values, send_in_transaction

FIRST = f"{0:020d}"
STORAGE = Error.KAFKA_STORAGE_ERROR


@pytest.fixture
def data(tmp_path, connect, make):
    """A directory of one topic of two partitions, each of several segments and one producer, left in order."""
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2, segment_bytes="1024")
        for partition in (0, 1):
            for number in range(4):
                assert wire.produce("t", make.records(b"%d" % number * 900), partition=partition).error_code == 0
    return tmp_path / "data"


def text(content):
    return lambda path: path.write_bytes(content.encode())


def nothing(path):
    path.unlink()


def directory(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def device(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def unix_socket(path):
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(path.parent, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def endless(path):
    """A sparse file that no memory holds."""
    with open(path, "ab") as file:
        file.truncate(1 << 42)


METADATA, EPOCHS = "partition.metadata", "leader-epoch-checkpoint"

DAMAGE = {
    **{f"{METADATA} {number}": (METADATA, text(content)) for number, content in enumerate(
        ["", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "\0" * 40]
    )},
    **{f"{EPOCHS} {number}": (EPOCHS, text(content)) for number, content in enumerate(
        ["0\n5\n0 0\n", "1\n1\n0 0\n", "0\n1\nzero 0\n", "0\n1\n0 -1\n", "0\n2\n5 0\n4 2\n", "0\n1\n99999999999 0\n"]
    )},
    f"{METADATA} missing": (METADATA, nothing),
    **{f"{name} {harm.__name__}": (name, harm) for name, harm in [
        (METADATA, directory), (METADATA, pipe), (METADATA, device), (METADATA, unix_socket), (METADATA, endless),
        (EPOCHS, directory), (EPOCHS, pipe), (EPOCHS, device), (EPOCHS, endless),
        (f"{FIRST}.log", directory), (f"{FIRST}.log", pipe), (f"{FIRST}.log", device),
        (f"{FIRST}.index", directory), (f"{FIRST}.index", pipe), (f"{FIRST}.timeindex", device),
        (f"{FIRST}.txnindex", directory), (f"{FIRST}.txnindex", pipe),
        (f"{4:020d}.snapshot", directory),
    ]},
}  # fmt: skip


def check_offline(broker, wire, make):
    """Partition 0 is, wherever one asks, and says why; partition 1 is served. The reason."""
    produced = wire.produce("t", make.records(b"v"))
    assert produced.error_code == STORAGE
    assert wire.fetch("t", 0).error_code == STORAGE
    assert wire.fetch("t", 0, current_leader_epoch=3).error_code == STORAGE
    for timestamp in (-1, -2, 0):
        assert wire.offset_at("t", timestamp).error_code == STORAGE
    asked = messages.OffsetForLeaderEpochRequest
    partitions = [asked.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    epochs = wire.ask(asked(topics=[asked.OffsetForLeaderTopic(topic="t", partitions=partitions)]), 4)
    assert epochs.topics[0].partitions[0].error_code == STORAGE
    asked = messages.DeleteRecordsRequest
    topics = [
        asked.DeleteRecordsTopic(name="t", partitions=[asked.DeleteRecordsPartition(partition_index=0, offset=-1)])
    ]
    assert wire.ask(asked(topics=topics), 2).topics[0].partitions[0].error_code == STORAGE
    asked = messages.DescribeProducersRequest
    told = wire.ask(asked(topics=[asked.TopicRequest(name="t", partition_indexes=[0, 1])]), 0)
    assert [partition.error_code for partition in told.topics[0].partitions] == [STORAGE, 0]

    broken, sound = wire.metadata().topics[0].partitions
    assert (broken.error_code, broken.leader_id, broken.leader_epoch) == (Error.LEADER_NOT_AVAILABLE, -1, -1)
    assert (broken.replica_nodes, broken.isr_nodes, broken.offline_replicas) == ([1], [], [1])
    assert (sound.error_code, sound.leader_id, sound.leader_epoch) == (0, 1, 0)

    whole, offline = wire.ask(messages.DescribeLogDirsRequest(topics=None), 4).results
    assert (whole.error_code, offline.error_code) == (0, STORAGE)
    assert [[p.partition_index for p in topic.partitions] for topic in whole.topics] == [[1]]
    assert [[p.partition_index for p in topic.partitions] for topic in offline.topics] == [[0]]
    assert offline.log_dir.endswith("/t-0")

    (row,) = broker.stats()["offline"]
    assert (row["topic"], row["partition"]) == ("t", 0)
    assert row["reason"] in produced.error_message
    assert broker.stats()["topics"][0]["offline"] == 1
    assert ["t-0", row["reason"]] in tables(broker.stats())[-1][1]
    assert values(wire, 1)[:4] == [b"%d" % number * 900 for number in range(4)]
    return row["reason"]


def values(wire, partition):
    found, offset = [], 0
    while offset < wire.offset_at("t", -1, partition=partition).offset:
        for batch in read(wire.fetch("t", offset, partition=partition).records):
            found += [record.value for record in batch.records()]
            offset = batch.next_offset
    return found


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("what", DAMAGE)
def test_damage_of_one_partition_takes_that_partition_offline_and_no_other(data, connect, make, caplog, what, clean):
    name, harm = DAMAGE[what]
    kept = data.parent / "kept"
    shutil.copytree(data / "t-0", kept)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
    harm(data / "t-0" / name)
    if not clean and name.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
        return  # these are made anew
    for _ in range(1 if name.endswith(".txnindex") else 2):  # a second start makes what can be made anew
        with Broker(data) as broker:
            reason = check_offline(broker, connect(broker.bootstrap), make) if clean else broker.stats()["offline"]
        if not clean:
            (row,) = reason
            reason = row["reason"]
        assert name in reason
        assert f"t-0 is offline until the next start: {reason}" in caplog.text
        assert "Traceback" not in caplog.text
    shutil.rmtree(data / "t-0")
    shutil.copytree(kept, data / "t-0")
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert values(wire, 0) == [b"%d" % number * 900 for number in range(4)]
        assert broker.stats()["offline"] == []
        epochs = [partition.leader_epoch for partition in wire.metadata().topics[0].partitions]
        # What was offline was not closed in order, and is checked; the rest was.
        assert epochs == ([1, 0] if clean else [1, 1])
        assert wire.produce("t", make.records(b"on")).error_code == 0


def test_the_only_partition_is_checked_when_it_is_mended_as_one_of_several_is(tmp_path, connect, make):
    data = tmp_path / "data"
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", segment_bytes="1024")
        for number in range(4):
            assert wire.produce("t", make.records(b"%d" % number * 900)).error_code == 0
    harmed = data / "t-0" / METADATA
    before = harmed.read_bytes()
    nothing(harmed)
    with Broker(data) as broker:
        assert [row["topic"] for row in broker.stats()["offline"]] == ["t"]
    harmed.write_bytes(before)
    with Broker(data) as broker:
        assert [partition.leader_epoch for partition in connect(broker.bootstrap).metadata().topics[0].partitions] == [
            1
        ]


@pytest.mark.parametrize("harm", ["missing", "file", "pipe"])
def test_a_partitions_directory_that_is_none_takes_that_partition_and_goes_with_its_topic(data, connect, make, harm):
    shutil.rmtree(data / "t-0")
    if harm != "missing":
        text("no directory")(data / "t-0") if harm == "file" else pipe(data / "t-0")
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert "t-0/partition.metadata" in check_offline(broker, wire, make)
        request = messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
        assert wire.ask(request, 5).responses[0].error_code == 0
        assert wire.create("t", 2).error_code == 0
        assert wire.produce("t", make.records(b"v")).error_code == 0
        assert broker.stats()["offline"] == []
    assert not list(data.glob("*-delete"))


@pytest.mark.parametrize("name", [f"{FIRST}.index", f"{FIRST}.timeindex", f"{FIRST}.txnindex"])
def test_an_index_that_never_ends_is_read_as_far_as_its_segment_reaches(data, connect, name):
    endless(data / "t-0" / name)
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert len(values(wire, 0)) == 4
        assert wire.offset_at("t", 0).offset == 0


def test_a_log_that_could_not_be_opened_is_taken_to_have_gaps_anywhere_when_nobody_knows_where(data, connect, make):
    text("no checkpoint")(data / "tagwire-gap-offset-checkpoint")
    harmed = data / "t-0" / METADATA
    before = harmed.read_bytes()
    nothing(harmed)
    with Broker(data):
        pass
    assert f"t 0 {2**63 - 1}\nt 1 4\n" in (data / "tagwire-gap-offset-checkpoint").read_text()
    harmed.write_bytes(before)


def test_a_disk_error_while_one_log_is_opened_takes_that_log(data, connect):
    with Broker(data) as broker:
        pass
    truncate = broker.disk.truncate

    def failing(fd, size):
        if "/t-0/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        truncate(fd, size)

    broker.disk.truncate = failing
    (data / ".kafka_cleanshutdown").unlink()
    last = max((data / "t-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + b"half")
    with broker:
        (row,) = broker.stats()["offline"]
        assert (row["partition"], "Input/output error" in row["reason"]) == (0, True)
        assert len(values(connect(broker.bootstrap), 1)) == 4


def test_a_log_that_was_not_opened_is_not_closed_either_where_the_disk_takes_no_word_of_that(data, connect):
    (data / ".kafka_cleanshutdown").unlink()
    points = data / "recovery-point-offset-checkpoint"
    points.write_text("0\n2\nt 0 0\nt 1 0\n")
    second = sorted((data / "t-0").glob("*.log"))[1]
    second.write_bytes(bytes(second.stat().st_size))  # as a loss of power leaves what was not on the disk
    harmed = data / "t-0" / METADATA
    before = harmed.read_bytes()
    nothing(harmed)
    broker = Broker(data)
    rename = broker.disk.rename

    def failing(source, target):
        if target == points:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    broker.disk.rename = failing
    with broker:
        pass
    harmed.write_bytes(before)
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert [wire.offset_at("t", -1, partition=partition).offset for partition in (0, 1)] == [1, 4]


@pytest.fixture
def state(tmp_path, connect):
    """A directory with a group and a transactional id, left in order."""
    with Broker(tmp_path / "state") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        commit(wire, "g", 7)
        begin(wire, "tx")
    return tmp_path / "state"


def refusal(path):
    with pytest.raises(StorageError) as caught:
        Broker(path).start()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS])
def test_a_broker_does_not_start_without_its_own_state_unless_it_is_told_to_forget_it(state, connect, topic):
    text("damaged")(state / f"{topic}-0" / METADATA)
    said = refusal(state)
    assert f"{topic}-0/{METADATA}" in said
    assert f"take {topic} out of tagwire-topics.json" in said
    listed = state / "tagwire-topics.json"
    document = json.loads(listed.read_text())
    document["topics"] = [entry for entry in document["topics"] if entry["name"] != topic]
    listed.write_text(json.dumps(document))
    with Broker(state) as broker:
        wire = connect(broker.bootstrap)
        assert committed(wire, "g") == (-1 if topic == OFFSETS else 7)
        commit(wire, "g", 8)
        assert begin(wire, "tx").error_code == 0
    (aside,) = state.glob(f"{topic}-0.*-stray")
    assert (aside / METADATA).read_text() == "damaged"


def test_a_transaction_whose_partition_is_damaged_ends_when_that_is_mended_and_is_complained_of_once(
    tmp_path, connect, caplog
):
    data = tmp_path / "data"
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        who = begin(wire, "tx")
        add_partitions(wire, "tx", who, "t", 0, 1)
        for partition in (0, 1):
            send_in_transaction(wire, "tx", who, "t", partition, 0, b"v")
    harmed = data / "t-0" / METADATA
    before = harmed.read_bytes()
    text("damaged")(harmed)
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        ended = messages.EndTxnRequest(
            transactional_id="tx", producer_id=who.producer_id, producer_epoch=who.producer_epoch, committed=True
        )
        assert wire.ask(ended, 3).error_code == Error.COORDINATOR_NOT_AVAILABLE

        def complaints():
            return sum("transaction tx: " in record.message for record in caplog.records)

        wait_until(complaints)
        time.sleep(1.5)  # it is tried again twice a second
        assert complaints() == 1
        assert not [record for record in caplog.records if record.message.startswith(str(data))]
    harmed.write_bytes(before)
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        for partition in (0, 1):  # its markers are written while the broker serves already
            assert wait_until(lambda: committed_values(wire, "t", partition)) == [b"v"]  # noqa: B023


TOPICS = "tagwire-topics.json"


def listing(*topics):
    return f'{{"version": 0, "topics": [{", ".join(topics)}]}}'


TOPIC = '{"name": "t", "id": "H3KKO4NTRPaCWtEmm3vW7A", "partitions": 1, "configs": {}}'

OF_THE_BROKER = {
    **{f"{TOPICS} {number}": (TOPICS, text(content), "restore it") for number, content in enumerate([
        "{", "[]", '{"version": 0}', '{"version": 0, "topics": [1]}', '{"version": 0, "topics": [{"name": "t"}]}',
        listing(TOPIC, TOPIC),
        listing(TOPIC.replace('"t"', '"../t"')),
        listing(TOPIC.replace('"t"', '7')),
        listing(TOPIC.replace(': 1', ': 1000000000')),
        listing(TOPIC.replace(': 1', ': -1')),
        listing(TOPIC.replace('{}', '{"retention.ms": 5}')),
        listing(TOPIC.replace('{}', '[]')),
        "[" * 100_000, "\0" * 100,
    ])},
    **{f"meta.properties {number}": ("meta.properties", text(content), "write version=1") for number, content in
       enumerate(["version=1\n", "version=0\ncluster.id=x\nnode.id=1\n", "version=1\ncluster.id=\nnode.id=1\n",
                  "version=1\ncluster.id=x\nnode.id=9999999999\n", "version=1\ncluster.id=x\nnode.id=one\n",
                  f"version=1\ncluster.id={'x' * 40_000}\nnode.id=1\n", "\0\1\2"])},
    "meta.properties missing": ("meta.properties", nothing, "write version=1"),
    **{f"tagwire-producer-ids {number}": ("tagwire-producer-ids", text(content), "no producer id has reached")
       for number, content in enumerate(["", "x", "-1", "9" * 30, "\0" * 9])},
    **{f"{name} {harm.__name__}": (name, harm, "") for name in (
        TOPICS, "meta.properties", "tagwire-producer-ids", "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint", ".lock", ".kafka_cleanshutdown",
       ) for harm in (directory, pipe, device, unix_socket) if name != ".kafka_cleanshutdown" or harm is directory},
    **{f"{name} endless": (name, endless, "") for name in (TOPICS, "meta.properties", "tagwire-producer-ids")},
}  # fmt: skip


@pytest.mark.parametrize("what", OF_THE_BROKER)
def test_damage_of_a_file_of_the_brokers_own_is_told_by_name_with_what_to_do(state, what):
    name, harm, to_do = OF_THE_BROKER[what]
    harm(state / name)
    said = refusal(state)
    assert str(state / name) in said
    assert to_do in said


@pytest.mark.parametrize("content", ["0\n1\nt 0 -5\n", "0\n1\nt 0 99999999999999999999\n", "0\n1\nt -1 5\n"])
@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_of_offsets_that_none_can_have_is_not_taken(data, connect, caplog, name, content):
    text(content)(data / name)
    with Broker(data) as broker:
        assert len(values(connect(broker.bootstrap), 0)) == 4
    assert name in caplog.text


def test_what_cannot_be_swept_away_keeps_nobody_from_starting(data, connect, caplog):
    text("no directory")(data / f"t-0.{'0' * 32}-delete")
    aside = data / f"gone-0.{'1' * 32}-delete"
    aside.mkdir()
    with Broker(data) as broker:
        broker.stop()
        (data / f"other-0.{'2' * 32}-delete").mkdir()
        broker.disk.remove_tree = lambda path: (_ for _ in ()).throw(PermissionError(1, "not permitted", str(path)))
        broker.start()
        assert len(values(connect(broker.bootstrap), 0)) == 4
    assert not aside.exists()
    assert "not permitted; it stays" in caplog.text


def test_a_snapshot_of_producers_that_cannot_be_read_is_passed_over(data, connect, make):
    pipe(data / "t-0" / f"{4:020d}.snapshot")
    with Broker(data) as broker:
        assert broker.stats()["offline"] == []
        assert len(values(connect(broker.bootstrap), 0)) == 4
