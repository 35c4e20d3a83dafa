"""Transactions during compaction: which data was aborted, which markers may go.

An aborted transaction's records go with the first compaction, its marker only once none of its batches is left: while
one is, even emptied, a reader needs the marker, and so does whoever learns from the log what each producer last did.
"""

from __future__ import annotations

from collections.abc import Iterable

from tagwire.broker.storage.batch import origin_of
from tagwire.records import RecordBatch
from tagwire.records.files.transaction_index import AbortedTransaction


class CleanedTransactions:
    """Told of every batch of a log in its order.

    Attributes:
        kept: the aborted transactions whose markers stay, for the index of the segment that is made.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted`: every aborted transaction of the log, also those whose markers come later than what is walked."""
        self._to_come = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def may_go(self, batch: RecordBatch) -> bool:
        """Whether the records in a batch are of no more use as far as transactions are concerned: aborted data, or the
        marker of a transaction of which nothing is left."""
        while self._to_come and self._to_come[-1].first_offset <= batch.last_offset:
            transaction = self._to_come.pop()
            self._aborted[transaction.producer_id] = transaction
        producer = batch.producer_id
        if batch.is_control:
            return self._ends(batch)
        if not batch.is_transactional:
            return False
        self._seen.add(producer)
        return producer in self._aborted

    def _ends(self, batch: RecordBatch) -> bool:
        origin = origin_of(batch, batch.data)
        if origin is None or origin.marker is None:
            return False  # not the end of a transaction
        aborted = self._aborted.pop(batch.producer_id, None)
        has_data = batch.producer_id in self._seen
        self._seen.discard(batch.producer_id)
        if has_data and aborted is not None:
            self.kept.append(aborted)
        return not has_data
