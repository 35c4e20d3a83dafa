"""What plans of one room are made of: a small cluster, topics, who writes all the time, and what befalls them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from random import Random

from tests.simulation.workload.fault_draws import UPON
from tests.simulation.workload.planned_actors import producer
from tests.simulation.workload.stage import Spec


def one_of(name: str, share: float, rooms: Sequence[Callable[[Random, float], Spec]]) -> Spec | None:
    """What a world of one of these rooms has, of `share` of all names; None for the others.

    Args:
        name: of kind and seed.
        rooms: each is given how many seconds its world lasts, and may give more.
    """
    random = Random(name)
    if random.random() >= share:
        return None
    drawn: Spec = {"duration": round(random.uniform(8, 12), 1), "cluster": small_cluster(random), "last": []}
    drawn |= random.choice(rooms)(random, drawn["duration"])
    drawn["nemesis"].sort(key=lambda step: step["at"])
    return drawn


def small_cluster(random: Random) -> Spec:
    return {
        "nodes": 1,
        "fsync": "batch",
        "as_release": None,
        "settings": {
            "group_session_timeout_s": 4.0,
            "group_heartbeat_interval_s": 1.0,
            "auto_create_topics": False,
        },
        "upkeep": {
            "RETENTION_EVERY_S": 1.0,
            "COMPACTION_EVERY_S": random.choice([0.5, 2.0]),
            "RECOVERY_POINTS_EVERY_S": random.choice([0.5, 10.0]),
            "GROUPS_EVERY_S": 5.0,
        },
    }


def numbered_topic(number: int, partitions: int, kind: str, configs: Spec | None = None) -> Spec:
    return {
        "name": f"topic-{number}",
        "partitions": partitions,
        "kind": kind,
        "compacted": kind == "compacted",
        "configs": {"index.interval.bytes": 300} | (configs or {}),  # small segments have entries in their indexes
    }


def changing_admin(topics: list[Spec], duration: float, steps: dict[str, float]) -> Spec:
    """One who changes topics all the time."""
    return {
        "name": "admin",
        "kind": "admin",
        "count": 12,
        "pace": round(duration / 14, 2),
        "topics": [topic["name"] for topic in topics],
        "unsteady": [],
        "groups": [],
        "transactional_ids": [],
        "configs": {
            "segment.bytes": ["1024", "4096"],
            "retention.ms": ["604800000", "86400000"],
            "compression.type": ["producer", "gzip"],
        },
        "steps": steps,
    }


def steady_producer(random: Random, name: str, topics: list[Spec], duration: float) -> Spec:
    """One that writes all the time, and means each record."""
    records = random.choice([40, 100])
    return producer(random, name, topics, duration) | {
        "kind": "producer",
        "at": 0.0,
        "topics": [topic["name"] for topic in topics],
        "records": records,
        "pace": round(0.8 * duration / records, 4),
        "acks": -1,
        "idempotence": True,
        "linger": random.choice([0.0, 0.01]),
        "batch_bytes": random.choice([200, 1000]),
        "given_partition": 0.5,
        "timeout": 20.0,
        "max_block": 10.0,
        "request_timeout": 2.0,
    }


def crashes(random: Random, duration: float, every: float, kinds: list[str] | None = None) -> list[Spec]:
    """Ends of the broker, of one kind or of all."""
    kinds = kinds or random.choice([["broker_kill"], ["broker_power"], ["broker_kill", "broker_power", "broker_stop"]])
    steps = []
    at = 1.0 + random.expovariate(1 / every)
    while at < duration:
        steps.append(crash(random, at, random.choice(kinds)))
        at += 0.5 + random.expovariate(1 / every)
    return steps


def crash(random: Random, at: float, kind: str) -> Spec:
    step: Spec = {"at": round(at, 3), "kind": kind, "seconds": round(random.uniform(0.05, 0.5), 3)}
    if kind == "broker_stop":
        return step
    if random.random() < 0.4:
        return step | {"upon": random.choice(UPON), "steps": int(3 ** random.uniform(0, 3))}
    return step | {"steps": int(3 ** random.uniform(0, 6))}


def slow_disk(duration: float, latency: float, chance: float) -> Spec:
    return {"at": 0.1, "seconds": duration, "kind": "disk_slow", "latency": latency, "chance": chance}


def write_error(random: Random, duration: float, part: str) -> Spec:
    """A disk that refuses a write or a few, of files with `part` in their paths, and not when it is asked again."""
    return {
        "at": round(random.uniform(0.2, duration), 3),
        "kind": "disk_error",
        "seconds": round(random.uniform(0.5, 3), 3),
        "operation": "write",
        "count": random.choice([1, 2, 5]),
        "after": random.choice([0, 0, 2, 5]),
        "part": part,
        "errno": random.choice([errno.EIO, errno.ENOSPC]),
    }


def client_trouble(random: Random, duration: float, actors: list[Spec]) -> Spec:
    """A producer dies, perhaps for good, or sleeps for longer than its transaction may be open."""
    name = random.choice(actors)["name"]
    at = round(random.uniform(0.5, duration), 3)
    kind, seconds = random.choice([("client_kill", 60.0), ("client_kill", 0.5), ("client_pause", 4.0)])
    return {"at": at, "kind": kind, "target": name, "seconds": seconds}
