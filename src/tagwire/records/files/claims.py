"""What the files beside a log say of its batches: claims about the batch that holds an offset, and their judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from tagwire.errors import TagwireError
from tagwire.records.control import control_type
from tagwire.records.files.checkpoints import EpochStart
from tagwire.records.files.faults import Fault
from tagwire.records.files.offset_index import OffsetEntry
from tagwire.records.files.time_index import TimeEntry
from tagwire.records.files.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from tagwire import messages
    from tagwire.records.files.segment import Segment

Seen = tuple[int, int, int, int, int, int, int]
"""A batch that comes by: position, size, base offset, last offset, leader epoch, greatest timestamp, producer id."""

Entry = TypeVar("Entry")
NEVER = 1 << 64


class Claims(Generic[Entry]):
    """The claims of one file, in the order of the offsets they are about.

    Attributes:
        offset: that of the next claim; NEVER where none is left.
    """

    def __init__(
        self,
        path: Path,
        claims: Iterable[tuple[int, Entry]],
        judge: Callable[[Entry, Seen], str | None],
        *,
        entry_size: int | None = None,
        complete: bool = False,
    ) -> None:
        """`claims` are entries, each with its offset.

        Args:
            judge: what is wrong with an entry, given the first batch that does not end before its offset.
            entry_size: bytes of an entry, where they stand one after another in the file.
            complete: whether there must be such a batch for every entry.
        """
        self.path = path
        self.complete = complete
        self._claims = iter(claims)
        self._judge = judge
        self._entry_size = entry_size
        self._number = -1
        self._advance()

    def meet(self, seen: Seen) -> Iterator[Fault]:
        """Holds every claim up to the batch's last offset against it."""
        last = seen[3]
        while self.offset <= last:
            wrong = self._judge(self._entry, seen)
            if wrong is not None:
                yield self._fault(wrong)
            self._advance()

    def left(self) -> Iterator[Fault]:
        """The claims about offsets that the log does not reach, where that is wrong."""
        while self.complete and self.offset < NEVER:
            yield self._fault(f"the log ends before offset {self.offset}")
            self._advance()

    def _advance(self) -> None:
        self._number += 1
        following = next(self._claims, None)
        if following is None:
            self.offset = NEVER
        else:
            self.offset, self._entry = following

    def _fault(self, text: str) -> Fault:
        if self._entry_size is None:
            return Fault(self.path, text)
        return Fault(self.path, f"entry {self._number}: {text}", self._number * self._entry_size)


def judge_offset(entry: OffsetEntry, seen: Seen) -> str | None:
    """An offset index entry points to the batch that ends with its offset."""
    position, _, base, last, *_ = seen
    if position == entry.position and last == entry.offset:
        return None
    return f"says that a batch at byte {entry.position} ends with offset {entry.offset}; " + (
        f"that offset is in the batch of {base}-{last} at byte {position}"
        if base <= entry.offset
        else "there is no such offset"
    )


def judge_time(entry: TimeEntry, seen: Seen) -> str | None:
    """A time index entry has the greatest timestamp of the batch that holds its offset."""
    base, last, newest = seen[2], seen[3], seen[5]
    if base <= entry.offset and newest == entry.timestamp:
        return None
    claim = f"says that timestamp {entry.timestamp} is reached at offset {entry.offset}; "
    if base > entry.offset:
        return claim + "there is no such offset"
    return claim + f"the batch of {base}-{last} reaches {newest}"


def judge_abort(segment: Segment) -> Callable[[AbortedTransaction, Seen], str | None]:
    """A transaction index entry ends with an abort marker of its producer."""

    def judge(entry: AbortedTransaction, seen: Seen) -> str | None:
        position, size, base, _, _, _, producer = seen
        if base == entry.last_offset and producer == entry.producer_id:
            try:
                batch = segment.batch_at(position, size)
                if batch.is_control and any(control_type(record.key) == "ABORT" for record in batch.records()):
                    return None
            except TagwireError as error:
                return f"the marker at offset {entry.last_offset} cannot be read: {error}"
        return f"says that producer {entry.producer_id} aborted at offset {entry.last_offset}; no marker there says so"

    return judge


def epoch_claims(path: Path, epochs: list[EpochStart], start: int, end: int) -> Claims[tuple[EpochStart, int]]:
    """What a leader-epoch-checkpoint says of the offsets from `start` to before `end`: of each epoch's ends."""
    claims = []
    for entry, following in pairwise([*epochs, EpochStart(-1, NEVER)]):
        until = following.start_offset
        ends = {max(entry.start_offset, start), min(until, end) - 1}
        claims += [(offset, (entry, until)) for offset in ends if max(entry.start_offset, start) <= offset < end]
    return Claims(path, sorted(claims), _judge_epoch)


def _judge_epoch(claim: tuple[EpochStart, int], seen: Seen) -> str | None:
    (epoch, start), until = claim
    _, _, base, last, actual, _, _ = seen
    if not start <= base < until or actual in (epoch, -1):
        return None
    return f"says that epoch {epoch} begins at offset {start}; the batch of {base}-{last} is of epoch {actual}"


def producer_claims(
    path: Path, snapshot: messages.ProducerSnapshot, start: int, end: int
) -> Claims[messages.ProducerSnapshot.ProducerEntry]:
    """What a producer snapshot says of the offsets from `start` to before `end`."""
    entries = [(entry.last_offset, entry) for entry in snapshot.producer_entries if start <= entry.last_offset < end]
    return Claims(path, sorted(entries, key=lambda claim: claim[0]), _judge_producer)


def _judge_producer(entry: messages.ProducerSnapshot.ProducerEntry, seen: Seen) -> str | None:
    _, _, base, last, _, _, producer = seen
    if base > entry.last_offset or producer == entry.producer_id:
        return None
    return (
        f"says that producer {entry.producer_id} wrote offset {entry.last_offset}; "
        f"the batch of {base}-{last} is of producer {producer}"
    )
