"""Worlds of stragglers: readers that go back to records which are gone by then, and members that are far from their
coordinator, so that their commits wait behind each other while their group goes on.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.workload.planned_actors import group, producer
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.1
"""Of all seeds that are not calm."""


def stragglers(seed: int) -> Spec | None:
    """What such a world has instead of what the seed's plan would have; None for most seeds."""
    random = Random(f"stragglers/{seed}")
    if random.random() >= SHARE:
        return None
    duration = round(random.uniform(10, 14), 1)
    drawn = random.choice([_going_back, _far_away])(random, duration)
    return {"duration": duration, "cluster": _cluster(random), "last": [], **drawn}


def _cluster(random: Random) -> Spec:
    return {
        "nodes": 1,
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


def _going_back(random: Random, duration: float) -> Spec:
    """Members seek back, from where they are, while the oldest records are deleted: some of what they come to is gone,
    and they go on where their settings say."""
    topics = _topics(random.choice([1, 2]), random.choice([1, 2]))
    names = [topic["name"] for topic in topics]
    actors = [_steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    for name, reset in (("group-1", "earliest"), ("group-2", random.choice(["earliest", "latest"]))):
        for actor in group(random, name, topics, has_consumer_groups=True)[:1]:
            actor |= {"kind": "consumer", "topics": names, "pattern": None, "reset": reset, "auto_commit": False}
            actor |= {"at": 0.0, "pace": random.choice([0.05, 0.2]), "max_poll_interval": 8.0, "late": 0.0}
            actor["steps"] = {"nothing": 1.0, "seek_back": 1.0, "commit": 0.2, "pause": 0.2}
            actors.append(actor)
    actors.append(_deleting(names, duration))
    return {"topics": topics, "actors": actors, "nemesis": []}


def _far_away(random: Random, duration: float) -> Spec:
    """Members commit often, and wait for none of it; one is so far away that commits queue up, while others come, go
    and take what it had."""
    topics = _topics(2, 2)
    names = [topic["name"] for topic in topics]
    actors = [_steady_producer(random, "producer-1", topics, duration)]
    protocol = random.choice(["classic", "consumer", "consumer", "consumer"])
    while len(members := group(random, "group-1", topics, has_consumer_groups=True)) < 2 or (
        members[0]["protocol"] != protocol
    ):
        pass
    for number, actor in enumerate(members):
        actor |= {"kind": "consumer", "topics": names, "pattern": None, "reset": "earliest", "late": 0.0}
        actor |= {"auto_commit": False, "request_timeout": 20.0, "max_poll_interval": 8.0, "instance_id": None}
        actor |= {"pace": 0.05, "at": round(number * random.uniform(1, duration / 3), 2), "max_poll_records": 5}
        actor["steps"] = {"nothing": 1.0, "commit_often": 0.4, "committed": 0.1, "leave": 0.1 if number else 0.0}
        if actor["protocol"] == "classic":
            actor["assignors"] = ["cooperative-sticky"]
    far = {"kind": "slow", "a": members[0]["name"], "latency": random.choice([0.1, 0.2, 0.4]), "bandwidth": None}
    steps: list[Spec] = [{"at": 0.5, "seconds": duration, **far}]
    for _ in range(random.randint(0, 3)):
        gone = {"kind": "client_kill", "target": random.choice(members[1:])["name"], "seconds": 1.0}
        steps.append({"at": round(random.uniform(3, duration), 3), **gone})
    return {"topics": topics, "actors": actors + members, "nemesis": sorted(steps, key=lambda step: step["at"])}


# Parts -----------------------------------------------------------------------------------------------------------


def _topics(count: int, partitions: int) -> list[Spec]:
    return [
        {
            "name": f"topic-{number}",
            "partitions": partitions,
            "kind": "steady",
            "compacted": False,
            "configs": {"index.interval.bytes": 300, "segment.bytes": 2048},
        }
        for number in range(1, count + 1)
    ]


def _steady_producer(random: Random, name: str, topics: list[Spec], duration: float) -> Spec:
    """One that writes all the time, and means each record."""
    records = random.choice([60, 120])
    return producer(random, name, topics, duration) | {
        "kind": "producer",
        "at": 0.0,
        "topics": [topic["name"] for topic in topics],
        "records": records,
        "pace": round(0.8 * duration / records, 4),
        "burst": 1,
        "acks": -1,
        "idempotence": True,
        "timeout": 20.0,
        "max_block": 10.0,
        "request_timeout": 4.0,
    }


def _deleting(topics: list[str], duration: float) -> Spec:
    """One who deletes the oldest records all the time."""
    return {
        "name": "admin",
        "kind": "admin",
        "count": 14,
        "pace": round(duration / 16, 2),
        "topics": topics,
        "unsteady": [],
        "groups": [],
        "transactional_ids": [],
        "configs": {},
        "steps": {"delete_records": 1.0},
    }
