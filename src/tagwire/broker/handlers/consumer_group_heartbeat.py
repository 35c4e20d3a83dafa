"""ConsumerGroupHeartbeat (key 68): a member of a group of KIP-848 joins, says that it is there and what has changed, or
leaves; it is told what has changed for it.

Versions 0-1; from version 1 the member makes its id itself (KIP-1082) and may subscribe by a regular expression. What
is said is checked as Kafka's GroupMetadataManager does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from tagwire import messages
from tagwire.broker.authorization.access import Access
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.groups.assignors import ASSIGNORS
from tagwire.broker.groups.consumer_member import JOINING, LEAVING, LEAVING_STATIC, by_topic
from tagwire.broker.groups.consumer_steps import Heartbeat, HeartbeatResult, every_topic
from tagwire.broker.groups.stored_changes import partitions_of
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import CONSUMER_GROUP_HEARTBEAT_MEMBER_ID

Request = messages.ConsumerGroupHeartbeatRequest
Response = messages.ConsumerGroupHeartbeatResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-1", coordinated=OneKey(GROUP, "group_id", _refused))
async def consumer_group_heartbeat(call: Call[Request]) -> Response:
    request, groups = call.request, call.broker.groups
    try:
        if not call.broker.settings.has_consumer_groups:
            raise KafkaError(Error.UNSUPPORTED_VERSION, "groups of KIP-848 are not switched on")
        _check(request, call.version)
        beat = Heartbeat(
            request.member_id or str(uuid4()),
            request.member_epoch,
            request.instance_id,
            request.rack_id,
            request.rebalance_timeout_ms,
            None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
            request.subscribed_topic_regex,
            request.server_assignor,
            None if request.topic_partitions is None else partitions_of(request.topic_partitions),
            call.client_id,
            f"/{call.session.client_host}",
            _sees(call),
            0 if call.broker.authorizer is None else call.broker.authorizer.version,
        )
        result = await groups.consumer_heartbeat(request.group_id, beat)
    except KafkaError as error:
        return Response(error_code=error.code, error_message=error.message)
    return Response(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=groups.settings.heartbeat_interval_ms if result.epoch >= 0 else 0,  # who left sends none
        assignment=_assignment(result),
    )


def _sees(call: Call[Request]) -> Callable[[str], bool]:
    """Whether the member may describe a topic."""
    authorizer = call.broker.authorizer
    if authorizer is None:
        return every_topic
    return partial(Access(authorizer, call.session).may, Operation.DESCRIBE, ResourceType.TOPIC)


def _assignment(result: HeartbeatResult) -> Response.Assignment | None:
    if result.assigned is None:
        return None
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(result.assigned)
        ]
    )


def _check(request: Request, version: int) -> None:
    """Refuse what no member may say: KafkaError INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    must_have_id = (
        version >= CONSUMER_GROUP_HEARTBEAT_MEMBER_ID or epoch > JOINING or epoch in (LEAVING, LEAVING_STATIC)
    )
    _refuse_if(must_have_id and not request.member_id.strip(), "MemberId can't be empty")
    _refuse_if(not request.group_id.strip(), "GroupId can't be empty")
    _refuse_if(request.instance_id is not None and not request.instance_id.strip(), "InstanceId can't be empty")
    _refuse_if(request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty")
    if epoch == JOINING:
        _refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided when joining")
        _refuse_if(
            request.topic_partitions is None or bool(request.topic_partitions),
            "TopicPartitions must be empty when joining",
        )
        _refuse_if(
            request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
            "SubscribedTopicNames or SubscribedTopicRegex must be provided when joining",
        )
    _refuse_if(epoch == LEAVING_STATIC and request.instance_id is None, "InstanceId can't be null")
    _refuse_if(epoch < LEAVING_STATIC, f"MemberEpoch {epoch} is invalid")
    _refuse_if(request.rebalance_timeout_ms < -1, f"RebalanceTimeoutMs {request.rebalance_timeout_ms} is negative")
    assignor = request.server_assignor
    if assignor is not None and assignor not in ASSIGNORS:
        problem = f"there is no assignor {assignor[:100]!r}; there are {', '.join(ASSIGNORS)}"
        raise KafkaError(Error.UNSUPPORTED_ASSIGNOR, problem)


def _refuse_if(wrong: bool, problem: str) -> None:
    if wrong:
        raise KafkaError(Error.INVALID_REQUEST, problem)
