"""Members of a classic group, by a clock that is made up: the embedded broker's group on the other side."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.client.consuming.assignors.assignor import RebalanceProtocol
from tagwire.client.consuming.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from tagwire.client.consuming.assignors.range_assignor import RangeAssignor
from tagwire.client.consuming.assignors.round_robin_assignor import RoundRobinAssignor
from tagwire.client.consuming.classic_membership import ClassicMembership
from tagwire.client.consuming.consumer_protocol import Assignment, decode_subscription
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.topic_watch import TopicWatch
from tagwire.client.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from tagwire.client.scheduling import NEVER, Tasks, Wait
from tagwire.errors import ConfigError, Error, KafkaError, LocalProtocolError, TagwireError
from tagwire.partitions import TopicPartition

from .fake_broker import Silence
from .fake_groups import ALL, ClassicScene
from .group_members import Handler, partitions
from .memory_network import Pending


@pytest.fixture
def scene() -> ClassicScene:
    return ClassicScene()


def test_a_member_is_given_its_id_joins_with_it_and_has_every_partition(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    joins = scene.cluster.requests("JoinGroup")
    assert [join.member_id for join in joins] == ["", "member-1"]
    assert joins[0].rebalance_timeout_ms == 300_000
    assert joins[0].session_timeout_ms == 45_000
    assert handler.events == [("assigned", ALL)]
    assert membership.metadata.member_id == "member-1"
    assert membership.require_member().generation == 1


def test_members_share_the_partitions_and_take_over_those_of_one_that_leaves(scene: ClassicScene) -> None:
    first, one = scene.member()
    scene.until(lambda: scene.settled(one))
    second, two = scene.member()
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    assert one.events == [("assigned", ALL), ("revoked", ALL), ("assigned", one.owned)]
    scene.leave(first)
    before = scene.driver.now()
    scene.until(lambda: scene.settled(two))
    assert scene.driver.now() - before < 4  # at the next heartbeat, and not at the end of the session
    assert second.metadata.generation == 3


def test_a_reason_is_told_with_what_a_member_asks_for(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    membership.request_rejoin("x" * 300)
    scene.until(lambda: len(handler.events) == 3)
    scene.leave(membership, "y" * 300)
    assert scene.cluster.requests("JoinGroup")[-1].reason == "x" * 255
    (left,) = scene.cluster.requests("LeaveGroup")[0].members
    assert (left.member_id, left.reason) == ("member-1", "y" * 255)


def test_in_a_cooperative_rebalance_only_what_moves_is_revoked(scene: ClassicScene) -> None:
    _, one = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: scene.settled(one))
    _, two = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    moved = ALL - one.owned
    assert len(moved) == 2
    assert ("revoked", moved) in one.events
    assert all(what != "revoked" or which == moved for what, which in one.events)
    assert scene.groups.group("g").generation == 3  # the first to have it revoked, the next to have it assigned


def test_a_group_whose_assignors_are_not_all_cooperative_rebalances_eagerly(scene: ClassicScene) -> None:
    _, one = scene.member((RangeAssignor, CooperativeStickyAssignor))
    scene.until(lambda: scene.settled(one))
    _, two = scene.member((RangeAssignor, CooperativeStickyAssignor))
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    assert ("revoked", ALL) in one.events


def test_assignors_without_a_common_way_of_rebalancing_are_refused(scene: ClassicScene) -> None:
    class CooperativeOnly(CooperativeStickyAssignor):
        protocols = frozenset(list(CooperativeStickyAssignor().protocols)[:0])

    with pytest.raises(ConfigError, match=r"partition\.assignment\.strategy"):
        scene.member((RangeAssignor, CooperativeOnly))


def test_the_group_uses_an_assignor_that_all_members_have(scene: ClassicScene) -> None:
    _first, one = scene.member((RangeAssignor, RoundRobinAssignor))
    scene.until(lambda: scene.settled(one))
    _, two = scene.member((RoundRobinAssignor,))
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    assert scene.groups.group("g").protocol == "roundrobin"


def test_who_has_no_assignor_of_the_groups_is_told(scene: ClassicScene) -> None:
    _, one = scene.member((RangeAssignor,))
    scene.until(lambda: scene.settled(one))
    second, _ = scene.member((RoundRobinAssignor,))
    scene.until(lambda: second in scene.members.errors)
    error = scene.members.errors[second]
    assert isinstance(error, KafkaError)
    assert error.error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_heartbeats_go_on_while_the_user_takes_time_for_a_revocation(scene: ClassicScene) -> None:
    _, one = scene.member(session_timeout=6.0, heartbeat_interval=2.0)
    scene.until(lambda: scene.settled(one))
    one.is_polling = False
    _, two = scene.member(session_timeout=6.0, heartbeat_interval=2.0)
    scene.members.pass_time(20)
    assert one.events == [("assigned", ALL)]
    one.is_polling = True
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    assert ("lost", ALL) not in one.events


def test_a_member_whose_user_does_not_poll_leaves_and_comes_back_with_the_next_poll(scene: ClassicScene) -> None:
    membership, handler = scene.member(max_poll_interval=10.0)
    scene.until(lambda: scene.settled(handler))
    handler.is_polling = False
    scene.until(lambda: bool(scene.cluster.requests("LeaveGroup")), 11)
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        membership.require_member()
    assert not membership.holds_partitions
    scene.members.pass_time(60)
    assert len(scene.cluster.requests("JoinGroup")) == 2
    handler.is_polling = True
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]


def test_a_user_who_polls_is_not_thrown_out(scene: ClassicScene) -> None:
    _, handler = scene.member(max_poll_interval=10.0)
    scene.members.pass_time(100)
    assert handler.events == [("assigned", ALL)]
    assert scene.cluster.requests("LeaveGroup") == []


def test_a_member_without_partitions_stays_away_too_until_its_user_polls(scene: ClassicScene) -> None:
    _, one = scene.member(topics=("u",))
    scene.cluster.topic("u", 1)
    scene.until(lambda: bool(one.owned))
    second, two = scene.member(topics=("u",), max_poll_interval=10.0)
    scene.until(lambda: scene.groups.group("g").generation >= 2 and second.state.name == "STABLE")
    idle, handler = (second, two) if not two.owned else (None, None)
    assert idle is not None
    assert handler is not None
    handler.is_polling = False
    scene.until(lambda: bool(scene.cluster.requests("LeaveGroup")), 12)
    before = len(scene.cluster.requests("JoinGroup"))
    scene.members.pass_time(30)
    assert len(scene.cluster.requests("JoinGroup")) - before <= 1  # the other one's
    handler.is_polling = True
    scene.until(lambda: idle.state.name == "STABLE")


def test_a_joingroup_that_is_lost_after_longer_than_a_session_costs_nothing_at_once(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,), session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    scene.cluster.script("JoinGroup", lambda message: Pending())
    membership.request_rejoin("a test")
    for _ in range(12):  # a rebalance may take so long, and a member that has joined has no session meanwhile
        scene.members.pass_time(5)
        scene.groups.group("g").heartbeat(membership.metadata.member_id, None, 1, scene.groups.now_ms)
    scene.driver.drop(0)
    scene.until(lambda: membership.metadata.generation == 2)
    assert handler.events[:1] == [("assigned", ALL)]
    assert ("lost", ALL) not in handler.events


def test_a_member_that_cannot_send_its_joingroup_has_no_more_than_its_session(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,), session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    heard = scene.driver.now()
    scene.driver.unreachable.add("127.0.0.1")
    scene.driver.drop(0)
    scene.members.pass_time(8)
    membership.request_rejoin("a test")
    scene.members.pass_time(0.5)
    assert membership.state.name == "PREPARING_REBALANCE"
    assert membership.holds_partitions
    scene.until(lambda: not membership.holds_partitions, 2)
    assert scene.driver.now() - heard < 10.5
    scene.driver.unreachable.clear()
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1:] == [("lost", ALL), ("assigned", ALL)]


def test_a_joingroup_that_waited_for_its_connection_past_the_session_is_not_sent(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,), session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    joined = len(scene.cluster.requests("JoinGroup"))
    late, asked = Pending(), list[Any]()

    def answer_late(message: Any) -> Pending:
        asked.append(message)
        return late

    scene.cluster.script("FindCoordinator", answer_late)
    membership.coordinator.mark_unknown("a test")
    membership.request_rejoin("a test")
    scene.members.pass_time(15)
    assert not membership.holds_partitions
    late.settle(scene.groups.find_coordinator(asked[0]))
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1:] == [("lost", ALL), ("assigned", ALL)]
    told = [decode_subscription(each.protocols[0].metadata) for each in scene.cluster.requests("JoinGroup")[joined:]]
    assert {each.owned_partitions for each in told} == {()}


def test_an_assignor_that_breaks_the_rule_of_cooperative_rebalances_is_told(scene: ClassicScene) -> None:
    class Moving(RangeAssignor):
        name = "moving"
        protocols = frozenset({RebalanceProtocol.COOPERATIVE})

        def assign(self, topics: Any, subscriptions: Any) -> Any:
            last = max(subscriptions, key=lambda member: int(member.rpartition("-")[2]))
            return {member: Assignment(tuple(sorted(ALL)) if member == last else ()) for member in subscriptions}

    first, one = scene.member((Moving,))
    scene.until(lambda: scene.settled(one))
    scene.member((Moving,))
    scene.until(lambda: first in scene.members.errors)
    assert isinstance(scene.members.errors[first], LocalProtocolError)
    assert "assignor 'moving' gives t-0" in str(scene.members.errors[first])


def test_heartbeats_and_rebalances_are_measured_by_kafkas_names(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.cluster.script("SyncGroup", lambda _: messages.SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS))
    membership.request_rejoin("a test")
    scene.members.pass_time(31)
    found = membership._network.metrics.values("consumer")["consumer-coordinator-metrics"]
    assert found["heartbeat-total"] == len(scene.cluster.requests("Heartbeat")) == 10
    assert (found["join-total"], found["sync-total"]) == (3.0, 2.0)
    assert (found["rebalance-total"], found["failed-rebalance-total"]) == (2.0, 1.0)
    assert found["assigned-partitions"] == 4.0


def test_after_a_session_without_a_heartbeat_partitions_are_lost_before_any_commit(scene: ClassicScene) -> None:
    membership, handler = scene.member(session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    held = scene.driver.now()
    scene.driver._clock += 11  # the process was stopped meanwhile
    assert not membership.holds_partitions
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        membership.require_member()
    assert not membership.holds_partitions
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1:] == [("lost", ALL), ("assigned", ALL)]
    assert scene.driver.now() - held < 13


def test_a_session_is_counted_from_the_heartbeat_and_not_from_its_late_response(scene: ClassicScene) -> None:
    """The coordinator heard the one, and gives the partitions to others a session later."""
    membership, handler = scene.member(session_timeout=20.0, heartbeat_interval=2.0)
    scene.until(lambda: scene.settled(handler))
    late, sent = Pending(), list[float]()

    def answer_late(message: Any) -> Pending:
        sent.append(scene.driver.now())
        return late

    scene.cluster.script("Heartbeat", answer_late, lambda message: Pending())
    scene.until(lambda: bool(sent))
    scene.members.pass_time(8)
    late.settle(messages.HeartbeatResponse())
    scene.until(lambda: not membership.holds_partitions, 30)
    assert scene.driver.now() - sent[0] < 20.5


@pytest.mark.parametrize("subscribed", [{}, {"topics": (), "pattern": "t"}], ids=["by name", "by pattern"])
def test_what_a_session_has_cost_is_told_before_anybody_can_be_asked(scene: ClassicScene, subscribed: Any) -> None:
    _, handler = scene.member(session_timeout=10.0, **subscribed)
    scene.until(lambda: scene.settled(handler))
    scene.cluster.script("Heartbeat", *[Silence()] * 20)
    scene.cluster.script("Metadata", *[Silence()] * 20)
    scene.until(lambda: ("lost", ALL) in handler.events, 11)
    assert handler.owned == set()


def test_a_coordinator_that_is_silent_for_a_session_costs_the_partitions(scene: ClassicScene) -> None:
    membership, handler = scene.member(session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    scene.driver.unreachable.add("127.0.0.1")
    scene.driver.drop(0)
    handler_lost = lambda: ("lost", ALL) in handler.events  # noqa: E731
    scene.until(handler_lost, 12)
    assert not membership.holds_partitions
    scene.driver.unreachable.clear()
    scene.until(lambda: scene.settled(handler))


def test_a_member_that_the_coordinator_does_not_know_loses_everything_and_joins_anew(scene: ClassicScene) -> None:
    _membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.groups.groups.clear()
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1:] == [("lost", ALL), ("assigned", ALL)]
    assert [join.member_id for join in scene.cluster.requests("JoinGroup")][2:] == ["", "member-2"]


def test_a_static_member_comes_back_to_what_it_had_without_a_rebalance(scene: ClassicScene) -> None:
    first, one = scene.member(instance_id="a")
    _, two = scene.member(instance_id="b")
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    had, generation = one.owned, scene.groups.group("g").generation
    scene.leave(first)
    assert scene.cluster.requests("LeaveGroup") == []
    _, again = scene.member(instance_id="a")
    scene.until(lambda: again.owned == had)
    assert scene.groups.group("g").generation == generation
    assert two.events[-1] == ("assigned", two.owned)


def test_a_static_member_that_comes_back_for_another_topic_gives_back_what_it_had(scene: ClassicScene) -> None:
    scene.cluster.topic("u", 1)
    first, one = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(one))
    scene.leave(first)
    _, again = scene.member(instance_id="a", topics=("u",))
    scene.until(lambda: again.owned == partitions("u", 0))
    assert again.events == [("assigned", partitions("u", 0))]


def test_a_static_leader_that_comes_back_skips_the_assignment_and_watches_all_topics(scene: ClassicScene) -> None:
    first, one = scene.member(instance_id="a", metadata_max_age=5.0)
    scene.until(lambda: scene.settled(one))
    scene.leave(first)
    _, again = scene.member(instance_id="a", metadata_max_age=5.0)
    scene.until(lambda: scene.settled(again))
    assert scene.cluster.requests("SyncGroup")[-1].assignments == []
    scene.cluster.topic("t", 6)
    scene.until(lambda: len(again.owned) == 6, 20)


def test_a_static_leader_that_comes_back_has_partitions_assigned_that_came_while_it_was_away(
    scene: ClassicScene,
) -> None:
    """It does not assign when it is back, and has nothing to compare with but what the members have: seed 8304."""
    first, one = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(one))
    _, two = scene.member(instance_id="b")
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    scene.leave(first)
    scene.cluster.topic("t", 6)
    _, again = scene.member(instance_id="a")
    scene.until(lambda: again.owned | two.owned == partitions("t", *range(6)), 20)


def test_a_static_leader_that_comes_back_to_all_partitions_lets_the_group_be(scene: ClassicScene) -> None:
    first, one = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(one))
    _, two = scene.member(instance_id="b")
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    generation = scene.groups.group("g").generation
    scene.leave(first)
    _, again = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(again, two) and bool(scene.cluster.requests("DescribeGroups")))
    heartbeats = len(scene.cluster.requests("Heartbeat"))
    scene.until(lambda: len(scene.cluster.requests("Heartbeat")) > heartbeats + 4)
    assert scene.groups.group("g").generation == generation
    assert len(scene.cluster.requests("DescribeGroups")) == 1


@pytest.mark.parametrize(
    ("errors", "asked"),
    [([Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR], 3), ([Error.GROUP_AUTHORIZATION_FAILED], 1)],
)
def test_a_static_leader_that_is_not_told_what_members_have_asks_again_or_goes_on(
    scene: ClassicScene, errors: list[Error], asked: int
) -> None:
    left = list(errors)
    describe = scene.groups.describe_groups

    def answer(message: Any) -> Any:
        kind = messages.DescribeGroupsResponse
        return kind(groups=[kind.DescribedGroup(group_id="g", error_code=left.pop(0))]) if left else describe(message)

    scene.cluster.serve({}, {"DescribeGroups": answer})
    first, one = scene.member(instance_id="a", metadata_max_age=5.0)
    scene.until(lambda: scene.settled(one))
    scene.leave(first)
    membership, again = scene.member(instance_id="a", metadata_max_age=5.0)
    scene.until(lambda: scene.settled(again) and len(scene.cluster.requests("DescribeGroups")) == asked)
    scene.cluster.topic("t", 6)
    scene.until(lambda: len(again.owned) == 6, 20)
    assert membership not in scene.members.errors
    assert len(scene.cluster.requests("DescribeGroups")) == asked


def test_a_static_member_that_goes_while_it_gives_partitions_up_still_has_them_assigned_to_others(
    scene: ClassicScene,
) -> None:
    """It is given its old assignment back without a rebalance, and has nothing left to give up."""
    first, one = scene.member((CooperativeStickyAssignor,), instance_id="a")
    scene.until(lambda: scene.settled(one))
    revoke = one.revoke

    async def revoke_too_late(given_up: Any) -> None:
        await revoke(given_up)
        first._reset("consumer poll timeout has expired.", keeps_id=False)

    one.revoke = revoke_too_late  # type: ignore[method-assign]
    _, two = scene.member((CooperativeStickyAssignor,), instance_id="b")
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))


def test_of_two_with_one_instance_id_the_earlier_one_ends(scene: ClassicScene) -> None:
    first, one = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(one))
    _, two = scene.member(instance_id="a")
    scene.until(lambda: scene.settled(two) and first in scene.members.errors)
    error = scene.members.errors[first]
    assert isinstance(error, KafkaError)
    assert error.error is Error.FENCED_INSTANCE_ID
    assert one.events[-1] == ("lost", ALL)


def test_the_leader_sees_that_a_topic_got_more_partitions(scene: ClassicScene) -> None:
    _, one = scene.member(metadata_max_age=30.0)
    _, two = scene.member(metadata_max_age=30.0)
    scene.until(lambda: bool(two.owned) and scene.settled(one, two))
    scene.cluster.topic("t", 6)
    scene.until(lambda: one.owned | two.owned == partitions("t", *range(6)), 40)


def test_a_topic_that_is_made_later_is_soon_assigned(scene: ClassicScene) -> None:
    _, handler = scene.member(topics=("t", "later"))
    scene.until(lambda: scene.settled(handler))
    scene.cluster.topic("later", 1)
    scene.until(lambda: TopicPartition("later", 0) in handler.owned, 6)


def test_a_pattern_matches_whole_names_and_no_internal_topic(scene: ClassicScene) -> None:
    scene.cluster.topic("t2", 1)
    scene.cluster.topic("at", 1)
    scene.cluster.topic("__t", 1)
    _, handler = scene.member(topics=(), pattern="t.?|__t")
    scene.until(lambda: handler.owned == ALL | partitions("t2", 0))


def test_a_pattern_takes_in_topics_that_come_later(scene: ClassicScene) -> None:
    _, handler = scene.member(topics=(), pattern="t.*", metadata_max_age=20.0)
    scene.until(lambda: scene.settled(handler))
    scene.cluster.topic("tt", 1)
    scene.until(lambda: handler.owned == ALL | partitions("tt", 0), 30)


def test_metadata_that_is_old_at_once_is_looked_at_as_often_as_a_request_is_tried_again(scene: ClassicScene) -> None:
    _, handler = scene.member(topics=(), pattern="t.*", metadata_max_age=0.0)
    scene.until(lambda: scene.settled(handler))
    before = len(scene.cluster.requests("Metadata"))
    scene.members.pass_time(10)
    assert 50 <= len(scene.cluster.requests("Metadata")) - before <= 101


def test_another_pattern_is_looked_for_at_once_and_not_when_metadata_is_old(scene: ClassicScene) -> None:
    scene.cluster.topic("other", 1)
    membership, handler = scene.member(topics=(), pattern="t.*")
    scene.until(lambda: scene.settled(handler))
    membership.subscribe(frozenset(), "oth.*")
    scene.until(lambda: handler.owned == partitions("other", 0), 10)


class Answers:
    """A network whose metadata comes when a test says so."""

    def __init__(self) -> None:
        self.given: list[ClusterMetadata | None] = []

    def now(self) -> float:
        return 0.0

    async def refresh(self, *_: object, **__: object) -> ClusterMetadata | None:
        number = len(self.given)
        self.given.append(None)
        await Wait(lambda: self.given[number] is not None, NEVER)
        return self.given[number]


def described(topic: str, count: int) -> ClusterMetadata:
    found = {index: PartitionMetadata(index, 0) for index in range(count)}
    return ClusterMetadata(None, 0, {}, {topic: TopicMetadata(topic, partitions=found)})


def test_what_was_told_of_topics_before_the_partitions_were_assigned_is_no_change_after_it() -> None:
    answers, tasks = Answers(), Tasks()
    watch = TopicWatch(answers, GroupSettings("g"))  # type: ignore[arg-type]
    watch.subscribe(frozenset("t"), None)
    for work in (watch.refresh(9.0), watch.lead(frozenset("t"), 9.0)):
        tasks.start(object(), work, lambda _, error: None)
    for number, count in ((1, 4), (0, 3)):
        answers.given[number] = described("t", count)
        tasks.step(0.0)
    assert watch.partitions == partitions("t", *range(4))
    assert not watch.has_changed


def test_what_was_told_of_topics_before_the_subscription_changed_does_not_put_off_the_next_look() -> None:
    answers, tasks = Answers(), Tasks()
    watch = TopicWatch(answers, GroupSettings("g"))  # type: ignore[arg-type]
    watch.subscribe(frozenset("t"), None)
    tasks.start("before", watch.refresh(9.0), lambda _, error: None)
    watch.subscribe(frozenset({"t", "later"}), None)
    answers.given[0] = described("t", 4)
    tasks.step(0.0)
    assert watch.refresh_at == 0.0


def test_a_pattern_that_is_none_is_refused(scene: ClassicScene) -> None:
    with pytest.raises(ConfigError, match="pattern: '\\('"):
        scene.member(topics=(), pattern="(")


def test_another_subscription_is_joined_for(scene: ClassicScene) -> None:
    scene.cluster.topic("u", 1)
    membership, handler = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: scene.settled(handler))
    membership.subscribe(frozenset({"u"}), None)
    scene.until(lambda: handler.owned == partitions("u", 0))
    assert handler.events[1:] == [("revoked", ALL), ("assigned", partitions("u", 0))]


def test_a_coordinator_that_moved_is_found_and_the_membership_goes_on() -> None:
    scene = ClassicScene(nodes=3)
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.groups.coordinator = 2
    scene.cluster.script("Heartbeat", lambda message: messages.HeartbeatResponse(error_code=Error.NOT_COORDINATOR))
    scene.members.pass_time(10)
    assert {node for node, api, _, _ in scene.cluster.seen if api == "Heartbeat"} == {0, 2}
    assert handler.events == [("assigned", ALL)]
    assert membership.last_error is None


def test_a_commit_that_is_refused_as_one_of_no_member_ends_the_membership(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    sent = membership.require_member()
    assert membership.commit_refused(KafkaError(Error.UNKNOWN_MEMBER_ID), sent) is False
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1] == ("lost", ALL)
    membership.commit_refused(KafkaError(Error.UNKNOWN_MEMBER_ID), sent)  # of a generation that is over by now
    assert membership.holds_partitions


def test_nothing_is_committed_while_the_member_joins(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: scene.settled(handler))
    _, two = scene.member((CooperativeStickyAssignor,))
    two.is_polling = False
    refusals: list[KafkaError] = []

    def is_refused() -> bool:
        try:
            membership.require_member()
        except KafkaError as error:
            refusals.append(error)
        return bool(refusals)

    scene.until(is_refused)
    assert refusals[0].error is Error.REBALANCE_IN_PROGRESS
    assert membership.holds_partitions


def test_who_leaves_while_others_are_waited_for_says_so_at_once(scene: ClassicScene) -> None:
    _first, one = scene.member()
    scene.until(lambda: scene.settled(one))
    one.is_polling = False
    second, _two = scene.member()
    scene.members.pass_time(5)
    assert second.state.name == "PREPARING_REBALANCE"
    before = scene.driver.now()
    scene.leave(second)
    assert scene.driver.now() - before < 1
    one.is_polling = True
    scene.until(lambda: scene.settled(one), 10)


def test_old_brokers_are_spoken_to_in_their_versions() -> None:
    scene = ClassicScene()
    scene.cluster.served |= {10: (0, 1), 11: (0, 2), 12: (0, 1), 13: (0, 1), 14: (0, 1)}
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.leave(membership)
    assert scene.cluster.requests("LeaveGroup")[0].member_id == membership_id(scene)


def membership_id(scene: ClassicScene) -> str:
    return str(scene.cluster.requests("SyncGroup")[0].member_id)


def test_a_static_member_is_refused_where_the_broker_knows_none() -> None:
    scene = ClassicScene()
    scene.cluster.served |= {11: (0, 4)}
    membership, _ = scene.member(instance_id="a")
    scene.until(lambda: membership in scene.members.errors)
    assert isinstance(scene.members.errors[membership], TagwireError)
    assert "group_instance_id" in str(scene.members.errors[membership])


def test_a_member_can_be_run_again_after_it_left(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.leave(membership)
    handler.owned = set()
    membership.polled(scene.driver.now())
    scene.members.run(membership)
    scene.until(lambda: scene.settled(handler))


@pytest.mark.parametrize("assignors", [(RangeAssignor,), (CooperativeStickyAssignor,)])
def test_members_that_come_go_and_are_killed_leave_every_partition_to_one(scene: ClassicScene, assignors: Any) -> None:
    alive: list[tuple[ClassicMembership, Handler]] = []
    random = scene.driver.random
    for _ in range(30):
        scene.members.pass_time(random.uniform(0, 6))
        choice = random.random()
        if len(alive) < 2 or choice < 0.5:
            alive.append(scene.member(assignors, session_timeout=9.0))
        else:
            membership, handler = alive.pop(random.randrange(len(alive)))
            if choice < 0.75:
                handler.owned = set()
                scene.leave(membership)
            else:
                scene.members.end(membership)
    scene.until(lambda: scene.settled(*(handler for _, handler in alive)), 60)
    assert not any(scene.members.errors.values())


def test_the_wait_of_a_member_in_no_group_is_for_its_subscription(scene: ClassicScene) -> None:
    membership, handler = scene.member(topics=())
    scene.members.pass_time(100)
    assert scene.cluster.requests("JoinGroup") == []
    membership.subscribe(frozenset({"t"}), None)
    membership.polled(scene.driver.now())
    scene.until(lambda: scene.settled(handler))


def test_metadata_is_asked_for_in_the_order_of_names(scene: ClassicScene) -> None:
    def asked() -> list[list[str | None]]:
        return [[topic.name for topic in request.topics or ()] for request in scene.cluster.requests("Metadata")]

    topics = tuple(f"t{n}" for n in range(20))
    scene.member(topics=topics)
    scene.until(lambda: any(asked()))
    assert all(names == sorted(topics) for names in asked() if names)
