"""What all actors of a run share, and what an actor is: one application, with a client that it makes anew when it has
to. Nothing here knows where brokers run: on loopback, or in a simulated world."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from enum import Enum
from random import Random
from typing import Any, TypeVar

from tagwire.errors import Error, KafkaError, TagwireError
from tests.simulation.history import History
from tests.simulation.workload.guards import APPLICATION, login, secret_of

Result = TypeVar("Result")

Spec = dict[str, Any]
"""An entry of a plan: plain data, as JSON has it."""


SET_UP_ROUND_TRIPS = 6
"""Of a new connection to a group's coordinator until its first response: a client that has less time never gets one."""

LOGIN_ROUND_TRIPS = 6
"""Of two connections, more where a client says who it is: the handshake, and both steps of SCRAM."""


class Phase(Enum):
    """LOAD: everybody does what the plan says. SETTLE: there are no more faults, nothing new is written, and members
    catch up. OVER: everybody ends."""

    LOAD = "load"
    SETTLE = "settle"
    OVER = "over"


class Stage:
    """What all actors of a run share.

    Attributes:
        bootstrap: where brokers are. round_trip_s: how long an answer is under way at most.
        spikes_s: what answers that take much longer add to each, on average and with room to spare.
        history: of the run. phase: in which it is.
        topics: the plan's, by name. transactional_ids: of its actors.
        is_forgetful: whether brokers may forget producers.
        session_s: how long a member of KIP-848 may be silent.
        checkpoints: of streaming queries, the last micro-batch that is in them.
        guards: by which mechanism clients say who they are; None where nobody asks.
    """

    def __init__(
        self, plan: Spec, bootstrap: str, history: History, round_trip_s: float = 0.0, spikes_s: float = 0.0
    ) -> None:
        self.bootstrap = bootstrap
        self.round_trip_s = round_trip_s
        self.spikes_s = spikes_s
        self.history = history
        self.phase = Phase.LOAD
        self.topics: dict[str, Spec] = {topic["name"]: dict(topic) for topic in plan["topics"]}
        self.transactional_ids = sorted(
            {actor["transactional_id"] for actor in plan["actors"] if actor.get("transactional_id")}
        )
        faults = {step["kind"] for step in plan["nemesis"]}
        self.is_forgetful = plan["cluster"]["fsync"] != "batch" or "clock" in faults
        self.is_cluster = plan["cluster"]["nodes"] > 1
        self.session_s: float = plan["cluster"]["settings"]["group_session_timeout_s"]
        self.checkpoints: dict[str, int] = {}
        self.guards: Spec | None = plan["cluster"].get("guards")
        self._seed = plan["seed"]
        self._lives: dict[str, int] = {}

    def random(self, process: str) -> Random:
        """What a process draws from: its own, so that an actor less changes no other's draws."""
        return Random(f"{self._seed}/{process}")

    def process(self, name: str) -> str:
        """The name of an actor's next life."""
        self._lives[name] = life = self._lives.get(name, 0) + 1
        return name if life == 1 else f"{name}#{life}"

    def life(self, name: str) -> str:
        """The name of the life that an actor has now."""
        life = self._lives.get(name, 1)
        return name if life == 1 else f"{name}#{life}"

    def properties(self, process: str, request_timeout: float = 4.0, user: str = APPLICATION) -> dict[str, Any]:
        """Of which a client is made. `user`: who it is, where brokers ask."""
        round_trips = SET_UP_ROUND_TRIPS + (LOGIN_ROUND_TRIPS if self.guards is not None else 0)
        named: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": process,
            "request.timeout.ms": int(max(request_timeout, round_trips * self.round_trip_s) * 1000),
        }
        return named if self.guards is None else named | login(self.guards["mechanism"], user, secret_of(user))


PATIENCE = 60.0
"""Seconds within which whoever has nothing more to do ends, once the load is over and nothing goes wrong any more."""


class Actor:
    """One application of the plan. It lives until its work is done or the load is over; an error that ends its client
    begins another life, under another process name. One that is `late` begins so many seconds after the load is over,
    when nothing goes wrong any more.

    Attributes:
        process: the name of this life. random: what it draws from. is_done: whether it has nothing more to do.
    """

    writes = True
    """Whether it ends with the load; others go on until everything is over."""

    patience = PATIENCE
    """Seconds within which it ends, once it has every reason to."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        self.stage = stage
        self.spec = spec
        self.history = stage.history
        self.process = self.name = spec["name"]
        self.random = stage.random(self.process)
        self.is_done = False

    def main(self) -> None:
        """All its lives, in a thread of its own."""
        try:
            asyncio.run(self._lives())
        except Exception as error:
            self.note_unexpected(error)

    async def _lives(self) -> None:
        await self.sleep(self.spec.get("at", 0.0))
        while self.is_loading and self.spec.get("late"):
            await self.sleep(1.0)
        await self.sleep(self.spec.get("late", 0.0))
        while self.goes_on:
            self.process = self.stage.process(self.name)
            self.random = self.stage.random(self.process)
            try:
                await self.live()
            except TagwireError:
                await asyncio.sleep(self.random.uniform(0.1, 1.0))

    @property
    def goes_on(self) -> bool:
        """Whether another life begins."""
        return not self.is_done and (self.is_loading if self.writes else self.stage.phase is not Phase.OVER)

    @abstractmethod
    async def live(self) -> None:
        """One life: makes a client, works, closes it."""

    def note_unexpected(self, error: BaseException) -> None:
        """No application ends like this: whatever the judge thinks, it is a finding."""
        self.note_error("an actor ended", f"{type(error).__name__}: {error}"[:500])

    def note_error(self, message: str, error: str) -> None:
        """What is never right, whatever the judge thinks of the rest."""
        self.history.note(self.process, "logged", logger="workload", level="ERROR", message=message, error=error)

    def note_throttled(self, client_id: str, api: str, most_ms: float | None) -> None:
        """For how long a client was to wait at most, as its metrics have it: None where it was told nothing."""
        self.history.note(self.process, "throttled", client_id=client_id, api=api, most_ms=most_ms or 0.0)

    # Time ----------------------------------------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        return self.stage.phase is Phase.LOAD

    async def sleep(self, seconds: float) -> None:
        """Sleeps, in steps, since the phase may change meanwhile."""
        loop = asyncio.get_running_loop()
        until, phase = loop.time() + seconds, self.stage.phase
        while (left := until - loop.time()) > 0 and self.stage.phase is phase:
            await asyncio.sleep(min(left, 0.5))

    async def breathe(self, pace: float) -> None:
        """A pause between two steps, `pace` seconds on average."""
        await self.sleep(min(self.random.expovariate(1 / pace), 5 * pace) if pace else 0)

    # Calls that are noted ------------------------------------------------------------------------------------------

    async def noted(
        self,
        f: str,
        asked: Spec,
        call: Callable[[], Awaitable[Result]],
        answer: Callable[[Result], Spec] = lambda _: {},
        *,
        has_no_effect: Callable[[TagwireError], bool] = lambda error: False,
    ) -> Result:
        """Makes a call, and notes it and its answer. Raises what it raises.

        Args:
            has_no_effect: whether an error tells for certain that nothing was changed.
        """
        op = self.history.invoke(self.process, f, **asked)
        try:
            result = await call()
        except TagwireError as error:
            (self.history.fail if has_no_effect(error) else self.history.info)(op, error)
            raise
        except (Exception, asyncio.CancelledError) as error:
            self.history.info(op, error)
            raise
        self.history.ok(op, **answer(result))
        return result


def always(error: TagwireError) -> bool:
    """For calls that change nothing anyway."""
    return True


_PERHAPS_DONE = (
    Error.UNKNOWN_SERVER_ERROR,
    Error.REQUEST_TIMED_OUT,
    Error.KAFKA_STORAGE_ERROR,
    Error.NETWORK_EXCEPTION,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


def is_refusal(error: TagwireError) -> bool:
    """For changes that are not tried again after a lost response: whether a broker has said that it was not made."""
    return isinstance(error, KafkaError) and error.error not in _PERHAPS_DONE
