"""What a partition's files tell of transactions: which were aborted, and up to where all have ended."""

from __future__ import annotations

from typing import Final, NamedTuple

from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.records.control import MARKERS, UNKNOWN
from tagwire.records.files import kind_of, offset_name
from tagwire.records.files.names import offset_of
from tagwire.records.files.producer_snapshot import read_producer_snapshot
from tagwire.records.files.transaction_index import AbortedTransaction, read_transaction_index
from tagwire.spark.segments.file_splits import PartitionLog
from tagwire.spark.segments.read import headers, marker

_ABORT: Final = "ABORT"
_END: Final = 1 << 63


class Transactions(NamedTuple):
    """What is known of a partition's transactions.

    Attributes:
        stable_end: the first offset of the oldest that is open where the files end; None where none is.
        aborted: those that were aborted.
    """

    stable_end: int | None
    aborted: tuple[AbortedTransaction, ...]


def transactions_of(log: PartitionLog, *, drop: bool) -> Transactions:
    """What `.txnindex` files tell, and the files themselves from the newest producer snapshot on, which says what was
    open before it; without one all files. So segments are enough that were copied without what stands beside them.

    What a damaged `.txnindex` has lost stands in the markers of its segment, and where the `.index` is missing, which
    every closed segment has, so may this one be: a broker makes both anew, and from there on files are read here, too.

    Raises:
        CorruptRecordError, StorageError: the files after the snapshot cannot be read.
    """
    found, sound = _indexed(log)
    aborted = {(each.producer_id, each.last_offset): each for each in found}
    newest, open_there = _snapshot(log, _END)
    first, opened = (newest, open_there) if newest <= sound else _snapshot(log, sound)
    for file, following in zip(log.files, (*log.files[1:], None)):
        if following is not None and following.base_offset <= first:
            continue
        for header, batch in headers(file, 0, file.size, drop=drop):
            producer, last = header.producer_id, header.last_offset
            if last < first or not header.is_transactional:
                continue
            if header.base_offset >= newest > first:
                # Compaction may have taken markers since the older snapshot was: the newest tells what is open.
                first, opened = newest, open_there
            if not header.count:
                # Compaction has emptied it: its transaction has ended, and its marker may be gone, or be this.
                if header.is_control:
                    opened.pop(producer, None)
            elif not header.is_control:
                opened.setdefault(producer, header.base_offset)
            elif (end := _end(batch, drop=drop)) is not None:
                begun = opened.pop(producer, None)
                if end == _ABORT and begun is not None:
                    aborted.setdefault((producer, last), AbortedTransaction(producer, begun, last, -1))
    opened = open_there if first < newest else opened
    return Transactions(min(opened.values(), default=None), tuple(aborted.values()))


def _end(batch: memoryview, *, drop: bool) -> str | None:
    """How a control batch of a transaction ends it, None where it does not; one that is broken does, with `drop`: what
    else can it be."""
    try:
        kind = marker(batch)
    except (DecodeError, UnsupportedVersionError):
        if not drop:
            raise
        return UNKNOWN
    return kind if kind in MARKERS else None


def _indexed(log: PartitionLog) -> tuple[list[AbortedTransaction], int]:
    """The aborted transactions that `.txnindex` files tell of, and before which offset these tell of all."""
    aborted: list[AbortedTransaction] = []
    for file in log.files:
        stem = offset_name(file.base_offset)
        if f"{stem}.index" not in log.beside:
            return aborted, file.base_offset
        if (name := f"{stem}.txnindex") in log.beside:
            found = read_transaction_index(log.read(name), file.base_offset)
            aborted += found.entries
            if found.fault is not None:
                return aborted, file.base_offset
    return aborted, _END


def _snapshot(log: PartitionLog, before: int) -> tuple[int, dict[int, int]]:
    """The offset of the newest snapshot that can be read and does not come after `before`, and the open transactions it
    tells of: producer id to first offset."""
    for name in sorted((name for name in log.beside if kind_of(name) == "producers"), reverse=True):
        if (offset_of(name) or 0) > before:
            continue
        try:
            snapshot = read_producer_snapshot(log.read(name))
        except (DecodeError, UnsupportedVersionError):
            continue
        opened = {
            entry.producer_id: entry.current_txn_first_offset
            for entry in snapshot.producer_entries
            if entry.current_txn_first_offset >= 0
        }
        return offset_of(name) or 0, opened
    return 0, {}
