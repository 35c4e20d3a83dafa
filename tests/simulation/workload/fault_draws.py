"""What goes wrong with the network and the disk in a run: steps for its nemesis, drawn from the plan's seed.

Each run has some kinds of faults and not the others. They come about one moment or a few, since what breaks promises
is two failures close together.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.workload.stage import Spec

BROKER: Final = "broker"

SHORT: Final = (0.05, 0.5, 2.0)
"""Seconds below every timeout of the plans' clients; and above some, and above all."""

LONG: Final = (2.0, 5.0, 12.0)

NAMED: Final = (
    "00000000000000000000.log",
    "__consumer_offsets",
    "__transaction_state",
    "checkpoint",
    "tagwire-topics",
    "",
)
"""Parts of the paths of files that fail where others do not; the last is of all."""


UPON: Final = ("sync", "sync_directory", "rename", "remove", "create", "truncate")
"""Operations of a disk near which a broker ends: what is in memory or under a name alone is so then."""


def crash_moment(random: Random, most: int = 300) -> Spec:
    """When exactly a broker ends: at once, so many switch points later, or as many from an operation of its disk on."""
    if random.random() < 0.35:
        return {"upon": random.choice(UPON), "steps": int(3 ** random.uniform(0, 4))}
    return {"steps": random.choice([0, random.randint(1, most)])}


def network_steps(random: Random, actors: list[str], duration: float, nodes: int = 1) -> list[Spec]:
    """Steps of kinds that befall the network, between the broker or its nodes and the actors."""
    kinds = random.sample(sorted(_NETWORK), random.randint(1, 3))
    count = random.choice([1, 2, 4, 8])
    moments = _moments(random, duration)
    return [_NETWORK[random.choice(kinds)](random, actors, nodes) | _when(random, moments) for _ in range(count)]


def disk_steps(random: Random, duration: float) -> list[Spec]:
    """Steps of kinds that befall the broker's disk."""
    kinds = random.sample(sorted(_DISK), random.randint(1, 2))
    count = random.choice([1, 1, 2, 4])
    moments = _moments(random, duration)
    return [_DISK[random.choice(kinds)](random) | _when(random, moments) for _ in range(count)]


def _moments(random: Random, duration: float) -> list[float]:
    return [random.uniform(0.2, 0.9 * duration) for _ in range(random.choice([1, 2, 5]))]


def _when(random: Random, moments: list[float]) -> Spec:
    at = random.choice(moments) + random.choice([0.0, 0.05, 1.0]) * random.random()
    seconds = random.choice([*SHORT, *LONG]) * random.uniform(0.5, 1.5)
    return {"at": round(at, 3), "seconds": round(seconds, 3)}


def _side(random: Random, nodes: int) -> str:
    """The broker, or one node of a cluster."""
    return BROKER if nodes == 1 or random.random() < 0.3 else f"{BROKER}/{random.randint(1, nodes)}"


def _partition(random: Random, actors: list[str], nodes: int) -> Spec:
    ends = [random.choice(actors), _side(random, nodes)]
    if one_way := random.random() < 0.4:
        random.shuffle(ends)
    return {"kind": "partition", "a": ends[0], "b": ends[1], "one_way": one_way}


def _cut(random: Random, actors: list[str], nodes: int) -> Spec:
    told = random.choice(["both", "client", "client", "server", "nobody"])
    return {"kind": "cut", "a": random.choice([*actors, _side(random, nodes)]), "told": told}


def _half_open(random: Random, actors: list[str], nodes: int) -> Spec:
    return {
        "kind": "half_open",
        "a": random.choice([*actors, _side(random, nodes)]),
        "to": random.choice(["client", "server"]),
    }


def _slow(random: Random, actors: list[str], nodes: int) -> Spec:
    return {
        "kind": "slow",
        "a": random.choice([*actors, _side(random, nodes)]),
        "latency": random.choice([0.05, 0.5, 3.0]),
        "bandwidth": random.choice([None, None, 500.0, 20_000.0]),
    }


def _lossy(random: Random, actors: list[str], nodes: int) -> Spec:
    return {
        "kind": "lossy",
        "a": random.choice([*actors, _side(random, nodes)]),
        "chance": random.choice([0.02, 0.2, 0.5]),
    }


def _refuse(random: Random, actors: list[str], nodes: int) -> Spec:
    return {"kind": "refuse"}


_NETWORK: Final[dict[str, Callable[[Random, list[str], int], Spec]]] = {
    "partition": _partition,
    "cut": _cut,
    "half_open": _half_open,
    "slow": _slow,
    "lossy": _lossy,
    "refuse": _refuse,
}


def _disk_error(random: Random) -> Spec:
    operation = random.choice(
        ["write", "write", "sync", "sync", "sync_directory", "create", "open", "read", "truncate", "rename", "remove"]
    )
    detail: dict[str, Any] = {"operation": operation, "count": random.choice([1, 1, 2, 5, None])}
    detail["after"] = random.choice([0, 0, 1, 5, 30])
    detail["part"] = random.choice(NAMED)
    detail["errno"] = random.choice([errno.EIO, errno.ENOSPC]) if operation in ("write", "create") else errno.EIO
    return {"kind": "disk_error", **detail}


def _disk_full(random: Random) -> Spec:
    return {"kind": "disk_full", "capacity": random.choice([0, 100, 1000, 10_000])}


def _disk_slow(random: Random) -> Spec:
    latency = random.choice([0.05, 0.5, 5.0])
    often = 0.2 if latency > 1 else 1.0  # a broker starts within a minute all the same
    return {"kind": "disk_slow", "latency": latency, "chance": random.choice([0.02, 0.2, often])}


_DISK: Final[dict[str, Callable[[Random], Spec]]] = {
    "disk_error": _disk_error,
    "disk_full": _disk_full,
    "disk_slow": _disk_slow,
}
