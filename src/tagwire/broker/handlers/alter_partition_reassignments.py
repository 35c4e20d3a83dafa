"""AlterPartitionReassignments (key 45): move partitions to other brokers, each with its own outcome.

Versions 0-1. There is one broker: a partition can be assigned to it, where it is already, and to no other. No move is
under way that could be cancelled (NO_REASSIGNMENT_IN_PROGRESS). Source: KIP-455, KIP-860.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.AlterPartitionReassignmentsRequest
Response = messages.AlterPartitionReassignmentsResponse


@handles(Request, versions="0-1")
async def alter_partition_reassignments(call: Call[Request]) -> Response:
    return Response(
        allow_replication_factor_change=call.request.allow_replication_factor_change,
        error_message=None,
        responses=[
            Response.ReassignableTopicResponse(
                name=topic.name, partitions=[_result(call, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in call.request.topics
        ],
    )


def _result(
    call: Call[Request], topic: str, wanted: Request.ReassignablePartition
) -> Response.ReassignablePartitionResponse:
    result = Response.ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
    try:
        _check(call, topic, wanted)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _check(call: Call[Request], topic: str, wanted: Request.ReassignablePartition) -> None:
    where = f"partition {wanted.partition_index} of topic {topic}"
    if call.broker.topics.partition(topic, wanted.partition_index) is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {where}")
    if wanted.replicas is None:
        raise KafkaError(Error.NO_REASSIGNMENT_IN_PROGRESS, f"{where} is not moving")
    if wanted.replicas != [call.broker.node_id]:
        problem = f"{where} is not assigned to broker {call.broker.node_id} alone, and there is no other"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)
