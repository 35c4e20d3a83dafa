"""Worlds of those who come back when others have gone on without them, and act upon what they knew: a driver of the
sink two micro-batches later, a commit when its member is another one, a member that never saw what it had meanwhile,
and the owner of a transactional id whose coordinator may have forgotten it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.workload.encounters import SELDOM, members_of, owners_of, sunk
from tests.simulation.workload.plan_parts import numbered_topic, one_of, small_cluster, steady_producer
from tests.simulation.workload.spark_driver import IS_TO_FENCE
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.03
"""Of all seeds that are neither calm nor of stragglers."""


def late_wakers(seed: int) -> Spec | None:
    """What such a world has instead of what the seed's plan would have; None for most seeds."""
    return one_of(f"late wakers/{seed}", SHARE, ROOMS)


def passed_by(random: Random, duration: float) -> Spec:
    """Drivers of a query that are left where they have seen what is open, and wake when the next one has decided a
    micro-batch, and one more, which it is slow to carry out."""
    stops = {
        "checks": {"dies": 0.45},
        "gives-up": {"dies": 1.0},
        IS_TO_FENCE: {"is-left": 0.7},
        "has-decided": {"sleeps": 0.5},
    }
    shared = {
        "stops": stops,
        "nap": 2.0,
        "naps": {IS_TO_FENCE: [0.03, 0.08], "has-decided": [0.03, 0.06]},
        "tasks": 1,  # the id that another driver has seen is the next but one to be used
        "rows": 4,
        "fail": 0.0,
        "timeout_ms": 30_000,
        "workers": 1,  # who keeps the ids of the tasks that were there before
        "serial": True,
        "keeps": False,
    }
    return sunk(random, duration + 60.0, shared)


def forgotten(random: Random, duration: float) -> Spec:
    """Ids that are taken over all the time, on a disk so slow that what is stored of several is stored together, and
    power that is lost when not all of that need be on it."""
    duration += 30.0
    topics = [numbered_topic(1, 3, "steady")]
    own = {"records": 1, "count": 3, "pace": 0.02, "forsake": 0.7, "doze": 0.0, "returns": 1.0}
    own |= {"request_timeout": 2.0, "timeout": 3.0, "max_block": 3.0}
    actors = owners_of(random, topics, duration, random.randint(5, 7), own)
    slow = {"latency": random.choice([0.02, 0.03]), "chance": 1.0, "part": ""}
    steps: list[Spec] = [{"at": 0.1, "kind": "disk_slow", "seconds": duration, **slow}]
    at = random.uniform(1.5, 3.0)
    while at < duration:
        steps.append({"at": round(at, 3), "kind": "broker_power", "seconds": 0.2, "spares": None, "steps": 0})
        at += random.uniform(2.0, 3.0)
    cluster = small_cluster(random) | {"fsync": "interval"}
    cluster["upkeep"] |= SELDOM
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def thrown_out_while_committing(random: Random, duration: float) -> Spec:
    """Members of KIP-848 that commit all the time, do not wait for it, and are turned away for longer than they may be:
    what they asked for then is still to be committed when they have joined again."""
    duration += 24.0
    topics = [numbered_topic(n, random.choice([2, 3]), "steady") for n in (1, 2)]
    members = members_of(random, topics, "consumer", 2)
    for actor in members:
        actor |= {"auto_commit": False, "max_poll_interval": 20.0, "instance_id": None, "at": 0.0}
        actor |= {"request_timeout": 20.0, "max_poll_records": 5, "pace": 0.02}
        actor["steps"] = {"nothing": 0.3, "commit_async": 1.0}
    steps: list[Spec] = []
    at = random.uniform(1.0, 2.0)
    while at < duration - 6:
        seconds = random.uniform(4.2, 5.5)
        steps.append({"at": round(at, 3), "kind": "refuse", "seconds": round(seconds, 3)})
        cut = {"a": random.choice(members)["name"], "told": "both"}
        steps.append({"at": round(at + 0.01, 3), "kind": "cut", "seconds": 0.0, **cut})
        at += seconds + random.uniform(1.5, 3.0)
    actors = [steady_producer(random, "producer-1", topics, duration), *members]
    cluster = small_cluster(random) | {"as_release": random.choice([None, "4.0", "4.2"])}  # who takes older epochs
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def had_without_knowing(random: Random, duration: float) -> Spec:
    """A member of KIP-848 that polls so seldom that partitions become its own and are taken back in between, since
    another one comes and goes."""
    duration += 50.0
    topics = [numbered_topic(n, random.choice([2, 3]), "steady") for n in (1, 2)]
    members = members_of(random, topics, "consumer", 2)
    for number, actor in enumerate(members):
        actor |= {"auto_commit": False, "max_poll_interval": 8.0, "instance_id": None, "at": round(0.7 * number, 2)}
    members[0] |= {"pace": random.choice([3.0, 4.0]), "max_poll_records": 500, "steps": {"nothing": 1.0}}
    members[1] |= {"pace": random.choice([0.3, 0.6]), "steps": {"nothing": 1.0, "leave": 0.06}}
    actors = [steady_producer(random, "producer-1", topics, duration), *members]
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": []}


ROOMS: Final[tuple[Callable[[Random, float], Spec], ...]] = (
    *[passed_by] * 2,
    forgotten,
    thrown_out_while_committing,
    had_without_knowing,
)
