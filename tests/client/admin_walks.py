"""What an administrator does with any broker: the same tests for all of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest

from tagwire import messages
from tagwire.client import (
    ANY_NAME,
    EARLIEST,
    LATEST,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    Append,
    Client,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ConfigResource,
    NewTopic,
    OffsetAndMetadata,
    ResourcePattern,
    ScramCredentialInfo,
    Subtract,
    TopicPartition,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tagwire.client.coordinators import GROUP, coordinators
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import API_VERSIONS_CLIENT_SOFTWARE
from tagwire.spec.api_keys import ApiKey

from ..limits import stretch
from .walks import SECONDS, Kind, Walk, until


class AdminWalks:
    """Topics, configs, groups, transactions, disks. A module with a broker gives the fixture `kind`."""

    @pytest.fixture
    def walk(self, kind: Kind) -> Iterator[Walk]:
        with kind.client() as client:
            yield Walk(kind, client)

    def test_topics_are_created_grown_listed_and_deleted(self, walk: Walk) -> None:
        walk.needs("CreateTopics", "CreatePartitions", "DeleteTopics")
        name = walk.name()
        walk.admin.create_topics([NewTopic(name, 2)], validate_only=True)
        assert name not in [topic.name for topic in walk.admin.list_topics()]
        walk.admin.create_topics([NewTopic(name, 2)])
        walk.admin.create_partitions({name: 5}, validate_only=True)
        walk.admin.create_partitions({name: 4})
        found = {topic.name: topic for topic in walk.admin.list_topics()}
        assert sorted(found[name].partitions) == [0, 1, 2, 3]
        with pytest.raises(KafkaError, match=f"add partitions to topic '{name}'") as caught:
            walk.admin.create_partitions({name: 3})
        assert caught.value.error is Error.INVALID_PARTITIONS
        walk.admin.delete_topics([name])
        until(lambda: name not in [topic.name for topic in walk.admin.list_topics()])

    def test_a_topic_that_exists_is_not_created_again(self, walk: Walk) -> None:
        walk.needs("CreateTopics")
        taken, new = walk.topic(), walk.name()
        with pytest.raises(KafkaError, match=f"create topic '{taken}'") as caught:
            walk.admin.create_topics([NewTopic(taken), NewTopic(new)])
        assert caught.value.error is Error.TOPIC_ALREADY_EXISTS
        assert new in [topic.name for topic in walk.admin.list_topics()]

    def test_configs_of_a_topic_are_set_added_to_and_reset(self, walk: Walk) -> None:
        walk.needs("DescribeConfigs", "IncrementalAlterConfigs")
        at = ConfigResource("topic", walk.topic(**{"cleanup.policy": "delete"}))

        def value(name: str) -> str | None:
            return walk.admin.describe_configs([at])[at][name].value

        assert value("retention.ms") == "-1"
        walk.admin.alter_configs({at: {"retention.ms": "5000", "cleanup.policy": Append("compact")}})
        until(lambda: (value("retention.ms"), value("cleanup.policy")) == ("5000", "delete,compact"))
        walk.admin.alter_configs({at: {"retention.ms": None, "cleanup.policy": Subtract("delete")}})
        until(lambda: value("cleanup.policy") == "compact")
        found = walk.admin.describe_configs([at])[at]
        assert found["cleanup.policy"].source == "topic"
        assert found["retention.ms"].source != "topic"
        walk.admin.alter_configs({at: {"retention.ms": "7"}}, validate_only=True)
        assert value("retention.ms") != "7"

    def test_a_config_that_cannot_be_is_refused_by_its_resource(self, walk: Walk) -> None:
        walk.needs("IncrementalAlterConfigs")
        at = ConfigResource("topic", walk.topic())
        with pytest.raises(KafkaError, match=rf"INVALID_CONFIG .*alter configs of topic '{at.name}'"):
            walk.admin.alter_configs({at: {"retention.ms": "soon"}})

    def test_configs_of_a_broker_are_described(self, walk: Walk) -> None:
        walk.needs("DescribeConfigs")
        node = next(iter(walk.admin.describe_cluster().brokers))
        (found,) = walk.admin.describe_configs([("broker", str(node))]).values()
        assert found
        assert all(entry.value is None for entry in found.values() if entry.is_sensitive)

    def test_records_before_an_offset_are_deleted(self, walk: Walk) -> None:
        walk.needs("DeleteRecords")
        walk.fill(topic := walk.topic(), 10)
        at = TopicPartition(topic, 0)
        assert walk.admin.delete_records({at: 4}) == {at: 4}
        assert walk.client.list_offsets({at: EARLIEST}) == {at: 4}
        with pytest.raises(KafkaError, match=f"delete records of partition {at}") as caught:
            walk.admin.delete_records({at: 11})
        assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
        assert walk.admin.delete_records({at: -1}) == {at: 10}
        assert walk.client.list_offsets({at: LATEST}) == {at: 10}
        assert list(walk.read(topic)) == []

    def test_a_group_without_members_is_listed_described_and_deleted(self, walk: Walk) -> None:
        walk.needs("ListGroups", "DescribeGroups", "DeleteGroups", "OffsetDelete")
        topic, group = walk.topic(2), walk.name()
        first, second = (TopicPartition(topic, index) for index in range(2))
        walk.admin.alter_group_offsets(group, {first: OffsetAndMetadata(3, metadata="so far"), second: 4})
        (listed,) = [found for found in walk.admin.list_groups(states=["Empty"]) if found.group == group]
        assert (listed.state, listed.type) == ("Empty", "classic")
        assert walk.admin.describe_groups([group])[group].members == ()
        assert walk.admin.group_offsets(group)[first].metadata == "so far"
        walk.admin.delete_group_offsets(group, [second])
        assert list(walk.admin.group_offsets(group)) == [first]
        walk.admin.delete_groups([group])
        assert group not in [found.group for found in walk.admin.list_groups()]
        assert walk.admin.group_offsets(group) == {}
        with pytest.raises(KafkaError, match=f"delete group '{group}'") as caught:
            walk.admin.delete_groups([group])
        assert caught.value.error is Error.GROUP_ID_NOT_FOUND

    def test_how_far_groups_are_behind_is_told_of_all_at_once(self, walk: Walk) -> None:
        walk.needs("ListGroups", "OffsetFetch")
        topic, first, second = walk.topic(2), walk.name(), walk.name()
        walk.fill(topic, 10)
        walk.admin.alter_group_offsets(first, {(topic, 0): OffsetAndMetadata(3, metadata="so far"), (topic, 1): 0})
        walk.admin.alter_group_offsets(second, {(topic, 0): 10})
        found = {group.group: group for group in walk.admin.group_lags(topics=[topic]) if group.partitions}
        assert {
            name: [(row.offset, row.end, row.lag, row.note) for row in group.partitions]
            for name, group in found.items()
        } == {
            first: [(3, 10, 7, ""), (0, 0, 0, "")],
            second: [(10, 10, 0, "")],
        }
        assert found[first].partitions[0].metadata == "so far"
        assert (found[first].state, found[first].type) == ("Empty", "classic")

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_group_with_a_member_is_described_and_kept(self, walk: Walk, protocol: str) -> None:
        walk.needs("JoinGroup", "DescribeGroups", "DeleteGroups")
        if protocol == "consumer" and not walk.client.features().finalized.get("group.version"):
            pytest.skip(f"{walk.kind.name} has not switched on the protocol of KIP-848")
        topic, group = walk.topic(2), walk.name()
        settings = {"bootstrap.servers": walk.kind.bootstrap, "group.id": group, "client.id": "rd", "log_level": 0}
        consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol})
        try:
            consumer.subscribe([topic])
            until = time.monotonic() + SECONDS * stretch()
            while len(consumer.assignment()) < 2 and time.monotonic() < until:
                consumer.poll(0.1)
            found = walk.admin.describe_groups([group])[group]
            assert (found.state, found.type) == ("Stable", protocol)
            assert [member.client_id for member in found.members] == ["rd"]
            assert set(found.members[0].assignment) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
            (lag,) = walk.admin.group_lags([group], members=True)
            assert [(row.partition, row.end, row.member) for row in lag.partitions] == [
                (index, 0, found.members[0]) for index in range(2)
            ]
            with pytest.raises(KafkaError) as caught:
                walk.admin.delete_groups([group])
            assert caught.value.error is Error.NON_EMPTY_GROUP
        finally:
            consumer.close()

    def test_a_share_group_is_listed_and_described(self, walk: Walk) -> None:
        walk.needs("ShareGroupHeartbeat", "ShareGroupDescribe", "ListGroups")
        topic, group = walk.topic(2), walk.name()
        join = messages.ShareGroupHeartbeatRequest(
            group_id=group, member_id=str(uuid.uuid4()), member_epoch=0, subscribed_topic_names=[topic]
        )
        node = _coordinator(walk, group)
        until(lambda: walk.client.request(join, node=node).error_code == Error.NONE)  # the coordinator may be loading
        (listed,) = [found for found in walk.admin.list_groups(types=["share"]) if found.group == group]
        assert listed.type == "share"
        found = walk.admin.describe_groups([group])[group]
        assert (found.type, [member.member_id for member in found.members]) == ("share", [join.member_id])

    def test_a_share_group_is_behind_from_its_start_offset(self, walk: Walk) -> None:
        walk.needs("AlterShareGroupOffsets", "DescribeShareGroupOffsets", "ListGroups")
        topic, group = walk.topic(), walk.name()
        walk.fill(topic, 10)
        kind = messages.AlterShareGroupOffsetsRequest
        partition = kind.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=4)
        alter = kind(
            group_id=group, topics=[kind.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])]
        )
        join = messages.ShareGroupHeartbeatRequest(
            group_id=group, member_id=str(uuid.uuid4()), member_epoch=0, subscribed_topic_names=[topic]
        )
        node = _coordinator(walk, group)
        until(lambda: walk.client.request(join, node=node).error_code == Error.NONE)
        leave = messages.ShareGroupHeartbeatRequest(group_id=group, member_id=join.member_id, member_epoch=-1)
        assert walk.client.request(leave, node=node).error_code == Error.NONE

        def altered() -> bool:
            answer = walk.client.request(alter, node=node)
            return not answer.error_code and not answer.responses[0].partitions[0].error_code

        until(altered)
        (found,) = [one for one in walk.admin.group_lags() if one.group == group]
        assert found.type == "share"
        assert [(row.offset, row.end, row.lag, row.note) for row in found.partitions] == [(4, 10, 6, "")]

    def test_an_open_transaction_is_found_and_ended_for_its_producer(self, walk: Walk) -> None:
        walk.needs("ListTransactions", "DescribeTransactions", "DescribeProducers")
        topic, name = walk.topic(), walk.name()
        producer = _in_transaction(walk, topic, name)
        (listed,) = [found for found in walk.admin.list_transactions() if found.transactional_id == name]
        found = walk.admin.describe_transactions([name])[name]
        assert (listed.state, found.state) == ("Ongoing", "Ongoing")
        assert found.partitions == (TopicPartition(topic, 0),)
        assert _open_in(walk, topic) == {found.producer_id: 0}
        walk.admin.fence_producers([name])
        until(lambda: _open_in(walk, topic) == {found.producer_id: -1})
        assert name not in [found.transactional_id for found in walk.admin.list_transactions(states=["Ongoing"])]
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(SECONDS)

    def test_a_transaction_that_hangs_in_a_partition_is_aborted_there(self, walk: Walk) -> None:
        walk.needs("DescribeProducers", "WriteTxnMarkers")
        topic, name = walk.topic(), walk.name()
        producer = _in_transaction(walk, topic, name)
        (state,) = walk.admin.describe_producers([(topic, 0)])[topic, 0]
        assert state.transaction_start == 0
        walk.admin.abort_transaction((topic, 0), state.producer_id, state.producer_epoch, state.coordinator_epoch)
        until(lambda: _open_in(walk, topic) == {state.producer_id: -1})
        producer.abort_transaction(SECONDS)

    def test_transactions_that_do_not_exist_are_named(self, walk: Walk) -> None:
        walk.needs("DescribeTransactions")
        with pytest.raises(KafkaError, match="describe transaction 'nobody'") as caught:
            walk.admin.describe_transactions(["nobody"])
        assert caught.value.error is Error.TRANSACTIONAL_ID_NOT_FOUND

    def test_the_cluster_is_described(self, walk: Walk) -> None:
        found = walk.admin.describe_cluster()
        assert found.cluster_id
        assert found.brokers.keys() == walk.client.metadata().brokers.keys()
        assert not any(broker.is_fenced for broker in found.brokers.values())

    def test_disks_are_described_with_what_is_on_them(self, walk: Walk) -> None:
        walk.needs("DescribeLogDirs")
        walk.fill(topic := walk.topic(2), 100, partition=1)

        def filled() -> dict[TopicPartition, bool]:
            brokers = walk.admin.describe_log_dirs(partitions=[(topic, 0), (topic, 1)])
            found = [one for dirs in brokers.values() for one in dirs]
            assert {one.error for one in found} == {Error.NONE}
            return {at: replica.size > 0 for one in found for at, replica in one.replicas.items()}

        until(lambda: filled() == {(topic, 0): False, (topic, 1): True})
        assert walk.admin.describe_log_dirs().keys() == walk.client.metadata([]).brokers.keys()

    def test_a_replica_is_told_where_it_is_and_that_it_cannot_go_nowhere(self, walk: Walk) -> None:
        walk.needs("DescribeLogDirs", "AlterReplicaLogDirs")
        topic = walk.topic()
        (leader,) = [found.partitions[0].leader for found in walk.admin.list_topics() if found.name == topic]
        replica = TopicPartitionReplica(topic, 0, leader)
        # Kafka has created the topic before each broker has made its replicas.
        until(lambda: walk.admin.describe_replica_log_dirs([replica])[replica].path is not None)
        found = walk.admin.describe_replica_log_dirs([replica])[replica]
        assert found.path in {one.path for one in walk.admin.describe_log_dirs(leader)[leader]}
        assert found.future_path is None
        with pytest.raises(KafkaError, match=f"move replica {topic}-0 on broker {leader}") as caught:
            walk.admin.alter_replica_log_dirs({replica: "/nowhere"})
        assert caught.value.error is Error.LOG_DIR_NOT_FOUND

    def test_what_is_where_it_should_be_is_neither_moved_nor_elected(self, walk: Walk) -> None:
        walk.needs("AlterPartitionReassignments", "ListPartitionReassignments", "ElectLeaders")
        at = TopicPartition(walk.topic(), 0)
        (replicas,) = [found.partitions[0].replicas for found in walk.admin.list_topics() if found.name == at.topic]
        walk.admin.alter_partition_reassignments({at: replicas})
        assert walk.admin.list_partition_reassignments(at) == {}
        with pytest.raises(KafkaError, match=f"reassign partition {at}") as caught:
            walk.admin.alter_partition_reassignments({at: None})
        assert caught.value.error is Error.NO_REASSIGNMENT_IN_PROGRESS
        with pytest.raises(KafkaError, match=f"reassign partition {at}") as caught:
            walk.admin.alter_partition_reassignments({at: [*replicas, 99]})
        assert caught.value.error is Error.INVALID_REPLICA_ASSIGNMENT
        assert walk.admin.elect_leaders("preferred", at) == {at: False}
        assert walk.admin.elect_leaders("unclean", at) == {at: False}

    def test_features_are_described_as_of_now(self, walk: Walk) -> None:
        if walk.client.versions()[ApiKey.API_VERSIONS][1] < API_VERSIONS_CLIENT_SOFTWARE:
            pytest.skip(f"{walk.kind.name} tells no features")
        found = walk.admin.describe_features()
        assert found.finalized.keys() <= found.supported.keys()
        assert found == walk.client.features()

    def test_scram_users_are_set_described_and_deleted(self, walk: Walk) -> None:
        walk.needs("DescribeUserScramCredentials", "AlterUserScramCredentials")
        user = walk.name()
        walk.admin.alter_user_scram_credentials(
            UserScramCredentialUpsertion(user, "SCRAM-SHA-256", "secret", iterations=8192)
        )
        until(lambda: user in walk.admin.describe_user_scram_credentials())
        assert walk.admin.describe_user_scram_credentials(user) == {user: [ScramCredentialInfo("SCRAM-SHA-256", 8192)]}
        deletion = UserScramCredentialDeletion(user, "SCRAM-SHA-256")
        walk.admin.alter_user_scram_credentials(deletion)
        until(lambda: user not in walk.admin.describe_user_scram_credentials())
        with pytest.raises(KafkaError, match=f"alter SCRAM user '{user}'") as caught:
            walk.admin.alter_user_scram_credentials(deletion)
        assert caught.value.error is Error.RESOURCE_NOT_FOUND
        with pytest.raises(KafkaError, match=f"describe SCRAM user '{user}'") as caught:
            walk.admin.describe_user_scram_credentials([user])
        assert caught.value.error is Error.RESOURCE_NOT_FOUND

    def test_client_quotas_are_set_described_and_taken_away(self, walk: Walk) -> None:
        walk.needs("DescribeClientQuotas", "AlterClientQuotas")
        entity = ClientQuotaEntity(user=walk.name(), client_id="app")
        wanted, quotas = ClientQuotaFilter(user=entity.user, client_id=ANY_NAME), {"producer_byte_rate": 1e9}
        walk.admin.alter_client_quotas(ClientQuotaAlteration(entity, quotas), validate_only=True)
        assert walk.admin.describe_client_quotas(wanted) == {}
        walk.admin.alter_client_quotas(ClientQuotaAlteration(entity, quotas))
        until(lambda: walk.admin.describe_client_quotas(wanted) == {entity: quotas})
        walk.admin.alter_client_quotas(ClientQuotaAlteration(entity, {"producer_byte_rate": None}))
        until(lambda: walk.admin.describe_client_quotas(wanted) == {})
        with pytest.raises(KafkaError, match=f"alter quotas of user '{entity.user}', client-id 'app'") as caught:
            walk.admin.alter_client_quotas(ClientQuotaAlteration(entity, {"no_such_rate": 1}))
        assert caught.value.error is Error.INVALID_REQUEST

    def test_without_an_authorizer_there_are_no_acls(self, walk: Walk) -> None:
        walk.needs("DescribeAcls", "CreateAcls", "DeleteAcls")
        acl = AclBinding(ResourcePattern("topic", walk.name()), AccessControlEntry("User:alice", "read"))
        with pytest.raises(KafkaError) as described:
            walk.admin.describe_acls()
        with pytest.raises(KafkaError) as created:
            walk.admin.create_acls(acl)
        with pytest.raises(KafkaError) as deleted:
            walk.admin.delete_acls(AclBindingFilter())
        assert {caught.value.error for caught in (described, created, deleted)} == {Error.SECURITY_DISABLED}


def _coordinator(walk: Walk, group: str) -> int:
    with Client(walk.kind.bootstrap, exclude=walk.kind.exclude) as client:
        network = client.network
        return network.run(coordinators(network.core, [group], GROUP, network.deadline()))[group]


def _in_transaction(walk: Walk, topic: str, name: str) -> confluent_kafka.Producer:
    """A producer with a record in an open transaction."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": walk.kind.bootstrap, "transactional.id": name, "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(SECONDS) == 0
    return producer


def _open_in(walk: Walk, topic: str) -> dict[int, int]:
    """{producer id: where its open transaction begins}, -1 for none."""
    (states,) = walk.admin.describe_producers([(topic, 0)]).values()
    return {state.producer_id: state.transaction_start for state in states}
