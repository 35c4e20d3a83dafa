"""What coordinators know from their files, told without a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.files.checkpoints import format_offsets
from tagwire.spark.file_systems import LocalFileSystem
from tagwire.spark.segments.file_splits import partition_logs
from tagwire.spark.segments.internal_state import rows_of
from tagwire.spark.segments.options import SegmentOptions
from tagwire.spark.segments.source import SegmentsDataSource

from .log_files import NOON, LogDirectory, transactional

PRODUCER = 5
OFFSET_2 = b"\0\3" + messages.OffsetCommitValue(offset=2, metadata="", commit_timestamp=NOON).encode(3)


@pytest.fixture
def log(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path, "__consumer_offsets-4")


def commit(offset: int | None) -> list[Record]:
    key = messages.OffsetCommitKey(group="g", topic="t", partition=0)
    value = messages.OffsetCommitValue(offset=offset or 0, metadata="", commit_timestamp=NOON)
    packed = None if offset is None else b"\0\3" + value.encode(3)
    return [Record(b"\0\1" + key.encode(0), packed, (), NOON)]


def committed(log: LogDirectory) -> list[int]:
    def rows() -> Iterator[int]:
        for each in partition_logs(SegmentOptions(paths=(str(log.path),))):
            for row in rows_of("offsets", each, lambda topic, partition: None, drop=False):
                yield row["offset"]

    return list(rows())


def test_the_offset_that_was_written_last_counts_though_a_transaction_with_an_older_one_ends_later(
    log: LogDirectory,
) -> None:
    first = log.append(commit(10), **transactional(PRODUCER))
    log.append(commit(20))
    log.end_transaction(PRODUCER, first, commit=True)
    assert committed(log) == [20]


def test_an_offset_of_a_transaction_that_was_written_later_counts(log: LogDirectory) -> None:
    log.append(commit(10))
    first = log.append(commit(20), **transactional(PRODUCER))
    log.end_transaction(PRODUCER, first, commit=True)
    assert committed(log) == [20]


def test_of_two_transactions_the_offset_that_was_written_last_counts_whichever_ends_last(log: LogDirectory) -> None:
    older = log.append(commit(10), **transactional(PRODUCER))
    newer = log.append(commit(20), **transactional(PRODUCER + 1))
    log.end_transaction(PRODUCER + 1, newer, commit=True)
    log.end_transaction(PRODUCER, older, commit=True)
    assert committed(log) == [20]


def test_an_offset_that_was_deleted_does_not_come_back_with_the_end_of_a_transaction(log: LogDirectory) -> None:
    first = log.append(commit(10), **transactional(PRODUCER))
    log.append(commit(None))
    log.end_transaction(PRODUCER, first, commit=True)
    assert committed(log) == []


def test_the_end_of_a_partition_is_read_once_however_many_groups_have_committed_offsets_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogDirectory(tmp_path, "t-0").numbered(3)
    groups = LogDirectory(tmp_path, "__consumer_offsets-0")
    value = b"\0\3" + messages.OffsetCommitValue(offset=1, metadata="", commit_timestamp=NOON).encode(3)
    for group in "abc":
        key = messages.OffsetCommitKey(group=group, topic="t", partition=0)
        groups.append([Record(b"\0\1" + key.encode(0), value, (), NOON)])
    source = SegmentsDataSource({"path": str(tmp_path), "view": "offsets"})
    reader = source.reader(source.schema())
    (task,) = reader.partitions()
    read: list[str] = []
    own = LocalFileSystem.read

    def counted(self: LocalFileSystem, path: str, *given: int) -> bytes:
        read.append(path)
        return own(self, path, *given)

    monkeypatch.setattr(LocalFileSystem, "read", counted)
    assert [lag for batch in reader.read(task) for lag in batch.column("lag").to_pylist()] == [2, 2, 2]
    assert len([path for path in read if path.endswith("t-0/00000000000000000000.log")]) == 1


def test_a_log_begins_where_its_records_were_deleted_up_to(tmp_path: Path) -> None:
    LogDirectory(tmp_path, "t-0").numbered(3)
    groups = LogDirectory(tmp_path, "__consumer_offsets-0")
    groups.append(commit(1))
    late = messages.OffsetCommitKey(group="late", topic="t", partition=0)
    groups.append([Record(b"\0\1" + late.encode(0), OFFSET_2)])
    begin = {TopicPartition("__consumer_offsets", 0): 1, TopicPartition("t", 0): 7}
    (tmp_path / "log-start-offset-checkpoint").write_bytes(format_offsets(begin))
    source = SegmentsDataSource({"path": str(tmp_path), "view": "offsets"})
    reader = source.reader(source.schema())
    (task,) = reader.partitions()
    rows = [row for batch in reader.read(task) for row in batch.to_pylist()]
    assert [(row["group"], row["offset"], row["logEndOffset"], row["lag"]) for row in rows] == [("late", 2, 7, 5)]
