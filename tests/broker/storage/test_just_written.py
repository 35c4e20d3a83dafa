"""What was written since the log's end was looked at is read without waiting for the disk, or left to who may wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.records import Record, batch_headers, write, write_end_transaction

SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=150)
MOST = 10_000


class Cached(Files):
    """The system has all in its memory, or nothing, whatever the disk of the tests is."""

    has_all = True

    def read_cached(self, path: Path, size: int, position: int) -> bytearray | None:
        return bytearray(path.read_bytes()[position : position + size]) if self.has_all else None


@pytest.fixture
def files():
    return Cached()


@pytest.fixture
def log(tmp_path, files):
    return create_log(files, tmp_path, SMALL)


def add(log, *batches):
    log.append(batches)
    log.flush()


def data_batch(**options):
    data = memoryview(write([Record(None, b"v", timestamp=1000)], **options))
    return batch_of(next(batch_headers(data)), data)


def marker(commit):
    data = memoryview(
        write_end_transaction(commit=commit, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=1000)
    )
    return batch_of(next(batch_headers(data)), data)


def test_it_is_what_fetch_gives(log, batch):
    add(log, batch(3), batch(2))
    end = log.visible_end
    assert len(log.fetch_since(end, MOST).records) == 0
    add(log, batch(1), batch(2))
    found, expected = log.fetch_since(end, MOST), log.fetch(5, MOST)
    assert (found.offset, bytes(found.records), found.view) == (5, bytes(expected.records), expected.view)
    assert [one.base_offset for one in batch_headers(found.records)] == [5, 6]


def test_what_the_system_would_have_to_read_is_left_to_others(log, batch, files):
    end = log.visible_end
    add(log, batch(1))
    files.has_all = False
    assert log.fetch_since(end, MOST) is None


def test_more_than_may_be_read_at_once_is_left_to_others(log, batch):
    end = log.visible_end
    add(log, batch(1), batch(1))
    size = len(log.read(0, MOST))
    assert len(log.fetch_since(end, size).records) == size
    assert log.fetch_since(end, size - 1) is None


def test_what_goes_on_in_another_segment_is_left_to_others(log, batch):
    add(log, batch(1))
    end = log.visible_end
    for _ in range(40):
        add(log, batch(1))
    assert log.visible_end.segment > end.segment
    assert log.fetch_since(end, MOST) is None


def test_what_is_not_published_is_not_read(log, batch):
    end = log.visible_end
    log.append([batch(1)])
    assert len(log.fetch_since(end, MOST).records) == 0


def test_readers_of_committed_records_get_nothing_of_transactions_that_are_open_or_aborted(log, batch):
    end = log.visible_end
    add(log, batch(1))
    assert len(log.fetch_since(end, MOST, committed=True).records)
    add(log, data_batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    assert log.fetch_since(end, MOST, committed=True) is None
    assert len(log.fetch_since(end, MOST).records)
    add(log, marker(commit=False))
    assert log.fetch_since(end, MOST, committed=True) is None


def test_a_log_that_the_disk_has_refused_is_left_to_who_tells_why(tmp_path, failing_files, batch):
    log = create_log(failing_files, tmp_path, SMALL)
    end = log.visible_end
    add(log, batch(1))
    failing_files.fail("read")
    assert log.fetch_since(end, MOST) is None
    failing_files.mend()
    failing_files.fail("write")
    failing_files.fail("truncate")
    log.append([batch(1)])
    assert log.is_offline
    failing_files.mend()
    assert log.fetch_since(end, MOST) is None


def test_records_that_are_deleted_meanwhile_are_not_read(log, batch):
    end = log.visible_end
    add(log, batch(1), batch(1))
    log.delete_before(1, lambda offset: None)
    assert log.fetch_since(end, MOST) is None


def test_of_a_file_all_that_is_asked_for_is_read_or_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert Files().read_cached(path, 4, 3) in (b"3456", None)  # not every system can tell
    assert Files().read_cached(path, 4, 8) is None
    with pytest.raises(FileNotFoundError):
        Files().read_cached(tmp_path / "missing", 1, 0)
