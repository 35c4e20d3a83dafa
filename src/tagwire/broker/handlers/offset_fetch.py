"""OffsetFetch (key 9): fetch the committed offsets of groups.

Versions 1-9; from version 2 null topics mean all that the group has, from version 8 several groups come at once. Where
nothing is committed the offset is -1. With `require_stable`, from version 7, a partition that an open transaction
would commit gets UNSTABLE_OFFSET_COMMIT. Source: KIP-447, KIP-709.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tagwire import messages
from tagwire.broker.groups.offsets import GroupOffsets
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_GROUPS

Request = messages.OffsetFetchRequest
Response = messages.OffsetFetchResponse


Topics = TypeVar("Topics")
Partitions = TypeVar("Partitions", Response.OffsetFetchResponsePartition, Response.OffsetFetchResponsePartitions)


@handles(Request, versions="1-9")
async def offset_fetch(call: Call[Request]) -> Response:
    request = call.request
    if call.version >= OFFSET_FETCH_GROUPS:
        return Response(
            groups=[
                Response.OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=_topics(
                        call,
                        group.group_id,
                        None
                        if group.topics is None
                        else {topic.name: topic.partition_indexes for topic in group.topics},
                        lambda name, found: Response.OffsetFetchResponseTopics(name=name, partitions=found),
                        Response.OffsetFetchResponsePartitions,
                    ),
                )
                for group in {group.group_id: group for group in request.groups}.values()
            ]
        )
    topics = _topics(
        call,
        request.group_id,
        None if request.topics is None else {topic.name: topic.partition_indexes for topic in request.topics},
        lambda name, found: Response.OffsetFetchResponseTopic(name=name, partitions=found),
        Response.OffsetFetchResponsePartition,
    )
    return Response(topics=topics)


def _topics(
    call: Call[Request],
    group_id: str,
    requested: dict[str, list[int]] | None,
    topic_of: Callable[[str, list[Partitions]], Topics],
    partition_type: type[Partitions],
) -> list[Topics]:
    """What a group has committed, of the requested partitions; None is all."""
    offsets = call.broker.groups.offsets(group_id)
    if requested is None:
        requested = {}
        for (topic, index), _ in offsets:
            requested.setdefault(topic, []).append(index)
    require_stable = call.request.require_stable
    return [
        topic_of(
            name, [_result(offsets, TopicPartition(name, index), require_stable, partition_type) for index in indexes]
        )
        for name, indexes in requested.items()
    ]


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
