"""What a broker has to refuse it refuses, and what it has said once it still says after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts
from tests.simulation.judge.groups import forgotten


def not_refused(facts: Facts) -> Iterator[Anomaly]:
    """Who does not lead or coordinate says so; older epochs and generations are fenced, whoever asks."""
    for probe in facts.operations.of("probe"):
        value = probe.value
        if probe.type == "ok" and value["answer"] not in value["answers"]:
            what = f"node {value['node']} was asked for {value['api']} of {value['about']}, and said {value['answer']}"
            yield anomaly("not-refused", what, probe)


def remembered(facts: Facts) -> Iterator[Anomaly]:
    """While nobody asks for anything, groups stand where they stood, and transactional ids are whose they were: after
    a restart, and after whatever brokers do by the clock."""
    told = [each for each in facts.operations.of("remembered") if each.type == "ok"]
    for before, after in pairwise(told):
        if facts.clock_jumped or facts.losses:
            return
        yield from _offsets(facts, before, after)
        yield from _owners(before, after)
        yield from _producers(facts, before, after)


def _offsets(facts: Facts, before: Operation, after: Operation) -> Iterator[Anomaly]:
    first, second = ({tuple(row[:3]): row[3] for row in each.value["offsets"]} for each in (before, after))
    # What is pending may be committed meanwhile.
    said = before.value["transactions"]
    if said is None or any(not (row[3] == "Empty" or row[3].startswith("Complete")) for row in said):
        return
    for (group, topic, partition), offset in first.items():
        if forgotten(facts, group, topic):
            continue
        now = second.get((group, topic, partition))
        where = f"{group} stood at {offset} of {topic}-{partition} {before.value['moment']}"
        if now is None:
            yield anomaly("group-offset-lost", f"{where}, and nowhere {after.value['moment']}", before, after)
        elif now != offset:
            yield anomaly("group-offset-back", f"{where}, and at {now} {after.value['moment']}", before, after)


def _owners(before: Operation, after: Operation) -> Iterator[Anomaly]:
    if before.value["transactions"] is None or after.value["transactions"] is None:
        return
    now = {row[0]: row for row in after.value["transactions"]}
    for name, producer_id, epoch, _ in before.value["transactions"]:
        row = now.get(name)
        if row is None or (row[1] == producer_id and row[2] < epoch):
            state = "nobody's" if row is None else f"in epoch {row[2]}"
            what = f"{name} was producer {producer_id}'s in epoch {epoch}, and is {state} {after.value['moment']}"
            yield anomaly("owner-forgotten", what, before, after)


def _producers(facts: Facts, before: Operation, after: Operation) -> Iterator[Anomaly]:
    """A partition whose records nobody deletes knows its producers still, as far as they had come."""
    if before.value.get("producers") is None or after.value.get("producers") is None:
        return
    now = {tuple(row[:3]): (row[3], row[4]) for row in after.value["producers"]}
    deleted = {each.value["topic"] for each in facts.operations.of("delete_records")}
    for topic, partition, producer_id, epoch, sequence in before.value["producers"]:
        has = now.get((topic, partition, producer_id))
        if topic in deleted or (has is not None and (has[0] > epoch or has == (epoch, sequence))):
            continue
        state = "is unknown" if has is None else f"has come to {has[1]} in epoch {has[0]}"
        what = f"{topic}-{partition} had producer {producer_id} at {sequence} in epoch {epoch}, who {state}"
        yield anomaly("producer-forgotten", f"{what} {after.value['moment']}", before, after)
        break
