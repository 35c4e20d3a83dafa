"""What Metadata, Produce, CreateTopics, DeleteTopics, DescribeTopicPartitions and the configurations ask for, whose
responses tell more, or less, than an error for each topic. Source: Kafka's KafkaApis and ControllerApis."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

from tagwire import messages
from tagwire.broker.authorization import told_operations
from tagwire.broker.authorization.access import REFUSED, Access, AnyCall, Handle
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.authorization.refusals import NO_OFFSET, create_topic, produce_topic
from tagwire.broker.authorization.rule import Each, by
from tagwire.broker.batch_checks import has_transactional
from tagwire.broker.session import AnyResponse, HangUp
from tagwire.broker.topic import asked_for, has_early_ids
from tagwire.errors import Error
from tagwire.records.internal_topics import CLUSTER_METADATA
from tagwire.rpc.version_gates import DELETE_TOPICS_IDS, METADATA_NULL_IS_ALL_TOPICS

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
NO_ID: Final = UUID(int=0)
FORBIDDEN: Final = Error.TOPIC_AUTHORIZATION_FAILED

_WRITTEN = Each(Operation.WRITE, TOPIC, "topic_data", by("name"), "responses", produce_topic)


async def produce(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """WRITE of each topic; of the transactional id, where batches say that they are of a transaction."""
    request = call.request
    if has_transactional(request):
        name = request.transactional_id
        if name is None or not access.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            error = REFUSED[ResourceType.TRANSACTIONAL_ID]
            return _acknowledged(call, [produce_topic(call, topic, error) for topic in request.topic_data])
    refused = _WRITTEN.take_refused(call, access)
    if not request.topic_data:
        return _acknowledged(call, refused)
    response = await handle(call)
    if refused:
        _acknowledged(call, refused)
        if response is not None:
            response.responses.extend(refused)  # type: ignore[attr-defined]
    return response


def _acknowledged(call: AnyCall, refused: list[Any]) -> AnyResponse:
    """The response to what is refused. Without acknowledgements the end of the connection is all that can tell it."""
    if call.request.acks == 0:
        raise HangUp("Produce with acks=0 is not authorized")
    return messages.ProduceResponse(responses=refused)


async def metadata(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each topic, CREATE of what is missing; a list of all leaves out what may not be described."""
    request = call.request
    is_all = request.topics is None or (call.version < METADATA_NULL_IS_ALL_TOPICS and not request.topics)
    refused = [] if is_all else _take_undescribed(call, access)
    response: Any = await _metadata_of_the_rest(call, handle, has_none=bool(refused) and not request.topics)
    if is_all:
        response.topics = [topic for topic in response.topics if access.may(Operation.DESCRIBE, TOPIC, topic.name)]
    told_operations.by_metadata(call, response, access)
    response.topics.extend(refused)
    return response  # type: ignore[no-any-return]


async def _metadata_of_the_rest(call: AnyCall, handle: Handle, *, has_none: bool) -> AnyResponse:
    """The response without refused topics; none at all would be all before version 1."""
    if has_none and call.version < METADATA_NULL_IS_ALL_TOPICS:
        response: Any = await handle(call)
        response.topics = []
        return response  # type: ignore[no-any-return]
    return await handle(call)


def _take_undescribed(call: AnyCall, access: Access) -> list[Any]:
    request, topics = call.request, call.broker.topics
    if has_early_ids(request.topics, call.version):
        return []  # the handler refuses all of them
    creates = request.allow_auto_topic_creation and call.broker.settings.auto_create_topics
    may_create = not creates or access.may_to_cluster(Operation.CREATE)
    described, refused = [], {}
    for wanted in asked_for(request.topics):
        by_id = wanted.name is None
        found = topics.by_id(wanted.topic_id) if by_id else None
        name = found.name if found is not None else wanted.name
        if name is None:  # an id of no topic: the handler says so
            described.append(wanted)
        elif not access.may(Operation.DESCRIBE, TOPIC, name):
            refused[name] = messages.MetadataResponse.MetadataResponseTopic(
                error_code=FORBIDDEN, name=None if by_id else name, topic_id=wanted.topic_id if by_id else NO_ID
            )
        elif not may_create and topics.get(name) is None and not access.may(Operation.CREATE, TOPIC, name):
            refused[name] = messages.MetadataResponse.MetadataResponseTopic(error_code=FORBIDDEN, name=name)
        else:
            described.append(wanted)
    request.topics = described
    return list(refused.values())


def _created(call: AnyCall, topic: Any) -> str | None:
    """A topic to create; None for the cluster's metadata, which the handler refuses to everybody."""
    return None if topic.name == CLUSTER_METADATA else str(topic.name)


_CREATED = Each(Operation.CREATE, TOPIC, "topics", _created, "topics", create_topic, unless=Operation.CREATE, once=True)


async def create_topics(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """CREATE of the cluster or of each topic; DESCRIBE_CONFIGS of a topic to be told of its configuration."""
    response: Any = await _CREATED.respond(call, access, handle)
    for result in response.topics:
        if result.error_code == Error.NONE and not access.may(Operation.DESCRIBE_CONFIGS, TOPIC, result.name):
            result.topic_config_error_code = FORBIDDEN
            result.num_partitions = result.replication_factor = NO_OFFSET
            result.configs = None
    return response  # type: ignore[no-any-return]


async def delete_topics(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DELETE of the cluster or of each topic. Whether a topic exists is told to whoever may DESCRIBE it alone."""
    request, topics = call.request, call.broker.topics
    if access.may_to_cluster(Operation.DELETE):
        return await handle(call)
    by_id = call.version >= DELETE_TOPICS_IDS
    given = (
        [(each.name, each.topic_id) for each in request.topics] if by_id else [(n, NO_ID) for n in request.topic_names]
    )
    times = Counter(given)
    refused, kept = [], []
    for place, (name, topic_id) in enumerate(given):
        found = topics.by_id(topic_id) if name is None else topics.get(name)
        about = found.name if found is not None else name
        if about is None or times[name, topic_id] > 1 or (name is not None and topic_id != NO_ID):
            kept.append(place)  # there is nothing to be told of, or it is wrong whoever asks
        elif access.may(Operation.DELETE, TOPIC, about) or (
            found is None and access.may(Operation.DESCRIBE, TOPIC, about)
        ):
            kept.append(place)
        else:
            may_know = access.may(Operation.DESCRIBE, TOPIC, about)
            refused.append(
                messages.DeleteTopicsResponse.DeletableTopicResult(
                    name=about if may_know else name,
                    topic_id=found.topic_id if may_know and found is not None else topic_id,
                    error_code=FORBIDDEN,
                )
            )
    listed = "topics" if by_id else "topic_names"
    setattr(request, listed, [getattr(request, listed)[place] for place in kept])
    response: Any = await handle(call)
    response.responses.extend(refused)
    return response  # type: ignore[no-any-return]


async def describe_topic_partitions(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """DESCRIBE of each topic; a list of all leaves out what may not be described."""
    request, kind = call.request, messages.DescribeTopicPartitionsResponse
    start = request.cursor
    named = {topic.name for topic in request.topics}
    if start is not None and (start.partition_index < 0 or (named and start.topic_name not in named)):
        return await handle(call)  # which refuses it
    left = [
        name
        for name in named or (topic.name for topic in call.broker.topics)
        if start is None or name >= start.topic_name
    ]
    shown = {name for name in left if access.may(Operation.DESCRIBE, TOPIC, name)}
    if start is not None and start.topic_name not in shown:
        request.cursor = None  # begin with the one that follows
    request.topics = [messages.DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in shown]
    response: Any = await handle(call) if shown else kind()
    told_operations.by_describe_topic_partitions(call, response, access)
    if named:
        refused = [name for name in left if name not in shown]
        response.topics.extend(
            kind.DescribeTopicPartitionsResponseTopic(error_code=FORBIDDEN, name=name) for name in refused
        )
    return response  # type: ignore[no-any-return]


async def describe_cluster(call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
    """Nothing, but DESCRIBE of the cluster to be told what may be done to it."""
    response: Any = await handle(call)
    told_operations.by_describe_cluster(call, response, access)
    return response  # type: ignore[no-any-return]
