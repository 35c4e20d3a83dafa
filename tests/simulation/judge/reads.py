"""What one reader is given: each record once, in order, none left out, as long as it keeps the partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import Facts, Place, Read


@dataclass
class Standing:
    """Where a reader is in a partition: the last offset it was given, and by which read."""

    offset: int
    read: Read


@dataclass(frozen=True)
class Step:
    """A read after another one of the same holding, which may have ended by what came between."""

    before: Standing | None
    read: Read
    assigned: Event | None
    """What gave the partition, or sought in it, where this is the first read since."""


def steps(facts: Facts) -> Iterator[Step]:
    """Each read of a poll, with the one before it of the same process and partition, if it still holds that."""
    standing: dict[tuple[str, Place], Standing] = {}
    given: dict[tuple[str, Place], Event] = {}
    kept: set[tuple[str, Place]] = set()
    polled: dict[int, list[Read]] = {}
    for read in facts.reads:
        if not read.final:
            polled.setdefault(read.operation.completed.index, []).append(read)
    for event in facts.history:
        if event.f in ("assign", "revoke", "lost") and event.type != "invoke":
            for topic, partition in event.value["partitions"]:
                place = event.process, (topic, partition)
                if event.f == "assign" and event.value.get("member"):
                    if place in kept:  # what a member has already is no new holding
                        continue
                    kept.add(place)
                else:
                    kept.discard(place)
                standing.pop(place, None)
                given[place] = event
        elif event.f == "close":
            kept = {place for place in kept if place[0] != event.process}
        elif event.f == "seek":
            value = event.value if event.type == "invoke" else facts.history.events[event.call].value
            place = event.process, (value["topic"], value["partition"])
            standing.pop(place, None)
            given[place] = event
        for read in polled.get(event.index, ()):
            place = read.operation.process, read.place
            yield Step(standing.get(place), read, given.pop(place, None))
            if read.records:
                standing[place] = Standing(read.records[-1][0], read)


def polls(facts: Facts) -> Iterator[Anomaly]:
    """poll-skip and nonmonotonic-poll between polls, int-poll-skip and int-nonmonotonic-poll within one."""
    for step in steps(facts):
        read = step.read
        if step.before is not None and read.records and not _may_start_over(facts, read):
            yield from _between(facts, step.before, read)
        for (offset, name), (after, later) in zip(read.records, read.records[1:]):
            where = f"{read.topic}-{read.partition}"
            if after <= offset and not _is_of_the_next_log(facts, read, name, later):
                shown = excerpt(read.operation, *read.place, offset, after)
                what = f"one poll gave {where}@{offset} ({name}) and then @{after} ({later})"
                yield anomaly("int-nonmonotonic-poll", what, shown)
            elif after > offset and (skipped := left_out(facts, read, offset + 1, after)):
                shown = excerpt(read.operation, *read.place, offset, after)
                what = f"one poll gave {where}@{offset} and then @{after}, and {skipped[0]} at @{skipped[1]} is between"
                yield anomaly("int-poll-skip", what, shown, skipped[2])


def _between(facts: Facts, before: Standing, read: Read) -> Iterator[Anomaly]:
    first = read.records[0][0]
    skipped = left_out(facts, read, before.offset + 1, first)
    if first > before.offset and not skipped:
        return
    where = f"{read.topic}-{read.partition}"
    shown = [excerpt(each.operation, *read.place, at) for each, at in ((before.read, before.offset), (read, first))]
    if not skipped:
        what = f"{read.operation.process} was given {where}@{before.offset}, and then @{first}"
        yield anomaly("nonmonotonic-poll", what, *shown)
    else:
        past = f"past {skipped[0]} at @{skipped[1]}"
        what = f"{read.operation.process} went from {where}@{before.offset} to @{first}, {past}"
        yield anomaly("poll-skip", what, *shown, skipped[2])


def _may_start_over(facts: Facts, read: Read) -> bool:
    """Whether the position may have been out of range, so that the reset decided: of a log cut off, or made anew."""
    return bool(facts.losses_of(*read.place) or facts.topic(read.topic).deletes)


def _is_of_the_next_log(facts: Facts, read: Read, name: str, later: str) -> bool:
    """Whether the log may have been made anew, or cut off, after one record and before the other was written.

    What was fetched before is given all the same, as by Kafka's consumers, and what the reset comes to right behind it.
    """
    before, after = facts.sends.get(name), facts.sends.get(later)
    if before is None or after is None:
        return False
    # With acks=0 nobody hears when a record was written, nor where a send has failed.
    is_known = after.type == "ok" and str(after.value["acks"]) != "0"
    written = after.ended if is_known else float("inf")
    changes = [(delete.began, delete.ended) for delete in facts.topic(read.topic).deletes]
    changes += [(loss.at, loss.at) for loss in facts.losses_of(*read.place)]
    return any(before.began <= ended and began <= written and began <= read.operation.ended for began, ended in changes)


def left_out(facts: Facts, read: Read, start: int, end: int) -> tuple[str, int, list[Event] | Operation] | None:
    """A record in [start, end) that a reader of this isolation had to be given: name, offset, and what shows it.

    What a whole read in the end still has, under the same isolation, was there all the time.
    """
    if start >= end or facts.losses_of(*read.place):
        return None
    if facts.start_may_move(*read.place) and "earliest" not in _reset(facts, read):
        return None
    final = facts.finals.get((*read.place, read.isolation))
    if final is None or (final.incarnation != read.incarnation):
        return None
    for offset, name in final.records:
        if start <= offset < end:
            return name, offset, excerpt(final.operation, *read.place, offset)
    return None


def _reset(facts: Facts, read: Read) -> set[str]:
    return {
        subscribe.value.get("reset") or "earliest"
        for subscribe in facts.operations.of("subscribe")
        if subscribe.process == read.operation.process
    } or {"earliest"}


def sought(facts: Facts) -> Iterator[Anomaly]:
    """After a seek a reader goes on there: it is given nothing from before, and leaves nothing out."""
    for step in steps(facts):
        seek, read = step.assigned, step.read
        if seek is None or seek.f != "seek" or seek.type != "ok" or not read.records or _may_start_over(facts, read):
            continue
        asked = facts.history.events[seek.call]
        offset = 0 if asked.value["offset"] == "earliest" else asked.value["offset"]
        if not isinstance(offset, int):
            continue
        first = read.records[0][0]
        shown = [asked, seek, excerpt(read.operation, *read.place, first)]
        where = f"{read.operation.process} sought {read.topic}-{read.partition}@{offset}, and was given @{first}"
        if first < offset:
            yield anomaly("seek-ignored", where, *shown)
        elif skipped := left_out(facts, read, offset, first):
            yield anomaly("seek-ignored", f"{where}, past {skipped[0]} at @{skipped[1]}", *shown, skipped[2])
        elif _is_before_the_end(facts, read, asked, offset):
            what = f"{where}, which was there before: @{offset} was gone, and auto.offset.reset is latest"
            yield anomaly("seek-ignored", what, *shown)


def _is_before_the_end(facts: Facts, read: Read, asked: Event, offset: int) -> bool:
    """Whether a reader that goes on at the end, where its position is gone, was given what was there before it sought
    a position that was gone by then. Who seeks to the earliest record is told which that is."""
    if asked.value["offset"] == "earliest" or _reset(facts, read) != {"latest"}:
        return False
    first = facts.sends.get(read.records[0][1])
    # For readers of committed records the end is before what is open.
    if first is None or first.type != "ok" or first.ended >= asked.at or first.value.get("transaction") is not None:
        return False
    return any(
        (sample.invoked.value["topic"], sample.invoked.value["partition"]) == read.place
        and sample.began < asked.at
        and sample.invoked.value.get("log_start", 0) > offset
        for sample in facts.operations.of("partition_state")
    )


def paused(facts: Facts) -> Iterator[Anomaly]:
    """Nothing is given of a partition that is paused, as long as its reader keeps it."""
    since: dict[tuple[str, Place], Event] = {}
    polled: dict[int, list[Read]] = {}
    for read in facts.reads:
        if not read.final:
            polled.setdefault(read.operation.completed.index, []).append(read)
    for event in facts.history:
        if event.f in ("pause", "resume", "assign", "revoke", "lost") and event.type != "invoke":
            for topic, partition in event.value["partitions"]:
                since.pop((event.process, (topic, partition)), None)
                if event.f == "pause":
                    since[event.process, (topic, partition)] = event
        elif event.f in ("close", "subscribe"):
            since = {place: begun for place, begun in since.items() if place[0] != event.process}
        for read in polled.get(event.index, ()):
            begun = since.get((read.operation.process, read.place))
            if begun is not None and read.records:
                first = read.records[0][0]
                what = f"{read.operation.process} was given {read.topic}-{read.partition}@{first}, which it had paused"
                yield anomaly("paused-read", what, begun, excerpt(read.operation, *read.place, first))


def revoked(facts: Facts) -> Iterator[Anomaly]:
    """A member is given nothing of a partition that was taken away from it."""
    for step in steps(facts):
        taken, read = step.assigned, step.read
        if (
            taken is not None
            and taken.f in ("revoke", "lost")
            and read.records
            and taken.value.get("group") is not None
        ):
            first = read.records[0][0]
            where = f"{read.topic}-{read.partition}@{first}"
            what = f"{read.operation.process} was given {where}, which was not its own any more"
            yield anomaly("revoked-read", what, taken, excerpt(read.operation, *read.place, first))
