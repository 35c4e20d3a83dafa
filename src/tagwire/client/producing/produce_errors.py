"""What an error means to a batch, to its producer and to a transaction: the one table of it.

What a leader responds about a batch (`outcome_of`):

| response | the batch | an idempotent producer | a transaction |
|--------|-----------|------------------------|---------------|
| no error | is delivered | | |
| DUPLICATE_SEQUENCE_NUMBER, where it has a base sequence | is delivered, at an offset that is not told | | |
| MESSAGE_TOO_LARGE, where it may be split | is split into halves, with its sequence numbers | | |
| OUT_OF_ORDER_SEQUENCE_NUMBER, and older ones are incomplete | is sent again as it is, after them | | |
| one of `SEQUENCE_ERRORS` | gets a new base sequence, or is failed (see below) | bumps its epoch | fails it |
| a retriable error, or none in time | is sent again as it is, until `retries` or `timeout` are used up | | |
| another error, or these are used up | is failed | bumps its epoch, if the batch has a base sequence | fails it |

A batch may be split if it has several records, was not encoded by the caller, and cannot have been appended whole. It
gets a new base sequence if it cannot have been appended, and is not in a transaction.
Where an idempotent producer bumps its epoch, other partitions do not wait for it; INVALID_PRODUCER_EPOCH has it ask for
another producer id instead.

A transaction that has failed has to be aborted, and with that the producer gets another epoch. A fatal error
(`is_fatal`) ends the producer as well: another one has to be made. Fatal is of what a leader responds about a batch
`FATAL_OF_PRODUCE`, of what a coordinator responds `FATAL_OF_COORDINATOR`, and an API that the broker does not serve.
Which error is which follows Kafka's Sender and TransactionManager.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from tagwire.client.producing.producer_batch import NO_SEQUENCE, ProducerBatch
from tagwire.errors import Error, KafkaError, TagwireError, UnsupportedVersionError

SEQUENCE_ERRORS: Final = (
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.UNKNOWN_PRODUCER_ID,
    Error.INVALID_PRODUCER_EPOCH,
)
"""Refusals of a batch because of its producer id, epoch or base sequence."""

NOT_APPENDED: Final = frozenset(
    (
        *SEQUENCE_ERRORS,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.CONCURRENT_TRANSACTIONS,
        Error.CORRUPT_MESSAGE,
        Error.INVALID_PRODUCER_ID_MAPPING,
        Error.INVALID_RECORD,
        Error.INVALID_REQUIRED_ACKS,
        Error.INVALID_TIMESTAMP,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.INVALID_TXN_STATE,
        Error.MESSAGE_TOO_LARGE,
        Error.NOT_ENOUGH_REPLICAS,
        Error.POLICY_VIOLATION,
        Error.PRODUCER_FENCED,
        Error.RECORD_LIST_TOO_LARGE,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.UNSUPPORTED_COMPRESSION_TYPE,
        Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Error.UNSUPPORTED_VERSION,
    )
)
"""What a leader only responds about a batch that it has not appended. After any other error it may have: the batch was
not replicated in time, or the leader lost the partition meanwhile."""

FENCED: Final = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)

FATAL_OF_COORDINATOR: Final = (
    *FENCED,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.INVALID_PRODUCER_ID_MAPPING,
    Error.INVALID_TXN_STATE,
    Error.INVALID_TRANSACTION_TIMEOUT,
    Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    Error.UNSUPPORTED_VERSION,
)
"""Refusals of a coordinator after which a producer with a transactional id cannot go on."""

FATAL_OF_PRODUCE: Final = tuple(
    error
    for error in FATAL_OF_COORDINATOR
    if error not in (Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE)  # of a transaction that ended meanwhile
)
"""Refusals of a batch after which it cannot go on."""


class Outcome(Enum):
    """What becomes of a batch that a leader has responded about."""

    DELIVERED = "delivered"
    SPLIT = "split into halves"
    RETRY_IN_ORDER = "sent again as it is, after older ones"
    NEW_SEQUENCE = "sent again with a new base sequence"
    RETRY = "sent again as it is, if that is worth it"


def outcome_of(batch: ProducerBatch, error: Error, *, is_oldest: bool) -> Outcome:
    """What the table says of a batch.

    Args:
        is_oldest: whether everything before the batch is complete.
    """
    has_sequence = batch.base_sequence != NO_SEQUENCE
    if error is Error.NONE or (error is Error.DUPLICATE_SEQUENCE_NUMBER and has_sequence):
        return Outcome.DELIVERED
    if error is Error.MESSAGE_TOO_LARGE and may_be_split(batch):
        return Outcome.SPLIT
    if error in SEQUENCE_ERRORS and has_sequence:
        is_behind = error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_oldest
        return Outcome.RETRY_IN_ORDER if is_behind else Outcome.NEW_SEQUENCE
    return Outcome.RETRY


def may_be_split(batch: ProducerBatch) -> bool:
    """Whether halves of a batch may be sent instead of it."""
    may_be_whole = batch.may_be_appended and batch.base_sequence != NO_SEQUENCE
    return batch.count > 1 and not batch.is_unsplittable and not may_be_whole


def is_fatal(error: TagwireError, fatal: tuple[Error, ...] = FATAL_OF_COORDINATOR) -> bool:
    """Whether an error ends a producer with a transactional id, not only its transaction."""
    return isinstance(error, UnsupportedVersionError) or (isinstance(error, KafkaError) and error.error in fatal)
