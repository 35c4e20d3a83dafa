"""Checks of the files beside a log against its batches: each entry is about the batch that holds an offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tagwire.errors import TagwireError
from tagwire.kernel.batch_scan import follow_offset_index, follow_time_index
from tagwire.records.control import control_type
from tagwire.records.files import offset_index, time_index, transaction_index
from tagwire.records.files.checkpoints import EpochStart
from tagwire.records.files.faults import Fault
from tagwire.records.files.index_entries import Entries
from tagwire.records.files.offset_index import OffsetEntry
from tagwire.records.files.opening import bytes_of
from tagwire.records.files.scanned_batches import ScannedBatch, ScannedBatches
from tagwire.records.files.time_index import TimeEntry
from tagwire.records.files.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from tagwire import messages
    from tagwire.records.files.segment import Segment

Entry = TypeVar("Entry")
NEVER = 1 << 64


class EntryChecks(Generic[Entry]):
    """The entries of one file to be checked, in the order of the offsets they are about."""

    def __init__(
        self, path: Path, checks: Iterable[tuple[int, Entry]], judge: Callable[[Entry, ScannedBatch], str | None]
    ) -> None:
        """`checks`: the entries, each with its offset.

        Args:
            judge: what is wrong with an entry, given the first batch that does not end before its offset.
        """
        self._path = path
        self._checks = list(checks)
        self._judge = judge
        self._number = 0

    def check(self, scanned: ScannedBatches) -> Iterator[Fault]:
        """Checks every entry up to the last of the batches against them."""
        checks, judge = self._checks, self._judge
        while self._number < len(checks):
            offset, entry = checks[self._number]
            found = scanned.number_of(offset)
            if found == scanned.count:
                return
            wrong = judge(entry, scanned[found])
            if wrong is not None:
                yield self._fault(wrong)
            self._number += 1

    def unreached(self) -> Iterator[Fault]:
        """What is wrong with the entries about offsets that the log did not reach."""
        return iter(())

    def _fault(self, text: str) -> Fault:
        return Fault(self._path, text)


class IndexChecks(EntryChecks[Entry]):
    """The entries of an index file: every offset in it must be in the log.

    They are followed through the file's bytes; its entries are made only where one is not borne out.
    """

    def __init__(
        self,
        path: Path,
        data: bytes,
        read: Callable[[bytes], Entries[Entry]],
        judge: Callable[[Entry, ScannedBatch], str | None],
        entry_size: int,
        follow: Callable[[bytes, int, ScannedBatches], int] | None = None,
    ) -> None:
        """`follow(data, number, scanned)` gives the number of the entry after those that the batches bear out, -1
        where one is not; None where every entry is judged by itself."""
        super().__init__(path, (), judge)
        self._data = data
        self._read = read
        self._entry_size = entry_size
        self._follow = follow
        self._entries: Entries[Entry] | None = None

    def check(self, scanned: ScannedBatches) -> Iterator[Fault]:
        if self._follow is not None:
            number = self._follow(self._data, self._number, scanned)
            if number >= 0:
                self._number = number
                return
        self._make_entries()
        yield from super().check(scanned)

    def unreached(self) -> Iterator[Fault]:
        if self._number * self._entry_size == len(self._data):
            return
        entries = self._make_entries()
        for offset, _ in self._checks[self._number :]:
            yield self._fault(f"the log ends before offset {offset}")
            self._number += 1
        if entries.fault is not None:
            yield Fault(self._path, entries.fault, entries.size)

    def _make_entries(self) -> Entries[Entry]:
        if self._entries is None:
            self._entries = self._read(self._data)
            self._data = self._data[: self._entries.size]  # no more zeros to stumble over
            self._checks = [(_offset(entry), entry) for entry in self._entries.entries]
        return self._entries

    def _fault(self, text: str) -> Fault:
        return Fault(self._path, f"entry {self._number}: {text}", self._number * self._entry_size)


def _offset(entry: Any) -> int:
    found: int = entry.last_offset if isinstance(entry, AbortedTransaction) else entry.offset
    return found


def index_checks(segment: Segment) -> Iterator[IndexChecks[Any]]:
    """The checks of the indexes beside a segment, as far as there are any. Raises OSError."""
    base = segment.base_offset
    kinds: tuple[_Kind, ...] = (
        (
            ".index",
            lambda data: offset_index.read_offset_index(data, base),
            _judge_offset,
            offset_index.ENTRY.size,
            lambda data, number, scanned: follow_offset_index(
                data, number, base, scanned.positions, scanned.last_offsets, scanned.count
            ),
        ),
        (
            ".timeindex",
            lambda data: time_index.read_time_index(data, base),
            _judge_time,
            time_index.ENTRY.size,
            lambda data, number, scanned: follow_time_index(
                data, number, base, scanned.base_offsets, scanned.last_offsets, scanned.timestamps, scanned.count
            ),
        ),
        (
            ".txnindex",
            lambda data: transaction_index.read_transaction_index(data, base),
            _judge_abort(segment),
            transaction_index.ENTRY.size,
            None,
        ),
    )
    for suffix, read, judge, size, follow in kinds:
        path = segment.beside(suffix)
        try:
            data = bytes_of(path)
        except FileNotFoundError:
            continue
        yield IndexChecks(path, data, read, judge, size, follow)


_Kind = tuple[
    str,
    Callable[[bytes], Entries[Any]],
    Callable[[Any, ScannedBatch], "str | None"],
    int,
    "Callable[[bytes, int, ScannedBatches], int] | None",
]


def _judge_offset(entry: OffsetEntry, seen: ScannedBatch) -> str | None:
    """An offset index entry points to the batch that ends with its offset."""
    if seen.position == entry.position and seen.last_offset == entry.offset:
        return None
    claim = f"says that a batch at byte {entry.position} ends with offset {entry.offset}"
    if seen.base_offset > entry.offset:
        return f"{claim}; there is no such offset"
    return f"{claim}; that offset is in the batch {_range(seen)} at byte {seen.position}"


def _judge_time(entry: TimeEntry, seen: ScannedBatch) -> str | None:
    """A time index entry has the greatest timestamp of the batch that holds its offset."""
    if seen.base_offset <= entry.offset and seen.max_timestamp == entry.timestamp:
        return None
    claim = f"says that timestamp {entry.timestamp} is reached at offset {entry.offset}"
    if seen.base_offset > entry.offset:
        return f"{claim}; there is no such offset"
    return f"{claim}; the batch {_range(seen)} reaches {seen.max_timestamp}"


def _judge_abort(segment: Segment) -> Callable[[AbortedTransaction, ScannedBatch], str | None]:
    """A transaction index entry ends with an abort marker of its producer."""

    def judge(entry: AbortedTransaction, seen: ScannedBatch) -> str | None:
        if seen.base_offset == entry.last_offset and seen.producer_id == entry.producer_id:
            try:
                batch = segment.batch_at(seen.position, seen.end - seen.position)
                if batch.is_control and any(control_type(record.key) == "ABORT" for record in batch.records()):
                    return None
            except TagwireError as error:
                return f"the marker at offset {entry.last_offset} cannot be read: {error}"
        return f"says that producer {entry.producer_id} aborted at offset {entry.last_offset}; no marker there says so"

    return judge


def epoch_checks(path: Path, epochs: list[EpochStart], start: int, end: int) -> EntryChecks[tuple[EpochStart, int]]:
    """What a leader-epoch-checkpoint says of the offsets from `start` to before `end`: of each epoch's ends."""
    checks = []
    for entry, following in pairwise([*epochs, EpochStart(-1, NEVER)]):
        until = following.start_offset
        ends = {max(entry.start_offset, start), min(until, end) - 1}
        checks += [(offset, (entry, until)) for offset in ends if max(entry.start_offset, start) <= offset < end]
    return EntryChecks(path, sorted(checks), _judge_epoch)


def _judge_epoch(claim: tuple[EpochStart, int], seen: ScannedBatch) -> str | None:
    (epoch, start), until = claim
    if not start <= seen.base_offset < until or seen.leader_epoch in (epoch, -1):
        return None
    return f"says that epoch {epoch} begins at offset {start}; the batch {_range(seen)} is of epoch {seen.leader_epoch}"


def producer_checks(
    path: Path, snapshot: messages.ProducerSnapshot, start: int, end: int
) -> EntryChecks[messages.ProducerSnapshot.ProducerEntry]:
    """What a producer snapshot says of the offsets from `start` to before `end`."""
    entries = [(entry.last_offset, entry) for entry in snapshot.producer_entries if start <= entry.last_offset < end]
    return EntryChecks(path, sorted(entries, key=lambda claim: claim[0]), _judge_producer)


def _judge_producer(entry: messages.ProducerSnapshot.ProducerEntry, seen: ScannedBatch) -> str | None:
    if seen.base_offset > entry.last_offset or seen.producer_id == entry.producer_id:
        return None
    claim = f"says that producer {entry.producer_id} wrote offset {entry.last_offset}"
    return f"{claim}; the batch {_range(seen)} is of producer {seen.producer_id}"


def _range(seen: ScannedBatch) -> str:
    return f"of offsets {seen.base_offset}-{seen.last_offset}"
