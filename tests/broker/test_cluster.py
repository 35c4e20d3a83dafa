"""Several nodes over one store: who leads what, what the others refuse, and how nodes end and come back."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter

import pytest

from tagwire import messages
from tagwire.broker import Cluster, Listener
from tagwire.broker.handlers import produce
from tagwire.errors import ConfigError, Error, KafkaError, TagwireError
from tagwire.records import Record, batch_headers, write

from ..limits import wait_until
from .conftest import produce_request


@pytest.fixture
def cluster():
    with Cluster(fsync="never") as running:
        yield running


@pytest.fixture
def at(cluster, connect):
    """Opens a connection to a node."""
    return lambda node, **options: connect(cluster.nodes[node].bootstrap, **options)


def create(wire, name, partitions=1, replication_factor=3, assignments=()):
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else replication_factor,
        assignments=[
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in enumerate(assignments)
        ],
    )
    return wire.ask(request(topics=[topic], timeout_ms=5000), 7).topics[0]


def described(wire, topic, partition=0):
    (found,) = wire.metadata(topic).topics
    return next(one for one in found.partitions if one.partition_index == partition)


def others(cluster, topic, partition=0):
    return [node for node in cluster.nodes if node != cluster.leader(topic, partition)]


# What everyone is told ------------------------------------------------------------------------------------------------


def test_every_node_tells_of_all_nodes_at_their_own_addresses(cluster, at):
    for node in cluster.nodes:
        answer = at(node).metadata()
        told = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        assert told == {each.node_id: each.bootstrap for each in cluster.nodes.values()}
        described = at(node).ask(messages.DescribeClusterRequest(), 0)
        assert {broker.broker_id: f"{broker.host}:{broker.port}" for broker in described.brokers} == told
        assert answer.controller_id == described.controller_id == 1
        assert at(node).ask(messages.ApiVersionsRequest(), 0).error_code == 0


def test_every_node_lists_the_brokers_that_run(cluster, at):
    request = messages.ListConfigResourcesRequest

    def listed(node):
        answer = at(node).ask(request(resource_types=[4]), 1)
        return [one.resource_name for one in answer.config_resources]

    assert [listed(node) for node in cluster.nodes] == [["1", "2", "3"]] * 3
    cluster.kill(3)
    assert listed(1) == ["1", "2"]


def test_a_node_tells_how_many_replicas_a_topic_has_by_default(cluster, at):
    wire = at(2)
    request = messages.DescribeConfigsRequest
    asked = request.DescribeConfigsResource(
        resource_type=4, resource_name="2", configuration_keys=["default.replication.factor"]
    )
    ((told,),) = [result.configs for result in wire.ask(request(resources=[asked]), 4).results]
    assert told.value == str(create(wire, "t", replication_factor=-1).replication_factor)


def test_leaders_and_replicas_are_spread_over_the_nodes(cluster, at):
    create(at(1), "t", 6, replication_factor=2)
    (topic,) = at(3).metadata("t").topics
    leaders = [one.leader_id for one in sorted(topic.partitions, key=lambda one: one.partition_index)]
    assert Counter(leaders) == {1: 2, 2: 2, 3: 2}
    assert leaders[:3] == leaders[3:]  # each the one after the last
    held = Counter(node for one in topic.partitions for node in one.replica_nodes)
    assert held == {1: 4, 2: 4, 3: 4}
    for one in topic.partitions:
        assert one.replica_nodes[0] == one.leader_id
        assert one.isr_nodes == one.replica_nodes


def test_a_topic_has_as_many_replicas_as_are_asked_for(cluster, at):
    for factor in (1, 2, 3):
        answer = create(at(1), f"t{factor}", replication_factor=factor)
        assert (answer.error_code, answer.replication_factor) == (0, factor)
        assert len(described(at(2), f"t{factor}").replica_nodes) == factor
    assert create(at(1), "usual", replication_factor=-1).replication_factor == 3
    assert create(at(1), "too-many", replication_factor=4).error_code == Error.INVALID_REPLICATION_FACTOR


def test_partitions_can_be_assigned_to_nodes(cluster, at):
    assert create(at(1), "t", assignments=[[2, 3], [3, 1]]).error_code == 0
    assert described(at(1), "t", 0).replica_nodes == [2, 3]
    assert (cluster.leader("t", 0), cluster.leader("t", 1)) == (2, 3)
    for wrong in ([[4]], [[1, 1]], [[]], [[1, 2], [3]]):
        assert create(at(1), "wrong", assignments=wrong).error_code == Error.INVALID_REPLICA_ASSIGNMENT


def test_each_listener_tells_of_the_same_one_of_other_nodes(connect):
    with Cluster(2, listeners=[Listener(), Listener(advertise=("edge.example", 0))], fsync="never") as cluster:
        for number, host in enumerate(("127.0.0.1", "edge.example")):
            for node in cluster.nodes.values():
                told = {(one.node_id, one.host, one.port) for one in connect(node.addresses[number]).metadata().brokers}
                assert told == {
                    (each.node_id, host, int(each.addresses[number].rpartition(":")[2]))
                    for each in cluster.nodes.values()
                }


# Who leads ------------------------------------------------------------------------------------------------------------


def test_who_does_not_lead_a_partition_refuses_and_tells_who_does(cluster, at, make):
    create(at(1), "t", replication_factor=1)
    leader = cluster.leader("t", 0)
    topic_id = at(1).metadata("t").topics[0].topic_id
    for node in others(cluster, "t"):
        wire = at(node)
        answer = wire.ask(make.produce("t", make.records(b"v")), 10)
        (refused,) = answer.responses[0].partition_responses
        assert refused.error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (leader, 0)
        (endpoint,) = answer.node_endpoints
        assert (endpoint.node_id, f"{endpoint.host}:{endpoint.port}") == (leader, cluster.nodes[leader].bootstrap)
        answer = wire.ask(make.fetch(topic_id, 0), 16)
        (refused,) = answer.responses[0].partitions
        assert refused.error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert refused.current_leader.leader_id == answer.node_endpoints[0].node_id == leader
        assert wire.produce("t", make.records(b"v")).error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert wire.fetch("t", 0).error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert wire.offset_at("t", -1).error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert epoch_end(wire, "t", 0).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert at(leader).offset_at("t", -1).offset == 0


def epoch_end(wire, topic, epoch, known=-1):
    request = messages.OffsetForLeaderEpochRequest
    wanted = request.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=known)
    topics = [request.OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    return wire.ask(request(replica_id=-1, topics=topics), 3).topics[0].partitions[0]


def test_who_does_not_lead_a_compacted_topic_says_so_before_it_says_that_nothing_is_deleted_there(cluster, at):
    compacted = messages.CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact")
    topic = messages.CreateTopicsRequest.CreatableTopic(
        name="t", num_partitions=1, replication_factor=3, configs=[compacted]
    )
    at(1).ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
    kind = messages.DeleteRecordsRequest
    asked = kind(topics=[kind.DeleteRecordsTopic(name="t", partitions=[kind.DeleteRecordsPartition(offset=0)])])
    said = {node: at(node).ask(asked, 2).topics[0].partitions[0].error_code for node in cluster.nodes}
    assert said.pop(cluster.leader("t", 0)) == Error.POLICY_VIOLATION
    assert set(said.values()) == {Error.NOT_LEADER_OR_FOLLOWER}


def test_each_move_has_an_epoch_of_its_own_which_stands_in_the_batches(cluster, at, make):
    create(at(1), "t")
    led = []
    for epoch in range(4):
        leader = cluster.leader("t", 0)
        assert at(leader).produce("t", make.records(b"v", b"w")).base_offset == 2 * epoch
        found = described(at(1), "t")
        assert (found.leader_id, found.leader_epoch) == (leader, epoch)
        led.append(leader)
        cluster.move_leader("t", 0, leader % 3 + 1)
    assert len(set(led)) == 3
    wire = at(cluster.leader("t", 0))
    headers = list(batch_headers(memoryview(wire.fetch("t", 0).records)))
    assert [header.partition_leader_epoch for header in headers] == [0, 1, 2, 3]
    assert [epoch_end(wire, "t", epoch).end_offset for epoch in range(5)] == [2, 4, 6, 8, 8]
    assert epoch_end(wire, "t", 5).end_offset == -1


def test_an_epoch_in_which_nothing_was_written_is_not_told(cluster, at, make):
    create(at(1), "t", assignments=[[1, 2]])
    at(1).produce("t", make.records(b"v"))
    for node in (2, 1, 2, 1):
        cluster.move_leader("t", 0, node)
    assert described(at(1), "t").leader_epoch == 4
    at(1).produce("t", make.records(b"w"))
    ends = [epoch_end(at(1), "t", epoch) for epoch in range(5)]
    assert [(told.leader_epoch, told.end_offset) for told in ends] == [(0, 1), (0, 1), (0, 1), (0, 1), (4, 2)]


def test_an_offset_is_told_with_the_epoch_in_which_its_record_was_written(cluster, at, make):
    create(at(1), "t")
    for number in range(3):
        at(cluster.leader("t", 0)).produce("t", make.records(b"v", b"w", timestamp=1000 + 10 * (number != 1)))
        cluster.move_leader("t", 0, cluster.leader("t", 0) % 3 + 1)
    wire = at(cluster.leader("t", 0))
    found = {time: wire.offset_at("t", time) for time in (-3, -2, -1, 0, 1010)}
    assert {time: (one.offset, one.leader_epoch) for time, one in found.items()} == {
        -3: (1, 0),
        -2: (0, 0),
        -1: (6, 3),
        0: (0, 0),
        1010: (0, 0),
    }
    kind = messages.DeleteRecordsRequest
    before_4 = kind.DeleteRecordsTopic(name="t", partitions=[kind.DeleteRecordsPartition(offset=3)])
    wire.ask(kind(topics=[before_4], timeout_ms=5000), 2)
    assert (wire.offset_at("t", -2).offset, wire.offset_at("t", -2).leader_epoch) == (3, 1)
    assert (wire.offset_at("t", 1010).offset, wire.offset_at("t", 1010).leader_epoch) == (4, 2)


def test_of_no_epoch_no_end_is_told(cluster, at, make):
    create(at(1), "t")
    wire = at(cluster.leader("t", 0))
    wire.produce("t", make.records(b"v"))
    told = epoch_end(wire, "t", -1)
    assert (told.error_code, told.leader_epoch, told.end_offset) == (0, -1, -1)


def test_a_client_that_knows_another_epoch_is_told_so(cluster, at, make):
    create(at(1), "t")
    cluster.move_leader("t", 0, others(cluster, "t")[0])
    wire = at(cluster.leader("t", 0))
    for known, error in ((0, Error.FENCED_LEADER_EPOCH), (1, Error.NONE), (2, Error.UNKNOWN_LEADER_EPOCH)):
        assert wire.fetch("t", 0, current_leader_epoch=known).error_code == error
        assert epoch_end(wire, "t", 0, known).error_code == error
    fenced = wire.ask(make.fetch(wire.metadata("t").topics[0].topic_id, 0, current_leader_epoch=0), 16)
    assert fenced.responses[0].partitions[0].current_leader.leader_epoch == 1


def test_a_replica_serves_readers_that_may_read_from_it_and_no_others(cluster, at, make):
    create(at(1), "t")
    at(cluster.leader("t", 0)).produce("t", make.records(b"v"))
    follower = at(others(cluster, "t")[0])
    assert follower.fetch("t", 0, version=11).high_watermark == 1
    assert follower.fetch("t", 0, version=10).error_code == Error.NOT_LEADER_OR_FOLLOWER


def add_partitions(wire, count, assigned=None):
    ask_for_partitions(wire, count, assigned)
    return Error.of(wire.receive().results[0].error_code)


def ask_for_partitions(wire, count, assigned=None):
    request = messages.CreatePartitionsRequest
    assignments = assigned and [request.CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
    wanted = request.CreatePartitionsTopic(name="t", count=count, assignments=assignments)
    wire.send(request(topics=[wanted], timeout_ms=20_000), 3)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_new_partitions_have_as_many_replicas_as_the_topics_others(cluster, at, replicas):
    wire = at(1)
    create(wire, "t", replication_factor=replicas)
    assert add_partitions(wire, 3) is Error.NONE
    assert [len(described(wire, "t", index).replica_nodes) for index in range(3)] == [replicas] * 3
    assert len({described(wire, "t", index).leader_id for index in range(3)}) == 3
    for other in {1, 2, 3} - {replicas}:
        assert add_partitions(wire, 4, [list(range(1, other + 1))]) is Error.INVALID_REPLICA_ASSIGNMENT
    assert add_partitions(wire, 4, [list(range(1, replicas + 1))]) is Error.NONE


def test_a_node_that_does_not_hold_a_partition_takes_the_leaders_place(cluster, at):
    create(at(1), "t", assignments=[[1, 2]])
    cluster.move_leader("t", 0, 3)
    assert described(at(1), "t").replica_nodes == [3, 2]
    assert cluster.leader("t", 0) == 3


def test_a_waiting_fetch_is_told_at_once_that_the_leader_has_moved(cluster, at, make):
    create(at(1), "t", assignments=[[1]])
    begun = threading.Event()
    cluster.intercept("Fetch", lambda call: begun.set())
    wire = at(1)
    wire.send(make.fetch("t", 0, max_wait_ms=60_000), 12)
    assert begun.wait(20)
    at(1).metadata()  # by then it waits
    cluster.move_leader("t", 0, 2)
    assert wire.receive().responses[0].partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_batch_whose_partition_is_added_to_a_transaction_while_the_leader_moves_is_refused(cluster, at, monkeypatch):
    create(at(1), "t", assignments=[[1, 2]])
    cluster.move_coordinator(1, transactional_id="tx")
    asked = messages.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    who = at(1).ask(asked, 4)
    begun, may, write_there = threading.Event(), threading.Event(), cluster.disk.write

    def when_it_may(*given):
        if not begun.is_set():
            begun.set()
            assert may.wait(30)
        write_there(*given)

    monkeypatch.setattr(cluster.disk, "write", when_it_may)
    identity = {"producer_id": who.producer_id, "producer_epoch": who.producer_epoch, "base_sequence": 0}
    request = produce_request("t", write([Record(None, b"v")], transactional=True, **identity))
    request.transactional_id = "tx"
    producer = at(1)
    producer.send(request, 12)
    assert begun.wait(30)
    cluster.move_leader("t", 0, 2)
    may.set()
    refused = producer.receive().responses[0].partition_responses[0]
    assert (refused.error_code, refused.current_leader.leader_id) == (Error.NOT_LEADER_OR_FOLLOWER, 2)
    assert at(2).offset_at("t", -1).offset == 0
    assert at(2).ask(request, 12).responses[0].partition_responses[0].error_code == Error.NONE


def test_a_batch_that_waits_to_be_written_while_the_leader_moves_is_not_of_the_next_epoch(cluster, at, monkeypatch):
    create(at(1), "t", assignments=[[1, 2]])
    begun, may, check = threading.Event(), threading.Event(), produce.check_batch

    def when_it_may(*given):
        begun.set()
        assert may.wait(30)
        return check(*given)

    monkeypatch.setattr(produce, "check_batch", when_it_may)
    request, producer = produce_request("t", write([Record(None, b"v")])), at(1)
    producer.send(request, 12)
    assert begun.wait(30)
    cluster.move_leader("t", 0, 2)
    may.set()
    refused = producer.receive().responses[0].partition_responses[0]
    assert (refused.error_code, refused.current_leader.leader_id) == (Error.NOT_LEADER_OR_FOLLOWER, 2)
    assert refused.log_start_offset == -1
    assert at(2).offset_at("t", -1).offset == 0
    assert at(2).ask(request, 12).responses[0].partition_responses[0].error_code == Error.NONE


def test_a_truncated_partition_has_lost_its_tail_and_goes_on_in_a_new_epoch(cluster, at, make):
    create(at(1), "t")
    wire = at(cluster.leader("t", 0))
    for _ in range(3):
        wire.produce("t", make.records(b"v", b"w"))
    cluster.truncate("t", 0, 3)  # inside the second batch
    assert wire.offset_at("t", -1).offset == 2
    found = described(wire, "t")
    assert (found.leader_id, found.leader_epoch) == (cluster.leader("t", 0), 1)
    assert wire.fetch("t", 2, current_leader_epoch=0).error_code == Error.FENCED_LEADER_EPOCH
    assert wire.fetch("t", 4).error_code == Error.OFFSET_OUT_OF_RANGE
    assert wire.produce("t", make.records(b"x")).base_offset == 2
    assert [(epoch_end(wire, "t", epoch).end_offset) for epoch in (0, 1)] == [2, 3]
    headers = list(batch_headers(memoryview(wire.fetch("t", 0).records)))
    assert [header.partition_leader_epoch for header in headers] == [0, 1]
    cluster.truncate("t", 0, 0)
    assert (wire.offset_at("t", -1).offset, described(wire, "t").leader_epoch) == (0, 2)
    with pytest.raises(ConfigError, match="offset=1 is not in t-0, which holds 0 to 0"):
        cluster.truncate("t", 0, 1)


@pytest.fixture
def truncating(cluster, at, make, monkeypatch):
    """Partition 0 of topic t, on nodes 1 and 2, while it is truncated, until `go_on` is called."""
    create(at(1), "t", assignments=[[1, 2]])
    for value in (b"a", b"b"):
        at(1).produce("t", make.records(value))
    begun, may, truncate = threading.Event(), threading.Event(), cluster.disk.truncate

    def when_it_may(fd, size):
        begun.set()
        assert may.wait(30)
        truncate(fd, size)

    monkeypatch.setattr(cluster.disk, "truncate", when_it_may)
    step = threading.Thread(target=cluster.truncate, args=("t", 0, 1))
    step.start()
    assert begun.wait(30)

    class Truncating:
        @staticmethod
        def go_on():
            may.set()
            step.join(30)

    yield Truncating
    Truncating.go_on()


def test_a_partition_whose_leader_stops_while_it_is_truncated_is_led_by_another(cluster, at, make, truncating):
    stopping = threading.Thread(target=cluster.stop, args=(1,))
    stopping.start()
    time.sleep(0.2)
    truncating.go_on()
    stopping.join(30)
    assert cluster.leader("t", 0) == 2
    assert at(2).produce("t", make.records(b"c")).error_code == 0


def test_who_would_lead_a_partition_that_is_being_truncated_leads_it_after_that(cluster, at, make, truncating):
    asking = at(1)
    ask_to_reassign(asking, [2])
    time.sleep(0.2)
    truncating.go_on()
    assert asking.receive().responses[0].partitions[0].error_code == Error.NONE
    assert described(at(2), "t").leader_epoch == 2
    assert at(2).produce("t", make.records(b"c")).base_offset == 1


def test_a_reader_is_told_at_once_where_the_log_is_not_the_one_that_it_has_read(cluster, at, make):
    create(at(1), "t")
    wire = at(cluster.leader("t", 0))
    for _ in range(3):
        wire.produce("t", make.records(b"v", b"w"))
    cluster.truncate("t", 0, 3)
    for _ in range(2):
        wire.produce("t", make.records(b"x", b"y"))

    def fetch(offset, last_fetched_epoch, session_id=0, session_epoch=-1):
        request = make.fetch("t", offset, max_wait_ms=30_000, session_id=session_id, session_epoch=session_epoch)
        request.topics[0].partitions[0].last_fetched_epoch = last_fetched_epoch
        return wire.ask(request, 12)

    def told(answer):
        partition = answer.responses[0].partitions[0]
        ends = partition.diverging_epoch
        return partition.error_code, ends.epoch, ends.end_offset, len(partition.records or b"") > 0

    assert [told(fetch(offset, 0)) for offset in (1, 2)] == [(0, -1, -1, True)] * 2
    assert [told(fetch(offset, 0)) for offset in (3, 4, 6, 7)] == [(0, 0, 2, False)] * 4
    assert told(fetch(4, 1)) == (0, -1, -1, True)
    assert told(fetch(7, 1)) == (0, 1, 6, False)
    assert told(fetch(2, 2))[0] == Error.OFFSET_OUT_OF_RANGE
    session = fetch(4, 1, session_epoch=0).session_id
    assert told(fetch(6, 0, session, 1)) == told(fetch(6, 0, session, 2)) == (0, 0, 2, False)


@pytest.mark.parametrize(("replica", "refusal"), [(-1, Error.NOT_LEADER_OR_FOLLOWER), (-2, Error.NONE)])
def test_who_debugs_is_told_of_offsets_by_any_replica(cluster, at, make, replica, refusal):
    create(at(1), "t", assignments=[[1, 2]])
    at(1).produce("t", make.records(b"v"))
    epoch = described(at(1), "t").leader_epoch
    kind = messages.ListOffsetsRequest

    def told(node, known=-1):
        asked = kind.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=known)
        message = kind(replica_id=replica, topics=[kind.ListOffsetsTopic(name="t", partitions=[asked])])
        (found,) = at(node).ask(message, 7).topics[0].partitions
        return Error.of(found.error_code), found.offset

    assert told(1) == (Error.NONE, 1)
    assert told(2) == (refusal, -1 if refusal else 1)
    assert told(2, epoch + 1)[0] is Error.UNKNOWN_LEADER_EPOCH
    assert told(3)[0] is Error.NOT_LEADER_OR_FOLLOWER


def test_epochs_and_records_are_there_when_a_cluster_is_started_again(tmp_path, connect, make):
    with Cluster(2, tmp_path / "data") as cluster:
        create(connect(cluster.nodes[1].bootstrap), "t", assignments=[[1, 2]])
        connect(cluster.nodes[1].bootstrap).produce("t", make.records(b"v"))
        cluster.move_leader("t", 0, 2)
        connect(cluster.nodes[2].bootstrap).produce("t", make.records(b"w"))
    with Cluster(2, tmp_path / "data") as cluster:
        wire = connect(cluster.nodes[cluster.leader("t", 0)].bootstrap)
        assert described(wire, "t").leader_epoch == 1
        assert [epoch_end(wire, "t", epoch).end_offset for epoch in (0, 1)] == [1, 2]


# How nodes end --------------------------------------------------------------------------------------------------------


def refuses(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_others_lead_what_a_node_led_that_ended_and_it_comes_back_at_its_addresses(cluster, at, end, make):
    create(at(1), "t", 6)
    client = at(2)
    address = cluster.nodes[2].bootstrap
    getattr(cluster, end)(2)
    assert client.is_closed()
    assert refuses(address)
    (topic,) = at(1).metadata("t").topics
    assert {one.leader_id for one in topic.partitions} == {1, 3}
    assert [one.isr_nodes for one in topic.partitions] == [
        [node for node in one.replica_nodes if node != 2] for one in topic.partitions
    ]
    assert all(one.offline_replicas == [2] for one in topic.partitions)
    assert [broker.node_id for broker in at(1).metadata().brokers] == [1, 3]
    cluster.start(2)
    assert cluster.nodes[2].bootstrap == address
    (topic,) = at(2).metadata("t").topics
    assert 2 not in {one.leader_id for one in topic.partitions}
    assert all(2 in one.isr_nodes for one in topic.partitions)


def test_what_only_a_node_that_ended_holds_has_no_leader_until_it_is_back(cluster, at):
    create(at(1), "t", assignments=[[3]])
    cluster.kill(3)
    found = described(at(1), "t")
    assert (found.error_code, found.leader_id, found.isr_nodes) == (Error.LEADER_NOT_AVAILABLE, -1, [3])
    assert cluster.leader("t", 0) is None
    cluster.start(3)
    assert described(at(1), "t").leader_id == 3


def test_starting_a_cluster_that_runs_starts_the_nodes_that_have_ended(cluster, at):
    cluster.kill(1)
    cluster.stop(3)
    cluster.start()
    for node in cluster.nodes:
        assert [broker.node_id for broker in at(node).metadata().brokers] == [1, 2, 3]
    cluster.start()


def test_a_node_that_was_not_in_sync_leads_by_an_unclean_election_alone(cluster, at):
    create(at(1), "t", assignments=[[1, 2]])
    cluster.stop(2)
    cluster.stop(1)
    cluster.start(2)
    assert described(at(3), "t").isr_nodes == [1]
    assert cluster.leader("t", 0) is None
    assert elect(at(3), 0) == Error.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect(at(3), 1) == 0
    assert cluster.leader("t", 0) == 2
    cluster.start(1)
    assert elect(at(3), 0) == 0
    assert cluster.leader("t", 0) == 1
    assert elect(at(3), 0) == Error.ELECTION_NOT_NEEDED


def elect(wire, kind):
    request = messages.ElectLeadersRequest
    topics = [request.TopicPartitions(topic="t", partitions=[0])]
    answer = wire.ask(request(election_type=kind, topic_partitions=topics, timeout_ms=1000), 2)
    return answer.replica_election_results[0].partition_result[0].error_code


def test_a_killed_node_resets_its_connections_and_a_stopped_one_ends_them(cluster, at):
    for end, seen in ((cluster.stop, b""), (cluster.kill, ConnectionResetError)):
        wire = at(3)
        wire.metadata()
        end(3)
        try:
            found = wire.socket.recv(1)
        except ConnectionResetError:
            found = ConnectionResetError
        assert found == seen
        cluster.start(3)


def test_an_isolated_node_reads_and_answers_nothing_until_it_is_healed(cluster, at):
    before = at(2)
    before.metadata()
    cluster.isolate(2)
    before.send(messages.MetadataRequest(), 12)
    after = at(2)
    after.send(messages.MetadataRequest(), 12)
    for wire in (before, after):
        wire.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.socket.settimeout(20)
    assert [broker.node_id for broker in at(1).metadata().brokers] == [1, 3]
    cluster.heal(2)
    for wire in (before, after):
        assert [broker.node_id for broker in wire.receive().brokers] == [1, 2, 3]


def test_a_connection_made_just_before_its_node_is_isolated_is_answered_once_it_is_healed(cluster, at):
    for _ in range(20):
        wires = [at(2) for _ in range(3)]
        cluster.isolate(2)
        cluster.heal(2)
        for wire in wires:
            assert wire.metadata().brokers


def test_an_isolated_node_that_nobody_has_noticed_leads_on_until_somebody_does(cluster, at):
    create(at(1), "t", assignments=[[2, 3]])
    cluster.isolate(2, fenced=False)
    assert described(at(1), "t").leader_id == 2
    cluster.isolate(2)
    assert described(at(1), "t").leader_id == 3


# What is its node's own -----------------------------------------------------------------------------------------------


def test_requests_interceptions_and_statistics_are_of_one_node_each(cluster, at):
    at(1).metadata()
    at(2).ask(messages.DescribeClusterRequest(), 0)
    counts = {node: each.requests.count("Metadata") for node, each in cluster.nodes.items()}
    assert counts == {1: 1, 2: 0, 3: 0}
    assert [each.stats()["connections"]["open"] for each in cluster.nodes.values()] == [1, 1, 0]
    own = cluster.nodes[2].intercept("Metadata", lambda call: None)
    all_of_them = cluster.intercept("Metadata", lambda call: None)
    for node in cluster.nodes:
        at(node).metadata()
    assert (len(own.calls), len(all_of_them.calls)) == (1, 2)


def test_a_reader_in_a_rack_is_sent_to_the_replica_there(connect, make):
    with Cluster(racks=["a", "b", None], fsync="never") as cluster:
        wire = connect(cluster.nodes[1].bootstrap)
        create(wire, "t", assignments=[[1, 2, 3]])
        wire.produce("t", make.records(b"v"))
        assert {one.node_id: one.rack for one in wire.metadata().brokers} == {1: "a", 2: "b", 3: None}
        sent = wire.fetch("t", 0, rack_id="b", max_wait_ms=60_000, min_bytes=1000)
        assert (sent.preferred_read_replica, sent.records) == (2, b"")
        for rack in ("a", "c", ""):
            stays = wire.fetch("t", 0, rack_id=rack)
            assert stays.preferred_read_replica == -1
            assert stays.records
        assert connect(cluster.nodes[2].bootstrap).fetch("t", 0, rack_id="b").records
        cluster.set_rack(3, "c")
        assert wire.fetch("t", 0, rack_id="c").preferred_read_replica == 3
        cluster.stop(2)
        assert wire.fetch("t", 0, rack_id="b").preferred_read_replica == -1


def test_a_reader_that_has_a_fetch_session_is_sent_to_a_replica_that_comes_to_its_rack(connect, make):
    with Cluster(racks=["a", None, None], fsync="never") as cluster:
        wire = connect(cluster.nodes[1].bootstrap)
        create(wire, "t", assignments=[[1, 2]])
        wire.produce("t", make.records(b"v"))

        def fetch(session_id, epoch, *wanted):
            parts = [
                messages.FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1) for offset in wanted
            ]
            topics = [messages.FetchRequest.FetchTopic(topic="t", partitions=parts)] if parts else []
            request = messages.FetchRequest(
                session_id=session_id, session_epoch=epoch, max_wait_ms=0, min_bytes=1, max_bytes=1, topics=topics
            )
            request.rack_id = "b"
            return wire.ask(request, 12)

        begun = fetch(0, 0, 0)
        assert begun.responses[0].partitions[0].records
        cluster.set_rack(2, "b")
        (told,) = fetch(begun.session_id, 1).responses[0].partitions
        assert (told.preferred_read_replica, told.records) == (2, b"")


def test_a_log_directory_has_what_its_node_holds(cluster, at):
    create(at(1), "t", assignments=[[1, 2], [2, 3]])
    for node, held in {1: [0], 2: [0, 1], 3: [1]}.items():
        (result,) = at(node).ask(messages.DescribeLogDirsRequest(topics=None), 4).results
        assert [one.partition_index for topic in result.topics for one in topic.partitions] == held


def test_partitions_are_reassigned_at_once(cluster, at):
    create(at(1), "t", assignments=[[1]])
    assert reassign(at(3), [3, 2]) == 0
    assert described(at(2), "t").replica_nodes == [3, 2]
    assert cluster.leader("t", 0) == 3
    assert reassign(at(3), [1, 3]) == 0
    assert cluster.leader("t", 0) == 3  # it holds it still
    assert reassign(at(3), [4]) == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_partition_has_other_numbers_of_replicas_only_where_the_request_allows_it(cluster, at):
    create(at(1), "t", assignments=[[1, 2]])
    strictly = {"version": 1, "allow_replication_factor_change": False}
    for replicas in ([1], [1, 2, 3]):
        assert reassign(at(3), replicas, **strictly) == Error.INVALID_REPLICATION_FACTOR
        assert described(at(1), "t").replica_nodes == [1, 2]
    assert reassign(at(3), [3, 3, 3], **strictly) == Error.INVALID_REPLICA_ASSIGNMENT
    assert reassign(at(3), [2, 3], **strictly) == 0
    assert reassign(at(3), [1, 2, 3], version=1) == 0
    assert described(at(1), "t").replica_nodes == [1, 2, 3]


def reassign(wire, replicas, version=0, **options):
    ask_to_reassign(wire, replicas, version, **options)
    return wire.receive().responses[0].partitions[0].error_code


def ask_to_reassign(wire, replicas, version=0, **options):
    request = messages.AlterPartitionReassignmentsRequest
    wanted = request.ReassignablePartition(partition_index=0, replicas=replicas)
    topics = [request.ReassignableTopic(name="t", partitions=[wanted])]
    wire.send(request(topics=topics, timeout_ms=1000, **options), version)


@pytest.fixture
def held(cluster, monkeypatch):
    """Holds a new leader epoch that is written down, from `held()` on: when `held.begun` is set, until `held.go_on`
    is."""
    rename = cluster.disk.rename

    def when_it_may(source, target):
        if target.name == "leader-epoch-checkpoint":
            found.begun.set()
            assert found.go_on.wait(30)
        rename(source, target)

    class Held:
        begun, go_on = threading.Event(), threading.Event()

        def __call__(self):
            monkeypatch.setattr(cluster.disk, "rename", when_it_may)

    yield (found := Held())
    found.go_on.set()


def test_new_partitions_are_assigned_by_how_many_there_are_when_their_turn_has_come(cluster, at, held):
    create(at(1), "t", assignments=[[1]])
    held()
    first, second = at(1), at(1)
    ask_for_partitions(first, 2)
    assert held.begun.wait(30)
    ask_for_partitions(second, 3, [[2], [3]])
    wait_until(lambda: cluster.nodes[1].requests.count("CreatePartitions") == 2)
    at(1).metadata("t")  # by then its handler has begun
    held.go_on.set()
    assert first.receive().results[0].error_code == 0
    assert second.receive().results[0].error_code == Error.INVALID_REPLICA_ASSIGNMENT
    assert len(at(1).metadata("t").topics[0].partitions) == 2


def test_an_election_for_all_partitions_tells_of_none_that_has_its_leader_by_its_turn(cluster, at, held):
    create(at(1), "t", assignments=[[1, 2]])
    cluster.move_leader("t", 0, 2)
    held()
    first, second = at(1), at(1)
    request = messages.ElectLeadersRequest(topic_partitions=None, timeout_ms=5000)
    first.send(request, 2)
    assert held.begun.wait(30)
    second.send(request, 2)
    wait_until(lambda: cluster.nodes[1].requests.count("ElectLeaders") == 2)
    at(1).metadata("t")  # by then its handler has begun
    held.go_on.set()
    assert [one.topic for one in first.receive().replica_election_results] == ["t"]
    assert second.receive().replica_election_results == []


def reassign_behind_another(cluster, at, held, replicas, **options):
    """The connection on which it was asked to reassign a partition while another client moves it to 3 and 2."""
    held()
    first, second = at(1), at(1)
    ask_to_reassign(first, [3, 2])
    assert held.begun.wait(30)
    ask_to_reassign(second, replicas, **options)
    wait_until(lambda: cluster.nodes[1].requests.count("AlterPartitionReassignments") == 2)
    at(1).metadata("t")  # by then its handler has begun
    return second


def test_how_many_replicas_a_partition_has_counts_when_its_reassignment_has_its_turn(cluster, at, held):
    create(at(1), "t", assignments=[[1]])
    strictly = {"version": 1, "allow_replication_factor_change": False}
    behind = reassign_behind_another(cluster, at, held, [2], **strictly)
    held.go_on.set()
    assert behind.receive().responses[0].partitions[0].error_code == Error.INVALID_REPLICATION_FACTOR
    assert described(at(1), "t").replica_nodes == [3, 2]


def test_a_cluster_that_is_closed_ends_what_is_to_be_decided_first(cluster, at, held, caplog):
    create(at(1), "t", assignments=[[1]])
    reassign_behind_another(cluster, at, held, [2])
    closing = threading.Thread(target=cluster.stop)
    closing.start()
    threading.Timer(0.5, held.go_on.set).start()
    closing.join(30)
    assert not closing.is_alive()
    assert [told.getMessage() for told in caplog.records if told.levelname == "ERROR"] == []


def test_a_leader_that_is_moved_for_a_client_that_goes_away_leads_in_the_epoch_of_its_log(cluster, at, held, make):
    create(at(1), "t", assignments=[[1]])
    held()
    leaving = at(1)
    ask_to_reassign(leaving, [3])
    assert held.begun.wait(30)
    before = cluster.nodes[1].stats()["connections"]["open"]
    leaving.reset()
    wait_until(lambda: cluster.nodes[1].stats()["connections"]["open"] < before)
    held.go_on.set()
    wait_until(lambda: cluster.leader("t", 0) == 3, 5)
    assert described(at(1), "t").leader_epoch == 1
    assert at(3).produce("t", make.records(b"v")).error_code == 0
    (header,) = batch_headers(memoryview(at(3).fetch("t", 0).records))
    assert header.partition_leader_epoch == 1


def test_a_partition_that_is_deleted_before_its_reassignment_has_its_turn_is_unknown(cluster, at, held):
    create(at(1), "t", assignments=[[1]])
    behind = reassign_behind_another(cluster, at, held, [2])
    deleting = at(2)
    deleting.send(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    wait_until(lambda: at(1).metadata("t").topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION)
    held.go_on.set()
    assert behind.receive().responses[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert deleting.receive().responses[0].error_code == 0


# What is said wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"nodes": 0}, "nodes=0 is not 1 to 100"),
        ({"nodes": True}, "nodes=True"),
        ({"nodes": 2, "replication_factor": 3}, "replication_factor=3 is not 1 to 2"),
        ({"racks": ["a"]}, "does not say one for each of 3 nodes"),
        ({"racks": "abc"}, "racks='abc'"),
        ({"replicaton_factor": 1}, "replication_factor"),
    ],
)
def test_a_wrong_option_is_named(options, told):
    with pytest.raises(ConfigError, match=told):
        Cluster(**options)


def test_a_node_or_partition_that_is_not_there_is_told(cluster, at):
    for ask in (cluster.stop, cluster.kill, cluster.isolate, cluster.heal, cluster.start):
        with pytest.raises(ConfigError, match="node=7 is none of 1, 2, 3"):
            ask(7)
    with pytest.raises(ConfigError, match="no partition 0 of topic 't'"):
        cluster.move_leader("t", 0, 1)
    create(at(1), "t")
    cluster.stop(2)
    with pytest.raises(KafkaError, match="broker 2 does not run"):
        cluster.move_leader("t", 0, 2)
    cluster.stop()
    with pytest.raises(TagwireError, match="the cluster is not running"):
        cluster.stop(1)


def test_a_node_is_killed_while_clients_of_it_end_their_connections(cluster):
    host, port = cluster.nodes[2].bootstrap.split(":")
    for _ in range(8):
        sockets = [socket.create_connection((host, int(port))) for _ in range(20)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ending = threading.Thread(target=lambda all_of_them=sockets: [each.close() for each in all_of_them])
        ending.start()
        cluster.kill(2)
        ending.join()
        cluster.start(2)
