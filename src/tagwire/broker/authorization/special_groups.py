"""What APIs of groups and transactions ask for that take steps of their own. Source: Kafka's KafkaApis."""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.authorization import told_operations
from tagwire.broker.authorization.access import REFUSED, Access, AnyCall, Handle
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.authorization.refusals import (
    NO_OFFSET,
    coordinated,
    described_consumer_group,
    described_group,
    described_transaction,
)
from tagwire.broker.authorization.rule import Each, itself
from tagwire.broker.cluster_image import GROUP as OF_GROUPS
from tagwire.broker.cluster_image import TRANSACTION as OF_TRANSACTIONS
from tagwire.broker.session import AnyResponse
from tagwire.errors import Error
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS
from tagwire.rpc.version_gates import FIND_COORDINATOR_KEYS, OFFSET_FETCH_ERROR, OFFSET_FETCH_GROUPS

TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
FORBIDDEN = Error.TOPIC_AUTHORIZATION_FAILED
INTERNAL = frozenset({OFFSETS, TRANSACTIONS})

_COORDINATES = {OF_GROUPS: GROUP, OF_TRANSACTIONS: TRANSACTIONAL_ID}
"""What a key is the name of, by the type of key that is looked for."""


async def find_coordinator(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each group or transactional id."""
    request, kind = call.request, messages.FindCoordinatorResponse
    about = _COORDINATES.get(request.key_type)
    if about is None:
        return await handle(call)
    error = REFUSED[about]
    if call.version < FIND_COORDINATOR_KEYS:
        if access.may(Operation.DESCRIBE, about, request.key):
            return await handle(call)
        return kind(error_code=error, error_message=None, node_id=NO_OFFSET, host="", port=NO_OFFSET)
    decided = [(key, access.may(Operation.DESCRIBE, about, key)) for key in request.coordinator_keys]
    request.coordinator_keys = [key for key, allowed in decided if allowed]
    refused = [key for key, allowed in decided if not allowed]
    response: Any = await handle(call)
    response.coordinators.extend(
        kind.Coordinator(key=key, error_code=error, error_message=None, node_id=NO_OFFSET, host="", port=NO_OFFSET)
        for key in refused
    )
    return response  # type: ignore[no-any-return]


_GROUPS = Each(Operation.DESCRIBE, GROUP, "groups", itself, "groups", described_group)


async def describe_groups(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each group."""
    response: Any = await _GROUPS.respond(call, access, handle)
    told_operations.by_groups(call, response, access)
    return response  # type: ignore[no-any-return]


_CONSUMER_GROUPS = Each(Operation.DESCRIBE, GROUP, "group_ids", itself, "groups", described_consumer_group)


async def consumer_group_describe(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each group, and of every topic that a member of it has or is to have. That there are no such groups
    is told to everybody."""
    if not call.broker.settings.has_consumer_groups:
        return await handle(call)
    response: Any = await _CONSUMER_GROUPS.respond(call, access, handle)
    told_operations.by_groups(call, response, access)
    response.groups = [_shown(access, group) for group in response.groups]
    return response  # type: ignore[no-any-return]


def _shown(access: Access, group: Any) -> object:
    assigned = (which for member in group.members for which in (member.assignment, member.target_assignment))
    topics = {each.topic_name for which in assigned for each in which.topic_partitions}
    if all(access.may(Operation.DESCRIBE, TOPIC, topic) for topic in topics):
        return group
    return messages.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        error_code=FORBIDDEN,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
    )


async def consumer_group_heartbeat(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """READ of the group, DESCRIBE of every topic that the member subscribes to by name. Of those that its regular
    expression stands for, the group leaves out what it may not describe. That there are no such groups is told to
    everybody: who has no rights is to go on as a classic member, too."""
    if not call.broker.settings.has_consumer_groups:
        return await handle(call)
    request = call.request
    if not access.may(Operation.READ, GROUP, request.group_id):
        return coordinated(call, REFUSED[GROUP])
    if not all(access.may(Operation.DESCRIBE, TOPIC, topic) for topic in set(request.subscribed_topic_names or ())):
        return coordinated(call, FORBIDDEN)
    return await handle(call)


async def offset_fetch(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each group, and of each topic; without naming topics, of those that it may describe."""
    if call.version < OFFSET_FETCH_GROUPS:
        return await _offsets_of_one(call, access, handle)
    request, kind = call.request, messages.OffsetFetchResponse
    may = {name: access.may(Operation.DESCRIBE, GROUP, name) for name in {group.group_id for group in request.groups}}
    refused = [group.group_id for group in request.groups if not may[group.group_id]]
    request.groups = [group for group in request.groups if may[group.group_id]]
    hidden: dict[int, list[Any]] = {}
    for group in request.groups:
        if group.topics is not None:
            decided = [(topic, _may_describe(call, access, topic)) for topic in group.topics]
            group.topics = [topic for topic, allowed in decided if allowed]
            hidden[id(group)] = [topic for topic, allowed in decided if not allowed]
    response: Any = await handle(call)
    # A group may be named twice: the request has those by now that were answered, in the order of the answers.
    for group, result in zip(request.groups, response.groups):
        if group.topics is None:
            result.topics = [topic for topic in result.topics if _may_describe(call, access, topic)]
        elif result.error_code == Error.NONE:
            result.topics = [*result.topics, *(_hidden_topic(topic, topic.topic_id) for topic in hidden[id(group)])]
    response.groups.extend(kind.OffsetFetchResponseGroup(group_id=name, error_code=REFUSED[GROUP]) for name in refused)
    return response  # type: ignore[no-any-return]


def _may_describe(call: AnyCall, access: Access, topic: Any) -> bool:
    """Whether a topic's offsets may be seen; those of an id that is none are told to be none."""
    name = topic.name
    if not name:
        found = call.broker.topics.by_id(topic.topic_id)
        name = found.name if found is not None else None
    return name is None or access.may(Operation.DESCRIBE, TOPIC, name)


def _hidden_topic(topic: Any, topic_id: Any) -> object:
    kind = messages.OffsetFetchResponse
    return kind.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic_id,
        partitions=[
            kind.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=FORBIDDEN
            )
            for index in topic.partition_indexes
        ],
    )


async def _offsets_of_one(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    request, kind = call.request, messages.OffsetFetchResponse
    if not access.may(Operation.DESCRIBE, GROUP, request.group_id):
        return _one_refused(call, REFUSED[GROUP])
    if request.topics is None:
        response: Any = await handle(call)
        response.topics = [t for t in response.topics if access.may(Operation.DESCRIBE, TOPIC, t.name)]
        return response  # type: ignore[no-any-return]
    decided = [(topic, access.may(Operation.DESCRIBE, TOPIC, topic.name)) for topic in request.topics]
    request.topics = [topic for topic, allowed in decided if allowed]
    hidden = [topic for topic, allowed in decided if not allowed]
    response = await handle(call)
    response.topics.extend(_one_refused_topic(kind, topic, FORBIDDEN) for topic in hidden)
    return response  # type: ignore[no-any-return]


def _one_refused(call: AnyCall, error: Error) -> AnyResponse:
    kind = messages.OffsetFetchResponse
    if call.version >= OFFSET_FETCH_ERROR:
        return kind(error_code=error)
    return kind(topics=[_one_refused_topic(kind, topic, error) for topic in call.request.topics or ()])


def _one_refused_topic(kind: Any, topic: Any, error: Error) -> Any:
    return kind.OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            kind.OffsetFetchResponsePartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error
            )
            for index in topic.partition_indexes
        ],
    )


async def init_producer_id(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """WRITE of the transactional id; without one IDEMPOTENT_WRITE of the cluster, or WRITE of any topic."""
    name = call.request.transactional_id
    if name is not None:
        if not access.may(Operation.WRITE, TRANSACTIONAL_ID, name):
            return coordinated(call, REFUSED[TRANSACTIONAL_ID])
    elif not access.may_to_cluster(Operation.IDEMPOTENT_WRITE) and not access.may_to_any(Operation.WRITE, TOPIC):
        return coordinated(call, Error.CLUSTER_AUTHORIZATION_FAILED)
    return await handle(call)


async def add_partitions_to_txn(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """WRITE of the transactional id and of every topic; if one is refused, nothing is attempted."""
    request, kind = call.request, messages.AddPartitionsToTxnResponse
    if not access.may(Operation.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return coordinated(call, REFUSED[TRANSACTIONAL_ID])
    wanted = request.v3_and_below_topics
    allowed = {t.name for t in wanted if t.name not in INTERNAL and access.may(Operation.WRITE, TOPIC, t.name)}
    if all(topic.name in allowed for topic in wanted):
        return await handle(call)

    def error_of(name: str, index: int) -> Error:
        if name not in allowed:
            return FORBIDDEN
        known = call.broker.topics.partition(name, index) is not None
        return Error.OPERATION_NOT_ATTEMPTED if known else Error.UNKNOWN_TOPIC_OR_PARTITION

    return kind(
        results_by_topic_v3_and_below=[
            kind.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    kind.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=error_of(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in wanted
        ]
    )


_TRANSACTIONS = Each(
    Operation.DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", itself, "transaction_states", described_transaction
)


async def describe_transactions(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each transactional id; topics that may not be described are left out."""
    response: Any = await _TRANSACTIONS.respond(call, access, handle)
    for state in response.transaction_states:
        state.topics = [topic for topic in state.topics if access.may(Operation.DESCRIBE, TOPIC, topic.topic)]
    return response  # type: ignore[no-any-return]
