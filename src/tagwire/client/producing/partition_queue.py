"""A partition's batches: those that wait to be sent, in order, and those in flight.

They are what RecordAccumulator's deque and TransactionManager's TxnPartitionEntry are in Kafka's producer. Several
batches of a partition may be in flight at a time. When one of them has to be sent again, the broker refuses those that
follow as out of order: then all of them are waited for, and sent again one after the other, each exactly as it was.
Without idempotence at most one batch is in flight, so that none can overtake another.

Which sequence numbers they get is in `sequence_numbers`.
"""

from __future__ import annotations

from collections import deque

from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.client.producing.producer_id import ProducerIdAndEpoch
from tagwire.client.producing.sequence_numbers import SequenceNumbers, split_sequences


class PartitionQueue:
    """One partition. For the sending thread.

    Attributes:
        batches: those that wait, the oldest first. in_flight: those that were sent and have no response yet.
        sequences: the partition's sequence numbers.
    """

    def __init__(self) -> None:
        self.batches: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.sequences = SequenceNumbers()
        self._appended = 0

    @property
    def is_empty(self) -> bool:
        return not self.batches and not self.in_flight

    def append(self, batch: ProducerBatch) -> None:
        """A new batch, after all others."""
        self._appended += 1
        batch.order = (self._appended,)
        self.batches.append(batch)

    def next_batch(self, now: float, max_in_flight: int, producer: ProducerIdAndEpoch) -> ProducerBatch | None:
        """What may be sent now; it stays in the queue."""
        if not self.batches:
            return None
        head = self.batches[0]
        if head.retry_at > now:
            return None
        if self.in_flight:
            may_follow = len(self.in_flight) < max_in_flight and self.sequences.allows_another(head, producer)
            return head if may_follow else None
        self.sequences.maybe_reset(producer, self.batches)
        return head

    def sent(self, batch: ProducerBatch) -> None:
        """The first of the queue is in flight."""
        self.batches.popleft()
        batch.sends += 1
        self.in_flight.append(batch)

    def acked(self, batch: ProducerBatch) -> None:
        """The broker has it."""
        self.sequences.acked(batch)
        self.in_flight.remove(batch)

    def reenqueue(self, batch: ProducerBatch) -> None:
        """A batch that was in flight waits to be sent again, in its order."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)
            self._insert(batch)

    def split(self, batch: ProducerBatch, *, transactional: bool) -> tuple[ProducerBatch, ...]:
        """Two halves of a batch in flight, which wait in its place."""
        parts = batch.split()
        split_sequences(batch, parts, transactional=transactional)
        self.in_flight.remove(batch)
        for part in parts:
            self._insert(part)
        return parts

    def remove(self, batch: ProducerBatch) -> None:
        """A batch that is failed."""
        (self.in_flight if batch in self.in_flight else self.batches).remove(batch)

    def unsendable(self) -> list[ProducerBatch]:
        """The batches that can be sent neither under their sequence numbers, because of a gap before them, nor under
        others, since they may have been appended."""
        if not self.sequences.has_gap or self.in_flight:
            return []
        return [batch for batch in self.batches if batch.may_be_appended]

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether everything before this batch is complete: delivered, or failed."""
        return not any(other.order < batch.order for other in (*self.batches, *self.in_flight))

    def _insert(self, batch: ProducerBatch) -> None:
        index = next((i for i, other in enumerate(self.batches) if other.order >= batch.order), len(self.batches))
        self.batches.insert(index, batch)
