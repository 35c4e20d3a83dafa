"""Memory, tasks, threads and descriptors: what a run has taken is given back when its clients have closed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

ALLOWED = {"tasks": 0, "threads": 0, "descriptors": 0}
MEMORY = 32 << 20
"""Bytes more at the end than at the beginning: what caches and the interpreter itself take."""


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
