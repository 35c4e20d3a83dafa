"""What is looked for in a broker's files beside what `tagwire log verify` finds."""

import pytest

from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.records import Record, batch_headers, write
from tagwire.records.files.partition import partitions
from tests.simulation.disk_auditing import _left, _untimed


@pytest.fixture
def directory(tmp_path):
    """Of a log of several segments, which is closed."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, TopicConfig(segment_bytes=1024))
    for number in range(6):
        data = memoryview(write([Record(None, b"x" * 700, timestamp=1000 + number)]))
        log.append([batch_of(next(batch_headers(data)), data)])
        log.flush()
    log.close()
    return tmp_path


def test_closed_segments_have_their_newest_time_in_their_indexes(directory):
    (partition,) = partitions(directory)
    assert len(partition.segments) == 6
    assert list(_untimed(partition)) == []


def test_a_time_index_that_was_lost_with_the_power_is_found(directory):
    (partition,) = partitions(directory)
    partition.segments[2].beside(".timeindex").write_bytes(b"")
    (told,) = _untimed(partition)
    assert "1002" in told


def test_an_index_that_is_not_there_is_made_anew(directory):
    (partition,) = partitions(directory)
    partition.segments[2].beside(".timeindex").unlink()
    assert list(_untimed(partition)) == []


def test_of_the_segment_that_is_written_to_the_index_may_be_in_memory(directory):
    (partition,) = partitions(directory)
    partition.segments[-1].beside(".timeindex").write_bytes(b"")
    assert list(_untimed(partition)) == []


def test_what_was_noted_of_segments_that_are_gone_is_found(directory):
    (partition,) = partitions(directory)
    assert _left(partition) == []
    for offset in (7, 8):  # as if the log began later
        (directory / "t-0" / f"{offset:020}.snapshot").write_bytes(b"")
    for segment in partition.segments:
        segment.path.rename(segment.path.with_name(f"{segment.base_offset + 10:020}.log"))
    (partition,) = partitions(directory)
    *gone, newest = sorted(int(path.stem) for path in partition.path.glob("*.snapshot"))
    assert _left(partition) == gone
    assert newest == 8
