"""A partition's batches, by their headers, and what its leader says of them: each of its answers is worked out anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from tests.simulation.history import Event, Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

SEQUENCES: Final = 1 << 31
FORGOTTEN_S: Final = 80_000.0
"""A producer whose records say to be so old may be forgotten: it then begins anew."""


@dataclass(frozen=True)
class Batch:
    """A row of a `final_log`."""

    base: int
    last: int
    leader_epoch: int
    producer_id: int
    epoch: int
    sequence: int
    count: int
    what: str
    age: float

    @property
    def is_marker(self) -> bool:
        return self.what in ("commit", "abort")

    @property
    def last_sequence(self) -> int:
        return (self.sequence + self.count - 1) % SEQUENCES

    def __str__(self) -> str:
        return f"@{self.base} of producer {self.producer_id} in epoch {self.epoch}"


@dataclass
class Producer:
    """What a log says of a producer."""

    epoch: int
    last_sequence: int = -1
    begun: int = -1


@dataclass
class Worked:
    """What follows from a log's batches.

    Attributes:
        aborted: (producer id, first offset, offset of its marker) of transactions.
        stable: of each of these, by producer id and first offset, the last stable offset once it had ended.
    """

    producers: dict[int, Producer] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    stable: dict[tuple[int, int], int] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        if batch.producer_id < 0 or batch.what == "emptied":
            return
        known = self.producers.get(batch.producer_id)
        if known is None or batch.epoch > known.epoch:
            known = Producer(batch.epoch, begun=-1 if known is None else known.begun)
            self.producers[batch.producer_id] = known
        if batch.is_marker:
            begun, known.begun = known.begun, -1
            if batch.what == "abort" and begun >= 0:
                stable = self.first_open
                self.aborted.append((batch.producer_id, begun, batch.base))
                self.stable[batch.producer_id, begun] = batch.last + 1 if stable is None else stable
            return
        known.last_sequence = batch.last_sequence
        if batch.what == "t" and known.begun < 0:
            known.begun = batch.base

    @property
    def first_open(self) -> int | None:
        return min((each.begun for each in self.producers.values() if each.begun >= 0), default=None)


@dataclass(frozen=True)
class Log:
    """A `final_log`. is_whole: nothing of it was ever deleted or compacted, nor another topic of its name."""

    operation: Operation
    where: str
    batches: list[Batch]
    worked: Worked
    is_compacted: bool
    is_whole: bool

    @property
    def value(self) -> dict[str, Any]:
        return self.operation.value

    def shown(self, *batches: Batch) -> list[Event]:
        """The call that told it, with the batches that are in question alone."""
        near = [[*vars(batch).values()] for batch in batches]
        return [replace(event, value=event.value | {"batches": near} if "batches" in event.value else event.value)
                for event in self.operation.events]  # fmt: skip


def logs(facts: Facts) -> Iterator[Log]:
    """What was told of partitions."""
    for operation in facts.operations.of("final_log"):
        value = operation.value
        if operation.type != "ok" or value.get("batches") is None:
            continue
        batches = [Batch(*row) for row in value["batches"]]
        worked = Worked()
        for batch in batches:
            worked.take(batch)
        topic = facts.topic(value["topic"])
        is_whole = value["log_start"] == 0 and not topic.compacted and not topic.deletes
        yield Log(operation, f"{value['topic']}-{value['partition']}", batches, worked, topic.compacted, is_whole)


def in_order(facts: Facts) -> Iterator[Anomaly]:
    """Offsets follow each other without a gap, unless compaction took some, and leader epochs never go back."""
    for log in logs(facts):
        for before, after in pairwise(log.batches):
            if after.base <= before.last or (after.base != before.last + 1 and not log.is_compacted):
                what = f"{log.where} has a batch up to @{before.last}, and the next one from @{after.base} on"
                yield anomaly("offsets-out-of-order", what, log.shown(before, after))
                break
            if after.leader_epoch < before.leader_epoch:
                what = f"{log.where}@{after.base} is of leader epoch {after.leader_epoch}, after {before.leader_epoch}"
                yield anomaly("leader-epoch-back", what, log.shown(before, after))
                break
        if log.batches and log.value["end"] <= log.batches[-1].last:
            what = f"{log.where} ends at {log.value['end']}, and has a batch up to @{log.batches[-1].last}"
            yield anomaly("offsets-out-of-order", what, log.shown(log.batches[-1]))


def sequences(facts: Facts) -> Iterator[Anomaly]:
    """Of a producer's epoch each batch goes on where the one before it ended; an older epoch never comes back, and
    a transaction is of one epoch."""
    for log in logs(facts):
        if facts.losses_of(log.value["topic"], log.value["partition"]):
            continue  # what is lost may be a producer's id, too
        latest: dict[int, Batch] = {}
        open_: dict[int, Batch] = {}
        old = {batch.producer_id for batch in log.batches if batch.age > FORGOTTEN_S}
        foreign = {  # who may begin where it likes
            each.value.get("producer_id")
            for each in facts.operations.of("init_producer")
            if each.value.get("kind") == "foreign"
        }
        for batch in log.batches:
            before = latest.get(batch.producer_id)
            if batch.producer_id < 0 or batch.what == "emptied":
                continue
            if before is not None and batch.epoch < before.epoch:
                what = f"{log.where} has a batch {batch}, after one in epoch {before.epoch}"
                yield anomaly("fenced-write", what, log.shown(before, batch))
                break
            begun = open_.get(batch.producer_id)
            if begun is not None and not batch.is_marker and batch.epoch != begun.epoch:
                what = f"{log.where} has a batch {batch}, whose transaction began in epoch {begun.epoch}"
                yield anomaly("fenced-write", what, log.shown(begun, batch))
                break
            if batch.is_marker:
                open_.pop(batch.producer_id, None)
                if before is None or batch.epoch > before.epoch:
                    latest.pop(batch.producer_id, None)
                continue
            if batch.what == "t":
                open_.setdefault(batch.producer_id, batch)
            latest[batch.producer_id] = batch
            begins = before is None or batch.epoch > before.epoch
            due = 0 if before is None or begins else (before.last_sequence + 1) % SEQUENCES
            # Of one whose first batches are gone nobody knows with which it began.
            is_unknown = batch.producer_id in old or facts.clock_jumped or (begins and not log.is_whole)
            is_unknown |= begins and batch.producer_id in foreign
            if is_unknown or log.is_compacted or batch.sequence == due:
                continue
            what = f"{log.where} has a batch {batch} from sequence {batch.sequence} on, and {due} was due"
            yield anomaly("sequence-out-of-order", what, log.shown(*filter(None, [before, batch])))
            break


def transactions(facts: Facts) -> Iterator[Anomaly]:
    """The last stable offset is where the first open transaction begins, and readers of committed records are told of
    each transaction that was aborted where they read."""
    for log in logs(facts):
        first, end = log.worked.first_open, log.value["end"]
        due = end if first is None else max(first, log.value["log_start"])
        for told in {log.value["stable"], log.value["listed"]}:
            if told < log.value["log_start"]:
                what = f"{log.where} is told to be stable up to {told}, and starts at {log.value['log_start']}"
                yield anomaly("log-start-past-stable", what, log.shown())
            elif told > due:
                what = f"{log.where} is told to be stable up to {told}, and a transaction is open from {due} on"
                yield anomaly("stable-passes-open", what, log.shown(*[b for b in log.batches if b.base == due]))
            elif told < due and log.is_whole:
                what = f"{log.where} is told to be stable up to {told}, and nothing is open before {due}"
                yield anomaly("stable-stands-still", what, log.shown(*log.batches[-1:]))
        for start, upto, _ in log.value["aborted"]:
            if upto > max(start, log.value["stable"]):
                what = f"{log.where} is stable up to {log.value['stable']}, and who reads committed records is given"
                what += f" what is before {upto}"
                yield anomaly("stable-passes-open", what, log.shown(*[b for b in log.batches if b.last == upto - 1]))
                break
        yield from _aborted(log)


def _aborted(log: Log) -> Iterator[Anomaly]:
    for start, upto, told in log.value["aborted"]:
        said = {tuple(each) for each in told}
        for producer_id, first, marker in log.worked.aborted:
            if marker < start or first >= upto:
                continue
            is_told = (producer_id, first) in said if log.is_whole else any(
                other == producer_id and begun <= first for other, begun in said
            )  # fmt: skip
            if not is_told:
                what = f"who reads {log.where} from {start} to {upto} is not told that producer {producer_id} has"
                what += f" aborted what is from @{first} on"
                shown = [batch for batch in log.batches if batch.base in (first, marker)]
                yield anomaly("abort-untold", what, log.shown(*shown))
                return
        known = {(producer_id, first) for producer_id, first, _ in log.worked.aborted}
        if log.is_whole and (more := sorted(said - known)):
            what = f"who reads {log.where} from {start} on is told that producer {more[0][0]} has aborted what is"
            what += f" from @{more[0][1]} on, which it has not"
            yield anomaly("abort-untold", what, log.shown(*[b for b in log.batches if b.base == more[0][1]]))
            return


def attributes(facts: Facts) -> Iterator[Anomaly]:
    """A producer with a transactional id writes in transactions alone, and a batch stays what it was."""
    ids = {
        each.value.get("producer_id")
        for each in facts.operations.of("init_producer")
        if each.type == "ok" and each.value.get("transactional_id") and not facts.losses
    } - {None}
    for log in logs(facts):
        for batch in log.batches:
            if batch.producer_id in ids and not batch.what:
                what = f"{log.where} has a batch {batch} that is of no transaction, as none of this producer's was"
                yield anomaly("transaction-forgotten", what, log.shown(batch))
                return


def producers(facts: Facts) -> Iterator[Anomaly]:
    """What a partition knows of producers is what its batches say."""
    for log in logs(facts):
        if log.value.get("producers") is None or facts.clock_jumped:
            continue
        if log.is_compacted and log.value["log_start"] == 0 and not facts.losses:
            yield from _kept(log)
        if not log.is_whole:
            continue
        told = {row[0]: Producer(*row[1:]) for row in log.value["producers"]}
        for producer_id, due in log.worked.producers.items():
            if any(batch.producer_id == producer_id and batch.age > FORGOTTEN_S for batch in log.batches):
                continue
            if told.get(producer_id) != due:
                what = f"{log.where} has of producer {producer_id} {told.get(producer_id)}, and its batches say {due}"
                of = [batch for batch in log.batches if batch.producer_id == producer_id]
                yield anomaly("producer-forgotten", what, log.shown(*of[-2:]))
                break


def _kept(log: Log) -> Iterator[Anomaly]:
    """Compaction leaves each producer's last batch, if need be without its records: who has the batches alone knows
    from it which number comes next."""
    for producer_id, epoch, last, _ in log.value["producers"]:
        of = [batch for batch in log.batches if batch.producer_id == producer_id]
        sent = [batch for batch in of if batch.epoch == epoch and not batch.is_marker and batch.what != "emptied"]
        if last >= 0 and not any(batch.last_sequence == last for batch in sent):
            what = f"producer {producer_id} has come to {last} in epoch {epoch} of {log.where}, and no batch says so"
            yield anomaly("producer-forgotten", what, log.shown(*of[-2:]))
            return


def epochs(facts: Facts) -> Iterator[Anomaly]:
    """A leader epoch ends where the next one begins, and the last one where the log does."""
    for log in logs(facts):
        for epoch, told, end in log.value["epochs"]:
            of = [batch for batch in log.batches if batch.leader_epoch == epoch]
            later = [batch for batch in log.batches if batch.leader_epoch > epoch]
            most = max(later[0].base if later else log.value["end"], log.value["log_start"])
            least = of[-1].last + 1 if log.is_compacted else most
            if told != epoch or not least <= end <= most:
                what = f"leader epoch {epoch} of {log.where} is told to end at {end} (as {told}), and ends at {most}"
                yield anomaly("epoch-end-wrong", what, log.shown(of[-1], *later[:1]))
                break


LEFT: Final = 1
"""How many files are left of what is just being deleted, one segment after another."""


def files(facts: Facts) -> Iterator[Anomaly]:
    """What is on the disk in the end is whole, and each index says what the batches say."""
    whole = {(log.value["topic"], log.value["partition"]): log for log in logs(facts) if log.is_whole}
    for seen in facts.operations.of("files"):
        value = seen.value
        where = f"{value['topic']}-{value['partition']}"
        for fault in value["faults"][:1]:
            yield anomaly("broken-files", f"of {where}, {fault}", seen)
        left = value.get("left", ())
        if len(left) > LEFT and not _may_be_left(facts):
            what = f"{where} has what was noted of producers @{', @'.join(map(str, left))} of segments that are gone"
            yield anomaly("broken-files", what, seen)
        log = whole.get((value["topic"], value["partition"]))
        for producer_id, first, last, stable in value["aborted"] if log is not None else ():
            due = log.worked.stable.get((producer_id, first))
            if due is not None and stable != due:
                what = f"the index of {where} says of what producer {producer_id} has aborted from @{first} to @{last}"
                what += f" that it was stable up to {stable} then, and that was {due}"
                yield anomaly("broken-files", what, seen, log.shown(*[b for b in log.batches if b.base == first]))
                break


def _may_be_left(facts: Facts) -> bool:
    """Whether a disk has refused to remove a file: it goes at the next start."""
    details = [fault.value.get("detail") or {} for fault in facts.operations.of("fault")]
    return any(detail.get("operation") == "remove" for detail in details)
