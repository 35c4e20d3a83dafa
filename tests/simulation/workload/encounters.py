"""Worlds in which two meet that both take long: who acts upon what he saw when somebody else has changed it meanwhile.

A driver of the sink and the next one, what a coordinator stores and what it is to forget, members that hear late and
ones that come and go, a leader that moves and the write that it moves in.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.workload.narrow_moments import DECIDED, power_amid
from tests.simulation.workload.plan_parts import numbered_topic, one_of, small_cluster, steady_producer
from tests.simulation.workload.planned_actors import group, sinks, transactions
from tests.simulation.workload.scenes import after, late_and_gone, unanswered
from tests.simulation.workload.stage import Spec

SHARE: Final = 0.12
"""Of all seeds that are neither calm nor of stragglers."""

SEEN: Final = ("takes-over", "has-listed", "has-checked", "has-decided")
"""Where a driver of the sink has seen something that it is to act upon."""

SELDOM: Final = {"SYNC_EVERY_S": 3.0, "RECOVERY_POINTS_EVERY_S": 10.0}
"""What is written is on the disk when it has to be, and seldom before."""


def encounters(seed: int) -> Spec | None:
    """What such a world has instead of what the seed's plan would have; None for most seeds."""
    return one_of(f"encounters/{seed}", SHARE, ROOMS)


# Drivers ---------------------------------------------------------------------------------------------------------


def handed_over(random: Random, duration: float) -> Spec:
    """One driver of a query after the other: each may stop where it has seen what it is to act upon, and the query does
    not always wait for that."""
    duration += 24.0
    stops = {moment: {"sleeps": 0.35, "is-left": 0.2} for moment in random.sample(SEEN, 3)}
    shared = {
        "stops": stops,
        "nap": random.choice([1.5, 3.0]),
        "tasks": random.choice([2, 3]),
        "rows": 4,
        "fail": random.choice([0.0, 0.3, 0.5]),
        "timeout_ms": 30_000,
        "workers": random.choice([1, 3]),
        "serial": random.random() < 0.7,
        "keeps": random.random() < 0.3,
    }
    return sunk(random, duration, shared)


def outlasted(random: Random, duration: float) -> Spec:
    """A driver that is slow between any of its steps, so that its tasks' transactions are over in the midst of them."""
    duration += 16.0
    stops = {moment: {"sleeps": 0.7} for moment in ("decides", "has-checked")}
    naps = {"decides": [0.0, 0.5], "has-checked": [0.5, 1.0]}
    shared = {"stops": stops, "naps": naps, "tasks": 2, "rows": 4, "fail": 0.0, "timeout_ms": 6_000, "workers": 2}
    return sunk(random, duration, shared | {"serial": True})


def sunk(random: Random, duration: float, shared: Spec) -> Spec:
    alone = {"interrupt": 0.0, "die": 0.0, "doze": 0.0, "pace": 0.1, "late": random.choice([0.0, 0.2])}
    actors = [actor | alone | shared for actor in sinks(random, "sunk", 1.0)[:1]]
    topics = [numbered_topic(1, 2, "sunk") | {"name": "sunk"}]
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": []}


# Coordinators ----------------------------------------------------------------------------------------------------


def stored_together(random: Random, duration: float) -> Spec:
    """Transactions of several ids, whose coordinator's disk is slow: what one decides and what another one's end is are
    stored together; and power that is lost then, before all that follows is on the disk."""
    topics = [numbered_topic(1, 5, "steady")]
    own = {"records": 3, "count": 60, "pace": random.choice([0.05, 0.3, 0.5]), "forsake": 0.0, "doze": 0.0}
    actors = owners_of(random, topics, duration, random.randint(3, 6), own)
    steps = random.choice((power_amid(random, duration, DECIDED), _power(random, duration)))
    slow = {"latency": random.choice([0.02, 0.1, 0.2]), "chance": 1.0}
    slow["part"] = random.choice(["__transaction_state", "topic-", ""])
    steps.append({"at": 0.1, "kind": "disk_slow", "seconds": duration, **slow})
    cluster = small_cluster(random) | {"fsync": random.choice(["interval", "batch"])}
    cluster["upkeep"] |= SELDOM
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def taken_over_at_leisure(random: Random, duration: float) -> Spec:
    """Ids that are taken over again and again by who then takes his time; and power that is lost meanwhile."""
    topics = [numbered_topic(1, 2, "steady")]
    own = {"records": 2, "count": 30, "pace": random.choice([0.3, 0.8]), "forsake": 0.7, "doze": 0.0, "returns": 1.0}
    actors = owners_of(random, topics, duration, random.choice([1, 2]), own)
    cluster = small_cluster(random) | {"fsync": "interval"}
    cluster["upkeep"] |= SELDOM
    return {"topics": topics, "actors": actors, "nemesis": _power(random, duration), "cluster": cluster}


def _power(random: Random, duration: float) -> list[Spec]:
    """Power that is lost at any time."""
    steps, at = [], random.uniform(0.8, 1.5)
    while at < duration:
        lost = {"seconds": 0.3, "spares": random.choice(["any", None, None]), "steps": random.choice([0, 30])}
        steps.append({"at": round(at, 3), "kind": "broker_power", **lost})
        at += random.uniform(0.6, 1.5)
    return steps


def given_up(random: Random, duration: float) -> Spec:
    """Transactions of version 1, parts of which are given up while they are under way, or may be stored; the next one
    begins right behind them."""
    topics = [numbered_topic(n, random.choice([2, 5]), "steady") for n in (1, 2)]
    own = {"records": random.choice([2, 4]), "count": 40, "pace": 0.05, "forsake": 0.1, "doze": 0.0}
    own |= {"timeout": random.choice([0.5, 1.0]), "request_timeout": random.choice([0.4, 1.0])}
    actors = owners_of(random, topics, duration, random.choice([1, 2]), own)
    plan = {"actors": actors, "topics": topics, "cluster": {"nodes": 1}}
    steps, at = [], random.uniform(0.2, 1.0)
    while at < duration:
        steps += after(at, unanswered(random, plan))
        at += random.uniform(0.8, 2.0)
    cluster = small_cluster(random) | {"as_release": random.choice(["2.8", "3.3", "3.9"])}
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def owners_of(random: Random, topics: list[Spec], duration: float, count: int, own: Spec) -> list[Spec]:
    shared = {"given_partition": 1.0, "batch_bytes": 1000, "linger": 0.0, "timeout": 10.0, "transaction_timeout": 3.0}
    shared |= {"abort": random.choice([0.0, 0.3]), "at": 0.0, "offsets": random.choice([0.0, 0.3])}
    return [
        actor | shared | own
        for number in range(1, count + 1)
        for actor in transactions(random, f"transactions-{number}", topics, duration)[:1]
    ]


# Members ---------------------------------------------------------------------------------------------------------


def come_and_gone(random: Random, duration: float) -> Spec:
    """Members of KIP-848 that come and go, while one looks seldom for what became of its partitions, or is far away."""
    topics = [numbered_topic(n, random.choice([2, 3]), "steady") for n in (1, 2)]
    members = members_of(random, topics, "consumer", 3)
    for number, actor in enumerate(members):
        actor |= {"auto_commit": False, "max_poll_interval": 8.0, "instance_id": None, "at": round(0.7 * number, 2)}
        actor |= {"pace": random.choice([0.1, 0.3]), "steps": {"nothing": 1.0, "commit_often": 0.4, "leave": 0.5}}
    steps: list[Spec] = []
    members[0]["steps"] = {"nothing": 1.0, "commit_often": random.choice([0.4, 1.0])}
    if random.random() < 0.5:
        members[0] |= {"pace": random.choice([1.5, 2.5]), "max_poll_records": 500}
    else:
        members[0] |= {"pace": 0.05, "request_timeout": 20.0, "max_poll_records": 5}
        far = {"kind": "slow", "a": members[0]["name"], "latency": random.choice([0.1, 0.2, 0.4]), "bandwidth": None}
        steps.append({"at": 0.5, "seconds": duration, **far})
    actors = [steady_producer(random, "producer-1", topics, duration), *members]
    cluster = small_cluster(random) | {"as_release": random.choice([None, "4.0", "4.2"])}  # who takes older epochs
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def of_several_minds(random: Random, duration: float) -> Spec:
    """Members of one group that want different topics, come and go, look seldom, and change their minds about what they
    ask for: a partition goes from one to another while the one still has it."""
    duration += 4.0
    topics = [numbered_topic(n, random.choice([2, 3]), "steady") for n in (1, 2)]
    members = members_of(random, topics, "classic", 3)
    for number, actor in enumerate(members):
        actor |= {"assignors": [random.choice(["cooperative-sticky"])], "auto_commit": False, "instance_id": None}
        actor |= {"at": round(1.5 * number, 2), "pace": random.choice([0.05, 0.5, 1.0]), "max_poll_interval": 8.0}
        leave = 0.1 if number else 0.0
        actor["steps"] = {"nothing": 1.0, "commit": 0.5, "consume": random.choice([0.0, 0.5]), "leave": leave}
    members[-1]["topics"] = [random.choice(topics)["name"]]
    actors = [steady_producer(random, "producer-1", topics, duration), *members]
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": []}


def heard_too_late(random: Random, duration: float) -> Spec:
    """A member to which what its coordinator says is long on its way, and who is not heard any more when it has come;
    it may read on from other nodes."""
    session = random.choice([12.0, 16.0])
    duration += 2.2 * session
    topics = [numbered_topic(n, 3, "steady") for n in (1, 2)]
    members = members_of(random, topics, "classic", 2)
    for actor in members:
        actor |= {"session_timeout": session, "request_timeout": session + 2.0, "max_poll_interval": 8.0}
        actor |= {"pace": 0.1, "at": 0.0, "max_poll_records": 5, "steps": {"nothing": 1.0, "commit": 0.1}}
        actor["auto_commit"] = False
    members[0]["steps"] = {"nothing": 1.0}  # a commit is heard, too
    node = random.randint(1, 3)
    steps = [{"at": 0.3, "kind": "move_coordinator", "seconds": 0.0, "node": node, "group": "group-1"}]
    steps += after(random.uniform(5, 8), late_and_gone(random, members[0]["name"], node, session))
    often = {"burst": 1, "records": 1000, "pace": 0.2, "given_partition": 1.0}
    actors = [steady_producer(random, "producer-1", topics, duration) | often, *members]
    cluster = small_cluster(random) | {"nodes": 3}
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def members_of(random: Random, topics: list[Spec], protocol: str, count: int) -> list[Spec]:
    """So many members of one group, which read all there is from the beginning."""
    while True:
        drawn = group(random, "group-1", topics, has_consumer_groups=protocol == "consumer")
        if drawn[0]["protocol"] == protocol and len(drawn) >= min(count, 3):
            break
    shared = {"kind": "consumer", "topics": [topic["name"] for topic in topics], "pattern": None, "late": 0.0}
    return [actor | shared | {"reset": "earliest"} for actor in drawn[:count]]


# Leaders ---------------------------------------------------------------------------------------------------------


def moved_amid_writes(random: Random, duration: float) -> Spec:
    """Leaders that move all the time, on a disk so slow that they move in the midst of a write."""
    topics = [numbered_topic(1, random.choice([1, 2]), "steady")]
    actors = [
        steady_producer(random, f"producer-{n}", topics, duration) | {"linger": 0.0, "burst": 1, "records": 100}
        for n in (1, 2, 3)
    ]
    steps, at = [], 0.5
    while at < duration:
        place = {"topic": "topic-1", "partition": random.randrange(topics[0]["partitions"])}
        steps.append({"at": round(at, 3), "kind": "move_leader", "seconds": 0.0, "node": random.randint(1, 3), **place})
        at += random.choice([0.05, 0.3]) * random.uniform(0.5, 1.5)
    slow = {"latency": random.choice([0.01, 0.03]), "chance": 1.0, "part": "topic-"}
    steps.append({"at": 0.2, "kind": "disk_slow", "seconds": duration, **slow})
    cluster = small_cluster(random) | {"nodes": 3}
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster, "gives_way": 0.5}


def sent_by_halves(random: Random, duration: float) -> Spec:
    """Producers that wait in vain for a slow disk, and the next time get rid of nothing, since the network takes little
    and their sockets hold little: until the oldest is given up, and the others go on."""
    topics = [numbered_topic(1, random.choice([1, 1, 2]), "steady")]
    own = {"linger": 0.0, "burst": 1, "batch_bytes": 1000, "value_size": 600, "pace": 0.05, "records": 200}
    own |= {"timeout": random.choice([1.2, 1.6, 2.0]), "request_timeout": 0.4, "given_partition": 1.0}
    own |= {"compression": "none", "max_block": 2.0, "flush": 0.0}
    actors = [steady_producer(random, f"producer-{n}", topics, duration) | own for n in (1, 2)]
    steps, at = [], random.uniform(0.5, 1.0)
    while at < duration - 1:
        late = {"latency": random.choice([0.6, 0.9]), "chance": 1.0, "part": "topic-"}
        steps.append({"at": round(at, 3), "kind": "disk_slow", "seconds": 0.4, **late})
        narrow = {"latency": 0.001, "bandwidth": random.choice([300.0, 800.0]), "a": random.choice(actors)["name"]}
        narrow["one_way"] = random.random() < 0.7  # it may greet the broker, and is not rid of its records
        later = round(at + random.uniform(0.3, 0.6), 3)
        steps.append({"at": later, "kind": "slow", "seconds": round(random.uniform(0.5, 1.0), 3), **narrow})
        at += random.uniform(2.0, 3.0)
    # All that is sent is a segment at a time then, none of which may take long by itself.
    small = {"send_buffer": 700, "spike_s": 0.05, "latency_s": 0.0005, "jitter_s": 0.0005}
    return {"topics": topics, "actors": actors, "nemesis": steps, "network": small}


ROOMS: Final[tuple[Callable[[Random, float], Spec], ...]] = (
    *[handed_over] * 3,
    outlasted,
    stored_together,
    taken_over_at_leisure,
    *[given_up] * 2,
    *[come_and_gone] * 2,
    *[of_several_minds] * 2,
    heard_too_late,
    moved_amid_writes,
    sent_by_halves,
)
