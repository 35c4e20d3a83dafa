"""Up to where a partition's files are stable: before the first record of a transaction that has not ended."""

from __future__ import annotations

from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.records.control import MARKERS
from tagwire.records.files import kind_of
from tagwire.records.files.names import offset_of
from tagwire.records.files.producer_snapshot import read_producer_snapshot
from tagwire.spark.segments.file_splits import PartitionLog
from tagwire.spark.segments.read import headers, marker


def stable_end(log: PartitionLog, *, drop: bool) -> int | None:
    """The first offset of the oldest transaction that is open where the files end; None where none is.

    Goes from the newest producer snapshot on, which says what was open before it; without one through all files.

    Raises:
        CorruptRecordError, StorageError: the files after the snapshot cannot be read.
    """
    first, opened = _snapshot(log)
    for file, following in zip(log.files, (*log.files[1:], None)):
        if following is not None and following.base_offset <= first:
            continue
        for header, batch in headers(file, 0, file.size, drop=drop):
            if header.last_offset < first or not header.is_transactional:
                continue
            if not header.is_control:
                opened.setdefault(header.producer_id, header.base_offset)
            elif _ends(batch, drop=drop):
                opened.pop(header.producer_id, None)
    return min(opened.values(), default=None)


def _ends(batch: memoryview, *, drop: bool) -> bool:
    """Whether a control batch of a transaction is a marker; one that is broken is, with `drop`: what else can it be."""
    try:
        return marker(batch) in MARKERS
    except (DecodeError, UnsupportedVersionError):
        if not drop:
            raise
        return True


def _snapshot(log: PartitionLog) -> tuple[int, dict[int, int]]:
    """The offset of the newest snapshot that can be read, and the open transactions it tells of: producer id to first
    offset."""
    for name in sorted((name for name in log.beside if kind_of(name) == "producers"), reverse=True):
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
