"""A sound log has no faults; of one that is not, each fault is named with the file and the place it is in."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from tagwire import records
from tagwire.records import Record
from tagwire.records.files import PartitionFiles, Segment
from tagwire.records.files.verify import verify_partition, verify_segment

from .conftest import change


def faults(partition):
    return [(fault.path.name, fault.position, fault.text) for fault in verify_partition(PartitionFiles(partition.path))]


def starts(path):
    return [position for position, _ in Segment(path).batches()]


def test_a_sound_partition_has_no_faults(partition):
    assert faults(partition) == []


def test_zeros_allocated_ahead_are_no_fault(partition):
    for suffix in (".log", ".index", ".timeindex"):
        path = partition.second.with_suffix(suffix)
        path.write_bytes(path.read_bytes() + bytes(1200))
    assert faults(partition) == []


def test_missing_indexes_are_no_fault(partition):
    for suffix in (".index", ".timeindex"):
        partition.first.with_suffix(suffix).unlink()
    assert faults(partition) == []


@pytest.mark.parametrize("batch", range(6))
def test_any_changed_byte_under_a_checksum_is_found(partition, batch):
    begins = [*starts(partition.first), partition.first.stat().st_size]
    for at in (begins[batch] + 30, begins[batch + 1] - 1):
        before = partition.first.read_bytes()[at]
        change(partition.first, at, bytes([before ^ 0x10]))
        found = [(name, position) for name, position, text in faults(partition) if "checksum" in text]
        assert found == [("00000000000000000000.log", begins[batch])]
        change(partition.first, at, bytes([before]))


@pytest.mark.parametrize(("base", "said"), [(5, "before 10"), (2**62, None), (-4, "out of range")])
def test_offsets_that_do_not_grow_are_found(partition, base, said):
    position = starts(partition.first)[1]
    change(partition.first, position, struct.pack(">q", base))
    found = [text for name, at, text in faults(partition) if name.endswith(".log") and (said is None or at == position)]
    assert found
    assert said is None or said in found[0]


def test_a_segment_that_begins_before_the_last_one_ended_is_found(partition):
    data = partition.second.read_bytes()
    for suffix in (".log", ".index", ".timeindex"):
        partition.second.with_suffix(suffix).rename(partition.file(f"{50:020d}{suffix}"))
    renamed = partition.file(f"{50:020d}.log")
    assert data == renamed.read_bytes()
    change(renamed, 0, struct.pack(">q", 50))
    assert any(name == renamed.name and "before 60" in text for name, _, text in faults(partition))


def test_a_partial_batch_and_damage_are_found_where_they_begin(partition):
    size = partition.second.stat().st_size
    whole = partition.second.read_bytes()
    partition.second.write_bytes(whole[:-1])
    last = starts(partition.second)[-1] + 0
    named = [at for name, at, text in faults(partition) if name.endswith("60.log") and "no whole batch" in text]
    assert len(named) == 1
    assert last < named[0] < size
    partition.second.write_bytes(whole + b"garbage, and not a batch")
    assert [(name, at) for name, at, _ in faults(partition)] == [("00000000000000000060.log", size)]


def test_a_header_that_contradicts_itself_is_found_and_the_rest_is_still_checked(partition):
    begins = starts(partition.first)
    for position in begins[1], begins[4]:
        change(partition.first, position + 57, struct.pack(">i", 11))
        batch = partition.first.read_bytes()[position + 21 : [*begins, None][begins.index(position) + 1]]
        change(partition.first, position + 17, struct.pack(">I", crc32c(batch)))
    found = [at for name, at, text in faults(partition) if name == "00000000000000000000.log" and "11 records" in text]
    assert found == [begins[1], begins[4]]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("entry", range(5))
@pytest.mark.parametrize("byte", [3, 7])
def test_an_index_entry_that_lies_is_found(partition, suffix, entry, byte):
    size = 8 if suffix == ".index" else 12
    path = partition.first.with_suffix(suffix)
    at = entry * size + byte
    change(path, at, bytes([path.read_bytes()[at] ^ 1]))
    found = [(name, position) for name, position, _ in faults(partition)]
    assert (path.name, entry * size) in found or (path.name, (entry + 1) * size) in found
    assert {name for name, _ in found} == {path.name}


@pytest.mark.parametrize(("suffix", "entry"), [(".index", ">ii"), (".timeindex", ">qi")])
def test_an_index_entry_past_the_end_of_the_log_is_found(partition, suffix, entry):
    path = partition.second.with_suffix(suffix)
    data = path.read_bytes()
    path.write_bytes(data + struct.pack(entry, *((500, 2**30) if suffix == ".index" else (2**40, 500))))
    ((name, position, text),) = faults(partition)
    assert (name, position) == (path.name, len(data))
    assert "the log ends before offset 560" in text


@pytest.mark.parametrize("wrong", ["3 30", "3 50", "2 40", "4 40"])
def test_a_leader_epoch_that_the_batches_do_not_bear_out_is_found(partition, wrong):
    partition.file("leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n{wrong}\n")
    assert {name for name, _, _ in faults(partition)} == {"leader-epoch-checkpoint"}


def test_an_epoch_of_which_nothing_was_written_yet_is_no_fault(partition):
    partition.file("leader-epoch-checkpoint").write_text("0\n3\n0 0\n3 40\n9 100\n")
    assert faults(partition) == []


def test_epochs_out_of_order_are_found(partition):
    partition.file("leader-epoch-checkpoint").write_text("0\n2\n3 40\n0 0\n")
    assert any("does not follow" in text for _, _, text in faults(partition))


@pytest.mark.parametrize(("producer", "last_offset"), [(7, 39), (8, 29), (7, 60)])
def test_a_producer_that_did_not_write_what_a_snapshot_says_is_found(partition, producer, last_offset):
    body = struct.pack(">iqhiqiqiq", 1, producer, 0, 9, last_offset, 9, 29, 0, -1)
    name = "00000000000000000060.snapshot"
    partition.file(name).write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
    assert {found for found, _, _ in faults(partition)} == {name}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("00000000000000000060.snapshot", b"\0\1"),
        ("leader-epoch-checkpoint", b"7\n"),
        ("partition.metadata", b"topic_id: x"),
    ],
)
def test_a_broken_file_beside_the_log_is_found(partition, name, data):
    partition.file(name).write_bytes(data)
    assert [found for found, _, _ in faults(partition)] == [name]


def marker(kind: int, offset: int, producer: int) -> bytes:
    """A control batch of one marker; its attributes are set, and its checksum made, by hand."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    options = {"base_offset": offset, "producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    batch = bytearray(records.write([Record(key, value, timestamp=9)], **options))
    struct.pack_into(">h", batch, 21, 0x30)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


@pytest.mark.parametrize(
    ("kind", "offset", "producer", "sound"),
    [(0, 100, 7, True), (1, 100, 7, False), (0, 101, 7, False), (0, 100, 8, False)],
)
def test_an_aborted_transaction_needs_its_marker(partition, kind, offset, producer, sound):
    with open(partition.second, "ab") as file:
        file.write(marker(kind, offset, producer))
    entry = struct.pack(">hqqqq", 0, 7, 80, 100, 101)
    partition.second.with_suffix(".txnindex").write_bytes(entry)
    found = faults(partition)
    assert ([name for name, _, _ in found] == []) is sound
    assert sound or found[0][0] == "00000000000000000060.txnindex"


def test_batches_larger_than_what_is_read_at_once_are_checked_too(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    large = records.write([Record(None, bytes(3 << 20), timestamp=1)], base_offset=1)
    small = [records.write([Record(None, b"x", timestamp=1)], base_offset=offset) for offset in (0, 2)]
    path.write_bytes(small[0] + large + small[1])
    read = []
    segment = Segment(path)
    assert list(verify_segment(segment)) == []
    assert list(verify_segment(segment, progress=read.append)) == []
    assert sum(read) == path.stat().st_size
    change(path, len(small[0]) + (2 << 20), b"\1")
    assert [fault.position for fault in verify_segment(segment)] == [len(small[0])]


@pytest.mark.parametrize("delta", [1, 5, 10])
def test_a_batch_after_whose_offsets_there_is_none_is_a_fault(partition, delta):
    position = starts(partition.first)[1]
    change(partition.first, position, struct.pack(">q", 2**63 - delta))  # offsets lie outside of the checksum
    found = [text for name, at, text in faults(partition) if at == position and name.endswith(".log")]
    assert any("out of range" in text for text in found)


def test_a_name_with_digits_that_no_offset_has_is_no_segments(partition):
    strange = partition.file(f"{10**20 - 1}.log")
    strange.write_bytes(partition.second.read_bytes())
    strange.with_suffix(".index").write_bytes(partition.second.with_suffix(".index").read_bytes())
    assert faults(partition) == []
    assert [segment.base_offset for segment in PartitionFiles(partition.path).segments] == [0, 60]
    assert list(verify_segment(Segment(strange))) != []  # named by itself it is read, and its index bears nothing out
