"""What the response to a Produce says of each batch."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from tagwire import messages
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.errors import KafkaError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition

PartitionResponse = messages.ProduceResponse.PartitionProduceResponse


def by_partition(
    response: messages.ProduceResponse, topics: Mapping[str | UUID, str]
) -> dict[TopicPartition, PartitionResponse | None]:
    """What the response says of each partition; None where it says more than one thing.

    Args:
        topics: the topics' names by what the response calls them, a name or an id.
    """
    found: dict[TopicPartition, PartitionResponse | None] = {}
    for topic in response.responses:
        name = topics.get(topic.name) or topics.get(topic.topic_id)
        if name is not None:
            for partition in topic.partition_responses:
                tp = TopicPartition(name, partition.index)
                found[tp] = None if tp in found else partition
    return found


def refusal_of(batch: ProducerBatch, response: PartitionResponse) -> KafkaError:
    """The error that the leader gives for a batch."""
    said = [told(response.error_message)] if response.error_message else []
    said += [
        f"record {entry.batch_index}: {told(entry.batch_index_error_message or 'refused')}"
        for entry in response.record_errors[:1]
    ]
    size = f"{len(batch.data)} bytes"
    return KafkaError(response.error_code, "; ".join([f"{counted(batch)}, {size}, for {batch.topic_partition}", *said]))


def counted(batch: ProducerBatch) -> str:
    """How errors call the records of a batch."""
    return "1 record" if batch.count == 1 else f"{batch.count} records"
