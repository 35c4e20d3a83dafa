"""Coordinators and members of a classic group that break the protocol: typed errors, in bounded time, and no partition
taken that was not given."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from tagwire import messages
from tagwire.client.consuming.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from tagwire.client.consuming.assignors.range_assignor import RangeAssignor
from tagwire.client.consuming.consumer_protocol import Assignment, encode_assignment
from tagwire.errors import DecodeError, Error, KafkaError, ProtocolError, RemoteProtocolError, TagwireError
from tagwire.partitions import TopicPartition

from .fake_groups import ALL, ClassicScene
from .group_members import partitions
from .memory_network import Pending


@pytest.fixture
def scene() -> ClassicScene:
    return ClassicScene()


def changed(scene: ClassicScene, api: str, change: Callable[[Any], None]) -> None:
    """Has every response of an API without an error changed on its way."""
    served = scene.cluster._served_too[api]

    def respond(message: Any) -> Any:
        response = served(message)
        if not isinstance(response, Pending):
            change(response)
            return response
        later = Pending()

        def take(given: Any) -> None:
            if not given.error_code:
                change(given)
            later.settle(given)

        response.then(take)
        return later

    scene.cluster.serve({}, {api: respond})


def assigned(*partitions: TopicPartition) -> Callable[[Any], None]:
    def change(response: Any) -> None:
        response.assignment = encode_assignment(Assignment(partitions))

    return change


def with_data(data: bytes) -> Callable[[Any], None]:
    def change(response: Any) -> None:
        response.assignment = data

    return change


def ended_with(scene: ClassicScene, membership: Any) -> TagwireError:
    scene.until(lambda: membership in scene.members.errors, 10)
    error = scene.members.errors[membership]
    assert isinstance(error, TagwireError)
    return error


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (with_data(b"\x00"), DecodeError, "cut off"),
        (with_data(b"\xff\xff"), DecodeError, "version -1"),
        (with_data(b"\x00\x00\x7f\xff\xff\xff"), DecodeError, "assignment of group 'g'"),
        (with_data(bytes(range(200))), DecodeError, "assignment of group 'g'"),
        (assigned(TopicPartition("t", 0), TopicPartition("t", 0)), RemoteProtocolError, "t-0 twice"),
        (assigned(TopicPartition("t", -1)), RemoteProtocolError, "no partition is"),
        (assigned(TopicPartition("other", 0)), RemoteProtocolError, "has not subscribed"),
        (assigned(TopicPartition("", 0)), RemoteProtocolError, "no partition is"),
    ],
)
def test_an_assignment_that_cannot_be_is_told_and_not_taken(
    scene: ClassicScene, change: Callable[[Any], None], kind: type[TagwireError], text: str
) -> None:
    changed(scene, "SyncGroup", change)
    membership, handler = scene.member()
    error = ended_with(scene, membership)
    assert isinstance(error, kind)
    assert text in str(error)
    assert handler.events == []
    assert not membership.holds_partitions


def test_what_was_owned_is_lost_where_the_next_assignment_cannot_be(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: scene.settled(handler))
    changed(scene, "SyncGroup", with_data(b"garbage"))
    membership.request_rejoin("a test")
    assert isinstance(ended_with(scene, membership), DecodeError)
    assert handler.events == [("assigned", ALL), ("lost", ALL)]


def test_a_partition_that_does_not_exist_is_left_to_who_reads_it(scene: ClassicScene) -> None:
    """A leader may know of partitions first that were made a moment ago."""
    changed(scene, "SyncGroup", assigned(TopicPartition("t", 1_000_000)))
    _, handler = scene.member()
    scene.until(lambda: handler.owned == partitions("t", 1_000_000))


def join_changes() -> dict[str, tuple[Callable[[Any], None], str]]:
    def member(response: Any) -> None:
        response.member_id = "another"

    def nobody(response: Any) -> None:
        response.member_id = ""

    def negative(response: Any) -> None:
        response.generation_id = -5

    def assignor(response: Any) -> None:
        response.protocol_name = "mine"

    def no_assignor(response: Any) -> None:
        response.protocol_name = None

    def unlisted(response: Any) -> None:
        response.members = []

    def twice(response: Any) -> None:
        response.members = response.members * 2

    return {
        "another member's": (member, "for member 'another'"),
        "nobody's": (nobody, "for member ''"),
        "a negative generation": (negative, "generation -5"),
        "an assignor that the member has not": (assignor, "'mine'"),
        "no assignor": (no_assignor, "None"),
        "a leader who is not listed": (unlisted, "not listed"),
        "a member who is listed twice": (twice, "told of twice"),
    }


@pytest.mark.parametrize("name", join_changes())
def test_a_response_to_joingroup_that_cannot_be_is_told(scene: ClassicScene, name: str) -> None:
    change, text = join_changes()[name]
    changed(scene, "JoinGroup", change)
    membership, handler = scene.member()
    error = ended_with(scene, membership)
    assert isinstance(error, ProtocolError)
    assert text in str(error)
    assert handler.events == []


def test_a_generation_that_goes_back_is_told_and_costs_the_partitions(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,))
    scene.until(lambda: scene.settled(handler))
    membership.request_rejoin("a test")
    scene.until(lambda: membership.metadata.generation == 2 and not membership.is_rebalancing)

    def back(response: Any) -> None:
        response.generation_id = 1

    changed(scene, "JoinGroup", back)
    membership.request_rejoin("a test")
    assert "generation 1 comes after generation 2" in str(ended_with(scene, membership))
    assert handler.events[-1] == ("lost", ALL)


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_group_of_another_kind_is_told(scene: ClassicScene, api: str) -> None:
    def connect(response: Any) -> None:
        response.protocol_type = "connect"

    changed(scene, api, connect)
    membership, _ = scene.member()
    error = ended_with(scene, membership)
    assert isinstance(error, KafkaError)
    assert error.error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_an_assignment_by_another_assignor_is_told(scene: ClassicScene) -> None:
    def other(response: Any) -> None:
        response.protocol_name = "roundrobin"

    changed(scene, "SyncGroup", other)
    membership, _ = scene.member()
    error = ended_with(scene, membership)
    assert isinstance(error, KafkaError)
    assert error.error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x01\x7f\xff\xff\xff", b"\x80\x00" + bytes(20), bytes(range(256))]
)
def test_a_leader_names_the_member_whose_subscription_is_garbage(scene: ClassicScene, data: bytes) -> None:
    def garbage(response: Any) -> None:
        kind = messages.JoinGroupResponse.JoinGroupResponseMember
        response.members = [*response.members, kind(member_id="bad one", metadata=data)]

    changed(scene, "JoinGroup", garbage)
    membership, _ = scene.member()
    error = ended_with(scene, membership)
    assert isinstance(error, DecodeError)
    assert "member 'bad one' of group 'g'" in str(error)


def test_a_leader_bears_a_member_that_owns_a_hundred_thousand_partitions_of_no_topic(
    scene: ClassicScene,
) -> None:
    kind = messages.ConsumerProtocolSubscription
    owned = [kind.TopicPartition(topic=f"none-{index}", partitions=list(range(500))) for index in range(200)]
    huge = b"\x00\x01" + kind(topics=["none"], owned_partitions=owned).encode(1)

    def grow(response: Any) -> None:
        member = messages.JoinGroupResponse.JoinGroupResponseMember(member_id="huge", metadata=huge)
        response.members = [*response.members, member]

    changed(scene, "JoinGroup", grow)
    _, handler = scene.member((RangeAssignor,))
    scene.until(lambda: scene.settled(handler))


# What goes on for ever ---------------------------------------------------------------------------------------------


def refuse(scene: ClassicScene, api: str, kind: Any, *errors: Error, **fields: Any) -> None:
    codes = cycle(errors)
    scene.cluster.serve({}, {api: lambda message: kind(error_code=next(codes), **fields)})


@pytest.mark.parametrize(
    ("api", "kind", "fields", "error"),
    [
        ("JoinGroup", messages.JoinGroupResponse, {}, Error.NOT_COORDINATOR),
        ("JoinGroup", messages.JoinGroupResponse, {}, Error.COORDINATOR_LOAD_IN_PROGRESS),
        ("JoinGroup", messages.JoinGroupResponse, {}, Error.UNKNOWN_MEMBER_ID),
        ("JoinGroup", messages.JoinGroupResponse, {}, Error.REBALANCE_IN_PROGRESS),
        ("JoinGroup", messages.JoinGroupResponse, {"member_id": "x"}, Error.MEMBER_ID_REQUIRED),
        ("SyncGroup", messages.SyncGroupResponse, {}, Error.REBALANCE_IN_PROGRESS),
        ("SyncGroup", messages.SyncGroupResponse, {}, Error.ILLEGAL_GENERATION),
        ("SyncGroup", messages.SyncGroupResponse, {}, Error.UNKNOWN_MEMBER_ID),
        ("SyncGroup", messages.SyncGroupResponse, {}, Error.NOT_COORDINATOR),
    ],
)
def test_what_is_refused_for_ever_is_tried_at_a_bounded_rate(
    scene: ClassicScene, api: str, kind: Any, fields: dict[str, Any], error: Error
) -> None:
    refuse(scene, api, kind, error, **fields)
    membership, handler = scene.member()
    scene.members.pass_time(100)
    assert 2 <= len(scene.cluster.requests(api)) < 160
    assert membership not in scene.members.errors
    assert isinstance(membership.last_error, KafkaError)
    assert membership.last_error.error in (error, Error.MEMBER_ID_REQUIRED)
    with pytest.raises(KafkaError):
        membership.require_member()
    before = scene.driver.now()
    scene.leave(membership)
    assert scene.driver.now() - before < 10.1
    assert handler.events == []


@pytest.mark.parametrize("nodes", [(0, 1, 2), (0, 77), (77,), (-1,)])
def test_a_coordinator_that_moves_at_every_call_is_followed_at_a_bounded_rate(nodes: tuple[int, ...]) -> None:
    scene = ClassicScene(nodes=3)
    moves = cycle(nodes)
    found = scene.groups.find_coordinator

    def move(message: Any) -> Any:
        scene.groups.coordinator = next(moves)
        return found(message)

    scene.cluster.serve({}, {"FindCoordinator": move})
    refuse(scene, "JoinGroup", messages.JoinGroupResponse, Error.NOT_COORDINATOR)
    membership, _ = scene.member()
    scene.members.pass_time(100)
    assert len(scene.cluster.requests("FindCoordinator")) < 160
    if membership in scene.members.errors:
        assert isinstance(scene.members.errors[membership], ProtocolError)
    else:
        before = scene.driver.now()
        scene.leave(membership)
        assert scene.driver.now() - before < 10.1


def test_partitions_are_lost_where_the_coordinator_moves_for_a_whole_session(scene: ClassicScene) -> None:
    membership, handler = scene.member(session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    refuse(scene, "Heartbeat", messages.HeartbeatResponse, Error.NOT_COORDINATOR)
    refuse(scene, "JoinGroup", messages.JoinGroupResponse, Error.NOT_COORDINATOR)
    scene.until(lambda: handler.events[-1] == ("lost", ALL), 11)
    assert not membership.holds_partitions


def test_cooperative_members_lose_partitions_that_they_cannot_join_for(scene: ClassicScene) -> None:
    membership, handler = scene.member((CooperativeStickyAssignor,), session_timeout=10.0)
    scene.until(lambda: scene.settled(handler))
    refuse(scene, "JoinGroup", messages.JoinGroupResponse, Error.NOT_COORDINATOR)
    membership.request_rejoin("a test")
    scene.until(lambda: handler.events[-1] == ("lost", ALL), 12)


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup", "Heartbeat"])
@pytest.mark.parametrize(
    "error", [Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_REQUEST, Error.FENCED_INSTANCE_ID, 9999]
)
def test_what_is_refused_for_good_ends_the_membership(scene: ClassicScene, api: str, error: int) -> None:
    kind = {
        "JoinGroup": messages.JoinGroupResponse,
        "SyncGroup": messages.SyncGroupResponse,
        "Heartbeat": messages.HeartbeatResponse,
    }[api]
    refuse(scene, api, kind, error)  # type: ignore[arg-type]
    membership, handler = scene.member()
    found = ended_with(scene, membership)
    assert isinstance(found, KafkaError)
    assert found.code == error
    assert api in str(found)
    assert not handler.owned


def test_a_leave_that_is_refused_or_lost_holds_nobody_up(scene: ClassicScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: scene.settled(handler))
    scene.driver.unreachable.add("127.0.0.1")
    scene.driver.drop(0)
    before = scene.driver.now()
    scene.leave(membership)
    assert scene.driver.now() - before < 10.1
