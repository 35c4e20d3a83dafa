"""Metadata (key 3): describe brokers and topics.

Versions 0-12. Brokers are told at the addresses of the listener that the client came in by: this one at the address it
reached. No topics requested means all (an
empty list in version 0, null from 1). A missing topic is created when the client and the broker both allow it (before
version 4 every client does). From version 12 topics can be requested by their ids, and then those alone are told that
have one; an id before, or no name, has all of the request refused, INVALID_REQUEST. Source: KIP-516; Kafka's KafkaApis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tagwire import messages
from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.leadership import NO_LEADER
from tagwire.broker.node import Node
from tagwire.broker.partition import Partition
from tagwire.broker.quotas.throttles import Mutations
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Topic, asked_for, check_topic_name, has_early_ids
from tagwire.errors import Error, KafkaError
from tagwire.records.internal_topics import CLUSTER_METADATA
from tagwire.rpc.version_gates import METADATA_NULL_IS_ALL_TOPICS

Request = messages.MetadataRequest
Response = messages.MetadataResponse

NAMES_AT_A_TIME = 1000


@handles(Request, versions="0-12")
async def metadata(call: Call[Request]) -> Response:
    request, broker = call.request, call.broker
    if request.topics and has_early_ids(request.topics, call.version):
        return _refused(request.topics, Error.INVALID_REQUEST)
    create: Mutations | None = None
    if request.topics is None or (call.version < METADATA_NULL_IS_ALL_TOPICS and not request.topics):
        topics = [_describe(broker, topic) for topic in broker.topics]
    else:
        if broker.settings.auto_create_topics and request.allow_auto_topic_creation:
            create = broker.throttles.mutations(call, None)
        topics = await _find_all(broker, asked_for(request.topics), create)
    return Response(
        brokers=[
            Response.MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.image.endpoints(call.session.listener, call.session.host)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.image.controller_id,
        topics=topics,
        throttle_time_ms=create.throttle_time_ms if create is not None else 0,
    )


def _refused(topics: Iterable[Request.MetadataRequestTopic], error: Error) -> Response:
    """The response that tells the same of each topic, and of no broker."""
    return Response(
        topics=[
            Response.MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
            for topic in topics
        ]
    )


def _once(requested: Iterable[Request.MetadataRequestTopic]) -> Iterable[Request.MetadataRequestTopic]:
    return {(topic.name, topic.topic_id): topic for topic in requested}.values()


async def _find_all(
    broker: Node, requested: Iterable[Request.MetadataRequestTopic], create: Mutations | None
) -> list[Response.MetadataResponseTopic]:
    """`create`: by what topics are counted that are created; None where none may be."""
    found = []
    for number, topic in enumerate(_once(requested)):
        found.append(await _find(broker, topic, create))
        # When there is no room for one more, there is none for thousands more.
        create = create if found[-1].error_code != Error.POLICY_VIOLATION else None
        if number % NAMES_AT_A_TIME == 0:
            await asyncio.sleep(0)  # other clients come in between
    return found


async def _find(
    broker: Node, requested: Request.MetadataRequestTopic, create: Mutations | None
) -> Response.MetadataResponseTopic:
    if requested.name is None:
        found = broker.topics.by_id(requested.topic_id)
        if found is None:
            return Response.MetadataResponseTopic(
                error_code=Error.UNKNOWN_TOPIC_ID, name=None, topic_id=requested.topic_id
            )
        return _describe(broker, found)
    found = broker.topics.get(requested.name)
    try:
        if found is None:
            found = await _create(broker, requested.name, create)
    except KafkaError as error:
        return Response.MetadataResponseTopic(error_code=error.code, name=requested.name)
    return _describe(broker, found)


async def _create(broker: Node, name: str, create: Mutations | None) -> Topic:
    check_topic_name(name)
    if create is None or name == CLUSTER_METADATA:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        return await broker.creations.run_concurrently(_created(broker, name, create))
    except KafkaError as error:
        found = broker.topics.get(name)
        if error.error is Error.TOPIC_ALREADY_EXISTS and found is not None:  # by another client, meanwhile
            return found
        raise


async def _created(broker: Node, name: str, create: Mutations) -> Topic:
    with broker.room_for(topics=1, partitions=broker.settings.num_partitions):
        create.count(broker.settings.num_partitions)
        return await broker.topics.create(name, broker.settings.num_partitions, {})


def _describe(broker: Node, topic: Topic) -> Response.MetadataResponseTopic:
    return Response.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[describe_partition(broker.image, partition) for partition in topic.partitions],
    )


def describe_partition(image: ClusterImage, partition: Partition) -> Response.MetadataResponsePartition:
    """What clients are told of a partition, by whichever API."""
    offline, leadership = partition.log.is_offline, partition.leadership
    leader_id = NO_LEADER if offline else leadership.leader
    return Response.MetadataResponsePartition(
        error_code=Error.LEADER_NOT_AVAILABLE if leader_id == NO_LEADER else Error.NONE,
        partition_index=partition.index,
        leader_id=leader_id,
        leader_epoch=leadership.epoch,
        replica_nodes=list(leadership.replicas),
        isr_nodes=[] if offline else list(leadership.isr),
        offline_replicas=[node_id for node_id in leadership.replicas if offline or node_id not in image.live],
    )
