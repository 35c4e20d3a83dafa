"""AddPartitionsToTxn (key 24): let a transaction write to partitions; the first begins it.

Versions 0-3; the later ones are for brokers among each other. Either all partitions are added or none: where one does
not exist, or is of a topic of the broker's own, the others get OPERATION_NOT_ATTEMPTED. Before version 2,
PRODUCER_FENCED is told as INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.coordinated import OneKey
from tagwire.broker.handlers.init_producer_id import fencing_error
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import INTERNAL
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import ADD_PARTITIONS_TO_TXN_PRODUCER_FENCED

Request = messages.AddPartitionsToTxnRequest
Response = messages.AddPartitionsToTxnResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return _response(call, dict.fromkeys(_partitions(call), error))


@handles(Request, versions="0-3", coordinated=OneKey(TRANSACTION, "v3_and_below_transactional_id", _refused))
async def add_partitions_to_txn(call: Call[Request]) -> Response:
    return _response(call, await _outcomes(call, _partitions(call)))


def _partitions(call: Call[Request]) -> list[TopicPartition]:
    topics = call.request.v3_and_below_topics
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _response(call: Call[Request], outcomes: dict[TopicPartition, Error]) -> Response:
    return Response(
        results_by_topic_v3_and_below=[
            Response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    Response.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=outcomes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in call.request.v3_and_below_topics
        ]
    )


async def _outcomes(call: Call[Request], partitions: list[TopicPartition]) -> dict[TopicPartition, Error]:
    request = call.request
    topics = call.broker.topics
    refused = {where: Error.UNKNOWN_TOPIC_OR_PARTITION for where in partitions if topics.partition(*where) is None}
    # A marker in the coordinator's own log would be one of what it has stored.
    refused |= {where: Error.TOPIC_AUTHORIZATION_FAILED for where in partitions if where.topic in INTERNAL}
    if refused:
        return {**dict.fromkeys(partitions, Error.OPERATION_NOT_ATTEMPTED), **refused}
    try:
        await call.broker.transactions.add(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            partitions,
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, fencing_error(error, call.version, ADD_PARTITIONS_TO_TXN_PRODUCER_FENCED))
    return dict.fromkeys(partitions, Error.NONE)
