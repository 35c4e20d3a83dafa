"""Memory, tasks, threads and descriptors: what a run has taken is given back when its clients have closed.

Of a broker's memory that is what it would find on the disk: whatever it has when everybody is gone, and would not have
after a restart, was of somebody who is gone. So is what it counts: room that is taken by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts
from tests.simulation.judge.transactions import timeout_asked

ALLOWED = {"tasks": 0, "threads": 0, "descriptors": 0}
MEMORY = 32 << 20
"""Bytes more at the end than at the beginning: what caches and the interpreter itself take."""

BOUNDED = (
    "RequestLog._latest",  # for who looks at the broker: so many at most
    "RequestLog._totals",
    "FetchSessions._sessions",  # until another one takes the place of one that nobody uses: so many at most
    "FetchSession.partitions",
    "Meters._meters",  # of clients that have, or had, a quota: so many at most
    "Rate._samples",
    "AclIndex._of_any",  # until an ACL comes or goes: so many at most
    "ScramUsers._made",  # of the users that the settings name, when they first come in
    "ScramUsers._shapes",
    "PartitionLog._unsynced",  # of the segments that are there: with fsync=never all since the start
)
"""What a restart forgets, and is nobody's leak: it cannot grow without an end."""

PAST = (
    "Authorizer.version",
    "Coordinated.timer_ms",
    "FetchPartition",
    "FetchSession",
    "GroupOffsets._turn",
    "Leadership.leader",
    "LogSegment",
    "LoggedRequest",
    "OffsetIndex",
    "PartitionLog._published_bytes",
    "Producer",
    "RequestTotal",
    "ScramCredential",
    "Sent",
    "TimeIndex",
    "TokenBucket",
    "Topics.version",
    "VisibleEnd",
    "_Sample",
)
"""Classes and attributes whose numbers tell what has been, and take no room."""

NAMES = ("_id", "_ms", "epoch", "_most", "_most_bytes")
"""How attributes end whose numbers are names, moments and bounds."""

COUNTED = {"FetchSessions._partitions": "FetchSession.partitions"}
"""Numbers that are to be how many things are in a collection that is `BOUNDED`."""

OPEN = ("ProducerState._open", "Transaction.partitions", "TransactionStates.held_bytes")
"""Open transactions, and what is counted of them. A restart, whose clock is right again, may end some."""

SET_BACK = 60.0
"""Seconds by which the broker's clock is set back before it is looked at what it holds."""


def leaks(facts: Facts) -> Iterator[Anomaly]:
    """At its end a process has no more tasks, threads and descriptors than at its beginning, nor much more memory."""
    started = {}
    for sample in facts.operations.of("resources"):
        value = sample.invoked.value
        if value["phase"] == "start":
            started[value["node"]] = sample
        elif value["phase"] == "end" and value["node"] in started:
            begun = started[value["node"]]
            before = begun.invoked.value
            for what, more in {**ALLOWED, "memory": MEMORY}.items():
                if before.get(what) is None or value.get(what) is None or value[what] <= before[what] + more:
                    continue
                told = f"{value['node']} began with {before[what]} {what}, and ends with {value[what]}"
                yield anomaly(f"leaked-{what}", told, begun, sample)
    open_ = {
        (sample.invoked.value["topic"], sample.invoked.value["partition"]): sample.invoked.value.get("open")
        for sample in facts.operations.of("partition_state")
    }
    for sample in facts.operations.of("kept"):
        value = sample.invoked.value
        for where, count in value.get("of_transactions", {}).items() if not any(open_.values()) else ():
            told = f"{value['node']} has {count} in {where} when no transaction is open"
            yield anomaly("leaked-memory", told, sample)
        for where, (count, after) in value["more"].items():
            if where in BOUNDED or where in PAST or where.partition(".")[0] in PAST or where.endswith(NAMES):
                continue
            if where in COUNTED and count == value["more"].get(COUNTED[where], [0])[0]:
                continue
            if not (where in OPEN and _may_be_open(facts, sample)):
                told = f"{value['node']} has {count} in {where} when all are gone, and {after} after a restart"
                yield anomaly("leaked-memory", told, sample)
                break


def _may_be_open(facts: Facts, sample: Operation) -> bool:
    """Whether a transaction of a sink's task may be open still, by the broker's clock: nobody ends one of an attempt
    that was given up before its time is over, which is longer than what comes after the load."""
    batches = facts.operations.of("sink_batch")
    begun = max((batch.ended for batch in batches if batch.ended < sample.began), default=None)
    return begun is not None and sample.began - begun <= timeout_asked(facts) + SET_BACK + facts.bounds.transaction
