"""Members stay while they do what members do, and leave behind what they have come to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tests.simulation.history import Event
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import Facts, Place, Read
from tests.simulation.judge.groups import Holding, forgotten, holdings
from tests.simulation.judge.liveness import NOT_COMMITTED
from tests.simulation.judge.progress import wanted_by
from tests.simulation.judge.reads import left_out

AWAKE_S: Final = 4.0
"""Between two polls of a member that is there."""

Held = tuple[str, Place]
"""A group and a partition."""


def lost(facts: Facts) -> Iterator[Anomaly]:
    """Once nothing is wrong any more, no member that polls loses its partitions."""
    if facts.quiet is None:
        return
    calm = facts.quiet + facts.bounds.undisturbed
    intervals = {each.process: each.value.get("max_poll_interval") for each in facts.operations.of("subscribe")}
    closes = [each.began for each in facts.operations.of("close") if each.began > facts.quiet]
    until = min(closes, default=float("inf"))
    for event in facts.history:
        interval = intervals.get(event.process)
        if event.f != "lost" or not calm < event.at < until or interval is None or not event.value["partitions"]:
            continue
        polls = [each for each in facts.operations.of("poll") if each.process == event.process]
        awake = [each.ended for each in polls if event.at - 2 * interval <= each.ended < event.at]
        if not awake or any(after - before > interval / 2 for before, after in pairwise([*awake, event.at])):
            continue
        if awake[0] > event.at - interval or facts.was_late(event.process, calm - facts.bounds.undisturbed, event.at):
            continue
        what = f"{event.process} polls, nothing is wrong, and it has lost what it had"
        yield anomaly("lost-for-nothing", what, event)


def given_again(facts: Facts) -> Iterator[Anomaly]:
    """What a member with automatic commits was given is committed before its partitions go, and when it leaves: the
    next one begins behind it."""
    groups = _automatic(facts)
    polled: dict[int, list[Read]] = {}
    for read in facts.reads:
        if not read.final:
            polled.setdefault(read.operation.completed.index, []).append(read)
    standing: dict[tuple[str, Place], Read] = {}
    left: dict[Held, tuple[Read, Event]] = {}
    begun: dict[tuple[str, Place], tuple[Read, Event, Event]] = {}
    holders: dict[Held, set[str]] = {}
    for event in facts.history:
        group = groups.get(event.process)
        if group is None:
            continue
        if event.f in ("assign", "revoke", "lost") and event.type != "invoke":
            for topic, partition in event.value["partitions"]:
                at: Held = (group, (topic, partition))
                own = event.process, at[1]
                held = holders.setdefault(at, set())
                before, gave = standing.pop(own, None), left.pop(at, None)
                begun.pop(own, None)
                if event.f == "assign":
                    if gave is not None and not held:
                        begun[own] = *gave, event
                    held.add(event.process)
                    continue
                held.discard(event.process)
                if event.f == "revoke" and before is not None and not held and _is_calm(facts, event):
                    left[at] = before, event
        elif event.f == "seek":
            asked = event.value if event.type == "invoke" else facts.history.events[event.call].value
            own = event.process, (asked["topic"], asked["partition"])
            standing.pop(own, None)
            begun.pop(own, None)
        for read in polled.get(event.index, ()):
            own = read.operation.process, read.place
            if not read.records:
                continue
            if (story := begun.pop(own, None)) is not None:
                yield from _compared(facts, group, *story, read)
            standing[own] = read


def _automatic(facts: Facts) -> dict[str, str]:
    """The groups of processes in groups whose members all commit by themselves, and whose offsets nobody else moves."""
    members = [each for each in facts.operations.of("subscribe") if each.value.get("group") is not None]
    moved = facts.operations.of("alter_group_offsets", "delete_group_offsets", "delete_group")
    others = {each.value["group"] for each in moved}
    others |= {each.value["group"] for each in members if not each.value.get("auto_commit")}
    return {each.process: each.value["group"] for each in members if each.value["group"] not in others}


def _is_calm(facts: Facts, event: Event) -> bool:
    """Whether nothing has kept a member from committing before an event."""
    since = event.at - facts.bounds.undisturbed
    if facts.troubled(since, event.at) or facts.was_late(event.process, since, event.at):
        return False
    return not any(
        each.f == "logged" and since <= each.at <= event.at and NOT_COMMITTED in str(each.value.get("message"))
        for each in facts.history
    )


def _compared(facts: Facts, group: str, before: Read, gone: Event, assigned: Event, read: Read) -> Iterator[Anomaly]:
    last, first = before.records[-1][0], read.records[0][0]
    if first > last or forgotten(facts, group, read.topic) or facts.losses_of(*read.place):
        return
    where = f"{read.topic}-{read.partition}"
    what = f"{before.operation.process} was given {where}@{last} and gave it up, and {read.operation.process} began at"
    what += f" @{first}"
    shown = [excerpt(before.operation, *read.place, last), gone, assigned, excerpt(read.operation, *read.place, first)]
    yield anomaly("given-again", what, *shown)


def committed_unread(facts: Facts) -> Iterator[Anomaly]:
    """Members commit where they stand: that is behind what they were given, and before what they were not, though it
    may be fetched, or gathered by a call that has not returned."""
    polled: dict[int, list[Read]] = {}
    for read in facts.reads:
        if not read.final:
            polled.setdefault(read.operation.completed.index, []).append(read)
    standing: dict[tuple[str, Place], Read] = {}
    for event in facts.history:
        if event.f in ("assign", "revoke", "lost") and event.type != "invoke":
            for topic, partition in event.value["partitions"]:
                standing.pop((event.process, (topic, partition)), None)
        elif event.f == "seek":
            asked = event.value if event.type == "invoke" else facts.history.events[event.call].value
            standing.pop((event.process, (asked["topic"], asked["partition"])), None)
        elif event.f in ("close", "subscribe") and event.type != "invoke":
            standing = {own: read for own, read in standing.items() if own[0] != event.process}
        elif event.f == "commit" and event.type == "invoke":
            for topic, partition, offset in event.value.get("offsets") or ():
                before = standing.get((event.process, (topic, partition)))
                if before is None or facts.topic(topic).deletes:
                    continue
                last = before.records[-1][0]
                if (passed := left_out(facts, before, last + 1, offset)) is not None:
                    where = f"{topic}-{partition}"
                    what = f"{event.process} was given {where}@{last}, and committed @{offset}"
                    what += f", past {passed[0]} at @{passed[1]}"
                    shown = excerpt(before.operation, topic, partition, last)
                    yield anomaly("group-skip", what, shown, event, passed[2])
                    return
        for read in polled.get(event.index, ()):
            if read.records:
                standing[read.operation.process, read.place] = read


def taken_over(facts: Facts) -> Iterator[Anomaly]:
    """Where nothing is wrong, what a member had is another's soon, as long as anybody of the group is there."""
    polls: dict[tuple[str, str], list[float]] = {}
    for poll in facts.operations.of("poll"):
        if (group := poll.value.get("group")) is not None:
            polls.setdefault((group, poll.process), []).append(poll.ended)
    by_place: dict[Held, list[Holding]] = {}
    for holding in holdings(facts):
        by_place.setdefault((holding.group, holding.place), []).append(holding)
    wanted = wanted_by(facts.operations.of("subscribe"), {topic for _, (topic, _) in by_place})
    gone = {group: _gone_unserved(facts, group) for group, _ in by_place}
    for (group, (topic, partition)), held in by_place.items():
        if facts.topic(topic).deletes:
            continue
        for before, after in pairwise([*sorted(held, key=lambda each: each.ended), None]):
            assert before is not None
            since = before.ended
            later = [each.given.at for each in held if each.ended > since or each is after]
            until = min(later, default=facts.end)
            if until - since <= facts.bounds.takeover or facts.troubled(since - facts.bounds.undisturbed, until):
                continue
            held_up = since
            for at in gone[group]:
                if held_up < at <= held_up + facts.bounds.takeover:
                    held_up = at
            present = [
                (process, *span)
                for (name, process), ended in polls.items()
                if name == group and topic in wanted.get(process, ())
                for span in _stays(facts, group, process, held_up, until)
                if _polls(ended, *span)
            ]
            if not present or any(facts.was_late(*of) for of in present):
                continue
            where, waited = f"{topic}-{partition}", f"{facts.bounds.takeover:g} s"
            what = f"{where} is nobody's of {group} for {waited}, and {present[0][0]} polls"
            yield anomaly("unowned", what, before.given)


def _gone_unserved(facts: Facts, group: str) -> list[float]:
    """When static members went that had nothing yet. Nobody is told, and a rebalance that is under way waits for one,
    as for what it assigns where it leads, until its session is over or it is there again."""
    joins = [each for each in facts.operations.of("subscribe") if each.value.get("group") == group]
    static = {each.process for each in joins if each.value.get("instance_id")}
    held = [each for each in holdings(facts) if each.group == group]
    return [
        close.began for close in facts.operations.of("close")
        if close.process in static and close.value.get("group") == group
        and not any(each.process == close.process and each.given.at < close.began <= each.ended for each in held)
    ]  # fmt: skip


def _stays(facts: Facts, group: str, process: str, since: float, until: float) -> Iterator[tuple[float, float]]:
    """The times between two moments in which a member that is there takes over: in none does it leave or join anew."""
    renewed = [
        each.ended for each in facts.operations.of("subscribe", "close")
        if each.process == process and each.value.get("group") == group and since < each.ended < until
    ]  # fmt: skip
    for began, over in pairwise([since, *sorted(renewed), until]):
        if over - began >= facts.bounds.takeover:
            yield began, began + facts.bounds.takeover


def _polls(ended: list[float], since: float, until: float) -> bool:
    """Whether somebody polls all the time between two moments."""
    times = [at for at in ended if since <= at <= until + AWAKE_S]
    return (
        bool(times)
        and times[-1] >= until
        and all(after - before <= AWAKE_S for before, after in pairwise([since, *times]))
    )
