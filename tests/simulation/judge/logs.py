"""Logs: their bounds go forward, nothing is removed that was not to go, and nothing comes back that was removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import Facts, Place, Transaction
from tests.simulation.judge.writes import kept

Seen = tuple[float, float, int, Operation]
"""When an observation began and ended, what was seen, and by which call."""


def bounds_go_back(facts: Facts) -> Iterator[Anomaly]:
    """Log start, last stable offset and high watermark never go back, whoever is asked."""
    names = {
        "log_start": ("log-start-back", "log start"),
        "last_stable": ("stable-back", "last stable offset"),
        "high_watermark": ("high-watermark-back", "high watermark"),
    }
    for bound, (name, words) in names.items():
        for (topic, partition, _), seen in _observations(facts, bound).items():
            if bound != "log_start" and facts.losses_of(topic, partition):
                continue
            if found := _step_back(seen):
                before, after = found
                what = f"the {words} of {topic}-{partition} was {before[2]}, and then {after[2]}"
                shown = [excerpt(each[3], topic, partition, each[2]) for each in (before, after)]
                yield anomaly(name, what, *shown)


def _step_back(seen: list[Seen]) -> tuple[Seen, Seen] | None:
    ended = sorted(seen, key=lambda each: each[1])
    highest: Seen | None = None
    at = 0
    for each in sorted(seen, key=lambda each: each[0]):
        while at < len(ended) and ended[at][1] < each[0]:
            if highest is None or ended[at][2] > highest[2]:
                highest = ended[at]
            at += 1
        if highest is not None and each[2] < highest[2]:
            return highest, each
    return None


def _observations(facts: Facts, bound: str) -> dict[tuple[str, int, int], list[Seen]]:
    found: dict[tuple[str, int, int], list[Seen]] = defaultdict(list)

    def add(operation: Operation, topic: str, partition: int, offset: object) -> None:
        incarnation = facts.incarnation(operation, topic)
        if isinstance(offset, int) and offset >= 0 and incarnation is not None:
            found[topic, partition, incarnation].append((operation.began, operation.ended, offset, operation))

    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        if not value.get("offline"):
            add(sample, value["topic"], value["partition"], value.get(bound))
    spec, isolation = {
        "log_start": ("earliest", None),
        "last_stable": ("latest", "read_committed"),
        "high_watermark": ("latest", "read_uncommitted"),
    }[bound]
    for listed in facts.operations.of("list_offsets"):
        if listed.type != "ok" or listed.value["spec"] != spec:
            continue
        if isolation is None or listed.value.get("isolation", "read_uncommitted") == isolation:
            for topic, partition, offset in listed.value["offsets"]:
                add(listed, topic, partition, offset)
    for read in facts.finals.values():
        if isolation in (None, read.isolation):
            value = read.operation.value
            add(read.operation, *read.place, value["log_start" if isolation is None else "end"])
    if bound == "log_start":
        for request in facts.operations.of("delete_records"):
            if request.type == "ok":
                value = request.value
                add(request, value["topic"], value["partition"], value.get("log_start"))
    return found


def beyond_the_disk(facts: Facts) -> Iterator[Anomaly]:
    """With fsync=batch what readers see is on the disk: the high watermark is not past it, nor past the log's end."""
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        start, end = value.get("log_start"), value.get("log_end")
        if start is not None and end is not None and start > end:
            what = f"{value['topic']}-{value['partition']} starts at {start}, and ends at {end}"
            yield anomaly("log-start-past-end", what, sample)
        stable = value.get("last_stable")
        if start is not None and stable is not None and start > stable and not value.get("offline"):
            what = f"{value['topic']}-{value['partition']} starts at {start}, and is stable up to {stable}"
            yield anomaly("log-start-past-stable", what, sample)
        high = value.get("high_watermark")
        where = f"the high watermark of {value['topic']}-{value['partition']} is {high}"
        if high is None:
            continue
        if value.get("log_end") is not None and high > value["log_end"]:
            yield anomaly("high-watermark-past-end", f"{where}, its log ends at {value['log_end']}", sample)
        elif value.get("synced") is not None and high > value["synced"] and _fsync(facts, sample) == "batch":
            yield anomaly(
                "high-watermark-unsynced", f"{where}, on the disk is what is before {value['synced']}", sample
            )


def _fsync(facts: Facts, sample: Operation) -> str:
    started = [
        o for o in facts.operations.of("broker_started")
        if o.began <= sample.began and o.value.get("node") == sample.invoked.value.get("node")
    ]  # fmt: skip
    return (started[-1].value.get("fsync") or "batch") if started else "batch"


def vanished(facts: Facts) -> Iterator[Anomaly]:
    """With fsync=batch, what any reader was given is there in the end: it was on the disk before it was readable."""
    told = set()
    for read in facts.reads:
        if facts.losses_of(*read.place):
            continue
        final = facts.finals.get((*read.place, "read_uncommitted"))
        if final is None or read.final or read.incarnation is None or read.incarnation != final.incarnation:
            continue
        if facts.topic(read.topic).compacted:
            continue
        names = final.names
        for offset, name in read.records:
            if offset >= final.operation.value["log_start"] and name not in names and name not in told:
                told.add(name)
                what = f"{name} was read at {read.topic}-{read.partition}@{offset}, and is not there in the end"
                shown = [excerpt(each.operation, *read.place, offset) for each in (read, final)]
                yield anomaly("vanished-read", what, *shown)


def removed_too_much(facts: Facts) -> Iterator[Anomaly]:
    """DeleteRecords removes what is before its offset, retention what is old or too much: nothing else is gone."""
    for send in kept(facts):
        topic, partition, offset = send.value["topic"], send.value["partition"], send.value["offset"]
        read = facts.finals.get((topic, partition, "read_uncommitted"))
        if read is None or read.incarnation is None or facts.incarnation(send, topic) != read.incarnation:
            continue
        if offset >= read.operation.value["log_start"] or facts.removed_by_request(topic, partition, offset):
            continue
        of = facts.topic(topic)
        age = read.operation.ended - send.began
        by_age = [bound for bound in of.retention_ms or [7 * 86_400_000] if age * 1000 >= bound]
        if not by_age and not of.retention_bytes and not facts.clock_jumped:
            requests = [r for r in facts.operations.of("delete_records") if r.value["topic"] == topic]
            what = f"{send.value['name']} stood at {topic}-{partition}@{offset}, and nothing was to remove it"
            yield anomaly("removed-too-much", what, send, *requests, excerpt(read.operation, topic, partition, offset))
    yield from _less_than_retained(facts)
    yield from _gone_too_early(facts)


def _gone_too_early(facts: Facts) -> Iterator[Anomaly]:
    """By time alone a record goes when it has been there for as long as it is to be kept, and not before."""
    by_place: dict[tuple[str, int], list[Operation]] = defaultdict(list)
    for send in kept(facts):
        topic = facts.topic(send.value["topic"])
        by_time_alone = topic.retention_ms and not topic.retention_bytes and not topic.deletes
        if by_time_alone and send.value.get("offset") is not None and not facts.clock_jumped:
            by_place[send.value["topic"], send.value["partition"]].append(send)
    asked = {(each.value["topic"], each.value["partition"]) for each in facts.operations.of("delete_records")}
    told = set()
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        place = value["topic"], value["partition"]
        start = value.get("log_start")
        if not start or place in told or place in asked:
            continue
        for send in by_place.get(place, ()):
            age = sample.began - send.began
            is_gone = send.ended <= sample.began and send.value["offset"] < start
            if is_gone and age * 1000 < min(facts.topic(place[0]).retention_ms):
                told.add(place)
                where = f"{place[0]}-{place[1]}@{send.value['offset']}"
                what = f"{send.value['name']} stood at {where}, and was gone after {age:g} s"
                yield anomaly("removed-too-much", what, *facts.topic(place[0]).creates, send, sample)
                break


def _less_than_retained(facts: Facts) -> Iterator[Anomaly]:
    """Retention by size alone leaves as many bytes as it is told to keep, unless the power takes the end as well."""
    if facts.operations.of("power_lost"):
        return
    told = set()
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        topic, size = facts.topic(value["topic"]), value.get("size")
        by_size_alone = topic.retention_bytes and not topic.retention_ms and not topic.compacted and not topic.deletes
        if not by_size_alone or size is None or value.get("offline") or not value.get("log_start"):
            continue
        place = value["topic"], value["partition"]
        requests = [r for r in facts.operations.of("delete_records") if r.value["topic"] == topic.name]
        if size < min(topic.retention_bytes) and place not in told and not requests:
            told.add(place)
            what = f"{place[0]}-{place[1]} is to keep {min(topic.retention_bytes)} bytes, and has {size} left"
            yield anomaly("removed-too-much", what, *topic.creates, sample)


def removed_and_read(facts: Facts) -> Iterator[Anomaly]:
    """What DeleteRecords has removed is not read again; nor is what a deleted topic had, in the next of its name."""
    requests = [request for request in facts.operations.of("delete_records") if request.type == "ok"]
    for read in facts.reads:
        value = read.operation.value
        for request in requests if read.final else ():
            before = request.value.get("log_start")
            there = (request.value["topic"], request.value["partition"]) == read.place
            if not there or before is None or request.ended >= read.operation.began or not read.records:
                continue
            same = facts.incarnation(request, read.topic) == read.incarnation is not None
            if same and min(read.records[0][0], value["log_start"]) < before:
                where = f"{read.topic}-{read.partition}"
                what = f"{where} was deleted up to {before}, and is read from {read.records[0][0]} on"
                shown = excerpt(read.operation, *read.place, read.records[0][0])
                yield anomaly("deleted-records-read", what, request, shown)
                break
        if read.final and read.incarnation:
            yield from _old_topics_records(facts, read)


def _old_topics_records(facts: Facts, read) -> Iterator[Anomaly]:
    for offset, name in read.records:
        send = facts.sends.get(name)
        of = facts.incarnation(send, read.topic) if send is not None and send.type == "ok" else None
        if of is not None and of != read.incarnation:
            create = [each for each in facts.topic(read.topic).creates if each.ended <= read.operation.began][-1]
            what = f"{name} was sent to a {read.topic} that was deleted, and stands in the next at @{offset}"
            shown = excerpt(read.operation, *read.place, offset)
            yield anomaly("old-topic-read", what, send, facts.topic(read.topic).deletes[-1], create, shown)
            return


def ends(facts: Facts) -> Iterator[Anomaly]:
    """Who asks for the end after an acknowledgement learns of an end behind that record."""
    acknowledged: dict[tuple[str, int], list[tuple[Event, int, Operation]]] = defaultdict(list)
    for send in facts.sends.values():
        if send.type == "ok" and str(send.value.get("acks", "all")) != "0":
            at = send.value["topic"], send.value["partition"]
            if facts.losses_of(*at):
                continue
            acknowledged[at].append((send.completed, send.value["offset"], send))
    for listed in facts.operations.of("list_offsets"):
        value = listed.value
        if listed.type != "ok" or value["spec"] != "latest" or value.get("isolation") == "read_committed":
            continue
        for topic, partition, offset in value["offsets"]:
            for event, stored, send in acknowledged.get((topic, partition), ()):
                same = facts.incarnation(send, topic) == facts.incarnation(listed, topic) is not None
                if same and event.index < listed.invoked.index and offset is not None and offset <= stored:
                    where = f"{topic}-{partition}@{stored}"
                    what = f"{send.value['name']} was acknowledged at {where}, and the end is {offset}"
                    yield anomaly("stale-end", what, send, listed)
                    break


def partitions(facts: Facts) -> Iterator[Anomaly]:
    """A partition that was created is there, until its topic is deleted."""
    if facts.quiet is None or not facts.finals:
        return
    there: dict[str, set[int]] = defaultdict(set)
    for read in facts.operations.of("final_read"):
        there[read.value["topic"]].add(read.value["partition"])
    for created in facts.operations.of("create_topic", "create_partitions"):
        topic = created.value["topic"]
        if created.type != "ok" or facts.topic(topic).deletes or topic not in there:
            continue
        count = created.value["partitions" if created.f == "create_topic" else "count"]
        if missing := sorted(set(range(count)) - there[topic]):
            yield anomaly("partition-lost", f"{topic} was given {count} partitions, and has no {missing[0]}", created)


def configurations(facts: Facts) -> Iterator[Anomaly]:
    """A topic is set to what it was set to last."""
    for described in facts.operations.of("describe_configs"):
        name = described.value["topic"]
        if described.type != "ok" or facts.topic(name).deletes:
            continue
        changes = [
            change for change in facts.operations.of("create_topic", "alter_config")
            if change.value["topic"] == name and change.type != "fail"
        ]  # fmt: skip
        for config in dict.fromkeys(config for change in changes for config in change.value.get("configs") or {}):
            of_it = [change for change in changes if config in (change.value.get("configs") or {})]
            made = [change for change in of_it if change.type == "ok"]
            if not made:
                continue
            last = max(made, key=lambda change: change.ended)
            possible = [change for change in of_it if change.type == "info" or change.ended > last.began]
            is_set_to = described.value["configs"].get(config)
            if str(is_set_to) not in [str(change.value["configs"][config]) for change in possible]:
                what = f"{config} of {name} was set to {last.value['configs'][config]}, and is {is_set_to}"
                yield anomaly("config-lost", what, last, _of_config(described, config))


def _of_config(described: Operation, config: str) -> list[Event]:
    """A call that described a topic, without the configurations that are not in question."""
    return [
        replace(event, value=event.value | {"configs": {config: event.value["configs"].get(config)}})
        if "configs" in event.value else event
        for event in described.events
    ]  # fmt: skip


def looked_up(facts: Facts) -> Iterator[Anomaly]:
    """A record is found by its offset, whatever is before it, and by its time: none before that time is newer, and none
    that was deleted is told."""
    for read in facts.finals.values():
        value = read.operation.value
        where = f"{read.topic}-{read.partition}"
        if (sought := value.get("sought")) is not None:
            begin, last, found = sought
            due = [[offset, name] for offset, name in read.records if begin <= offset <= last]
            if [list(each) for each in found] != due:
                what = f"{where} was read from {begin} to {last}, which gave {found}, and {due} is there"
                yield anomaly("wrong-lookup", what, excerpt(read.operation, *read.place, begin, last))
        for moment, told, due in value.get("timed") or ():
            if not value["log_start"] <= told <= due:
                what = f"the first record of {where} at {moment} or later is @{due}, and @{told} was told"
                yield anomaly("wrong-lookup", what, excerpt(read.operation, *read.place, due))
        told, due = value.get("newest") or (None, None)
        # The end of a transaction, which nobody is given, may be newer than any record.
        is_given = any(told == offset for offset, _ in read.records)
        if told is not None and told != due and (is_given or told < value["log_start"]):
            what = f"the newest record of {where} is @{due}, and @{told} was told"
            yield anomaly("wrong-lookup", what, excerpt(read.operation, *read.place, due))


def open_ends(facts: Facts) -> Iterator[Anomaly]:
    """For readers of committed records a partition ends before what an open transaction has written."""
    listed = [each for each in facts.operations.of("list_offsets")
              if each.type == "ok" and each.value["spec"] == "latest"
              and each.value.get("isolation") == "read_committed"]  # fmt: skip
    for end in listed:
        for transaction in facts.transactions.values():
            ended = min((each.began for each in transaction.ends), default=float("inf"))
            if transaction.begin is None or ended <= end.ended:
                continue
            if _may_have_ended(facts, transaction, end):
                continue
            for send in transaction.sends:
                for topic, partition, offset in end.value["offsets"]:
                    there = (send.value["topic"], send.value.get("partition")) == (topic, partition)
                    there = there and not facts.losses_of(topic, partition)
                    there = there and not _is_deleted_up_to(facts, (topic, partition), offset, end)
                    if there and send.type == "ok" and send.ended < end.began and offset > send.value["offset"]:
                        where = f"{topic}-{partition}@{send.value['offset']}"
                        what = (
                            f"{transaction.name} is open from {where} on, and the end for committed reads is {offset}"
                        )
                        yield anomaly("end-passes-open", what, send, end)


def _is_deleted_up_to(facts: Facts, place: Place, offset: int, listed: Operation) -> bool:
    """Whether DeleteRecords may have removed all before an offset by then, open or not: as in Kafka's
    UnifiedLog.maybeIncrementFirstUnstableOffset, nothing is stable up to a place before the log's start."""
    for request in facts.operations.of("delete_records"):
        value = request.value
        if (value["topic"], value["partition"]) != place or request.type == "fail" or request.began > listed.ended:
            continue
        reached = value.get("log_start", value["before"])
        if reached is None or reached < 0 or offset <= reached:
            return True
    return False


def _may_have_ended(facts: Facts, transaction: Transaction, read: Operation) -> bool:
    """Whether anybody but its producer may have ended a transaction before then: its time, or who took its id over."""
    assert transaction.begin is not None
    began = transaction.begin.began
    inits = [each for each in facts.operations.of("init_producer")
             if each.value.get("transactional_id") == transaction.transactional_id]  # fmt: skip
    timeouts = [float(each.value["transaction_timeout"]) for each in inits if each.value.get("transaction_timeout")]
    fenced = any(fault.value.get("fault") == "fence_producers" for fault in facts.operations.of("fault"))
    return (
        fenced
        or facts.clock_jumped
        or read.ended - began >= min(timeouts, default=0.0)
        or any(began <= each.ended and each.began <= read.ended for each in inits)
    )
