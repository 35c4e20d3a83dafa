"""Close-ups: short plans that stay with one room of the broker and break it off again and again, where most of what
crashes forget is: between the end of a transaction and its markers, between a write and its sync, in a compaction.

What a plan of everything meets by chance, two failures close together, is here what most of the run is.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from tests.simulation.workload.narrow_moments import narrowed
from tests.simulation.workload.plan_parts import (
    changing_admin,
    client_trouble,
    crash,
    crashes,
    numbered_topic,
    slow_disk,
    small_cluster,
    steady_producer,
    write_error,
)
from tests.simulation.workload.planned_actors import group, movers, sinks, transactions, unlike
from tests.simulation.workload.scenes import (
    after,
    all_away_and_back,
    crowd,
    dead_for_good,
    driver_dies,
    far_away,
    moved_under_load,
    out_of_reach,
    unanswered,
    zombie,
)
from tests.simulation.workload.stage import Spec

SHARE = 0.6
"""Of all seeds."""


def close_up(seed: int) -> Spec | None:
    """What a close-up has instead of what the seed's plan would have: duration, cluster, topics, actors, nemesis and
    last; None for most seeds."""
    random = Random(f"close-up/{seed}")
    if random.random() >= SHARE:
        return None
    drawn: Spec = {"duration": round(random.uniform(5, 9), 1), "cluster": small_cluster(random), "last": []}
    room = random.choice(_ROOMS)
    drawn |= room(random, drawn["duration"])
    drawn = narrowed(Random(f"narrow/{seed}"), room.__name__, drawn)
    drawn["nemesis"].sort(key=lambda step: step["at"])
    if random.random() < 0.6:
        kind = random.choice(["broker_kill", "broker_power", "broker_stop"])
        drawn["last"] = [{"at": 0.0, "kind": kind, "seconds": 1.0}]
    return drawn


# Rooms -----------------------------------------------------------------------------------------------------------


def _endings(random: Random, duration: float) -> Spec:
    """Transactions over many partitions, whose coordinator dies between their ends and their markers."""
    topics = [numbered_topic(n, random.choice([2, 5]), "steady") for n in range(1, random.choice([1, 2]) + 1)]
    actors = [
        actor
        | {
            "at": round(random.uniform(0, 1), 2),
            "records": random.choice([3, 6]),
            "count": random.choice([4, 40]),
            "pace": random.choice([0.05, 0.3]),
            "given_partition": 1.0,
            "batch_bytes": 1000,
            "linger": 0.005,
            "timeout": 10.0,
            "transaction_timeout": 3.0,
            "abort": random.choice([0.0, 0.4]),
            "forsake": random.choice([0.0, 0.1, 0.3]),
            "doze": random.choice([0.0, 0.2]),
            "age": random.choice([None, None, 200_000.0]),
        }
        for number in range(1, random.choice([1, 2]) + 1)
        for actor in transactions(random, f"transactions-{number}", topics, duration)
    ]
    nodes = random.choice([1, 1, 3])
    steps = crashes(random, duration, random.choice([1.0, 2.5]))
    troubles = random.sample(["slow", "log", "state", "clients", "clock", "far"], random.randint(1, 2))
    plan = {"actors": actors, "topics": topics, "cluster": {"nodes": nodes}}
    if nodes > 1:
        steps += after(random.uniform(0, duration / 2), moved_under_load(random, plan))
    if "far" in troubles:  # a batch may come after the end of its transaction
        steps += [
            step
            for _ in range(random.randint(1, 3))
            for step in after(random.uniform(0, duration), unanswered(random, plan))
        ]
        for actor in actors:
            actor |= {"timeout": random.choice([0.5, 1.5]), "request_timeout": 1.0}
    if "clock" in troubles:
        at = round(random.uniform(0.5, duration / 2), 3)
        jump = {"kind": "clock", "target": "broker", "offset": random.choice([-3600.0, -60.0, 60.0]), "stays": True}
        steps = [step for step in steps if random.random() < 0.2]  # who starts anew has the right time
        steps.append({"at": at, "seconds": 0.0, **jump})
    if "slow" in troubles:
        steps.append(slow_disk(duration, 0.5, 0.3))
    if "log" in troubles:
        steps += [write_error(random, duration, "topic-") for _ in range(random.randint(1, 4))]
    if "state" in troubles:
        steps += [write_error(random, duration, "__transaction_state") for _ in range(random.randint(1, 4))]
    if "clients" in troubles:
        steps += [client_trouble(random, duration, actors) for _ in range(random.randint(1, 4))]
    cluster = small_cluster(random) | {"nodes": nodes, "as_release": random.choice([None, None, "3.9"])}
    if random.random() < 0.3:  # also of what is open
        actors.append(changing_admin(topics, duration, {"delete_records": 1.0}))
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": cluster}


def _cleaning(random: Random, duration: float) -> Spec:
    """A compacted topic of small segments, written with tombstones and transactions, and compacted all the time."""
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": random.choice([1024, 2048]),
        "segment.ms": 500,
        "min.cleanable.dirty.ratio": "0.0",
        "delete.retention.ms": random.choice([0, 3000, 86_400_000, 86_400_000]),
    }
    topics = [numbered_topic(1, random.choice([1, 2]), "compacted", configs)]
    actors = [steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    for actor in actors:
        actor |= {"tombstones": 0.4, "keys": random.choice([5, 20]), "marked": True}
    if random.random() < 0.5:
        more = {"transaction_timeout": 3.0, "count": 30, "pace": 0.1, "forsake": 0.0, "keys": 5}
        actors += [actor | more for actor in transactions(random, "transactions-1", topics, duration)]
    steps = crashes(random, duration, random.choice([1.0, 3.0])) if random.random() < 0.7 else []
    if random.random() < 0.4:  # most of the time it is in the middle of a compaction then
        steps.append(slow_disk(duration, random.choice([0.05, 0.2]), 1.0))
        for step in steps:
            if "upon" not in step:
                step.pop("steps", None)
    return {"topics": topics, "actors": actors, "nemesis": steps}


def _writing(random: Random, duration: float) -> Spec:
    """Segments that roll with every few batches, and no power, or a disk that refuses, in the middle of it."""
    topics = [numbered_topic(1, random.choice([1, 3]), "steady", {"segment.bytes": random.choice([1024, 2048])})]
    actors = [steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    if random.random() < 0.6:  # a batch of many sectors may be torn
        actors[0] |= {"value_size": random.choice([3000, 3000, 100_000]), "compression": "none", "records": 40}
    steps = crashes(random, duration, random.choice([0.7, 2.0]))
    if random.random() < 0.5:
        for _ in range(random.randint(1, 3)):
            at = random.uniform(0.2, duration)
            error = {"kind": "disk_error", "operation": "sync", "count": 1, "part": "topic-", "errno": errno.EIO}
            steps.append({"at": round(at, 3), "seconds": 1.0, "after": random.choice([0, 3]), **error})
            steps.append(crash(random, at + random.uniform(0.05, 1.0), "broker_power"))
    return {"topics": topics, "actors": actors, "nemesis": steps}


def _unsynced(random: Random, duration: float) -> Spec:
    """Leaders that move while what is written is not on the disk yet, and power that is lost then: epochs are there of
    which every record is gone."""
    topics = [numbered_topic(1, random.choice([1, 2]), "steady", {"segment.bytes": random.choice([2048, 1 << 20])})]
    actors = [steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    steps: list[Spec] = []
    at = random.uniform(0.8, 1.5)
    while at < duration:
        for _ in range(random.choice([1, 2])):
            place = {"topic": "topic-1", "partition": random.randrange(topics[0]["partitions"])}
            moved = {"kind": "move_leader", "seconds": 0.0, "node": random.randint(1, 3), **place}
            steps.append({"at": round(at + random.uniform(0, 0.4), 3), **moved})
        lost = {"kind": "broker_power", "seconds": round(random.uniform(0.05, 0.5), 3), "steps": 0}
        steps.append({"at": round(at + random.uniform(0.2, 0.7), 3), **lost})
        at += random.uniform(1.2, 2.5)
    cluster = {"nodes": 3, "fsync": random.choice(["interval", "interval", "never", "batch"])}
    # Who is given records one by one knows of which epoch each is, of those as well that are gone then.
    readers = group(Random(f"readers/{steps}"), "group-1", topics, has_consumer_groups=True)[:1]
    own = {"kind": "consumer", "pattern": None, "topics": ["topic-1"], "isolation": "read_uncommitted", "at": 0.0}
    own |= {"reset": "earliest", "pace": 0.01, "max_poll_records": 1, "max_wait_ms": 50, "steps": {"nothing": 1.0}}
    actors += [reader | own | {"late": 0.0} for reader in readers]
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": small_cluster(random) | cluster}


def _expiring(random: Random, duration: float) -> Spec:
    """What is written goes soon, by its size or its age, and the broker is killed meanwhile."""
    by_size: Spec = {"retention.bytes": random.choice([500, 2500]), "segment.bytes": 1024}
    by_time: Spec = {"retention.ms": random.choice([2500, 4000]), "segment.ms": random.choice([500, 2500, 604_800_000])}
    configs = random.choice([by_size, by_size, by_time | {"segment.bytes": random.choice([1024, 100_000])}])
    topics = [numbered_topic(1, random.choice([1, 2]), "retained", configs)]
    actors = [steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    steps = [] if random.random() < 0.5 else crashes(random, duration, 2.0, ["broker_kill", "broker_stop"])
    return {"topics": topics, "actors": actors, "nemesis": steps}


def _changing(random: Random, duration: float) -> Spec:
    """Topics that grow, are configured and lose records, by somebody whose every change a restart may forget."""
    rolls: Spec = {"segment.bytes": 2048}  # of one of them: records are deleted up to the midst of a segment
    topics = [numbered_topic(n, random.choice([1, 3]), "steady", rolls if n == 1 else None) for n in (1, 2)]
    actors = [steady_producer(random, "producer-1", topics, duration)]
    actors.append(changing_admin(topics, duration, {"configure": 1.0, "grow": 0.3, "delete_records": 0.5}))
    return {"topics": topics, "actors": actors, "nemesis": crashes(random, duration, 1.5)}


def _sessions(random: Random, duration: float) -> Spec:
    """Members that read several partitions in one fetch session, let go of some and come back to them."""
    topics = [numbered_topic(n, 3, "steady") for n in (1, 2, 3)]
    names = [topic["name"] for topic in topics]
    actors = [steady_producer(random, f"producer-{n}", topics, duration) for n in (1, 2)]
    members = group(random, "group-1", topics, has_consumer_groups=True)
    for actor in members:
        actor |= {"topics": names, "pattern": None, "reset": "earliest", "pace": 0.05, "metadata_max_age": 300.0}
        actor |= {"kind": "consumer", "auto_commit": True, "max_poll_records": random.choice([1, 500])}
        actor["max_wait_ms"] = random.choice([50, 300, 20_000])
        actor["steps"] = {"nothing": 1.0, "pause": random.choice([0.0, 0.5]), "leave": 0.05}
    steps: list[Spec] = []
    nodes = random.choice([1, 3, 3])
    for _ in range(random.randint(2, 8) if nodes > 1 else 0):
        place = {"topic": random.choice(names), "partition": random.randrange(3), "node": random.randint(1, nodes)}
        at = round(random.uniform(0.5, duration), 3)
        steps.append({"at": at, "kind": "move_leader", "seconds": 0.0, **place})
        if random.random() < 0.5:  # away and back, before anybody knows: the next epoch of the same leader
            for later, node in ((1.0, place["node"] % nodes + 1), (random.choice([1.02, 1.2]), place["node"])):
                moved = {"kind": "move_leader", "seconds": 0.0, **place, "node": node}
                steps.append({"at": round(at + later, 3), **moved})
    if nodes > 1:
        steps += all_away_and_back(Random(f"all/{steps}"), topics, nodes, duration)
    return {
        "topics": topics,
        "actors": actors + members,
        "nemesis": steps,
        "cluster": small_cluster(random) | {"nodes": nodes},
    }


def _retrying(random: Random, duration: float) -> Spec:
    """Producers whose answers are late or lost for about as long as they wait: of one partition, some is given up, some
    sent again, some still on its way."""
    nodes = random.choice([1, 1, 3])
    topics = [numbered_topic(1, random.choice([1, 1, 2]), "steady")]
    actors = []
    for number in range(1, random.randint(1, 3) + 1):
        timeout = random.choice([1.0, 1.5, 2.5])
        actors.append(
            steady_producer(random, f"producer-{number}", topics, duration)
            | {
                "records": 200,
                "pace": random.choice([0.02, 0.06]),
                "burst": random.choice([1, 1, 5]),
                "timeout": timeout,
                "request_timeout": round(timeout * random.choice([0.3, 0.6, 0.9, 1.5]), 2),
                "max_block": 2.0,
                "renew": random.choice([0.0, 0.0, 0.1]),
            }
        )
    plan = {"actors": actors, "topics": topics, "cluster": {"nodes": nodes}}
    steps = []
    at = random.uniform(0.3, 1.0)
    while at < duration:
        steps += after(at, unanswered(random, plan))
        at += random.uniform(0.5, 3.0)
    if random.random() < 0.5:
        steps += after(random.uniform(0, duration / 2), moved_under_load(random, plan))
    if random.random() < 0.3:
        steps += [write_error(random, duration, "topic-") for _ in range(random.randint(1, 4))]
    if random.random() < 0.3:  # of a producer that no broker knows yet, the first batch is refused, and no other
        for actor in actors:
            actor |= {"at": round(random.uniform(0.2, 0.5 * duration), 3), "renew": 0.1, "burst": 5, "linger": 0.0}
            actor |= {"batch_bytes": 200, "given_partition": 1.0}
            first = write_error(random, duration, "topic-") | {"at": actor["at"], "after": random.choice([0, 0, 1])}
            steps.append(first | {"count": 1, "seconds": 2.0})
        steps += [write_error(random, duration, "topic-") | {"count": 1} for _ in range(random.randint(2, 6))]
    if random.random() < 0.35:  # what was taken is too large when it is sent again
        often = {"count": 40, "pace": 0.25, "configs": {"max.message.bytes": ["1048588", "300"]}}
        actors.append(changing_admin(topics, duration, {"configure": 1.0}) | often)
        for actor in actors[:-1]:
            actor |= {"linger": 0.05, "burst": 10, "batch_bytes": 1000, "value_size": 40}
            actor |= {"timeout": 8.0, "request_timeout": 0.6}
    return {"topics": topics, "actors": actors, "nemesis": steps, "cluster": small_cluster(random) | {"nodes": nodes}}


def _rebalancing(random: Random, duration: float) -> Spec:
    """Members that miss what their coordinator says: they sleep, die, are cut off, and come back; or their coordinator
    moves, dies, and cannot write."""
    duration += 8.0
    nodes = random.choice([1, 3, 3])
    topics = [numbered_topic(n, random.choice([2, 3]), "steady") for n in (1, 2)]
    actors = [steady_producer(random, "producer-1", topics, duration)]
    members = _members(random, topics)
    plan = {"actors": actors + members, "topics": topics, "cluster": {"nodes": nodes}}
    steps: list[Spec] = []
    if nodes > 1 and random.random() < 0.5:  # who hears nobody of them may still read from the others
        node = random.randint(1, nodes)
        steps.append({"at": 0.3, "kind": "move_coordinator", "seconds": 0.0, "node": node, "group": "group-1"})
        cut_off = random.choice(members)["name"]
        far = {"kind": "partition", "a": cut_off, "b": f"broker/{node}", "one_way": random.random() < 0.3}
        steps.append({"at": round(random.uniform(3, 6), 3), "seconds": random.uniform(9, 15), **far})
    is_cut_off = bool(steps)
    for _ in range(random.randint(0 if is_cut_off else 1, 3)):
        scene = random.choice([zombie, zombie, out_of_reach, dead_for_good, crowd, moved_under_load])
        steps += after(random.uniform(1, 0.6 * duration), scene(random, plan))
    if not is_cut_off and random.random() < 0.4:  # they miss rebalances, and come back with what they had
        for actor in random.sample(members, random.randint(1, len(members) - 1)):
            pause = {"kind": "client_pause", "target": actor["name"], "seconds": round(random.uniform(6.5, 9.0), 3)}
            steps.append({"at": round(random.uniform(2, 5), 3), **pause})
    if random.random() < 0.4 and not is_cut_off:  # who starts anew leads and coordinates what it did at first
        steps += crashes(random, duration, 4.0)
    if random.random() < 0.4:
        steps += [write_error(random, duration, "__consumer_offsets") for _ in range(random.randint(1, 4))]
    if random.random() < 0.3:
        steps.append(far_away(random, plan | {"duration": duration}))
    return {
        "duration": duration,
        "topics": topics,
        "actors": plan["actors"],
        "nemesis": steps,
        "cluster": small_cluster(random) | {"nodes": nodes},
    }


def _members(random: Random, topics: list[Spec]) -> list[Spec]:
    """Of a group that reads all there is, from the beginning; what they do besides is the seed's."""
    members = group(random, "group-1", topics, has_consumer_groups=True)
    while len(members) < 2:
        members = group(random, "group-1", topics, has_consumer_groups=True)
    names = [topic["name"] for topic in topics]
    steps = {"nothing": 2.0} | {
        name: weight
        for name, weight in {
            "commit": 0.5,
            "commit_async": 0.5,
            "committed": 0.7,
            "doze": 0.1,
            "leave": 0.1,
            "pause": 0.3,
            "seek": 0.5,
        }.items()
        if random.random() < 0.5
    }
    assignors = [random.choice(["sticky", "sticky", "cooperative-sticky", "cooperative-sticky", "range"])]
    shared = {
        "topics": names,
        "pattern": None,
        "reset": "earliest",
        "metadata_max_age": random.choice([3.0, 300.0]),
        "max_wait_ms": random.choice([50, 300, 300, 20_000]),
        "steps": steps,
    }
    for actor in members:
        actor |= shared | {"pace": random.choice([0.01, 0.05, 0.3])}
        if actor["protocol"] == "classic":
            actor["assignors"] = assignors
    unlike(members, 0.6)
    sluggish = Random(f"sluggish/{members}")
    if sluggish.random() < 0.3:  # more happens to the group than it hears of, between two of its polls
        sluggish.choice(members)["pace"] = sluggish.choice([1.5, 2.5])
    return members


def _looping(random: Random, duration: float) -> Spec:
    """Programs that consume, transform and produce, and lose partitions in the middle of a transaction."""
    duration += 5.0
    nodes = random.choice([1, 1, 3])
    topics = [numbered_topic(1, random.choice([2, 3]), "steady")]
    actors = [steady_producer(random, "producer-1", topics, duration)]
    programs = movers(random, topics, "moved", duration, has_consumer_groups=True)
    while len(programs) < 2:
        programs = movers(random, topics, "moved", duration, has_consumer_groups=True)
    for actor in programs:
        actor |= {"timeout": 8.0, "pace": 0.05, "doze": random.choice([0.0, 0.1]), "holds": random.choice([0.0, 0.4])}
        actor["consumer"] |= {"max_poll_records": random.choice([1, 5, 500]), "pace": 0.05}
    plan = {"actors": actors + programs, "topics": topics, "cluster": {"nodes": nodes}}
    steps = []
    for _ in range(random.randint(1, 3)):
        scene = random.choice([zombie, out_of_reach, crowd, moved_under_load, unanswered])
        steps += after(random.uniform(1, 0.6 * duration), scene(random, plan))
    steps += crashes(random, duration, 4.0) if random.random() < 0.4 else []
    return {
        "duration": duration,
        "topics": [*topics, numbered_topic(1, random.choice([1, 3]), "moved") | {"name": "moved"}],
        "actors": plan["actors"],
        "nemesis": steps,
        "cluster": small_cluster(random) | {"nodes": nodes},
    }


def _sinking(random: Random, duration: float) -> Spec:
    """A query, or two drivers of one, whose every step takes a while, and is broken off."""
    duration += 6.0
    topics = [numbered_topic(1, 2, "sunk") | {"name": "sunk"}]
    actors = sinks(random, "sunk", 1.0)
    shared = {
        "tasks": random.choice([2, 3]),
        "timeout_ms": random.choice([6_000, 6_000, 12_000, 30_000, 60_000]),
        "workers": random.choice([1, 1, 3]),
        "pace": 0.1,
        "interrupt": random.choice([0.0, 0.2, 0.4]),
        "die": random.choice([0.0, 0.1]),
        "doze": random.choice([0.0, 0.0, 0.5]),
    }
    for actor in actors:
        actor |= shared
    steps = []
    for _ in range(random.randint(1, 2)):
        steps += after(random.uniform(0.5, duration / 3), driver_dies(random, {"actors": actors}))
    if random.random() < 0.4:
        steps += crashes(random, duration, 4.0)
    return {"duration": duration, "topics": topics, "actors": actors, "nemesis": steps}


_ROOMS: tuple[Callable[[Random, float], Spec], ...] = (
    *[_endings] * 3,
    *[_cleaning] * 2,
    *[_writing] * 2,
    _unsynced,
    *[_expiring] * 2,
    _changing,
    *[_sessions] * 2,
    *[_retrying] * 3,
    *[_rebalancing] * 4,
    _looping,
    *[_sinking] * 3,
)
