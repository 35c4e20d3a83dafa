"""A query with the exactly-once sink when nothing else goes wrong any more: what its drivers do to each other is all
there is. They sleep between two steps, for as long as transactions last, are left behind and go on later, and come late
to decide; attempts of tasks fail, or are too many."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from random import Random
from typing import Final

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin
from tests.simulation.workload.blocking import Blocking
from tests.simulation.workload.planned_actors import sinks
from tests.simulation.workload.sinking import BATCH_ROUND_TRIPS, Sinking
from tests.simulation.workload.stage import Phase, Spec, is_refusal

TOPIC: Final = "sunk-later"
TIMEOUT_S: Final = 6.0
"""Of the tasks' transactions: those of clusters that are so near that it is enough."""

REQUEST_S: Final = 20.0
LASTS_S: Final = (14.0, 20.0)
OPEN_S: Final = 1.0
"""Behind its time, until a transaction that a late attempt has left is over."""


class Querying(Blocking):
    """Its spec has nothing of its own."""

    @property
    def goes_on(self) -> bool:
        return not self.is_done

    def live_blocking(self) -> None:
        self.is_done = True
        if 2 * BATCH_ROUND_TRIPS * (self.stage.round_trip_s + self.stage.spikes_s) > TIMEOUT_S:
            return
        asyncio.run(self._create())
        own = copy.copy(self.stage)
        own.phase, own.checkpoints = Phase.LOAD, {}
        drivers = [Sinking(own, spec) for spec in _drivers(self.random)]
        threads = [threading.Thread(target=driver.main) for driver in drivers]
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(*LASTS_S))
        own.phase = Phase.SETTLE
        for thread in threads:
            thread.join()
        time.sleep(TIMEOUT_S + OPEN_S)

    async def _create(self) -> None:
        asked: Spec = {"topic": TOPIC, "partitions": 2, "configs": {}}
        async with AsyncAdmin(self.stage.properties(self.process, REQUEST_S)) as admin:
            new = NewTopic(TOPIC, 2, -1, {})
            await self.noted("create_topic", asked, lambda: admin.create_topics(new), has_no_effect=is_refusal)
        topic = {"name": TOPIC, "partitions": 2, "kind": "sunk", "compacted": False, "configs": {}}
        self.stage.topics[TOPIC] = topic


def _drivers(random: Random) -> list[Spec]:
    """One driver or two, of one query or of two that have one name, and where they stop."""
    before, after = random.choice(("lists", "has-listed")), random.choice(("has-checked", "has-decided"))
    stops = {
        before: {"is-left": random.choice([0.0, 0.4, 0.4]), "sleeps": 0.2},
        after: {"sleeps": random.choice([0.3, 0.6]), "dies": 0.1},
    }
    shared: Spec = {
        "sink": "sink-later",
        "at": 0.0,
        "tasks": 2,
        "rows": 2,
        "pace": 0.1,
        "timeout_ms": int(TIMEOUT_S * 1000),
        "request_timeout": 4.0,
        "fail": random.choice([0.0, 0.3]),
        "late": random.choice([0.0, 0.4]),
        "die": 0.0,
        "doze": random.choice([0.0, 0.3]),
        "workers": random.choice([1, 2]),
        "serial": random.random() < 0.5,
        "keeps": random.random() < 0.7,
        "stops": stops,
        "nap": random.choice([1.5, 3.0, TIMEOUT_S, TIMEOUT_S]),
    }
    return [
        spec | shared | {"name": f"querying-{number}", "query": f"later-{spec['query']}"}
        for number, spec in enumerate(sinks(random, TOPIC, 1.0), 1)
    ]
