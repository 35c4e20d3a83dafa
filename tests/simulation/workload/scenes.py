"""Faults that belong together: what breaks promises is mostly two of them, close together, to those who have to do with
each other. Each scene is a few steps of a nemesis."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.workload.stage import Spec

BROKER: Final = "broker"
FOR_GOOD: Final = 600.0
"""Seconds that no run lasts: what is killed for so long is there again when faults end."""

LOST: Final = (7.0, 9.0, 14.0)
"""Seconds for which a member or a transaction is not heard of, and given up."""


def scenes(random: Random, plan: Spec) -> list[Spec]:
    """The steps of one to four scenes."""
    found: list[Spec] = []
    for _ in range(random.randint(1, 4)):
        at = random.uniform(0.1, 0.8) * plan["duration"]
        has_sinks = any(actor["kind"] == "sink" for actor in plan["actors"])
        scene = driver_dies if has_sinks and random.random() < 0.5 else random.choice(_SCENES)
        found += after(at, scene(random, plan))
    return found


def far_away(random: Random, plan: Spec) -> Spec:
    """The broker is far away all the time: most of what is under way is so when another fault comes."""
    return _step("slow", 0.0, plan["duration"], a=BROKER, latency=random.choice([0.03, 0.1, 0.3]), bandwidth=None)


def after(at: float, steps: list[Spec]) -> list[Spec]:
    """The same steps, so many seconds later."""
    return [step | {"at": round(at + step["at"], 3)} for step in steps]


def _step(kind: str, at: float = 0.0, seconds: float = 0.0, **detail: Any) -> Spec:
    return {"at": at, "kind": kind, "seconds": round(seconds, 3), **detail}


def _of(plan: Spec, *kinds: str) -> list[Spec]:
    """The actors of these kinds, or all where there are none."""
    return [actor for actor in plan["actors"] if actor["kind"] in kinds] or plan["actors"]


def _member(random: Random, plan: Spec) -> Spec:
    found: Spec = random.choice(_of(plan, "consumer", "thread-consumer", "mover"))
    return found


def _writer(random: Random, plan: Spec) -> Spec:
    found: Spec = random.choice(_of(plan, "producer", "threads", "transactions", "mover"))
    return found


def zombie(random: Random, plan: Spec) -> list[Spec]:
    """Who is thought dead comes back when others have taken over, perhaps while the broker does, too."""
    actor = random.choice([_member, _writer])(random, plan)
    seconds = random.choice(LOST) * random.uniform(0.9, 1.3)
    steps = [_step("client_pause", 0.0, seconds, target=actor["name"])]
    if random.random() < 0.4:
        steps.append(_step("broker_kill", seconds + random.uniform(-1, 1), random.uniform(0.05, 1.0)))
    return steps


def out_of_reach(random: Random, plan: Spec) -> list[Spec]:
    """A member whose coordinator does not hear it, and who may still read: from another node, or what it has."""
    nodes = plan["cluster"]["nodes"]
    side = BROKER if nodes == 1 else f"{BROKER}/{random.randint(1, nodes)}"
    seconds = random.choice(LOST) * random.uniform(1, 2)
    return [_step("partition", 0.0, seconds, a=_member(random, plan)["name"], b=side, one_way=random.random() < 0.3)]


def late_and_gone(random: Random, name: str, node: int, session: float) -> list[Spec]:
    """Somebody who hears nothing of one node for most of a session, then all of it at once, and is not heard there any
    more by then; others it hears all the time."""
    quiet = session * random.uniform(0.5, 0.85)
    side = f"{BROKER}/{node}"
    return [
        _step("partition", 0.0, quiet, a=side, b=name, one_way=True),
        _step("partition", quiet - random.uniform(0.05, 0.3), 2.5 * session, a=name, b=side, one_way=True),
    ]


def dead_for_good(random: Random, plan: Spec) -> list[Spec]:
    """Members that die, one after the other, and are not started again while this matters."""
    found = _of(plan, "consumer", "thread-consumer", "mover")
    chosen = random.sample(found, random.randint(1, min(2, len(found))))
    return [_step("client_kill", random.uniform(0, 5), FOR_GOOD, target=actor["name"]) for actor in chosen]


def unanswered(random: Random, plan: Spec) -> list[Spec]:
    """What a producer has in flight is written, and the answers are late or lost: it sends again, or gives up."""
    actor = _writer(random, plan)
    seconds = actor.get("timeout", 10.0) * random.uniform(0.7, 1.6)
    how = random.choice(["slow", "half_open", "disk_slow", "broker_pause", "one_way"])
    if how == "slow":
        latency = actor["request_timeout"] * random.choice([0.3, 0.6, 1.2])
        steps = [_step("slow", 0.0, seconds, a=actor["name"], latency=round(latency, 3), bandwidth=None)]
    elif how == "half_open":
        steps = [_step("half_open", 0.0, seconds, a=actor["name"], to="client")]
    elif how == "one_way":
        steps = [_step("partition", 0.0, seconds, a=BROKER, b=actor["name"], one_way=True)]
    elif how == "disk_slow":
        latency = round(actor["request_timeout"] * random.uniform(0.5, 1.5), 3)
        steps = [_step("disk_slow", 0.0, seconds, latency=latency, chance=random.choice([0.05, 0.2]))]
    else:
        steps = [_step("broker_pause", 0.0, seconds)]
    for _ in range(random.choice([0, 1, 3])):
        steps.append(_step("cut", random.uniform(0, seconds), a=actor["name"], told="both"))
    return steps


def moved_under_load(random: Random, plan: Spec) -> list[Spec]:
    """Leaders and coordinators that move again and again, while requests are under way."""
    nodes = plan["cluster"]["nodes"]
    if nodes == 1:
        return refused_under_load(random, plan)
    groups = [{"group": actor["group"]} for actor in plan["actors"] if "group" in actor]
    ids = [{"transactional_id": actor["transactional_id"]} for actor in plan["actors"] if "transactional_id" in actor]
    steps = []
    for _ in range(random.randint(3, 10)):
        node = random.randint(1, nodes)
        if random.random() < 0.7 or not groups + ids:
            topic = random.choice(plan["topics"])
            place = {"topic": topic["name"], "partition": random.randrange(topic["partitions"])}
            steps.append(_step("move_leader", random.uniform(0, 6), node=node, **place))
        else:
            steps.append(_step("move_coordinator", random.uniform(0, 6), node=node, **random.choice(groups + ids)))
    return steps


def all_away_and_back(random: Random, topics: list[Spec], nodes: int, duration: float) -> list[Spec]:
    """Perhaps one node leads all there is, and all of it is away and back at once: no other partition of a reader's
    session has it send anything."""
    if random.random() >= 0.5:
        return []
    at, node = random.uniform(0.5, 0.6 * duration), random.randint(1, nodes)
    steps: list[Spec] = []
    for later, to in ((0.0, node), (1.5, node % nodes + 1), (random.choice([1.52, 1.7]), node)):
        steps += [
            _step("move_leader", round(at + later, 3), topic=topic["name"], partition=partition, node=to)
            for topic in topics
            for partition in range(topic["partitions"])
        ]
    return steps


def refused_under_load(random: Random, plan: Spec) -> list[Spec]:
    """Writes that fail one at a time, while others are under way."""
    return [
        _step(
            "disk_error",
            random.uniform(0, 3),
            random.uniform(0.05, 1.0),
            operation=operation,
            count=1,
            after=0,
            part="",
        )
        for operation in random.choices(["write", "sync"], k=random.randint(1, 4))
    ]


def crowd(random: Random, plan: Spec) -> list[Spec]:
    """Members that come and go all the time: one rebalance meets the other."""
    found = _of(plan, "consumer", "thread-consumer", "mover")
    return [
        _step(
            random.choice(["client_kill", "client_kill", "client_pause"]),
            random.uniform(0, 8),
            random.choice([0.2, 1.0, 4.0]) * random.random(),
            target=random.choice(found)["name"],
        )
        for _ in range(random.randint(2, 6))
    ]


def driver_dies(random: Random, plan: Spec) -> list[Spec]:
    """A driver of a query that is slow, and dies or hangs between any two of its steps."""
    name = random.choice(_of(plan, "sink"))["name"]
    steps = [_step("slow", 0.0, 8.0, a=name, latency=random.choice([0.05, 0.2, 0.4]), bandwidth=None)]
    for _ in range(random.randint(2, 5)):
        kind = random.choice(["client_kill", "client_kill", "client_pause"])
        steps.append(_step(kind, random.uniform(0, 10), random.choice([0.1, 1.0, 4.0]), target=name))
    return steps


_SCENES: Final[tuple[Callable[[Random, Spec], list[Spec]], ...]] = (
    zombie,
    zombie,
    out_of_reach,
    dead_for_good,
    unanswered,
    unanswered,
    unanswered,
    moved_under_load,
    moved_under_load,
    crowd,
)
