"""DescribeLogDirs (key 35): describe the log directory: the size of each partition.

Versions 1-4; from version 4 also how large the disk is, and how much of it is free. There is one directory. Partitions
that do not exist, or that another broker holds, are left out; one that is offline stands apart, under its own directory
with KAFKA_STORAGE_ERROR, as Kafka tells of a directory that is. Source: KIP-113, KIP-827.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tagwire import messages
from tagwire.broker.partition import Partition
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeLogDirsRequest
Response = messages.DescribeLogDirsResponse


@handles(Request, versions="1-4")
async def describe_log_dirs(call: Call[Request]) -> Response:
    return await asyncio.get_running_loop().run_in_executor(call.broker.disk, _respond, call)


def _respond(call: Call[Request]) -> Response:
    path = call.broker.data_path
    try:
        total, usable = call.broker.files.space(path)
    except OSError:
        return Response(
            results=[Response.DescribeLogDirsResult(error_code=Error.KAFKA_STORAGE_ERROR, log_dir=str(path))]
        )
    requested = list(_requested(call))
    whole = Response.DescribeLogDirsResult(
        log_dir=str(path),
        topics=_topics(partition for partition in requested if not partition.log.is_offline),
        total_bytes=total,
        usable_bytes=usable,
    )
    offline = [
        Response.DescribeLogDirsResult(
            error_code=Error.KAFKA_STORAGE_ERROR, log_dir=str(partition.log.directory), topics=_topics([partition])
        )
        for partition in requested
        if partition.log.is_offline
    ]
    return Response(results=[whole, *offline])


def _topics(partitions: Iterable[Partition]) -> list[Response.DescribeLogDirsTopic]:
    topics: dict[str, list[Response.DescribeLogDirsPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(
            Response.DescribeLogDirsPartition(
                partition_index=partition.index, partition_size=partition.log.size_bytes, offset_lag=0
            )
        )
    return [Response.DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()]


def _requested(call: Call[Request]) -> Iterable[Partition]:
    topics = call.broker.topics
    if call.request.topics is None:
        found: Iterable[Partition | None] = topics.partitions()
    else:
        found = (topics.partition(*where) for where in sorted(_named(call.request)))
    return (one for one in found if one is not None and call.broker.node_id in one.leadership.replicas)


def _named(request: Request) -> set[tuple[str, int]]:
    return {(topic.topic, index) for topic in request.topics or () for index in topic.partitions}
