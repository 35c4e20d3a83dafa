"""`tagwire log`: Kafka's files, shown and checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from uuid import UUID

import pytest

from tagwire import messages, records
from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer
from tagwire.records import Record
from tagwire.records.files.partition_metadata import format_topic_id

from .processes import start

DAY = 1_372_917_600_000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data directory that a broker of ours wrote: topic `flights`, one partition, 30 records in 3 batches."""
    path = tmp_path_factory.mktemp("data")
    with Broker(path, fsync="never") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("flights", num_partitions=1, configs={"retention.ms": "-1"})])
        for start in (0, 10, 20):
            with Producer(broker.bootstrap) as producer:
                for i in range(start, start + 10):
                    producer.send("flights", b"v%d" % i, b"k%d" % i, [("origin", b"EWR")], DAY + i, 0)
    return path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "00000000000000000007.log"
    rows = [Record(b"k", b"v\x1b[2J", [("h\x1b", None)], DAY), Record(None, None, (), DAY)]
    path.write_bytes(records.write(rows, base_offset=7) + records.write(rows, base_offset=9, compression="zstd"))
    return path


def lines(ran):
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_each_batch_is_a_line(run, log):
    ran = run("log", log)
    assert ran.code == 0
    first, *batches = ran.out.splitlines()
    assert first == str(log)
    assert [line.split()[0] for line in batches] == ["7-8", "9-10"]
    assert "zstd" in batches[1]
    assert "2013-07-04 06:00" in batches[0]


def test_json_says_all_of_a_batch(run, log):
    first, second = lines(run("log", log, "--json"))
    assert (first["base_offset"], first["last_offset"], first["count"], first["position"]) == (7, 8, 2, 0)
    assert (second["compression"], second["position"], second["crc_ok"]) == ("zstd", first["size"], True)
    assert first["is_control"] is first["is_transactional"] is False


def test_a_wrong_checksum_is_shown_beside_its_batch_and_stops_the_reading_of_records(run, log):
    whole = bytearray(log.read_bytes())
    whole[-1] ^= 1
    log.write_bytes(whole)
    assert [line["crc_ok"] for line in lines(run("log", log, "--json"))] == [True, False]
    assert "CHECKSUM WRONG" in run("log", log).out
    ran = run("log", log, "--records")
    assert ran.code == 2
    assert str(log.name) in ran.err
    assert len(ran.err.splitlines()) == 1


def test_records_are_lines_that_cannot_steer_the_terminal(run, log):
    ran = run("log", log, "--headers")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "@7  2013-07-04 06:00  key=k  headers: h\\x1b=<null>" in ran.out
    assert "headers:" not in run("log", log, "--records").out


def test_offset_and_limit_choose_records(run, data):
    ran = run("log", data / "flights-0", "--records", "--offset", 14, "--limit", 3, "--json")
    assert [(line["topic"], line["partition"], line["offset"], line["key"]) for line in lines(ran)] == [
        ("flights", 0, 14, "k14"),
        ("flights", 0, 15, "k15"),
        ("flights", 0, 16, "k16"),
    ]
    assert lines(ran)[0]["headers"] == [{"key": "origin", "value": "EWR"}]
    assert len(lines(run("log", data / "flights-0", "--offset", 14, "--limit", 1, "--json"))) == 1


def test_a_data_directory_is_all_its_partitions(run, data):
    assert len(lines(run("log", data, "--records", "--json"))) == 30


def test_what_our_broker_wrote_is_sound(run, data):
    ran = run("log", data, "--verify")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("sound\n")
    assert lines(run("log", data, "--verify", "--json")) == []


def test_every_fault_is_named_and_the_exit_code_is_1(run, log):
    whole = bytearray(log.read_bytes())
    whole[70] ^= 1
    log.write_bytes(whole + b"\0\0\0\0\0\0\0\1")
    log.with_suffix(".index").write_bytes(bytes.fromhex("00000003 00000009"))
    ran = run("log", log, "--verify")
    assert (ran.code, ran.err) == (1, "")
    assert [line.split(": ")[0] for line in ran.out.splitlines()] == [
        f"{log} at byte 0, offset 7",
        f"{log.with_suffix('.index')} at byte 0",
        f"{log} at byte {len(whole)}",
        "1 segments, 0.0 MiB",
    ]
    ran = run("log", log, "--verify", "--json")
    faults = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, [fault["position"] for fault in faults]) == (1, [0, 0, len(whole)])
    ran = run("log", log.with_suffix(".index"), "--verify")
    assert (ran.code, len(ran.out.splitlines())) == (1, 2)


def test_files_beside_a_log_are_printed_and_checked(run, data, tmp_path):
    partition = data / "flights-0"
    assert lines(run("log", partition / "leader-epoch-checkpoint", "--json"))[0]["epoch"] == 0
    assert len(lines(run("log", partition / "partition.metadata", "--json"))[0]["topic_id"]) == 22
    index = tmp_path / "00000000000000000007.index"
    index.write_bytes(bytes.fromhex("00000004 00000100"))
    assert run("log", index).out == f"{index}\n  offset 11  position 256\n"
    index.write_bytes(bytes.fromhex("00000004 00000100 00000004 00000100"))
    assert run("log", index).code == 2
    assert run("log", index, "--verify").code == 1


def test_zeros_and_partial_batches_at_the_end_are_told(run, log):
    size = log.stat().st_size
    with open(log, "ab") as file:
        file.write(bytes(100))
    assert run("log", log).out.endswith(f"  100 bytes to the end, at {size}: zeros, allocated ahead\n")
    assert run("log", log, "--verify").code == 0


def test_leftovers_are_named_and_not_read(run, tmp_path):
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / "00000000000000000000.log.deleted").write_bytes(b"x" * 100)
    ran = run("log", partition)
    assert (ran.code, ran.out) == (0, "")
    assert "00000000000000000000.log.deleted" in ran.err


def test_records_that_are_moved_or_deleted_stand_once_among_those_of_a_data_directory(run, tmp_path):
    for state in ("", f".{'a' * 32}-future", f".{'b' * 32}-delete"):
        partition = tmp_path / f"t-0{state}"
        partition.mkdir()
        (partition / f"{0:020}.log").write_bytes(records.write([Record(None, b"v", timestamp=DAY)]))
    ran = run("log", tmp_path, "--records", "--json")
    assert [json.loads(line)["offset"] for line in ran.out.splitlines()] == [0]
    passing = f"t-0.{'b' * 32}-delete, t-0.{'a' * 32}-future"
    assert ran.err == f"{tmp_path}: not read, being moved or deleted, or of nobody; they are read by name: {passing}\n"
    (moved,) = lines(run("log", partition, "--records", "--json"))
    assert moved["offset"] == 0
    assert len(lines(run("log", tmp_path, "--json"))) == 3  # batches, each with its file
    (tmp_path / "t-0" / f"{0:020}.log").unlink()
    (tmp_path / "t-0").rmdir()
    ran = run("log", tmp_path, "--decode", "offsets")
    assert (ran.code, ran.err.splitlines()[-1]) == (2, f"tagwire: {tmp_path}: holds no other partition")


def test_offsets_are_decoded(run, tmp_path):
    partition = tmp_path / "__consumer_offsets-4"
    partition.mkdir()
    key = b"\0\1" + messages.OffsetCommitKey(group="g", topic="t", partition=3).encode(0)
    value = b"\0\3" + messages.OffsetCommitValue(offset=100).encode(3)
    rows = [Record(key, value, timestamp=DAY), Record(key, None, timestamp=DAY), Record(b"\0\x63", b"x", timestamp=DAY)]
    (partition / "00000000000000000000.log").write_bytes(records.write(rows))
    commit, tombstone, unknown = lines(run("log", tmp_path, "--decode", "offsets", "--json"))
    assert (commit["type"], commit["key"]["group"], commit["value"]["offset"]) == ("OffsetCommit", "g", 100)
    assert (tombstone["key"]["group"], tombstone["value"]) == ("g", None)
    assert "record type 99" in unknown["error"]
    text = run("log", partition, "--decode", "offsets").out
    assert '"offset": 100' in text
    assert "<deleted>" in text
    assert "cannot be read" in text


def test_credentials_in_cluster_metadata_are_not_printed(run, tmp_path):
    log = tmp_path / "00000000000000000007-0000000001.checkpoint"
    record = messages.UserScramCredentialRecord(name="alice", salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER")
    log.write_bytes(records.write([Record(None, b"\x01\x0b\0" + record.encode(0), timestamp=DAY)]))
    ran = run("log", log, "--decode", "metadata")
    assert "alice" in ran.out
    assert "SALT" not in ran.out
    assert "U0FMVA" not in ran.out  # the same in base64


def test_int_keyed_headers_are_shown_where_the_call_says_so(run, tmp_path):
    log = tmp_path / "00000000000000000005.log"
    log.write_bytes(
        bytes.fromhex(
            "0000000000000005 00000026 337eec85 02 10 00000000000003e8 00000001 6b 0d 02 01 03 617070 ce00100010 01 01"
            "00000001 76"
        )
    )
    (line,) = lines(run("log", log, "--dialect", "int-headers", "--records", "--json"))
    assert (line["offset"], line["key"], line["value"], len(line["headers"])) == (5, "k", "v", 2)
    assert run("log", log, "--dialect", "int-headers", "--verify").code == 0


def test_int_header_keys_are_named_by_registers(run, tmp_path):
    register = tmp_path / "headers.toml"
    register.write_text('space = "local"\n[[entries]]\nkey = 1114000\nname = "app.name"\n')
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(records.write([Record(b"k", b"v", [(1_114_000, b"ig"), (7, b"x")], DAY)], dialect="int-headers"))
    form = ("--dialect", "int-headers", "--register", register)
    (line,) = lines(run("log", log, "--records", "--json", *form))
    assert line["headers"] == [{"key": "7", "value": "x"}, {"key": "app.name", "value": "ig"}]
    assert "headers: 7=x app.name=ig" in run("log", log, "--headers", *form).out
    assert run("log", log, "--verify", *form).code == 0
    assert run("log", log, "--verify", "--register", register).code == 1  # nothing says that it is of that format
    (tmp_path / "partition.metadata").write_bytes(format_topic_id(UUID(int=7), "int-headers"))
    for path in (log, tmp_path):
        assert "headers: 7=x app.name=ig" in run("log", path, "--headers", "--register", register).out
        assert run("log", path, "--verify").code == 0
    register.write_text("space = 5")
    ran = run("log", log, "--records", *form)
    assert (ran.code, "headers.toml: space is 5" in ran.err) == (2, True)


@pytest.fixture
def metadata(tmp_path):
    """The directory of a cluster's metadata, with a snapshot beside the log."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    topic = messages.TopicRecord(name="flights", topic_id=UUID(int=5))
    value = b"\x01\x02\x00" + topic.encode(0)
    head = records.ControlRecord("SNAPSHOT_HEADER", messages.SnapshotHeaderRecord(last_contained_log_timestamp=DAY))
    foot = records.ControlRecord("SNAPSHOT_FOOTER", messages.SnapshotFooterRecord())
    rows = [Record(None, value, timestamp=DAY)]
    (directory / "00000000000000000007-0000000001.checkpoint").write_bytes(
        records.write_control([head], DAY)
        + records.write(rows, base_offset=1)
        + records.write_control([foot], DAY, base_offset=2)
    )
    (directory / "00000000000000000007.log").write_bytes(records.write(rows, base_offset=7))
    return directory


def test_a_directory_of_cluster_metadata_lists_its_snapshots_too(run, metadata):
    found = [(os.path.basename(line["file"]), line["base_offset"]) for line in lines(run("log", metadata, "--json"))]
    snapshot, log = "00000000000000000007-0000000001.checkpoint", "00000000000000000007.log"
    assert found == [(snapshot, 0), (snapshot, 1), (snapshot, 2), (log, 7)]
    assert [line["base_offset"] for line in lines(run("log", metadata, "--offset", 7, "--json"))] == [7]
    assert run("log", metadata, "--verify").out.startswith("2 segments")


def test_records_of_cluster_metadata_are_those_of_the_log_unless_a_snapshot_is_named(run, metadata):
    ran = run("log", metadata, "--decode", "metadata", "--json")
    (line,) = map(json.loads, ran.out.splitlines())
    assert (line["offset"], line["type"], line["value"]["name"]) == (7, "Topic", "flights")
    assert ran.err.endswith("snapshots, which are read by name: 00000000000000000007-0000000001.checkpoint\n")
    snapshot = metadata / "00000000000000000007-0000000001.checkpoint"
    found = lines(run("log", snapshot, "--decode", "metadata", "--json"))
    assert [line.get("control") or line["type"] for line in found] == ["SNAPSHOT_HEADER", "Topic", "SNAPSHOT_FOOTER"]


def test_the_state_of_share_groups_is_decoded(run, tmp_path):
    log = tmp_path / "__share_group_state-0" / "00000000000000000000.log"
    log.parent.mkdir()
    key = messages.ShareSnapshotKey(group_id="g", topic_id=UUID(int=5), partition=3)
    value = messages.ShareSnapshotValue(snapshot_epoch=2, state_epoch=1, leader_epoch=0, start_offset=9)
    pair = Record(b"\0\0" + key.encode(0), b"\0\0" + value.encode(0), timestamp=DAY)
    log.write_bytes(records.write([pair]))
    (line,) = lines(run("log", log, "--decode", "share", "--json"))
    assert (line["type"], line["key"]["groupId"], line["value"]["startOffset"]) == ("ShareSnapshot", "g", 9)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        ["{}/other.txt"],
        ["{}"],
        [],
        ["{}", "--records", "--verify"],
        ["{}", "--batches", "--decode", "offsets"],
        ["{}", "--decode", "nonsense"],
        ["{}", "--offset", "-1"],
    ],
)
def test_a_mistake_is_one_clear_line(run, tmp_path, arguments):
    (tmp_path / "other.txt").write_text("x")
    ran = run("log", *(argument.format(tmp_path) for argument in arguments))
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_a_reader_that_has_seen_enough_ends_it_silently(tmp_path):
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(records.write([Record(b"k", b"v" * 100, timestamp=DAY)] * 100_000, compression="zstd"))
    command = [sys.executable, "-m", "tagwire", "log", str(log), "--records"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().startswith(b"@0")
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0


def test_ctrl_c_ends_it_at_once_and_without_a_word(tmp_path):
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(records.write([Record(b"k", b"v" * 100, timestamp=DAY)] * 100_000, compression="zstd"))
    process = start("log", log, "--records")
    process.stdout.readline()  # it is at work, and soon waits for someone to read on
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    _, error = process.communicate()
    assert (process.returncode, error) == (130, b"")


def test_checking_a_log_loads_nothing_that_it_does_not_need(log):
    others = ["consume", "produce", "topics", "broker", "land", "spec", "codec", "versions"]
    heavy = [
        "pyarrow",
        "pydantic",
        "rich",
        "asyncio",
        "numpy",
        "tagwire.codec",
        "tagwire.spec",
        "tagwire.rpc",
        "tagwire.client",
    ]
    heavy += [f"tagwire.cli.{name}" for name in others]
    code = (
        "import sys; from tagwire.cli import main; main(['log', '--verify', sys.argv[1]]);"
        "print([name for name in sys.argv[2:] if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(log), *heavy], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def cut(tmp_path):
    """A partition of two segments, the closed one of which ends inside its second batch."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    rows = [Record(b"k", b"v", (), DAY)] * 5
    closed = records.write(rows) + records.write(rows, base_offset=5)
    (directory / f"{0:020}.log").write_bytes(closed[:-1])
    (directory / f"{10:020}.log").write_bytes(records.write(rows, base_offset=10))
    return directory


@pytest.mark.parametrize("mode", [["--records"], ["--records", "--json"], ["--json"]])
def test_records_do_not_go_on_past_a_closed_segment_that_is_cut_off(run, cut, mode):
    ran = run("log", cut, *mode)
    assert ran.code == 2
    assert "@10" not in ran.out
    assert ran.err == (
        "tagwire: 00000000000000000000.log at byte 106: a closed segment ends inside a batch: of a batch of 106 bytes "
        "105 are there; --verify looks at all segments\n"
    )


def test_the_last_segment_may_end_inside_a_batch(run, cut):
    (cut / f"{10:020}.log").unlink()
    assert run("log", cut, "--records").code == 0
    assert run("log", cut / f"{0:020}.log", "--records").code == 0


@pytest.mark.parametrize("delta", [1, 5])
def test_a_batch_after_whose_offsets_there_is_none_is_a_fault_with_a_place(run, log, delta):
    data = bytearray(log.read_bytes())
    data[:8] = (2**63 - delta).to_bytes(8, "big", signed=False)
    data[23:27] = (4).to_bytes(4, "big")
    log.write_bytes(data)
    ran = run("log", log, "--verify")
    assert (ran.code, ran.err) == (1, "")
    assert "out of range" in ran.out


def test_a_pipe_in_the_place_of_a_file_is_an_error_and_waited_for_by_nobody(run, tmp_path):
    directory = tmp_path / "t-0"
    directory.mkdir()
    for name in (f"{0:020}.log", f"{0:020}.index", "leader-epoch-checkpoint", "partition.metadata"):
        os.mkfifo(directory / name)
    for arguments in (
        [directory],
        [directory, "--records"],
        [directory / f"{0:020}.log"],
        [directory / f"{0:020}.log", "--verify"],
        [directory / f"{0:020}.index"],
    ):
        ran = run("log", *arguments)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert ": a named pipe, where a file should be" in ran.err
    ran = run("log", directory, "--verify")
    assert ran.code == 2
    assert "a named pipe, where a file should be" in ran.out + ran.err
