"""Opening a partition's directory: taking it as it is after a clean shutdown, checking and repairing it after a crash.

After a crash every segment that reaches past the recovery point, the offset up to which all was known to be on the
disk, is read batch by batch; its indexes are rebuilt, and at the first byte that is not a whole, sound batch, or the
first offset that is missing where compaction took none, the log ends: the rest of that segment and all later segments
go. Source: docs/log-files.md#recovery.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from tagwire.broker.storage.batch import origin_of
from tagwire.broker.storage.checkpoints import read_epochs, write_epochs
from tagwire.broker.storage.files import Files, problem_of
from tagwire.broker.storage.leader_epochs import LeaderEpochs, held_epochs
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.producer_snapshots import (
    drop_broken_snapshots,
    drop_snapshots,
    newest_snapshot,
    save_snapshot,
    sync_snapshot,
)
from tagwire.broker.storage.producer_state import ProducerState
from tagwire.broker.storage.segment import LogSegment
from tagwire.broker.storage.swap_recovery import recover_swap_files
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import DecodeError, StorageError, UnsupportedVersionError
from tagwire.records.files.checkpoints import EPOCHS_FILE

logger = logging.getLogger("tagwire.broker")


def create_log(files: Files, directory: Path, config: TopicConfig) -> PartitionLog:
    """An empty log in an existing directory; its files are on the disk."""
    segment = LogSegment.create(files, directory, 0, config.index_interval_bytes, config.dialect)
    segment.close()
    write_epochs(files, directory / EPOCHS_FILE, [(0, 0)])
    return PartitionLog(files, directory, [segment], config, LeaderEpochs([(0, 0)]))


def open_log(
    files: Files,
    directory: Path,
    config: TopicConfig,
    *,
    clean: bool,
    recovery_point: int = 0,
    start_offset: int = 0,
    gaps_before: int = 0,
) -> PartitionLog:
    """The log in a directory.

    Args:
        clean: whether the broker that wrote it shut down cleanly.
        recovery_point: up to which offset all was on the disk when it did not.
        start_offset: what is before it was deleted.
        gaps_before: compaction may have taken offsets before this one.

    Raises:
        StorageError: the directory cannot be read or written, or its epoch file is broken; that is told before anything
            is changed.
    """
    segments: list[LogSegment] = []
    try:
        known_epochs = read_epochs(files, directory / EPOCHS_FILE)
        segments = [
            LogSegment(files, directory, base, config.index_interval_bytes, config.dialect)
            for base in recover_swap_files(files, directory)
        ]
        _remove(files, directory, segments, _deleted(segments, start_offset))
        checked = _recover(files, directory, segments, clean, recovery_point, gaps_before)
        if segments and segments[-1].next_offset < start_offset:
            _remove(files, directory, segments, segments)
        if not segments:
            fresh = LogSegment.create(files, directory, start_offset, config.index_interval_bytes, config.dialect)
            segments = [fresh]
            files.sync_directory(directory)
        producers = _producers(files, directory, segments, checked)
        _save_indexes(files, directory, [segment for segment in checked if segment in segments], segments[-1])
        for segment in segments:
            segment.close()  # a log that is not written to keeps no file open
        known_epochs = held_epochs(known_epochs, max(start_offset, segments[0].base_offset))
        epochs = _leader_epochs(files, directory, known_epochs, segments[-1].next_offset, begin_new=bool(checked))
    except (OSError, DecodeError, UnsupportedVersionError) as error:
        for segment in segments:
            segment.close()  # who could not start may try again, in the same program
        told = problem_of(error, directory) if isinstance(error, OSError) else f"{directory}: {error}"
        raise StorageError(told) from error
    return PartitionLog(files, directory, segments, config, epochs, producers, start_offset=start_offset)


def _recover(
    files: Files, directory: Path, segments: list[LogSegment], clean: bool, recovery_point: int, gaps_before: int
) -> list[LogSegment]:
    """Make every segment usable; drop from `segments` what is lost. Those that had to be checked, in order."""
    checked: list[LogSegment] = []
    for number, segment in enumerate(segments):
        end = segments[number + 1].base_offset if number < len(segments) - 1 else None
        if segment.has_indexes():
            # A segment that ends at the recovery point may have been closed after it, its indexes not yet on the disk.
            if end is not None and (clean or end < recovery_point) and segment.adopt(end):
                continue
            if end is None and clean and segment.reopen():
                continue
        checked.append(segment)
        cut = segment.recover(gaps_before, recovery_point)
        if cut is not None:
            logger.warning(
                "%s: %d bytes cut off segment %d at offset %d: %s",
                directory.name, cut.size, segment.base_offset, segment.next_offset, cut.reason,
            )  # fmt: skip
        if end is None or segment.next_offset == end:
            continue
        # Whole batches can be lost too: then the next segment does not begin where this one ends.
        if cut is not None or segment.next_offset > end or end > gaps_before:
            logger.warning("%s: %d segments after the damage are deleted", directory.name, len(segments) - number - 1)
            _remove(files, directory, segments, reversed(segments[number + 1 :]))
            break
        segment.next_offset = end
    if segments and segments[-1].next_offset < recovery_point:
        logger.error(
            "%s: the log ends at offset %d, but offsets up to %d had been on the disk",
            directory.name, segments[-1].next_offset, recovery_point,
        )  # fmt: skip
    return checked


def _producers(files: Files, directory: Path, segments: list[LogSegment], checked: list[LogSegment]) -> ProducerState:
    """What the batches in `segments` say of their producers, and, noted in each, the transactions aborted there; what
    is to be written of these for those that were checked is not yet.

    After a crash the snapshots of segments that were checked are written anew, as Kafka's LogSegment.recover has it:
    once the segments before them are deleted, only they tell of the producers there.
    """
    producers = ProducerState()
    end = segments[-1].next_offset
    if checked:
        drop_broken_snapshots(files, directory)
    snapshot = newest_snapshot(files, directory, checked[0].base_offset if checked else end)
    start = segments[0].base_offset
    if snapshot is not None and snapshot[0] >= start:
        start = snapshot[0]
        producers.restore(snapshot[1].producer_entries)
    drop_snapshots(files, directory, keep={start, *(segment.base_offset for segment in segments)}, after=end)
    saved = False
    for segment in segments:
        if segment.next_offset <= start:
            continue
        segment.aborted = [transaction for transaction in segment.aborted if transaction.last_offset < start]
        for batch in segment.batches(start):
            origin = origin_of(batch, batch.data)
            ended = producers.take(origin, batch.base_offset, batch.last_offset, batch.max_timestamp)
            if ended is not None:
                segment.aborted.append(ended)
        if segment.aborted and segment is not segments[-1] and segment not in checked:
            segment.save_aborted(sync=True)
        if checked and producers and segment is not segments[-1]:
            save_snapshot(files, directory, segment.next_offset, producers.snapshot())
            sync_snapshot(files, directory, segment.next_offset)
            saved = True
    if saved:
        files.sync_directory(directory)
    producers.keep()
    return producers


def _save_indexes(files: Files, directory: Path, checked: list[LogSegment], last: LogSegment) -> None:
    """Write the indexes of segments that were checked; those of the last one need not be on the disk, as of no segment
    that is written to: each crash makes them anew.

    Those of aborted transactions come first, their names, too: nothing tells one that is missing from none, and by the
    others a start knows that a segment is whole.
    """
    for segment in checked:
        segment.save_aborted(sync=segment is not last)
    if any(segment.aborted for segment in checked if segment is not last):
        files.sync_directory(directory)
    for segment in checked:
        segment.save_positions(sync=segment is not last)


def _deleted(segments: list[LogSegment], start_offset: int) -> list[LogSegment]:
    """The segments that another follows before or at `start_offset`."""
    return [segment for segment, following in pairwise(segments) if following.base_offset <= start_offset]


def _remove(files: Files, directory: Path, segments: list[LogSegment], removed: Iterable[LogSegment]) -> None:
    """Delete `removed`, and take them out of `segments`."""
    for segment in list(removed):
        segment.remove()
        segments.remove(segment)
        files.sync_directory(directory)


def _leader_epochs(
    files: Files, directory: Path, epochs: list[tuple[int, int]], end_offset: int, *, begin_new: bool
) -> LeaderEpochs:
    """The log's epochs, `epochs` so far. Each recovery begins one: it tells offsets that were written twice apart."""
    if epochs and not begin_new:
        return LeaderEpochs(epochs)
    epoch = epochs[-1][0] + 1 if epochs else 0
    epochs = [*((known, start) for known, start in epochs if start < end_offset), (epoch, end_offset)]
    write_epochs(files, directory / EPOCHS_FILE, epochs)
    return LeaderEpochs(epochs)
