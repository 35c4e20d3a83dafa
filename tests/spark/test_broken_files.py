"""What a read that leaves broken batches out still tells: `isolation` and lag, without a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.errors import CorruptRecordError, StorageError
from tagwire.records import Record
from tagwire.spark.file_systems import FileInfo, LocalFileSystem
from tagwire.spark.segments.source import SegmentsDataSource

from .log_files import NOON, LogDirectory, transactional


def rows_of(path: Path, column: str, **options: str) -> list[int]:
    source = SegmentsDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return [
        row for task in reader.partitions() for batch in reader.read(task) for row in batch.column(column).to_pylist()
    ]


def committed(path: Path, broken: str = "fail") -> list[int]:
    return rows_of(path, "offset", isolation="read_committed", broken=broken)


def damage(log: LogDirectory, at: int, data: bytes) -> None:
    with open(log.segment, "r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_header_that_cannot_be_read_is_left_out_of_committed_records_too(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(2)
    broken = log.segment.stat().st_size
    log.numbered(2)
    log.numbered(1)
    damage(log, broken, (2**63 - 2).to_bytes(8, "big"))
    assert committed(tmp_path, "skip") == [0, 1, 4]
    with pytest.raises(CorruptRecordError, match=rf"{log.segment}, batch at byte {broken}"):
        committed(tmp_path)


def test_bytes_that_no_batch_can_start_with_end_the_view_of_batches_only_where_what_is_broken_ends_a_read(
    tmp_path: Path,
) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(2)
    broken = log.segment.stat().st_size
    log.numbered(2)
    log.numbered(1)
    damage(log, broken + 8, bytes(4))
    assert rows_of(tmp_path, "baseOffset", view="batches", broken="skip") == [0]
    with pytest.raises(CorruptRecordError, match=rf"{log.segment} at byte {broken}"):
        rows_of(tmp_path, "baseOffset", view="batches")


def test_a_marker_that_cannot_be_read_ends_its_transaction_where_what_is_broken_is_left_out(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    first = log.numbered(2, **transactional(7))
    broken = log.segment.stat().st_size
    log.end_transaction(7, first, commit=True)
    log.numbered(1)
    damage(log, broken + 63, b"\xff")
    assert committed(tmp_path, "skip") == [0, 1, 3]
    with pytest.raises(CorruptRecordError):
        committed(tmp_path)


def test_the_end_of_a_log_whose_last_batch_is_broken_is_told_where_that_is_left_out(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    damage(log, 0, (2**63 - 2).to_bytes(8, "big"))
    key = messages.OffsetCommitKey(group="g", topic="t", partition=0)
    value = messages.OffsetCommitValue(offset=0, metadata="", commit_timestamp=NOON)
    groups = LogDirectory(tmp_path, "__consumer_offsets-0")
    groups.append([Record(b"\0\1" + key.encode(0), b"\0\3" + value.encode(3), (), NOON)])
    assert rows_of(tmp_path, "logEndOffset", view="offsets", broken="skip") == [0]
    with pytest.raises(CorruptRecordError, match="batch at byte 0"):
        rows_of(tmp_path, "logEndOffset", view="offsets")


def test_what_is_ready_to_replace_segments_is_read_in_their_place(tmp_path: Path) -> None:
    """As a broker leaves it that ends while it replaces what it has compacted."""
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(2)
    first = log.numbered(2, **transactional(7))
    log.end_transaction(7, first, commit=False)
    log.numbered(1)
    for path in sorted(log.path.glob(f"{0:020}.*")):
        path.rename(f"{path}.swap")
    (log.path / f"{2:020}.log").write_bytes(b"")  # is compacted together with the first, and not removed yet
    log.next = 6
    log.roll()
    log.numbered(1)
    assert rows_of(tmp_path, "offset") == [0, 1, 2, 3, 5, 6]
    assert committed(tmp_path) == [0, 1, 5, 6]


def test_a_partition_that_a_broker_removes_while_its_data_directory_is_listed_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogDirectory(tmp_path, "t-0").numbered(2)
    gone = LogDirectory(tmp_path, "gone-0")
    list_directory = LocalFileSystem.list_directory

    def removed(file_system: LocalFileSystem, path: str) -> list[FileInfo]:
        if path == str(gone.path):
            shutil.rmtree(path)
        return list_directory(file_system, path)

    monkeypatch.setattr(LocalFileSystem, "list_directory", removed)
    assert rows_of(tmp_path, "offset") == [0, 1]


def test_a_last_segment_that_is_rolled_and_replaced_while_tasks_read_it_ends_the_read(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    for _ in range(5):
        log.numbered(2)
    source = SegmentsDataSource({"path": str(tmp_path), "maxPartitionBytes": "1"})
    reader = source.reader(source.schema())
    first, *others = reader.partitions()
    assert len(others) == 4
    list(reader.read(first))
    segment, data = log.segment, log.segment.read_bytes()
    segment.write_bytes(data[: len(data) // 5 * 4])  # what a broker cuts off is left out
    assert [batch.num_rows for task in others for batch in reader.read(task)] == [2, 2, 2]
    log.roll()
    log.numbered(2)
    (tmp_path / "new").write_bytes(data[len(data) // 5 :])
    (tmp_path / "new").replace(segment)
    for task in others:
        with pytest.raises(StorageError, match=r"0\.log: has [0-9,]+ bytes, and had .*: a broker has cut or replaced"):
            list(reader.read(task))
