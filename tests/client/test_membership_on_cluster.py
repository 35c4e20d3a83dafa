"""Members of a group whose coordinator moves and ends, on a cluster of three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tagwire.broker import Cluster

from .group_members import Handler
from .membership_walks import SESSION, Scene
from .walks import Kind

FLAVOURS = ("range", "cooperative-sticky", "consumer:uniform")


@contextmanager
def shared_on_cluster(flavour: str, session: float = SESSION) -> Iterator[tuple[Scene, Cluster, Handler, Handler]]:
    """Two members that share the partitions of a topic."""
    timing = {"group_session_timeout_s": session, "group_heartbeat_interval_s": 0.1}
    with Cluster(nodes=3, **timing) as cluster:
        scene = Scene(Kind("the embedded cluster", cluster.bootstrap), flavour)
        try:
            settings = {} if flavour.startswith("consumer") else {"session_timeout": session}
            _, one = scene.member(**settings)
            _, two = scene.member(**settings)
            scene.until(lambda: scene.is_shared(one, two))
            yield scene, cluster, one, two
            assert not any(scene.members.errors.values())
        finally:
            scene.close()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_group_goes_on_wherever_its_coordinator_moves_to(flavour: str) -> None:
    with shared_on_cluster(flavour, session=20.0) as (scene, cluster, one, two):
        before = len(one.events), len(two.events)
        for _ in range(3):
            at = cluster.coordinator(scene.group)
            cluster.move_coordinator(at % 3 + 1, scene.group)
            scene.members.pass_time(0.3)
        assert scene.is_shared(one, two)
        assert (len(one.events), len(two.events)) == before
        _, three = scene.member()
        scene.until(lambda: scene.is_shared(one, two, three))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_group_goes_on_after_its_coordinator_has_ended(flavour: str, ending: str) -> None:
    with shared_on_cluster(flavour, session=20.0) as (scene, cluster, one, two):
        before = len(one.events), len(two.events)
        getattr(cluster, ending)(cluster.coordinator(scene.group))
        scene.members.pass_time(1.0)
        assert (len(one.events), len(two.events)) == before
        _, three = scene.member()
        scene.until(lambda: scene.is_shared(one, two, three))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_members_that_cannot_reach_any_node_lose_what_they_have_or_keep_it_unharmed(flavour: str) -> None:
    with shared_on_cluster(flavour) as (scene, cluster, one, two):
        for node in cluster.nodes:
            cluster.isolate(node, fenced=False)
        scene.members.pass_time(SESSION + 0.5)
        if not flavour.startswith("consumer"):  # the length of KIP-848's session is the coordinator's to know
            assert not one.owned
            assert not two.owned
        for node in cluster.nodes:
            cluster.heal(node)
        scene.until(lambda: scene.is_shared(one, two))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("is_noticed", [False, True])
def test_a_member_leaves_at_once_wherever_its_coordinator_has_moved_to(flavour: str, is_noticed: bool) -> None:
    with shared_on_cluster(flavour, session=60.0) as (scene, cluster, one, two):
        third, three = scene.member(**({} if flavour.startswith("consumer") else {"session_timeout": 60.0}))
        scene.until(lambda: scene.is_shared(one, two, three))
        cluster.move_coordinator(cluster.coordinator(scene.group) % 3 + 1, scene.group)
        if is_noticed:
            third.coordinator.mark_unknown("a response has told of it")
        three.owned = set()
        scene.members.leave(third)
        scene.until(lambda: scene.is_shared(one, two), 30)
