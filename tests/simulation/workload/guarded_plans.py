"""Which plans have brokers that know who asks, and short plans of which nothing else is looked at."""

from __future__ import annotations

import errno
from random import Random
from typing import Final

from tests.simulation.workload.guards import MECHANISM
from tests.simulation.workload.planned_actors import group, producer
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.125
"""Of all seeds."""

ALONE: Final = 0.7
"""Of those, in how many nothing else is looked at when everybody is gone: these take a third of the time."""


CONNECTED_ROUND_TRIPS: Final = 8
"""By then who changes it has come in."""


def guards(seed: int) -> Spec:
    """guards: by which mechanism users come in whom the broker's settings have; of a seed without, nothing."""
    random = Random(f"guards/{seed}")
    if random.random() >= SHARE:
        return {}
    return {"guards": {"mechanism": random.choice(["PLAIN", MECHANISM]), "alone": random.random() < ALONE}}


def guarded(seed: int) -> Spec | None:
    """What a world has of which nothing but its guards is looked at, instead of what the seed's plan would have."""
    if not guards(seed).get("guards", {}).get("alone"):
        return None
    random = Random(f"guarded/{seed}")
    duration = round(random.uniform(3, 6), 1)
    topic = {"name": "topic-1", "partitions": 2, "kind": "steady", "compacted": False, "configs": {}}
    release = random.choice([None, None, None, "2.8", "3.9", "4.2"])
    has_consumer_groups = release is None or release >= "4.0"
    actors = [producer(random, "producer-1", [topic], duration)]
    actors += group(random, "group-1", [topic], has_consumer_groups=has_consumer_groups)
    kind = random.choice(["broker_kill", "broker_power"])
    return {
        "duration": duration,
        "settle": 8.0,
        "cluster": {
            "nodes": random.choice([1, 1, 3]),
            "fsync": random.choices(["batch", "interval", "never"], [0.7, 0.2, 0.1])[0],
            "as_release": release,
            "settings": {
                "group_session_timeout_s": 4.0,
                "group_heartbeat_interval_s": 1.0,
                "auto_create_topics": False,
            },
            "upkeep": {"RETENTION_EVERY_S": 4.0, "COMPACTION_EVERY_S": 4.0, "RECOVERY_POINTS_EVERY_S": 10.0},
        },
        "topics": [topic],
        "actors": actors,
        "nemesis": [{"at": round(random.uniform(0, duration), 2), "kind": kind, "seconds": 1.0}],
        "last": [],
    }


def amid_changes(random: Random, part: str, round_trip_s: float) -> Spec:
    """What befalls a broker while it is changed who may do what, which is kept in a file with this in its name. It is
    away for so long that who waits for an answer has given up."""
    at, seconds = round(random.uniform(0.1, 2.0) + CONNECTED_ROUND_TRIPS * round_trip_s, 2), 4.0
    if random.random() < 0.15:
        operation = random.choice(["write", "sync", "rename"])
        fault = {"operation": operation, "count": 1, "part": part, "errno": errno.EIO}
        return {"at": at, "kind": "disk_error", "seconds": seconds, **fault}
    kind = random.choices(["broker_kill", "broker_power", "broker_stop"], [4, 3, 1])[0]
    step: Spec = {"at": at, "kind": kind, "seconds": seconds}
    if kind != "broker_stop" and random.random() < 0.8:
        upon = random.choice(["open", "write", "write", "sync", "sync", "sync", "rename"])
        step |= {"upon": upon, "part": part, "steps": random.choice([0, 0, 0, 0, 1, 2, 3, random.randint(4, 30)])}
    return step
