"""Quotas that plans have on top of all else: somebody alters them, and some write more than theirs allow."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.workload.planned_actors import producer
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.15
"""Of all seeds. Their numbers are drawn by themselves: who has no quotas is as it would be without this."""

TOPIC: Final = "bounded"
MOST_CONNECTIONS: Final = 150
"""To each node: more than actors ever have."""


def with_quotas(seed: int, drawn: Spec) -> Spec:
    """A plan as it was drawn, or with quotas: a topic, one who alters them, and producers whose rate is bounded."""
    random = Random(f"quotas/{seed}")
    if random.random() >= SHARE:
        return drawn
    duration = drawn["duration"]
    topic = {"name": TOPIC, "partitions": random.choice([1, 1, 2]), "kind": "steady", "compacted": False, "configs": {}}
    clients = [f"bounded-{number}" for number in range(1, random.choice([1, 1, 2]) + 1)]
    count = random.randint(4, 14)
    limiter = {
        "name": "limiter",
        "kind": "limiter",
        "count": count,
        "pace": round(0.8 * duration / count, 2),
        "clients": clients,
        "others": ["nobody-1", "nobody-2"],
    }
    cluster = drawn["cluster"]
    settings = cluster["settings"] | {"max_connections": MOST_CONNECTIONS}
    return {
        **drawn,
        "cluster": cluster | {"settings": settings},
        "topics": [*drawn["topics"], topic],
        "actors": [*drawn["actors"], limiter, *(_bounded(random, name, topic, duration) for name in clients)],
        "last": _last(random, drawn),
    }


def _bounded(random: Random, name: str, topic: Spec, duration: float) -> Spec:
    """One that would write a hundred times what it may."""
    return producer(random, name, [topic], duration) | {
        "kind": "bounded",
        "client_id": name,
        "at": round(random.uniform(0.3, 1.0), 2),
        "records": 150,
        "pace": 0.02,
        "burst": 5,
        "acks": -1,
        "idempotence": True,
        "linger": 0.0,
        "batch_bytes": 600,
        "compression": "none",
        "timeout": random.choice([4.0, 10.0, 20.0]),
        "max_block": random.choice([2.0, 10.0]),
        "request_timeout": random.choice([2.0, 4.0]),
        "given_partition": 1.0,
        "tombstones": 0.0,
        "value_size": 500,
        "flush": 0.0,
    }


def _last(random: Random, drawn: Spec) -> list[Spec]:
    """What is acknowledged is there without power, too, where nothing else is lost with it."""
    before: list[Spec] = drawn["last"]
    is_safe = drawn["cluster"]["fsync"] == "batch" and drawn["nemesis"]
    if not is_safe or random.random() < 0.4:
        return before
    return [{"at": 0.0, "kind": "broker_power", "seconds": 1.0}]
