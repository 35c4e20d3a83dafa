"""CreatePartitions, DeleteRecords, DescribeCluster, DescribeLogDirs and OffsetForLeaderEpoch."""

from __future__ import annotations

import shutil
import threading

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error

from ..limits import wait_until


def add_partitions(wire, *wanted, version=3, validate_only=False):
    """The outcomes; `wanted` are (name, count) or (name, count, brokers of each new partition)."""
    request = messages.CreatePartitionsRequest
    topics = []
    for name, count, *assigned in wanted:
        brokers = [request.CreatePartitionsAssignment(broker_ids=ids) for ids in assigned[0]] if assigned else None
        topics.append(request.CreatePartitionsTopic(name=name, count=count, assignments=brokers))
    return wire.ask(request(topics=topics, timeout_ms=30_000, validate_only=validate_only), version).results


def count_of(wire, topic):
    return len(wire.metadata(topic).topics[0].partitions)


def delete_before(wire, topic, offset, partition=0, version=2):
    request = messages.DeleteRecordsRequest
    asked = request.DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [request.DeleteRecordsTopic(name=topic, partitions=[asked])]
    return wire.ask(request(topics=topics, timeout_ms=1000), version).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_that_are_written_to_and_stay(tmp_path, connect, make, version):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        (outcome,) = add_partitions(wire, ("t", 3), version=version)
        assert (outcome.name, outcome.error_code, outcome.error_message) == ("t", 0, None)
        assert wire.produce("t", make.records(b"v"), partition=2).error_code == 0
    with Broker(tmp_path / "data") as broker:
        assert count_of(connect(broker.bootstrap), "t") == 3


MORE = [
    (("t", 2), Error.INVALID_PARTITIONS),
    (("t", 1), Error.INVALID_PARTITIONS),
    (("t", -1), Error.INVALID_PARTITIONS),
    (("t", 10**9), Error.INVALID_PARTITIONS),
    (("missing", 3), Error.UNKNOWN_TOPIC_OR_PARTITION),
    (("t", 4, [[1]]), Error.INVALID_REPLICA_ASSIGNMENT),
    (("t", 3, [[2]]), Error.INVALID_REPLICA_ASSIGNMENT),
    (("t", 3, [[1, 2]]), Error.INVALID_REPLICA_ASSIGNMENT),
]


@pytest.mark.parametrize(("wanted", "error"), MORE)
def test_each_topic_has_its_own_outcome(wire, wanted, error):
    wire.create("t", 2)
    wire.create("good")
    outcomes = {outcome.name: outcome for outcome in add_partitions(wire, wanted, ("good", 2))}
    assert outcomes[wanted[0]].error_code == error
    assert outcomes[wanted[0]].error_message
    assert outcomes["good"].error_code == 0
    assert (count_of(wire, "t"), count_of(wire, "good")) == (2, 2)


def test_new_partitions_may_be_assigned_to_the_one_broker_or_only_checked(wire):
    wire.create("t")
    assert add_partitions(wire, ("t", 2), validate_only=True)[0].error_code == 0
    assert count_of(wire, "t") == 1
    assert add_partitions(wire, ("t", 3, [[1], [1]]))[0].error_code == 0
    assert count_of(wire, "t") == 3


def test_a_topic_that_is_to_grow_twice_is_refused(wire):
    wire.create("t")
    (outcome,) = add_partitions(wire, ("t", 2), ("t", 3))
    assert (outcome.error_code, count_of(wire, "t")) == (Error.INVALID_REQUEST, 1)


def test_there_are_no_more_topics_and_partitions_than_the_broker_allows(tmp_path, connect):
    with Broker(tmp_path / "data", max_topics=2, max_partitions=4) as broker:
        wire = connect(broker.bootstrap)
        assert wire.create("a", 2).error_code == 0
        assert wire.create("b", 3).error_code == Error.POLICY_VIOLATION
        assert wire.metadata("b", create=True).topics[0].error_code == 0
        assert add_partitions(wire, ("a", 4))[0].error_code == Error.POLICY_VIOLATION
        assert add_partitions(wire, ("a", 3))[0].error_code == 0
        assert wire.metadata("c", create=True).topics[0].error_code == Error.POLICY_VIOLATION
        assert sorted(topic.name for topic in wire.metadata().topics) == ["a", "b"]


@pytest.mark.parametrize("by_metadata", [False, True])
def test_a_client_that_goes_away_makes_no_room_for_more_topics_while_its_own_is_created(
    tmp_path, connect, hold_renames, by_metadata
):
    with Broker(tmp_path / "data", max_topics=1) as broker:
        begun, go_on = hold_renames(broker)
        wire, leaving = connect(broker.bootstrap), connect(broker.bootstrap)
        wire.metadata()
        topic = messages.MetadataRequest.MetadataRequestTopic(name="a")
        if by_metadata:
            leaving.send(messages.MetadataRequest(topics=[topic]), 12)
        else:
            kind = messages.CreateTopicsRequest
            created = kind.CreatableTopic(name="a", num_partitions=1, replication_factor=1)
            leaving.send(kind(topics=[created]), 7)
        assert begun.wait(30)
        leaving.reset()
        wait_until(lambda: broker.stats()["connections"]["open"] == 1)
        threading.Timer(1, go_on.set).start()
        assert wire.create("b").error_code == Error.POLICY_VIOLATION
        wait_until(lambda: [found.name for found in wire.metadata().topics] == ["a"])


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_records_for_good(tmp_path, connect, make, version):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        for number in range(5):
            wire.produce("t", make.records(b"%d" % number))
        outcome = delete_before(wire, "t", 3, version=version)
        assert (outcome.error_code, outcome.low_watermark) == (0, 3)
        assert wire.fetch("t", 2).error_code == Error.OFFSET_OUT_OF_RANGE
        assert wire.fetch("t", 3).log_start_offset == 3
        assert delete_before(wire, "t", 1).low_watermark == 3
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert wire.offset_at("t", -2).offset == 3
        assert delete_before(wire, "t", -1).low_watermark == 5
        assert wire.offset_at("t", -2).offset == 5


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "error"),
    [
        ("t", 0, 2, Error.OFFSET_OUT_OF_RANGE),
        ("t", 0, -2, Error.OFFSET_OUT_OF_RANGE),
        ("t", 1, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, 0, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0, 0, Error.POLICY_VIOLATION),
        ("__transaction_state", 0, 0, Error.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_deleted_is_refused(wire, make, topic, partition, offset, error):
    wire.create("t")
    wire.create("compacted", cleanup_policy="compact")
    wire.produce("t", make.records(b"v"))
    wire.ask(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
    outcome = delete_before(wire, topic, offset, partition)
    assert (outcome.error_code, outcome.low_watermark) == (error, -1)
    assert wire.offset_at("t", -2).offset == 0


@pytest.mark.parametrize("version", range(2))
def test_the_cluster_is_this_broker_where_the_client_reached_it(wire, broker, version):
    answer = wire.ask(messages.DescribeClusterRequest(), version)
    (node,) = answer.brokers
    assert (answer.error_code, f"{node.host}:{node.port}") == (0, broker.bootstrap)
    assert (answer.controller_id, node.broker_id) == (1, 1)
    assert answer.cluster_id == wire.metadata().cluster_id


@pytest.mark.parametrize(("kind", "error"), [(2, Error.MISMATCHED_ENDPOINT_TYPE), (0, Error.UNSUPPORTED_ENDPOINT_TYPE)])
def test_there_are_no_other_nodes_than_brokers(wire, kind, error):
    answer = wire.ask(messages.DescribeClusterRequest(endpoint_type=kind), 1)
    assert (answer.error_code, answer.brokers) == (error, [])


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_what_partitions_take_of_the_disk(wire, make, tmp_path, version):
    wire.create("t", 2)
    wire.create("u")
    wire.produce("t", make.records(b"v" * 1000), partition=1)
    request = messages.DescribeLogDirsRequest
    (everything,) = wire.ask(request(topics=None), version).results
    assert (everything.error_code, everything.log_dir) == (0, str(tmp_path / "data"))
    sizes = {(t.name, p.partition_index): p.partition_size for t in everything.topics for p in t.partitions}
    stored = (tmp_path / "data" / "t-1" / f"{0:020}.log").stat().st_size
    assert sizes == {("t", 0): 0, ("t", 1): stored, ("u", 0): 0}
    if version >= 4:
        disk = shutil.disk_usage(tmp_path)
        assert everything.total_bytes == disk.total
        assert 0 < everything.usable_bytes <= disk.total
    asked = [request.DescribableLogDirTopic(topic="t", partitions=[1, 7, -1])]
    (some,) = wire.ask(request(topics=asked), version).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in some.topics] == [("t", [1])]


def end_of_epoch(wire, epoch, current=-1, topic="t", partition=0, version=4):
    request = messages.OffsetForLeaderEpochRequest
    asked = request.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    topics = [request.OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    return wire.ask(request(topics=topics), version).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(2, 5))
def test_every_version_tells_where_an_epoch_ends(wire, make, version):
    wire.create("t")
    wire.produce("t", make.records(b"a", b"b"))
    answer = end_of_epoch(wire, 0, version=version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, 0, 2)
    for epoch in (1, -1):  # one that is yet to come, and none
        answer = end_of_epoch(wire, epoch, version=version)
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, -1, -1)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"current": 5}, Error.UNKNOWN_LEADER_EPOCH),
        ({"partition": 1}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "missing"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_an_epoch_of_what_is_not_there_is_refused(wire, asked, error):
    wire.create("t")
    answer = end_of_epoch(wire, 0, **asked)
    assert (answer.error_code, answer.end_offset) == (error, -1)
