"""Groups: what was committed is what the next member finds, and a partition has one owner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import GROUPS, Facts, Place
from tests.simulation.judge.reads import steps

JOIN_GRACE_S: Final = 5.0
"""How long a member waits for the answer to a JoinGroup after its rebalance timeout."""

STABLE_S: Final = 5.0
"""Between two looks at a group that have to be alike."""

SHORTEST_SESSION: Final = 2.0
"""Seconds: of a member whose broker says how long its session is."""

Key = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True)
class Write:
    """A commit of one partition's offset, as a write of a register. `end` is infinite where nobody knows.

    Attributes:
        generation: in which its member was when it was asked for; None of who is no member, and of transactions.
    """

    offset: int | None
    began: float
    end: float
    sure: bool
    shown: tuple[Event, ...]
    generation: int | None = None


def registers(facts: Facts) -> dict[Key, list[Write]]:
    """All that may have written a group's offset of a partition, or deleted it."""
    found: dict[Key, list[Write]] = defaultdict(list)
    for operation in facts.operations.of("commit", "alter_group_offsets"):
        if operation.type != "fail":
            for topic, partition, offset in operation.value.get("offsets") or ():
                end = operation.ended if operation.type == "ok" else float("inf")
                generation = operation.value.get("generation")
                write = Write(offset, operation.began, end, operation.type == "ok", tuple(operation.events), generation)
                found[operation.value["group"], topic, partition].append(write)
    for transaction in facts.transactions.values():
        commits = [commit for commit in transaction.commits if commit.type != "fail"]
        if not commits:
            continue
        end = min((commit.ended for commit in commits if commit.type == "ok"), default=float("inf"))
        for operation in transaction.offsets:
            if operation.type == "fail":
                continue
            shown = (*operation.events, *(event for commit in commits for event in commit.events))
            for topic, partition, offset in operation.value["offsets"]:
                sure = transaction.committed and operation.type == "ok"
                write = Write(offset, transaction.first_commit, end if sure else float("inf"), sure, shown)
                found[operation.value["group"], topic, partition].append(write)
    _settle(facts, found)
    return found


def _settle(facts: Facts, found: dict[Key, list[Write]]) -> None:
    """A write of which nobody knows whether it counts is one that does once its offset was read."""
    for read in sorted(facts.operations.of("committed", "describe_group"), key=lambda each: each.ended):
        group = read.value["group"]
        if read.type != "ok" or commits_by_itself(facts, group):
            continue
        for topic, partition, offset in read.value["offsets"]:
            writes = found.get((group, topic, partition), [])
            told = [write for write in explained(writes, read.began, read.ended)[0] if write.offset == offset]
            if len(told) == 1 and not told[0].sure:
                writes[writes.index(told[0])] = replace(told[0], sure=True, end=read.ended)


def forgotten(facts: Facts, group: str, topic: str) -> bool:
    """Whether anything may have deleted a group's offsets of a topic."""
    deleted = facts.operations.of("delete_group", "delete_group_offsets")
    of_group = any(each.value["group"] == group and each.type != "fail" for each in deleted)
    return of_group or bool(facts.topic(topic).deletes) or facts.clock_jumped or bool(facts.losses_of(GROUPS))


def commits_by_itself(facts: Facts, group: str) -> bool:
    """Whether a member of the group commits without being asked, so that not every offset is in the history."""
    return any(each.value.get("group") == group and each.value.get("auto_commit")
               for each in facts.operations.of("subscribe"))  # fmt: skip


def explained(writes: list[Write], began: float, ended: float) -> tuple[list[Write], Write | None]:
    """What a read of the register may give, and the last write that it cannot miss (None: it may be empty)."""
    over = [write for write in writes if write.sure and write.end < began]
    latest = max(over, key=lambda write: write.began, default=None)
    possible = [write for write in writes if write.began < ended and not any(_is_over(write, other) for other in over)]
    return possible, latest


def _is_over(write: Write, other: Write) -> bool:
    """Whether a write cannot be what is left after another one: it was over before that began, or was asked for in a
    generation that was over by then, and refused if it came later."""
    known = write.generation is not None and other.generation is not None
    if known and 0 <= write.generation < other.generation and write.began < other.end:
        return True
    return write.end < other.began


def committed_offsets(facts: Facts) -> Iterator[Anomaly]:
    """A committed offset is what was committed last: neither lost, nor replaced by an older or an aborted one."""
    written = registers(facts)
    for read in facts.operations.of("committed", "describe_group"):
        if read.type != "ok":
            continue
        group = read.value["group"]
        offsets = list(read.value["offsets"])
        if read.f == "describe_group":  # tells of those alone that have one
            told = {(topic, partition) for topic, partition, _ in offsets}
            offsets += [[*each[1:], None] for each in written if each[0] == group and each[1:] not in told]
        for topic, partition, offset in offsets:
            writes = written.get((group, topic, partition), [])
            possible, latest = explained(writes, read.began, read.ended)
            where = f"{topic}-{partition} of {group}"
            if offset is None:
                if latest is not None and not forgotten(facts, group, topic):
                    what = f"{where} was committed at {latest.offset}, and has no offset"
                    yield anomaly("group-offset-lost", what, latest.shown, read)
            elif all(write.offset != offset for write in possible) and not commits_by_itself(facts, group):
                if facts.losses_of(GROUPS):
                    continue
                yield _unexplained(facts, where, group, (topic, partition), offset, latest, read)


def _unexplained(facts: Facts, where: str, group: str, place: Place, offset: int, latest: Write | None,
                 read: Operation) -> Anomaly:  # fmt: skip
    for transaction in facts.transactions.values():
        for operation in transaction.offsets:
            named = operation.value["group"] == group and [*place, offset] in operation.value["offsets"]
            if named and not transaction.may_be_committed:
                what = f"{where} is {offset}, which {transaction.name} sent, and that was not committed"
                return anomaly("aborted-offset", what, operation, *transaction.ends, read)
    if latest is not None and latest.offset is not None and latest.offset > offset:
        what = f"{where} was committed at {latest.offset}, and has gone back to {offset}"
        return anomaly("group-offset-back", what, latest.shown, read)
    shown = latest.shown if latest is not None else ()
    return anomaly("group-offset-unknown", f"{where} is {offset}, which nobody committed last", shown, read)


def of_deleted_topics(facts: Facts) -> Iterator[Anomaly]:
    """What a group had committed of a topic goes with it: of the next of its name it has no offset until it commits
    one."""
    if facts.losses_of(GROUPS):
        return
    written = registers(facts)
    for read in facts.operations.of("committed", "describe_group"):
        if read.type != "ok" or commits_by_itself(facts, read.value["group"]):
            continue
        for topic, partition, offset in read.value["offsets"]:
            deletes = [each for each in facts.topic(topic).deletes if each.type == "ok" and each.ended < read.began]
            if offset is None or not deletes:
                continue
            last = max(deletes, key=lambda each: each.began)
            if facts.troubled(last.began, last.ended):
                continue  # what a disk refuses to forget is forgotten later
            writes = written.get((read.value["group"], topic, partition), [])
            before = [write for write in writes if write.end < last.began and write.offset == offset]
            if before and all(write.end < last.began for write in writes if write.began < read.ended):
                where = f"{topic}-{partition} of {read.value['group']}"
                what = f"{where} is {offset}, which was committed before {topic} was deleted"
                yield anomaly("old-topic-offset", what, before[-1].shown, last, read)


def where_members_begin(facts: Facts) -> Iterator[Anomaly]:
    """A member that is given a partition begins where its group stands: it neither repeats nor leaves out."""
    written = registers(facts)
    for step in steps(facts):
        group, given = step.read.operation.value.get("group"), step.assigned
        if group is None or given is None or given.f != "assign" or not step.read.records:
            continue
        if given.value.get("group") != group or (given.value.get("positions") and not given.value.get("member")):
            continue  # taken by hand, from where its reader says
        topic, partition = step.read.place
        if commits_by_itself(facts, group) or forgotten(facts, group, topic):
            continue
        possible, latest = explained(written.get((group, topic, partition), []), given.at, step.read.operation.ended)
        offsets = [write.offset for write in possible if write.offset is not None]
        if latest is None or not offsets or any(_is_nowhere(facts, step.read.place, offset) for offset in offsets):
            continue
        first = step.read.records[0][0]
        shown = [latest.shown, given, excerpt(step.read.operation, topic, partition, first)]
        where = f"{step.read.operation.process} was given {topic}-{partition}"
        if first < min(offsets):
            what = f"{where}, committed at {min(offsets)}, and began at {first}"
            yield anomaly("group-offset-back", what, *shown)
        elif skipped := _skipped(facts, step.read, max(offsets), first):
            what = f"{where}, committed at {max(offsets)}, and began at {first}, past @{skipped[0]}"
            yield anomaly("group-skip", what, *shown, skipped[1])


def _is_nowhere(facts: Facts, place: Place, offset: int) -> bool:
    """Whether a reader went to an offset where nobody has found anything: who begins there is sent elsewhere."""
    sought = (seek.value for seek in facts.operations.of("seek"))
    if not any((seek["topic"], seek["partition"], seek["offset"]) == (*place, offset) for seek in sought):
        return False
    return all(found < offset for read in facts.reads if read.place == place for found, _ in read.records)


def _skipped(facts: Facts, read, start: int, end: int) -> tuple[int, list[Event]] | None:
    final = facts.finals.get((*read.place, read.isolation))
    if final is None or final.incarnation != read.incarnation or facts.start_may_move(*read.place):
        return None
    between = [offset for offset, _ in final.records if start <= offset < end]
    return (between[0], excerpt(final.operation, *read.place, between[0])) if between else None


@dataclass
class Holding:
    """A member's holding of one partition, from the event that gave it to the one that took it."""

    process: str
    group: str
    place: Place
    generation: int | None
    given: Event
    ended: float = float("inf")
    shown: list[Event] | None = None
    """Events after `given` in which the member says its generation, or that it still holds."""
    given_up: Event | None = None
    """By which the member itself lets it go, for others to have it."""


def holdings(facts: Facts) -> list[Holding]:
    """Who held which partition of which group, and when."""
    found: list[Holding] = []
    now: dict[tuple[str, Place], Holding] = {}
    members = {o.process: o.value.get("group") for o in facts.operations.of("subscribe")}
    for event in facts.history:
        if event.f in ("assign", "revoke", "lost") and event.type != "invoke":
            group = event.value.get("group") or members.get(event.process)
            for topic, partition in event.value["partitions"]:
                held = now.pop((event.process, (topic, partition)), None)
                if held is not None:
                    held.ended = event.at
                    held.given_up = event if event.f == "revoke" else None
                if event.f == "assign" and group is not None:
                    holding = Holding(event.process, group, (topic, partition), event.value.get("generation"), event)
                    now[event.process, (topic, partition)] = holding
                    found.append(holding)
        elif event.f == "close" or event in facts.kills:
            gone = event.process if event.f == "close" else event.value["target"]
            for key in [key for key in now if gone in (key[0], key[0].partition("#")[0])]:
                now.pop(key).ended = event.at
        if event.value.get("generation") is not None:
            for (process, _), held in now.items():
                if process == event.process and held.given is not event:
                    held.shown = [*(held.shown or []), event]
    return found


def shared_partitions(facts: Facts) -> Iterator[Anomaly]:
    """A partition has one owner in a generation; and in the end one owner at all.

    A member that lost its session may not know of it, and reads on. It is not in the generation of who has its
    partition, so only one that says to be in that generation, or a later one, while it holds on, is wrong.
    """
    by_key: dict[tuple[str, Place], list[Holding]] = defaultdict(list)
    for holding in holdings(facts):
        by_key[holding.group, holding.place].append(holding)
    for (group, (topic, partition)), held in by_key.items():
        for at, second in enumerate(held):
            for first in held[:at]:
                if first.process == second.process or first.ended <= second.given.at:
                    continue
                proof = [] if _began_anew(facts, first, second) else _in_one_generation(facts, first, second)
                proof = proof or _after_all(facts, first, second)
                proof = proof or _past_its_session(facts, first, second) or _undisturbed(facts, first, second)
                if proof:
                    what = f"{first.process} and {second.process} both hold {topic}-{partition} in {group}"
                    yield anomaly("two-owners", what, first.given, second.given, proof)


def described(facts: Facts) -> Iterator[Anomaly]:
    """A coordinator has no partition with two members."""
    for group in facts.operations.of("describe_group"):
        owners: dict[Place, str] = {}
        for member, partitions in sorted((group.value.get("members") or {}).items()):
            for topic, partition in partitions:
                other = owners.setdefault((topic, partition), member)
                if other != member:
                    what = f"{other} and {member} are both assigned {topic}-{partition} in {group.value['group']}"
                    yield anomaly("assigned-twice", what, group)


def held_as_assigned(facts: Facts) -> Iterator[Anomaly]:
    """In a group that has been stable for a while a member holds what its coordinator says that it has."""
    seen: dict[str, Operation] = {}
    held: list[Holding] | None = None
    for described in facts.operations.of("describe_group"):
        value = described.value
        if described.type != "ok" or value.get("state") != "Stable":
            continue
        before = seen.get(value["group"])
        seen[value["group"]] = described
        if before is None or before.value["members"] != value["members"] or facts.quiet is None:
            continue
        if before.began < facts.quiet or described.began - before.ended > STABLE_S:
            continue
        held = holdings(facts) if held is None else held
        of = _processes(facts, value["group"], before.began)
        for member, assigned in value["members"].items():
            process = of.get(member)
            own = [each for each in held if each.process == process and each.group == value["group"]]
            moved = any(before.began <= at <= described.ended for each in own for at in (each.given.at, each.ended))
            if process is None or moved:
                continue
            has = {each.place for each in own if each.given.at < before.began and each.ended > described.ended}
            due = {(topic, partition) for topic, partition in assigned}
            if has != due:
                (topic, partition) = sorted(has ^ due)[0]
                is_held = "holds" if (topic, partition) in has else "does not hold"
                what = f"{process} {is_held} {topic}-{partition}, and has {sorted(due)} in {value['group']}"
                yield anomaly("assignment-ignored", what, *(each.given for each in own[-1:]), before, described)
                return


def _processes(facts: Facts, group: str, at: float) -> dict[str, str]:
    """The processes of members that said who they are, and are none that was closed."""
    found: dict[str, str] = {}
    for event in facts.history:
        if event.at >= at:
            break
        if event.f == "assign" and event.value.get("member") and event.value.get("group") == group:
            found[event.value["member"]] = event.process
        elif event.f == "close" or event in facts.kills:
            gone = event.process if event.f == "close" else event.value["target"]
            found = {member: each for member, each in found.items() if gone not in (each, each.partition("#")[0])}
    return found


def _past_its_session(facts: Facts, first: Holding, second: Holding) -> list[Event]:
    """A poll by which a classic member, awake and long after its session, was given what was another's.

    Its coordinator has not heard it for a session's length before the partition is another's; so it has not heard its
    coordinator either, and can tell. A member of KIP-848 is not told how long its session is. One that was joining
    again has no session while its request is under way: until its rebalance timeout is over, by which the partition is
    not another's yet, and the grace that it gives the answer. It has one more from then on.
    """
    how = [o.value for o in facts.operations.of("subscribe") if o.process == first.process]
    if not _is_classic(facts, first) or how[-1].get("session_timeout") is None:
        return []
    if facts.losses_of(GROUPS):
        return []
    since = second.given.at + facts.bounds.heard
    if _was_joining(facts, first, second):
        since += JOIN_GRACE_S + float(how[-1]["session_timeout"])
    for read in facts.reads:
        poll = read.operation
        if read.final or poll.process != first.process or read.place != first.place or not read.records:
            continue
        if since < poll.began and poll.ended < min(first.ended, second.ended) and not _slept(facts, poll):
            return excerpt(poll, *first.place, read.records[0][0])
    return []


def _was_joining(facts: Facts, first: Holding, second: Holding) -> bool:
    """Whether the first said that it was joining again before the second was given what it had."""
    return any(
        commit.process == first.process
        and first.given.at < commit.began
        and commit.ended < second.given.at
        and (commit.value.get("error") or {}).get("code") == "REBALANCE_IN_PROGRESS"
        for commit in facts.operations.of("commit")
    )


def _undisturbed(facts: Facts, first: Holding, second: Holding) -> list[Event]:
    """Whether the first polled as often as it has to, and nothing was wrong anywhere for long enough that both hear
    all that the coordinator says: then it has let go before the second is given the partition.

    An answer and the next heartbeat that are late one after the other are a session's length together, on a network
    that nobody has done anything to.
    """
    since = second.given.at - facts.bounds.undisturbed
    if (second.generation or 0) <= (first.generation or 0):
        return []  # told late
    until = min(first.ended, second.ended, second.given.at + 1.0)
    if facts.troubled(since, until) or facts.was_late(first.process, since, until):
        return []
    awake = [max(since, first.given.at)]
    for poll in facts.operations.of("poll"):
        if poll.process == first.process and poll.type == "ok" and awake[0] <= poll.ended < second.given.at:
            awake.append(poll.ended)
    awake.append(second.given.at)
    if any(after - before > facts.bounds.awake for before, after in pairwise(awake)):
        return []
    # It says so itself, after the other has it: what is given in the same instant may be told in any order.
    return [event for event in first.shown or () if second.given.at < event.at < min(first.ended, second.ended)][:1]


def _slept(facts: Facts, poll: Operation) -> bool:
    """Whether anything stood still within a minute before a call ended, so that it may not have noticed yet."""
    pauses = ("client_pause", "client_paused", "broker_pause", "clock", "clock_jump")
    return any(
        fault.value.get("fault") in pauses and poll.ended - 60.0 <= fault.began + (fault.value.get("seconds") or 0.0)
        for fault in facts.operations.of("fault")
        if fault.began <= poll.ended
    )


def _is_classic(facts: Facts, holding: Holding) -> bool:
    how = [o.value for o in facts.operations.of("subscribe") if o.process == holding.process]
    return bool(how) and how[-1].get("protocol") == "classic"


def _in_one_generation(facts: Facts, first: Holding, second: Holding) -> list[Event]:
    """What shows that the first was in the generation that gave the partition to the second, and kept it."""
    if first.generation is None or second.generation is None:
        return []
    if first.generation == second.generation:
        return [first.given]
    left = first.given_up
    if left is not None and _is_classic(facts, first) and left.value["generation"] >= second.generation:
        return [left]  # it lets it go in the generation in which the second has it already (KIP-429)
    after = [event for event in first.shown or () if second.given.at < event.at < min(first.ended, second.ended)]
    return [event for event in after if event.value["generation"] >= second.generation][:1]


def _began_anew(facts: Facts, first: Holding, second: Holding) -> bool:
    """Whether generations of the two cannot be compared: the second is told one that is over, or the group was
    forgotten between them, and counts from 1 again: one that has had no member for a session, and no offset of which it
    is known that it was stored."""
    group, given = first.group, second.given.at
    told = [each for each in facts.history if each.at < given and each.value.get("generation") is not None]
    latest = max((each.value["generation"] for each in told if each.value.get("group") == group), default=0)
    if second.generation is not None and second.generation < latest:
        return True
    if forgotten(facts, group, first.place[0]):
        return True
    sessions = [o.value.get("session_timeout") for o in facts.operations.of("subscribe") if o.process == first.process]
    alone = given - first.given.at > min(
        [float(each) for each in sessions if each is not None], default=SHORTEST_SESSION
    )
    commits = (o for o in facts.operations.of("commit", "send_offsets", "alter_group_offsets") if o.began < given)
    stays = commits_by_itself(facts, group) or any(o.value["group"] == group and o.type == "ok" for o in commits)
    return alone and not stays


def _after_all(facts: Facts, first: Holding, second: Holding) -> list[Event]:
    """Whether both held on for longer than a session after the last fault."""
    if facts.quiet is None:
        return []
    sessions = [o.value.get("session_timeout") for o in facts.operations.of("subscribe") if o.process == first.process]
    bound = (
        max([float(each) for each in sessions if each is not None], default=facts.bounds.session)
        + facts.bounds.takeover
    )
    until = min(first.ended, second.ended, facts.end)
    if until - max(second.given.at, facts.quiet) > bound:
        return [event for event in facts.history if event.f == "quiet"]
    return []


def fenced_commits(facts: Facts) -> Iterator[Anomaly]:
    """A member whose partition was given to another, in a later generation, commits it no more."""
    held = holdings(facts)
    for commit in facts.operations.of("commit"):
        generation = commit.value.get("generation")
        if commit.type != "ok" or generation is None or generation < 0:
            continue
        for topic, partition, _ in commit.value.get("offsets") or ():
            for other in held:
                if other.group != commit.value["group"] or other.place != (topic, partition):
                    continue
                if other.process == commit.process or (other.generation or 0) <= generation:
                    continue
                back = any(h.process == commit.process and h.place == other.place
                           and other.given.at <= h.given.at <= commit.ended for h in held)  # fmt: skip
                if other.given.at < commit.began and not back:
                    by = f"{commit.process} in generation {generation}"
                    what = f"{topic}-{partition} was {other.process}'s, and was committed by {by}"
                    yield anomaly("fenced-commit", what, other.given, commit)
                    break


def committed_when_gone(facts: Facts) -> Iterator[Anomaly]:
    """What a member has given up, or lost, it commits no more in a later generation: by then it is another's. Who
    closes gives it up to nobody before all is committed, whatever generation comes meanwhile."""
    processes: dict[str, str] = {}
    closing: set[str] = set()
    gone: dict[tuple[str, Place], Event] = {}
    for event in facts.history:
        value = event.value
        if event.f == "commit_taken":
            process = processes.get(value["member"], "")
            for topic, partition, offset in value["offsets"]:
                left = gone.get((process, (topic, partition)))
                if left is not None and value["generation"] > left.value["generation"]:
                    by = f"{process}, which had given it up in generation {left.value['generation']}"
                    what = f"{topic}-{partition} was committed at {offset} in generation {value['generation']} by {by}"
                    yield anomaly("fenced-commit", what, left, event)
                    return
        elif event.f in ("assign", "revoke", "lost") and event.type != "invoke":
            if value.get("member") and value.get("generation") is not None:
                processes[value["member"]] = event.process
                for topic, partition in value["partitions"]:
                    gone.pop((event.process, (topic, partition)), None)
                    if event.f != "assign" and event.process not in closing:
                        gone[event.process, (topic, partition)] = event
        elif event.f == "poll" and event.type == "ok" and value.get("member"):
            processes[value["member"]] = event.process
        elif event.f in ("close", "subscribe") and event.type == "invoke":
            (closing.add if event.f == "close" else closing.discard)(event.process)
