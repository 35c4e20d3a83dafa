"""Files that damage or malice has written, read without a session: typed errors, and rows for what can be told."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tagwire import messages
from tagwire.errors import CorruptRecordError, StorageError
from tagwire.kernel.checksum import checksum
from tagwire.records import Record, write
from tagwire.spark.columns import arrow_schema
from tagwire.spark.file_systems import LocalFileSystem, file_system_of
from tagwire.spark.segments.file_splits import PartitionLog, file_splits, partition_logs
from tagwire.spark.segments.internal_state import SCHEMAS, rows_of
from tagwire.spark.segments.options import SegmentOptions
from tagwire.spark.segments.read import BATCH_SCHEMA, RecordSelection, read_batches, read_records
from tagwire.spark.segments.transactions import transactions_of

from .log_files import NOON, LogDirectory

FARTHEST = 2**63 - 1


def options_of(path: Path) -> SegmentOptions:
    return SegmentOptions(paths=(str(path),))


def logs_at(path: Path) -> list[PartitionLog]:
    return partition_logs(options_of(path))


def batches_of(path: Path) -> list[dict]:
    schema = arrow_schema(BATCH_SCHEMA)
    tables = [pa.Table.from_batches(read_batches(piece, None, schema)) for piece in file_splits(logs_at(path), 1 << 30)]
    return [row for table in tables for row in table.drop(["maxTimestamp"]).to_pylist()]


@pytest.mark.parametrize("timestamp", [FARTHEST, -(2**63)])
def test_a_batch_whose_timestamp_has_no_room_is_told_as_broken(tmp_path: Path, timestamp: int) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    data = bytearray(log.segment.read_bytes())
    data[35:43] = timestamp.to_bytes(8, "big", signed=True)
    data[17:21] = checksum(memoryview(data)[21:]).to_bytes(4, "big")
    log.segment.write_bytes(data)
    (row,) = batches_of(log.path)
    assert (row["baseOffset"], row["lastOffset"]) == (0, 2)
    assert row["error"] == f"timestamp {timestamp} has no room in microseconds"


@pytest.mark.parametrize("delta", [1, 2, 3])
def test_a_batch_after_whose_offsets_there_is_none_is_told_as_broken(tmp_path: Path, delta: int) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    data = bytearray(log.segment.read_bytes())
    data[:8] = (2**63 - delta).to_bytes(8, "big")  # offsets lie outside of the checksum
    log.segment.write_bytes(data)
    (row,) = batches_of(log.path)
    assert "out of range" in row["error"]
    for piece in file_splits(logs_at(log.path), 1 << 30):
        with pytest.raises(CorruptRecordError, match="out of range"):
            list(read_records(piece, RecordSelection(("offset",))))


def test_a_closed_segment_that_ends_inside_a_batch_says_so(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    closed = log.segment
    log.roll()
    log.numbered(3)
    closed.write_bytes(closed.read_bytes()[:-1])
    first, _ = file_splits(logs_at(log.path), 1 << 30)
    with pytest.raises(CorruptRecordError, match="a closed segment ends inside a batch: of a batch of"):
        list(read_records(first, RecordSelection(("offset",))))


def test_committed_offsets_and_times_that_can_be_none_are_null(tmp_path: Path) -> None:
    kind = messages.OffsetCommitKey, messages.OffsetCommitValue
    key = (1).to_bytes(2, "big") + kind[0](group="g", topic="t", partition=0).encode(0)
    value = (3).to_bytes(2, "big") + kind[1](offset=-(2**63), commit_timestamp=FARTHEST).encode(3)
    log = LogDirectory(tmp_path, "__consumer_offsets-0")
    log.append_bytes(write([Record(key, value, timestamp=NOON)]))
    (at,) = logs_at(log.path)
    rows = list(rows_of("offsets", at, lambda topic, partition: FARTHEST, drop=False))
    assert [(row["offset"], row["committed"], row["lag"]) for row in rows] == [(-(2**63), None, None)]
    assert pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SCHEMAS["offsets"])).num_rows == 1


def test_a_pipe_in_the_place_of_a_file_is_an_error_and_waited_for_by_nobody(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(2)
    log.numbered(1)
    aborted = log.segment.with_suffix(".txnindex")
    os.mkfifo(aborted)
    (found,) = logs_at(log.path)
    with pytest.raises(StorageError, match="txnindex: a named pipe, where a file should be"):
        transactions_of(found, drop=False)
    aborted.unlink()
    os.mkfifo(log.path / f"{3:020}.log")
    for path in (log.path, log.path / f"{3:020}.log"):
        with pytest.raises(StorageError, match="a named pipe, where a segment should be"):
            logs_at(path)


def test_a_file_that_is_cut_inside_a_batch_after_it_was_planned_ends_there(tmp_path: Path) -> None:
    """As a broker cuts what its leader does not have."""
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    kept = log.segment.stat().st_size
    log.numbered(3)
    (piece,) = file_splits(logs_at(log.path), 1 << 30)
    with log.segment.open("r+b") as file:
        file.truncate(kept + 70)
    found = [offset for batch in read_records(piece, RecordSelection(("offset",))) for offset in batch.column(0)]
    assert pa.array(found).to_pylist() == [0, 1, 2]


def test_a_closed_segment_that_is_cut_inside_a_batch_after_it_was_planned_says_so(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    closed = log.segment
    log.roll()
    log.numbered(3)
    first, _ = file_splits(logs_at(log.path), 1 << 30)
    closed.write_bytes(closed.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"log: has 99 bytes, and had 100 when the read began"):
        list(read_records(first, RecordSelection(("offset",))))


def test_a_file_that_a_broker_removes_while_its_directory_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("00000000000000000000.log.deleted", "00000000000000000003.log"):
        (tmp_path / name).touch()
    listed = Path.iterdir

    def late(path: Path) -> list[Path]:
        found = list(listed(path))
        (tmp_path / "00000000000000000000.log.deleted").unlink()
        return found

    monkeypatch.setattr(Path, "iterdir", late)
    assert [each.name for each in LocalFileSystem().list_directory(str(tmp_path))] == ["00000000000000000003.log"]


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000003.log").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError):
        LocalFileSystem().list_directory(str(tmp_path))


def test_what_a_directory_holds_is_called_as_it_is_there_wherever_links_lead(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "volume").mkdir(parents=True)
    (tmp_path / "elsewhere" / "4f2a").write_bytes(b"...")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "flights-0").symlink_to(tmp_path / "elsewhere" / "volume")
    (tmp_path / "data" / "00000000000000000003.log").symlink_to(tmp_path / "elsewhere" / "4f2a")
    found = LocalFileSystem().list_directory(str(tmp_path / "data"))
    assert [(each.name, each.size, each.is_directory) for each in found] == [
        ("00000000000000000003.log", 3, False),
        ("flights-0", 0, True),
    ]
    (alone,) = LocalFileSystem().get_info(str(tmp_path / "data" / "00000000000000000003.log"))
    assert (alone.name, alone.size) == ("00000000000000000003.log", 3)
    (tmp_path / "latest-0").symlink_to(tmp_path / "data")
    (tmp_path / "latest").symlink_to(tmp_path / "latest-0" / "flights-0")
    named = [LocalFileSystem().get_info(str(tmp_path / path))[0].name for path in ("data/flights-0", "latest")]
    assert named == ["flights-0", "volume"]


def test_a_path_that_is_there_is_no_pattern_whatever_it_is_called(tmp_path: Path) -> None:
    for name in ("kafka [1]", "kafka 1"):
        (tmp_path / name).mkdir()
    names = ("kafka [1]", "kafka [0-9]")
    found = [[each.name for each in LocalFileSystem().get_info(str(tmp_path / name))] for name in names]
    assert found == [["kafka [1]"], ["kafka 1"]]


def test_an_archive_that_is_none_or_missing_is_told_as_storage_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.zip").write_bytes(b"none")
    for name, said in (("broken.zip", "File is not a zip file"), ("missing.zip", "No such file or directory")):
        files, url = file_system_of(f"zip://t-0::file://{tmp_path}/{name}", {})
        with pytest.raises(StorageError, match=f"{name}: {said}"):
            files.get_info(url)


def test_what_a_library_of_an_object_store_raises_is_told_as_storage_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def refused(*given: object, **named: object) -> None:
        raise NotImplementedError("Unable to locate\n credentials")  # botocore's errors are no OSError either

    for method in ("info", "ls", "cat_file"):
        monkeypatch.setattr(MemoryFileSystem, method, refused)
    files, url = file_system_of("memory://kafka/t-0", {})
    for call in (files.get_info, files.list_directory, files.read):
        with pytest.raises(StorageError, match=r"^memory://kafka/t-0: Unable to locate credentials$"):
            call(url)
