"""What administrators ask of a cluster, answered by one node: reassignments, elections, credentials, quotas, ACLs."""

from __future__ import annotations

import errno

import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener
from tagwire.errors import Error


@pytest.fixture
def topic(wire):
    wire.create("t", 2)
    return "t"


def test_no_partition_is_moving(wire, topic):
    request = messages.ListPartitionReassignmentsRequest
    named = request.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 9])
    for topics in (None, [], [named]):
        answer = wire.ask(request(topics=topics, timeout_ms=1000), 0)
        assert (answer.error_code, answer.topics) == (0, [])


@pytest.mark.parametrize("version", range(2))
def test_a_partition_can_be_assigned_to_the_broker_that_has_it_and_to_no_other(wire, topic, version):
    request = messages.AlterPartitionReassignmentsRequest

    def outcome(name, index, replicas):
        wanted = request.ReassignablePartition(partition_index=index, replicas=replicas)
        topics = [request.ReassignableTopic(name=name, partitions=[wanted])]
        answer = wire.ask(request(topics=topics, timeout_ms=1000), version)
        (found,) = answer.responses[0].partitions
        assert (found.partition_index, bool(found.error_message)) == (index, bool(found.error_code))
        return found.error_code

    assert outcome("t", 0, [1]) == 0
    assert outcome("t", 0, None) == Error.NO_REASSIGNMENT_IN_PROGRESS
    for replicas in ([], [2], [1, 2], [1, 1]):
        assert outcome("t", 1, replicas) == Error.INVALID_REPLICA_ASSIGNMENT
    assert outcome("t", 2, [1]) == outcome("no", 0, None) == Error.UNKNOWN_TOPIC_OR_PARTITION


def elected(wire, version=2, kind=0, **partitions):
    request = messages.ElectLeadersRequest
    topics = [request.TopicPartitions(topic=name, partitions=indexes) for name, indexes in partitions.items()]
    answer = wire.ask(request(election_type=kind, topic_partitions=topics or None, timeout_ms=1000), version)
    found = {
        (topic.topic, result.partition_id): result.error_code
        for topic in answer.replica_election_results
        for result in topic.partition_result
    }
    return answer.error_code, found


@pytest.mark.parametrize(("version", "kind"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1)])
def test_the_one_broker_leads_already(wire, topic, version, kind):
    assert elected(wire, version, kind, t=[0, 1, 7], no=[0]) == (
        0,
        {
            ("t", 0): Error.ELECTION_NOT_NEEDED,
            ("t", 1): Error.ELECTION_NOT_NEEDED,
            ("t", 7): Error.UNKNOWN_TOPIC_OR_PARTITION,
            ("no", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        },
    )
    assert elected(wire, version, kind) == (0, {})
    if version:
        assert elected(wire, version, 2, t=[0]) == (Error.INVALID_REQUEST, {})


def test_for_a_partition_that_is_offline_there_is_no_other_leader(wire, broker, topic, make):
    broker.disk.fail("sync", errno.EIO)
    assert wire.produce("t", make.records(b"v"), partition=1).error_code == Error.KAFKA_STORAGE_ERROR
    broker.disk.mend()
    assert elected(wire, kind=0) == (0, {("t", 1): Error.PREFERRED_LEADER_NOT_AVAILABLE})
    assert elected(wire, kind=1, t=[1]) == (0, {("t", 1): Error.ELIGIBLE_LEADERS_NOT_AVAILABLE})


def credentials(wire, *names):
    """{user: (error, [(mechanism, iterations)])}."""
    request = messages.DescribeUserScramCredentialsRequest
    answer = wire.ask(request(users=[request.UserName(name=name) for name in names] or None), 0)
    assert answer.error_code == 0
    return {
        result.user: (result.error_code, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in answer.results
    }


def altered(wire, deletions=(), upsertions=()):
    """{user: error}."""
    request = messages.AlterUserScramCredentialsRequest
    gone = [request.ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in deletions]
    new = [
        request.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"hidden"
        )
        for name, mechanism, iterations in upsertions
    ]
    answer = wire.ask(request(deletions=gone, upsertions=new), 0)
    assert "hidden" not in str(answer)
    return {result.user: result.error_code for result in answer.results}


USERS = {"alice": "wonderland", "bob": "builder"}


def test_where_no_listener_asks_for_scram_nobody_has_a_credential(connect):
    with Broker(users=USERS) as broker:
        wire = connect(broker.bootstrap)
        assert credentials(wire) == {}
        assert credentials(wire, "alice") == {"alice": (Error.RESOURCE_NOT_FOUND, [])}


def test_a_user_has_a_credential_of_each_mechanism_a_listener_asks_for(guarded):
    assert credentials(guarded) == {"alice": (0, [(2, 4096)]), "bob": (0, [(2, 4096)])}
    assert credentials(guarded, "bob", "eve", "eve") == {
        "bob": (0, [(2, 4096)]),
        "eve": (Error.DUPLICATE_RESOURCE, []),
    }


def test_users_are_not_changed_over_the_wire(guarded):
    assert altered(guarded, [("alice", 2)], [("eve", 1, 8192)]) == {
        "alice": Error.POLICY_VIOLATION,
        "eve": Error.POLICY_VIOLATION,
    }
    assert altered(guarded, [("alice", 1), ("eve", 2)]) == dict.fromkeys(("alice", "eve"), Error.RESOURCE_NOT_FOUND)
    assert altered(guarded, [("", 1), ("bob", 9)]) == {
        "": Error.UNACCEPTABLE_CREDENTIAL,
        "bob": Error.UNSUPPORTED_SASL_MECHANISM,
    }
    assert altered(guarded, [], [("eve", 1, 100), ("bob", 2, 16_385)]) == dict.fromkeys(
        ("eve", "bob"), Error.UNACCEPTABLE_CREDENTIAL
    )
    assert altered(guarded, [("bob", 2)], [("bob", 2, 4096)]) == {"bob": Error.DUPLICATE_RESOURCE}
    assert credentials(guarded).keys() == {"alice", "bob"}


@pytest.fixture
def guarded(connect):
    """A wire to a broker that has SCRAM users; it has come in at the other door."""
    with Broker(listeners=[Listener(), Listener(sasl=("SCRAM-SHA-512", "PLAIN"))], users=USERS) as broker:
        yield connect(broker.bootstrap)


@pytest.mark.parametrize("version", range(2))
def test_there_are_no_quotas_and_none_can_be_set(wire, version):
    request = messages.DescribeClientQuotasRequest

    def described(kind, match_type=2):
        answer = wire.ask(request(components=[request.ComponentData(entity_type=kind, match_type=match_type)]), version)
        return answer.error_code, answer.entries

    assert wire.ask(request(components=[]), version).entries == []
    assert described("user") == (0, [])
    assert described("zebra") == (Error.UNSUPPORTED_VERSION, None)
    assert described("ip", 3) == (Error.INVALID_REQUEST, None)

    kind = messages.AlterClientQuotasRequest

    def changed(entity, key, remove):
        entry = kind.EntryData(
            entity=[kind.EntityData(entity_type=entity, entity_name=None)],
            ops=[kind.OpData(key=key, value=1.0, remove=remove)],
        )
        (answer,) = wire.ask(kind(entries=[entry]), version).entries
        assert [one.entity_type for one in answer.entity] == [entity]
        return answer.error_code

    assert changed("user", "producer_byte_rate", True) == 0
    assert changed("user", "producer_byte_rate", False) == Error.INVALID_REQUEST
    assert changed("user", "no_such_rate", True) == Error.INVALID_REQUEST
    assert changed("zebra", "producer_byte_rate", True) == Error.INVALID_REQUEST


@pytest.mark.parametrize("version", range(1, 4))
def test_there_are_no_acls(wire, version):
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    answer = wire.ask(messages.DescribeAclsRequest(**anything), version)
    assert (answer.error_code, answer.resources) == (Error.SECURITY_DISABLED, [])
    create, delete = messages.CreateAclsRequest, messages.DeleteAclsRequest
    new = create.AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3)
    answer = wire.ask(create(creations=[new, new]), version)
    assert [result.error_code for result in answer.results] == [Error.SECURITY_DISABLED] * 2
    answer = wire.ask(delete(filters=[delete.DeleteAclsFilter(**anything)]), version)
    assert [result.error_code for result in answer.filter_results] == [Error.SECURITY_DISABLED]


def test_topics_and_the_broker_have_configurations(wire, topic):
    request = messages.ListConfigResourcesRequest

    def listed(*kinds):
        answer = wire.ask(request(resource_types=list(kinds)), 1)
        return answer.error_code, {(one.resource_type, one.resource_name) for one in answer.config_resources}

    assert listed() == listed(2, 4) == (0, {(2, "t"), (4, "1")})
    assert listed(2) == (0, {(2, "t")})
    assert listed(16) == listed(32) == listed(8) == (0, set())
    assert listed(2, 99) == (Error.UNSUPPORTED_VERSION, set())
    assert wire.ask(request(), 0).config_resources == []


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_can_be_moved_to_the_directory_it_is_in_and_to_no_other(wire, topic, version):
    path = wire.ask(messages.DescribeLogDirsRequest(topics=None), 4).results[0].log_dir
    request = messages.AlterReplicaLogDirsRequest

    def moved(path):
        topics = [request.AlterReplicaLogDirTopic(name="t", partitions=[0, 5])]
        answer = wire.ask(request(dirs=[request.AlterReplicaLogDir(path=path, topics=topics)]), version)
        return [result.error_code for result in answer.results[0].partitions]

    assert moved(path) == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert moved("/elsewhere") == [Error.LOG_DIR_NOT_FOUND] * 2
