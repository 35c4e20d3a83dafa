"""One transactional id, as a state machine of immutable states: no IO, and the time is told to it.

    Empty --a partition or a group is added--> Ongoing --the producer ends it--> PrepareCommit or PrepareAbort
    Prepare... --a marker is in every partition of it--> CompleteCommit or CompleteAbort --as Empty--

From Prepare... on the outcome is decided: it is stored before the first marker is written, and whatever crashes then,
the markers are written. The producer's epoch tells which process owns the id: each that initializes takes a higher
one, and what comes with a lower one is fenced.

With transaction version 2 each transaction has an epoch of its own: whoever ends it gets the next one, and another
producer id where epochs are used up. Source: KIP-98, KIP-360, KIP-890, Kafka's TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition

LAST_EPOCH = 32_766
"""The highest epoch that a producer gets; after it comes another producer id. One more is left for fencing it."""

ID_BYTES = 1000
PARTITION_BYTES = 200
"""About what an id, and a partition of its transaction, take in memory."""


class State(Enum):
    """Where a transaction stands; the numbers are those of its stored form."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def label(self) -> str:
        """The name that ListTransactions and DescribeTransactions tell."""
        return self.name.title().replace("_", "")


_COMPLETED = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id and its current transaction, at one moment: what changes it gives the next state.

    Attributes:
        producer_id, epoch: who may write as it. timeout_ms: how long a transaction may be open.
        updated_ms: when anything changed.
        state: where it stands.
        partitions: what it has written to, by (topic, partition); groups by the partition that holds their offsets.
        started_ms: when the transaction was begun, the last one where that has ended; -1 without one.
        transaction_version: of that transaction, or of the request that has ended it, 1 or 2.
        previous_producer_id: of one that has ended with the last epoch of a producer id: that id; else -1.
        next_producer_id: of one that is ending with it: the id that comes after; else -1.
        renewed: the producer id and epoch that its producer gave up for these; None where nobody did, or this cannot
            matter any more. It is not stored.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    transaction_version: int = 1
    previous_producer_id: int = -1
    next_producer_id: int = -1
    renewed: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return ID_BYTES + len(self.transactional_id) + PARTITION_BYTES * len(self.partitions)

    @property
    def is_ending(self) -> bool:
        """Whether its outcome is decided, and not yet told to every partition."""
        return self.state in _COMPLETED

    @property
    def is_complete(self) -> bool:
        """Whether its outcome is decided, and told to every partition."""
        return self.state in _COMPLETED.values()

    @property
    def commits(self) -> bool:
        """Of one that is ending: whether it commits."""
        return self.state is State.PREPARE_COMMIT

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it has been open for longer than its producer said it would."""
        return self.state is State.ONGOING and now_ms >= self.started_ms + self.timeout_ms

    def check_producer(self, producer_id: int, epoch: int) -> None:
        """Refuse whoever does not own the id, or does not any more.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED.
        """
        if producer_id != self.producer_id:
            problem = f"{self.transactional_id} is of producer {self.producer_id}, not {producer_id}"
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING, problem)
        if epoch != self.epoch:
            problem = f"{self.transactional_id} is at epoch {self.epoch}, not {epoch}"
            raise KafkaError(Error.PRODUCER_FENCED, problem)

    def holds(self, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]) -> bool:
        """Whether it is open, that producer's in that epoch, and was told of all of the partitions."""
        is_theirs = (producer_id, epoch) == (self.producer_id, self.epoch)
        return is_theirs and self.state is State.ONGOING and self.partitions.issuperset(partitions)

    def check_open(self, producer_id: int, epoch: int, partition: TopicPartition) -> None:
        """Refuse records that are not of its open transaction in a partition that was added to it.

        Raises:
            KafkaError: as `check_producer`, with INVALID_PRODUCER_EPOCH for PRODUCER_FENCED; INVALID_TXN_STATE.
        """
        try:
            self.check_producer(producer_id, epoch)
        except KafkaError as refusal:
            raise refused_batch(refusal) from None
        if self.state is not State.ONGOING or partition not in self.partitions:
            problem = f"{partition[0]}-{partition[1]} is not in an open transaction of {self.transactional_id}"
            raise KafkaError(Error.INVALID_TXN_STATE, problem)

    def check_not_ending(self) -> None:
        """Refuse to go on before the last transaction has ended everywhere: CONCURRENT_TRANSACTIONS."""
        if self.is_ending:
            raise KafkaError(Error.CONCURRENT_TRANSACTIONS, f"a transaction of {self.transactional_id} is ending")

    def initialized(
        self, producer_id: int, epoch: int, timeout_ms: int, now_ms: int, renewed: tuple[int, int] | None = None
    ) -> Transaction:
        """A process takes the id over. Its last transaction has ended."""
        return Transaction(self.transactional_id, producer_id, epoch, timeout_ms, now_ms, renewed=renewed)

    def added(self, partitions: Iterable[TopicPartition], now_ms: int, transaction_version: int = 1) -> Transaction:
        """Let the transaction, begun if need be, write to more partitions; itself, if it may already.

        Raises:
            KafkaError: CONCURRENT_TRANSACTIONS.
        """
        self.check_not_ending()
        added = frozenset(partitions)
        if self.state is State.ONGOING:
            if added <= self.partitions:
                return self
            added |= self.partitions
            return replace(self, partitions=added, updated_ms=now_ms, transaction_version=transaction_version)
        return replace(
            self,
            state=State.ONGOING,
            partitions=added,
            started_ms=now_ms,
            updated_ms=now_ms,
            transaction_version=transaction_version,
            previous_producer_id=-1,
            renewed=None,
        )

    def ended(self, *, commit: bool, now_ms: int) -> Transaction:
        """Decide the outcome; itself, if it had been decided so, and carried out, before.

        Raises:
            KafkaError: INVALID_TXN_STATE when there is nothing to end, or it ended otherwise;
                CONCURRENT_TRANSACTIONS.
        """
        if self.commits is commit:  # else it is never going to end so: there is nothing to wait for
            self.check_not_ending()
        if self.state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT):
            return self
        if self.state is not State.ONGOING:
            problem = f"{self.transactional_id} is {self.state.label}: there is no transaction to end"
            raise KafkaError(Error.INVALID_TXN_STATE, problem)
        return self._decided(commit=commit, now_ms=now_ms, transaction_version=1)

    def _decided(self, *, commit: bool, now_ms: int, transaction_version: int) -> Transaction:
        return replace(
            self,
            state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            updated_ms=now_ms,
            transaction_version=transaction_version,
        )

    def ended_with_epoch(self, producer_id: int, epoch: int, *, commit: bool, now_ms: int) -> Transaction:
        """Decide the outcome of a transaction of version 2, whose producer goes on in the next epoch; itself, if that
        has been done before. An abort may be of nothing (KIP-890).

        An epoch past `LAST_EPOCH` is one that nobody gets: `next_producer_id` comes after it.

        Raises:
            KafkaError: as `check_producer` and `ended`.
        """
        is_again = self._was_ended_by(producer_id, epoch)
        if self.is_ending or not is_again:
            is_next_given = self.is_ending and self.transaction_version > 1  # which its producer does not know yet
            replace(self, epoch=self.epoch - is_next_given).check_producer(producer_id, epoch)
        if self.is_ending or is_again:
            outcome = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
            if self.state in (outcome, _COMPLETED[outcome]):
                self.check_not_ending()
                return self
        elif self.state is State.ONGOING or not commit:
            return replace(
                self._decided(commit=commit, now_ms=now_ms, transaction_version=2),
                epoch=epoch + 1,
                started_ms=self.started_ms if self.state is State.ONGOING else now_ms,
                renewed=(producer_id, epoch),
            )
        problem = f"{self.transactional_id} is {self.state.label}: there is no transaction to end so"
        raise KafkaError(Error.INVALID_TXN_STATE, problem)

    def _was_ended_by(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer in that epoch ended the last transaction, and got the epoch that is the id's now: one of
        version 1 is ended in the epoch of its own producer, and the one before it is of somebody who was fenced."""
        if not self.is_complete or self.transaction_version == 1 or self.epoch > LAST_EPOCH:
            return False
        if self.previous_producer_id == producer_id and self.epoch == 0:
            return epoch == LAST_EPOCH
        return (producer_id, epoch + 1) == (self.producer_id, self.epoch)

    def taken_back(self, epoch: int, partitions: Iterable[TopicPartition], now_ms: int) -> Transaction:
        """Abort what partitions hold open in an epoch, up to `epoch`, which its coordinator has forgotten, and with it
        what may be of the same transaction; whoever wrote it is fenced, also where its version is 2: the epoch after
        it may have been given to another."""
        return replace(
            self,
            state=State.PREPARE_ABORT,
            epoch=min(epoch, LAST_EPOCH) + 1,
            partitions=self.partitions | frozenset(partitions),
            started_ms=self.started_ms if self.state is State.ONGOING or self.is_ending else now_ms,
            updated_ms=now_ms,
            transaction_version=1,
            previous_producer_id=-1,
            next_producer_id=-1,
            renewed=None,
        )

    def fenced(self, now_ms: int, renewed: tuple[int, int] | None = None) -> Transaction:
        """Abort the open transaction in the name of a higher epoch, which takes it out of its producer's hands. With
        transaction version 2 it is the one that its producer would have got by aborting it: as long as nobody else has
        it, the producer may."""
        if self.transaction_version > 1:
            renewed = self.producer_id, self.epoch
        return replace(
            self.ended(commit=False, now_ms=now_ms),
            epoch=self.epoch + 1,
            transaction_version=self.transaction_version,
            renewed=renewed,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has been told."""
        done = replace(self, state=_COMPLETED[self.state], partitions=frozenset(), updated_ms=now_ms)
        if self.next_producer_id < 0:
            return done
        return replace(
            done,
            producer_id=self.next_producer_id,
            epoch=0,
            previous_producer_id=self.producer_id,
            next_producer_id=-1,
        )


def refused_batch(refusal: KafkaError) -> KafkaError:
    """What a producer is told of a batch for which a coordinator refuses it: partitions have no PRODUCER_FENCED."""
    fenced = refusal.error is Error.PRODUCER_FENCED
    return KafkaError(Error.INVALID_PRODUCER_EPOCH if fenced else refusal.error, refusal.message)


def told_by_leader(refusal: KafkaError) -> KafkaError:
    """What a leader tells of a batch that a coordinator did not take: that it is not there, or not ready, is no error
    of a leader's."""
    if refusal.error in (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS):
        return KafkaError(Error.NOT_ENOUGH_REPLICAS, refusal.message)
    return refused_batch(refusal)


def told_of_transaction(error: KafkaError, version: int, first_with_abortable: int) -> Error:
    """What a client of `version` is told of what it sent outside of its open transaction: TRANSACTION_ABORTABLE is
    younger than the APIs that respond with it, and INVALID_TXN_STATE ends a producer for good."""
    if error.error is Error.INVALID_TXN_STATE and version >= first_with_abortable:
        return Error.TRANSACTION_ABORTABLE
    return error.error
