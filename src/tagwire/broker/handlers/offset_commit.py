"""OffsetCommit (key 8): commit offsets of a group.

Versions 2-10; static members from version 7, members of KIP-848 from version 9, topics by their ids alone from
version 10. A member commits in its generation, or by its epoch; anyone may, without either, while the group has no
members. Offsets are stored before the response. In versions 2-4 a client may say how long they are kept.
Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from tagwire import messages
from tagwire.broker.clock import wall_ms
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.broker.node import Node
from tagwire.broker.registry import MOST_BYTES_OF_GROUPS, Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import OFFSET_COMMIT_TOPIC_IDS

Request = messages.OffsetCommitRequest
Response = messages.OffsetCommitResponse
TransactionTopic = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic

MAX_METADATA_CHARACTERS = 4096
NOT_SAID = -1
LATEST_MS = 2**63 - 1


def _refused(call: Call[Request], error: Error) -> Response:
    topics = call.request.topics
    named = (TopicPartition(topic.name, each.partition_index) for topic in topics for each in topic.partitions)
    return _response(call, dict.fromkeys(named, error))


@handles(Request, versions="2-10", coordinated=OneKey(GROUP, "group_id", _refused), most_bytes=MOST_BYTES_OF_GROUPS)
async def offset_commit(call: Call[Request]) -> Response:
    request = call.request
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    if call.version >= OFFSET_COMMIT_TOPIC_IDS:
        unknown = Error.UNKNOWN_TOPIC_ID
        for listed in request.topics:
            listed.name = name_of(call.broker, listed.topic_id)
    offsets, outcomes = sort_offsets(call.broker, request.topics, request.retention_time_ms, nameless=unknown)
    try:
        call.broker.groups.check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            offsets,
        )
        await call.broker.groups.commit(request.group_id, offsets)
    except KafkaError as error:
        refuse_all(outcomes, error.error)
    return _response(call, outcomes)


def _response(call: Call[Request], outcomes: Mapping[TopicPartition, Error]) -> Response:
    return Response(
        topics=[
            Response.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    Response.OffsetCommitResponsePartition(
                        partition_index=requested.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, requested.partition_index)],
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
    )


def name_of(broker: Node, topic_id: UUID) -> str:
    """The name of a topic that is named by its id; "" where there is none."""
    topic = broker.topics.by_id(topic_id)
    return topic.name if topic is not None else ""


def refuse_all(outcomes: dict[TopicPartition, Error], error: Error) -> None:
    """Say an error of the whole request for all partitions that there are: what is wrong with one of them is looked at
    after that."""
    for where, outcome in outcomes.items():
        if outcome not in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID):
            outcomes[where] = error


def sort_offsets(
    broker: Node,
    topics: Sequence[Request.OffsetCommitRequestTopic | TransactionTopic],
    kept_ms: int = NOT_SAID,
    *,
    nameless: Error = Error.UNKNOWN_TOPIC_OR_PARTITION,
) -> tuple[dict[TopicPartition, OffsetAndMetadata], dict[TopicPartition, Error]]:
    """The offsets in a request that can be committed, and every partition's outcome if they are.

    Args:
        kept_ms: how long they are kept, where the client says so.
        nameless: what is told of a topic without a name.
    """
    now = wall_ms()
    expires_ms = None if kept_ms == NOT_SAID else max(0, min(now + kept_ms, LATEST_MS))
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    outcomes: dict[TopicPartition, Error] = {}
    for topic in topics:
        for requested in topic.partitions:
            where = TopicPartition(topic.name, requested.partition_index)
            metadata = requested.committed_metadata or ""
            if broker.topics.partition(*where) is None:
                outcomes[where] = Error.UNKNOWN_TOPIC_OR_PARTITION if topic.name else nameless
            elif len(metadata) > MAX_METADATA_CHARACTERS:
                outcomes[where] = Error.OFFSET_METADATA_TOO_LARGE
            else:
                outcomes[where] = Error.NONE
                offsets[where] = OffsetAndMetadata(
                    requested.committed_offset, requested.committed_leader_epoch, metadata, now, expires_ms
                )
    return offsets, outcomes
