"""WriteTxnMarkers (key 27): end a producer's transaction in given partitions, whatever its coordinator knows.

Version 1. Coordinators of other brokers would ask for this, and administrators do, to end a transaction that hangs.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.partitions import TopicPartition

Request = messages.WriteTxnMarkersRequest
Response = messages.WriteTxnMarkersResponse


@handles(Request, versions="1-1")
async def write_txn_markers(call: Call[Request]) -> Response:
    return Response(
        markers=[
            Response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    Response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            Response.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=await _mark(call, marker, topic.name, index)
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in call.request.markers
        ]
    )


async def _mark(call: Call[Request], marker: Request.WritableTxnMarker, topic: str, index: int) -> Error:
    partition = call.broker.topics.partition(topic, index)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return Error.UNKNOWN_SERVER_ERROR  # as Kafka's: no marker can be written that is nobody's
    try:
        partition.leadership.check_leader(call.broker.node_id)
        await call.broker.transactions.mark_for_another(
            TopicPartition(topic, index),
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
    except KafkaError as error:
        return error.error
    except StorageError:
        return Error.KAFKA_STORAGE_ERROR
    return Error.NONE
