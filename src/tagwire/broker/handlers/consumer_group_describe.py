"""ConsumerGroupDescribe (key 69): describe groups of KIP-848: epochs, members, what they have and are to have.

Versions 0-1; from version 1 it is told whether a member speaks the classic protocol (KIP-1099). A group that does not
exist, or is a classic one, is told apart by GROUP_ID_NOT_FOUND. What the client may do to a group
is told by broker/authorization.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import ManyKeys
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import NO_PARTITIONS, ConsumerMember, Partitions, by_topic
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.ConsumerGroupDescribeRequest
Response = messages.ConsumerGroupDescribeResponse

CLASSIC, CONSUMER = 0, 1
"""How a member's protocol is told."""


def _refused(group_id: str, error: Error) -> Response.DescribedGroup:
    return Response.DescribedGroup(group_id=group_id, error_code=error)


@handles(Request, versions="0-1", coordinated=ManyKeys(GROUP, "group_ids", str, "groups", _refused))
async def consumer_group_describe(call: Call[Request]) -> Response:
    return Response(groups=[_describe(call, group_id) for group_id in dict.fromkeys(call.request.group_ids)])


def _describe(call: Call[Request], group_id: str) -> Response.DescribedGroup:
    if not call.broker.settings.has_consumer_groups:
        return Response.DescribedGroup(group_id=group_id, error_code=Error.UNSUPPORTED_VERSION)
    group = call.broker.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        problem = f"there is no group {group_id!r}" if group is None else f"group {group_id!r} is a classic one"
        return Response.DescribedGroup(
            group_id=group_id,
            error_code=Error.GROUP_ID_NOT_FOUND if group_id else Error.INVALID_GROUP_ID,
            error_message=problem if group_id else "a group has a name",
        )
    return Response.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch or 0,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=[_member(call, group, member) for member in group.members.values()],
    )


def _member(call: Call[Request], group: ConsumerGroup, member: ConsumerMember) -> Response.Member:
    said = member.subscription
    return Response.Member(
        member_id=member.member_id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        member_epoch=member.current.epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.topics),
        subscribed_topic_regex=said.regex or "",
        assignment=_assignment(call, _held(call, member)),
        target_assignment=_assignment(call, group.targets.get(member.member_id, NO_PARTITIONS)),
        member_type=CLASSIC if member.is_classic else CONSUMER,
    )


def _held(call: Call[Request], member: ConsumerMember) -> Partitions:
    """What a member has; from Kafka 4.3 on, what it is to give up as well until it has."""
    tells_all = call.broker.groups.settings.takes_older_epochs
    return member.current.assigned | member.current.revoking if tells_all else member.current.assigned


def _assignment(call: Call[Request], partitions: Partitions) -> Response.Assignment:
    topics = [(call.broker.topics.by_id(topic_id), topic_id, indexes) for topic_id, indexes in by_topic(partitions)]
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=indexes)
            for topic, topic_id, indexes in topics
            if topic is not None
        ]
    )
