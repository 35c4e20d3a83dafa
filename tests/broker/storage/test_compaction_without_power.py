"""Compaction that a loss of power ends, and recovery that another one ends: records are the ones before or after."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.errors import StorageError

from ...simulation.world.disk import SimulatedDisk, path_on_disk
from .compacted import CONFIG, WHERE, Compacted, batch

JUST_SWAPPED = 29
"""The step of a compaction at which the first segment that is replaced goes."""


class OnDisk(Compacted):
    """On a simulated disk, opened again with what is there."""

    def __init__(self, disk, log):
        super().__init__(path_on_disk(), files=disk, log=log)

    @classmethod
    def created(cls, disk):
        directory = path_on_disk() / "t-0"
        disk.make_directories(directory)
        return cls(disk, create_log(disk, directory, CONFIG))

    @classmethod
    def opened(cls, disk):
        directory = path_on_disk() / "t-0"
        gaps = OffsetCheckpoint(disk, path_on_disk() / "gaps").get(*WHERE)
        return cls(disk, open_log(disk, directory, CONFIG, clean=False, gaps_before=gaps))


def fill(kept):
    """Three segments that become one, and another that is written to. Each has a key of its own in every batch."""
    for number in range(12):
        kept.add(batch((b"same", b"v" * 400), (b"only in %d" % number, b"%d" % number), timestamp=number))
    kept.roll()
    kept.add(batch((b"last", b"v")))
    kept.log.config = replace(CONFIG, segment_bytes=1 << 20)


def compacted_until(step, seed):
    """A disk as the loss of power at a step of a compaction leaves it, and what was in the log."""
    disk = SimulatedDisk(seed)
    kept = OnDisk.created(disk)
    fill(kept)
    newest, end = kept.newest(), kept.log.end_offset
    disk.crash_at = disk.steps + step
    with pytest.raises(StorageError):
        kept.compact()
    kept.log.abandon("there is no power")
    disk.lose_power()
    return disk, (newest, end)


def recovered(disk):
    found = OnDisk.opened(disk)
    assert not [name for name in disk.names(found.directory) if name.endswith((".swap", ".cleaned"))]
    return found.newest(), found.log.end_offset


@pytest.mark.parametrize("step", range(17, 46))
def test_a_loss_of_power_while_segments_are_replaced_takes_no_record_and_brings_none_back(step):
    """From when their replacement is on the disk, until it is in its place."""
    for seed in (step, 100 + step):
        disk, before = compacted_until(step, seed)
        assert recovered(disk) == before


@pytest.mark.parametrize("step", range(5, 15))
def test_another_loss_of_power_while_that_is_finished_takes_none_either(step):
    for seed in range(8):
        disk, before = compacted_until(JUST_SWAPPED, seed)
        disk.crash_at = step
        with suppress(OSError, StorageError):
            OnDisk.opened(disk).log.abandon("power goes again")
        assert disk.is_dead
        disk.lose_power()
        assert recovered(disk) == before
