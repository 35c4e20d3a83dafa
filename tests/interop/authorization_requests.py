"""What the matrix of authorization asks: each API that we serve, about what is granted (m-) and what is not (o-).

Where an answer could be no, that leaves no trace: what does not exist is deleted, what would be created is validated
alone, members are unknown and producers made up. So every principal finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tagwire import messages as m
from tagwire.records import Record, write

from .authorization_people import GRANTS

NAMES: Final = ("m-t", "o-t")
MISSING: Final = ("m-missing", "o-missing")
GROUPS: Final = ("m-g", "o-g")
IDS: Final = ("m-x", "o-x")
NO_PRODUCER: Final = 4_000_000


@dataclass(frozen=True)
class Asked:
    """One request of the matrix.

    Attributes:
        name: what the cell is called.
        version: in which it is sent.
        make: makes the request, for a principal and the topics' ids.
        by: who asks.
    """

    name: str
    version: int
    make: Callable[[str, dict[str, UUID]], Any]
    by: frozenset[str] = frozenset(GRANTS)


def _records(*, transactional: bool = False) -> bytes:
    if transactional:
        return write(
            [Record(None, b"v", timestamp=1000)],
            producer_id=NO_PRODUCER,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    return write([Record(None, b"v", timestamp=1000)])


def _produce(*, transactional: bool = False, transactional_id: str | None = None) -> Any:
    kind = m.ProduceRequest
    return kind(
        acks=-1,
        timeout_ms=5000,
        transactional_id=transactional_id,
        topic_data=[
            kind.TopicProduceData(
                name=name,
                partition_data=[kind.PartitionProduceData(index=0, records=_records(transactional=transactional))],
            )
            for name in NAMES
        ],
    )


def _fetch(ids: dict[str, UUID] | None = None, *, replica: int = -1) -> Any:
    kind = m.FetchRequest
    wanted = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return kind(
        replica_id=replica,
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            kind.FetchTopic(topic_id=ids[name], partitions=[wanted])
            if ids
            else kind.FetchTopic(topic=name, partitions=[wanted])
            for name in (*NAMES, *(() if ids else MISSING))
        ],
    )


def _metadata(names: tuple[str, ...] | None, *, create: bool = False, **more: Any) -> Any:
    kind = m.MetadataRequest
    topics = None if names is None else [kind.MetadataRequestTopic(name=name) for name in names]
    return kind(topics=topics, allow_auto_topic_creation=create, **more)


def _metadata_by_id(ids: dict[str, UUID]) -> Any:
    kind = m.MetadataRequest
    return kind(topics=[kind.MetadataRequestTopic(name=None, topic_id=ids[name]) for name in NAMES])


def _offset_commit(group: str) -> Any:
    kind = m.OffsetCommitRequest
    return kind(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            kind.OffsetCommitRequestTopic(
                name=name, partitions=[kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
            )
            for name in (*NAMES, *MISSING)
        ],
    )


def _offset_commit_by_id(ids: dict[str, UUID]) -> Any:
    request = _offset_commit("m-g")
    request.topics = request.topics[:2]
    for topic in request.topics:
        topic.topic_id = ids[topic.name]
    return request


def _offset_fetch(named: bool) -> Any:
    kind = m.OffsetFetchRequest
    topics = [kind.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in NAMES] if named else None
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=name, topics=topics) for name in GROUPS])


def _offset_fetch_of_one(group: str, named: bool) -> Any:
    kind = m.OffsetFetchRequest
    topics = [kind.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in NAMES] if named else None
    return kind(group_id=group, topics=topics)


def _offset_fetch_by_id(ids: dict[str, UUID]) -> Any:
    kind = m.OffsetFetchRequest
    topics = [kind.OffsetFetchRequestTopics(topic_id=ids[name], partition_indexes=[0]) for name in NAMES]
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=name, topics=topics) for name in GROUPS])


def _offset_delete() -> Any:
    kind = m.OffsetDeleteRequest
    partition = kind.OffsetDeleteRequestPartition(partition_index=7)
    topics = [kind.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in NAMES]
    return kind(group_id="m-g", topics=topics)


def _txn_offset_commit(transactional_id: str) -> Any:
    kind = m.TxnOffsetCommitRequest
    partition = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return kind(
        transactional_id=transactional_id,
        group_id="m-g",
        producer_id=NO_PRODUCER,
        producer_epoch=0,
        topics=[kind.TxnOffsetCommitRequestTopic(name=name, partitions=[partition]) for name in NAMES],
    )


def _add_partitions(transactional_id: str, *names: str) -> Any:
    kind = m.AddPartitionsToTxnRequest
    return kind(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names],
    )


def _ids(kind: Any, transactional_id: str, **more: Any) -> Any:
    return kind(transactional_id=transactional_id, producer_id=NO_PRODUCER, producer_epoch=0, **more)


def _markers() -> Any:
    kind = m.WriteTxnMarkersRequest
    topics = [kind.WritableTxnMarkerTopic(name=name, partition_indexes=[99]) for name in NAMES]
    marker = kind.WritableTxnMarker(
        producer_id=NO_PRODUCER, producer_epoch=0, transaction_result=True, topics=topics, coordinator_epoch=0
    )
    return kind(markers=[marker])


def _partitions(kind: Any, outer: str, inner: str, **fields: Any) -> Any:
    """A request about partition 0 of the two topics, whose structs are called `outer` and `inner`."""
    partition = getattr(kind, inner)(**fields)
    return kind(topics=[getattr(kind, outer)(name=name, partitions=[partition]) for name in NAMES])


def _epochs() -> Any:
    kind = m.OffsetForLeaderEpochRequest
    partition = kind.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    return kind(topics=[kind.OffsetForLeaderTopic(topic=name, partitions=[partition]) for name in NAMES])


def _create_topics(*names: str) -> Any:
    kind = m.CreateTopicsRequest
    topics = [kind.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return kind(topics=topics, timeout_ms=5000, validate_only=True)


def _create_partitions(*names: str) -> Any:
    kind = m.CreatePartitionsRequest
    topics = [kind.CreatePartitionsTopic(name=name, count=5, assignments=None) for name in names]
    return kind(topics=topics, timeout_ms=5000, validate_only=True)


def _delete_topics(*names: str, ids: tuple[UUID, ...] = ()) -> Any:
    kind = m.DeleteTopicsRequest
    states = [kind.DeleteTopicState(name=name) for name in names]
    return kind(topics=[*states, *(kind.DeleteTopicState(name=None, topic_id=each) for each in ids)], timeout_ms=5000)


CONFIGURED: Final = ((2, "m-t"), (2, "o-t"), (4, "1"), (8, "1"), (16, "m-metrics"), (32, "m-g"), (32, "o-g"))


def _configs(kind: Any, resource: str, which: tuple[tuple[int, str], ...], **more: Any) -> Any:
    make = getattr(kind, resource)
    return kind(resources=[make(resource_type=each, resource_name=name) for each, name in which], **more)


def _describe_configs() -> Any:
    kind = m.DescribeConfigsRequest
    make = kind.DescribeConfigsResource
    named = [*CONFIGURED, (2, "m-missing")]
    return kind(
        resources=[
            make(resource_type=each, resource_name=name, configuration_keys=["none"])
            for each, name in named
            if each != 8  # how the broker's log is configured is nothing of ours
        ]
    )


def _heartbeat(*names: str, group: str = "m-new") -> Any:
    return m.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="unknown",
        member_epoch=5,
        subscribed_topic_names=list(names),
        rebalance_timeout_ms=1000,
    )


def _join(group: str) -> Any:
    kind = m.JoinGroupRequest
    protocol = kind.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
    return kind(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def _member(kind: Any, group: str, **more: Any) -> Any:
    return kind(group_id=group, member_id="unknown", generation_id=1, **more)


def _leave(group: str) -> Any:
    kind = m.LeaveGroupRequest
    return kind(group_id=group, members=[kind.MemberIdentity(member_id="unknown")])


def _filter(kind: Any) -> Any:
    return kind(
        resource_type_filter=2,
        resource_name_filter="none",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _create_acls() -> Any:
    kind = m.CreateAclsRequest
    made = kind.AclCreation(
        resource_type=2,
        resource_name="z",
        resource_pattern_type=3,
        principal="User:z",
        host="*",
        operation=3,
        permission_type=3,
    )
    wrong = kind.AclCreation(
        resource_type=4,
        resource_name="z",
        resource_pattern_type=3,
        principal="User:z",
        host="*",
        operation=3,
        permission_type=3,
    )
    return kind(creations=[made, wrong])


def _elect() -> Any:
    kind = m.ElectLeadersRequest
    topics = [kind.TopicPartitions(topic=name, partitions=[0]) for name in NAMES]
    return kind(election_type=0, topic_partitions=topics, timeout_ms=5000)


def _reassign() -> Any:
    kind = m.AlterPartitionReassignmentsRequest
    partition = kind.ReassignablePartition(partition_index=0, replicas=None)
    topics = [kind.ReassignableTopic(name=name, partitions=[partition]) for name in NAMES]
    return kind(topics=topics, timeout_ms=5000)


def _log_dirs() -> Any:
    kind = m.AlterReplicaLogDirsRequest
    topics = [kind.AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in NAMES]
    return kind(dirs=[kind.AlterReplicaLogDir(path="/nowhere", topics=topics)])


def _describe_log_dirs() -> Any:
    kind = m.DescribeLogDirsRequest
    return kind(topics=[kind.DescribableLogDirTopic(topic=name, partitions=[0]) for name in NAMES])


def _quotas() -> Any:
    kind = m.AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type="user", entity_name="z")],
        ops=[kind.OpData(key="producer_byte_rate", value=0.0, remove=True)],
    )
    return kind(entries=[entry], validate_only=False)


def _scram() -> Any:
    kind = m.AlterUserScramCredentialsRequest
    return kind(deletions=[kind.ScramCredentialDeletion(name="z", mechanism=1)], upsertions=[])


def _describe_scram() -> Any:
    kind = m.DescribeUserScramCredentialsRequest
    return kind(users=[kind.UserName(name="z")])


def _describe_producers() -> Any:
    kind = m.DescribeProducersRequest
    return kind(topics=[kind.TopicRequest(name=name, partition_indexes=[0]) for name in (*NAMES, "m-missing")])


def _topic_partitions(names: tuple[str, ...], cursor: str | None = None) -> Any:
    kind = m.DescribeTopicPartitionsRequest
    return kind(
        topics=[kind.TopicRequest(name=name) for name in names],
        response_partition_limit=1000,
        cursor=None if cursor is None else kind.Cursor(topic_name=cursor, partition_index=0),
    )


def _rows() -> Iterator[tuple[str, int, Callable[[str, dict[str, UUID]], Any]]]:
    yield (
        "ApiVersions",
        4,
        lambda who, ids: m.ApiVersionsRequest(client_software_name="matrix", client_software_version="1"),
    )
    yield "Produce", 9, lambda who, ids: _produce()
    for name in (*IDS, None):
        yield (
            f"Produce in transaction {name}",
            9,
            lambda who, ids, name=name: _produce(transactional=True, transactional_id=name),
        )
    yield "Fetch", 12, lambda who, ids: _fetch()
    yield "Fetch by id", 16, lambda who, ids: _fetch(ids)
    yield "Fetch of a replica", 12, lambda who, ids: _fetch(replica=7)
    yield (
        "ListOffsets",
        7,
        lambda who, ids: _partitions(
            m.ListOffsetsRequest, "ListOffsetsTopic", "ListOffsetsPartition", partition_index=0, timestamp=-1
        ),
    )
    yield "OffsetForLeaderEpoch", 4, lambda who, ids: _epochs()
    yield (
        "DeleteRecords",
        2,
        lambda who, ids: _partitions(
            m.DeleteRecordsRequest, "DeleteRecordsTopic", "DeleteRecordsPartition", partition_index=0, offset=0
        ),
    )
    yield "DescribeProducers", 0, lambda who, ids: _describe_producers()
    yield "Metadata of all", 12, lambda who, ids: _metadata(None, include_topic_authorized_operations=True)
    yield (
        "Metadata by name",
        12,
        lambda who, ids: _metadata((*NAMES, *MISSING), include_topic_authorized_operations=True),
    )
    yield (
        "IncrementalAlterConfigs of all else",
        1,
        lambda who, ids: _configs(
            m.IncrementalAlterConfigsRequest, "AlterConfigsResource", CONFIGURED[3:], validate_only=True
        ),
    )
    yield "Metadata by id", 12, lambda who, ids: _metadata_by_id(ids)
    yield "Metadata with the cluster", 10, lambda who, ids: _metadata((), include_cluster_authorized_operations=True)
    yield "Metadata of old", 1, lambda who, ids: _metadata(NAMES, create=True)
    yield "DescribeTopicPartitions of all", 0, lambda who, ids: _topic_partitions(())
    yield "DescribeTopicPartitions", 0, lambda who, ids: _topic_partitions((*NAMES, *MISSING))
    yield "DescribeTopicPartitions from a cursor", 0, lambda who, ids: _topic_partitions(NAMES, "o-t")
    yield "DescribeTopicPartitions of all from a cursor", 0, lambda who, ids: _topic_partitions((), "n")
    yield "CreateTopics", 7, lambda who, ids: _create_topics("m-new", "o-new", "m-t", "o-t")
    yield "CreateTopics twice", 7, lambda who, ids: _create_topics("o-new", "o-new")
    yield "DeleteTopics", 6, lambda who, ids: _delete_topics(*MISSING, ids=(UUID(int=77),))
    yield "DeleteTopics by name", 5, lambda who, ids: m.DeleteTopicsRequest(topic_names=list(MISSING), timeout_ms=5000)
    yield "CreatePartitions", 3, lambda who, ids: _create_partitions(*NAMES, *MISSING)
    yield "DescribeConfigs", 4, lambda who, ids: _describe_configs()
    yield (
        "AlterConfigs",
        2,
        lambda who, ids: _configs(m.AlterConfigsRequest, "AlterConfigsResource", CONFIGURED[:3], validate_only=True),
    )
    yield (
        "IncrementalAlterConfigs",
        1,
        lambda who, ids: _configs(
            m.IncrementalAlterConfigsRequest, "AlterConfigsResource", CONFIGURED[:3], validate_only=True
        ),
    )
    for key_type, names in ((0, GROUPS), (1, IDS)):
        yield (
            f"FindCoordinator {key_type}",
            4,
            lambda who, ids, key_type=key_type, names=names: m.FindCoordinatorRequest(
                key_type=key_type, coordinator_keys=list(names)
            ),
        )
        for name in names:
            yield (
                f"FindCoordinator {key_type} {name}",
                3,
                lambda who, ids, key_type=key_type, name=name: m.FindCoordinatorRequest(key_type=key_type, key=name),
            )
    for group in GROUPS:
        yield f"JoinGroup {group}", 9, lambda who, ids, group=group: _join(group)
        yield (
            f"SyncGroup {group}",
            4,
            lambda who, ids, group=group: _member(m.SyncGroupRequest, group, assignments=[]),
        )
        yield f"Heartbeat {group}", 4, lambda who, ids, group=group: _member(m.HeartbeatRequest, group)
        yield f"LeaveGroup {group}", 5, lambda who, ids, group=group: _leave(group)
        yield f"OffsetCommit {group}", 8, lambda who, ids, group=group: _offset_commit(group)
    yield "OffsetCommit by id", 10, lambda who, ids: _offset_commit_by_id(ids)
    yield "OffsetFetch", 9, lambda who, ids: _offset_fetch(named=True)
    yield "OffsetFetch of all", 9, lambda who, ids: _offset_fetch(named=False)
    yield "OffsetFetch by id", 10, lambda who, ids: _offset_fetch_by_id(ids)
    yield "OffsetFetch of one", 7, lambda who, ids: _offset_fetch_of_one("m-g", named=True)
    yield "OffsetFetch of one, all", 7, lambda who, ids: _offset_fetch_of_one("m-g", named=False)
    yield "OffsetFetch of one, old", 1, lambda who, ids: _offset_fetch_of_one("m-g", named=True)
    yield "OffsetDelete", 0, lambda who, ids: _offset_delete()
    yield "ListGroups", 5, lambda who, ids: m.ListGroupsRequest()
    yield (
        "DescribeGroups",
        6,
        lambda who, ids: m.DescribeGroupsRequest(groups=list(GROUPS), include_authorized_operations=True),
    )
    yield "DeleteGroups", 2, lambda who, ids: m.DeleteGroupsRequest(groups_names=list(MISSING))
    yield "ConsumerGroupHeartbeat", 1, lambda who, ids: _heartbeat("m-t")
    yield "ConsumerGroupHeartbeat of both topics", 1, lambda who, ids: _heartbeat(*NAMES)
    yield "ConsumerGroupHeartbeat of the other group", 1, lambda who, ids: _heartbeat("m-t", group="o-new")
    yield (
        "ConsumerGroupDescribe",
        1,
        lambda who, ids: m.ConsumerGroupDescribeRequest(
            group_ids=["m-cg", "o-cg", "m-g"], include_authorized_operations=True
        ),
    )
    for name in (*IDS, None):
        yield (
            f"InitProducerId {name}",
            4,
            lambda who, ids, name=name: m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
        )
    for name in IDS:
        yield f"AddPartitionsToTxn {name}", 3, lambda who, ids, name=name: _add_partitions(name, "m-t")
        yield f"AddPartitionsToTxn {name} both", 3, lambda who, ids, name=name: _add_partitions(name, *NAMES, *MISSING)
        yield (
            f"AddOffsetsToTxn {name}",
            3,
            lambda who, ids, name=name: _ids(m.AddOffsetsToTxnRequest, name, group_id="m-g"),
        )
        yield f"TxnOffsetCommit {name}", 3, lambda who, ids, name=name: _txn_offset_commit(name)
        yield f"EndTxn {name}", 3, lambda who, ids, name=name: _ids(m.EndTxnRequest, name, committed=True)
    yield "WriteTxnMarkers", 1, lambda who, ids: _markers()
    yield "ListTransactions", 1, lambda who, ids: m.ListTransactionsRequest()
    yield "DescribeTransactions", 0, lambda who, ids: m.DescribeTransactionsRequest(transactional_ids=list(IDS))
    yield "DescribeCluster", 1, lambda who, ids: m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield "DescribeAcls", 3, lambda who, ids: _filter(m.DescribeAclsRequest)
    yield "CreateAcls", 3, lambda who, ids: _create_acls()
    yield "DeleteAcls", 3, lambda who, ids: m.DeleteAclsRequest(filters=[_filter(m.DeleteAclsRequest.DeleteAclsFilter)])
    yield "DescribeLogDirs", 4, lambda who, ids: _describe_log_dirs()
    yield "DescribeLogDirs of old", 1, lambda who, ids: _describe_log_dirs()
    yield "AlterReplicaLogDirs", 2, lambda who, ids: _log_dirs()
    yield "ElectLeaders", 2, lambda who, ids: _elect()
    yield "AlterPartitionReassignments", 1, lambda who, ids: _reassign()
    yield "ListPartitionReassignments", 0, lambda who, ids: m.ListPartitionReassignmentsRequest(topics=None)
    yield "ListConfigResources", 1, lambda who, ids: m.ListConfigResourcesRequest(resource_types=[2])
    yield "DescribeClientQuotas", 1, lambda who, ids: m.DescribeClientQuotasRequest(components=[], strict=False)
    yield "AlterClientQuotas", 1, lambda who, ids: _quotas()
    yield "DescribeUserScramCredentials", 0, lambda who, ids: _describe_scram()
    yield "AlterUserScramCredentials", 0, lambda who, ids: _scram()
    # Last, for it leaves topics behind.
    yield "Metadata that creates", 12, lambda who, ids: _metadata((f"m-{who}", f"o-{who}"), create=True)


_MAY_NOT_DELETE: Final = frozenset(
    {"nobody", "topic-READ", "topic-CREATE", "topic-ALTER", "topic-DESCRIBE_CONFIGS", "cluster-ALTER", "reader"}
)

ASKED: Final = (
    *(Asked(*row) for row in _rows()),
    Asked("DeleteTopics that are", 6, lambda who, ids: _delete_topics("m-t"), by=_MAY_NOT_DELETE),
    Asked("DeleteTopics by id", 6, lambda who, ids: _delete_topics(ids=(ids["m-t"],)), by=_MAY_NOT_DELETE),
)
