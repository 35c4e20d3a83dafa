"""Responses that tests have brokers give to producers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tagwire import messages
from tagwire.errors import Error


def responding(response: Any) -> Callable[[Any], Any]:
    """An action that gives this response."""
    return lambda message: response


def produced(message: Any, **fields: Any) -> Any:
    """The response to a Produce that says the same of every partition."""
    kind = messages.ProduceResponse
    return kind(
        responses=[
            kind.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    kind.PartitionProduceResponse(index=partition.index, **fields) for partition in topic.partition_data
                ],
            )
            for topic in message.topic_data
        ]
    )


def refusing(error: Error, said: str | None = None) -> Callable[[Any], Any]:
    """An action that refuses every partition of a Produce."""
    return lambda message: produced(message, error_code=error, base_offset=-1, error_message=said)


TRANSACTIONS = {10: (0, 6), 22: (0, 5), 24: (0, 3), 25: (0, 4), 26: (0, 5), 28: (0, 5)}


def coordinated_by(node: int, port: int) -> Callable[[Any], Any]:
    """Responds to FindCoordinator: always this broker."""
    kind = messages.FindCoordinatorResponse

    def response(message: Any) -> Any:
        if not message.coordinator_keys:
            return kind(node_id=node, host="127.0.0.1", port=port)
        keys = message.coordinator_keys
        return kind(coordinators=[kind.Coordinator(key=key, node_id=node, host="127.0.0.1", port=port) for key in keys])

    return response


def added(message: Any) -> Any:
    """Answers AddPartitionsToTxn: every partition is."""
    kind = messages.AddPartitionsToTxnResponse
    return kind(
        results_by_topic_v3_and_below=[
            kind.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    kind.AddPartitionsToTxnPartitionResult(partition_index=index) for index in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
    )


def committed(message: Any) -> Any:
    """Answers TxnOffsetCommit: every offset is."""
    kind = messages.TxnOffsetCommitResponse
    return kind(
        topics=[
            kind.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    kind.TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )
