"""Transactional ids as records of __transaction_state, in Kafka's own format. Source: TransactionLogValue."""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.coordinator_log import record_of, tombstone_of
from tagwire.broker.transactions.transaction import State, Transaction
from tagwire.errors import UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.internal_topics import TRANSACTIONS, decode_key, decode_value

VERSION = 0
VERSION_OF_TRANSACTION_V2 = 1
"""The first version of TransactionLogValue that says of which version a transaction is, and between which producer ids
it ends (KIP-890)."""

_PREPARE_EPOCH_FENCE = 7


def transaction_record(transaction: Transaction, now_ms: int) -> Record:
    """The record of where a transactional id stands."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    schema = messages.TransactionLogValue.PartitionsSchema
    is_v2 = transaction.transaction_version > 1
    value = messages.TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=None
        if transaction.state is State.EMPTY
        else [schema(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()],
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        client_transaction_version=transaction.transaction_version if is_v2 else 0,
    )
    key = messages.TransactionLogKey(transactional_id=transaction.transactional_id)
    return record_of(key, value, VERSION_OF_TRANSACTION_V2 if is_v2 else VERSION, now_ms)


def no_transaction_record(transactional_id: str, now_ms: int) -> Record:
    """The record that deletes a transactional id."""
    return tombstone_of(messages.TransactionLogKey(transactional_id=transactional_id), now_ms)


def read_record(record: Record) -> tuple[str, Transaction | None] | None:
    """A record's transactional id and where it stands, None for one that is deleted; None for a record of a type that
    newer brokers write.

    Raises:
        DecodeError: the bytes are not such a record; UnsupportedVersionError for a value of a newer version.
    """
    try:
        key = decode_key(TRANSACTIONS, record.key)
    except UnsupportedVersionError:
        return None
    assert isinstance(key, messages.TransactionLogKey)
    decoded = decode_value(TRANSACTIONS, record.key, record.value)
    if decoded is None:
        return key.transactional_id, None
    value = decoded.message
    assert isinstance(value, messages.TransactionLogValue)
    aborts = value.transaction_status == _PREPARE_EPOCH_FENCE
    topics = value.transaction_partitions or ()
    transaction = Transaction(
        key.transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
        State.PREPARE_ABORT if aborts else State(value.transaction_status),
        frozenset(TopicPartition(topic.topic, index) for topic in topics for index in topic.partition_ids),
        value.transaction_start_timestamp_ms,
        transaction_version=max(value.client_transaction_version, 1),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )
    return key.transactional_id, transaction
