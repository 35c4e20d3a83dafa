"""Whether a log is sound: its batches by themselves and in their order, and what the files beside it say of them.

One pass over the batches, in the order of their offsets. What another file says, entry by entry, is a claim about the
batch that holds an offset; it is judged when that batch comes by. Nothing is decompressed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from crc32c import crc32c

from tagwire.errors import DecodeError, TagwireError
from tagwire.records.batch import CODEC_MASK, CRC_FROM, HEADER, HEADER_SIZE
from tagwire.records.compression import CODECS
from tagwire.records.files.checkpoints import EpochStart, read_epochs
from tagwire.records.files.claims import (
    NEVER,
    Claims,
    Seen,
    epoch_claims,
    judge_abort,
    judge_offset,
    judge_time,
    producer_claims,
)
from tagwire.records.files.faults import Fault
from tagwire.records.files.index_entries import Entries
from tagwire.records.files.names import offset_of
from tagwire.records.files.offset_index import ENTRY as OFFSET_ENTRY
from tagwire.records.files.offset_index import read_offset_index
from tagwire.records.files.partition import PartitionFiles
from tagwire.records.files.partition_metadata import read_topic_id
from tagwire.records.files.producer_snapshot import read_producer_snapshot
from tagwire.records.files.segment import Segment
from tagwire.records.files.spans import spans, tail
from tagwire.records.files.time_index import ENTRY as TIME_ENTRY
from tagwire.records.files.time_index import read_time_index
from tagwire.records.files.transaction_index import ENTRY as TRANSACTION_ENTRY
from tagwire.records.files.transaction_index import read_transaction_index

Progress = Callable[[int], object]
"""Is told how many more bytes were read."""

Content = TypeVar("Content")
_STEP = 1 << 24


def verify_segment(
    segment: Segment,
    claims: Iterable[Claims[Any]] = (),
    *,
    first_offset: int | None = None,
    progress: Progress | None = None,
) -> Generator[Fault, None, int]:
    """What is wrong with a segment: its batches, then the entries of the indexes beside it, each where it is found.

    Of batches: a header that contradicts itself, a checksum that fails, offsets that do not grow, a batch that is cut
    off, bytes that are none. Of indexes: entries that no batch bears out, and entries that do not increase. Indexes
    that are missing are no fault: Kafka makes them anew.

    Args:
        claims: what else is said of the segment's batches.
        first_offset: no batch may be older than this (None: than the segment's name says).
        progress: told every 16 MiB.

    Returns:
        The offset after the last batch.

    Raises:
        OSError: the log cannot be read.
    """
    witnesses = list(claims)
    yield from _index_claims(segment, witnesses)
    watch = min((witness.offset for witness in witnesses), default=NEVER)
    expected = segment.base_offset if first_offset is None else first_offset
    for found in _batches(segment, expected, progress):
        if isinstance(found, Fault):
            yield found
            continue
        expected = found[3] + 1
        if found[3] >= watch:
            for witness in witnesses:
                if witness.offset <= found[3]:
                    yield from witness.meet(found)
            watch = min([witness.offset for witness in witnesses])
    for witness in witnesses:
        yield from witness.left()
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
    for segment, (start, end) in zip(files.segments, pairwise([*starts, NEVER])):
        with segment:
            claims: list[Claims[Any]] = [epoch_claims(path, content, start, end) for path, content in epochs]
            claims += [producer_claims(path, content, start, end) for path, content in snapshots]
            after = yield from verify_segment(segment, claims, first_offset=max(start, after), progress=progress)
    for snapshot_log in files.snapshots:
        yield from verify_segment(snapshot_log, progress=progress)


def _batches(segment: Segment, expected: int, progress: Progress | None) -> Iterator[Seen | Fault]:
    """Every batch that can be read, and what is wrong with batches."""
    data, path = segment.data, segment.path
    ordinary = segment.dialect is None
    unpack, checksum = HEADER.unpack_from, crc32c
    after = told = 0
    for position, size, magic in spans(data, 0, len(data)):
        after = position + size
        if progress is not None and after - told >= _STEP:
            progress(after - told)
            told = after
        if magic == 2 and ordinary and size >= HEADER_SIZE:
            base, _, epoch, _, crc, attributes, delta, _, newest, producer, _, _, count = unpack(data, position)
            last = base + delta
            if checksum(data[position + CRC_FROM : after]) != crc:
                yield Fault(path, f"the batch does not have the checksum {crc:08x} that it states", position, base)
            if base < 0 or delta < 0 or not 0 <= count <= delta + 1 or attributes & CODEC_MASK >= len(CODECS):
                yield from _unreadable(segment, position, size)
                continue
        else:
            try:
                batch = segment.batch_at(position, size)
                batch.verify()
                base, last, epoch, newest, producer = batch.base_offset, batch.last_offset, -1, batch.max_timestamp, -1
            except DecodeError as error:
                yield Fault(path, str(error), position)
                continue
        if base < expected:
            yield Fault(
                path, f"the batch begins with offset {base} where {expected} or a later one must", position, base
            )
        yield position, size, base, last, epoch, newest, producer
        expected = last + 1
    rest = tail(data, after)
    if rest is not None and rest.kind != "zeros":
        yield Fault(path, f"the last {rest.size} bytes are no whole batch: {rest.reason}", rest.position)
    if progress is not None:
        progress(len(data) - told)


def _unreadable(segment: Segment, position: int, size: int) -> Iterator[Fault]:
    try:
        segment.batch_at(position, size)
    except DecodeError as error:
        yield Fault(segment.path, str(error), position)


def _index_claims(segment: Segment, witnesses: list[Claims[Any]]) -> Iterator[Fault]:
    """Adds what the indexes beside a segment say to `witnesses`; gives what is wrong with them by themselves."""
    if segment.path.suffix != ".log":
        return
    base = segment.base_offset
    kinds: tuple[tuple[str, Callable[[bytes], Entries[Any]], str, Callable[[Any, Seen], str | None], int], ...] = (
        (".index", lambda data: read_offset_index(data, base), "offset", judge_offset, OFFSET_ENTRY.size),
        (".timeindex", lambda data: read_time_index(data, base), "offset", judge_time, TIME_ENTRY.size),
        (".txnindex", read_transaction_index, "last_offset", judge_abort(segment), TRANSACTION_ENTRY.size),
    )
    for suffix, read, key, judge, size in kinds:
        path = segment.beside(suffix)
        found, faults = _content(path, read)
        yield from faults
        if found is None:
            continue
        if found.fault is not None:
            yield Fault(path, found.fault, found.size)
        offset_of_entry = attrgetter(key)
        claims = [(offset_of_entry(entry), entry) for entry in found.entries]
        witnesses.append(Claims(path, claims, judge, entry_size=size, complete=True))


def _content(path: Path, read: Callable[[bytes], Content]) -> tuple[Content | None, list[Fault]]:
    """What a file holds, None where it is missing; or what is wrong with it."""
    try:
        return read(path.read_bytes()), []
    except FileNotFoundError:
        return None, []
    except TagwireError as error:
        return None, [Fault(path, str(error))]


def _disorder(path: Path, epochs: list[EpochStart]) -> Iterator[Fault]:
    for before, entry in pairwise(epochs):
        if entry.epoch <= before.epoch or entry.start_offset < before.start_offset:
            yield Fault(path, f"epoch {entry.epoch} at offset {entry.start_offset} does not follow {before}")
