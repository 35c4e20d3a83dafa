"""Plans: what happens in a run, drawn from its seed before anything happens, as data that JSON can hold.

Each seed enables a part of all features and kinds of faults, with rates of its own (swarm testing): a run that does
everything at once finds less than many that each do something else.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulation.workload.calm import calm
from tests.simulation.workload.close_ups import close_up
from tests.simulation.workload.encounters import encounters
from tests.simulation.workload.guarded_plans import guarded, guards
from tests.simulation.workload.late_wakers import late_wakers
from tests.simulation.workload.planned_actors import admin, group, movers, producer, sinks, transactions
from tests.simulation.workload.planned_faults import RELEASES, faults
from tests.simulation.workload.planned_quotas import with_quotas
from tests.simulation.workload.stage import Spec
from tests.simulation.workload.stragglers import stragglers

SETTLE = 25.0
LAST = ([], ["broker_kill"], ["broker_power"], ["broker_stop"])


def plan(seed: int) -> Spec:
    """The plan of a seed: seed, duration and settle (seconds), cluster, topics, actors, nemesis; last: what befalls
    the broker once more when everybody has gone, before what there is is read."""
    drawn = (
        guarded(seed)
        or calm(seed)
        or stragglers(seed)
        or late_wakers(seed)
        or encounters(seed)
        or close_up(seed)
        or _of_everything(seed)
    )
    guarding = guards(seed)
    if not guarding:  # quotas are by the names of clients there; users have theirs looked at alone
        drawn = with_quotas(seed, drawn)
    return {"seed": seed, "settle": SETTLE, **drawn, "cluster": drawn["cluster"] | _coordinators(seed) | guarding}


def _coordinators(seed: int) -> Spec:
    """coordinators: of the topics in which they keep what they know, so that these are compacted in some worlds. No
    segment is smaller than what is stored of a group at once."""
    random = Random(f"coordinators/{seed}")
    often = {"segment.bytes": random.choice(["8192", "12288"]), "min.cleanable.dirty.ratio": "0.0"}
    is_often = random.random() < 0.5
    if random.random() < 0.4:  # what deletes goes soon
        often["delete.retention.ms"] = random.choice(["1000", "8000"])
    return {"coordinators": often if is_often else {}}


def _of_everything(seed: int) -> Spec:
    random = Random(f"plan/{seed}")
    drawn: Spec = {
        "duration": round(random.choice([random.uniform(4, 12), random.uniform(10, 40)]), 1),
        "cluster": _cluster(random),
        "topics": _topics(random),
    }
    drawn["actors"] = _actors(random, drawn)
    drawn["nemesis"] = faults(random, drawn)
    drawn["last"] = [{"at": 0.0, "kind": kind, "seconds": 1.0} for kind in random.choice(LAST)]
    return drawn


def _cluster(random: Random) -> Spec:
    """The broker, or brokers. upkeep: of `tagwire.broker.scheduler`, how often what it does by the clock is done."""
    return {
        "nodes": 3 if random.random() < 0.4 else 1,
        "fsync": random.choices(["batch", "interval", "never"], [0.75, 0.15, 0.1])[0],
        "as_release": random.choice(RELEASES) if random.random() < 0.25 else None,
        "settings": {
            "group_session_timeout_s": random.choice([4.0, 8.0]),
            "group_heartbeat_interval_s": 1.0,
            "auto_create_topics": False,
        },
        "upkeep": {
            "RETENTION_EVERY_S": random.choice([1.0, 4.0]),
            "COMPACTION_EVERY_S": random.choice([1.0, 4.0]),
            "RECOVERY_POINTS_EVERY_S": random.choice([2.0, 10.0]),
            "GROUPS_EVERY_S": 5.0,
        },
    }


def _topics(random: Random) -> list[Spec]:
    """steady: whether it is deleted by nobody, and all that is written to it stays."""
    rolls: dict[str, Any] = {"segment.bytes": random.choice([1024, 2048, 8192])} if random.random() < 0.5 else {}
    rolls |= {"index.interval.bytes": random.choice([1, 300])} if random.random() < 0.5 else {}
    kinds = ["steady"] * random.randint(1, 3)
    for kind, chance in (("unsteady", 0.3), ("retained", 0.3), ("compacted", 0.4)):
        if random.random() < chance:
            kinds.append(kind)
    return [
        {
            "name": f"topic-{number}",
            "partitions": random.choice([1, 1, 2, 3, 5]),
            "kind": kind,
            "compacted": kind == "compacted",
            "configs": rolls | _configs(random, kind),
        }
        for number, kind in enumerate(kinds, 1)
    ]


def _configs(random: Random, kind: str) -> dict[str, Any]:
    if kind == "retained":
        by_size = {"retention.bytes": random.choice([2000, 10_000]), "segment.bytes": 1024}
        by_time = {"retention.ms": random.choice([2000, 6000]), "segment.ms": random.choice([500, 3000])}
        return random.choice([by_size, by_time, by_size | by_time])
    if kind == "compacted":
        return {
            "cleanup.policy": "compact",
            "segment.bytes": random.choice([1024, 2048]),
            "segment.ms": random.choice([1000, 5000, 604_800_000]),
            "min.cleanable.dirty.ratio": random.choice(["0.0", "0.1", "0.5"]),
            "delete.retention.ms": random.choice([0, 3000, 86_400_000]),
            "min.compaction.lag.ms": random.choice([0, 0, 2000]),
        }
    return {}


def _actors(random: Random, drawn: Spec) -> list[Spec]:
    release = drawn["cluster"]["as_release"]
    has_consumer_groups = release is None or release >= "4.0"
    topics, duration = drawn["topics"], drawn["duration"]
    ordinary = [topic for topic in topics if topic["kind"] != "compacted"]
    actors = [producer(random, f"producer-{n}", topics, duration) for n in range(1, random.randint(1, 3) + 1)]
    for number in range(1, random.choice([0, 1, 1, 2]) + 1):
        actors += group(random, f"group-{number}", topics, has_consumer_groups=has_consumer_groups)
    for number in range(1, random.choice([0, 0, 1, 2]) + 1):
        actors += transactions(random, f"transactions-{number}", ordinary, duration)
    steady = [topic for topic in topics if topic["kind"] == "steady"]
    if random.random() < 0.35:
        moved = {"name": "moved", "kind": "moved", "partitions": random.choice([1, 3])}
        topics.append({**moved, "compacted": False, "configs": {}})
        actors += movers(random, steady, "moved", duration, has_consumer_groups=has_consumer_groups)
    elif random.random() < 0.65:
        actors.append(admin(random, topics, actors, duration))
    if random.random() < 0.25 and (release is None or release >= "3.3"):
        topics.append({"name": "sunk", "kind": "sunk", "partitions": 2, "compacted": False, "configs": {}})
        actors += sinks(random, "sunk", duration)
    return actors
