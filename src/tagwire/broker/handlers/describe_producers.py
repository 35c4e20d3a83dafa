"""DescribeProducers (key 61): describe the active producers of partitions.

Version 0.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import check_topic_name
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.DescribeProducersRequest
Response = messages.DescribeProducersResponse


@handles(Request, versions="0-0")
async def describe_producers(call: Call[Request]) -> Response:
    named: dict[str, dict[int, None]] = {}
    for topic in call.request.topics:
        named.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return Response(
        topics=[
            Response.TopicResponse(name=name, partitions=[await _describe(call, name, index) for index in indexes])
            for name, indexes in named.items()
        ]
    )


async def _describe(call: Call[Request], topic: str, index: int) -> Response.PartitionResponse:
    partition = call.broker.topics.partition(topic, index)
    try:
        if partition is None:
            check_topic_name(topic)
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_leader(call.broker.node_id)
        producers = await partition.producers()
    except KafkaError as error:
        return Response.PartitionResponse(partition_index=index, error_code=error.code)
    except StorageError:
        return Response.PartitionResponse(partition_index=index, error_code=Error.KAFKA_STORAGE_ERROR)
    return Response.PartitionResponse(
        partition_index=index,
        active_producers=[
            Response.ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=-1 if producer.transaction_start is None else producer.transaction_start,
            )
            for producer in producers
        ],
    )
