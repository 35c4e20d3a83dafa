"""Groups and transactional ids on several nodes: one node coordinates each, the others refuse, and it can move."""

from __future__ import annotations

import threading

import pytest

from tagwire import messages
from tagwire.broker import Cluster
from tagwire.broker.apis import Apis
from tagwire.broker.cluster_image import hash_of
from tagwire.errors import ConfigError, Error
from tagwire.rpc import api_name

from .asking import begin, commit, commit_in_transaction, committed, end

ABOUT = {
    "GroupId", "Groups", "GroupsNames", "GroupIds", "TransactionalId", "V3AndBelowTransactionalId", "TransactionalIds",
}  # fmt: skip


@pytest.fixture
def cluster():
    with Cluster(fsync="never") as running:
        yield running


@pytest.fixture
def at(cluster, connect):
    """Opens a connection to a node."""
    return lambda node: connect(cluster.nodes[node].bootstrap)


def other_than(cluster, node):
    return next(each for each in cluster.nodes if each != node)


def found_by(wire, kind, *keys):
    answer = wire.ask(messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys)), 4)
    assert not any(one.error_code for one in answer.coordinators)
    return {one.key: one.node_id for one in answer.coordinators}


def test_ids_are_hashed_as_java_hashes_them():
    assert [hash_of(text) for text in ("", "a", "hello", "polygenelubricants", "é𝄞")] == [
        0, 97, 99162322, 0, (((233 * 31) + 0xD834) * 31 + 0xDD1E),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [0, 1])
def test_coordinators_are_spread_and_every_node_tells_the_same(cluster, at, kind):
    keys = [f"key-{number}" for number in range(50)]
    told = [found_by(at(node), kind, *keys) for node in cluster.nodes]
    assert told[0] == told[1] == told[2]
    assert set(told[0].values()) == {1, 2, 3}
    single = at(1).ask(messages.FindCoordinatorRequest(key_type=kind, key=keys[0]), 3)
    assert single.node_id == told[0][keys[0]]


def test_every_handler_of_groups_and_transactional_ids_says_how_it_is_routed():
    """Produce has a transactional id too, and goes to the leader."""
    apis = Apis()
    about = [key for key in apis.versions if ABOUT & {field.name for field in messages.request(key).spec.fields}]
    assert len(about) >= 15
    assert [api_name(key) for key in about if apis.serving(key).coordinated is None] == ["Produce"]


def refusals(wire, group, transactional_id):
    """What each request of a group or transactional id is told."""
    topics = [messages.OffsetCommitRequest.OffsetCommitRequestTopic(
        name="t", partitions=[messages.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0)]
    )]  # fmt: skip
    in_transaction = messages.TxnOffsetCommitRequest
    in_transaction_topics = [in_transaction.TxnOffsetCommitRequestTopic(
        name="t", partitions=[in_transaction.TxnOffsetCommitRequestPartition(partition_index=0)]
    )]  # fmt: skip
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    added = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    fetched = messages.OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    yield wire.ask(messages.JoinGroupRequest(
        group_id=group, session_timeout_ms=6000, rebalance_timeout_ms=6000, protocol_type="consumer",
        protocols=[protocol],
    ), 9).error_code  # fmt: skip
    yield wire.ask(messages.SyncGroupRequest(
        group_id=group, member_id="m", protocol_type="consumer", protocol_name="range"
    ), 5).error_code  # fmt: skip
    yield wire.ask(messages.HeartbeatRequest(group_id=group, member_id="m"), 4).error_code
    yield wire.ask(messages.LeaveGroupRequest(group_id=group), 5).error_code
    yield wire.ask(messages.OffsetDeleteRequest(group_id=group), 0).error_code
    answer = wire.ask(messages.OffsetCommitRequest(group_id=group, topics=topics), 8)
    yield answer.topics[0].partitions[0].error_code
    answer = wire.ask(messages.TxnOffsetCommitRequest(
        group_id=group, transactional_id=transactional_id, topics=in_transaction_topics
    ), 3)  # fmt: skip
    yield answer.topics[0].partitions[0].error_code
    yield wire.ask(messages.OffsetFetchRequest(group_id=group, topics=[fetched]), 7).error_code
    answer = wire.ask(messages.OffsetFetchRequest(group_id=group, topics=[fetched]), 1)
    yield answer.topics[0].partitions[0].error_code
    of_group = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    yield wire.ask(messages.OffsetFetchRequest(groups=[of_group]), 8).groups[0].error_code
    yield wire.ask(messages.DescribeGroupsRequest(groups=[group]), 5).groups[0].error_code
    yield wire.ask(messages.ConsumerGroupHeartbeatRequest(group_id=group, member_id="m"), 1).error_code
    yield wire.ask(messages.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0].error_code
    yield wire.ask(messages.DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code
    yield wire.ask(messages.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000
    ), 4).error_code  # fmt: skip
    answer = wire.ask(messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id, v3_and_below_topics=[added]
    ), 3)  # fmt: skip
    yield answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    yield wire.ask(messages.AddOffsetsToTxnRequest(
        transactional_id=transactional_id, group_id=group
    ), 3).error_code  # fmt: skip
    yield wire.ask(messages.EndTxnRequest(transactional_id=transactional_id), 3).error_code
    answer = wire.ask(messages.DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
    yield answer.transaction_states[0].error_code


def test_who_does_not_coordinate_refuses_everything_of_groups_and_transactional_ids(cluster, at):
    for kind in ({"group": "g"}, {"transactional_id": "tx"}):
        cluster.move_coordinator(2, **kind)
    for node in (1, 3):
        assert set(refusals(at(node), "g", "tx")) == {Error.NOT_COORDINATOR}
    assert Error.NOT_COORDINATOR not in set(refusals(at(2), "g", "tx"))
    assert at(1).ask(messages.InitProducerIdRequest(transactional_id=None), 4).error_code == 0


def test_of_several_groups_each_has_its_own_outcome(cluster, at):
    names = [f"g{number}" for number in range(6)]
    wire = at(1)
    wire.create("t")
    for name in names:
        commit(at(cluster.coordinator(name)), name, 7)
    for node in cluster.nodes:
        answer = at(node).ask(messages.DescribeGroupsRequest(groups=names), 5)
        told = {one.group_id: one.error_code for one in answer.groups}
        assert told == {
            name: Error.NONE if cluster.coordinator(name) == node else Error.NOT_COORDINATOR for name in names
        }
        listed = {one.group_id for one in at(node).ask(messages.ListGroupsRequest(), 4).groups}
        assert listed == {name for name in names if cluster.coordinator(name) == node}


def test_what_a_group_committed_is_there_at_its_next_coordinator(cluster, at):
    at(1).create("t")
    before = cluster.coordinator("g")
    commit(at(before), "g", 7)
    after = other_than(cluster, before)
    cluster.move_coordinator(after, "g")
    assert cluster.coordinator("g") == after
    assert committed(at(after), "g") == 7


def test_a_transaction_goes_on_at_its_next_coordinator_whoever_leads(cluster, at):
    at(1).create("t", 2)
    before, groups = cluster.coordinator(transactional_id="tx"), cluster.coordinator("g")
    who = begin(at(before), "tx")
    add = messages.AddOffsetsToTxnRequest(
        group_id="g", transactional_id="tx", producer_id=who.producer_id, producer_epoch=who.producer_epoch
    )
    assert at(before).ask(add, 3).error_code == 0
    cluster.move_coordinator(groups, transactional_id="tx")
    commit_in_transaction(at(groups), "tx", who, "g", 9)
    after = other_than(cluster, groups)
    cluster.move_coordinator(after, transactional_id="tx")
    end(at(after), "tx", who, commit=True)
    assert committed(at(groups), "g") == 9


def test_what_a_node_coordinated_that_ended_others_do(cluster, at):
    keys = [f"key-{number}" for number in range(50)]
    before = found_by(at(1), 0, *keys)
    cluster.kill(3)
    after = found_by(at(1), 0, *keys)
    assert set(after.values()) == {1, 2}
    assert all(after[key] == node for key, node in before.items() if node != 3)
    cluster.start(3)
    assert found_by(at(3), 0, *keys) == after
    cluster.stop(1)
    assert at(2).metadata().controller_id == 2


def test_who_waits_to_join_is_told_at_once_that_the_coordinator_has_moved(cluster, at):
    node = cluster.coordinator("g")
    first, second = at(node), at(node)
    assert join(first, "g").error_code == Error.NONE  # alone, and it never syncs: the next one waits for it
    joined = threading.Event()
    cluster.intercept("JoinGroup", lambda call: joined.set())
    second.send(joining("g"), 3)
    assert joined.wait(20)
    at(node).metadata()
    cluster.move_coordinator(other_than(cluster, node), "g")
    assert second.receive().error_code == Error.NOT_COORDINATOR


def joining(group):
    request = messages.JoinGroupRequest
    protocol = request.JoinGroupRequestProtocol(name="range", metadata=b"")
    return request(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


def join(wire, group):
    return wire.ask(joining(group), 3)


def test_which_coordinator_is_meant_has_to_be_said(cluster):
    for asked in ({}, {"group": "g", "transactional_id": "tx"}):
        with pytest.raises(ConfigError, match="either a group or a transactional_id"):
            cluster.coordinator(**asked)
