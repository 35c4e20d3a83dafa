"""What the response to a Produce says of each batch, and what an error means for it: whether the leader may have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tagwire.client.producing.delivery import Batch
from tagwire.errors import Error, KafkaError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition

# Refusals of a numbered batch because of its numbers.
OUT_OF_STEP: Final = (
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.UNKNOWN_PRODUCER_ID,
    Error.INVALID_PRODUCER_EPOCH,
)

# What a leader only says of a batch that it has not appended. After any other error it may have: the batch was not
# replicated in time, or the leader lost the partition meanwhile.
NOT_APPENDED: Final = frozenset(
    (
        *OUT_OF_STEP,
        Error.CLUSTER_AUTHORIZATION_FAILED,
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


def by_partition(response: Any, names: Mapping[Any, str]) -> dict[TopicPartition, Any]:
    """What the answer says of each partition; None where it says more than one thing."""
    found: dict[TopicPartition, Any] = {}
    for topic in response.responses:
        name = names.get(topic.name) or names.get(topic.topic_id)
        if name is not None:
            for partition in topic.partition_responses:
                at = TopicPartition(name, partition.index)
                found[at] = None if at in found else partition
    return found


def refusal_of(batch: Batch, answer: Any) -> KafkaError:
    """The error that the leader gives for a batch."""
    said = [told(answer.error_message)] if answer.error_message else []
    said += [
        f"record {entry.batch_index}: {told(entry.batch_index_error_message or 'refused')}"
        for entry in answer.record_errors[:1]
    ]
    size = f"{len(batch.data)} bytes"
    return KafkaError(answer.error_code, "; ".join([f"{counted(batch)}, {size}, for {batch.at}", *said]))


def counted(batch: Batch) -> str:
    """How errors call the records of a batch."""
    return "1 record" if batch.count == 1 else f"{batch.count} records"
