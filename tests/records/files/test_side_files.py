"""The files beside a log, byte for byte, and what their readers say of broken ones."""

from __future__ import annotations

from uuid import UUID

import pytest

from tagwire.errors import CorruptRecordError, DecodeError, TagwireError, UnsupportedVersionError
from tagwire.records.files import kind_of, partition_name
from tagwire.records.files.checkpoints import read_epochs, read_offsets
from tagwire.records.files.offset_index import read_offset_index
from tagwire.records.files.partition_metadata import format_topic_id, read_topic_id
from tagwire.records.files.producer_snapshot import format_producer_snapshot, read_producer_snapshot
from tagwire.records.files.time_index import read_time_index
from tagwire.records.files.transaction_index import read_transaction_index

SNAPSHOT = bytes.fromhex(
    "0001 c5f361a0 00000001 0000000000000001 0002 00000003 0000000000000004 00000005 0000000000000006 00000007"
    "ffffffffffffffff"
)
ABORTED = bytes.fromhex("0000 0000000000000001 0000000000000002 0000000000000003 0000000000000004")


def test_index_entries_are_relative_to_the_segment_and_end_at_zeros():
    found = read_offset_index(bytes.fromhex("00000004 00001000 00000009 00002000") + bytes(80), 100)
    assert found.entries == [(104, 0x1000), (109, 0x2000)]
    assert (found.size, found.zeros, found.fault) == (16, 80, None)


@pytest.mark.parametrize("tail", ["00000009 00003000", "00000010 00002000", "ffffffff 00003000", "0000000a ffffffff"])
def test_an_index_entry_that_does_not_increase_ends_the_index_and_is_told(tail):
    found = read_offset_index(bytes.fromhex("00000004 00001000 00000009 00002000" + tail), 0)
    assert len(found.entries) == 2
    assert "entry 2 at byte 16" in found.fault


def test_part_of_an_entry_is_told():
    assert "3 bytes at byte 8" in read_offset_index(bytes.fromhex("00000004 00001000 0a0b0c"), 0).fault


def test_time_index_entries_are_read_and_zeros_allocated_ahead_are_not_of_1970():
    entry = bytes.fromhex("000000000000000a 00000001")
    assert read_time_index(entry + bytes(24), 5).entries == [(10, 6)]
    assert read_time_index(bytes(120), 5).entries == []
    assert read_time_index(bytes(12), 5).entries == [(0, 5)]


def test_aborted_transactions_are_read():
    second = ABORTED[:2] + bytes.fromhex("0000000000000001 0000000000000005 0000000000000006 0000000000000007")
    assert read_transaction_index(ABORTED + second).entries == [(1, 2, 3, 4), (1, 5, 6, 7)]


def test_an_index_of_aborted_transactions_has_no_zeros_and_no_marker_before_its_segment():
    zeros = read_transaction_index(ABORTED + bytes(20))
    assert (len(zeros.entries), zeros.zeros) == (1, 0)
    assert zeros.fault == "20 bytes of zeros at byte 34, of a file that is not allocated ahead"
    assert read_transaction_index(ABORTED, 3).fault is None
    for data in (ABORTED, bytes(34)):
        earlier = read_transaction_index(data, 4)
        assert earlier.entries == []
        assert earlier.fault is not None


@pytest.mark.parametrize("at", [1, 17, 18, 25])
def test_an_aborted_transaction_that_contradicts_itself_is_told(at):
    broken = bytearray(ABORTED)
    broken[at] = 0xFF
    found = read_transaction_index(bytes(broken))
    assert (found.entries == []) is (at != 25)
    assert found.fault is not None or at == 25


def test_a_producer_snapshot_reads_and_writes_as_kafka_has_it():
    snapshot = read_producer_snapshot(SNAPSHOT)
    (entry,) = snapshot.producer_entries
    assert (entry.producer_id, entry.epoch, entry.last_sequence, entry.last_offset) == (1, 2, 3, 4)
    assert (entry.offset_delta, entry.timestamp, entry.coordinator_epoch, entry.current_txn_first_offset) == (
        5,
        6,
        7,
        -1,
    )
    assert format_producer_snapshot(snapshot) == SNAPSHOT


def test_a_producer_snapshot_is_refused_with_any_byte_missing_or_changed():
    for size in range(len(SNAPSHOT)):
        with pytest.raises(DecodeError):
            read_producer_snapshot(SNAPSHOT[:size])
    for at in range(2, len(SNAPSHOT)):
        broken = bytearray(SNAPSHOT)
        broken[at] ^= 1
        with pytest.raises(CorruptRecordError, match="checksum"):
            read_producer_snapshot(bytes(broken))
    with pytest.raises(UnsupportedVersionError, match="version 2"):
        read_producer_snapshot(b"\0\2" + SNAPSHOT[2:])


def test_epochs_and_offsets_are_read():
    assert read_epochs(b"0\n2\n0 0\n3 120\n") == [(0, 0), (3, 120)]
    assert read_offsets(b"0\n1\na.b 4 7\n") == {("a.b", 4): 7}
    assert read_epochs(b"") == []


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"0\n",
        b"0\n1\n",
        b"0\n0\n1 5\n",
        b"0\n1\n1\n",
        b"0\n1\n1 2 3\n",
        b"0\n1\n1 x\n",
        b"\xff\n",
        b"0\n1\n1_0 1\n",
        b"0\n1\n\xd9\xa1 1\n",
        b"0\n1\n1 " + b"9" * 5000,
    ],
)
def test_a_broken_checkpoint_is_a_typed_error(data):
    with pytest.raises(DecodeError):
        read_epochs(data)


def test_a_topic_id_is_read_as_written():
    topic_id = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")
    assert read_topic_id(format_topic_id(topic_id)) == topic_id


@pytest.mark.parametrize("text", ["", "version: 0", "version: -1\ntopic_id: H3KKO4NTRPaCWtEmm3vW7A", "\xff"])
@pytest.mark.parametrize("id_", ["", "topic_id: short", "topic_id: é" + "A" * 21, "topic_id: " + "A" * 22])
def test_a_broken_topic_id_is_a_typed_error(text, id_):
    with pytest.raises(TagwireError):
        read_topic_id(f"{text}\n{id_}".encode("latin-1"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("00000000000000000000.log", "log"),
        ("00000000000000000000.snapshot", "producers"),
        ("00000000000000000000.txnindex", "txnindex"),
        ("00000000000000007262-0000000001.checkpoint", "snapshot"),
        ("00000000000000007262-0000000001.checkpoint.part", "leftover"),
        ("00000000000000000000.timeindex.deleted", "leftover"),
        ("00000000000000000000.log.swap", "leftover"),
        ("leader-epoch-checkpoint", "epochs"),
        ("recovery-point-offset-checkpoint", "offsets"),
        ("partition.metadata", "topic-id"),
        ("1.log", "other"),
        ("quorum-state", "other"),
    ],
)
def test_a_name_says_what_a_file_holds(name, kind):
    assert kind_of(name) == kind


def test_a_number_that_no_partition_can_have_makes_a_directory_no_partition_s():
    """Such as the time of a copy: 26-11-27 09:30."""
    assert partition_name("flights-2147483647") == ("flights", 2147483647, None)
    assert partition_name("backup-2611270930") is None
