"""What compaction keeps of each batch. The rules are Kafka's (KIP-280, KIP-534; docs/record-formats.md#compaction).

Of each key the last record stays, one that deletes the key for a while only: when a batch with such records is first
compacted, it is written down in the batch until when. The end of a transaction goes in the same way. A producer's last
batch stays, if need be without records: it says which sequence comes next. So does the last batch that is compacted:
it says where the log was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tagwire.broker.storage.cleaned_transactions import CleanedTransactions
from tagwire.broker.storage.offset_map import OffsetMap
from tagwire.broker.storage.producer_state import Producer
from tagwire.records import Record, RecordBatch, rewrite
from tagwire.records.compression import MAX_DECOMPRESSED


@dataclass(frozen=True, slots=True)
class Cleaning:
    """One pass over a log.

    Attributes:
        last_of: where the last record of each key is.
        transactions: what is known of them so far.
        producers: what is known of each producer, by its id.
        now_ms: the time.
        delete_retention_ms: how long records that delete stay from now on.
    """

    last_of: OffsetMap
    transactions: CleanedTransactions
    producers: Mapping[int, Producer]
    now_ms: int
    delete_retention_ms: int

    def keep(self, batch: RecordBatch) -> memoryview | None:
        """What is kept of a batch: its bytes, unchanged where nothing goes, or None. To be called in the log's order.

        Raises:
            CorruptRecordError: its records cannot be read.
        """
        may_go = self.transactions.may_go(batch)
        horizon = batch.delete_horizon
        is_over = horizon is not None and horizon <= self.now_ms
        if may_go and not batch.is_control:
            return self._emptied(batch)
        if may_go and is_over:
            # Without a marker that is a producer's last batch its epoch would be forgotten.
            return batch.data if self._is_last_of_producer(batch) else self._emptied(batch)
        records = list(batch.records(max_decompressed=MAX_DECOMPRESSED))
        kept = records if batch.is_control else [record for record in records if self._stays(record, is_over)]
        if not kept:
            return self._emptied(batch)
        # Past what this pass knows the keys of, what a record deletes is still there.
        is_compacted = batch.next_offset <= self.last_of.next_offset
        waits = is_compacted and (may_go or (not batch.is_control and any(record.value is None for record in kept)))
        if waits and horizon is None:
            return memoryview(rewrite(batch, kept, delete_horizon=self.now_ms + self.delete_retention_ms))
        return batch.data if len(kept) == len(records) else memoryview(rewrite(batch, kept))

    def _stays(self, record: Record, is_over: bool) -> bool:
        if record.offset >= self.last_of.next_offset:
            return True
        if record.key is None:
            return False
        return record.offset >= self.last_of.get(record.key) and (record.value is not None or not is_over)

    def _emptied(self, batch: RecordBatch) -> memoryview | None:
        if batch.next_offset == self.last_of.next_offset or self._is_last_of_producer(batch):
            return batch.data if batch.count == 0 else memoryview(rewrite(batch, []))
        return None

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        known = self.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if known is None:
            return False
        if known.sent:
            return batch.last_offset == known.sent[-1].last_offset
        return batch.is_control and batch.producer_epoch == known.epoch
