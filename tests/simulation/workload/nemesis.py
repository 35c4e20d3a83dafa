"""What goes wrong in a run, and when: steps of a plan, done to whatever world there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulation.workload.stage import Spec, Stage

End = Callable[[], None]
"""Ends a fault: lets what was stopped go on, or starts it again."""


TRIES = 30
"""How often it is tried to end a fault."""


_TOLD_AS = {"client_kill": "client_killed", "client_pause": "client_paused", "clock": "clock_jump"}
"""How histories call what befalls clients and clocks."""


class Faults(Protocol):
    """What a world can do to brokers, clients, network and disk."""

    def begin(self, kind: str, **detail: Any) -> End | None:
        """Does what a step says. It may take time. Gives what ends it, or None where nothing is to be ended.

        Kinds, and what they take:
            broker_kill, broker_power (steps: how many switch points later; upon: counted from the next operation of
                its disk of this kind on, if one comes soon; part: of a file or directory with this in its path;
                spares: of broker_power, what of all that is not synced is left, as `world.disk_contents` says it; else
                the seed draws that for each file), broker_stop (release: as which it is
                started again, at the end), broker_pause: the broker's process. With fsync=batch none of them loses
                what was acknowledged.
            lag (topic, partitions): what brokers tell of a topic is of when it had so many partitions, or none.
            client_kill, client_pause (target: an actor): begins another life at the end.
            partition (a, b: processes, "broker" among them; one_way), cut (a; told: both, client, server, nobody),
            half_open (a; to), slow (a, latency, bandwidth; one_way, of what `a` sends), lossy (a, chance), refuse ():
                the network.
            disk_error (operation, count, after, part, errno), disk_full (capacity), disk_slow (latency, chance,
                part): the disk.
            clock (target, offset, stays): a wall clock that jumps, and back at the end unless it stays.
            hurry (patience): drivers of sinks wait for a step no longer than so many seconds.
            node_stop, node_kill, node_isolate (node; fenced), move_leader (topic, partition, node), move_coordinator
                (node; group or transactional_id): of a cluster.
        """
        ...


@dataclass(frozen=True)
class _Lasting:
    """A fault that lasts `until`, by the clock. told: as the history has it. tries: how often it could not be ended."""

    until: float
    told: dict[str, Any]
    end: End
    tries: int = 0


class Nemesis:
    """Carries out the steps of a plan: each `{"at": seconds, "kind": ..., "seconds": how long, ...}`.

    Attributes:
        is_over: set by whoever has it end every fault now.
    """

    def __init__(self, steps: list[Spec], faults: Faults, stage: Stage, restart: Callable[[str], None]) -> None:
        self._steps = sorted(steps, key=lambda step: step["at"])
        self._faults = faults
        self._stage = stage
        self._history = stage.history
        self._restart = restart
        self._open: list[_Lasting] = []
        self._has_hurt_disk = False
        self.is_over = False

    def main(self) -> None:
        """All steps, in a thread of its own; what still lasts at the end is ended. Logs that went offline since the
        disk refused come back with a restart."""
        began = time.monotonic()
        for step in self._steps:
            self._until(began + step["at"])
            if self.is_over:
                break
            self._begin(step)
        while self._open and not self.is_over:
            self._until(min(lasting.until for lasting in self._open))
        self._heal()
        if self._has_hurt_disk:
            self._begin({"kind": "broker_stop"})
            self._heal()

    def ease(self) -> None:
        """Has the disk as fast as ever, at once, whatever the nemesis does meanwhile: where it stops a broker in good
        order, on a disk that it has made slow itself, it would end that only after all that the broker writes then.
        """
        for lasting in [each for each in self._open if each.told["fault"] == "disk_slow"]:
            try:
                self._open.remove(lasting)
            except ValueError:  # the nemesis itself ends it now
                continue
            self._end(lasting)

    def _heal(self) -> None:
        """Ends whatever lasts."""
        while self._open:
            self._end(self._open.pop(0))
            time.sleep(0.1)

    def _until(self, moment: float) -> None:
        """Sleeps until then, and ends what is due meanwhile."""
        while not self.is_over:
            self._open.sort(key=lambda lasting: lasting.until)
            next_end = self._open[0].until if self._open else moment
            if (now := time.monotonic()) >= min(moment, next_end):
                if next_end <= now and self._open:
                    self._end(self._open.pop(0))
                    continue
                return
            time.sleep(min(min(moment, next_end) - now, 0.5))

    def _begin(self, step: Spec) -> None:
        kind, seconds = step["kind"], step.get("seconds", 0.0)
        detail = {name: value for name, value in step.items() if name not in ("at", "kind", "seconds")}
        told = {"fault": _TOLD_AS.get(kind, kind), "target": self._target(detail), "detail": detail}
        self._has_hurt_disk |= kind.startswith("disk_")
        self._history.note("nemesis", "fault", seconds=seconds, **told)
        end = self._faults.begin(kind, **detail)
        if end is not None:
            self._open.append(_Lasting(time.monotonic() + seconds, told, lambda: self._end_of(kind, detail, end)))

    def _end_of(self, kind: str, detail: Spec, end: End) -> None:
        end()
        if kind == "client_kill":
            self._restart(detail["target"])

    def _target(self, detail: Spec) -> Any:
        """Who it befalls: a process, by the name of the life that it has now; what is between two; or nobody's."""
        if "a" in detail:
            return [self._stage.life(detail[end]) for end in ("a", "b") if end in detail]
        return self._stage.life(detail["target"]) if "target" in detail else detail.get("node")

    def _end(self, lasting: _Lasting) -> None:
        """Ends a fault; what cannot be ended yet, as a broker does not start on a disk that refuses, is ended later."""
        try:
            lasting.end()
        except Exception as error:
            if lasting.tries == TRIES:
                raise
            self._history.note("nemesis", "logged", logger="workload", level="INFO", message="later", error=str(error))
            self._open.append(_Lasting(time.monotonic() + 1.0, lasting.told, lasting.end, lasting.tries + 1))
            return
        self._history.note("nemesis", "heal", **lasting.told)
