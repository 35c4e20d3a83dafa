"""Groups get on: each record is given to somebody of a group, and made into what a loop makes of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import GROUPS, Facts, Place, Read
from tests.simulation.judge.groups import holdings

_LEADS_AGAIN: Final = (3, 2)
"""From this release on a static leader that comes back leads again (KIP-814)."""


@dataclass
class Group:
    """What a group's members were told to read, and what they were given."""

    name: str
    members: list[Operation] = field(default_factory=list)
    polls: list[Operation] = field(default_factory=list)
    given: dict[Place, list[Read]] = field(default_factory=lambda: defaultdict(list))

    @property
    def isolation(self) -> str | None:
        """That of all its members; None where they have several."""
        said = {member.value.get("isolation") or "read_uncommitted" for member in self.members}
        return said.pop() if len(said) == 1 else None

    def reads_all_of(self, topic: str) -> bool:
        """Whether each member wants this topic, from its beginning."""
        return all(
            topic in (member.value.get("topics") or ()) and member.value.get("reset") == "earliest"
            for member in self.members
        )


def _groups(facts: Facts) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for member in facts.operations.of("subscribe"):
        if (name := member.value.get("group")) is not None:
            found.setdefault(name, Group(name)).members.append(member)
    for poll in facts.operations.of("poll"):
        if poll.type == "ok" and poll.value.get("group") in found:
            found[poll.value["group"]].polls.append(poll)
    for read in facts.reads:
        if not read.final and (name := read.operation.value.get("group")) in found:
            found[name].given[read.place].append(read)
    return found


def _left_alone(facts: Facts, group: str, topic: str) -> bool:
    """Whether nothing but what it was given moved a group on a topic: nobody sought, altered or deleted its offsets."""
    for request in facts.operations.of("alter_group_offsets", "delete_group_offsets", "delete_group"):
        if request.value["group"] == group and request.type != "fail":
            return False
    sought = (seek for seek in facts.operations.of("seek") if seek.value.get("topic") == topic)
    # A loop goes back to where its group stands when its transaction was aborted.
    if any(seek.value.get("group") == group and seek.value["offset"] != "committed" for seek in sought):
        return False
    of = facts.topic(topic)
    lost = facts.losses_of(topic) or facts.losses_of(GROUPS)
    return not (of.deletes or of.compacted or lost or facts.clock_jumped)


def left_behind(facts: Facts) -> Iterator[Anomaly]:
    """Each record is given to somebody of a group: none is passed by all of them, and none waits when all is well."""
    for group in _groups(facts).values():
        for (topic, partition, isolation), final in facts.finals.items():
            if (
                isolation != group.isolation
                or not group.reads_all_of(topic)
                or not _left_alone(facts, group.name, topic)
                or _may_grow_unseen(facts, group, topic)
            ):
                continue
            if facts.start_may_move(topic, partition) or not final.records:
                continue
            given = {name for read in group.given[topic, partition] for name in read.names}
            missing = [(offset, name) for offset, name in final.records if name not in given]
            if not missing:
                continue
            offset, name = missing[0]
            further = [read for read in group.given[topic, partition] if read.records and read.records[-1][0] > offset]
            shown = excerpt(final.operation, topic, partition, offset)
            if further:
                last = further[0].records[-1][0]
                what = f"{group.name} was given {topic}-{partition}@{last}, and {name} at @{offset} to nobody of it"
                yield anomaly(
                    "group-unseen", what, excerpt(further[0].operation, topic, partition, offset, last), shown
                )
            elif waited := _waited(facts, group, topic, partition, offset):
                where = f"{name} at {topic}-{partition}@{offset}"
                what = f"{group.name} was not given {where} in {waited:.1f} s without faults"
                yield anomaly("group-stalled", what, facts.sends.get(name, ()), group.polls[-1], shown)


def _waited(facts: Facts, group: Group, topic: str, partition: int, offset: int) -> float | None:
    """How long a group has polled, and could have read a record, after the last fault, and after the last of it began;
    None where not for long.

    Who is still given records, of whatever partition, catches up.
    """
    if facts.quiet is None or not group.polls:
        return None
    given = (read.operation.ended for reads in group.given.values() for read in reads if read.records)
    if group.polls[-1].ended - max(given, default=0.0) < facts.bounds.heard:
        return None
    readable = max(facts.quiet, *(member.ended for member in group.members))
    is_behind = False
    for sample in facts.operations.of("partition_state"):
        value = sample.invoked.value
        if (value["topic"], value["partition"]) == (topic, partition):
            stable = value.get("high_watermark" if group.isolation == "read_uncommitted" else "last_stable")
            # What stands still is not noted each time: it was so until the next look.
            if is_behind or (stable is not None and stable <= offset):
                readable = max(readable, sample.began)
            is_behind = stable is not None and stable <= offset
    waited = group.polls[-1].ended - readable
    return waited if waited > facts.bounds.catch_up else None


def unowned(facts: Facts) -> Iterator[Anomaly]:
    """Once nothing is wrong any more, each partition that a group reads is one of its members', whoever died before.

    Members stay then until the first of them closes, when everything is over.
    """
    if facts.quiet is None:
        return
    held = holdings(facts)
    read = {topic for topic, _, _ in facts.finals}
    for group in _groups(facts).values():
        wanted = wanted_by(group.members, read)
        closed = [each.began for each in facts.operations.of("close") if each.value.get("group") == group.name]
        over = min((at for at in closed if at > facts.quiet), default=float("inf"))
        for topic, partition, isolation in facts.finals:
            # Who wants other topics is given none of this one.
            polls = [poll for poll in group.polls if poll.began > facts.quiet and topic in wanted.get(poll.process, ())]
            if isolation != "read_committed" or not polls or facts.topic(topic).deletes:
                continue
            if _may_grow_unseen(facts, group, topic):
                continue
            since, until = polls[0].began, min(polls[-1].ended, over)
            of = [each for each in held if each.group == group.name and each.place == (topic, partition)]
            last = max([since, *(each.ended for each in of)])
            if until - last > facts.bounds.rebalance and not _came_late(facts, topic, since):
                what = f"{topic}-{partition} is nobody's of {group.name}, {until - since:.1f} s after the last fault"
                yield anomaly("unowned", what, *(each.given for each in of[-1:]), polls[-1])


def wanted_by(members: Iterable[Operation], topics: set[str]) -> dict[str, set[str]]:
    """Which of these topics each process wants, whenever it subscribes."""
    found: dict[str, set[str]] = {}
    for member in members:
        found[member.process] = found.get(member.process, topics) & _wanted(member, topics)
    return found


def _wanted(member: Operation, topics: set[str]) -> set[str]:
    """Which of these topics a member is subscribed to."""
    pattern = member.value.get("pattern")
    if pattern is not None:
        return {topic for topic in topics if re.fullmatch(pattern, topic)}
    return topics & set(member.value.get("topics") or ())


def _may_grow_unseen(facts: Facts, group: Group, topic: str) -> bool:
    """Whether nobody of a group may have noticed that a topic has got partitions: before KIP-814 a static leader that
    came back was told that it leads no more, and whoever does not lead does not look."""
    releases = [each.value.get("release") for each in facts.operations.of("broker_started")]
    is_old = any(tuple(map(int, release.split(".")[:2])) < _LEADS_AGAIN for release in releases if release)
    is_static = any(
        member.value.get("instance_id") and member.value.get("protocol") == "classic" for member in group.members
    )
    grown = facts.operations.of("create_partitions")
    return is_old and is_static and any(each.value.get("topic") == topic for each in grown)


def _came_late(facts: Facts, topic: str, since: float) -> bool:
    """Whether a topic, or partitions of it, were made after then."""
    made = facts.operations.of("create_topic", "create_partitions")
    return any(each.value.get("topic") == topic and each.ended > since for each in made)


def made_of_all(facts: Facts) -> Iterator[Anomaly]:
    """Consume, transform, produce: where a group's offset has passed a record, its result is committed."""
    loops: dict[tuple[str, str], dict[Place, tuple[int, Operation]]] = defaultdict(dict)
    for transaction in facts.transactions.values():
        targets = {send.value["topic"] for send in transaction.sends if send.value.get("source") is not None}
        for sent in transaction.offsets if transaction.committed else ():
            for topic, partition, offset in sent.value["offsets"] if sent.type == "ok" else ():
                for target in targets:
                    at = loops[sent.value["group"], target]
                    if offset > at.get((topic, partition), (0, sent))[0]:
                        at[topic, partition] = offset, sent
    groups = _groups(facts)
    for (name, target), reached in loops.items():
        group = groups.get(name)
        outputs = [read for (topic, _, isolation), read in facts.finals.items()
                   if topic == target and isolation == "read_committed"]  # fmt: skip
        if group is None or not outputs or not _left_alone(facts, name, target) or facts.start_may_move(target, 0):
            continue
        made = {facts.sends[each].value.get("source") for read in outputs for each in read.names if each in facts.sends}
        for (topic, partition), (end, sent) in reached.items():
            final = facts.finals.get((topic, partition, group.isolation or ""))
            quiet = final is None or not _left_alone(facts, name, topic) or facts.start_may_move(topic, partition)
            if quiet or not group.reads_all_of(topic):
                continue
            for offset, source in final.records:
                if offset < end and source not in made:
                    where = f"{source} at {topic}-{partition}@{offset}"
                    what = f"{name} has consumed {where}, and made nothing of it in {target}"
                    shown = [excerpt(read.operation, *read.place) for read in outputs]
                    yield anomaly(
                        "made-nothing", what, sent, excerpt(final.operation, topic, partition, offset), *shown
                    )
                    break
