"""Client quotas: they are there once they are acknowledged, nobody takes more than they allow, who had one goes on when
it is gone, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

WINDOW_S: Final = 12.0
"""Over about so long a rate is taken: as much may come at once."""

AGAIN: Final = 2
"""How often a quota is used up at most, by who takes too much at once and waits for longer than it is measured."""

AHEAD: Final = 12_000
"""Bytes that a producer of a plan may have on its way to a node at once, or send it again."""

OVERHEAD: Final = 1.5
"""How much more than its values a request is, at most."""

PRODUCED: Final = "producer_byte_rate"
BEGIN_ANEW: Final = ("broker_killed", "broker_stopped", "broker_started", "power_lost")
"""What ends measuring: it is in memory."""

_Entity = tuple[tuple[str, str], ...]


def kept(facts: Facts) -> Iterator[Anomaly]:
    """A quota is what it was set to last, whatever has become of brokers since; what nobody has set is not there."""
    changes: dict[tuple[_Entity, str], list[Operation]] = {}
    for change in facts.operations.of("alter_quotas"):
        if change.type != "fail":
            for name in change.value["quotas"]:
                changes.setdefault((_entity(change.value["entity"]), name), []).append(change)
    for described in facts.operations.of("describe_quotas"):
        if described.type != "ok":
            continue
        now = {
            (_entity(entity), name): limit
            for entity, quotas in described.value["quotas"]
            for name, limit in quotas.items()
        }
        for entity, name in sorted({*changes, *now}):
            of_it = [each for each in changes.get((entity, name), ()) if each.began <= described.ended]
            made = [each for each in of_it if each.type == "ok" and each.ended <= described.began]
            last = max(made, key=lambda each: each.ended, default=None)
            possible = [
                each.value["quotas"][name]
                for each in of_it
                if each.type == "info" or last is None or each.ended > last.began
            ]
            found = now.get((entity, name))
            if found not in (possible if last is not None else [None, *possible]):
                was = "was set by nobody" if last is None else f"was set to {last.value['quotas'][name]}"
                what = f"{name} of {_told(entity)} {was}, and is {found}"
                yield anomaly("quota-lost", what, *([] if last is None else [last]), described)


@dataclass(frozen=True)
class _InForce:
    """A client's quota, and from when until when it counted for certain and was measured without a break."""

    client_id: str
    bound: float
    began: float
    ended: float
    shown: Operation


def exceeded(facts: Facts) -> Iterator[Anomaly]:
    """Who has a quota takes no more than it allows, but for as much at once as about ten seconds of it, and again when
    it has taken nothing for as long: by then all that it took before is forgotten, as in Kafka."""
    nodes = max(len({each.value.get("leader") for each in facts.operations.of("partition_state")}), 1)
    written: dict[str, list[Operation]] = {}
    for send in facts.operations.of("send"):
        if send.type == "ok" and send.value.get("client_id"):
            written.setdefault(send.value["client_id"], []).append(send)
    for one in _in_force(facts):
        own = [each for each in written.get(one.client_id, ()) if each.began >= one.began and each.ended <= one.ended]
        if not own:
            continue
        until = max(each.ended for each in own)
        allowed = nodes * (one.bound * (AGAIN * (until - one.began) + WINDOW_S) + AHEAD)
        total = sum(each.value["bytes"] for each in own)
        if total > allowed:
            what = f"{one.client_id} may write {one.bound:g} bytes a second, and wrote {total}"
            yield anomaly("quota-exceeded", f"{what} in {until - one.began:.1f} s", one.shown, own[-1])
    for took in facts.operations.of("took"):
        value = took.value
        if took.type != "ok" or value["bound"] is None or value["lifted"] is not None:
            continue
        least = ((value["bytes"] - value["ahead"]) / value["bound"] - WINDOW_S) / AGAIN
        if took.ended - took.began < least:
            what = f"{value['client_id']} has a {value['quota']} of {value['bound']:g}, and took {value['bytes']} bytes"
            yield anomaly("quota-exceeded", f"{what} in {took.ended - took.began:.1f} s", took)


def goes_on(facts: Facts) -> Iterator[Anomaly]:
    """Who has a quota takes as much as it allows, and goes on soon when it is lifted; who has none is not slow."""
    for took in facts.operations.of("took"):
        value, bound = took.value, took.value["bound"]
        most: float = value["slack"]
        if value["lifted"] is not None:
            most += value["lifted"] + 2 * value["ahead"] / bound
        elif bound is not None:
            most += OVERHEAD * value["bytes"] / bound + WINDOW_S
        seconds = took.ended - took.began
        if seconds > most or took.type != "ok":
            state = "had a quota once" if value["lifted"] is not None else f"has a {value['quota']} of {bound}"
            told = f"took {seconds:.1f} s" if took.type == "ok" else "could not"
            what = f"{value['client_id']} {state}, and {told} for {value['bytes']} bytes"
            yield anomaly("held-by-quota", f"{what}; {most:.1f} s are enough", took)


def throttled_for_nothing(facts: Facts) -> Iterator[Anomaly]:
    """Nobody is throttled who has no quota."""
    for event in facts.history:
        if event.f != "throttled" or event.value["most_ms"] <= 0:
            continue
        client_id = event.value["client_id"]
        if not any(
            change.type != "fail" and change.began <= event.at and _may_be_of(change.value["entity"], client_id)
            for change in facts.operations.of("alter_quotas")
        ):
            what = f"{client_id} has no quota, and was to wait {event.value['most_ms']:g} ms after {event.value['api']}"
            yield anomaly("throttled-for-nothing", what, event)


def _in_force(facts: Facts) -> Iterator[_InForce]:
    """Quotas of single clients, as long as each is certain: an unanswered change may come into force at any time."""
    breaks = sorted(
        event.at
        for event in facts.history
        if event.f in BEGIN_ANEW or (event.f in ("fault", "heal") and str(event.value.get("fault")).startswith("node_"))
    )
    changes: dict[str, list[Operation]] = {}
    for change in facts.operations.of("alter_quotas"):
        entity = _entity(change.value["entity"])
        if (
            change.type != "fail"
            and len(entity) == 1
            and entity[0][0] == "client-id"
            and PRODUCED in change.value["quotas"]
        ):
            changes.setdefault(entity[0][1], []).append(change)
    for client_id, of_it in changes.items():
        for number, change in enumerate(of_it):
            if change.type != "ok":
                break
            bound = change.value["quotas"][PRODUCED]
            if bound is None:
                continue
            until = of_it[number + 1].began if number + 1 < len(of_it) else facts.end
            moments = [change.ended, *(at for at in breaks if change.ended < at < until), until]
            for began, ended in pairwise(moments):
                yield _InForce(client_id, bound, began, ended, change)


def _may_be_of(entity: list[list[str]], client_id: str) -> bool:
    return all(name in ("", client_id) for kind, name in entity if kind == "client-id")


def _entity(told: list[list[str]]) -> _Entity:
    return tuple((kind, name) for kind, name in told)


def _told(entity: _Entity) -> str:
    return ", ".join(f"{kind} {name or 'of anybody'}" for kind, name in entity)
