"""Everything comes to an end: calls within their bounds, and nothing waits for a broker that is not its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

CALLS = (
    "send",
    "init_producer",
    "send_offsets",
    "commit_transaction",
    "abort_transaction",
    "poll",
    "commit",
    "committed",
    "close",
)
"""What works wherever nothing is wrong."""

EXCUSED = frozenset(
    {
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "CONCURRENT_TRANSACTIONS",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "INVALID_TIMESTAMP",
        "OFFSET_OUT_OF_RANGE",
        "FENCED_INSTANCE_ID",
        "UNRELEASED_INSTANCE_ID",
    }
)
"""What the application has brought about: another owner, a limit that was lowered, records that were deleted."""

EXCUSED_TYPES = (
    "TagwireError",
    "TransactionStateError",
    "NoOffsetError",
    "LogTruncationError",
    "CommitFailedError",
    "UnsupportedVersionError",
)
"""The same, where the client says it: it was closed, a transaction is aborted, a group rebalances, a broker is old."""

OF_AN_OLDER_GENERATION = frozenset({"ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"})
"""What a coordinator says of a commit in the name of what a member was before a rebalance."""

NOT_COMMITTED: Final = "offsets were not committed automatically"
"""What a consumer says of a commit of its own that has failed."""

OPEN_LONG_S: Final = 3.0
"""No transaction of a plan may be aborted for its age before."""

NEAR_S = 0.1
"""Who makes topics in less time is near enough to brokers that nothing takes as long as a request may."""

PROBES = frozenset({"final_read", "sink_batch"})
"""Calls that stand for many: a whole partition, a micro-batch."""


def unanswered(facts: Facts) -> Iterator[Anomaly]:
    """A call of a process that lives returns or raises within its bound."""
    faults = [
        (fault.began, float(fault.value.get("seconds") or 0.0))
        for fault in facts.operations.of("fault", "broker_paused")
    ]
    for operation in facts.operations.all:
        if operation.invoked.type != "invoke" or facts.killed(operation.process, operation.began) < operation.ended:
            continue
        end = min(operation.ended, facts.end)
        bound = facts.bounds.call + _paused(faults, operation, end)
        if operation.f in PROBES:
            bound *= 4
        if end - operation.began > bound:
            state = "has not ended" if operation.completed is None else "ended"
            what = f"{operation.f} of {operation.process} {state} after {end - operation.began:g} s"
            yield anomaly("unanswered", what, operation)


def _paused(faults: list[tuple[float, float]], operation: Operation, end: float) -> float:
    """How long anything was paused or slow while a call was open."""
    return sum(seconds for began, seconds in faults if began <= end and began + seconds >= operation.began)


@dataclass(frozen=True)
class Outage:
    """A broker that was not there, from one event to another; any other fault has no node."""

    node: object | None
    began: float
    ended: float
    shown: Event


def outages(facts: Facts) -> list[Outage]:
    """Whatever was wrong, and when."""
    found = _downs(facts)
    faults: dict[str, Event] = {}
    for event in facts.history:
        if event.type == "invoke":
            continue
        if event.f == "broker_paused":
            seconds = float(event.value.get("seconds") or 0.0)
            found.append(Outage(event.value.get("node"), event.at, event.at + seconds, event))
        elif event.f == "fault":
            faults.setdefault(_which(event), event)
        elif event.f == "heal" and (began := faults.pop(_which(event), None)) is not None:
            found.append(Outage(_node(began), began.at, event.at, began))
    for event in faults.values():
        seconds = event.value.get("seconds")
        until = float("inf") if seconds is None else event.at + float(seconds)
        found.append(Outage(_node(event), event.at, until, event))
    return found


def _downs(facts: Facts) -> list[Outage]:
    """When brokers were down: each time until a start of theirs that came to its end."""
    starts = [start for start in facts.operations.of("broker_started") if start.type == "ok" or not _is_call(start)]
    found: list[Outage] = []
    for end in facts.operations.of("broker_killed", "power_lost", "broker_stopped"):
        node = end.value.get("node")
        later = (each.ended for each in starts if each.value.get("node") == node and each.began >= end.began)
        found.append(Outage(node, end.began, min(later, default=float("inf")), end.invoked))
    return found


def _is_call(operation: Operation) -> bool:
    return operation.invoked.type == "invoke"


def _which(event: Event) -> str:
    return json.dumps([event.value.get(name) for name in ("fault", "target", "detail")], sort_keys=True)


def _node(fault: Event) -> object | None:
    """The node of a cluster that a fault takes away."""
    taken = str(fault.value.get("fault")).startswith("node_")
    return (fault.value.get("detail") or {}).get("node") if taken else None


def waits_for_another(facts: Facts) -> Iterator[Anomaly]:
    """A partition whose leader is there goes on while another broker is away or hangs."""
    wrong = outages(facts)
    leaders: dict[tuple[str, int], list[tuple[float, tuple[object, ...]]]] = {}
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        # The leader, and the process that it is a node of.
        own = tuple(value[name] for name in ("leader", "node") if value.get(name) is not None)
        leaders.setdefault((value["topic"], value["partition"]), []).append((sample.began, own))
    for send in facts.sends.values():
        took = min(send.ended, facts.end) - send.began
        place = send.value["topic"], send.value.get("partition")
        if took <= facts.bounds.other_broker or place[1] is None:
            continue
        around = [node for at, own in leaders.get(place, ()) if at <= send.ended for node in own]
        during = [outage for outage in wrong if outage.began < send.ended and outage.ended > send.began]
        others = [outage for outage in during if outage.node is not None and outage.node not in around]
        if not around or len(others) != len(during) or not others:
            continue
        slack = facts.bounds.other_broker
        if others[0].began <= send.began + slack and others[0].ended >= min(send.ended, facts.end) - slack:
            why = f"{place[0]}-{place[1]} is led by {leaders[place][-1][1][0]}, away is {others[0].node}"
            what = f"{send.value['name']} waited {took:g} s: {why}"
            yield anomaly("waits-for-another-broker", what, others[0].shown, send)


def failed_for_nothing(facts: Facts) -> Iterator[Anomaly]:
    """A call succeeds where nothing was wrong for a while: no fault, no segment that came late, no topic deleted."""
    if facts.clock_jumped:
        return
    made = facts.operations.of("create_topic")
    begun = min((each.ended for each in made), default=0.0)
    is_near = all(each.ended - each.began < NEAR_S for each in made if each.type == "ok")
    deleted = min((each.began for topic in facts.topics.values() for each in topic.deletes), default=float("inf"))
    for call in facts.operations.of(*CALLS):
        error = call.value.get("error")
        if error is None or call.completed is None or not error["type"].startswith("tagwire."):
            continue
        if call.ended >= deleted:
            continue
        if error.get("code") in EXCUSED or error["type"].rpartition(".")[2] in EXCUSED_TYPES:
            continue
        if error.get("code") == "INVALID_TXN_STATE" and _was_open_for_long(facts, call):
            continue
        if error.get("code") is None and not is_near:
            continue
        # Who has a quota is not read while it is to wait, whatever it has sent before it heard of that (KIP-219); and
        # what it sent behind that may be stored still, so that it gets no other number.
        if error.get("code") in (None, "OUT_OF_ORDER_SEQUENCE_NUMBER") and call.value.get("client_id"):
            continue
        since = max(call.began - facts.bounds.undisturbed, begun)
        if call.began < begun or facts.troubled(since, call.ended):
            continue
        if facts.was_late(call.process, since, call.ended) or facts.killed(call.process, 0.0) <= call.ended:
            continue
        if error.get("code") == "UNKNOWN_MEMBER_ID" and _has_not_polled(facts, call):
            continue
        # What a member asks its coordinator for waits behind its JoinGroup, and that for members that take their time.
        waits = error.get("code") is None and call.f in ("commit", "committed")
        if (waits or error.get("code") in OF_AN_OLDER_GENERATION) and _has_rebalanced(
            facts, call.process, call.began, call.ended
        ):
            continue
        what = f"{call.f} of {call.process} failed, and nothing was wrong: {error['message']}"
        yield anomaly("failed-for-nothing", what, call)
        return


def _was_open_for_long(facts: Facts, call: Operation) -> bool:
    """Whether a call may be about what was aborted for its age: a commit is told so with transactions of version 2, and
    whatever comes after it the same."""
    transaction = facts.transactions.get(call.value.get("transaction") or "")
    if transaction is None or transaction.begin is None:
        return False
    return call.ended - transaction.begin.began >= OPEN_LONG_S


def _has_not_polled(facts: Facts, call: Operation) -> bool:
    """Whether a member may have been given up since, by its own doing, it has not polled for as long as it may."""
    own = [each for each in facts.operations.of("subscribe", "poll") if each.process == call.process]
    intervals = [each.value["max_poll_interval"] for each in own if each.f == "subscribe"]
    last = max((each.ended for each in own if each.ended <= call.ended), default=0.0)
    return bool(intervals) and call.ended - last >= min(intervals)


def _has_rebalanced(facts: Facts, process: str, began: float, ended: float) -> bool:
    """Whether the group of a process may have come to another generation between two moments, or not long before or
    after: some member has got or given up partitions, has come, or has gone."""
    groups = {each.process.partition("#")[0]: each.value.get("group") for each in facts.operations.of("subscribe")}
    own = groups.get(_actor(process))
    since, until = began - facts.bounds.undisturbed, ended + facts.bounds.undisturbed
    return any(
        event.f in ("assign", "revoke", "lost", "subscribe", "close")
        and since <= event.at <= until
        and groups.get(_actor(event.process)) == own
        for event in facts.history
    )


def _actor(process: str) -> str:
    """Whose life or thread a process is."""
    return process.partition("#")[0].partition("/")[0]


def not_committed_for_nothing(facts: Facts) -> Iterator[Anomaly]:
    """What a member commits by itself is committed, where nothing was wrong for a while and its group did not
    rebalance: nobody calls for that, and nobody is told but its log."""
    made = facts.operations.of("create_topic")
    begun = min((each.ended for each in made), default=0.0)
    is_near = all(each.ended - each.began < NEAR_S for each in made if each.type == "ok")
    if facts.clock_jumped or not is_near or any(topic.deletes for topic in facts.topics.values()):
        return
    for event in facts.history:
        if event.f != "logged" or NOT_COMMITTED not in str(event.value.get("message")):
            continue
        since = event.at - 1.5 * facts.bounds.undisturbed  # it has waited for its answer
        if since < begun or facts.troubled(since, event.at) or facts.was_late(_actor(event.process), since, event.at):
            continue
        if facts.killed(event.process, 0.0) > event.at and not _has_rebalanced(
            facts, event.process, event.at, event.at
        ):
            what = f"{event.process} has not committed what it was given, and nothing was wrong"
            yield anomaly("not-committed", f"{what}: {event.value['message']}", event)
            return


def unavailable(facts: Facts) -> Iterator[Anomaly]:
    """After the last fault every partition is readable, whole, by both isolations."""
    if facts.quiet is None:
        return
    for read in facts.operations.of("final_read"):
        if read.type != "ok" and read.began >= facts.quiet and read.completed is not None:
            error = read.value.get("error") or {}
            moved = facts.start_may_move(read.value["topic"], read.value["partition"])
            if error.get("code") == "OFFSET_OUT_OF_RANGE" and moved:
                continue  # the oldest records went while they were read
            where = f"{read.value['topic']}-{read.value['partition']}"
            what = f"{where} cannot be read {read.began - facts.quiet:g} s after the last fault: {error.get('message')}"
            yield anomaly("unavailable", what, facts.operations.of("quiet")[0], read)
