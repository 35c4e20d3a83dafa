"""Compaction: of each key the last value stays, a tombstone has its effect, and nothing old comes back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly, excerpt
from tests.simulation.judge.facts import Facts, Read

DELETE_RETENTION_MS = 86_400_000


@dataclass(frozen=True)
class Value:
    """A record of a key that counts: not of a transaction that may have been aborted."""

    offset: int
    send: Operation

    @property
    def name(self) -> str:
        return self.send.value["name"]

    @property
    def tombstone(self) -> bool:
        return bool(self.send.value.get("tombstone"))


def last_values(facts: Facts) -> Iterator[Anomaly]:
    """A whole read of a compacted partition has each key's last value; of a key that was deleted, none."""
    for read in facts.finals.values():
        topic = facts.topic(read.topic)
        if not topic.only_compacted or topic.deletes or facts.losses_of(*read.place):
            continue
        if any(facts.removed_by_request(*read.place, offset) for offset, _ in read.records[:1]):
            continue
        there = {name: offset for offset, name in read.records}
        for key, values in _by_key(facts, read).items():
            last = values[-1]
            older = [value for value in values[:-1] if value.name in there]
            newer = any(offset > last.offset and _key(facts, name) == key for name, offset in there.items())
            if last.name in there or newer or last.offset >= read.operation.value["end"]:
                continue
            shown = excerpt(read.operation, *read.place, last.offset, *(value.offset for value in older[-1:]))
            where = f"{read.topic}-{read.partition}"
            if not last.tombstone and not _unknown_tombstone(facts, read, key):
                what = f"{last.name} at {where}@{last.offset} is the last value of {key}, and is gone"
                yield anomaly("compaction-lost-last-value", what, last.send, shown)
            elif last.tombstone and older:
                what = f"{key} was deleted by {last.name} at {where}@{last.offset}, and is {older[-1].name} again"
                yield anomaly("compaction-brought-back", what, older[-1].send, last.send, shown)
            elif last.tombstone and _too_early(facts, read, last):
                what = f"{last.name} at {where}@{last.offset} deletes {key}, and is gone before delete.retention.ms"
                yield anomaly("tombstone-removed-early", what, last.send, shown)


def _by_key(facts: Facts, read: Read) -> dict[str, list[Value]]:
    """Acknowledged values of each key of a partition that count for certain, by offset."""
    found: dict[str, list[Value]] = defaultdict(list)
    for send in facts.sends.values():
        value = send.value
        counts = send.type == "ok" and str(value.get("acks", "all")) != "0" and value.get("key") is not None
        if not counts or (value["topic"], value["partition"]) != read.place:
            continue
        transaction = facts.transaction_of(value["name"])
        if transaction is None or transaction.committed:
            found[value["key"]].append(Value(value["offset"], send))
    for values in found.values():
        values.sort(key=lambda each: each.offset)
    return found


def _key(facts: Facts, name: str) -> str | None:
    send = facts.sends.get(name)
    return None if send is None else send.value.get("key")


def _unknown_tombstone(facts: Facts, read: Read, key: str) -> bool:
    """Whether a tombstone that nobody saw acknowledged may have deleted the key, and have gone itself."""
    return any(
        send.value.get("tombstone") and send.value.get("key") == key and send.value["topic"] == read.topic
        and (send.type == "info" or str(send.value.get("acks", "all")) == "0")
        for send in facts.sends.values()
    ) or any(
        transaction.may_be_committed and not transaction.committed
        and any(send.value.get("tombstone") and send.value.get("key") == key for send in transaction.sends)
        for transaction in facts.transactions.values()
    )  # fmt: skip


def _too_early(facts: Facts, read: Read, last: Value) -> bool:
    kept = [int(each) for each in facts.topic(read.topic).set_to("delete.retention.ms")] or [DELETE_RETENTION_MS]
    age = (read.operation.began - last.send.began) * 1000
    return not facts.clock_jumped and age < min(kept)


def brought_back(facts: Facts) -> Iterator[Anomaly]:
    """What a whole read lacked within its bounds, a later one does not have."""
    lacking: dict[tuple[str, int, str], list[Read]] = defaultdict(list)
    for read in facts.reads:
        if not read.final or read.incarnation is None or facts.losses_of(*read.place):
            continue
        key = (*read.place, read.isolation)
        for before in lacking[key]:
            bounds = before.operation.value
            names = before.names
            back = [
                (offset, name) for offset, name in read.records
                if bounds["log_start"] <= offset < bounds["end"] and name not in names
            ]  # fmt: skip
            if back and before.incarnation == read.incarnation:
                offset, name = back[0]
                what = (
                    f"a whole read of {read.topic}-{read.partition} lacked {name} at @{offset}, and a later one has it"
                )
                shown = [excerpt(each.operation, *read.place, offset) for each in (before, read)]
                yield anomaly("brought-back", what, *shown)
                break
        lacking[key].append(read)
