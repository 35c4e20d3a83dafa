"""TxnOffsetCommit (key 28): store offsets of a group that count once a transaction commits.

Versions 0-5; from version 3 a member commits in its generation, as with OffsetCommit. The transaction must have been
told of the group by AddOffsetsToTxn, before version 5, which does that itself (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from tagwire import messages
from tagwire.broker.cluster_image import GROUP
from tagwire.broker.coordinated import OneKey
from tagwire.broker.handlers.offset_commit import refuse_all, sort_offsets
from tagwire.broker.registry import MOST_BYTES_OF_GROUPS, Call, handles
from tagwire.broker.transactions.transaction import refused_batch, told_of_transaction
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records.internal_topics import OFFSETS
from tagwire.rpc.version_gates import TXN_OFFSET_COMMIT_TRANSACTION_ABORTABLE, TXN_OFFSET_COMMIT_TRANSACTION_V2

Request = messages.TxnOffsetCommitRequest
Response = messages.TxnOffsetCommitResponse


def _refused(call: Call[Request], error: Error) -> Response:
    topics = call.request.topics
    named = (TopicPartition(topic.name, each.partition_index) for topic in topics for each in topic.partitions)
    return _response(call, dict.fromkeys(named, error))


@handles(Request, versions="0-5", coordinated=OneKey(GROUP, "group_id", _refused), most_bytes=MOST_BYTES_OF_GROUPS)
async def txn_offset_commit(call: Call[Request]) -> Response:
    request = call.request
    offsets, outcomes = sort_offsets(call.broker, request.topics)
    try:
        if not request.group_id:
            raise KafkaError(Error.INVALID_GROUP_ID)
        producer = request.transactional_id, request.producer_id, request.producer_epoch
        if call.version >= TXN_OFFSET_COMMIT_TRANSACTION_V2 and set(outcomes.values()) - _NOWHERE:
            await _add(call, TopicPartition(OFFSETS, 0))
        check_open = partial(call.broker.transactions.check_batch, *producer, TopicPartition(OFFSETS, 0))
        check_open()
        _check_member(call, offsets)
        await call.broker.groups.commit_in_transaction(
            request.group_id, request.producer_id, request.producer_epoch, offsets, check_open
        )
    except KafkaError as error:
        refusal = told_of_transaction(error, call.version, TXN_OFFSET_COMMIT_TRANSACTION_ABORTABLE)
        refuse_all(outcomes, refusal)
    return _response(call, outcomes)


_NOWHERE: Final = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID})
"""Of partitions that do not exist: nothing is added to a transaction for these alone."""


async def _add(call: Call[Request], where: TopicPartition) -> None:
    request = call.request
    try:
        await call.broker.transactions.add(
            request.transactional_id, request.producer_id, request.producer_epoch, [where], transaction_version=2
        )
    except KafkaError as refusal:
        raise refused_batch(refusal) from None


def _response(call: Call[Request], outcomes: Mapping[TopicPartition, Error]) -> Response:
    return Response(
        topics=[
            Response.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    Response.TxnOffsetCommitResponsePartition(
                        partition_index=requested.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, requested.partition_index)],
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
    )


def _check_member(call: Call[Request], partitions: Iterable[TopicPartition]) -> None:
    request = call.request
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    # A producer that does not say which member it is takes the risk that the group has moved on.
    if generation >= 0 or member_id or request.group_instance_id is not None:
        call.broker.groups.check_commit(
            request.group_id, member_id, request.group_instance_id, generation, None, partitions
        )
