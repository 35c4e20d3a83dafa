"""AlterReplicaLogDirs (key 34): move partitions to another directory of this broker, each with its own outcome.

Versions 1-2. There is one directory, in which they are; any other is refused (LOG_DIR_NOT_FOUND), and so is a partition
that is offline, or that other brokers hold. Source: KIP-113; Kafka's ReplicaManager.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.AlterReplicaLogDirsRequest
Response = messages.AlterReplicaLogDirsResponse


@handles(Request, versions="1-2")
async def alter_replica_log_dirs(call: Call[Request]) -> Response:
    results: dict[str, list[Response.AlterReplicaLogDirPartitionResult]] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                Response.AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=_outcome(call, directory.path, topic.name, index)
                )
                for index in topic.partitions
            )
    return Response(
        results=[
            Response.AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _outcome(call: Call[Request], path: str, topic: str, index: int) -> Error:
    if path != str(call.broker.data_path):
        return Error.LOG_DIR_NOT_FOUND
    partition = call.broker.topics.partition(topic, index)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if call.broker.node_id not in partition.leadership.replicas:
        return Error.REPLICA_NOT_AVAILABLE
    return Error.KAFKA_STORAGE_ERROR if partition.log.is_offline else Error.NONE
