"""DeleteRecords (key 21): delete the records of partitions before an offset, each with its own outcome.

Versions 0-2. -1 stands for the end of what can be read. The response tells the first offset that is left; it is on
the disk by then, and records before it are never read again. A topic that is only compacted is refused
(POLICY_VIOLATION): its records go by their keys. Source: KIP-107; Kafka's ReplicaManager.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.DeleteRecordsRequest
Response = messages.DeleteRecordsResponse

NO_OFFSET = -1


@handles(Request, versions="0-2")
async def delete_records(call: Call[Request]) -> Response:
    return Response(
        topics=[
            Response.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[await _result(call, topic.name, requested) for requested in topic.partitions],
            )
            for topic in call.request.topics
        ]
    )


async def _result(
    call: Call[Request], topic: str, requested: Request.DeleteRecordsPartition
) -> Response.DeleteRecordsPartitionResult:
    result = Response.DeleteRecordsPartitionResult(partition_index=requested.partition_index, low_watermark=NO_OFFSET)
    try:
        result.low_watermark = await _delete(call, topic, requested)
    except KafkaError as error:
        result.error_code = error.code
    except OffsetOutOfRangeError:
        result.error_code = Error.OFFSET_OUT_OF_RANGE
    except StorageError:
        result.error_code = Error.KAFKA_STORAGE_ERROR
    return result


async def _delete(call: Call[Request], name: str, requested: Request.DeleteRecordsPartition) -> int:
    topic = call.broker.topics.get(name)
    partition = call.broker.topics.partition(name, requested.partition_index)
    if topic is None or partition is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        raise KafkaError(Error.INVALID_TOPIC_EXCEPTION)
    partition.check_leader(call.broker.node_id)
    if not topic.config.deletes:
        raise KafkaError(Error.POLICY_VIOLATION)
    return await partition.delete_records(requested.offset)
