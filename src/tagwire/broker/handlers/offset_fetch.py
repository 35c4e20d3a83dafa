"""OffsetFetch (key 9): fetch the committed offsets of groups.

Versions 1-10; from version 2 null topics mean all that the group has, from version 8 several groups come at once, from
version 9 a member of KIP-848 may say who it is, from version 10 topics are named by their ids alone. Where
nothing is committed the offset is -1. With `require_stable`, from version 7, a partition that an open transaction
would commit gets UNSTABLE_OFFSET_COMMIT. A group is answered as often as it is named, but where that asks for all that
it has once more: a few bytes would ask for megabytes, again and again. For the same reason a request is refused with
INVALID_REQUEST that names partitions again whose metadata is together more than `MOST_AGAIN`, where Kafka has no
bound. Source: KIP-447, KIP-709; Kafka's KafkaApis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import ByVersion, ManyKeys, OneKey
from tagwire.broker.groups.offsets import GroupOffsets
from tagwire.broker.handlers.offset_commit import name_of
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_ERROR, OFFSET_FETCH_GROUPS, OFFSET_FETCH_TOPIC_IDS

Request = messages.OffsetFetchRequest
Response = messages.OffsetFetchResponse

MOST_AGAIN: Final = 1 << 20
"""Characters of metadata that a response has of partitions that were named before."""

Topics = TypeVar("Topics")
Partitions = TypeVar("Partitions", Response.OffsetFetchResponsePartition, Response.OffsetFetchResponsePartitions)


def _refused(call: Call[Request], error: Error) -> Response:
    if call.version >= OFFSET_FETCH_ERROR:
        return Response(error_code=error)
    return Response(
        topics=[
            Response.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    Response.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in call.request.topics or ()
        ]
    )


def _group_refused(group_id: str, error: Error) -> Response.OffsetFetchResponseGroup:
    return Response.OffsetFetchResponseGroup(group_id=group_id, error_code=error)


ROUTED = ByVersion(
    OneKey(GROUP, "group_id", _refused),
    OFFSET_FETCH_GROUPS,
    ManyKeys(GROUP, "groups", lambda group: str(group.group_id), "groups", _group_refused),
)


class _Told:
    """The metadata that a response has."""

    def __init__(self) -> None:
        self._partitions: set[tuple[str, TopicPartition]] = set()
        self._again = 0

    def add(self, group_id: str, partition: TopicPartition, metadata: str) -> None:
        """Raises KafkaError where too much is told again."""
        if (group_id, partition) in self._partitions:
            self._again += len(metadata)
            if self._again > MOST_AGAIN:
                raise KafkaError(Error.INVALID_REQUEST, f"{partition} of {group_id} is asked for again and again")
        elif metadata:
            self._partitions.add((group_id, partition))


@handles(Request, versions="1-10", coordinated=ROUTED)
async def offset_fetch(call: Call[Request]) -> Response:
    try:
        return _response(call)
    except KafkaError as error:
        if call.version < OFFSET_FETCH_GROUPS:
            return _refused(call, error.error)
        return Response(groups=[_group_refused(group.group_id, error.error) for group in call.request.groups])


def _response(call: Call[Request]) -> Response:
    request, told = call.request, _Told()
    if call.version >= OFFSET_FETCH_GROUPS:
        request.groups = _all_offsets_once(request.groups)
        return Response(groups=[_group(call, group, told) for group in request.groups])
    topics = _topics(
        call,
        told,
        request.group_id,
        None if request.topics is None else [(topic.name, topic.partition_indexes) for topic in request.topics],
        lambda name, found: Response.OffsetFetchResponseTopic(name=name, partitions=found),
        Response.OffsetFetchResponsePartition,
    )
    return Response(topics=topics)


def _all_offsets_once(groups: Iterable[Request.OffsetFetchRequestGroup]) -> list[Request.OffsetFetchRequestGroup]:
    whole: set[str] = set()
    kept = []
    for group in groups:
        if group.topics is not None:
            kept.append(group)
        elif group.group_id not in whole:
            whole.add(group.group_id)
            kept.append(group)
    return kept


def _group(
    call: Call[Request], group: Request.OffsetFetchRequestGroup, told: _Told
) -> Response.OffsetFetchResponseGroup:
    result = Response.OffsetFetchResponseGroup(group_id=group.group_id)
    try:
        call.broker.groups.check_fetch(group.group_id, group.member_id, group.member_epoch)
    except KafkaError as error:
        result.error_code = error.code
        return result
    by_id = call.version >= OFFSET_FETCH_TOPIC_IDS
    requested: list[tuple[str, list[int]]] | None = None
    unknown: list[Response.OffsetFetchResponseTopics] = []
    if group.topics is not None:
        named = [
            (name_of(call.broker, topic.topic_id) if by_id else topic.name, topic.partition_indexes)
            for topic in group.topics
        ]
        requested = [(name, indexes) for name, indexes in named if name or not by_id]
        unknown = [_unknown(topic) for topic, (name, _) in zip(group.topics, named) if by_id and not name]
    found = _topics(
        call,
        told,
        group.group_id,
        requested,
        lambda name, found: Response.OffsetFetchResponseTopics(name=name, partitions=found),
        Response.OffsetFetchResponsePartitions,
    )
    if by_id:
        for listed in found:
            topic_now = call.broker.topics.get(listed.name)
            if topic_now is not None:
                listed.topic_id = topic_now.topic_id
        found = [listed for listed in found if listed.topic_id.int]
    result.topics = [*found, *unknown]
    return result


def _unknown(topic: Request.OffsetFetchRequestTopics) -> Response.OffsetFetchResponseTopics:
    """What is told of a topic whose id is none."""
    return Response.OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            Response.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=Error.UNKNOWN_TOPIC_ID
            )
            for index in topic.partition_indexes
        ],
    )


def _topics(
    call: Call[Request],
    told: _Told,
    group_id: str,
    requested: list[tuple[str, list[int]]] | None,
    topic_of: Callable[[str, list[Partitions]], Topics],
    partition_type: type[Partitions],
) -> list[Topics]:
    """What a group has committed, of the requested partitions, each as often as it is named; None is all."""
    offsets = call.broker.groups.offsets(group_id)
    if requested is None:
        held: dict[str, list[int]] = {}
        for (topic, index), _ in offsets:
            held.setdefault(topic, []).append(index)
        requested = list(held.items())
    require_stable = call.request.require_stable

    def result(partition: TopicPartition) -> Partitions:
        found = _result(offsets, partition, require_stable, partition_type)
        told.add(group_id, partition, found.metadata or "")
        return found

    return [topic_of(name, [result(TopicPartition(name, index)) for index in indexes]) for name, indexes in requested]


def _result(
    offsets: GroupOffsets, partition: TopicPartition, require_stable: bool, partition_type: type[Partitions]
) -> Partitions:
    result = partition_type(partition_index=partition[1], committed_offset=-1, metadata="")
    found = offsets.get(partition)
    if require_stable and offsets.is_unstable(partition):
        result.error_code = Error.UNSTABLE_OFFSET_COMMIT
    elif found is not None:
        result.committed_offset, result.metadata = found.offset, found.metadata
        result.committed_leader_epoch = found.leader_epoch
    return result
