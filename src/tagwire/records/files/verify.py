"""Whether a log is sound: its batches by themselves and in their order, and what the files beside it say of them.

One pass over the batches, in the order of their offsets. Each entry of another file is about the batch that
holds an offset, and is checked when that batch is read. Nothing is decompressed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tagwire.errors import DecodeError, TagwireError
from tagwire.records.batch_bounds import batch_bounds
from tagwire.records.files.checkpoints import EpochStart, read_epochs
from tagwire.records.files.faults import Fault
from tagwire.records.files.index_checks import EntryChecks, epoch_checks, index_checks, producer_checks
from tagwire.records.files.names import offset_of
from tagwire.records.files.opening import bytes_of, open_file
from tagwire.records.files.partition import PartitionFiles
from tagwire.records.files.partition_metadata import read_topic_id
from tagwire.records.files.producer_snapshot import read_producer_snapshot
from tagwire.records.files.scanned_batches import ScannedBatch, ScannedBatches
from tagwire.records.files.segment import Segment
from tagwire.records.files.tails import tail

Progress = Callable[[int], object]
"""Is told how many more bytes were read."""

Content = TypeVar("Content")
_WINDOW = 1 << 20
_NEVER = 1 << 64


def verify_segment(
    segment: Segment,
    checks: Iterable[EntryChecks[Any]] = (),
    *,
    first_offset: int | None = None,
    progress: Progress | None = None,
) -> Generator[Fault, None, int]:
    """What is wrong with a segment: its batches, then the entries of the indexes beside it, each where it is found.

    Of batches: a header that contradicts itself, a checksum that fails, offsets that do not grow, a batch that is cut
    off, bytes that are none. Of indexes: entries that no batch bears out, and entries that do not increase. Indexes
    that are missing are no fault: Kafka makes them anew.

    Args:
        checks: what else is said of the segment's batches.
        first_offset: no batch may be older than this (None: than the segment's name says).
        progress: told after each megabyte.

    Returns:
        The offset after the last batch.

    Raises:
        OSError: the log cannot be read.
    """
    checkers = list(checks)
    if segment.path.suffix == ".log":
        checkers += index_checks(segment)
    expected = segment.base_offset if first_offset is None else first_offset
    for found in _batches(segment, expected, progress):
        if isinstance(found, Fault):
            yield found
            continue
        expected = found.next_offset
        for checker in checkers:
            yield from checker.check(found)
    for checker in checkers:
        yield from checker.unreached()
    return expected


def verify_partition(files: PartitionFiles, *, progress: Progress | None = None) -> Iterator[Fault]:
    """What is wrong in a partition's directory: its segments and their indexes, then what its other files say.

    Raises:
        OSError: a file cannot be read.
    """
    epochs: list[tuple[Path, list[EpochStart]]] = []
    snapshots = []
    for path in files.files("epochs"):
        content, faults = _content(path, read_epochs)
        yield from faults
        if content is not None:
            yield from _disorder(path, content)
            epochs.append((path, content))
    for path in files.files("producers"):
        snapshot, faults = _content(path, read_producer_snapshot)
        yield from faults
        if snapshot is not None:
            end = offset_of(path.name)
            for entry in snapshot.producer_entries:
                if end is not None and entry.last_offset >= end:
                    yield Fault(path, f"knows offset {entry.last_offset} of producer {entry.producer_id}")
            snapshots.append((path, snapshot))
    for path in files.files("topic-id"):
        yield from _content(path, read_topic_id)[1]
    after = 0
    starts = [segment.base_offset for segment in files.segments]
    for segment, (start, end) in zip(files.segments, pairwise([*starts, _NEVER])):
        with segment:
            checks: list[EntryChecks[Any]] = [epoch_checks(path, content, start, end) for path, content in epochs]
            checks += [producer_checks(path, content, start, end) for path, content in snapshots]
            after = yield from verify_segment(segment, checks, first_offset=max(start, after), progress=progress)
    for snapshot_log in files.snapshots:
        yield from verify_segment(snapshot_log, progress=progress)


def _batches(segment: Segment, expected: int, progress: Progress | None) -> Iterator[ScannedBatches | Fault]:
    """Every batch that can be read, and what is wrong with batches."""
    window = memoryview(bytearray(_WINDOW))
    scanned = ScannedBatches()
    position = 0
    with open_file(segment.path) as file:
        while True:
            if segment.dialect is None:
                # Read, not mapped: what is read into the same small buffer is checked while it is near the processor.
                origin = file.seek(position)
                data = window[: file.readinto(window)]
                while scanned.fill(data, origin, position, expected):
                    for number in scanned.wrong_checksums():
                        wrong = scanned[number]
                        text = "the batch does not have the checksum that it states"
                        yield Fault(segment.path, text, wrong.position, wrong.base_offset)
                    yield scanned
                    position, expected = scanned.ends[scanned.count - 1], scanned.next_offset
                if progress is not None:
                    progress(position - origin)
                if position > origin:
                    continue
            found = next(batch_bounds(segment.data, position, position + 1), None)
            if found is None:
                break
            alone, faults = _looked_at(segment, *found[:2], expected)
            yield from faults
            if alone is not None:
                yield alone
                expected = alone.next_offset
            position += found[1]
            if progress is not None:
                progress(found[1])
    rest = tail(segment.data, position)
    if rest is not None and rest.kind != "zeros":
        yield Fault(segment.path, f"the last {rest.size} bytes are no whole batch: {rest.reason}", rest.position)


def _looked_at(segment: Segment, position: int, size: int, expected: int) -> tuple[ScannedBatches | None, list[Fault]]:
    """One batch by itself, None where it cannot be read, and what is wrong with it."""
    try:
        batch = segment.batch_at(position, size)
        batch.verify()
        seen = ScannedBatch(
            position,
            position + size,
            batch.base_offset,
            batch.last_offset,
            batch.partition_leader_epoch,
            batch.max_timestamp,
            batch.producer_id,
        )
    except DecodeError as error:
        return None, [Fault(segment.path, str(error), position)]
    if seen.base_offset >= expected:
        return ScannedBatches.of(seen), []
    text = f"the batch begins with offset {seen.base_offset}, which is before {expected}"
    return ScannedBatches.of(seen), [Fault(segment.path, text, position, seen.base_offset)]


def _content(path: Path, read: Callable[[bytes], Content]) -> tuple[Content | None, list[Fault]]:
    """What a file holds, None where it is missing; or what is wrong with it."""
    try:
        return read(bytes_of(path)), []
    except FileNotFoundError:
        return None, []
    except TagwireError as error:
        return None, [Fault(path, str(error))]


def _disorder(path: Path, epochs: list[EpochStart]) -> Iterator[Fault]:
    for before, entry in pairwise(epochs):
        if entry.epoch <= before.epoch or entry.start_offset < before.start_offset:
            yield Fault(path, f"epoch {entry.epoch} at offset {entry.start_offset} does not follow {before}")
