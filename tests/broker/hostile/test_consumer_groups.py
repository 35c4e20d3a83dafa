"""Members of KIP-848 that say too much, or what is not so: bounded, counted, and let go of when they are gone."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error

MIB = 1 << 20
Beat = messages.ConsumerGroupHeartbeatRequest


@pytest.fixture
def small(tmp_path):
    """A broker whose groups may hold 4 MiB, of which there may be 20."""
    options = {"max_groups_bytes": 4 * MIB, "max_groups": 20, "group_session_timeout_s": 60.0}
    with Broker(tmp_path / "data", fsync="never", **options) as broker:
        yield broker


def held(broker):
    return broker.stats()["groups_held_bytes"]


def enter(wire, member, group="g", **said):
    joining = {"member_epoch": 0, "rebalance_timeout_ms": 5000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    return wire.ask(Beat(group_id=group, member_id=member, **{**joining, **said}), 1)


def leave(wire, member, group="g"):
    return wire.ask(Beat(group_id=group, member_id=member, member_epoch=-1), 1)


def test_names_without_end_are_counted_refused_past_the_room_there_is_and_let_go_of(small, connect):
    wire = connect(small.bootstrap)
    names = [f"topic-{number:05}" for number in range(10_000)]
    errors = [Error.of(enter(wire, f"m{n}", f"g{n}", subscribed_topic_names=names).error_code) for n in range(12)]
    assert errors[:4] == [Error.NONE] * 4
    assert set(errors[6:]) == {Error.COORDINATOR_NOT_AVAILABLE}
    assert held(small) <= 4 * MIB
    for n in range(12):
        leave(wire, f"m{n}", f"g{n}")
    deleted = wire.ask(messages.DeleteGroupsRequest(groups_names=[f"g{n}" for n in range(12)]), 2)
    assert {Error.of(one.error_code) for one in deleted.results} == {Error.NONE, Error.GROUP_ID_NOT_FOUND}
    assert (held(small), small.stats()["groups"]) == (0, 0)


def test_groups_without_end_are_refused_and_leave_nothing(small, connect):
    wire = connect(small.bootstrap)
    errors = [Error.of(enter(wire, "m", f"g{n}").error_code) for n in range(30)]
    assert errors == [Error.NONE] * 20 + [Error.COORDINATOR_NOT_AVAILABLE] * 10
    assert small.stats()["groups"] == 20


def test_what_a_restart_finds_is_counted_as_it_was(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 50)
        enter(wire, "a", subscribed_topic_regex="t.*", instance_id="i")
        enter(wire, "b", subscribed_topic_names=[f"{n}" for n in range(1000)])
        before = held(broker)
    with Broker(tmp_path / "data") as broker:
        assert held(broker) == before > 50_000


def test_epochs_and_partitions_that_nobody_gave_change_nothing(small, connect):
    wire = connect(small.bootstrap)
    wire.create("t", 2)
    enter(wire, "a")
    before = held(small)
    owned = [Beat.TopicPartitions(topic_id=UUID(int=n), partitions=list(range(100))) for n in range(400)]
    for epoch in (2, 2**31 - 1):
        answer = wire.ask(Beat(group_id="g", member_id="a", member_epoch=epoch, topic_partitions=owned), 1)
        assert Error.of(answer.error_code) is Error.FENCED_MEMBER_EPOCH
    answer = wire.ask(Beat(group_id="g", member_id="a", member_epoch=1, topic_partitions=owned), 1)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 1, None)
    assert held(small) == before


@pytest.mark.parametrize(
    "regex", ["(a*)*b", "((a?){30}){30}", "(.*a.{900}|.*b.{900}|.*)*c", "(" * 4000, "x{1000}{1000}"]
)
def test_a_hostile_regular_expression_holds_nobody_up(small, connect, regex):
    wire = connect(small.bootstrap)
    wire.create("a" * 200)
    begun = time.process_time()
    answer = enter(wire, "m", subscribed_topic_regex=regex)
    assert Error.of(answer.error_code) in (Error.NONE, Error.INVALID_REGULAR_EXPRESSION)
    assert enter(wire, "other").error_code == 0
    assert time.process_time() - begun < 20  # exponential time would be years


def test_members_that_come_and_go_leave_no_regular_expressions(small, connect):
    wire = connect(small.bootstrap)
    wire.create("t")
    enter(wire, "stays", subscribed_topic_regex="t")
    before = held(small)
    for number in range(200):
        assert enter(wire, "m", subscribed_topic_regex=f"t|{'x' * 100}{number}").error_code == 0
        leave(wire, "m")
    assert held(small) == before


def test_bytes_of_classic_members_that_cannot_be_read_are_refused_and_the_group_goes_on(small, connect):
    wire = connect(small.bootstrap)
    wire.create("t", 2)
    enter(wire, "a")
    request = messages.JoinGroupRequest
    for data in (b"", b"\0", b"\xff" * 100, b"\0\1\x7f\xff\xff\xff"):
        protocols = [request.JoinGroupRequestProtocol(name="range", metadata=data)]
        message = request(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        assert Error.of(connect(small.bootstrap).ask(message, 3).error_code) is Error.INCONSISTENT_GROUP_PROTOCOL
    assert wire.ask(Beat(group_id="g", member_id="a", member_epoch=1), 1).error_code == 0
