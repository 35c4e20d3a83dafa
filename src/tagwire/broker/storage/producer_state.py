"""The state of idempotent and transactional producers in a partition: nothing is stored twice or out of order.

Of each producer the last five batches are known. One of them sent again is a duplicate: the response tells the offset
that it got at first. Any other batch has to follow the last one without a gap. A producer that nothing is known of may
start with any sequence, as one may whose records were all deleted. An epoch older than the last one is fenced; a newer
one starts from sequence 0.

A transaction is open from its first batch to its marker. What follows the first batch of an open transaction is not
stable: readers of committed records stop before it. Source: KIP-98; Kafka's ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tagwire import messages
from tagwire.broker.storage.batch import Appended, Origin
from tagwire.errors import Error, KafkaError
from tagwire.records import next_sequence
from tagwire.records.files.transaction_index import AbortedTransaction

WINDOW = 5
"""Batches of a producer that are recognized when they come again: as many as Kafka's producer has under way."""

EXPIRES_AFTER_MS = 86_400_000
"""A producer that has sent nothing for this long is forgotten, as Kafka does by default."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that is in the log: its sequence numbers, -1 for none, its offsets, and its
    `Appended.append_time_ms`."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    append_time_ms: int = -1


@dataclass(frozen=True, slots=True)
class Producer:
    """What is known of a producer.

    Attributes:
        sent: its last batches in this epoch, oldest first.
        last_ms: the greatest timestamp of its last batch.
        coordinator_epoch: of the last marker; -1 when there was none.
        transaction_start: the first offset of its open transaction; None without one.
    """

    producer_id: int
    epoch: int
    sent: tuple[Sent, ...] = ()
    last_ms: int = -1
    coordinator_epoch: int = -1
    transaction_start: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else -1


class ProducerState:
    """Every producer of one partition.

    What `take` changes is provisional until `keep`; `undo` takes it back.
    """

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}
        # Where each open transaction starts: every append asks for the first, and most producers have none.
        self._open: dict[int, int] = {}
        self._before: list[tuple[int, Producer | None]] = []

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Producer]:
        return iter(list(self._known.values()))

    def get(self, producer_id: int) -> Producer | None:
        return self._known.get(producer_id)

    @property
    def first_open(self) -> int | None:
        """The first offset of the oldest open transaction; None when there is none."""
        return min(self._open.values(), default=None)

    def check(self, origin: Origin | None) -> Appended | None:
        """Where a batch is already, if it is a duplicate; None for one that may be appended.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE or
                TRANSACTION_COORDINATOR_FENCED.
        """
        known = self._known.get(origin.producer_id) if origin else None
        if origin is None or known is None:
            return None
        if origin.epoch < known.epoch:
            problem = f"producer {known.producer_id} is at epoch {known.epoch}, the batch at {origin.epoch}"
            raise KafkaError(Error.INVALID_PRODUCER_EPOCH, problem)
        if origin.marker is not None:
            if origin.marker.coordinator_epoch < known.coordinator_epoch:
                raise KafkaError(Error.TRANSACTION_COORDINATOR_FENCED)
            return None
        if origin.first_sequence >= 0:
            same_epoch = origin.epoch == known.epoch
            for sent in known.sent if same_epoch else ():
                if (sent.first_sequence, sent.last_sequence) == (origin.first_sequence, origin.last_sequence):
                    return Appended(sent.base_offset, sent.append_time_ms)
            expected = max(next_sequence(known.last_sequence, 1), 0) if same_epoch and known.sent else 0
            if origin.first_sequence != expected:
                problem = f"producer {known.producer_id}: sequence {origin.first_sequence} comes, {expected} is due"
                raise KafkaError(Error.OUT_OF_ORDER_SEQUENCE_NUMBER, problem)
        if known.transaction_start is not None and not origin.transactional:
            problem = f"producer {known.producer_id} has a transaction open, and the batch is not of it"
            raise KafkaError(Error.INVALID_TXN_STATE, problem)
        return None

    def take(
        self, origin: Origin | None, base_offset: int, last_offset: int, timestamp: int, append_time_ms: int = -1
    ) -> AbortedTransaction | None:
        """Note a batch at its offsets; the transaction that it aborts, if it does."""
        if origin is None:
            return None
        known = self._known.get(origin.producer_id)
        self._before.append((origin.producer_id, known))
        if known is None or origin.epoch > known.epoch:
            start = known.transaction_start if known else None
            coordinator_epoch = known.coordinator_epoch if known else -1
            known = Producer(origin.producer_id, origin.epoch, (), timestamp, coordinator_epoch, start)
        start = known.transaction_start
        if origin.marker is not None:
            epoch = origin.marker.coordinator_epoch
            self._know(replace(known, last_ms=timestamp, coordinator_epoch=epoch, transaction_start=None))
            if start is None or origin.marker.commit:
                return None
            stable = self.first_open
            stable = last_offset + 1 if stable is None else stable
            return AbortedTransaction(origin.producer_id, start, last_offset, stable)
        # Also one without numbers: compaction has to know which batch of a producer is its last.
        added = Sent(origin.first_sequence, origin.last_sequence, base_offset, last_offset, append_time_ms)
        sent = (*known.sent, added)[-WINDOW:]
        start = base_offset if start is None and origin.transactional else start
        self._know(replace(known, sent=sent, last_ms=timestamp, transaction_start=start))
        return None

    def _know(self, producer: Producer) -> None:
        self._known[producer.producer_id] = producer
        if producer.transaction_start is None:
            self._open.pop(producer.producer_id, None)
        else:
            self._open[producer.producer_id] = producer.transaction_start

    def keep(self) -> None:
        """What was taken is in the log."""
        self._before.clear()

    def undo(self) -> None:
        """What was taken since the last `keep` is not in the log."""
        for producer_id, before in reversed(self._before):
            if before is None:
                self._known.pop(producer_id, None)
                self._open.pop(producer_id, None)
            else:
                self._know(before)
        self._before.clear()

    def expire(self, now_ms: int) -> None:
        """Forget producers that have sent nothing for a day, and have no transaction open."""
        for producer in self:
            if producer.transaction_start is None and producer.last_ms < now_ms - EXPIRES_AFTER_MS:
                del self._known[producer.producer_id]

    def snapshot(self) -> messages.ProducerSnapshot:
        """All that is known, as the message a snapshot file holds. Of each producer that is its last batch alone."""
        return messages.ProducerSnapshot(producer_entries=[_entry(producer) for producer in self])

    def restore(self, entries: Iterable[messages.ProducerSnapshot.ProducerEntry]) -> None:
        """Take over what a snapshot holds."""
        self._known, self._open = {}, {}
        for entry in entries:
            self._know(_producer(entry))
        self._before.clear()


def _entry(producer: Producer) -> messages.ProducerSnapshot.ProducerEntry:
    last = producer.sent[-1] if producer.sent else None
    return messages.ProducerSnapshot.ProducerEntry(
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_offset=last.last_offset if last else -1,
        offset_delta=last.last_offset - last.base_offset if last else 0,
        timestamp=producer.last_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_first_offset=-1 if producer.transaction_start is None else producer.transaction_start,
    )


def _producer(entry: messages.ProducerSnapshot.ProducerEntry) -> Producer:
    sent: tuple[Sent, ...] = ()
    if entry.last_offset >= 0:
        # Sequences wrap: the number before 0 is the greatest.
        first = (entry.last_sequence - entry.offset_delta) & 0x7FFFFFFF if entry.last_sequence >= 0 else -1
        sent = (Sent(first, entry.last_sequence, entry.last_offset - entry.offset_delta, entry.last_offset),)
    return Producer(
        entry.producer_id,
        entry.epoch,
        sent,
        entry.timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None,
    )
