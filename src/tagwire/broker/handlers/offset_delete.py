"""OffsetDelete (key 47): delete committed offsets of a group.

Version 0. A partition of a topic that the group's members are subscribed to is refused (GROUP_SUBSCRIBED_TO_TOPIC);
of consumers whose subscription cannot be read, every topic is taken to be subscribed, and a group of others is refused
whole (NON_EMPTY_GROUP). Source: Kafka's ClassicGroup.isSubscribedToTopic.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.groups import embedded_protocol
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.subscriptions import subscribed_topics
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition

Request = messages.OffsetDeleteRequest
Response = messages.OffsetDeleteResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-0", coordinated=OneKey(GROUP, "group_id", _refused))
async def offset_delete(call: Call[Request]) -> Response:
    request, groups = call.request, call.broker.groups
    group = groups.get(request.group_id)
    if group is None:
        return Response(error_code=Error.GROUP_ID_NOT_FOUND if request.group_id else Error.INVALID_GROUP_ID)
    if isinstance(group, ClassicGroup) and group.members and group.protocol_type != embedded_protocol.TYPE:
        return Response(error_code=Error.NON_EMPTY_GROUP)
    subscribed = subscribed_topics(group)
    outcomes = {
        TopicPartition(topic.name, requested.partition_index): _outcome(
            call, topic.name, requested.partition_index, subscribed
        )
        for topic in request.topics
        for requested in topic.partitions
    }
    gone = [where for where, error in outcomes.items() if error is Error.NONE]
    try:
        await groups.delete_offsets(request.group_id, gone)
    except KafkaError as error:
        return Response(error_code=error.code)
    return Response(
        topics=[
            Response.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    Response.OffsetDeleteResponsePartition(
                        partition_index=requested.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, requested.partition_index)],
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _outcome(call: Call[Request], topic: str, partition: int, subscribed: set[str] | None) -> Error:
    if call.broker.topics.partition(topic, partition) is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    is_subscribed = subscribed is None or topic in subscribed
    return Error.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else Error.NONE
