"""Aborted transactions, whose records a reader of committed ones does not see.

Source: docs/record-formats.md#control-batches.
"""

from __future__ import annotations

from collections.abc import Iterable

from tagwire.records.batch import TRANSACTIONAL, BatchHeader, RecordBatch
from tagwire.records.control import control_type

_UNKNOWN = 1 << 63


class AbortedTransactions:
    """The aborted transactions of one fetch response, as far as its batches have been passed.

    A producer's transactional batches are hidden from a transaction's first offset up to its abort marker. Batches are
    to be passed once each, in order of their offsets.
    """

    def __init__(self, transactions: Iterable[tuple[int, int] | tuple[int, int, int]]) -> None:
        """`transactions`: (producer id, first offset) of each, in any order; and the offset of its marker, where that
        is known: a marker may be broken, and be left out."""
        self._ahead = sorted(
            ((each[0], each[1], each[2] if len(each) == 3 else _UNKNOWN) for each in transactions),
            key=lambda transaction: transaction[1],
            reverse=True,
        )
        self._open: dict[int, int] = {}

    def hides(self, header: BatchHeader, data: memoryview) -> bool:
        """Passes the batch of `header` in `data`; whether its records belong to an aborted transaction.

        The caller has verified its checksum. Markers themselves are not hidden. Raises CorruptRecordError for a control
        batch that cannot be read.
        """
        if header.producer_id < 0 or not header.attributes & TRANSACTIONAL:
            return False
        while self._ahead and self._ahead[-1][1] <= header.last_offset:
            producer, _, end = self._ahead.pop()
            self._open[producer] = end
        if self._open.get(header.producer_id, _UNKNOWN) < header.base_offset:
            del self._open[header.producer_id]
        if not header.is_control:
            return header.producer_id in self._open
        if header.producer_id in self._open and _is_abort(header, data):
            del self._open[header.producer_id]
        return False


def _is_abort(header: BatchHeader, data: memoryview) -> bool:
    marker = next(RecordBatch(data, header.position).records(), None)
    return marker is not None and control_type(marker.key) == "ABORT"
