"""Memory, tasks, threads and descriptors: what a run has taken is given back when its clients have closed.

Of a broker's memory that is what it would find on the disk: whatever it has when everybody is gone, and would not have
after a restart, was of somebody who is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

ALLOWED = {"tasks": 0, "threads": 0, "descriptors": 0}
MEMORY = 32 << 20
"""Bytes more at the end than at the beginning: what caches and the interpreter itself take."""

BOUNDED = (
    "RequestLog._latest",  # for who looks at the broker: so many at most
    "RequestLog._totals",
    "FetchSessions._sessions",  # until another one takes the place of one that nobody uses: so many at most
    "FetchSession.partitions",
    "PartitionLog._unsynced",  # of the segments that are there: with fsync=never all since the start
)
"""What a restart forgets, and is nobody's leak: it cannot grow without an end."""


def leaks(facts: Facts) -> Iterator[Anomaly]:
    """At its end a process has no more tasks, threads and descriptors than at its beginning, nor much more memory."""
    started = {}
    for sample in facts.operations.of("resources"):
        value = sample.invoked.value
        if value["phase"] == "start":
            started[value["node"]] = sample
        elif value["phase"] == "end" and value["node"] in started:
            begun = started[value["node"]]
            before = begun.invoked.value
            for what, more in {**ALLOWED, "memory": MEMORY}.items():
                if before.get(what) is None or value.get(what) is None or value[what] <= before[what] + more:
                    continue
                told = f"{value['node']} began with {before[what]} {what}, and ends with {value[what]}"
                yield anomaly(f"leaked-{what}", told, begun, sample)
    for sample in facts.operations.of("kept"):
        value = sample.invoked.value
        for where, (count, after) in value["more"].items():
            if where not in BOUNDED:
                told = f"{value['node']} holds {count} things in {where} when all are gone, and {after} after a restart"
                yield anomaly("leaked-memory", told, sample)
                break
