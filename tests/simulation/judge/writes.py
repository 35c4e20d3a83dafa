"""Records that were written: none lost, none twice, in order, where they were said to be, and none that nobody sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import Facts, Read, told
from tests.simulation.judge.log_audits import logs


def lost_writes(facts: Facts) -> Iterator[Anomaly]:
    """An acknowledged record (acks 1 or all) is there, until it is deleted or compacted, if its fsync promised that."""
    for send in kept(facts):
        topic, partition, offset = send.value["topic"], send.value["partition"], send.value["offset"]
        for isolation in ("read_uncommitted", "read_committed"):
            read = facts.finals.get((topic, partition, isolation))
            if read is None or not facts.visible(read, send) or not _same(facts, send, read):
                continue
            if isolation == "read_committed" and offset >= read.operation.value["end"]:
                continue  # not readable yet: `transactions.stuck` says whether that is right
            if offset >= read.operation.value["log_start"] and send.value["name"] not in read.names:
                where = f"{topic}-{partition}@{offset}"
                what = f"{send.value['name']} was acknowledged at {where}, and a {isolation} read lacks it"
                crashes = told(facts.history.events, send.began, read.operation.began)
                yield anomaly("lost-write", what, send, crashes, excerpt(read.operation, topic, partition, offset))
                break


def kept(facts: Facts) -> Iterator[Operation]:
    """Acknowledged sends whose records no compaction may have removed, and no loss of power."""
    for send in facts.sends.values():
        if send.type != "ok" or str(send.value.get("acks", "all")) == "0":
            continue
        if not facts.topic(send.value["topic"]).compacted and not facts.may_be_lost(send):
            yield send


def _same(facts: Facts, send: Operation, read: Read) -> bool:
    """Whether a send and a read surely met the same topic of that name."""
    incarnation = facts.incarnation(send, read.topic)
    return incarnation is not None and incarnation == read.incarnation


def unseen(facts: Facts) -> Iterator[Anomaly]:
    """Every acknowledged record is readable in the end: by a poll, where there is no whole read of its partition."""
    if facts.quiet is None:
        return
    seen = {name for read in facts.reads for name in read.names}
    for send in kept(facts):
        value = send.value
        if (value["topic"], value["partition"], "read_uncommitted") in facts.finals or value["name"] in seen:
            continue
        transaction = facts.transaction_of(value["name"])
        removed = facts.start_may_move(value["topic"], value["partition"])
        if not removed and (transaction is None or transaction.committed):
            where = f"{value['topic']}-{value['partition']}@{value['offset']}"
            what = f"{value['name']} was acknowledged at {where}, and nobody saw it"
            yield anomaly("unseen", what, send)


def duplicates(facts: Facts) -> Iterator[Anomaly]:
    """A record of an idempotent or transactional producer stands at one offset; a plain one's may be written twice."""
    places: dict[tuple[str, int | None], dict[tuple[int, int], Read]] = defaultdict(dict)
    for read in facts.reads:
        for offset, name in read.records:
            places[name, read.incarnation].setdefault((read.partition, offset), read)
    for (name, incarnation), at in places.items():
        send = facts.sends.get(name)
        if len(at) < 2 or incarnation is None or send is None or send.value.get("kind") == "plain":
            continue
        if facts.losses_of(send.value["topic"]):
            continue
        (first, second), topic = sorted(at)[:2], send.value["topic"]
        where = " and ".join(f"{topic}-{partition}@{offset}" for partition, offset in (first, second))
        shown = [excerpt(at[place].operation, topic, *place) for place in (first, second)]
        yield anomaly("duplicate", f"{name} was sent once, and stands at {where}", send, *shown)


def inconsistent_offsets(facts: Facts) -> Iterator[Anomaly]:
    """An offset of a partition names one record for ever, and a record stands where its acknowledgement says."""
    found: dict[tuple[str, int, int, int], tuple[str, Operation]] = {}
    seen: list[tuple[str, int, int, int, str, Operation]] = []
    for send in facts.sends.values():
        if send.type == "ok" and (send.value.get("offset") or 0) >= 0 and str(send.value.get("acks", "all")) != "0":
            incarnation = facts.incarnation(send, send.value["topic"])
            if incarnation is not None and not facts.may_be_lost(send):
                place = send.value["topic"], send.value["partition"], incarnation, send.value["offset"]
                seen.append((*place, send.value["name"], send))
    for read in facts.reads:
        # What a reader saw before it was lost, with an fsync that promises nothing, may be written anew.
        if read.incarnation is not None and not facts.loss_between(read.operation.began, facts.end, *read.place):
            seen += [
                (*read.place, read.incarnation, offset, name, read.operation)
                for offset, name in read.records
                # A poll gives what was fetched some time ago, perhaps before the loss.
                if read.final or name not in facts.sends or not facts.may_be_lost(facts.sends[name])
            ]
    for topic, partition, incarnation, offset, name, operation in seen:
        key = topic, partition, incarnation, offset
        other, before = found.setdefault(key, (name, operation))
        if other != name:
            what = f"{topic}-{partition}@{offset} is {other} and {name}"
            shown = [excerpt(each, topic, partition, offset) for each in (before, operation)]
            yield anomaly("inconsistent-offsets", what, *shown)


def one_in_an_epoch(facts: Facts) -> Iterator[Anomaly]:
    """A leader epoch has one record at an offset, whatever was lost: what was read and is gone is written anew in a
    later one, so that whoever has read it can tell."""
    names = {
        (topic, partition): dict(read.records)
        for (topic, partition, isolation), read in facts.finals.items()
        if isolation == "read_uncommitted" and not facts.topic(topic).deletes
    }
    found: dict[tuple[str, int, int, int], tuple[str, Operation]] = {}
    for log in logs(facts):
        at = log.value["topic"], log.value["partition"]
        own = names.get(at, {})
        for batch in log.batches:
            for offset in range(batch.base, batch.last + 1):
                if offset in own:
                    final = facts.finals[*at, "read_uncommitted"].operation
                    found.setdefault((*at, offset, batch.leader_epoch), (own[offset], final))
    for poll in facts.operations.of("poll"):
        for part in poll.value["read"] if poll.type == "ok" else ():
            epoch, stands, records = part.get("epoch"), part.get("position"), part["records"]
            # What is told is the epoch of the record before the position: where that was given, and is no marker.
            if epoch is None or epoch < 0 or not records or stands != records[-1][0] + 1:
                continue
            topic, partition, (offset, name) = part["topic"], part["partition"], records[-1]
            if facts.topic(topic).deletes:
                continue
            other, before = found.setdefault((topic, partition, offset, epoch), (name, poll))
            if other != name:
                what = f"{topic}-{partition}@{offset} is {other} and {name}, both of leader epoch {epoch}"
                shown = [excerpt(each, topic, partition, offset) for each in (before, poll)]
                yield anomaly("inconsistent-offsets", what, *shown)


def nonmonotonic_sends(facts: Facts) -> Iterator[Anomaly]:
    """What was sent after another's acknowledgement stands behind it. A producer keeps its order: an idempotent one
    that of all it sends, a plain one, of which one batch is in flight, that of what is acknowledged."""
    offsets = _offsets(facts)
    by_place: dict[tuple[str, int, int], list[tuple[Operation, int]]] = defaultdict(list)
    for name, (partition, offset) in offsets.items():
        send = facts.sends[name]
        incarnation = facts.incarnation(send, send.value["topic"])
        if incarnation is not None:
            by_place[send.value["topic"], partition, incarnation].append((send, offset))
    for (topic, partition, _), sends in by_place.items():
        sends.sort(key=lambda each: each[0].invoked.index)
        yield from _in_program_order(topic, partition, sends)
        yield from _in_real_time(topic, partition, sends)


def _in_program_order(topic: str, partition: int, sends: list[tuple[Operation, int]]) -> Iterator[Anomaly]:
    last: dict[str, tuple[Operation, int]] = {}
    for send, offset in sends:
        if send.value.get("kind") == "plain" and send.type != "ok":
            continue  # it may stand twice
        before = last.get(send.process)
        if before is not None and offset < before[1]:
            name = "nonmonotonic-send"
            if send.value.get("transaction") and send.value["transaction"] == before[0].value.get("transaction"):
                name = "int-nonmonotonic-send"
            one, other = _at(topic, partition, *before), _at(topic, partition, send, offset)
            yield anomaly(name, f"{send.process} sent {one} before {other}", before[0], send)
        else:
            last[send.process] = send, offset


def _in_real_time(topic: str, partition: int, sends: list[tuple[Operation, int]]) -> Iterator[Anomaly]:
    ended = sorted((each for each in sends if each[0].type == "ok"), key=lambda each: each[0].completed.index)
    highest: tuple[Operation, int] | None = None
    at = 0
    for send, offset in sends:
        while at < len(ended) and ended[at][0].completed.index < send.invoked.index:
            if highest is None or ended[at][1] > highest[1]:
                highest = ended[at]
            at += 1
        if highest is not None and send.type == "ok" and offset < highest[1]:
            one, other = _at(topic, partition, *highest), _at(topic, partition, send, offset)
            what = f"{one} was acknowledged before {other} was sent"
            yield anomaly("nonmonotonic-send", what, highest[0], send)


def _at(topic: str, partition: int, send: Operation, offset: int) -> str:
    return f"{send.value['name']} ({topic}-{partition}@{offset})"


def _offsets(facts: Facts) -> dict[str, tuple[int, int]]:
    """Partition and offset of each send, by its acknowledgement or where it was read; not where logs were cut off."""
    found: dict[str, tuple[int, int]] = {}
    for name, send in facts.sends.items():
        if facts.losses_of(send.value["topic"]):
            continue
        if send.type == "ok" and str(send.value.get("acks", "all")) != "0":
            found[name] = send.value["partition"], send.value["offset"]
    for read in facts.reads:
        if facts.losses_of(read.topic):
            continue
        for offset, name in read.records:
            if name in facts.sends and read.incarnation is not None and facts.sends[name].value.get("kind") != "plain":
                found.setdefault(name, (read.partition, offset))
    return found


def strangers(facts: Facts) -> Iterator[Anomaly]:
    """What is read was sent before, to that topic; and what is known to have failed is not there."""
    rows = {row for batch in facts.operations.of("sink_batch") for row in batch.value["rows"]}
    for read in facts.reads:
        for offset, name in read.records:
            if name in rows:
                continue
            send = facts.sends.get(name)
            wrong = send is None or send.value["topic"] != read.topic or send.began > read.operation.ended
            if not wrong and send.type != "fail":
                continue
            where = f"{read.topic}-{read.partition}@{offset}"
            shown = excerpt(read.operation, read.topic, read.partition, offset)
            if wrong:
                sent = [] if send is None else send.events
                yield anomaly("never-sent", f"{where} is {name}, which nobody had sent there", sent, shown)
            else:
                yield anomaly("failed-write", f"{name} is known to have failed, and stands at {where}", send, shown)
