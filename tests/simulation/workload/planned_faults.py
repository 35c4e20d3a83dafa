"""What goes wrong in a plan: which kinds a seed has, how often, and each step of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.simulation.workload.fault_draws import BROKER, crash_moment, disk_steps, network_steps
from tests.simulation.workload.scenes import far_away, scenes
from tests.simulation.workload.stage import Spec

RELEASES = ("2.8", "3.3", "3.9", "4.0", "4.1", "4.2", "4.3")
"""As which a broker may act: all have transactions and idempotence; from 4.0 on there are groups of KIP-848."""


def faults(random: Random, plan: Spec) -> list[Spec]:
    """The steps of a nemesis, by their times. Some seeds have none: what is found there needs no fault."""
    if random.random() < 0.15:
        return []
    steps: list[Spec] = []
    if random.random() < 0.75:
        steps += _steps(random, plan)
    if random.random() < 0.4:
        actors = [actor["name"] for actor in plan["actors"]]
        steps += network_steps(random, actors, plan["duration"], plan["cluster"]["nodes"])
    if random.random() < 0.25:
        steps += disk_steps(random, plan["duration"])
    if random.random() < 0.5:
        steps += scenes(random, plan)
    if random.random() < 0.35:
        steps.append(far_away(random, plan))
    return sorted(steps, key=lambda step: step["at"])


def _steps(random: Random, plan: Spec) -> list[Spec]:
    """Of what befalls processes and nodes: some kinds, each with a rate of its own."""
    drawing = _OF_ANY | _OF_CLUSTER
    kinds = random.sample(list(_OF_ANY), random.randint(1, 4))
    if plan["cluster"]["nodes"] > 1:
        kinds += random.sample(list(_OF_CLUSTER), random.randint(1, 3))
    rates = [random.random() for _ in kinds]
    every = random.choice([1.0, 2.5, 5.0])
    steps: list[Spec] = []
    at = random.expovariate(1 / every)
    while at < plan["duration"]:
        (kind,) = random.choices(kinds, rates)
        steps.append({"at": round(at, 3), "kind": kind, **drawing[kind](random, plan)})
        at += random.expovariate(1 / every)
    return steps


def _actor(random: Random, plan: Spec) -> str:
    names: list[str] = [actor["name"] for actor in plan["actors"]]
    return random.choice(names)


def _node(random: Random, plan: Spec) -> int:
    return random.randint(1, plan["cluster"]["nodes"])


def _seconds(random: Random, most: float) -> float:
    return round(min(0.05 + random.expovariate(3 / most), most), 3)


def _broker_kill(random: Random, plan: Spec) -> Spec:
    return {"seconds": _seconds(random, 4)} | crash_moment(random)


def _broker_power(random: Random, plan: Spec) -> Spec:
    return {"seconds": _seconds(random, 4)} | crash_moment(random)


def _broker_stop(random: Random, plan: Spec) -> Spec:
    """A clean restart, of a version that has what the actors use."""
    newest = [one for one in RELEASES if not _needs_consumer_groups(plan) or one >= "4.0"]
    release = random.choice(newest) if random.random() < 0.4 and plan["cluster"]["as_release"] is not None else None
    return {"seconds": _seconds(random, 3), "release": release}


def _needs_consumer_groups(plan: Spec) -> bool:
    return any(actor.get("consumer", actor).get("protocol") == "consumer" for actor in plan["actors"])


def _broker_pause(random: Random, plan: Spec) -> Spec:
    return {"seconds": _seconds(random, 10)}


def _client_kill(random: Random, plan: Spec) -> Spec:
    return {"target": _actor(random, plan), "seconds": _seconds(random, 6)}


def _client_pause(random: Random, plan: Spec) -> Spec:
    return {"target": _actor(random, plan), "seconds": _seconds(random, 20)}


def _clock(random: Random, plan: Spec) -> Spec:
    target = random.choice([BROKER, _actor(random, plan)])
    offset = random.choice([-3600.0, -5.0, -0.5, 0.5, 5.0, 60.0, 3600.0])
    return {"seconds": _seconds(random, 15), "target": target, "offset": offset}


def _node_stop(random: Random, plan: Spec) -> Spec:
    return {"seconds": _seconds(random, 6), "node": _node(random, plan)}


def _node_isolate(random: Random, plan: Spec) -> Spec:
    return {**_node_stop(random, plan), "fenced": random.random() < 0.7}


def _move_leader(random: Random, plan: Spec) -> Spec:
    topic = random.choice(plan["topics"])
    partition = random.randrange(topic["partitions"])
    return {"topic": topic["name"], "partition": partition, "node": _node(random, plan)}


def _move_coordinator(random: Random, plan: Spec) -> Spec:
    groups = [{"group": actor["group"]} for actor in plan["actors"] if "group" in actor]
    ids = [{"transactional_id": actor["transactional_id"]} for actor in plan["actors"] if "transactional_id" in actor]
    return {"node": _node(random, plan), **random.choice(groups + ids or [{"group": "group-1"}])}


_Drawing = dict[str, Callable[[Random, Spec], Spec]]

_OF_ANY: _Drawing = {
    "broker_kill": _broker_kill,
    "broker_power": _broker_power,
    "broker_stop": _broker_stop,
    "broker_pause": _broker_pause,
    "client_kill": _client_kill,
    "client_pause": _client_pause,
    "clock": _clock,
}
_OF_CLUSTER: _Drawing = {
    "node_stop": _node_stop,
    "node_kill": _node_stop,
    "node_isolate": _node_isolate,
    "move_leader": _move_leader,
    "move_coordinator": _move_coordinator,
}
