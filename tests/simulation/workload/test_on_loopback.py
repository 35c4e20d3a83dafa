"""The workload on real brokers, where nothing goes wrong: whatever it finds there is its own fault, or a defect."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from tagwire.broker import Broker, Cluster
from tests.simulation.history import History, Operations
from tests.simulation.judge import judge
from tests.simulation.workload.load import run
from tests.simulation.workload.on_loopback import Loopback
from tests.simulation.workload.plans import plan


class LockedHistory(History):
    """For actors that are threads and not batons."""

    def __init__(self) -> None:
        began = time.monotonic()
        super().__init__(lambda: time.monotonic() - began)
        self._lock = threading.Lock()

    def _add(self, *event: Any) -> Any:
        with self._lock:
            return super()._add(*event)


def quick(seed: int) -> dict[str, Any]:
    """The plan of a seed in a few real seconds."""
    found = plan(seed)
    found["duration"] = 2.0
    found["settle"] = 0.5
    found["nemesis"] = found["last"] = []
    found["cluster"].pop("guards", None)
    for actor in found["actors"]:
        actor["at"] = min(actor.get("at", 0.0), 0.5)
        actor["pace"] = min(actor["pace"], 0.02)
        if "steps" in actor:
            actor["steps"].pop("doze", None)
    return found


def ran(seed: int, bootstrap: str) -> History:
    history = LockedHistory()
    run(quick(seed), Loopback(bootstrap), history)
    return history


def check(history: History) -> None:
    """What was acknowledged was read at the end, and nobody has anything to say against it."""
    operations = Operations(history)
    assert judge(history) == []
    assert [each for each in operations.of("send") if each.type == "ok"]
    assert [each for each in operations.of("final_read") if each.type == "ok" and each.value["records"]]


def test_a_plan_is_plain_data_and_the_same_for_the_same_seed() -> None:
    for seed in range(50):
        assert json.loads(json.dumps(plan(seed))) == plan(seed)
    assert plan(1) != plan(2)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [4, 6])
def test_a_plan_runs_on_a_broker_and_finds_its_own_records(seed: int) -> None:
    with Broker(**quick(seed)["cluster"]["settings"]) as broker:
        check(ran(seed, broker.bootstrap))


def test_a_plan_runs_on_a_cluster() -> None:
    with Cluster(nodes=3) as cluster:
        check(ran(3, cluster.bootstrap))
