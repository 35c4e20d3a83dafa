"""How each API refuses: the shapes of its response. Source: Kafka's AbstractRequest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tagwire import messages
from tagwire.broker.authorization.access import AnyCall
from tagwire.broker.coordinated import OneKey
from tagwire.broker.registry import HANDLERS
from tagwire.codec.classes import MessageObject
from tagwire.errors import Error
from tagwire.rpc.version_gates import ELECT_LEADERS_ERROR

NO_OFFSET = -1

CLUSTER_REFUSED = "Cluster authorization failed."
"""What Kafka says beside CLUSTER_AUTHORIZATION_FAILED."""


def with_code(response: type[Any], **fields: object) -> Callable[[AnyCall, Error], MessageObject]:
    """A response of nothing but an error, and fields that are not as by default."""
    return lambda call, error: response(error_code=error, **fields)


def coordinated(call: AnyCall, error: Error) -> MessageObject:
    """As the API tells that another node coordinates the one group or transactional id that it is about."""
    routed = HANDLERS[call.request.api_key].coordinated
    if not isinstance(routed, OneKey):
        raise LookupError(f"{call.request.spec.name} is not about one group or transactional id")
    return routed.refuse(call, error)


# Topics --------------------------------------------------------------------------------------------------------------


def produce_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.ProduceResponse
    return kind.TopicProduceResponse(
        name=topic.name,
        partition_responses=[
            kind.PartitionProduceResponse(index=each.index, error_code=error, base_offset=NO_OFFSET)
            for each in topic.partition_data
        ],
    )


def list_offsets_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.ListOffsetsResponse
    return kind.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            kind.ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def epoch_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.OffsetForLeaderEpochResponse
    return kind.OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[kind.EpochEndOffset(partition=each.partition, error_code=error) for each in topic.partitions],
    )


def delete_records_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.DeleteRecordsResponse
    return kind.DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            kind.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=NO_OFFSET, error_code=error
            )
            for each in topic.partitions
        ],
    )


def create_topic(call: AnyCall, topic: Any, error: Error) -> object:
    return messages.CreateTopicsResponse.CreatableTopicResult(
        name=topic.name, error_code=error, error_message="Authorization failed.", configs=None
    )


def create_partitions_topic(call: AnyCall, topic: Any, error: Error) -> object:
    return messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=topic.name, error_code=error, error_message=None
    )


def producers_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.DescribeProducersResponse
    return kind.TopicResponse(
        name=topic.name,
        partitions=[
            kind.PartitionResponse(partition_index=index, error_code=error) for index in topic.partition_indexes
        ],
    )


# Groups --------------------------------------------------------------------------------------------------------------


def commit_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.OffsetCommitResponse
    return kind.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            kind.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def txn_commit_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.TxnOffsetCommitResponse
    return kind.TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            kind.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def offset_delete_topic(call: AnyCall, topic: Any, error: Error) -> object:
    kind = messages.OffsetDeleteResponse
    return kind.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            kind.OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def described_group(call: AnyCall, group_id: str, error: Error) -> object:
    return messages.DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error)


def described_consumer_group(call: AnyCall, group_id: str, error: Error) -> object:
    return messages.ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error)


def deleted_group(call: AnyCall, group_id: str, error: Error) -> object:
    return messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)


# Transactions --------------------------------------------------------------------------------------------------------


def described_transaction(call: AnyCall, transactional_id: str, error: Error) -> object:
    return messages.DescribeTransactionsResponse.TransactionState(transactional_id=transactional_id, error_code=error)


def markers(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.WriteTxnMarkersResponse
    return kind(
        markers=[
            kind.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    kind.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            kind.WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in call.request.markers
        ]
    )


# The cluster ---------------------------------------------------------------------------------------------------------


def created_acls(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.CreateAclsResponse
    return kind(
        results=[kind.AclCreationResult(error_code=error, error_message=CLUSTER_REFUSED)] * len(call.request.creations)
    )


def deleted_acls(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.DeleteAclsResponse
    return kind(
        filter_results=[kind.DeleteAclsFilterResult(error_code=error, error_message=CLUSTER_REFUSED)]
        * len(call.request.filters)
    )


def moved_log_dirs(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.AlterReplicaLogDirsResponse
    topics = (topic for directory in call.request.dirs for topic in directory.topics)
    return kind(
        results=[
            kind.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    kind.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def elected_leaders(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.ElectLeadersResponse
    return kind(
        error_code=error if call.version >= ELECT_LEADERS_ERROR else Error.NONE,
        replica_election_results=[
            kind.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    kind.PartitionResult(partition_id=index, error_code=error, error_message=CLUSTER_REFUSED)
                    for index in topic.partitions
                ],
            )
            for topic in call.request.topic_partitions or ()
        ],
    )


def reassigned(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.AlterPartitionReassignmentsResponse
    return kind(
        error_code=error,
        error_message=CLUSTER_REFUSED,
        responses=[
            kind.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    kind.ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=CLUSTER_REFUSED
                    )
                    for each in topic.partitions
                ],
            )
            for topic in call.request.topics
        ],
    )


def described_users(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.DescribeUserScramCredentialsResponse
    nameless = kind.DescribeUserScramCredentialsResult(error_code=error, error_message=CLUSTER_REFUSED)  # as Kafka's
    results = [nameless] * len(call.request.users or ())
    return kind(error_code=error, error_message=CLUSTER_REFUSED, results=results)


def altered_users(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.AlterUserScramCredentialsResponse
    names = dict.fromkeys(one.name for one in (*call.request.deletions, *call.request.upsertions))
    return kind(
        results=[
            kind.AlterUserScramCredentialsResult(user=name, error_code=error, error_message=CLUSTER_REFUSED)
            for name in names
        ]
    )


def altered_quotas(call: AnyCall, error: Error) -> MessageObject:
    kind = messages.AlterClientQuotasResponse
    return kind(
        entries=[
            kind.EntryData(
                error_code=error,
                error_message=CLUSTER_REFUSED,
                entity=[
                    kind.EntityData(entity_type=entity.entity_type, entity_name=entity.entity_name)
                    for entity in entry.entity
                ],
            )
            for entry in call.request.entries
        ]
    )
