"""OffsetForLeaderEpoch (key 23): find where a leader epoch ends, so that a reader can see whether it has read what is
not there any more.

Versions 2-4. The response is the newest epoch that is not newer than the requested one, and the offset after its last;
both are -1 for an epoch that is yet to come, and for -1, which stands for none. Source: KIP-320;
docs/log-files.md#leader-epochs.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.OffsetForLeaderEpochRequest
Response = messages.OffsetForLeaderEpochResponse

UNKNOWN = (-1, -1)


@handles(Request, versions="2-4")
async def offset_for_leader_epoch(call: Call[Request]) -> Response:
    return Response(
        topics=[
            Response.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_result(call, topic.topic, requested) for requested in topic.partitions]
            )
            for topic in call.request.topics
        ]
    )


def _result(call: Call[Request], topic: str, requested: Request.OffsetForLeaderPartition) -> Response.EpochEndOffset:
    result = Response.EpochEndOffset(partition=requested.partition)
    try:
        partition = call.broker.topics.partition(topic, requested.partition)
        if partition is None:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_leader(call.broker.node_id, requested.current_leader_epoch)
        result.leader_epoch, result.end_offset = partition.log.end_of_epoch(requested.leader_epoch) or UNKNOWN
    except KafkaError as error:
        result.error_code = error.code
    except StorageError:
        result.error_code = Error.KAFKA_STORAGE_ERROR
    return result
