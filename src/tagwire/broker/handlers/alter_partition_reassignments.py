"""AlterPartitionReassignments (key 45): move partitions to other brokers, each with its own outcome.

Versions 0-1; from version 1 a client may forbid other numbers of replicas than there are. All brokers of a process have
the same records, so a move is over when the response comes, and none is under way that could be cancelled
(NO_REASSIGNMENT_IN_PROGRESS). Source: KIP-455, KIP-860.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.AlterPartitionReassignmentsRequest
Response = messages.AlterPartitionReassignmentsResponse


@handles(Request, versions="0-1")
async def alter_partition_reassignments(call: Call[Request]) -> Response:
    return Response(
        allow_replication_factor_change=call.request.allow_replication_factor_change,
        error_message=None,
        responses=[
            Response.ReassignableTopicResponse(
                name=topic.name, partitions=[await _result(call, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in call.request.topics
        ],
    )


async def _result(
    call: Call[Request], topic: str, wanted: Request.ReassignablePartition
) -> Response.ReassignablePartitionResponse:
    result = Response.ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
    try:
        await _reassign(call, topic, wanted)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


async def _reassign(call: Call[Request], topic: str, wanted: Request.ReassignablePartition) -> None:
    where = f"partition {wanted.partition_index} of topic {topic}"
    partition = call.broker.topics.partition(topic, wanted.partition_index)
    if partition is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {where}")
    if wanted.replicas is None:
        raise KafkaError(Error.NO_REASSIGNMENT_IN_PROGRESS, f"{where} is not moving")
    as_many = not call.request.allow_replication_factor_change
    try:
        await call.broker.controller.reassign(partition, wanted.replicas, as_many=as_many)
    except StorageError as error:
        raise KafkaError(Error.KAFKA_STORAGE_ERROR, str(error)) from error
