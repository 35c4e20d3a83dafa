"""A partition's batches on their way, and how they are numbered so that a broker stores each once and in order.

A producer with an identity numbers the records of each partition from 0; 0 follows 2147483647. Several batches of a
partition may be in flight at a time. When one of them has to be tried again, what follows is refused by the broker as
out of order: then all of them are waited for, and tried again one after the other, each exactly as it was.

A broker drops a batch that it has already, and knows it by its producer id, epoch and sequence number. So **a batch
that may be stored is never given another number**: it may be stored as soon as all of a request was written and nothing
was answered, or an error that a leader may also send after it has appended (`responses`). It is sent again as it was
until the leader has it, or it is given up.

Where a numbered batch is given up, nobody knows what its partition expects next: the partition starts from 0 under a
new epoch (KIP-360), but only when no batch of it is in flight, and none that is still to be sent may be stored. Those
are tried as they are first, which shows whether there is a gap before them. A leader that refuses the first batch of
all that are undecided because of its number has proved the gap: nothing after it will ever be stored under its number.
Then what may be stored is given up, since it cannot be tried either way, and the rest gets new numbers. Kafka's
TransactionManager gives new numbers to those as well, and so may write them twice.

A broker that does not know a producer takes any number for its first: so the first batch of a partition goes alone,
lest the second be stored where the first is refused, as it may be where a partition has only just been created.
Without an identity at most one batch is in flight, so that none can overtake another.
"""

from __future__ import annotations

from collections import deque

from tagwire import records
from tagwire.client.producing.delivery import NO_SEQUENCE, NOBODY, Batch, Identity
from tagwire.partitions import TopicPartition

LAST_EPOCH = 2**15 - 1


class Lane:
    """One partition. A batch is in `queue` until it is sent, then in `flying` until it is answered.

    Attributes:
        identity: whose numbers the partition counts.
        next_sequence: of the next batch that is numbered.
        is_known: whether the broker has taken a batch under these numbers.
        must_restart: whether the partition has to start from 0 again, once no batch of it may be stored.
        has_gap: whether the broker has refused the number of the first batch that is undecided.
    """

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.queue: deque[Batch] = deque()
        self.flying: list[Batch] = []
        self.identity = NOBODY
        self.next_sequence = 0
        self.is_known = False
        self.must_restart = False
        self.has_gap = False
        self._begun = 0

    @property
    def is_empty(self) -> bool:
        return not self.queue and not self.flying

    def append(self, batch: Batch) -> None:
        """A new batch, after all others."""
        self._begun += 1
        batch.order = (self._begun,)
        self.queue.append(batch)

    def put_back(self, batch: Batch) -> None:
        """A batch that is to be tried again, into its place."""
        index = next((i for i, other in enumerate(self.queue) if other.order >= batch.order), len(self.queue))
        self.queue.insert(index, batch)

    def next_batch(self, now: float, window: int, identity: Identity) -> Batch | None:
        """What may be sent now; it stays in the queue."""
        if not self.queue:
            return None
        head = self.queue[0]
        if head.retry_at > now:
            return None
        is_new = head.sequence == NO_SEQUENCE
        if self.flying:
            in_step = is_new and not self.must_restart and self.identity == identity and self.is_known
            return head if in_step and len(self.flying) < window else None
        must_restart = self.must_restart or (is_new and self.identity != identity)
        if must_restart and not any(batch.may_be_stored for batch in self.queue):
            self._restart(identity)
        return head

    def lost(self) -> list[Batch]:
        """The batches that can be tried neither under their numbers, because of a gap before them, nor under others,
        since they may be stored."""
        if not self.has_gap or self.flying:
            return []
        return [batch for batch in self.queue if batch.may_be_stored]

    def number(self, batch: Batch, *, transactional: bool) -> None:
        """Gives the batch the next numbers, unless it has some or nobody counts."""
        if self.identity != NOBODY and batch.sequence == NO_SEQUENCE:
            batch.number(self.identity, self.next_sequence, transactional=transactional)
            self.next_sequence = records.next_sequence(self.next_sequence, batch.count)

    def sent(self, batch: Batch) -> None:
        """The first of the queue is on its way."""
        self.queue.popleft()
        self.flying.append(batch)

    def acknowledged(self, batch: Batch) -> None:
        """The broker has it."""
        self.is_known |= batch.identity == self.identity

    def is_first(self, batch: Batch) -> bool:
        """Whether everything before this batch is decided: stored, or given up."""
        return not any(other.order < batch.order for other in (*self.queue, *self.flying))

    def resume(self, identity: Identity, sequence: int) -> None:
        """Goes on where somebody else left off."""
        self.identity, self.next_sequence = identity, sequence
        self.is_known = sequence != 0

    def _restart(self, identity: Identity) -> None:
        self.resume(identity, 0)
        self.must_restart = self.has_gap = False
        for batch in self.queue:
            batch.forget_number()


def next_epoch(identity: Identity) -> Identity:
    """The same producer under a new epoch; `NOBODY` when there is no epoch left, or no producer."""
    if identity == NOBODY or identity.epoch >= LAST_EPOCH:
        return NOBODY
    return Identity(identity.producer_id, identity.epoch + 1)
