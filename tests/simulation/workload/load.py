"""A run of a plan: topics, actors, faults, and what is read at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin
from tagwire.errors import Error, KafkaError
from tests.simulation.history import History
from tests.simulation.workload.administering import Administering
from tests.simulation.workload.blocking import ConsumingInThread, ProducingInThreads
from tests.simulation.workload.consuming import Consuming
from tests.simulation.workload.final_reading import FinalReading
from tests.simulation.workload.moving import Moving
from tests.simulation.workload.nemesis import Faults, Nemesis
from tests.simulation.workload.producing import Producing
from tests.simulation.workload.sinking import Sinking
from tests.simulation.workload.stage import PATIENCE, Actor, Phase, Spec, Stage, is_refusal
from tests.simulation.workload.transacting import Transacting

KINDS: dict[str, type[Actor]] = {
    "producer": Producing,
    "consumer": Consuming,
    "transactions": Transacting,
    "mover": Moving,
    "admin": Administering,
    "sink": Sinking,
    "threads": ProducingInThreads,
    "thread-consumer": ConsumingInThread,
}
"""The actors of a plan, by the kind that its entries have."""


class Running(Protocol):
    """A process that was started."""

    def join(self, timeout: float) -> bool:
        """Waits for its end; whether it has come."""
        ...


class Host(Protocol):
    """Where processes run.

    Attributes:
        bootstrap: where brokers are, which run already. faults: what can be done to all of them.
        round_trip_s: how long an answer is under way at most, where nothing is wrong.
    """

    bootstrap: str
    round_trip_s: float
    faults: Faults

    def start(self, name: str, main: Callable[[], None]) -> Running:
        """Runs `main` as a process of this name, which may have been one before that has ended or was killed."""
        ...


def run(plan: Spec, host: Host, history: History) -> None:
    """Runs a plan, whole, and notes it in `history`. It takes the plan's `duration`, its `settle`, and what reading at
    the end does."""
    stage = Stage(plan, host.bootstrap, history, host.round_trip_s)
    _ended(host.start("setup", _SetUp(stage, {"name": "setup"}).main), "setup", history, PATIENCE)
    running: dict[str, Running] = {}

    def start(name: str) -> None:
        spec = next(spec for spec in plan["actors"] if spec["name"] == name)
        if stage.phase is not Phase.OVER:
            running[name] = host.start(name, KINDS[spec["kind"]](stage, spec).main)

    for spec in plan["actors"]:
        start(spec["name"])
    nemesis = Nemesis(plan["nemesis"], host.faults, stage, start)
    troubling = host.start("nemesis", nemesis.main)
    time.sleep(plan["duration"])
    nemesis.is_over = True
    _ended(troubling, "nemesis", history, PATIENCE)
    history.note("workload", "quiet")
    stage.phase = Phase.SETTLE
    for spec in plan["actors"]:
        if KINDS[spec["kind"]].writes:
            _ended(running[spec["name"]], spec["name"], history, KINDS[spec["kind"]].patience)
    time.sleep(plan["settle"])
    stage.phase = Phase.OVER
    for spec in plan["actors"]:
        _ended(running[spec["name"]], spec["name"], history, KINDS[spec["kind"]].patience)
    # Whatever was only in memory is gone before it is looked at.
    last = Nemesis(plan.get("last", []), host.faults, stage, start)
    _ended(host.start("last", last.main), "last", history, PATIENCE)
    told = [spec.get("consumer", spec) for spec in plan["actors"]]
    named = [spec[name] for spec in told for name in ("group", "offsets_of") if name in spec]
    groups = list(dict.fromkeys(named))
    _ended(
        host.start("final", FinalReading(stage, {"name": "final", "groups": groups}).main),
        "final",
        history,
        10 * PATIENCE,
    )


def _ended(process: Running, name: str, history: History, patience: float) -> None:
    """Waits for a process that has every reason to end."""
    if not process.join(patience):
        text = f"{name} has not ended within {patience} seconds in which nothing went wrong"
        history.note(name, "logged", logger="workload", level="ERROR", message="an actor is stuck", error=text)


class _SetUp(Actor):
    """Creates the topics of the plan."""

    async def live(self) -> None:
        async with AsyncAdmin(self.stage.properties(self.process, 10.0)) as admin:
            for topic in self.stage.topics.values():
                await self._create(admin, topic)
        self.is_done = True

    async def _create(self, admin: AsyncAdmin, topic: Spec) -> None:
        asked = {"topic": topic["name"], "partitions": topic["partitions"], "configs": topic["configs"]}
        new = NewTopic(topic["name"], topic["partitions"], -1, topic["configs"])
        try:
            await self.noted("create_topic", asked, lambda: admin.create_topics([new]), has_no_effect=is_refusal)
        except KafkaError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
