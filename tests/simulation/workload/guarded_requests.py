"""Requests of users who may do something or not: what each needs, and what it is answered where that is allowed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tagwire import messages
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error
from tagwire.partitions import LATEST
from tagwire.records import Record, write
from tests.simulation.workload.guards import (
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from tests.simulation.workload.owning import batch
from tests.simulation.workload.probing import error_of, produce_request

Alternatives = list[list[Any]]
"""What a user has to be allowed one of: [operation, type, name]."""

REFUSED: Final = {
    TOPIC: "TOPIC_AUTHORIZATION_FAILED",
    GROUP: "GROUP_AUTHORIZATION_FAILED",
    CLUSTER: "CLUSTER_AUTHORIZATION_FAILED",
    TRANSACTIONAL_ID: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}

MISSING: Final = "guarded-missing"
"""A topic, a group and a transactional id that there never is."""

DOOMED: Final = "guarded-doomed"
"""A topic that is made before somebody asks to delete it."""

OFFSETS_OF_ONE: Final = 7
BY_NAME: Final = 8
"""A version of OffsetCommit that names topics; the last of OffsetFetch before it named them otherwise is the one
before."""

OF_VERSION_1: Final = 3
"""Of requests of transactions, as most clients of other makes send them."""

IS_TOPIC: Final = 2
IS_BROKER: Final = 4
METADATA_BY_ID: Final = 12
FIND_BY_KEYS: Final = 4
WRITTEN_BY_NAME: Final = 9
NO_PARTITION: Final = 7
A_DAY_S: Final = 86_400.0
NOT_YET: Final = "UNSUPPORTED_VERSION"
"""What groups of KIP-848 are answered with before they are switched on."""
DELETED_BY_NAME: Final = 5
FIND_BY_KEY: Final = 3
NO_PRODUCER: Final = 1 << 40


@dataclass(frozen=True)
class Asked:
    """A request that is refused, or answered with one of `answers`.

    Attributes:
        to: who is asked: leader, group or id, for who coordinates it, or any.
        needs: what the user has to be allowed, in this order, and what is said where it is not.
    """

    to: str
    request: Any
    about: str
    needs: list[tuple[Alternatives, str]]
    answers: tuple[str, ...] = ("NONE",)
    of: Callable[[Any], Any] = error_of
    version: int | None = None


@dataclass(frozen=True)
class Listed:
    """A request whose response lists what the user is allowed something of.

    Attributes:
        among: by name, what the user has to be allowed one of to be told of it.
    """

    to: str
    request: Any
    about: str
    among: dict[str, Alternatives]
    of: Callable[[Any], Any]
    needs: list[tuple[Alternatives, str]] = field(default_factory=list)
    version: int | None = None


def _need(*operations: int, kind: int, name: str | None) -> tuple[Alternatives, str]:
    return [[operation, kind, name] for operation in operations], REFUSED[kind]


def _cluster(*operations: int) -> tuple[Alternatives, str]:
    return _need(*operations, kind=CLUSTER, name=CLUSTER_NAME)


def _or_cluster(operation: int, topic: str, *others: int) -> tuple[Alternatives, str]:
    alternatives = [[operation, CLUSTER, CLUSTER_NAME], *([each, TOPIC, topic] for each in (operation, *others))]
    return alternatives, REFUSED[TOPIC]


def asked_of(topic: TopicMetadata, group: str, owner: str) -> Iterator[Asked]:
    """All that may be asked about a topic, a group and a transactional id."""
    yield from _of_records(topic)
    yield from _of_topics(topic)
    yield from _of_ids(topic)
    yield from _of_groups(topic, group)
    yield from _of_several(topic, group)
    yield from _of_transactions(topic, group, owner)
    yield from _written_in_transactions(topic, group, owner)
    yield from _of_cluster()
    yield from _changes_of_cluster(topic)


def asked_always() -> Asked:
    """What is decided by all ACLs of all topics."""
    init = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    either = [[IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME], [WRITE, TOPIC, None]]
    return Asked("any", init, "a producer id", [(either, REFUSED[CLUSTER])])


def _of_records(topic: TopicMetadata) -> Iterator[Asked]:
    name = topic.name

    def may(*operations: int) -> list[tuple[Alternatives, str]]:
        return [_need(*operations, kind=TOPIC, name=name)]

    # The broker's clock may have been set back, and one of the future is refused.
    data = write([Record(b"key", b"value", timestamp=int((time.time() - A_DAY_S) * 1000))])
    yield Asked("leader", produce_request(topic, 0, data), name, may(WRITE))
    fetch = messages.FetchRequest
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    named = fetch.FetchTopic(topic=name, topic_id=topic.topic_id, partitions=[part])
    request = fetch(max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=-1, topics=[named])
    yield Asked("leader", request, name, may(READ), of=_fetched)
    offsets = messages.ListOffsetsRequest
    wanted = offsets.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    for each, answer in ((name, "NONE"), (MISSING, "UNKNOWN_TOPIC_OR_PARTITION")):
        request = offsets(replica_id=-1, topics=[offsets.ListOffsetsTopic(name=each, partitions=[wanted])])
        yield Asked("leader", request, each, [_need(DESCRIBE, kind=TOPIC, name=each)], (answer,))
    epochs = messages.OffsetForLeaderEpochRequest
    of = epochs.OffsetForLeaderTopic(topic=name, partitions=[epochs.OffsetForLeaderPartition(partition=0)])
    either = [[DESCRIBE, TOPIC, name], [CLUSTER_ACTION, CLUSTER, CLUSTER_NAME]]
    yield Asked("leader", epochs(topics=[of]), name, [(either, REFUSED[TOPIC])])
    delete = messages.DeleteRecordsRequest
    first = delete.DeleteRecordsTopic(
        name=name, partitions=[delete.DeleteRecordsPartition(partition_index=0, offset=0)]
    )
    yield Asked("leader", delete(topics=[first], timeout_ms=1000), name, may(DELETE))
    producers = messages.DescribeProducersRequest
    request = producers(topics=[producers.TopicRequest(name=name, partition_indexes=[0])])
    yield Asked("leader", request, name, may(READ))


def _of_topics(topic: TopicMetadata) -> Iterator[Asked]:
    name = topic.name

    def may(*operations: int, name: str = name) -> list[tuple[Alternatives, str]]:
        return [_need(*operations, kind=TOPIC, name=name)]

    of = messages.MetadataRequest
    for each, answer in ((name, "NONE"), (MISSING, "UNKNOWN_TOPIC_OR_PARTITION")):
        request = of(topics=[of.MetadataRequestTopic(name=each)], allow_auto_topic_creation=False)
        yield Asked("any", request, each, may(DESCRIBE, name=each), (answer,), _described_topic)
    create = messages.CreateTopicsRequest
    for each, answer in ((name, "TOPIC_ALREADY_EXISTS"), (MISSING, "NONE")):
        new = create.CreatableTopic(name=each, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        request = create(topics=[new], timeout_ms=1000, validate_only=True)
        yield Asked("any", request, f"{each}, to try it", [_or_cluster(CREATE, each)], (answer,))
    request = messages.DeleteTopicsRequest(topic_names=[MISSING], timeout_ms=1000)
    needs = [_or_cluster(DELETE, MISSING, DESCRIBE)]
    yield Asked("any", request, MISSING, needs, ("UNKNOWN_TOPIC_OR_PARTITION",), version=DELETED_BY_NAME)
    delete = messages.DeleteTopicsRequest
    request = delete(topic_names=[DOOMED], timeout_ms=1000)
    yield Asked("any", request, DOOMED, [_or_cluster(DELETE, DOOMED)], version=DELETED_BY_NAME)
    more = messages.CreatePartitionsRequest
    wanted = more.CreatePartitionsTopic(name=name, count=2, assignments=None)
    request = more(topics=[wanted], timeout_ms=1000, validate_only=True)
    yield Asked("any", request, f"{name}, to try it", may(ALTER))
    configs = messages.DescribeConfigsRequest
    resource = configs.DescribeConfigsResource(
        resource_type=IS_TOPIC, resource_name=name, configuration_keys=["retention.ms"]
    )
    yield Asked("any", configs(resources=[resource]), name, may(DESCRIBE_CONFIGS), of=_configured)
    alter = messages.IncrementalAlterConfigsRequest
    config = alter.AlterableConfig(name="retention.ms", config_operation=0, value="1000000000")
    changed = alter.AlterConfigsResource(resource_type=IS_TOPIC, resource_name=name, configs=[config])
    yield Asked("any", alter(resources=[changed], validate_only=True), f"{name}, to try it", may(ALTER_CONFIGS))


def _of_ids(topic: TopicMetadata) -> Iterator[Asked]:
    """The same of topics that are named by their ids, or otherwise: not every release has these."""
    name = topic.name
    describe = _need(DESCRIBE, kind=TOPIC, name=name)
    of = messages.MetadataRequest
    request = of(topics=[of.MetadataRequestTopic(name=None, topic_id=topic.topic_id)], allow_auto_topic_creation=False)
    yield Asked("any", request, f"the id of {name}", [describe], of=_named, version=METADATA_BY_ID)
    parts = messages.DescribeTopicPartitionsRequest
    request = parts(topics=[parts.TopicRequest(name=name)], cursor=None)
    yield Asked("any", request, name, [describe], of=_described_topic)
    alter = messages.AlterConfigsRequest
    config = alter.AlterableConfig(name="retention.ms", value="1000000000")
    changed = alter.AlterConfigsResource(resource_type=IS_TOPIC, resource_name=name, configs=[config])
    may = [_need(ALTER_CONFIGS, kind=TOPIC, name=name)]
    yield Asked("any", alter(resources=[changed], validate_only=True), f"{name}, to try it", may)


def _of_groups(topic: TopicMetadata, group: str) -> Iterator[Asked]:
    read, describe = _need(READ, kind=GROUP, name=group), _need(DESCRIBE, kind=GROUP, name=group)
    commit = messages.OffsetCommitRequest
    part = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    offsets = commit.OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=[part])
    needs = [read, _need(READ, kind=TOPIC, name=topic.name)]
    about = f"{group}, of {topic.name}"
    yield Asked("group", commit(group_id=group, topics=[offsets]), about, needs, version=BY_NAME)
    fetch = messages.OffsetFetchRequest
    where = fetch.OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])
    needs = [describe, _need(DESCRIBE, kind=TOPIC, name=topic.name)]
    yield Asked("group", fetch(group_id=group, topics=[where]), about, needs, version=OFFSETS_OF_ONE)
    beat = messages.HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody", group_instance_id=None)
    yield Asked("group", beat, group, [read], ("UNKNOWN_MEMBER_ID",))
    kind = messages.LeaveGroupRequest
    gone = kind.MemberIdentity(member_id="nobody", group_instance_id=None)
    yield Asked("group", kind(group_id=group, members=[gone]), group, [read], ("UNKNOWN_MEMBER_ID",))
    sync = messages.SyncGroupRequest(group_id=group, generation_id=1, member_id="nobody", assignments=[])
    yield Asked("group", sync, group, [read], ("UNKNOWN_MEMBER_ID", "INCONSISTENT_GROUP_PROTOCOL"))
    join = messages.JoinGroupRequest
    protocol = join.JoinGroupRequestProtocol(name="any", metadata=b"")
    request = join(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="nobody",
        group_instance_id=None,
        protocol_type="guarded",
        protocols=[protocol],
    )
    yield Asked("group", request, group, [read], ("UNKNOWN_MEMBER_ID",))
    described = messages.DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    yield Asked("group", described, group, [describe])
    # What is not there is neither described nor deleted, and only who may is told that.
    delete = messages.DeleteGroupsRequest(groups_names=[MISSING])
    yield Asked(
        "group", delete, MISSING, [_need(DELETE, kind=GROUP, name=MISSING)], ("GROUP_ID_NOT_FOUND", "NOT_COORDINATOR")
    )
    find = messages.FindCoordinatorRequest(key=group, key_type=0)
    yield Asked("any", find, group, [describe], version=FIND_BY_KEY)


def _of_several(topic: TopicMetadata, group: str) -> Iterator[Asked]:
    """Requests about several groups at once, and about those of KIP-848: not every release has these."""
    read, describe = _need(READ, kind=GROUP, name=group), _need(DESCRIBE, kind=GROUP, name=group)
    fetch = messages.OffsetFetchRequest
    where = fetch.OffsetFetchRequestTopics(name=topic.name, topic_id=topic.topic_id, partition_indexes=[0])
    of = fetch.OffsetFetchRequestGroup(group_id=group, member_id=None, member_epoch=-1, topics=[where])
    needs = [describe, _need(DESCRIBE, kind=TOPIC, name=topic.name)]
    yield Asked("group", fetch(groups=[of]), f"{group}, of {topic.name}", needs, version=BY_NAME)
    find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    yield Asked("any", find, group, [describe], version=FIND_BY_KEYS)
    delete = messages.OffsetDeleteRequest
    part = delete.OffsetDeleteRequestTopic(
        name=topic.name, partitions=[delete.OffsetDeleteRequestPartition(partition_index=NO_PARTITION)]
    )
    needs = [_need(DELETE, kind=GROUP, name=group), _need(READ, kind=TOPIC, name=topic.name)]
    answers = ("NONE", "UNKNOWN_TOPIC_OR_PARTITION")
    yield Asked("group", delete(group_id=group, topics=[part]), f"{group}, of {topic.name}", needs, answers)
    told = messages.ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    yield Asked("group", told, group, [describe], ("GROUP_ID_NOT_FOUND", NOT_YET))
    beat = messages.ConsumerGroupHeartbeatRequest(group_id=group, member_id="nobody", member_epoch=-1)
    yield Asked("group", beat, group, [read], ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", NOT_YET))


def _of_transactions(topic: TopicMetadata, group: str, owner: str) -> Iterator[Asked]:
    own, known = _need(WRITE, kind=TRANSACTIONAL_ID, name=owner), ("INVALID_PRODUCER_ID_MAPPING",)
    init = messages.InitProducerIdRequest(transactional_id=owner, transaction_timeout_ms=60_000)
    yield Asked("id", init, owner, [own])
    add = messages.AddPartitionsToTxnRequest
    request = add(
        v3_and_below_transactional_id=owner,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic.name, partitions=[0])],
    )
    about = f"{owner}, of {topic.name}"
    needs = [own, _need(WRITE, kind=TOPIC, name=topic.name)]
    yield Asked("id", request, about, needs, known, version=OF_VERSION_1)
    numbers: dict[str, Any] = {"transactional_id": owner, "producer_id": NO_PRODUCER, "producer_epoch": 0}
    request = messages.AddOffsetsToTxnRequest(**numbers, group_id=group)
    needs = [own, _need(READ, kind=GROUP, name=group)]
    yield Asked("id", request, f"{owner}, of {group}", needs, known, version=OF_VERSION_1)
    yield Asked("id", messages.EndTxnRequest(**numbers, committed=True), owner, [own], known, version=OF_VERSION_1)
    find = messages.FindCoordinatorRequest(key=owner, key_type=1)
    yield Asked("any", find, owner, [_need(DESCRIBE, kind=TRANSACTIONAL_ID, name=owner)], version=FIND_BY_KEY)
    describe = messages.DescribeTransactionsRequest(transactional_ids=[owner])
    yield Asked("id", describe, owner, [_need(DESCRIBE, kind=TRANSACTIONAL_ID, name=owner)])


def _written_in_transactions(topic: TopicMetadata, group: str, owner: str) -> Iterator[Asked]:
    """By a producer whose id nobody has given."""
    own, about = _need(WRITE, kind=TRANSACTIONAL_ID, name=owner), f"{owner}, of {topic.name}"
    data = batch("guarded", NO_PRODUCER, 0)
    needs = [own, _need(WRITE, kind=TOPIC, name=topic.name)]
    answers = ("INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING")
    yield Asked("leader", produce_request(topic, 0, data, owner), about, needs, answers, version=WRITTEN_BY_NAME)
    commit = messages.TxnOffsetCommitRequest
    part = commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    offsets = commit.TxnOffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=[part])
    request = commit(
        transactional_id=owner, group_id=group, producer_id=NO_PRODUCER, producer_epoch=0, topics=[offsets]
    )
    needs = [own, _need(READ, kind=GROUP, name=group), _need(READ, kind=TOPIC, name=topic.name)]
    known = ("INVALID_PRODUCER_ID_MAPPING",)
    yield Asked("group", request, f"{about}, for {group}", needs, known, version=OF_VERSION_1)


def _changes_of_cluster(topic: TopicMetadata) -> Iterator[Asked]:
    """None of which changes anything."""
    acl = messages.CreateAclsRequest
    none = acl.AclCreation(
        resource_type=TOPIC,
        resource_name="",
        resource_pattern_type=LITERAL,
        principal=f"User:{MISSING}",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    yield Asked("any", acl(creations=[none]), "an ACL about nothing", [_cluster(ALTER)], ("INVALID_REQUEST",))
    quotas = messages.AlterClientQuotasRequest
    user = quotas.EntityData(entity_type="user", entity_name=MISSING)
    entry = quotas.EntryData(entity=[user], ops=[quotas.OpData(key="producer_byte_rate", value=1e9, remove=False)])
    request = quotas(entries=[entry], validate_only=True)
    yield Asked("any", request, "a quota, to try it", [_cluster(ALTER_CONFIGS)])
    known = messages.DescribeClientQuotasRequest(components=[], strict=False)
    yield Asked("any", known, "quotas", [_cluster(DESCRIBE_CONFIGS)])
    moves = messages.ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000)
    yield Asked("any", moves, "what moves", [_cluster(DESCRIBE)])
    elect = messages.ElectLeadersRequest
    part = elect.TopicPartitions(topic=topic.name, partitions=[0])
    request = elect(election_type=0, topic_partitions=[part], timeout_ms=1000)
    yield Asked("any", request, f"a leader of {topic.name}", [_cluster(ALTER)], ("ELECTION_NOT_NEEDED",))
    configs = messages.DescribeConfigsRequest
    resource = configs.DescribeConfigsResource(
        resource_type=IS_BROKER, resource_name="", configuration_keys=["log.retention.ms"]
    )
    needs = [_cluster(DESCRIBE_CONFIGS)]
    yield Asked("any", configs(resources=[resource]), "brokers", needs, of=_configured)


def _of_cluster() -> Iterator[Asked]:
    every = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    nobodys: dict[str, Any] = every | {
        "resource_name_filter": MISSING, "principal_filter": f"User:{MISSING}", "host_filter": None
    }  # fmt: skip
    yield Asked("any", messages.DescribeAclsRequest(**nobodys), "ACLs", [_cluster(DESCRIBE)])
    delete = messages.DeleteAclsRequest
    yield Asked("any", delete(filters=[delete.DeleteAclsFilter(**nobodys)]), "no ACL", [_cluster(ALTER)])
    scram = messages.AlterUserScramCredentialsRequest
    gone = scram.ScramCredentialDeletion(name=MISSING, mechanism=1)
    yield Asked("any", scram(deletions=[gone], upsertions=[]), "nobody", [_cluster(ALTER)], ("RESOURCE_NOT_FOUND",))
    told = messages.DescribeUserScramCredentialsRequest(users=None)
    yield Asked("any", told, "users", [_cluster(DESCRIBE)], of=_users)
    yield Asked("any", messages.DescribeLogDirsRequest(topics=[]), "its disks", [_cluster(DESCRIBE)], of=_disks)


def listed_of(
    topic: TopicMetadata, group: str, topics: Iterable[str], groups: Iterable[str], owners: Iterable[str]
) -> Iterator[Listed]:
    """All that lists what somebody may be told of."""
    described = {name: [[DESCRIBE, TOPIC, name]] for name in topics}
    of = messages.MetadataRequest
    yield Listed("any", of(topics=None), "all topics", described, lambda found: [each.name for each in found.topics])
    shown: dict[str, Alternatives] = {
        name: [[DESCRIBE, GROUP, name], [DESCRIBE, CLUSTER, CLUSTER_NAME]] for name in groups
    }
    own = {group: shown[group]}  # each node lists those that it coordinates
    request = messages.ListGroupsRequest(states_filter=[])
    yield Listed("group", request, "all groups", own, lambda found: [each.group_id for each in found.groups])
    fetch = messages.OffsetFetchRequest(group_id=group, topics=None)
    needs = [_need(DESCRIBE, kind=GROUP, name=group)]
    told = f"all offsets of {group}"
    yield Listed(
        "group", fetch, told, described, lambda found: [each.name for each in found.topics], needs, OFFSETS_OF_ONE
    )
    owned: dict[str, Alternatives] = {name: [[DESCRIBE, TRANSACTIONAL_ID, name]] for name in owners}
    transactions = messages.ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    yield Listed(
        "id",
        transactions,
        "all transactional ids",
        owned,
        lambda found: [each.transactional_id for each in found.transaction_states],
    )
    # Of a topic that is described, what may be done to it (KIP-430).
    operations = (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    request = of(topics=[of.MetadataRequestTopic(name=topic.name)], include_topic_authorized_operations=True)
    may: dict[str, Alternatives] = {str(each): [[each, TOPIC, topic.name]] for each in operations}
    needs = [_need(DESCRIBE, kind=TOPIC, name=topic.name)]
    yield Listed("any", request, f"what it may do to {topic.name}", may, _operations, needs)


def _fetched(response: Any) -> str:
    """The error; with what was given beside one."""
    found = [part for each in response.responses for part in each.partitions]
    given = any(part.records or part.high_watermark > 0 for part in found)
    return _and(error_of(response), "and records", is_told=given)


def _described_topic(response: Any) -> str:
    error = error_of(response)
    told = any(topic.partitions or topic.topic_id.int for topic in response.topics)
    return _and(error, "and what it is", is_told=told)


def _named(response: Any) -> str:
    return _and(
        error_of(response), "and its name", is_told=any(each.name or each.partitions for each in response.topics)
    )


def _configured(response: Any) -> str:
    return _and(error_of(response), "and configurations", is_told=any(each.configs for each in response.results))


def _users(response: Any) -> str:
    return _and(error_of(response), "and users", is_told=bool(response.results))


def _disks(response: Any) -> str:
    """Before version 3 there is no error to be told, and then nothing is."""
    if response.results:
        return _and(error_of(response), "and disks", is_told=True)
    return REFUSED[CLUSTER]


def _and(error: str, told: str, *, is_told: bool) -> str:
    """An error beside which there is nothing; else what there is."""
    return f"{error} {told}" if error != "NONE" and is_told else error


def _operations(response: Any) -> list[str]:
    (topic,) = response.topics
    if topic.error_code != Error.NONE:
        return []
    return [str(each) for each in range(2, 16) if topic.topic_authorized_operations >> each & 1]
