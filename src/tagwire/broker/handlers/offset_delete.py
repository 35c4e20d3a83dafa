"""OffsetDelete (key 47): delete committed offsets of a group.

Version 0. A partition of a topic that the group's members are subscribed to is refused (GROUP_SUBSCRIBED_TO_TOPIC);
of members whose subscription cannot be read, every topic is taken to be subscribed.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.groups.group import Group
from tagwire.broker.registry import Call, handles
from tagwire.errors import DecodeError, Error, KafkaError, UnsupportedVersionError
from tagwire.partitions import TopicPartition

Request = messages.OffsetDeleteRequest
Response = messages.OffsetDeleteResponse

CONSUMER = "consumer"
NEWEST_SUBSCRIPTION = 3


@handles(Request, versions="0-0")
async def offset_delete(call: Call[Request]) -> Response:
    request, groups = call.request, call.broker.groups
    group = groups.get(request.group_id)
    if group is None:
        return Response(error_code=Error.GROUP_ID_NOT_FOUND if request.group_id else Error.INVALID_GROUP_ID)
    subscribed = _subscribed(group)
    if subscribed is None:
        return Response(error_code=Error.NON_EMPTY_GROUP)
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


def _outcome(call: Call[Request], topic: str, partition: int, subscribed: set[str]) -> Error:
    if call.broker.topics.partition(topic, partition) is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return Error.GROUP_SUBSCRIBED_TO_TOPIC if topic in subscribed else Error.NONE


def _subscribed(group: Group) -> set[str] | None:
    """The topics that members are subscribed to; None where that cannot be known."""
    if group.members and group.protocol_type != CONSUMER:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        for _, data in member.protocols:
            try:
                version = min(int.from_bytes(data[:2], "big", signed=True), NEWEST_SUBSCRIPTION)
                topics.update(messages.ConsumerProtocolSubscription.decode(data[2:], version, lenient=True).topics)
            except (DecodeError, UnsupportedVersionError):
                return None
    return topics
