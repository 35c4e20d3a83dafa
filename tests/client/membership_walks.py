"""Members of a group with any broker: the same tests for the embedded one and for Kafka's.

A module that has a broker derives from `MembershipWalks` and gives the fixture `kind`; see `Walks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pytest

from tagwire.client import Admin, NewTopic
from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.consuming.assignors import ASSIGNORS
from tagwire.client.consuming.classic_membership import ClassicMembership
from tagwire.client.consuming.consumer_membership import ConsumerMembership
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.membership import Membership, RebalanceHandler
from tagwire.client.network_client import NetworkClient
from tagwire.errors import Error, KafkaError, UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.rpc import api_key

from .group_members import Handler, Members
from .walks import Kind

CLASSIC: Final = tuple(ASSIGNORS)
CONSUMER: Final = ("consumer:uniform", "consumer:range")
PARTITIONS: Final = 6

# What a session lasts, where the member says it, and what a broker's is to be.
SESSION: Final = 2.0

# More than any of this takes, Kafka's first start of a coordinator included.
SECONDS: Final = 40.0

_NUMBERS: Final = count()


class Scene:
    """One group, its topic, and its members."""

    def __init__(self, kind: Kind, flavour: str) -> None:
        addresses = [address.rpartition(":") for address in kind.bootstrap.split(",")]
        self.kind = kind
        self.flavour = flavour
        self.group = f"group-{next(_NUMBERS)}"
        self.topic = f"topic-of-{self.group}"
        self.driver = BlockingDriver()
        self.members = Members(self.driver, [(host, int(port)) for host, _, port in addresses])
        with kind.client() as client:
            is_preview = kind.name.startswith("Kafka 3.")  # listed, and off
            self.is_served = api_key("ConsumerGroupHeartbeat") in client.versions() and not is_preview
            Admin(client).create_topics([NewTopic(self.topic, PARTITIONS)])

    @property
    def all(self) -> set[TopicPartition]:
        return {TopicPartition(self.topic, index) for index in range(PARTITIONS)}

    def member(self, pattern: str | None = None, **settings: Any) -> tuple[Any, Handler]:
        def make(network: NetworkClient, handler: RebalanceHandler) -> Membership:
            if self.flavour in ASSIGNORS:
                own = {"session_timeout": SESSION, "heartbeat_interval": 0.1, **settings}
                made = GroupSettings(self.group, assignors=(self.flavour,), **own)
                return ClassicMembership(network, made, [ASSIGNORS[self.flavour]()], handler)
            made = GroupSettings(self.group, "consumer", remote_assignor=self.flavour.rpartition(":")[2], **settings)
            return ConsumerMembership(network, made, handler)

        return self.members.start(make, [] if pattern else [self.topic], pattern)

    def until(self, is_true: Callable[[], bool], seconds: float = SECONDS) -> None:
        self.members.until(is_true, seconds)

    def close(self) -> None:
        """Kills all that is left."""
        self.members.close()
        self.driver.close()

    def is_shared(self, *handlers: Handler, partitions: int = PARTITIONS) -> bool:
        """Whether these have all partitions among them, each one once, and none has too many."""
        owned = [partition for handler in handlers for partition in handler.owned]
        most = -(-partitions // len(handlers))
        return len(owned) == len(set(owned)) == partitions and all(len(each.owned) <= most for each in handlers)


@contextmanager
def scene_of(kind: Kind, flavour: str) -> Iterator[Scene]:
    """A scene, ended at last. Skips the test where the broker lacks the flavour."""
    scene = Scene(kind, flavour)
    try:
        if flavour in CONSUMER and not scene.is_served:
            pytest.skip(f"{kind.name} does not serve ConsumerGroupHeartbeat")
        yield scene
    finally:
        scene.close()


class MembershipWalks:
    """What every group does."""

    @pytest.fixture(params=[*CLASSIC, *CONSUMER])
    def scene(self, kind: Kind, request: pytest.FixtureRequest) -> Iterator[Scene]:
        with scene_of(kind, request.param) as scene:
            yield scene

    def test_members_that_come_leave_and_are_killed_share_the_partitions(self, scene: Scene) -> None:
        first, one = scene.member()
        scene.until(lambda: scene.is_shared(one))
        second, two = scene.member()
        third, three = scene.member()
        scene.until(lambda: scene.is_shared(one, two, three))
        one.owned = set()
        scene.members.leave(first)
        scene.until(lambda: scene.is_shared(two, three))
        scene.members.end(second)
        scene.until(lambda: scene.is_shared(three))
        assert not any(what == "lost" for each in (one, two, three) for what, _ in each.events)
        three.owned = set()
        scene.members.leave(third)

    def test_a_static_member_comes_back_to_what_it_had(self, scene: Scene) -> None:
        first, one = scene.member(instance_id="a")
        _, two = scene.member(instance_id="b")
        scene.until(lambda: scene.is_shared(one, two))
        had = one.owned
        events = len(two.events)
        scene.members.leave(first)
        _, again = scene.member(instance_id="a")
        scene.until(lambda: again.owned == had)
        scene.members.pass_time(0.5)
        assert not any(which for _, which in two.events[events:])

    def test_a_topic_that_gets_more_partitions_has_them_assigned(self, scene: Scene) -> None:
        _, one = scene.member(metadata_max_age=0.5)
        scene.until(lambda: scene.is_shared(one))
        with scene.kind.client() as client:
            Admin(client).create_partitions({scene.topic: PARTITIONS + 2})
        scene.until(lambda: scene.is_shared(one, partitions=PARTITIONS + 2))

    def test_topics_that_a_pattern_matches_are_assigned(self, scene: Scene) -> None:
        _, one = scene.member(pattern=f"{scene.topic[:-1]}[{scene.topic[-1]}]")
        scene.until(lambda: scene.is_shared(one))

    def test_a_user_who_does_not_poll_loses_the_partitions_until_the_next_poll(self, scene: Scene) -> None:
        first, one = scene.member(max_poll_interval=1.0)
        scene.until(lambda: scene.is_shared(one))
        one.is_polling = False
        _, two = scene.member()
        scene.until(lambda: two.owned == scene.all)
        with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
            first.require_member()
        one.is_polling = True
        scene.until(lambda: scene.is_shared(one, two))

    @pytest.mark.parametrize("flavour", ["range", "consumer:uniform"])
    def test_of_two_with_one_instance_id_one_ends(self, kind: Kind, flavour: str) -> None:
        with scene_of(kind, flavour) as scene:
            first, one = scene.member(instance_id="a")
            scene.until(lambda: scene.is_shared(one))
            second, _ = scene.member(instance_id="a")
            ends = first if flavour == "range" else second
            scene.until(lambda: ends in scene.members.errors)
            error = scene.members.errors[ends]
            assert isinstance(error, KafkaError)
            assert error.error is (Error.FENCED_INSTANCE_ID if ends is first else Error.UNRELEASED_INSTANCE_ID)

    def test_a_broker_without_the_new_protocol_is_told_with_the_way_out(self, kind: Kind) -> None:
        scene = Scene(kind, "consumer:uniform")
        try:
            if scene.is_served:
                pytest.skip(f"{kind.name} serves ConsumerGroupHeartbeat")
            membership, _ = scene.member()
            scene.until(lambda: membership in scene.members.errors)
            assert isinstance(scene.members.errors[membership], UnsupportedVersionError)
            assert "group.protocol=classic" in str(scene.members.errors[membership])
        finally:
            scene.close()
