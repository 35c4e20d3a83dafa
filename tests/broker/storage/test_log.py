"""What a partition's log keeps, and what it gives back."""

from __future__ import annotations

import errno

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.storage.batch import Appended
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.leader_epochs import LeaderEpochs
from tagwire.broker.storage.loading import create_log
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import StorageError
from tagwire.records import batch_headers, read

SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=150)


@pytest.fixture
def log(tmp_path):
    return create_log(Files(), tmp_path, SMALL)


def add(log, *batches):
    outcome = log.append(batches)
    log.flush()
    return outcome


def offsets_of(data):
    return [record.offset for batch in read(data) for record in batch.records()]


def everything(log):
    """Every offset in the log, read in pieces."""
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 700)
        found += offsets_of(data)
        offset = found[-1] + 1
    return found


def test_offsets_count_records_across_batches(log, batch):
    assert add(log, batch(3), batch(1)) == [Appended(0, -1), Appended(3, -1)]
    assert add(log, batch(2)) == [Appended(4, -1)]
    assert everything(log) == [0, 1, 2, 3, 4, 5]


def test_a_batch_is_stored_unchanged_but_for_base_offset_and_leader_epoch(tmp_path, batch):
    log = create_log(Files(), tmp_path, SMALL)
    log.epochs = LeaderEpochs([(7, 0)])
    sent = batch(2, compression="zstd")
    add(log, batch(3), sent)
    stored = bytes(log.read(3, 10_000))
    assert stored == (3).to_bytes(8, "big") + bytes(sent.data[8:12]) + (7).to_bytes(4, "big") + bytes(sent.data[16:])
    assert next(batch_headers(stored, verify=True)).crc_ok


def test_what_is_not_flushed_is_not_read(log, batch):
    add(log, batch(2))
    log.append([batch(5)])
    assert log.end_offset == 2
    assert offsets_of(log.read(0, 10_000)) == [0, 1]
    assert not log.read(2, 10_000)
    log.flush()
    assert offsets_of(log.read(2, 10_000)) == [2, 3, 4, 5, 6]


def test_an_offset_inside_a_batch_gives_the_whole_batch(log, batch):
    add(log, batch(10), batch(10))
    assert offsets_of(log.read(13, 1)) == list(range(10, 20))


def test_only_whole_batches_are_read_and_the_first_one_even_if_it_is_larger(log, batch):
    one = batch(1)
    size = len(one.data)
    add(log, one, one, one)
    assert offsets_of(log.read(0, 2 * size + 5)) == [0, 1]
    assert offsets_of(log.read(0, 2 * size)) == [0, 1]
    assert offsets_of(log.read(0, 2 * size - 1)) == [0]
    assert offsets_of(log.read(1, 1)) == [1]
    assert offsets_of(log.read(1, 0)) == [1]
    assert not log.read(1, size - 1, whole_first=False)
    assert offsets_of(log.read(1, size, whole_first=False)) == [1]


def test_the_end_is_readable_and_empty_and_past_it_is_out_of_range(log, batch):
    assert not log.read(0, 100)
    add(log, batch(2))
    assert not log.read(2, 100)
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRangeError, match=f"0-2, not {offset}"):
            log.read(offset, 100)


def test_segments_are_closed_before_they_grow_past_their_size_and_named_by_their_first_offset(log, batch, tmp_path):
    for _ in range(60):
        add(log, batch(2))
    names = sorted(path.name for path in tmp_path.glob("*.log"))
    assert len(names) > 3
    for name in names:
        data = (tmp_path / name).read_bytes()
        assert len(data) <= SMALL.segment_bytes
        assert next(batch_headers(data)).base_offset == int(name[:20])
    assert everything(log) == list(range(120))


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(log, batch):
    add(log, batch(1), batch(1, size=5000), batch(1))
    assert everything(log) == [0, 1, 2]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 400)), min_size=1, max_size=40),
    st.integers(0, 5000),
    st.integers(0, 1000),
)
def test_reading_from_any_offset_with_any_size_gives_whole_batches_from_the_one_that_holds_it(
    tmp_path_factory, batch, shapes, max_bytes, interval
):
    log = create_log(
        Files(), tmp_path_factory.mktemp("log"), TopicConfig(segment_bytes=6000, index_interval_bytes=interval)
    )
    batches = [batch(count, size=size) for count, size in shapes]
    bases = [placed.base_offset for placed in add(log, *batches)]
    for number, item in enumerate(batches):
        for offset in {bases[number], bases[number] + item.last_offset_delta}:
            data = log.read(offset, max_bytes)
            headers = list(batch_headers(data, verify=True))
            assert headers[0].base_offset == bases[number]
            assert all(header.crc_ok for header in headers)
            assert sum(header.size for header in headers) == len(data)
            assert len(data) <= max(max_bytes, len(item.data))
            assert [header.base_offset for header in headers] == bases[number : number + len(headers)]


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "shuffled"])
def test_a_timestamp_finds_the_first_record_that_is_not_older(tmp_path, batch, order):
    log = create_log(Files(), tmp_path, SMALL)
    starts = {
        "rising": [1000 + 10 * i for i in range(50)],
        "falling": [1000 - 10 * i for i in range(50)],
        "equal": [1000] * 50,
        "shuffled": [1000 + (i * 37) % 50 * 10 for i in range(50)],
    }[order]
    for start in starts:
        add(log, batch(4, timestamp=start))
    timestamps = [start + i for start in starts for i in range(4)]
    for wanted in range(490, 1510, 7):
        expected = next(((t, offset) for offset, t in enumerate(timestamps) if t >= wanted), None)
        assert log.offset_for_timestamp(wanted) == expected
    newest = max(timestamps)
    assert log.newest() == (newest, timestamps.index(newest))


@pytest.mark.parametrize("order", ["falling", "shuffled", "newest in the active segment"])
def test_the_newest_record_is_one_that_was_not_deleted(tmp_path, batch, order):
    log = create_log(Files(), tmp_path, SMALL)
    starts = [1000 - 10 * i if order == "falling" else 1000 + (i * 37) % 50 * 10 for i in range(50)]
    if order == "newest in the active segment":
        starts[-1] = 2000
    for start in starts:
        add(log, batch(4, timestamp=start))
    timestamps = [start + i for start in starts for i in range(4)]
    for before in range(1, len(timestamps), 3):  # up to the midst of a segment and of a batch, too
        log.delete_before(before, lambda start: None)
        newest = max(timestamps[before:])
        assert log.newest() == (newest, timestamps.index(newest, before))


def test_records_without_a_timestamp_are_found_by_none(log, batch):
    assert log.newest() is None
    log.append([batch(1, timestamp=-1)])
    log.flush()
    assert log.newest() is None
    assert log.offset_for_timestamp(0) is None


def test_append_time_dates_batches_by_the_brokers_clock_and_keeps_their_checksum_right(tmp_path, batch):
    config = TopicConfig.of({"message.timestamp.type": "LogAppendTime"})
    log = create_log(Files(), tmp_path, config)
    for compression in ("none", "gzip"):
        (placed,) = add(log, batch(3, timestamp=5, compression=compression))
        stored = next(iter(read(log.read(placed.base_offset, 10_000))))
        assert stored.timestamp_type == "LogAppendTime"
        assert stored.max_timestamp == placed.append_time_ms > 1_600_000_000_000
        assert {record.timestamp for record in stored.records()} == {placed.append_time_ms}
        assert crc32c(stored.data[21:]) == stored.crc


def test_a_write_that_fails_leaves_nothing_behind_and_the_log_goes_on(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, batch(2))
    size = (tmp_path / f"{0:020d}.log").stat().st_size
    failing_files.fail("write", errno.ENOSPC, times=1)
    first, second = log.append([batch(1), batch(1)])
    assert isinstance(first, StorageError)
    assert "No space left" in str(first)
    assert isinstance(second, StorageError)
    assert (tmp_path / f"{0:020d}.log").stat().st_size == size
    assert add(log, batch(1)) == [Appended(2, -1)]
    assert everything(log) == [0, 1, 2]


def test_a_write_that_cannot_be_undone_takes_the_log_offline(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    failing_files.fail("write")
    failing_files.fail("truncate")
    (outcome,) = log.append([batch(1)])
    assert isinstance(outcome, StorageError)
    failing_files.mend()
    assert log.is_offline
    (outcome,) = log.append([batch(1)])
    assert isinstance(outcome, StorageError)
    with pytest.raises(StorageError, match="offline"):
        log.read(0, 100)


def test_a_segment_that_cannot_be_created_refuses_the_batches_and_the_log_goes_on(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, batch(1, size=1500))
    failing_files.fail("create", errno.EMFILE, times=1)
    (outcome,) = log.append([batch(1, size=1500)])
    assert isinstance(outcome, StorageError)
    assert len(list(tmp_path.glob("*.log"))) == 1
    assert add(log, batch(1, size=1500)) == [Appended(1, -1)]
    assert everything(log) == [0, 1]


def test_a_failed_fsync_is_final_and_its_bytes_are_gone(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, batch(2))
    size = (tmp_path / f"{0:020d}.log").stat().st_size
    failing_files.fail("sync", times=1)
    log.append([batch(1)])
    with pytest.raises(StorageError, match="fsync failed"):
        log.flush()
    assert log.end_offset == 2
    assert (tmp_path / f"{0:020d}.log").stat().st_size == size
    with pytest.raises(StorageError, match="offline"):
        log.flush()
    with pytest.raises(StorageError, match="offline"):
        log.close()


def test_a_failed_fsync_of_a_new_segment_takes_the_segment_with_it(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, batch(1, size=1500))
    log.append([batch(1, size=1500), batch(1, size=1500)])
    failing_files.fail("sync_directory")
    with pytest.raises(StorageError, match="fsync failed"):
        log.flush()
    assert [path.name for path in tmp_path.glob("*.log")] == [f"{0:020d}.log"]


def test_a_read_that_fails_is_a_storage_error(tmp_path, batch, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, batch(1))
    failing_files.fail("read", times=1)
    with pytest.raises(StorageError, match="Input/output error"):
        log.read(0, 100)
    assert offsets_of(log.read(0, 100)) == [0]


def expire(log, now_ms):
    return log.delete_before(log.expired_before(now_ms), lambda start: None)


def fill(log, batch, starts):
    for start in starts:
        add(log, batch(1, timestamp=start, size=900))


def test_segments_older_than_the_retention_time_go_and_the_rest_stays(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=1000))
    fill(log, batch, [1000, 2000, 3000, 4000])
    assert expire(log, now_ms=3500) == 2
    assert (log.start_offset, log.end_offset) == (2, 4)
    assert everything(log) == [2, 3]
    assert len(list(tmp_path.glob("*.index"))) == 2
    with pytest.raises(OffsetOutOfRangeError):
        log.read(1, 100)
    assert log.offset_for_timestamp(0) == (3000, 2)


def test_what_was_noted_of_producers_where_a_segment_began_goes_with_it(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=1000))
    fill(log, batch, [1000, 2000, 3000, 4000])
    assert expire(log, now_ms=4500) == 3
    assert sorted(path.name for path in tmp_path.glob("*.snapshot")) == [f"{3:020d}.snapshot"]


def test_a_log_whose_records_are_all_too_old_becomes_empty_and_keeps_counting(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=1000))
    fill(log, batch, [1000, 2000, 3000])
    assert expire(log, now_ms=10_000) == 3
    assert (log.start_offset, log.end_offset) == (3, 3)
    assert expire(log, now_ms=10_000) == 0
    assert add(log, batch(1)) == [Appended(3, -1)]
    assert everything(log) == [3]


def test_unlimited_retention_keeps_everything(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig.of({"segment.bytes": "1024", "retention.ms": "-1"}))
    fill(log, batch, [1, 2, 3])
    assert expire(log, now_ms=2**50) == 0
    assert everything(log) == [0, 1, 2]


def test_records_without_a_timestamp_age_by_when_the_segment_was_written(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=60_000))
    fill(log, batch, [-1, -1])
    written = int((tmp_path / f"{0:020d}.log").stat().st_mtime * 1000)
    assert expire(log, now_ms=written + 59_000) == 0
    assert expire(log, now_ms=written + 120_000) == 2


def test_retention_of_no_bytes_keeps_nothing_of_what_was_written_so_far(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=-1, retention_bytes=0))
    fill(log, batch, range(1000, 1006))
    expire(log, now_ms=0)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (6, 6, 0)
    assert expire(log, now_ms=0) == 0


def test_retention_by_size_keeps_at_least_that_much(tmp_path, batch):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=1024, retention_ms=-1, retention_bytes=2500))
    fill(log, batch, range(1000, 1006))
    size = (tmp_path / f"{0:020d}.log").stat().st_size
    expire(log, now_ms=0)
    kept = sum(path.stat().st_size for path in tmp_path.glob("*.log"))
    assert 2500 <= kept < 2500 + size
    assert everything(log) == list(range(log.start_offset, 6))
