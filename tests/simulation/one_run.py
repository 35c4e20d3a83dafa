"""The run of one plan, from the beginning of its world to the verdict."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .history import Event, History
from .outcome import Found, Outcome, Plan
from .world.errors import WorldError

if TYPE_CHECKING:
    from .protocol import Protocol
    from .world.sockets import StreamSocket
    from .world.world import World

SAMPLES: Final = ("partition_state", "resources")


def prepare() -> None:
    """Replaces the standard library, then imports everything that a run needs."""
    from .world.installed import install

    install()
    from tagwire.kernel.checksum import checksum

    from . import disk_auditing, judge, late_ends, observing, planted, protocol, simulated_host, workload  # noqa: F401
    from .taken_commits import taken_commits_noted  # noqa: F401
    from .world import world  # noqa: F401

    with suppress(ImportError):
        import pandas  # noqa: F401 - pyarrow imports it when it first converts values, for a second in each run
    checksum(b"")  # what it is made with is looked for when it is first used


def carry_out(seed: int | None, plan: Plan | None, plants: list[str], history: bool, trace: bool) -> Outcome:
    """The outcome of a plan, or of a seed's.

    Args:
        plants: the defects it runs with, by name.
        history, trace: whether lines of them are wanted.
    """
    from . import workload
    from .planted import defect, planted

    if plan is None:
        assert seed is not None
        plan = workload.plan(seed)
    with ExitStack() as stack:
        stack.enter_context(planted([defect(name) for name in plants]))
        return _run(plan, history, trace)


def _run(plan: Plan, wants_history: bool, wants_trace: bool) -> Outcome:
    from tagwire.broker.storage.log_lock import unguarded

    from . import workload
    from .judge import judge
    from .late_ends import late_ends_noted
    from .observing import Observer
    from .protocol import Protocol
    from .simulated_host import SimulatedHost
    from .taken_commits import taken_commits_noted
    from .world.world import World

    lines: list[str] = []
    world = World(f"{plan['seed']}/{plan.get('salt', 0)}", _deeds_into(lines) if wants_trace else None)

    world.scheduler.gives_way = plan.get("gives_way", 0.0)
    world.network.conditions = replace(world.network.conditions, **plan.get("network", {}))

    def tell(text: str) -> None:
        lines.append(f"{world.now:.9f} {text}")

    history = _ToldHistory(lambda: world.now, tell if wants_trace else None)
    if wants_trace:
        protocol = Protocol(tell)
        world.network.tap = lambda sender, data: _tapped(protocol, sender, data)

    def main() -> None:
        host = SimulatedHost(world, plan, history)
        observer = Observer(world, host, history)
        host.start_broker()
        observer.begin()
        workload.run(plan, host, history)
        observer.end()

    found: list[Found] = []
    try:
        with late_ends_noted(world.network, history), taken_commits_noted(history):
            world.run(main)
    except WorldError as error:
        found.append(Found(type(error).__name__.lower(), str(error)))
    found += [Found("unguarded-access", access) for access in unguarded]
    found += [Found("leak", told) for told in world.leaks]
    found += [Found("uncaught-error", told) for told in world.errors]
    judged = judge(history, late=world.network.late)
    found += [Found(each.name, each.what, [event.line() for event in each.events]) for each in judged]
    return Outcome(
        plan,
        world.now,
        _digest(world, history),
        found,
        history=list(history.lines()) if wants_history else None,
        trace=lines if wants_trace else None,
        counts=dict(Counter(event.f for event in history if event.type == "invoke")),
    )


class _ToldHistory(History):
    """One whose events are told as they are noted."""

    def __init__(self, now: Callable[[], float], tell: Callable[[str], None] | None) -> None:
        super().__init__(now)
        self._tell = tell

    def _add(self, *args: Any) -> Event:
        event = super()._add(*args)
        if self._tell is not None and event.f not in SAMPLES:
            self._tell(f"= {str(event).split('s  ', 1)[1]}")
        return event


def _deeds_into(lines: list[str]) -> Callable[[str], None]:
    """Takes of a world's trace what becomes of processes and the network; whose turn it was, and each operation of a
    disk, is left out."""

    def take(line: str) -> None:
        if " * " in line and " disk: " not in line:
            lines.append(line)

    return take


def _tapped(protocol: Protocol, sender: StreamSocket, data: bytes) -> None:
    assert sender.peer is not None
    assert sender.local is not None
    assert sender.remote is not None
    protocol.sent(sender.host.name, sender.peer.host.name, (sender.local, sender.remote), data)


def _digest(world: World, history: History) -> str:
    """Of everything: whose turn it was, what was done, what was sent to the byte, what was said."""
    told = hashlib.sha256(world.digest().encode())
    for line in history.lines():
        told.update(line.encode())
    return told.hexdigest()
