"""Segments read from their files: batches, records, columns, and where they can be split."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError, DecodeError
from tagwire.records import Record
from tagwire.records.files import PartitionFiles, Segment, partitions
from tagwire.records.files.verify import verify_partition, verify_segment

ZSTD_BOMB = records.write([Record(None, bytes(1 << 24), timestamp=1)], compression="zstd")


def offsets(segment, *spans):
    return [record.offset for start, end in spans for record in segment.records(start, end)]


def test_batches_are_listed_with_their_positions_and_nothing_is_decompressed(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(ZSTD_BOMB + records.write([Record(b"k", b"v", timestamp=2)], base_offset=1))
    segment = Segment(path)
    listed = [(position, batch.base_offset, batch.size_in_bytes) for position, batch in segment.batches()]
    assert listed == [(0, 0, len(ZSTD_BOMB)), (len(ZSTD_BOMB), 1, path.stat().st_size - len(ZSTD_BOMB))]
    with pytest.raises(CorruptRecordError, match=r"00000000000000000000\.log, batch at byte 0"):
        list(segment.records(max_decompressed=1 << 20))


def test_messages_that_wrap_what_shrinks_a_hundredfold_are_listed_and_sound(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    rows = [Record(b"k", bytes(1 << 21)), Record(b"k", b"v")]
    path.write_bytes(records.write(rows, magic=1, compression="gzip"))
    segment = Segment(path)
    assert [(batch.base_offset, batch.last_offset, batch.count) for _, batch in segment.batches()] == [(0, 1, 2)]
    assert list(verify_segment(segment)) == []


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 3, 6, 50])
def test_a_split_covers_the_segment_at_batch_boundaries(partition, parts, with_index):
    segment = Segment(partition.first)
    if not with_index:
        segment.beside(".index").unlink()
    ranges = segment.split(parts)
    starts = {position for position, _ in segment.batches()}
    assert ranges[0][0] == 0
    assert ranges[-1][1] == segment.size
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert {start for start, _ in ranges} <= starts
    assert len(ranges) == min(parts, len(ranges))
    assert offsets(segment, *ranges) == list(range(60))


def test_a_split_into_as_many_parts_as_batches_has_several_of_them(partition):
    assert len(Segment(partition.first).split(6)) > 3


@pytest.mark.parametrize("wrong", ["0000000f 00000000", "00000013 00000005", "7fffffff 7fffffff", "00000012 ffffffff"])
def test_a_split_does_not_believe_an_index_that_lies(partition, wrong):
    segment = Segment(partition.first)
    segment.beside(".index").write_bytes(bytes.fromhex(wrong))
    assert offsets(segment, *segment.split(4)) == list(range(60))
    assert len(segment.split(4)) == 4


def test_an_empty_segment_has_nothing_to_split(tmp_path):
    path = tmp_path / "00000000000000000007.log"
    path.write_bytes(b"")
    segment = Segment(path)
    assert (segment.base_offset, segment.split(4), list(segment.batches()), segment.tail) == (7, [], [], None)


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("offset", [0, 9, 10, 35, 59, 60])
def test_an_offset_is_found_at_the_batch_that_holds_it(partition, offset, with_index):
    segment = Segment(partition.first)
    if not with_index:
        segment.beside(".index").unlink()
    found = [record.offset for record in segment.records(segment.position_of(offset), start_offset=offset)]
    assert found == list(range(offset, 60))


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        (bytes(5), "zeros"),
        (bytes(3_000_000), "zeros"),
        (b"\0" * 8 + b"\0\0\x01\0" + b"\0" * 4 + b"\x02" + b"x" * 40, "partial"),
        (b"\0\0\0\0\0\0\0\x3c", "partial"),
    ],
)
def test_what_follows_the_last_whole_batch_is_told_and_not_read(partition, tail, kind):
    size = partition.first.stat().st_size
    with open(partition.first, "ab") as file:
        file.write(tail)
    segment = Segment(partition.first)
    assert (segment.end, segment.tail.position, segment.tail.size, segment.tail.kind) == (size, size, len(tail), kind)
    assert offsets(segment, (0, None)) == list(range(60))
    assert segment.to_arrow(columns=("offset",)).column(0).to_pylist() == list(range(60))


@pytest.mark.parametrize(
    "tail", [b"x" * 20, bytes(12) + b"\1" * 20, b"\0" * 8 + b"\0\0\1\0" + b"\0" * 4 + b"\3" + b"x" * 300]
)
def test_bytes_that_are_no_batch_are_an_error_that_names_file_and_byte(partition, tail):
    size = partition.first.stat().st_size
    with open(partition.first, "ab") as file:
        file.write(tail)
    segment = Segment(partition.first)
    assert segment.tail.kind == "damage"
    for read in (lambda: list(segment.batches()), segment.to_arrow):
        with pytest.raises(CorruptRecordError, match=rf"00000000000000000000\.log at byte {size}: "):
            read()


def test_a_segment_cut_anywhere_holds_its_whole_batches(partition):
    whole = partition.first.read_bytes()
    ends = [position + batch.size_in_bytes for position, batch in Segment(partition.first).batches()]
    for size in range(0, len(whole), 7):
        partition.first.write_bytes(whole[:size])
        with Segment(partition.first) as segment:
            kept = sum(end <= size for end in ends)
            assert segment.end == ([0, *ends])[kept]
            assert len(list(segment.batches())) == kept
            assert (segment.tail is None) == (segment.end == size)


def test_columns_are_those_of_a_range(partition):
    segment = Segment(partition.first)
    (_, first), *_ = segment.split(2)
    table = segment.to_arrow(first, None, columns=("offset", "key"))
    assert table.column("offset").to_pylist() == [record.offset for record in segment.records(first)]
    pieces = list(segment.arrow_chunks(columns=("offset",), max_rows=20))
    assert sum(piece.num_rows for piece, _ in pieces) == 60
    assert pieces[-1][1] == 60


def test_a_batch_outlives_the_closing_of_its_segment(partition):
    with Segment(partition.first) as segment:
        _, batch = next(segment.batches())
    assert len(list(batch.records())) == 10


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_read_like_batches(tmp_path, magic):
    path = tmp_path / "00000000000000000005.log"
    rows = [Record(b"k", b"v%d" % i, timestamp=-1 if magic == 0 else i) for i in range(4)]
    data = records.write(rows[:2], magic=magic, base_offset=5)
    data += records.write(rows[2:], magic=magic, base_offset=7, compression="gzip")
    path.write_bytes(data + records.write(rows, base_offset=9))
    segment = Segment(path)
    assert [batch.magic for _, batch in segment.batches()] == [magic, magic, magic, 2]
    assert [(record.offset, record.value) for record in segment.records()] == [
        (5 + at, rows[at % 4].value) for at in range(8)
    ]
    assert segment.to_arrow(columns=("offset",)).column(0).to_pylist() == list(range(5, 13))
    assert list(verify_segment(segment)) == []
    assert segment.position_of(8) == segment.split(1)[0][1] - len(records.write(rows)) - _last_wrapper(segment)


def _last_wrapper(segment):
    return [batch.size_in_bytes for _, batch in segment.batches()][2]


def test_int_keyed_headers_are_read_where_the_call_says_so(tmp_path):
    path = tmp_path / "00000000000000000005.log"
    path.write_bytes(
        bytes.fromhex(
            "0000000000000005 00000026 337eec85 02 10 00000000000003e8 00000001 6b 0d 02 01 03 617070 ce00100010 01 01"
            "00000001 76"
        )
    )
    segment = Segment(path, dialect="int-headers")
    (record,) = segment.records()
    assert (record.offset, record.key, record.value, len(record.headers)) == (5, b"k", b"v", 2)
    assert segment.to_arrow(columns=("offset", "key")).to_pylist() == [{"offset": 5, "key": b"k"}]
    assert list(verify_segment(segment)) == []


def test_a_directory_names_its_partition_and_reads_no_leftovers(partition):
    leftovers = (
        "00000000000000000100.log.deleted",
        "00000000000000000000.log.swap",
        "00000000000000000000.log.cleaned",
    )
    for name in leftovers:
        partition.file(name).write_bytes(b"x")
    files = PartitionFiles(partition.path)
    assert (files.topic, files.partition, files.state) == ("t.x", 3, None)
    assert [segment.base_offset for segment in files.segments] == [0, 60]
    assert {path.name for path in files.leftovers} == set(leftovers)


def test_what_is_ready_to_replace_segments_is_read_in_their_place(partition):
    """As a broker leaves it that ends while it replaces what it has compacted."""
    for suffix in (".log", ".index", ".timeindex"):
        partition.first.with_suffix(suffix).rename(partition.file(f"{0:020d}{suffix}.swap"))
    partition.file(f"{0:020d}.txnindex.swap").write_bytes(struct.pack(">hqqqq", 0, 7, 10, 25, 0))
    partition.file(f"{0:020d}.log.deleted").write_bytes(b"x")
    replaced = partition.file(f"{30:020d}.log")  # of what was compacted together, the second is not removed yet
    replaced.write_bytes(partition.file(f"{0:020d}.log.swap").read_bytes()[-500:])
    files = PartitionFiles(partition.path)
    assert [segment.base_offset for segment in files.segments] == [0, 60]
    assert [record.offset for segment in files.segments for record in segment.records()] == list(range(100))
    assert files.segments[0].position_of(25) == read_position(files.segments[0], 20)
    assert files.aborted() == [(7, 10)]
    assert {path.name for path in files.leftovers} == {f"{0:020d}.log.deleted", replaced.name}
    assert list(verify_partition(files)) == []


def read_position(segment, base_offset):
    return next(position for position, batch in segment.batches() if batch.base_offset == base_offset)


def test_the_transactions_that_reach_into_a_range_are_those_a_reader_of_it_must_know(partition):
    entries = [(7, 10, 25), (8, 20, 65), (7, 62, 70)]
    for path, of_segment in ((partition.first, entries[:1]), (partition.second, entries[1:])):
        path.with_suffix(".txnindex").write_bytes(b"".join(struct.pack(">hqqqq", 0, *entry, 0) for entry in of_segment))
    files = PartitionFiles(partition.path)
    assert files.aborted() == [(7, 10), (8, 20), (7, 62)]
    assert files.aborted(26, 60) == [(8, 20)]
    assert files.aborted(25, 63) == [(7, 10), (8, 20), (7, 62)]
    assert files.aborted(71) == []


def test_a_damaged_index_of_transactions_is_told_and_not_taken_for_all_there_is(partition):
    index = partition.first.with_suffix(".txnindex")
    index.write_bytes(struct.pack(">hqqqq", 0, 7, 10, 25, 0) + b"\1")
    with pytest.raises(DecodeError, match=f"{index.name}: 1 bytes at byte 34 are less than an entry of 34"):
        PartitionFiles(partition.path).aborted()


def test_a_partition_that_a_broker_removes_while_its_data_directory_is_listed_is_none(partition, monkeypatch):
    gone = partition.path.parent / f"gone-0.{'a' * 32}-delete"
    gone.mkdir()
    is_dir = Path.is_dir

    def removed(path, **options):
        there = is_dir(path, **options)
        if path == gone:
            gone.rmdir()
        return there

    monkeypatch.setattr(Path, "is_dir", removed)
    assert [files.topic for files in partitions(partition.path.parent)] == ["t.x"]


def test_partitions_are_found_in_the_directory_that_holds_them(partition):
    parent = partition.path.parent
    for name in ("t.x-11", "t.x-2", "a-0", f"b-0.{'0f' * 16}-delete"):
        (parent / name).mkdir()
    (parent / "not a partition").mkdir()
    found = [(files.topic, files.partition, files.state) for files in partitions(parent)]
    assert found == [("a", 0, None), ("b", 0, "delete"), ("t.x", 2, None), ("t.x", 3, None), ("t.x", 11, None)]
    assert [files.path for files in partitions(partition.path)] == [partition.path]
