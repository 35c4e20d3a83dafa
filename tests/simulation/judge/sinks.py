"""The exactly-once sink: every row of its query stands once, for readers of committed records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import CLOCK_JUMPS, Facts, Read

TRIES = 4
"""How often a micro-batch fails before it counts as one that gets nowhere."""


def decided_in_vain(facts: Facts) -> Iterator[Anomaly]:
    """A micro-batch is decided while its transactions are open, and stay so: it is not lost that was begun in time, and
    none is decided that is too old. Nor does a driver tell that for which nobody waits any more."""
    for batch in facts.operations.of("sink_batch", "sink_told"):
        lost = _lost(batch)
        timeout = batch.value.get("transaction_timeout")
        if lost is None or timeout is None or facts.losses or _clock_jumped(facts, batch.ended):
            continue
        attempts = [
            each for each in facts.operations.of("sink_batch")
            if (each.value.get("query"), each.value["batch"]) == lost and each.began <= batch.ended
        ]  # fmt: skip
        decisions = [
            each for each in facts.operations.of("sink_decide")
            if (each.value["query"], each.value["batch"]) == lost and each.began <= batch.ended
        ]  # fmt: skip
        # No transaction of a decision is older than when it was prepared.
        begun = [each.began - each.value["age"] for each in decisions] or [each.began for each in attempts]
        if begun and batch.ended - min(begun) < timeout:
            what = f"batch {lost[1]} of {lost[0]} was decided and is lost, though its transactions had time left"
            yield anomaly("sink-row-lost", what, *attempts, *decisions, batch)
        elif decisions and all(each.value["age"] > timeout / 2 for each in decisions):
            what = f"batch {lost[1]} of {lost[0]} was decided when half of the time of its transactions was over"
            yield anomaly("sink-row-lost", what, *decisions, batch)


def decided_late(facts: Facts) -> Iterator[Anomaly]:
    """A driver commits no micro-batch of which half of its transactions' time was over when it began to decide."""
    batches = facts.operations.of("sink_batch")
    for decision in facts.operations.of("sink_decide"):
        value = decision.value
        of = [
            each for each in batches
            if (each.process, each.value.get("query"), each.value["batch"])
            == (decision.process, value["query"], value["batch"])
        ]  # fmt: skip
        timeouts = [each.value["transaction_timeout"] for each in of if each.value.get("transaction_timeout")]
        if decision.type == "ok" and timeouts and value["age"] > max(timeouts) / 2:
            what = f"batch {value['batch']} of {value['query']} was decided {value['age']:g} s after it was prepared"
            yield anomaly("decided-late", f"{what}, of {max(timeouts):g} s that it may take", decision)


def committed_late(facts: Facts) -> Iterator[Anomaly]:
    """No decision is committed when the transactions that it lists are over their time, however long its driver has
    slept: its own transaction is, before."""
    for decided in facts.operations.of("sink_decided"):
        value = decided.value
        batches = [
            each
            for each in facts.operations.of("sink_batch")
            if (each.value.get("query"), each.value["batch"]) == (value["query"], value["batch"])
        ]
        timeouts = [each.value["transaction_timeout"] for each in batches if each.value.get("transaction_timeout")]
        began = decided.began - value["age"]
        if not timeouts or value["age"] <= max(timeouts) or facts.troubled(began, decided.began):
            continue
        what = f"the decision of batch {value['batch']} of {value['query']} was committed {value['age']:g} s after it"
        yield anomaly("decided-late", f"{what} was prepared, of {max(timeouts):g} s that it may take", decided)


def _clock_jumped(facts: Facts, before: float) -> bool:
    return any(
        fault.began <= before for fault in facts.operations.of("fault") if fault.value.get("fault") in CLOCK_JUMPS
    )


def _lost(batch: Operation) -> tuple[str, int] | None:
    """Query and number of the micro-batch that a driver has told to be lost."""
    error = batch.value.get("error") or {}
    found = re.match(r"micro-batch (\d+) of query (\S+) was decided, but", error.get("message") or "")
    return (found[2], int(found[1])) if found else None


def _is_refused(batch: Operation) -> bool:
    """Whether the broker has gone back to a release that knows no such sink."""
    error = batch.value.get("error") or {}
    return str(error.get("type", "")).endswith("UnsupportedVersionError")


def _is_stuck(batch: Operation) -> bool:
    return batch.type != "ok" and _lost(batch) is None and not _is_refused(batch)


def stalled(facts: Facts) -> Iterator[Anomaly]:
    """Once nothing is wrong any more, the one driver of a query gets a micro-batch through."""
    drivers: dict[str, list[Operation]] = {}
    for batch in facts.operations.of("sink_batch"):
        drivers.setdefault(batch.value.get("query", ""), []).append(batch)
    for query, batches in drivers.items():
        undisturbed = [each for each in batches if not each.value.get("is_disturbed")]
        after = [each for each in undisturbed if facts.quiet is not None and each.began > facts.quiet]
        # Requests that are longer under way than their time is are no driver's fault.
        late = [each for each in after if not facts.was_late(each.process, each.began, each.ended)]
        of_sink = [each for each in facts.operations.of("sink_batch") if each.value["sink"] == batches[0].value["sink"]]
        alone = len({each.process.partition("#")[0] for each in of_sink}) == 1
        if alone and len(late) >= TRIES and all(map(_is_stuck, late)):
            yield anomaly("sink-stalled", f"{query} gets no micro-batch through, though nothing is wrong", *late)


def rows(facts: Facts) -> Iterator[Anomaly]:
    """A row of a micro-batch whose commit returned is there; no row is there twice, also one that was tried again."""
    reads: dict[str, list[Read]] = {}
    for read in facts.finals.values():
        if read.isolation == "read_committed":
            reads.setdefault(read.topic, []).append(read)
    there = {topic: Counter(name for read in of for _, name in read.records) for topic, of in reads.items()}
    told: set[tuple[str, str]] = set()
    for batch in facts.operations.of("sink_batch"):
        topic = batch.value["topic"]
        if topic not in there or facts.losses_of(topic) or facts.topic(topic).deletes:
            continue
        attempts = [
            each for each in facts.operations.of("sink_batch")
            if (each.value["sink"], each.value["batch"]) == (batch.value["sink"], batch.value["batch"])
        ]  # fmt: skip
        for row in batch.value["rows"]:
            count = there[topic][row]
            if count == 1 or (count == 0 and batch.type != "ok") or (topic, row) in told:
                continue
            if count == 0 and _waits(facts, topic, row):
                continue
            told.add((topic, row))
            of = f"{row} of batch {batch.value['batch']} of {batch.value['sink']}"
            places = [(read, offset) for read in reads[topic] for offset, name in read.records if name == row]
            shown = [excerpt(read.operation, *read.place, offset) for read, offset in places]
            if count == 0:
                shown = [excerpt(read.operation, *read.place) for read in reads[topic]]
                yield anomaly("sink-row-lost", f"{of} was committed, and is not in {topic}", *attempts, *shown)
            else:
                yield anomaly("sink-row-twice", f"{of} stands {count} times in {topic}", *attempts, *shown)


def _waits(facts: Facts, topic: str, row: str) -> bool:
    """Whether a row stands behind what is open yet, as a late attempt leaves it until its time is over."""
    for read in facts.finals.values():
        committed = facts.finals.get((*read.place, "read_committed"))
        if read.topic == topic and read.isolation == "read_uncommitted" and committed is not None:
            stable = committed.operation.value["end"]
            if any(name == row and offset >= stable for offset, name in read.records):
                return True
    return False
