"""A member of a KIP-848 group, by a clock that is made up, and a coordinator that assigns what a test says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.client.consuming.consumer_membership import ConsumerMembership
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.errors import (
    Error,
    KafkaError,
    RemoteProtocolError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition

from .fake_broker import Close, FakeCluster, Late, Silence
from .fake_groups import ALL, FakeGroups
from .group_members import Handler, Members, partitions
from .memory_network import MemoryDriver

Response = messages.ConsumerGroupHeartbeatResponse


class Coordinator:
    """One member's coordinator: `target` is what it is to have, and `target = ...` begins another epoch."""

    def __init__(self, ids: dict[str, UUID]) -> None:
        self.ids = ids
        self.epoch = 0
        self.target: set[TopicPartition] = set(ALL)
        self.interval_ms = 5000
        self.change: Callable[[Any], None] = lambda response: None
        self._told: set[TopicPartition] | None = None

    def heartbeat(self, message: Any) -> Any:
        if message.member_epoch < 0:
            return Response(member_id=message.member_id, member_epoch=message.member_epoch)
        if message.member_epoch == 0:
            self.epoch += 1
            self._told = None
        elif message.member_epoch != self.epoch:
            return Response(error_code=Error.FENCED_MEMBER_EPOCH, error_message="another epoch")
        response = Response(
            member_id=message.member_id, member_epoch=self.epoch, heartbeat_interval_ms=self.interval_ms
        )
        if self._told != self.target:
            if self._told is not None:
                self.epoch += 1
            response.member_epoch = self.epoch
            self._told = set(self.target)
            response.assignment = assignment(self.ids, self.target)
        self.change(response)
        return response


def assignment(ids: dict[str, UUID], target: set[TopicPartition]) -> Any:
    topics: dict[UUID, list[int]] = {}
    for partition in sorted(target):
        topics.setdefault(ids[partition.topic], []).append(partition.partition)
    return Response.Assignment(
        topic_partitions=[Response.TopicPartitions(topic_id=key, partitions=own) for key, own in topics.items()]
    )


class ConsumerScene:
    """A cluster with topic "t" of four partitions, and the member of group "g"."""

    def __init__(self, nodes: int = 1) -> None:
        self.cluster = FakeCluster(nodes)
        self.driver = MemoryDriver(self.cluster)
        self.cluster.topic("t", 4)
        self.cluster.topic("u", 1)
        self.groups = FakeGroups(self.cluster, self.driver)
        self.coordinator = Coordinator(self.cluster.ids)
        self.cluster.serve(
            {68: (0, 1)}, {"ConsumerGroupHeartbeat": lambda message: self.coordinator.heartbeat(message)}
        )
        self.members = Members(self.driver, [("kafka-0", broker.port) for broker in self.cluster.brokers])

    def member(
        self, topics: tuple[str, ...] = ("t",), pattern: str | None = None, **settings: Any
    ) -> tuple[ConsumerMembership, Handler]:
        membership, handler = self.members.start(
            lambda network, handler: ConsumerMembership(network, GroupSettings("g", "consumer", **settings), handler),
            topics,
            pattern,
        )
        return membership, handler

    @property
    def heartbeats(self) -> list[Any]:
        return self.cluster.requests("ConsumerGroupHeartbeat")

    def until(self, is_true: Callable[[], bool], seconds: float = 60.0) -> None:
        self.members.until(is_true, seconds)

    def leave(self, membership: ConsumerMembership) -> None:
        self.members.leave(membership)

    def ended_with(self, membership: Any, seconds: float = 20.0) -> TagwireError:
        self.until(lambda: membership in self.members.errors, seconds)
        error = self.members.errors[membership]
        assert isinstance(error, TagwireError)
        return error


@pytest.fixture
def scene() -> ConsumerScene:
    return ConsumerScene()


def owned(message: Any) -> dict[UUID, list[int]] | None:
    if message.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in message.topic_partitions}


def test_a_member_joins_with_an_id_of_its_own_and_says_everything_once(scene: ConsumerScene) -> None:
    membership, handler = scene.member(rack="r1", remote_assignor="range")
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(12)
    join, ack, *later = scene.heartbeats
    assert len(join.member_id) == 22
    assert {each.member_id for each in scene.heartbeats} == {membership.member_id}
    assert (join.member_epoch, join.rebalance_timeout_ms, join.rack_id) == (0, 300_000, "r1")
    assert (join.subscribed_topic_names, join.subscribed_topic_regex) == (["t"], None)
    assert (join.server_assignor, owned(join)) == ("range", {})
    assert owned(ack) == {scene.cluster.ids["t"]: [0, 1, 2, 3]}
    assert (ack.member_epoch, ack.subscribed_topic_names, ack.rebalance_timeout_ms) == (1, None, -1)
    assert len(later) == 2
    assert [owned(each) for each in later] == [None, None]
    assert membership.require_member().generation == 1
    assert handler.events == [("assigned", ALL)]


def looked_for(scene: ConsumerScene) -> list[list[str]]:
    """What metadata was asked about by name."""
    asked = [[topic.name for topic in each.topics or ()] for each in scene.cluster.requests("Metadata")]
    return [sorted(names) for names in asked if names and None not in names]


def test_a_topic_that_does_not_exist_is_told_of_once_and_looked_for_twice(
    scene: ConsumerScene, caplog: pytest.LogCaptureFixture
) -> None:
    membership, handler = scene.member(topics=("t", "fligths"))
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(30)
    assert looked_for(scene) == [["fligths", "t"], ["fligths"]]
    said = "group 'g': topic 'fligths' does not exist, and is waited for"
    assert caplog.messages.count(said) == 1
    membership.subscribe(frozenset({"t", "fligths", "u"}), None)
    scene.members.pass_time(30)
    assert looked_for(scene)[2:] == [["u"]]
    assert caplog.messages.count(said) == 1


@pytest.mark.parametrize("allowed", [True, False])
def test_a_topic_that_does_not_exist_is_created_where_that_is_allowed(
    scene: ConsumerScene, caplog: pytest.LogCaptureFixture, allowed: bool
) -> None:
    scene.cluster.auto_create, scene.coordinator.target = True, set()
    scene.member(topics=("new",), allow_auto_create=allowed)
    scene.members.pass_time(10)
    assert ("new" in scene.cluster.topics) is allowed
    assert any("'new' does not exist" in said for said in caplog.messages) is not allowed


def test_what_is_assigned_to_others_is_given_up_first_and_then_said_so(scene: ConsumerScene) -> None:
    _, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(2)
    handler.is_polling = False
    scene.coordinator.target = partitions("t", 0, 1)
    scene.members.pass_time(12)
    assert owned(scene.heartbeats[-1]) is None  # the listener has not run
    handler.is_polling = True
    scene.until(lambda: handler.owned == partitions("t", 0, 1))
    scene.members.pass_time(1)
    assert owned(scene.heartbeats[-1]) == {scene.cluster.ids["t"]: [0, 1]}
    assert scene.heartbeats[-1].member_epoch == 2
    assert handler.events[1:] == [("revoked", partitions("t", 2, 3)), ("assigned", set())]


def test_what_was_assigned_and_taken_back_before_the_user_polled_is_said_to_be_given_up(scene: ConsumerScene) -> None:
    # The coordinator gives it to nobody else before the member says once more what it has, which is what it said last.
    scene.coordinator.target = partitions("t", 0, 1)
    _, handler = scene.member()
    scene.until(lambda: handler.owned == partitions("t", 0, 1))
    scene.members.pass_time(2)
    handler.is_polling = False
    scene.coordinator.target = ALL
    scene.members.pass_time(6)
    scene.coordinator.target = partitions("t", 0, 1)
    scene.members.pass_time(6)
    said = len(scene.heartbeats)
    handler.is_polling = True
    scene.until(lambda: len(scene.heartbeats) > said, 1)
    scene.members.pass_time(1)
    told = [owned(each) for each in scene.heartbeats[said:] if owned(each) is not None]
    assert told == [{scene.cluster.ids["t"]: [0, 1]}]
    assert handler.owned == partitions("t", 0, 1)


def test_what_was_assigned_and_taken_back_before_its_name_was_known_is_said_to_be_given_up(
    scene: ConsumerScene,
) -> None:
    scene.coordinator.ids = {**scene.cluster.ids, "later": UUID(int=77)}
    _, handler = scene.member(("t", "later"))
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(2)
    scene.coordinator.target = ALL | partitions("later", 0)
    scene.members.pass_time(6)
    scene.coordinator.target = set(ALL)
    said = len(scene.heartbeats)
    scene.members.pass_time(6)
    told = [owned(each) for each in scene.heartbeats[said:] if owned(each) is not None]
    assert told == [{scene.cluster.ids["t"]: [0, 1, 2, 3]}]


def test_what_is_taken_back_while_its_name_is_asked_for_is_not_taken(scene: ConsumerScene) -> None:
    _, handler = scene.member(("t", "later"))
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(2)
    scene.cluster.topic("later")
    scene.coordinator.ids = dict(scene.cluster.ids)
    scene.cluster.script("Metadata", *[Late(12.0)] * 2)
    scene.coordinator.target = ALL | partitions("later", 0)
    scene.members.pass_time(6)
    assert any(topic.topic_id == scene.cluster.ids["later"] for topic in scene.cluster.requests("Metadata")[-1].topics)
    scene.coordinator.target = set(ALL)
    scene.members.pass_time(30)
    assert handler.owned == ALL
    assert partitions("later", 0) not in [changed for _, changed in handler.events]


def test_partitions_that_the_user_has_not_heard_of_yet_are_said_to_be_owned_after_an_error(
    scene: ConsumerScene,
) -> None:
    scene.coordinator.target = partitions("t", 0, 1)
    _, handler = scene.member()
    scene.until(lambda: handler.owned == partitions("t", 0, 1))
    scene.members.pass_time(2)
    handler.is_polling = False
    scene.coordinator.target = set(ALL)
    scene.members.pass_time(6)
    scene.cluster.script("ConsumerGroupHeartbeat", lambda message: Response(error_code=Error.NOT_COORDINATOR))
    scene.members.pass_time(8)
    full = next(each for each in reversed(scene.heartbeats) if each.rebalance_timeout_ms > 0)
    assert owned(full) == {scene.cluster.ids["t"]: [0, 1, 2, 3]}


def test_an_assignment_of_nothing_is_told_as_a_rebalance(scene: ConsumerScene) -> None:
    scene.coordinator.target = set()
    membership, handler = scene.member()
    scene.until(lambda: bool(handler.events))
    assert handler.events == [("assigned", set())]
    scene.members.pass_time(20)
    assert handler.events == [("assigned", set())]
    assert not membership.is_rebalancing


@pytest.mark.parametrize("error", [Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID])
def test_a_member_that_is_fenced_loses_everything_and_joins_anew(scene: ConsumerScene, error: Error) -> None:
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(1)
    handler.is_polling = False
    scene.cluster.script("ConsumerGroupHeartbeat", lambda message: Response(error_code=error))
    scene.until(lambda: not membership.holds_partitions, 6)
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        membership.require_member()
    scene.members.pass_time(20)
    before = len(scene.heartbeats)
    handler.is_polling = True
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events[1:] == [("lost", ALL), ("assigned", ALL)]
    again = scene.heartbeats[before]
    assert (again.member_epoch, again.subscribed_topic_names, owned(again)) == (0, ["t"], {})


def test_after_an_error_everything_is_said_again(scene: ConsumerScene) -> None:
    _, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(1)
    scene.cluster.script(
        "ConsumerGroupHeartbeat", lambda message: Response(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS), Close()
    )
    before = len(scene.heartbeats)
    scene.members.pass_time(8)
    _, second, third, *_ = scene.heartbeats[before:]
    for again in (second, third):
        assert (again.member_epoch, again.subscribed_topic_names) == (1, ["t"])
        assert owned(again) == {scene.cluster.ids["t"]: [0, 1, 2, 3]}
    assert handler.events == [("assigned", ALL)]


def test_a_coordinator_that_moved_is_found() -> None:
    scene = ConsumerScene(nodes=3)
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.groups.coordinator = 2
    scene.cluster.script("ConsumerGroupHeartbeat", lambda message: Response(error_code=Error.NOT_COORDINATOR))
    scene.members.pass_time(12)
    assert {node for node, api, _, _ in scene.cluster.seen if api == "ConsumerGroupHeartbeat"} == {0, 2}
    assert handler.events == [("assigned", ALL)]
    assert membership.last_error is None


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("a", -2)])
def test_who_leaves_says_whether_it_means_to_come_back(
    scene: ConsumerScene, instance_id: str | None, epoch: int
) -> None:
    membership, handler = scene.member(instance_id=instance_id)
    scene.until(lambda: handler.owned == ALL)
    scene.leave(membership)
    left = scene.heartbeats[-1]
    assert (left.member_epoch, left.instance_id, left.member_id) == (epoch, instance_id, membership.member_id)
    before = len(scene.heartbeats)
    scene.members.pass_time(20)
    assert len(scene.heartbeats) == before


def test_a_static_member_that_is_not_to_leave_gives_its_instance_id_free(scene: ConsumerScene) -> None:
    membership, handler = scene.member(instance_id="a")
    scene.until(lambda: handler.owned == ALL)
    scene.members.leave(membership, leaves=False)
    assert (scene.heartbeats[-1].member_epoch, scene.heartbeats[-1].instance_id) == (-2, "a")


def test_a_member_that_is_not_to_leave_says_nothing(scene: ConsumerScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.leave(membership, leaves=False)
    assert all(said.member_epoch >= 0 for said in scene.heartbeats)


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("a", -2)])
def test_who_ends_before_it_hears_that_it_has_joined_leaves(
    scene: ConsumerScene, instance_id: str | None, epoch: int
) -> None:
    scene.cluster.script("ConsumerGroupHeartbeat", Silence())
    membership, _ = scene.member(instance_id=instance_id)
    scene.until(lambda: len(scene.heartbeats) == 1)
    scene.leave(membership)
    assert [said.member_epoch for said in scene.heartbeats] == [0, epoch]


def test_who_was_refused_when_it_joined_has_nothing_to_leave(scene: ConsumerScene) -> None:
    refused = Response(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
    scene.cluster.serve({}, {"ConsumerGroupHeartbeat": lambda message: refused})
    membership, _ = scene.member()
    scene.until(lambda: membership.last_error is not None)
    scene.leave(membership)
    assert {said.member_epoch for said in scene.heartbeats} == {0}


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("a", -2)])
def test_a_member_whose_user_does_not_poll_leaves_and_comes_back_with_the_next_poll(
    scene: ConsumerScene, instance_id: str | None, epoch: int
) -> None:
    membership, handler = scene.member(max_poll_interval=10.0, instance_id=instance_id)
    scene.until(lambda: handler.owned == ALL)
    handler.is_polling = False
    scene.until(lambda: scene.heartbeats[-1].member_epoch == epoch, 11)
    with pytest.raises(KafkaError):
        membership.require_member()
    before = len(scene.heartbeats)
    scene.members.pass_time(100)
    assert len(scene.heartbeats) == before
    handler.is_polling = True
    scene.until(lambda: len(handler.events) == 3)
    assert handler.events == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]


def test_another_subscription_is_said_at_once(scene: ConsumerScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(1)
    scene.coordinator.target = partitions("u", 0)
    membership.subscribe(frozenset({"u"}), None)
    scene.until(lambda: handler.owned == partitions("u", 0), 1)
    assert ["u"] in [each.subscribed_topic_names for each in scene.heartbeats]


def test_a_pattern_is_the_brokers_to_match(scene: ConsumerScene) -> None:
    scene.coordinator.target = partitions("u", 0)
    membership, handler = scene.member((), pattern="u.*")
    scene.until(lambda: handler.owned == partitions("u", 0))
    assert (scene.heartbeats[0].subscribed_topic_names, scene.heartbeats[0].subscribed_topic_regex) == ([], "u.*")
    scene.members.pass_time(1)
    scene.coordinator.target = set(ALL)
    membership.subscribe(frozenset({"t"}), None)
    scene.until(lambda: handler.owned == ALL)
    assert ("", ["t"]) in [(each.subscribed_topic_regex, each.subscribed_topic_names) for each in scene.heartbeats]


def test_a_topic_without_a_name_yet_is_waited_for_and_holds_nothing_up(scene: ConsumerScene) -> None:
    scene.coordinator.ids = {**scene.cluster.ids, "later": UUID(int=77)}
    scene.coordinator.target = ALL | partitions("later", 0)
    _, handler = scene.member(("t", "later"))
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(30)
    assert len(scene.cluster.requests("Metadata")) < 60
    scene.cluster.topic("later", 1)
    scene.cluster.ids["later"] = UUID(int=77)
    scene.until(lambda: handler.owned == ALL | partitions("later", 0), 3)
    scene.members.pass_time(1)
    assert owned(scene.heartbeats[-1]) == {scene.cluster.ids["t"]: [0, 1, 2, 3], UUID(int=77): [0]}


def test_a_commit_of_an_old_epoch_may_be_repeated_with_the_newer_one(scene: ConsumerScene) -> None:
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.members.pass_time(1)
    sent = membership.require_member()
    scene.coordinator.target = partitions("t", 0)
    assert membership.commit_refused(KafkaError(Error.STALE_MEMBER_EPOCH), sent)
    scene.until(lambda: membership.require_member().generation == 2, 1)
    assert not membership.commit_refused(KafkaError(Error.GROUP_AUTHORIZATION_FAILED), sent)


@pytest.mark.parametrize("served", [None, (0, 1)])
def test_a_broker_without_the_protocol_is_told_with_the_way_out(
    scene: ConsumerScene, served: tuple[int, int] | None, caplog: pytest.LogCaptureFixture
) -> None:
    if served is None:
        del scene.cluster.served[68]
    else:
        scene.cluster.serve(
            {}, {"ConsumerGroupHeartbeat": lambda message: Response(error_code=Error.UNSUPPORTED_VERSION)}
        )
    membership, _ = scene.member()
    error = scene.ended_with(membership)
    assert isinstance(error, UnsupportedVersionError)
    assert "set group.protocol=classic" in str(error)
    assert any("set group.protocol=classic" in record.getMessage() for record in caplog.records)


def test_a_pattern_needs_a_broker_that_takes_it(scene: ConsumerScene) -> None:
    scene.cluster.served[68] = (0, 0)
    membership, _ = scene.member((), pattern="t.*")
    error = scene.ended_with(membership)
    assert isinstance(error, UnsupportedVersionError)
    assert "Kafka 4.0" in str(error)


def test_an_early_broker_is_spoken_to_in_its_version(scene: ConsumerScene) -> None:
    scene.cluster.served[68] = (0, 0)
    _, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)


@pytest.mark.parametrize(
    "error",
    [
        Error.UNRELEASED_INSTANCE_ID,
        Error.FENCED_INSTANCE_ID,
        Error.UNSUPPORTED_ASSIGNOR,
        Error.INVALID_REGULAR_EXPRESSION,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_REQUEST,
    ],
)
def test_what_is_refused_for_good_is_told_in_the_brokers_words_and_costs_everything(
    scene: ConsumerScene, error: Error
) -> None:
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    scene.cluster.serve(
        {}, {"ConsumerGroupHeartbeat": lambda message: Response(error_code=error, error_message="so it is")}
    )
    found = scene.ended_with(membership)
    assert isinstance(found, KafkaError)
    assert found.error is error
    assert "so it is" in str(found)
    assert handler.events[-1] == ("lost", ALL)
    scene.cluster.serve({}, {"ConsumerGroupHeartbeat": scene.coordinator.heartbeat})
    membership.polled(scene.driver.now())
    scene.members.run(membership)
    scene.until(lambda: handler.owned == ALL)


# Hostile coordinators ----------------------------------------------------------------------------------------------


def changes() -> dict[str, tuple[Callable[[Any], None], str]]:
    def set_to(**fields: Any) -> Callable[[Any], None]:
        def change(response: Any) -> None:
            for name, value in fields.items():
                setattr(response, name, value)

        return change

    def of(*topics: tuple[int, list[int]]) -> Callable[[Any], None]:
        parts = [Response.TopicPartitions(topic_id=UUID(int=key), partitions=own) for key, own in topics]
        return set_to(assignment=Response.Assignment(topic_partitions=parts))

    return {
        "for another member": (set_to(member_id="another"), "for member 'another'"),
        "an epoch of nobody": (set_to(member_epoch=0), "member epoch 0"),
        "a negative epoch": (set_to(member_epoch=-1), "member epoch -1"),
        "no interval": (set_to(heartbeat_interval_ms=0), "every 0 ms"),
        "a negative interval": (set_to(heartbeat_interval_ms=-5), "every -5 ms"),
        "a topic twice": (of((1, [0]), (1, [1])), "assigned twice"),
        "a partition twice": (of((1, [0, 0])), "assigned twice"),
        "a negative partition": (of((1, [0, -1])), "partition -1"),
        "no topic": (of((0, [0])), "assigned twice, or is none"),
        "a topic that is not subscribed to": (of((2, [0])), "not subscribed"),
    }


@pytest.mark.parametrize("name", changes())
def test_a_response_that_cannot_be_is_told_and_not_taken(scene: ConsumerScene, name: str) -> None:
    scene.coordinator.change, text = changes()[name]
    membership, handler = scene.member()
    error = scene.ended_with(membership)
    assert isinstance(error, RemoteProtocolError)
    assert text in str(error)
    assert handler.events == []


def test_a_member_epoch_that_goes_back_is_told_and_costs_everything(scene: ConsumerScene) -> None:
    scene.coordinator.epoch = 5
    membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)

    def back(response: Any) -> None:
        response.member_epoch = 3

    scene.coordinator.change = back
    assert "member epoch 3 comes after 6" in str(scene.ended_with(membership))
    assert handler.events[-1] == ("lost", ALL)


def test_an_interval_of_a_month_does_not_silence_a_member(scene: ConsumerScene) -> None:
    scene.coordinator.interval_ms = 2**31 - 1
    _membership, handler = scene.member()
    scene.until(lambda: handler.owned == ALL)
    before = len(scene.heartbeats)
    scene.members.pass_time(1000)
    assert len(scene.heartbeats) > before + 2


@pytest.mark.parametrize(
    "error",
    [
        Error.FENCED_MEMBER_EPOCH,
        Error.UNKNOWN_MEMBER_ID,
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_what_is_refused_for_ever_is_tried_at_a_bounded_rate(scene: ConsumerScene, error: Error) -> None:
    scene.cluster.serve({}, {"ConsumerGroupHeartbeat": lambda message: Response(error_code=error)})
    membership, _ = scene.member()
    scene.members.pass_time(100)
    assert 80 < len(scene.heartbeats) < 160
    assert isinstance(membership.last_error, KafkaError)
    before = scene.driver.now()
    scene.leave(membership)
    assert scene.driver.now() - before < 10.1


def test_a_coordinator_that_lets_a_member_in_and_fences_it_at_once_is_asked_at_a_bounded_rate(
    scene: ConsumerScene,
) -> None:
    answers = cycle([scene.coordinator.heartbeat, lambda message: Response(error_code=Error.FENCED_MEMBER_EPOCH)])
    scene.cluster.serve({}, {"ConsumerGroupHeartbeat": lambda message: next(answers)(message)})
    scene.member()
    scene.members.pass_time(100)
    assert len(scene.heartbeats) < 320


def test_a_coordinator_that_moves_at_every_call_is_followed_at_a_bounded_rate() -> None:
    scene = ConsumerScene(nodes=3)
    nodes = cycle((0, 1, 77, 2))
    found = scene.groups.find_coordinator

    def move(message: Any) -> Any:
        scene.groups.coordinator = next(nodes)
        return found(message)

    scene.cluster.serve(
        {},
        {
            "FindCoordinator": move,
            "ConsumerGroupHeartbeat": lambda message: Response(error_code=Error.NOT_COORDINATOR),
        },
    )
    membership, _ = scene.member()
    scene.members.pass_time(100)
    assert len(scene.cluster.requests("FindCoordinator")) < 160
    scene.leave(membership)


def test_a_topic_whose_name_is_told_of_two_ids_is_told(scene: ConsumerScene) -> None:
    scene.coordinator.ids = {"t": UUID(int=1), "u": UUID(int=2)}
    scene.coordinator.target = ALL | partitions("u", 0)
    kind = messages.MetadataResponse

    def metadata(message: Any) -> Any:
        response = FakeCluster._Metadata(scene.cluster, messages.MetadataRequest(topics=[]), 0)
        response.topics = [
            kind.MetadataResponseTopic(name="t", topic_id=topic.topic_id) for topic in message.topics or []
        ]
        return response

    scene.cluster.serve({}, {"Metadata": metadata})
    membership, handler = scene.member(("t", "u"))
    assert isinstance(scene.ended_with(membership), TagwireError)
    assert handler.events == []
