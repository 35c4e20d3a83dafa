"""The sequence numbers of a partition: which base sequence a batch gets, and when counting starts again from 0.

An idempotent producer counts the records of each partition from 0; 0 follows 2147483647. The rules, all of which are
in this file:

- A batch gets its base sequence when it is first sent: `next_sequence`, which then moves on by its records.
- It keeps producer id, epoch and base sequence however often it is sent again. A broker drops a batch that it has, and
  knows it by these, so **a batch that may have been appended is never given others**: it may have been as soon as all
  of a request was written and no response came, or an error that a leader may also send after it has appended
  (`produce_errors.NOT_APPENDED`). It is sent again as it was until the leader has it, or it is failed.
- The halves of a batch that is split share its sequence numbers.
- Where a batch with a sequence number is failed, nobody knows what the partition expects next: it starts from 0 under
  another epoch (KIP-360), once no batch of it is in flight and none in its queue may have been appended. Those are sent
  as they are first, which shows whether there is a gap before them.
- A leader that refuses the base sequence of the oldest incomplete batch has proved the gap: nothing after it is ever
  appended under its number. What may have been appended is failed then, since it can be sent neither way, and the rest
  gets new numbers. Kafka's TransactionManager gives new numbers to those as well, and so may write them twice.
- Until a broker has taken one, one batch is in flight: a broker that does not know a producer takes any number for its
  first, and the second batch must not be appended where the first is refused, as in a partition just created. It is so
  again where a leader does not know the topic: it may have been deleted and made anew, with logs that know nobody.
"""

from __future__ import annotations

from collections.abc import Collection

from tagwire import records
from tagwire.client.producing.producer_batch import NO_SEQUENCE, ProducerBatch
from tagwire.client.producing.producer_id import NO_PRODUCER_ID, ProducerIdAndEpoch


class SequenceNumbers:
    """Of one partition. For the sending thread.

    Attributes:
        producer: the producer id and epoch that the numbers count for.
        next_sequence: the base sequence of the next batch.
        is_acked: whether the broker has appended a batch under this producer id and epoch, and may know it still.
        must_reset: whether the partition has to start from 0, as soon as that is allowed.
        has_gap: whether the broker has refused the base sequence of the oldest incomplete batch.
    """

    def __init__(self) -> None:
        self.producer = NO_PRODUCER_ID
        self.next_sequence = 0
        self.is_acked = False
        self.must_reset = False
        self.has_gap = False

    def assign(self, batch: ProducerBatch, *, transactional: bool) -> None:
        """Gives the batch its base sequence, unless it has one, or the producer is not idempotent."""
        if self.producer != NO_PRODUCER_ID and batch.base_sequence == NO_SEQUENCE:
            batch.set_producer_state(self.producer, self.next_sequence, transactional=transactional)
            self.next_sequence = records.next_sequence(self.next_sequence, batch.count)

    def acked(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        self.is_acked |= batch.producer == self.producer

    def lost(self) -> None:
        """The topic is not known where the partition was: it may be another one by now."""
        self.is_acked = False

    def resume(self, producer: ProducerIdAndEpoch, sequence: int) -> None:
        """Goes on where another producer left off."""
        self.producer, self.next_sequence = producer, sequence
        self.is_acked = sequence != 0

    def maybe_reset(self, producer: ProducerIdAndEpoch, queued: Collection[ProducerBatch]) -> None:
        """Starts from 0 for `producer`, the current one, where that is needed and allowed. Nothing may be in flight.

        Args:
            queued: the partition's batches, the oldest first.
        """
        oldest = next(iter(queued))
        is_other = oldest.base_sequence == NO_SEQUENCE and self.producer != producer
        if (self.must_reset or is_other) and not any(batch.may_be_appended for batch in queued):
            self.resume(producer, 0)
            self.must_reset = self.has_gap = False
            for batch in queued:
                batch.reset_producer_state()

    def allows_another(self, batch: ProducerBatch, producer: ProducerIdAndEpoch) -> bool:
        """Whether a batch may be sent behind others that are in flight."""
        is_new = batch.base_sequence == NO_SEQUENCE
        return is_new and not self.must_reset and self.producer == producer and self.is_acked


def split_sequences(batch: ProducerBatch, parts: Collection[ProducerBatch], *, transactional: bool) -> None:
    """Gives the parts of a batch the sequence numbers that it has."""
    if batch.base_sequence == NO_SEQUENCE:
        return
    sequence = batch.base_sequence
    for part in parts:
        part.set_producer_state(batch.producer, sequence, transactional=transactional)
        sequence = records.next_sequence(sequence, part.count)
