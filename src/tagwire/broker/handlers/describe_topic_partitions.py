"""DescribeTopicPartitions (key 75): describe topics, as many partitions at a time as the client asks for.

Version 0. No topics requested means all. Topics come by name; where the response has no room for more partitions, its
cursor says where the next request is to go on. What a partition is like stands as in Metadata, and replicas that may
lead although they are not in sync there are none of. Source: KIP-966; Kafka's DescribeTopicPartitionsRequestHandler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tagwire import messages
from tagwire.broker.handlers.metadata import describe_partition
from tagwire.broker.node import Node
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Topic, check_topic_name
from tagwire.errors import Error, KafkaError

Request = messages.DescribeTopicPartitionsRequest
Response = messages.DescribeTopicPartitionsResponse

MOST_PARTITIONS = 2000
"""The most partitions of a response, whatever the client asks for (`max.request.partition.size.limit`)."""

NAMES_AT_A_TIME = 1000


@handles(Request, versions="0-0")
async def describe_topic_partitions(call: Call[Request]) -> Response:
    request, broker = call.request, call.broker
    requested = {topic.name for topic in request.topics}
    start = request.cursor
    if start is not None and (start.partition_index < 0 or (requested and start.topic_name not in requested)):
        return Response(topics=[_failed(name, Error.INVALID_REQUEST) for name in sorted(requested)])
    names = requested or {topic.name for topic in broker.topics}
    left = sorted(name for name in names if start is None or name >= start.topic_name)
    room = max(1, min(request.response_partition_limit, MOST_PARTITIONS))
    response = Response()
    for number, name in enumerate(left):
        if number % NAMES_AT_A_TIME == 0:
            await asyncio.sleep(0)  # other clients come in between
        first = start.partition_index if start is not None and name == start.topic_name else 0
        if room == 0:
            response.next_cursor = Response.Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.topics.get(name)
        if topic is None:
            if requested:
                response.topics.append(_failed(name, _why_missing(name)))
            continue
        described = _describe(broker, topic, first, room)
        response.topics.append(described)
        room -= len(described.partitions)
        if first + len(described.partitions) < len(topic.partitions):
            after = first + len(described.partitions)
            response.next_cursor = Response.Cursor(topic_name=name, partition_index=after)
            break
    return response


def _describe(broker: Node, topic: Topic, first: int, room: int) -> Response.DescribeTopicPartitionsResponseTopic:
    return Response.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=list(_partitions(broker, topic, first, room)),
    )


def _partitions(
    broker: Node, topic: Topic, first: int, room: int
) -> Iterator[Response.DescribeTopicPartitionsResponsePartition]:
    for partition in topic.partitions[first : first + room]:
        told = describe_partition(broker.image, partition)
        yield Response.DescribeTopicPartitionsResponsePartition(
            error_code=told.error_code,
            partition_index=told.partition_index,
            leader_id=told.leader_id,
            leader_epoch=told.leader_epoch,
            replica_nodes=told.replica_nodes,
            isr_nodes=told.isr_nodes,
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=told.offline_replicas,
        )


def _why_missing(name: str) -> Error:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.error
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def _failed(name: str, error: Error) -> Response.DescribeTopicPartitionsResponseTopic:
    return Response.DescribeTopicPartitionsResponseTopic(error_code=error, name=name)
