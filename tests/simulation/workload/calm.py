"""Worlds in which nothing goes wrong: no call fails there, no member loses what it has, and what a group does when its
members come and go, its topics grow and others appear is all that moves it. Where faults are, most of that is excused.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.workload.planned_actors import ASSIGNORS, group, producer, transactions, unlike
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.12
"""Of all seeds."""


def calm(seed: int) -> Spec | None:
    """What such a world has instead of what the seed's plan would have; None for most seeds."""
    random = Random(f"calm/{seed}")
    if random.random() >= SHARE:
        return None
    duration = round(random.uniform(10, 16), 1)
    topics = [_topic(number, random.choice([1, 2, 3])) for number in range(1, random.choice([2, 3]) + 1)]
    actors = [_steady(random, f"producer-{n}", topics, duration) for n in range(1, random.choice([1, 2]) + 1)]
    members = _members(random, topics, duration)
    if random.random() < 0.5:
        # None is too old, and none is left behind: it would be open until the end.
        quick = {"at": 0.5, "timeout": 20.0, "max_block": 10.0, "request_timeout": 4.0, "transaction_timeout": 60.0}
        quick |= {"doze": 0.0, "forsake": 0.0}
        actors += [actor | quick for actor in transactions(random, "transactions-1", topics, duration)[:1]]
    if random.random() < 0.7:
        actors.append(_admin(random, topics, duration))
    return {
        "duration": duration,
        "cluster": _cluster(random),
        "topics": topics,
        "actors": actors + members,
        "nemesis": [],
        "last": random.choice([[], [{"at": 0.0, "kind": "broker_stop", "seconds": 1.0}]]),
    }


def _cluster(random: Random) -> Spec:
    return {
        "nodes": random.choice([1, 1, 3]),
        "fsync": "batch",
        "as_release": None,
        "settings": {"group_session_timeout_s": 4.0, "group_heartbeat_interval_s": 1.0, "auto_create_topics": False},
        "upkeep": {
            "RETENTION_EVERY_S": 1.0,
            "COMPACTION_EVERY_S": 2.0,
            "RECOVERY_POINTS_EVERY_S": random.choice([2.0, 10.0]),
            "GROUPS_EVERY_S": 5.0,
        },
    }


def _topic(number: int, partitions: int) -> Spec:
    return {
        "name": f"topic-{number}",
        "partitions": partitions,
        "kind": "steady",
        "compacted": False,
        "configs": {"index.interval.bytes": 300, "segment.bytes": 2048},
    }


def _steady(random: Random, name: str, topics: list[Spec], duration: float) -> Spec:
    """One that writes all the time, some of it with times that are not its own."""
    records = random.choice([40, 100])
    return producer(random, name, topics, duration) | {
        "at": 0.0,
        "kind": "producer",
        "topics": [topic["name"] for topic in topics],
        "records": records,
        "pace": round(0.8 * duration / records, 4),
        "acks": -1,
        "idempotence": True,
        "timeout": 20.0,
        "max_block": 10.0,
        "request_timeout": 4.0,
        "age": random.choice([None, None, 5.0, 600.0]),
        "renew": random.choice([0.0, 0.02]),
        "marked": random.random() < 0.5,
    }


def _members(random: Random, topics: list[Spec], duration: float) -> list[Spec]:
    """Of one group, of which some come late, leave, come back, ask for a rebalance, pause and seek."""
    while len(members := group(random, "group-1", topics, has_consumer_groups=True)) < 2:
        pass
    names = [topic["name"] for topic in topics]
    by_pattern = random.random() < 0.4
    likely = {"commit": 0.3, "committed": 0.3, "leave": 0.15, "pause": 0.5, "rejoin": 0.15, "seek": 0.3}
    steps = {"nothing": 2.0} | {name: weight for name, weight in likely.items() if random.random() < 0.5}
    if members[0]["protocol"] == "consumer":
        steps.pop("rejoin", None)
    assignors = [random.choice(ASSIGNORS)]
    shared: Spec = {
        "topics": None if by_pattern else names,
        "pattern": "topic-[0-9]+" if by_pattern else None,
        "reset": "earliest",
        "auto_commit": random.random() < 0.6,
        "max_poll_interval": 8.0,
        "request_timeout": 4.0,
        "steps": steps,
        "late": 0.0,
    }
    for number, actor in enumerate(members):
        actor |= shared | {"pace": random.choice([0.05, 0.3]), "at": round(number * random.uniform(0, duration / 3), 2)}
        if actor["protocol"] == "classic":
            actor["assignors"] = assignors
    unlike(members)
    if len({str(actor["topics"]) for actor in members}) > 1 and members[0]["protocol"] == "classic":
        few = Random(f"unlike/{assignors}/{names}/{duration}").choice(["cooperative-sticky"] * 2 + ["sticky", "range"])
        for actor in members:
            actor["assignors"] = [few]
    members[-1]["late"] = random.choice([0.0, 0.0, 3.0])
    members[0] |= {"kind": "consumer", "quits": random.choice([0.0, 0.6 * duration])}
    return members


def _admin(random: Random, topics: list[Spec], duration: float) -> Spec:
    """One who lets topics grow, and makes others."""
    return {
        "name": "admin",
        "kind": "admin",
        "count": 4,
        "pace": round(duration / 5, 2),
        "topics": [topic["name"] for topic in topics],
        "unsteady": [],
        "groups": [],
        "transactional_ids": [],
        "configs": {},
        "steps": {name: 1.0 for name in ("grow", "add") if random.random() < 0.7} or {"look": 1.0},
    }
