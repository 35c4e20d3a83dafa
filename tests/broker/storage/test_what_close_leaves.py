"""A log that was closed in order is on the disk whole: its next opening believes what it finds, and checks nothing.

The disk of most of these tests keeps nothing that was not synced, neither bytes nor names.
"""

from __future__ import annotations

from random import Random

import pytest

from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, StorageError

from ...simulation.world.disk import DiskFault, SimulatedDisk, path_on_disk
from .test_producer_state import add, data_batch, marker

SMALL = TopicConfig(segment_bytes=600, index_interval_bytes=150)


class Nothing(Random):
    """Of what is not safe a disk keeps the first of what it may keep: nothing."""

    def choice(self, options):
        return options[0]


@pytest.fixture
def disk():
    made = SimulatedDisk(Nothing())
    made.make_directories(path_on_disk())
    return made


@pytest.fixture
def log(disk):
    created = create_log(disk, path_on_disk(), SMALL)
    disk.sync_directory(path_on_disk())
    return created


def content(disk):
    return {name: bytes(disk._file(path_on_disk() / name).data) for name in disk.names(path_on_disk())}


def reopened(disk, **options):
    return open_log(disk, path_on_disk(), SMALL, **options)


def fill(log):
    """Several segments, a transaction aborted in the first and one in the last."""
    add(log, data_batch(0, transactional=True), marker(False))
    add(log, *(data_batch(number, size=200) for number in range(1, 6)))
    add(log, data_batch(6, transactional=True), marker(False))


def test_no_file_of_a_log_is_open_that_went_offline_between_two_segments(disk, log):
    add(log, data_batch(0, size=200))
    log.flush()
    log.append([data_batch(number, size=200) for number in range(1, 8)])
    disk.inject(DiskFault({"sync_directory"}))
    with pytest.raises(StorageError, match="fsync failed"):
        log.flush()
    assert log.is_offline
    assert disk.descriptors(None) == []


def test_every_file_of_a_closed_log_is_on_the_disk(disk, log):
    fill(log)
    log.close()
    before = content(disk)
    assert {name.partition(".")[2] for name in before} >= {"log", "index", "timeindex", "txnindex", "snapshot"}
    disk.lose_power()
    assert content(disk) == before


@pytest.mark.parametrize("seed", range(30))
def test_a_transaction_stays_aborted_when_the_power_goes_after_a_stop_in_order(seed):
    """With the snapshot there and the transaction index not, nothing would tell: compaction took the aborted commit of
    a group's offset for its newest."""
    disk = SimulatedDisk(seed)  # keeps some names, and others not
    disk.make_directories(path_on_disk())
    log = create_log(disk, path_on_disk(), SMALL)
    add(log, data_batch(0, transactional=True), marker(False))
    log.close()
    disk.lose_power()
    found = reopened(disk, clean=True)
    assert [each.first_offset for each in found.fetch(0, 1 << 20, committed=True).aborted()] == [0]


def test_a_recovered_log_that_is_closed_is_on_the_disk_too(disk, log):
    fill(log)
    log.abandon("killed")
    found = reopened(disk, clean=False)
    found.close()
    before = content(disk)
    disk.lose_power()
    assert content(disk) == before


def test_a_producer_whose_segments_were_deleted_is_known_after_a_loss_of_power(disk, log):
    """Of it the snapshot at the log's start is all that tells."""
    add(log, data_batch(0))
    add(log, *(data_batch(number, pid=9, size=400) for number in range(4)))
    log.delete_before(3, lambda offset: None)
    log.abandon("power is lost")
    disk.lose_power()
    found = reopened(disk, clean=False, recovery_point=5, start_offset=3)
    assert found.start_offset == 3
    assert add(found, data_batch(5)) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_producer_whose_segments_were_deleted_before_they_were_on_the_disk_is_known_when_the_rest_is(disk, log):
    """So it is with fsync=interval."""
    log.append([data_batch(0), *(data_batch(number, pid=9, size=400) for number in range(4))])
    log.publish()
    log.delete_before(4, lambda offset: None)
    log.flush()
    log.abandon("power is lost")
    disk.lose_power()
    found = reopened(disk, clean=False, recovery_point=5, start_offset=4)
    assert found.start_offset == 4
    assert add(found, data_batch(5)) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]


@pytest.mark.parametrize("damage", ["cut", "zeros", "overwritten"])
def test_a_transaction_stays_aborted_whose_index_was_damaged_while_no_broker_ran(disk, log, damage):
    """Else readers of what is committed would be given its records, and compaction would take them for the newest."""
    fill(log)
    log.close()
    path = path_on_disk() / f"{0:020}.txnindex"
    size = disk.size(path)
    fd = disk.open(path, write=True)
    if damage == "cut":
        disk.truncate(fd, size - 9)
    else:
        disk.write(fd, [bytes(size) if damage == "zeros" else b"\1" * size], 0)
    disk.close(fd)
    found = reopened(disk, clean=True)
    assert [each.first_offset for each in found.fetch(0, 1 << 20, committed=True).aborted()] == [0]
