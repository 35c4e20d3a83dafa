"""Transactions: readers of committed records see all of what was committed, nothing else; and each of them ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import GROUPS, Facts, Place, Read, Transaction

EPOCH_OF_ITS_OWN = 5
"""The version of EndTxn from which on each transaction has an epoch of its own."""


def dirty_reads(facts: Facts) -> Iterator[Anomaly]:
    """aborted-read (G1a): of a transaction that was aborted, or never committed; uncommitted-read: before it was."""
    told: set[tuple[str, str]] = set()
    for read in facts.reads:
        if read.isolation != "read_committed":
            continue
        for offset, name in read.records:
            transaction = facts.transaction_of(name)
            if transaction is None or transaction.first_commit <= read.operation.ended:
                continue
            if _committed_by_another(facts, transaction, read.operation.ended):
                continue
            aborted = not transaction.may_be_committed
            kind = "aborted-read" if aborted else "uncommitted-read"
            if (transaction.name, kind) in told:
                continue
            told.add((transaction.name, kind))
            state = "never committed" if aborted else "not committed yet"
            what = (
                f"read_committed gave {name} at {read.topic}-{read.partition}@{offset}, of {transaction.name}, {state}"
            )
            shown = excerpt(read.operation, *read.place, offset)
            yield anomaly(kind, what, facts.sends[name], *transaction.ends, shown)


def _committed_by_another(facts: Facts, transaction: Transaction, before: float) -> bool:
    """Whether the commit of an earlier transaction of its id came while it was open, whose client had given that up:
    below EndTxn 5 both are of one epoch, and it commits whichever is open, in Kafka, too (KIP-890)."""
    begun = transaction.begin.began if transaction.begin is not None else float("inf")
    ended = min((end.ended for end in transaction.ends if end.type == "ok"), default=float("inf"))
    return any(
        late.value["transactional_id"] == transaction.transactional_id
        and late.value["commit"]
        and late.value["version"] < EPOCH_OF_ITS_OWN
        and begun <= late.began <= min(before, ended)
        for late in facts.operations.of("late_end")
    )


def partly_visible(facts: Facts) -> Iterator[Anomaly]:
    """A transaction counts on every partition, or on none: also one whose commit nobody saw answered."""
    for transaction in facts.transactions.values():
        seen: list[tuple[str, Read]] = []
        missing: list[tuple[str, Read]] = []
        for send in transaction.sends:
            read = _committed_read_over(facts, send)
            if read is not None:
                (seen if send.value["name"] in read.names else missing).append((send.value["name"], read))
        undelivered = _undelivered(facts, transaction)
        if undelivered is not None:
            name = undelivered.value["name"]
            what = f"{transaction.name} was committed, and {name} of it was never delivered, nor can it be read"
            yield anomaly("partial-transaction", what, undelivered, *transaction.ends)
        # What a committed one lacks is lost, and told as that.
        if seen and missing and not transaction.committed and transaction.may_be_committed:
            (there, in_read), (lacking, in_other) = seen[0], missing[0]
            what = f"of {transaction.name} {there} can be read as committed, {lacking} cannot"
            shown = [facts.sends[there], facts.sends[lacking], *transaction.ends]
            offset = facts.sends[lacking].value["offset"]
            places = [(in_read, _offset_of(in_read, there)), (in_other, offset)]
            yield anomaly("partial-transaction", what, *shown,
                          *(excerpt(read.operation, *read.place, at) for read, at in places))  # fmt: skip


def _undelivered(facts: Facts, transaction: Transaction) -> Operation | None:
    """A record that had not been delivered when its transaction was committed all the same, and is nowhere."""
    commits = [commit for commit in transaction.commits if commit.type == "ok"]
    for send in transaction.sends if commits else ():
        late = send.completed is None or send.type == "info" or send.completed.index > commits[0].completed.index
        read = [read for (topic, _, isolation), read in facts.finals.items()
                if topic == send.value["topic"] and isolation == "read_committed"]  # fmt: skip
        of = facts.topic(send.value["topic"])
        gone = of.deletes or of.compacted or any(facts.start_may_move(*each.place) for each in read)
        killed = facts.killed(send.process, send.began) < float("inf")
        readable = any(send.value["name"] in each.names for each in read)
        if late and send.type != "fail" and read and not gone and not killed and not readable:
            return send
    return None


def _offset_of(read: Read, name: str) -> int:
    return next(offset for offset, each in read.records if each == name)


def _committed_read_over(facts: Facts, send) -> Read | None:
    """The last whole read of committed records that an acknowledged, kept record of a transaction would be in."""
    if send.type != "ok" or facts.may_be_lost(send) or facts.topic(send.value["topic"]).compacted:
        return None
    read = facts.finals.get((send.value["topic"], send.value["partition"], "read_committed"))
    incarnation = facts.incarnation(send, send.value["topic"])
    if read is None or incarnation is None or read.incarnation != incarnation:
        return None
    bounds = read.operation.value
    return read if bounds["log_start"] <= send.value["offset"] < bounds["end"] else None


def intermediate_reads(facts: Facts) -> Iterator[Anomaly]:
    """G1b: a reader of committed records that went past a transaction on a partition was given all of it there."""
    for read in facts.reads:
        if (
            read.isolation != "read_committed"
            or not read.records
            or read.incarnation is None
            or facts.losses_of(*read.place)
        ):
            continue
        first, last = read.records[0][0], read.records[-1][0]
        met: dict[str, str] = {}
        for _, name in read.records:
            transaction = facts.transaction_of(name)
            if transaction is not None:
                met.setdefault(transaction.name, name)
        for named, name in met.items():
            for send in facts.transactions[named].sends:
                value = send.value
                lacking = send.type == "ok" and (value["topic"], value["partition"]) == read.place
                if lacking and first < value["offset"] < last and value["name"] not in read.names:
                    if facts.topic(read.topic).compacted:
                        continue
                    what = f"a read_committed read has {name} and lacks {value['name']}, both of {named}"
                    shown = excerpt(read.operation, *read.place, value["offset"])
                    yield anomaly(
                        "intermediate-read", what, facts.sends[name], send, *facts.transactions[named].ends, shown
                    )
                    break


def stuck(facts: Facts) -> Iterator[Anomaly]:
    """Whoever leaves a transaction open, its coordinator ends it when its time is over."""
    yield from _open_too_long(facts)
    if facts.quiet is None:
        return
    bound = timeout_asked(facts) + facts.bounds.transaction
    for (topic, partition, isolation), read in facts.finals.items():
        whole = facts.finals.get((topic, partition, "read_uncommitted"))
        lost = [loss.at for loss in facts.losses if loss.at < read.operation.began]  # its end, too: it is open again
        since = max(facts.quiet, _last_written(facts, topic, read.operation.began), *lost)
        if isolation != "read_committed" or whole is None or read.operation.began - since <= bound:
            continue
        stands, end = read.operation.value["end"], whole.operation.value["end"]
        if stands < whole.operation.value["end"] and whole.operation.began <= read.operation.began:
            where = f"the last stable offset of {topic}-{partition} is {stands}, its end {end}"
            what = f"{where}, {bound:g} s after the last fault and the last transaction's begin"
            yield anomaly("stuck-transaction", what, facts.operations.of("quiet")[0],
                          excerpt(whole.operation, topic, partition, stands),
                          excerpt(read.operation, topic, partition, stands))  # fmt: skip


def _last_written(facts: Facts, topic: str, before: float) -> float:
    """When somebody last may have begun a transaction on a topic. A sink's tasks do until their batch is over, and one
    that is run twice may leave the other's open."""
    written = [o for o in facts.operations.of("send") if o.value.get("transaction") is not None]
    written += facts.operations.of("sink_batch")
    moments = [moment for o in written if o.value["topic"] == topic for moment in (o.began, o.ended)]
    return max((moment for moment in moments if moment < before), default=0.0)


def _open_too_long(facts: Facts) -> Iterator[Anomaly]:
    told = set()
    first: dict[tuple, float] = {}
    earliest: dict[tuple, float] = {}
    looked: dict[Place, float] = {}
    last_round = this_round = None  # when any partition was looked at: all are at once
    owned = {each.value["producer_id"]: each.value["transaction_timeout"] for each in facts.operations.of("own")}
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        place = value["topic"], value["partition"]
        if sample.began != this_round:
            last_round, this_round = this_round, sample.began
        # One that is new may have been made, and written to, right after the last round.
        before = looked.get(place, sample.began if last_round is None else last_round)
        looked[place] = sample.began
        for producer_id, epoch, offset, begun in value.get("open") or ():
            key = value["topic"], value["partition"], producer_id, epoch, offset
            if key not in first:
                first[key], earliest[key] = sample.began, before
            since = min(first[key], sample.began if begun is None else begun)
            asked = owned.get(producer_id, 0.0)
            bound = timeout_asked(facts, min(earliest[key], since), asked) + facts.bounds.transaction
            if sample.began - since > bound and key not in told:
                if sample.began - max(since, _well_since(facts, sample.began)) <= bound:
                    continue
                told.add(key)
                where = f"{value['topic']}-{value['partition']}@{offset}"
                took = sample.began - since
                what = f"a transaction of producer {producer_id} is open from {where} on for {took:g} s"
                yield anomaly("stuck-transaction", what, sample)


def _well_since(facts: Facts, at: float) -> float:
    """The last moment before `at` when anything was wrong, or a broker began: until then nobody may have ended it."""
    troubles = facts.operations.of("broker_started", "broker_killed", "power_lost", "broker_paused", "fault", "heal")
    return max((trouble.began + (trouble.value.get("seconds") or 0.0) for trouble in troubles if trouble.began <= at),
               default=0.0)  # fmt: skip


def timeout_asked(facts: Facts, since: float = 0.0, own: float = 0.0) -> float:
    """The longest transaction timeout that anybody asked for, or its producer did; where a sink does not say, what
    brokers allow. Of a transaction that began then: no clock that jumped before and stays as it is has to do with it.
    """
    said = [o.value.get("transaction_timeout") for o in facts.operations.of("init_producer")]
    said += [o.value.get("transaction_timeout", 900.0) for o in facts.operations.of("sink_batch")]
    asked = max(own, max([float(each) for each in said if each is not None], default=60.0))
    # When a transaction began is remembered by the clock on the wall, which may have been ahead then.
    return asked + max(
        (
            abs(float(jump))
            for fault in facts.operations.of("fault")
            if isinstance(jump := (fault.value.get("detail") or {}).get("offset"), int | float)
            and (fault.began >= since or not fault.value["detail"].get("stays"))
        ),
        default=0.0,
    )


def stable_offsets(facts: Facts) -> Iterator[Anomaly]:
    """The last stable offset is where the oldest open transaction begins, and the high watermark where none is open."""
    standing: dict[str, tuple[Operation, object]] = {}
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        stable, high = value.get("last_stable"), value.get("high_watermark")
        if stable is None or value.get("open") is None:
            continue
        first = min((offset for _, _, offset, _ in value["open"]), default=None)
        where = f"{value['topic']}-{value['partition']}"
        if first is not None:  # what is before the log's start is nobody's any more
            first = max(first, value.get("log_start") or 0)
        if first is not None and stable > first:
            yield anomaly("stable-passes-open", f"{where} is stable up to {stable}, and open from {first} on", sample)
            continue
        if first is not None or high is None or stable >= high:
            standing.pop(where, None)
            continue
        # A sample may be taken while a marker is written, and a broker that is stopped then does not go on with it.
        since, seen = standing.get(where, (sample, None))
        now = stable, high, value.get("log_end")
        if seen != now:
            since = sample
        standing[where] = since, now
        if sample.began - max(since.began, _well_since(facts, sample.began)) > facts.bounds.heard:
            what = f"{where} is stable up to {stable} of {high}, and nothing is open"
            yield anomaly("stable-stands-still", what, since, sample)
            standing.pop(where)


def cycles(facts: Facts) -> Iterator[Anomaly]:
    """G0: transactions of one id that stand interleaved; G1c: transactions that read each other's records, in a circle.

    Transactions of different ids do stand interleaved in a partition, as Kafka's do: those of one id have an order.
    """
    for name, edges in (("G0", _write_edges(facts)), ("G1c", _write_edges(facts) | _read_edges(facts))):
        circle = _circle(edges)
        if circle:
            what = " -> ".join([*circle, circle[0]])
            shown: list[Event] = []
            for one, other in zip(circle, [*circle[1:], circle[0]]):
                shown += edges[one, other]
            yield anomaly(name, what, shown)
            return


Edges = dict[tuple[str, str], list[Event]]


def _write_edges(facts: Facts) -> Edges:
    """Of two transactions of one id, which has a record before one of the other's in a partition."""
    edges: Edges = {}
    last: dict[tuple, list] = {}
    for send in facts.sends.values():
        transaction = facts.transaction_of(send.value["name"])
        if transaction is None or transaction.transactional_id is None or send.type != "ok":
            continue
        if facts.losses_of(send.value["topic"], send.value["partition"]):
            continue
        incarnation = facts.incarnation(send, send.value["topic"])
        if incarnation is not None:
            key = transaction.transactional_id, send.value["topic"], send.value["partition"], incarnation
            last.setdefault(key, []).append((send.value["offset"], transaction.name, send))
    for placed in last.values():
        placed.sort(key=lambda each: each[0])
        for (_, one, first), (_, other, second) in itertools.pairwise(placed):
            if one != other:
                edges.setdefault((one, other), [*first.events, *second.events])
    return edges


def _read_edges(facts: Facts) -> Edges:
    """Of two transactions, whose record was read to make one of the other's."""
    edges: Edges = {}
    for send in facts.sends.values():
        source, into = send.value.get("source"), facts.transaction_of(send.value["name"])
        made = facts.transaction_of(source) if source is not None else None
        if into is not None and made is not None and into.name != made.name and source in facts.sends:
            edges.setdefault((made.name, into.name), [*facts.sends[source].events, *send.events])
    return edges


def _circle(edges: Edges) -> list[str]:
    """A shortest circle of a graph, or nothing."""
    after: dict[str, list[str]] = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
    best: list[str] = []
    for start in _cyclic(after):
        ways = [[start]]
        seen = {start}
        while ways and (not best or len(ways[0]) < len(best)):
            way = ways.pop(0)
            for following in after.get(way[-1], ()):
                if following == start:
                    best, ways = way, []
                    break
                if following not in seen:
                    seen.add(following)
                    ways.append([*way, following])
    return best


def _cyclic(after: dict[str, list[str]]) -> list[str]:
    """What is left of a graph when whatever nothing leads to has been taken away, again and again."""
    leading = dict.fromkeys(after, 0) | {other: 0 for others in after.values() for other in others}
    for others in after.values():
        for other in others:
            leading[other] += 1
    free = [node for node, count in leading.items() if count == 0]
    while free:
        node = free.pop()
        del leading[node]
        for other in after.get(node, ()):
            leading[other] -= 1
            if leading[other] == 0:
                free.append(other)
    return list(leading)


def made_once(facts: Facts) -> Iterator[Anomaly]:
    """Consume, transform, produce: what a group has consumed is made into one committed result."""
    groups = {o.value["transaction"]: o.value["group"] for o in facts.operations.of("send_offsets")}
    made: dict[tuple[str, str, str], list[tuple[str, Read, int]]] = {}
    for read in facts.finals.values():
        if read.isolation != "read_committed":
            continue
        for offset, name in read.records:
            send = facts.sends.get(name)
            if send is None or send.value.get("source") is None:
                continue
            group = groups.get(send.value.get("transaction"))
            if group is not None:
                key = group, read.topic, send.value["source"]
                made.setdefault(key, []).append((name, read, offset))
    for (group, topic, source), results in made.items():
        sent = facts.sends.get(source)
        if len(results) > 1 and sent is not None and sent.value.get("kind") != "plain":  # which may stand twice itself
            names = [name for name, _, _ in results]
            shown = [facts.sends[name] for name in names]
            if facts.loss_between(min(send.began for send in shown), max(send.began for send in shown), GROUPS):
                continue  # what was committed may be there, and the group's offsets that came with it not
            ends = [end for name in names for end in _ends(facts.transaction_of(name))]
            what = f"{source} was consumed by {group} and made into {' and '.join(names)} in {topic}, all committed"
            yield anomaly("made-twice", what, *shown, *ends)


def _ends(transaction: Transaction | None) -> list:
    return [] if transaction is None else [*transaction.offsets, *transaction.ends]
