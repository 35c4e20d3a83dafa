"""ListOffsets (key 2): find offsets by time, and the two ends of a partition.

Versions 1-7. A timestamp asks for the first record that is not older. -1 asks for the end, -2 for the start, -3 (from
version 7) for the record with the greatest timestamp. Where nothing is found, timestamp and offset are -1. For readers
of committed records, from version 2, the log ends where the oldest open transaction begins. From version 4 each offset
is told with its leader epoch, the end with the present one. A partition that is named twice is refused. Replicas, which
give their id, see all that there is; who debugs (-2) is served by any replica, too. Source: KIP-79, KIP-320, KIP-734;
Kafka's ReplicaManager.
"""

from __future__ import annotations

import asyncio

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.storage.log import PartitionLog
from tagwire.errors import CorruptRecordError, Error, KafkaError, StorageError
from tagwire.partitions import EARLIEST, LATEST, MAX_TIMESTAMP
from tagwire.rpc.version_gates import LIST_OFFSETS_LEADER_EPOCH, LIST_OFFSETS_MAX_TIMESTAMP

Request = messages.ListOffsetsRequest
Response = messages.ListOffsetsResponse

READ_COMMITTED = 1

CONSUMER, DEBUGGING = -1, -2
"""Who asks and is no replica, by the replica id that it gives. Source: Kafka's ListOffsetsRequest."""

NOT_FOUND = (-1, -1)


@handles(Request, versions="1-7")
async def list_offsets(call: Call[Request]) -> Response:
    named: dict[str, dict[int, list[Request.ListOffsetsPartition]]] = {}
    for topic in call.request.topics:
        partitions = named.setdefault(topic.name, {})
        for requested in topic.partitions:
            partitions.setdefault(requested.partition_index, []).append(requested)
    return Response(
        topics=[
            Response.ListOffsetsTopicResponse(
                name=name, partitions=[await _searched(call, name, *each) for each in partitions.values()]
            )
            for name, partitions in named.items()
        ]
    )


async def _searched(
    call: Call[Request], topic: str, requested: Request.ListOffsetsPartition, *again: Request.ListOffsetsPartition
) -> Response.ListOffsetsPartitionResponse:
    if again:
        index, error = requested.partition_index, Error.INVALID_REQUEST
        return Response.ListOffsetsPartitionResponse(partition_index=index, error_code=error)
    if requested.timestamp in (LATEST, EARLIEST):
        return _result(call, topic, requested)
    # In a thread: a search by time reads files. One at a time: a thousand searches hold up nobody else's.
    return await asyncio.get_running_loop().run_in_executor(call.broker.disk, _result, call, topic, requested)


def _result(
    call: Call[Request], topic: str, requested: Request.ListOffsetsPartition
) -> Response.ListOffsetsPartitionResponse:
    result = Response.ListOffsetsPartitionResponse(partition_index=requested.partition_index)
    try:
        _check_special(requested.timestamp, call.version)
        partition = call.broker.topics.partition(topic, requested.partition_index)
        if partition is None:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        if call.request.replica_id == DEBUGGING:
            partition.check_replica(call.broker.node_id, requested.current_leader_epoch)
        else:
            partition.check_leader(call.broker.node_id, requested.current_leader_epoch)
        result.timestamp, result.offset = _find(call, partition.log, requested.timestamp)
        if call.version >= LIST_OFFSETS_LEADER_EPOCH and result.offset >= 0:
            result.leader_epoch = _epoch_of(partition.log, result.offset, requested.timestamp)
    except KafkaError as error:
        result.error_code = error.code
    except StorageError:
        result.error_code = Error.KAFKA_STORAGE_ERROR
    except CorruptRecordError:
        result.error_code = Error.CORRUPT_MESSAGE
    return result


def _check_special(timestamp: int, version: int) -> None:
    """Refuse what stands for nothing in a version, whether the partition exists or not."""
    known = timestamp in (LATEST, EARLIEST) or (timestamp == MAX_TIMESTAMP and version >= LIST_OFFSETS_MAX_TIMESTAMP)
    if timestamp < 0 and not known:
        raise KafkaError(
            Error.UNSUPPORTED_VERSION, f"timestamp {timestamp} asks for nothing known in version {version}"
        )


def _find(call: Call[Request], log: PartitionLog, timestamp: int) -> tuple[int, int]:
    request = call.request
    is_committed = request.isolation_level == READ_COMMITTED and request.replica_id == CONSUMER
    end = log.stable_offset if is_committed else log.end_offset
    if timestamp == LATEST:
        return -1, end
    if timestamp == EARLIEST:
        return -1, log.start_offset
    if timestamp == MAX_TIMESTAMP:
        return _visible(log.newest(), end)
    return _visible(log.offset_for_timestamp(timestamp), end)


def _epoch_of(log: PartitionLog, offset: int, timestamp: int) -> int:
    """The leader epoch of a record that was found; at the end there is none yet, but the leader's."""
    return log.leader_epoch if timestamp == LATEST else log.epochs.at(offset)


def _visible(found: tuple[int, int] | None, end: int) -> tuple[int, int]:
    return NOT_FOUND if found is None or found[1] >= end else found
