"""What members of groups bring with them is counted and bounded, and let go of when they are gone."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker, scheduler
from tagwire.broker.groups import classic_group
from tagwire.errors import Error

from ...limits import wait_until

MIB = 1 << 20


def join(wire, group="g", size=0, *, member_id="", session=60_000, instance=None, version=3, client=None):
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=bytes(size))]
    message = request(
        group_id=group,
        session_timeout_ms=session,
        rebalance_timeout_ms=session,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=protocols,
    )
    return wire.ask(message, version)


def sync(wire, joined, size, group="g"):
    request = messages.SyncGroupRequest
    assigned = [request.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))]
    message = request(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assigned
    )
    return wire.ask(message, 3)


def commit(wire, group, *partitions, metadata=""):
    request = messages.OffsetCommitRequest
    asked = [
        request.OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=metadata)
        for index in partitions
    ]
    topics = [request.OffsetCommitRequestTopic(name="t", partitions=asked)]
    message = request(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    return {partition.error_code for partition in wire.ask(message, 8).topics[0].partitions}


def held(broker):
    return broker.stats()["groups_held_bytes"]


@pytest.fixture
def small(tmp_path):
    with Broker(tmp_path / "data", max_groups_bytes=4 * MIB, fsync="never") as broker:
        yield broker


def test_many_groups_with_much_hold_no_more_than_may_be_and_let_go_of_it_when_their_members_expire(small, connect):
    wire = connect(small.bootstrap)
    outcomes = [join(connect(small.bootstrap), f"g{n}", MIB, session=300).error_code for n in range(8)]
    assert outcomes[:3] == [0, 0, 0]
    assert set(outcomes[4:]) == {Error.COORDINATOR_NOT_AVAILABLE}
    assert held(small) <= 4 * MIB
    wait_until(lambda: held(small) < 100_000)
    assert join(wire, "late", 3 * MIB).error_code == 0


def test_who_is_a_member_joins_again_although_all_room_is_taken(small, connect):
    wire = connect(small.bootstrap)
    joined = join(wire, "g", 3 * MIB)
    assert join(wire, "other", 2 * MIB).error_code == Error.COORDINATOR_NOT_AVAILABLE
    again = join(wire, "g", 3 * MIB, member_id=joined.member_id)
    assert (again.error_code, again.member_id) == (0, joined.member_id)
    assert join(wire, "g", 5 * MIB, member_id=joined.member_id).error_code == Error.COORDINATOR_NOT_AVAILABLE


def test_assignments_are_counted_too_and_refused_past_the_room_there_is(small, connect):
    wire = connect(small.bootstrap)
    joined = join(wire)
    assert sync(wire, joined, 5 * MIB).error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert held(small) < 100_000
    joined = join(wire, member_id=joined.member_id)
    assert sync(wire, joined, 3 * MIB).error_code == 0
    assert 3 * MIB <= held(small) <= 4 * MIB
    assert join(wire, "other", 2 * MIB).error_code == Error.COORDINATOR_NOT_AVAILABLE
    leave = messages.LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    assert wire.ask(leave, 2).error_code == 0
    assert held(small) < 100_000


def test_one_group_has_a_bound_of_its_own(tmp_path, connect, monkeypatch):
    monkeypatch.setattr(classic_group, "MAX_GROUP_BYTES", MIB)
    with Broker(tmp_path / "data", fsync="never") as broker:
        wire = connect(broker.bootstrap)
        assert join(wire, "g", 2 * MIB).error_code == Error.GROUP_MAX_SIZE_REACHED
        joined = join(wire, "g", MIB // 2)
        assert sync(wire, joined, MIB).error_code == Error.UNKNOWN_SERVER_ERROR
        assert join(wire, "other", MIB // 2).error_code == 0


def test_what_a_restart_finds_is_counted(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        joined = join(wire, "g", MIB)
        assert sync(wire, joined, MIB).error_code == 0
        before = held(broker)
    with Broker(tmp_path / "data") as broker:
        assert abs(held(broker) - before) < 1000
        assert held(broker) > 2 * MIB


def test_ids_that_nobody_comes_back_with_hold_no_more_than_may_be(small, connect):
    wire = connect(small.bootstrap, client_id="c" * 30_000)
    for n in range(40):
        answers = [join(wire, f"g{n}", session=1000, version=4) for _ in range(100)]
        assert {answer.error_code for answer in answers} <= {Error.MEMBER_ID_REQUIRED, Error.COORDINATOR_NOT_AVAILABLE}
        assert max(len(answer.member_id) for answer in answers) < 1000
    assert held(small) <= 4 * MIB
    wait_until(lambda: held(small) == 0)
    assert small.stats()["groups"] == 0


def test_offsets_are_counted_and_refused_past_the_room_there_is(small, connect):
    wire = connect(small.bootstrap)
    wire.create("t", 100)
    for n in range(20):
        outcome = commit(wire, f"g{n}", *range(100), metadata="m" * 4096)
        assert outcome <= {0, Error.COORDINATOR_NOT_AVAILABLE}
    assert outcome == {Error.COORDINATOR_NOT_AVAILABLE}
    assert held(small) <= 4 * MIB
    assert commit(wire, "g0", *range(100), metadata="n" * 4096) == {0}
    delete = messages.DeleteGroupsRequest(groups_names=[f"g{n}" for n in range(20)])
    wire.ask(delete, 1)
    assert held(small) == 0


def test_offsets_in_transactions_make_no_more_groups_than_may_be(tmp_path, connect):
    with Broker(tmp_path / "data", max_groups=3, fsync="never") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        who = wire.ask(messages.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
        ids = {"transactional_id": "tx", "producer_id": who.producer_id, "producer_epoch": who.producer_epoch}
        wire.ask(messages.AddOffsetsToTxnRequest(group_id="g", **ids), 3)
        request = messages.TxnOffsetCommitRequest
        asked = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [request.TxnOffsetCommitRequestTopic(name="t", partitions=[asked])]
        outcomes = [
            wire.ask(request(group_id=f"g{n}", topics=topics, **ids), 3).topics[0].partitions[0].error_code
            for n in range(5)
        ]
        assert outcomes == [0, 0, 0, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE]


def test_joining_that_is_refused_leaves_no_group(tmp_path, connect, monkeypatch):
    monkeypatch.setattr(scheduler, "GROUPS_EVERY_S", 600.0)
    with Broker(tmp_path / "data", max_groups=3, fsync="never") as broker:
        wire = connect(broker.bootstrap)
        for n in range(5):
            assert join(wire, f"g{n}", session=-1).error_code == Error.INVALID_SESSION_TIMEOUT
        assert broker.stats()["groups"] == 0
        assert join(wire, "g").error_code == 0


def test_who_waits_for_other_members_with_much_puts_off_nobody(tmp_path, connect):
    with Broker(tmp_path / "data", max_in_flight_bytes=2 * MIB, fsync="never") as broker:
        wire = connect(broker.bootstrap)
        wire.socket.settimeout(10)
        joined = join(wire, "g")
        assert sync(wire, joined, 0).error_code == 0
        request = messages.JoinGroupRequest
        for size in [900_000, 900_000, *[60_000] * 8]:
            protocols = [request.JoinGroupRequestProtocol(name="range", metadata=bytes(size))]
            message = request(
                group_id="g",
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=protocols,
            )
            connect(broker.bootstrap).send(message, 3)
        beat = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
        wait_until(lambda: held(broker) > 2_280_000)
        for _ in range(5):
            assert wire.ask(beat, 3).error_code == Error.REBALANCE_IN_PROGRESS
        again = join(wire, "g", member_id=joined.member_id)
        assert (again.error_code, len(again.members)) == (0, 11)
