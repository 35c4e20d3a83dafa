"""What administrators ask of a cluster, answered by one node: reassignments, elections, ACLs."""

from __future__ import annotations

import errno

import pytest

from tagwire import messages
from tagwire.broker import Cluster
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
    assert moved(wire, log_dir(wire), version) == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert moved(wire, "/elsewhere", version) == [Error.LOG_DIR_NOT_FOUND] * 2


def log_dir(wire):
    return wire.ask(messages.DescribeLogDirsRequest(topics=None), 4).results[0].log_dir


def moved(wire, path, version=2):
    request = messages.AlterReplicaLogDirsRequest
    topics = [request.AlterReplicaLogDirTopic(name="t", partitions=[0, 5])]
    answer = wire.ask(request(dirs=[request.AlterReplicaLogDir(path=path, topics=topics)]), version)
    return [result.error_code for result in answer.results[0].partitions]


def test_a_partition_that_is_offline_cannot_be_moved(wire, topic, broker, make):
    broker.disk.fail("sync", times=1)
    assert wire.produce("t", make.records(b"v")).error_code == Error.KAFKA_STORAGE_ERROR
    assert moved(wire, log_dir(wire)) == [Error.KAFKA_STORAGE_ERROR, Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_that_other_brokers_hold_cannot_be_moved_by_this_one(connect):
    with Cluster(nodes=2, fsync="never") as cluster:
        wire = connect(cluster.nodes[1].bootstrap)
        wire.create("t")
        other = ({1, 2} - {cluster.leader("t", 0)}).pop()
        wire = connect(cluster.nodes[other].bootstrap)
        assert moved(wire, log_dir(wire)) == [Error.REPLICA_NOT_AVAILABLE, Error.UNKNOWN_TOPIC_OR_PARTITION]
