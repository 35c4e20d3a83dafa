"""What has to meet in a narrow moment: a second fault at just the step at which a first one matters.

A close-up's plan is drawn first, and some get one of these on top, drawn from numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

from tests.simulation.workload.spark_driver import MOMENTS, STOPS
from tests.simulation.workload.stage import Spec

Change = tuple[str, str]
"""An operation of a disk, and what the path has in it."""

WRITTEN: Final[tuple[Change, ...]] = (
    *[("sync", "topic-")] * 4,
    ("write", "topic-"),
    ("create", ".log"),
    ("sync_directory", "topic-"),
)
"""Amid which a log is broken off that is written to."""

ROLLED: Final[tuple[Change, ...]] = (("create", ".log"), ("create", ".log"), ("sync", ".log"))
"""Amid which a segment is closed, and the next one begun."""

SMALL: Final[Spec] = {"segment.bytes": 1024}

REPLACED: Final[tuple[Change, ...]] = (
    *[("remove", ".log")] * 3,
    ("rename", ".log"),
    ("sync_directory", "topic-"),
    ("create", ".cleaned"),
)
"""Amid which one is broken off that is compacted."""


DELETED: Final[tuple[Change, ...]] = (
    *[("remove", ".log")] * 2,
    ("sync_directory", "topic-"),
    ("rename", "log-start-offset"),
    ("sync", "log-start-offset"),
)
"""Amid which one is broken off that loses its beginning."""

DECIDED: Final[tuple[Change, ...]] = (
    *[("sync", "__transaction_state")] * 2,
    ("write", "__transaction_state"),
    *[("sync", "topic-")] * 2,
    ("write", "topic-"),
)
"""Amid which transactions are broken off, of which nothing else is on the disk soon."""


def narrowed(random: Random, room: str, drawn: Spec) -> Spec:
    """The plan of a close-up, with what has to meet in this room on top, or as it is.

    Args:
        room: the name of the function of `close_ups` that has drawn it.
    """
    share, narrow = _ROOMS.get(room, (0.0, _as_it_is))
    return narrow(random, drawn) if random.random() < share else drawn


def _as_it_is(random: Random, drawn: Spec) -> Spec:
    return drawn


def _with(drawn: Spec, steps: list[Spec], **more: Any) -> Spec:
    return drawn | {"nemesis": sorted([*drawn["nemesis"], *steps], key=lambda step: step["at"])} | more


def _without_ends(drawn: Spec, steps: list[Spec], **more: Any) -> Spec:
    """In the place of the broker's other ends: while one waits for its operation, nothing else befalls it, and for one
    of a log that is offline it would wait in vain."""
    left = [step for step in drawn["nemesis"] if not step["kind"].startswith(("broker_", "disk_error"))]
    return _with(drawn | {"nemesis": left}, steps, **more)


def _step(at: float, kind: str, seconds: float, **detail: Any) -> Spec:
    return {"at": round(at, 3), "kind": kind, "seconds": round(seconds, 3), **detail}


def power_amid(random: Random, duration: float, changes: tuple[Change, ...]) -> list[Spec]:
    """Power that is lost a few steps from a change of the disk on, which leaves a part of what was under way: sectors
    of a batch, one name and not the other."""
    steps, at = [], random.uniform(0.8, 2.0)
    while at < duration:
        operation, part = random.choice(changes)
        spares = random.choice(["sectors", "sectors", "any", "any", "beginning", None])
        amid = {"upon": operation, "part": part, "steps": int(3 ** random.uniform(0, 2.5)), "spares": spares}
        steps.append(_step(at, "broker_power", random.uniform(0.05, 0.5), **amid))
        at += random.uniform(0.7, 2.0)
    return steps


def _broken_off(random: Random, drawn: Spec) -> Spec:
    return random.choice((_written, _written, _rolled))(random, drawn)


def _written(random: Random, drawn: Spec) -> Spec:
    """Batches of several sectors, of which the power leaves some."""
    large = {"compression": "none", "records": 60, "pace": round(drawn["duration"] / 70, 3)}
    actors = [actor | large | {"value_size": random.choice([600, 1500, 3000])} for actor in drawn["actors"]]
    configs = {"segment.bytes": random.choice([4096, 16_384])}  # it takes no batch that is larger
    topics = [topic | {"configs": topic["configs"] | configs} for topic in drawn["topics"]]
    return _without_ends(drawn, power_amid(random, drawn["duration"], WRITTEN), actors=actors, topics=topics)


def _rolled(random: Random, drawn: Spec) -> Spec:
    """Segments of a batch each, that are closed when it has long been noted that all they hold is on the disk: their
    indexes are not, when the power is lost."""
    own = {
        "value_size": 700,
        "compression": "none",
        "records": 25,
        "burst": 1,
        "pace": round(drawn["duration"] / 25, 3),
    }
    topics = [topic | {"partitions": 1, "configs": topic["configs"] | SMALL} for topic in drawn["topics"]]
    cluster = drawn["cluster"] | {"upkeep": drawn["cluster"]["upkeep"] | {"RECOVERY_POINTS_EVERY_S": 0.1}}
    if Random(f"rolled/{drawn['duration']}").random() < 0.4:  # what is noted to be on the disk is not all there is
        cluster["fsync"] = "interval"
    more = {"actors": [actor | own for actor in drawn["actors"][:1]], "topics": topics, "cluster": cluster}
    return _without_ends(drawn, power_amid(random, drawn["duration"], ROLLED), **more)


def _replaced(random: Random, drawn: Spec) -> Spec:
    """Segments that take each other's place."""
    return _without_ends(drawn, power_amid(random, drawn["duration"], REPLACED))


def _shortened(random: Random, drawn: Spec) -> Spec:
    """Logs that lose their beginning, by retention and on demand, on a disk that takes its time, so that it is told
    where they start while some of it is still to be done."""
    duration = drawn["duration"]
    names = [topic["name"] for topic in drawn["topics"]]
    admin = {"name": "shortening", "kind": "admin", "count": 40, "pace": 0.2, "topics": names, "unsteady": []}
    admin |= {"groups": [], "transactional_ids": [], "configs": {}, "steps": {"delete_records": 1.0}}
    topics = [topic | {"configs": topic["configs"] | SMALL} for topic in drawn["topics"]]
    steps = power_amid(random, duration, DELETED)
    for step in steps:
        step["kind"] = random.choice(["broker_power", "broker_kill"])
        if step["kind"] == "broker_kill":
            step.pop("spares")
    steps.append(_step(0.3, "disk_slow", duration, latency=random.choice([0.02, 0.1]), chance=1.0))
    return _without_ends(drawn, steps, actors=[*drawn["actors"], admin], topics=topics)


def _synced_later(random: Random, drawn: Spec) -> Spec:
    """Transactions where what is written is synced in intervals: but for what decides, which other logs follow from."""
    cluster = drawn["cluster"] | {"fsync": "interval"}
    often = {"forsake": random.choice([0.1, 0.5])}  # so that ids are taken over
    actors = [actor | often if actor["kind"] == "transactions" else actor for actor in drawn["actors"]]
    return _without_ends(drawn, power_amid(random, drawn["duration"], DECIDED), cluster=cluster, actors=actors)


def _too_large(random: Random, drawn: Spec) -> Spec:
    """Batches that were taken, of which the producer has no answer, and that are too large when they are sent again."""
    duration = drawn["duration"] + 3.0
    actors = []
    for actor in drawn["actors"]:
        if actor["kind"] == "producer":
            more = {"linger": 0.05, "burst": 10, "batch_bytes": 1000, "value_size": 40, "pace": 0.03, "records": 300}
            more |= {"timeout": 8.0, "request_timeout": 0.6, "given_partition": 1.0, "renew": 0.0}
            actors.append(actor | more)
    topics = [topic["name"] for topic in drawn["topics"]]
    admin = {"name": "admin", "kind": "admin", "count": 60, "pace": 0.2, "topics": topics, "unsteady": [], "groups": []}
    admin |= {"transactional_ids": [], "configs": {"max.message.bytes": ["1048588", "300"]}}
    actors.append(admin | {"steps": {"configure": 1.0}})
    at, steps = random.uniform(0.5, 1.0), []
    while at < duration - 1:
        name = random.choice(actors[:-1])["name"]
        steps.append(_step(at, "half_open", 2.0, a=name, to="client"))
        at += random.uniform(0.8, 1.6)
    drawn = drawn | {"nemesis": [step for step in drawn["nemesis"] if step["kind"] == "move_leader"]}
    return _with(drawn, steps, actors=actors, duration=duration)


def _sunk(random: Random, drawn: Spec) -> Spec:
    """Drivers of a query, longer than the close-up has them: what is rare there meets here."""
    shared = {"serial": random.random() < 0.7, "keeps": random.random() < 0.3}
    actors = [actor | shared for actor in drawn["actors"]]
    narrow = random.choice((_stopped, _stopped, _overtaken, _late_to_decide, _soon_given_up))
    return narrow(random, drawn | {"actors": actors, "duration": drawn["duration"] + 10.0})


def _stopped(random: Random, drawn: Spec) -> Spec:
    """Drivers that stop again and again between the same two of their steps, also when the query is somebody else's by
    then."""
    actors = []
    for actor in drawn["actors"]:
        stops = {
            moment: {how: random.choice([0.0, 0.1, 0.2]) for how in STOPS}
            for moment in random.sample(MOMENTS, random.randint(1, 3))
        }
        actors.append(actor | {"stops": stops, "nap": random.choice([0.3, 1.5, 4.0])})
    return _with(drawn, _hurries(random, drawn["duration"]) if random.random() < 0.3 else [], actors=actors)


def _overtaken(random: Random, drawn: Spec) -> Spec:
    """Drivers that sleep where they are to see what is open, while the next one decides, and sleeps over that."""
    later = random.choice(["has-checked", "has-decided"])
    stops = {"lists": {"is-left": 0.4, "sleeps": 0.1}, later: {"sleeps": 0.6, "dies": 0.1}}
    shared = {"stops": stops, "nap": 3.0, "timeout_ms": 30_000, "interrupt": 0.0, "die": 0.0, "doze": 0.0}
    return _undisturbed(drawn) | {"actors": [actor | shared for actor in drawn["actors"]]}


def _late_to_decide(random: Random, drawn: Spec) -> Spec:
    """One driver, nobody else's transactions to look after, and those of its tasks over before it decides."""
    shared = {"timeout_ms": 6_000, "interrupt": 0.0, "die": 0.0, "doze": 0.4}
    return _undisturbed(drawn) | {"actors": [actor | shared for actor in drawn["actors"][:1]]}


def _soon_given_up(random: Random, drawn: Spec) -> Spec:
    """Ends of transactions that are asked for in vain, since the driver has no patience."""
    shared = {"interrupt": 0.0, "die": 0.0, "doze": 0.0, "timeout_ms": 60_000}
    actors = [actor | shared for actor in drawn["actors"][: random.choice([1, 1, 2])]]
    return _with(_undisturbed(drawn), _hurries(random, drawn["duration"]), actors=actors)


def _hurries(random: Random, duration: float) -> list[Spec]:
    steps, at = [], random.uniform(0.5, 2.0)
    while at < duration:
        seconds = random.uniform(0.5, 5.0)
        steps.append(_step(at, "hurry", seconds, patience=random.choice([0.0, 0.0, 0.1])))
        at += seconds + random.uniform(0.5, 3.0)
    return steps


def _undisturbed(drawn: Spec) -> Spec:
    """Without what befalls single drivers: it takes their time, and then little meets."""
    return drawn | {"nemesis": [step for step in drawn["nemesis"] if step["kind"].startswith("broker_")]}


_ROOMS: Final[Mapping[str, tuple[float, Callable[[Random, Spec], Spec]]]] = MappingProxyType(
    {
        "_writing": (0.7, _broken_off),
        "_endings": (0.2, _synced_later),
        "_changing": (0.5, _shortened),
        "_expiring": (0.3, _shortened),
        "_cleaning": (0.5, _replaced),
        "_retrying": (0.3, _too_large),
        "_sinking": (0.8, _sunk),
    }
)
