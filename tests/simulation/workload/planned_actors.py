"""The actors of a plan, each drawn as what its class takes."""

from __future__ import annotations

from random import Random

from tests.simulation.workload.stage import Spec

COMPRESSIONS = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
STEPS = ("commit", "commit_async", "committed", "seek", "pause", "doze", "leave", "rejoin")
DEEDS = (
    "renew",
    "grow",
    "delete_records",
    "configure",
    "alter_offsets",
    "delete_offsets",
    "delete_group",
    "fence",
    "look",
)


def producer(random: Random, name: str, topics: list[Spec], duration: float) -> Spec:
    """Of a `Producing`, or of a `ProducingInThreads`."""
    acks = random.choice([0, 1, -1, -1, -1])
    records = random.randint(10, 80)
    return {
        "name": name,
        "kind": random.choice(["producer", "producer", "threads"]),
        "threads": random.choice([1, 2]),
        "at": round(random.uniform(0, duration / 3), 2),
        "topics": _some(random, topics),
        "records": records,
        "pace": round(0.8 * duration / records * random.uniform(0.2, 1.2), 4),
        "burst": random.choice([1, 1, 5, 20]),
        "acks": acks,
        "idempotence": acks == -1 and random.random() < 0.8,
        "linger": random.choice([0.0, 0.005, 0.1]),
        "batch_bytes": random.choice([200, 1000, 16_384]),
        "compression": random.choice(COMPRESSIONS),
        "timeout": random.choice([1.5, 4.0, 10.0, 20.0]),
        "max_block": random.choice([2.0, 5.0, 10.0]),
        "request_timeout": random.choice([0.4, 2.0, 4.0]),
        "given_partition": random.choice([0.0, 0.3, 1.0]),
        "keys": random.choice([2, 5, 20]),
        "tombstones": random.choice([0.0, 0.1, 0.4]),
        "value_size": random.choice([0, 0, 40, 300]),
        "flush": random.choice([0.0, 0.05, 0.3]),
    }


def transactions(random: Random, transactional_id: str, topics: list[Spec], duration: float) -> list[Spec]:
    """Of a `Transacting`; two of one transactional id are each other's zombies."""
    return [
        producer(random, f"{transactional_id}-producer-{n}", topics, duration)
        | _transactional(random, transactional_id)
        | {"kind": "transactions"}
        for n in range(1, random.choice([1, 1, 2]) + 1)
    ]


def _transactional(random: Random, transactional_id: str) -> Spec:
    return {
        "acks": -1,
        "idempotence": True,
        "transactional_id": transactional_id,
        "transaction_timeout": random.choice([3.0, 6.0, 10.0]),
        "records": random.choice([1, 3, 10]),
        "count": random.randint(3, 20),
        "pace": random.choice([0.05, 0.2, 0.5]),
        "abort": random.choice([0.0, 0.2, 0.5]),
        "offsets": random.choice([0.0, 0.5]),
        "offsets_of": f"{transactional_id}-offsets",
        "doze": random.choice([0.0, 0.0, 0.1]),
        "forsake": random.choice([0.0, 0.0, 0.1]),
    }


def movers(
    random: Random, sources: list[Spec], target: str, duration: float, *, has_consumer_groups: bool
) -> list[Spec]:
    """Of a `Moving`: one or two programs of one group."""
    members = group(random, "movers", sources, has_consumer_groups=has_consumer_groups)[:2]
    steady = {"isolation": "read_committed", "auto_commit": False, "reset": "earliest", "pattern": None}
    steady["max_poll_records"] = random.choice([5, 500])  # each poll is a transaction: what is left has to get through
    steady["topics"] = [topic["name"] for topic in sources]
    return [
        producer(random, f"mover-{n}", sources, duration)
        | _transactional(random, f"mover-{n}")
        | {"kind": "mover", "target": target, "forsake": 0.0, "consumer": member | steady, "at": member["at"]}
        for n, member in enumerate(members, 1)
    ]


def group(random: Random, name: str, topics: list[Spec], *, has_consumer_groups: bool) -> list[Spec]:
    """Of a `Consuming` or a `ConsumingInThread`: the members of a group, all of one protocol."""
    protocol = random.choice(["classic", "consumer"]) if has_consumer_groups else "classic"
    read = {"pattern": "topic-[0-9]+"} if random.random() < 0.3 else {"topics": _some(random, topics)}
    shared: Spec = {
        "group": name,
        "protocol": protocol,
        "topics": None,
        "pattern": None,
        **read,
        "isolation": random.choice(["read_uncommitted", "read_committed"]),
        "auto_commit": random.random() < 0.4,
        "auto_commit_interval": 1.0,
        "reset": random.choice(["earliest", "earliest", "latest"]),
        "max_poll_interval": random.choice([3.0, 8.0]),
        "request_timeout": random.choice([2.0, 4.0]),
    }
    if protocol == "classic":
        shared |= {"assignors": [random.choice(ASSIGNORS)], "session_timeout": 6.0, "heartbeat_interval": 1.0}
    else:
        shared["remote_assignor"] = random.choice([None, "uniform", "range"])
    is_static = random.random() < 0.3
    steps = _steps(random, STEPS) | {"nothing": 2.0}
    if protocol == "consumer":
        steps.pop("rejoin", None)  # whether there is a rebalance says the broker
    count = random.randint(1, 3)
    late = random.choice([None, None, count]) if count > 1 else None
    members: list[Spec] = [
        {
            "name": f"{name}-member-{n}",
            **shared,
            "kind": random.choice(["consumer", "consumer", "consumer", "thread-consumer"]),
            "instance_id": f"{name}-instance-{n}" if is_static else None,
            "at": round(random.choice([0.0, random.uniform(0, 5)]), 2),
            "pace": random.choice([0.01, 0.1, 0.5]),
            "max_poll_records": random.choice([1, 5, 500]),
            "steps": steps,
            "late": 12.0 if n == late else 0.0,
        }
        for n in range(1, count + 1)
    ]
    unlike(members)
    return members


def unlike(members: list[Spec], share: float = 0.4) -> None:
    """Lets members of a share of groups want different topics: the first all of them, the others some. That is drawn
    from numbers of their own."""
    random, topics = Random(f"unlike/{members}"), members[0]["topics"]
    if topics is not None and len(topics) > 1 and random.random() < share:
        for member in members[1:]:
            member["topics"] = sorted(random.sample(topics, random.randint(1, len(topics) - 1)))


def sinks(random: Random, topic: str, duration: float) -> list[Spec]:
    """Of a `Sinking`: one driver of a query, two of one, or two queries that have one name."""
    several = random.choice(["no", "no", "drivers", "queries"])
    rows = {"tasks": random.choice([1, 2, 3]), "rows": random.choice([1, 4])}  # a query's, whoever drives it
    return [
        {
            "name": f"sink-driver-{n}",
            "kind": "sink",
            "at": round(random.uniform(0, duration / 3), 2),
            "sink": "sink-1",
            "query": f"query-{n if several == 'queries' else 1}",
            "topic": topic,
            **rows,
            "pace": random.choice([0.1, 1.0]),
            "timeout_ms": random.choice([6_000, 12_000, 30_000, 120_000]),
            "request_timeout": random.choice([2.0, 4.0]),
            "fail": random.choice([0.0, 0.1, 0.3]),
            "late": random.choice([0.0, 0.2]),
            "die": random.choice([0.0, 0.05, 0.15]),
            "doze": random.choice([0.0, 0.0, 0.2]),
            "workers": random.choice([1, 2, 3]),
        }
        for n in ([1] if several == "no" else [1, 2])
    ]


def admin(random: Random, topics: list[Spec], actors: list[Spec], duration: float) -> Spec:
    """Of an `Administering`."""
    count = random.randint(2, 12)
    return {
        "name": "admin",
        "kind": "admin",
        "count": count,
        "pace": round(duration / count, 2),
        "topics": _some(random, topics),
        "unsteady": [topic["name"] for topic in topics if topic["kind"] == "unsteady"],
        "groups": list(dict.fromkeys(actor["group"] for actor in actors if "group" in actor)),
        "transactional_ids": list(
            dict.fromkeys(actor["transactional_id"] for actor in actors if "transactional_id" in actor)
        ),
        "configs": {
            "segment.bytes": ["1024", "4096", "1073741824"],
            "segment.ms": ["500", "604800000"],
            "min.insync.replicas": ["1", "2", "1"],
            "compression.type": ["producer", "gzip", "uncompressed"],
            "message.timestamp.type": ["CreateTime", "LogAppendTime"],
            "max.message.bytes": ["1048588", "400"],
        },
        "steps": _steps(random, DEEDS) or {"look": 1.0},
    }


def _steps(random: Random, names: tuple[str, ...]) -> dict[str, float]:
    return {name: round(random.uniform(0.1, 1), 2) for name in names if random.random() < 0.5}


def _some(random: Random, topics: list[Spec]) -> list[str]:
    return sorted(random.sample([topic["name"] for topic in topics], random.randint(1, len(topics))))
