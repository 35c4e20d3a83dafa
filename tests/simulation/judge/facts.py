"""What a history says, in the form that judges ask for it: sends by name, reads by partition, transactions, topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from tests.simulation.history import Event, History, Operation, Operations

CLOCK_JUMPS = ("clock", "clock_jump")
GROUPS = "__consumer_offsets"
"""Where brokers keep groups and their offsets."""
AT_ONCE = ("cut", "move_leader", "move_coordinator")
"""Faults that nobody ends."""
HANDOVERS = ("node_isolate", "move_leader", "move_coordinator")
"""Faults after which another coordinator may answer; one that is stopped or killed tells of it itself."""
KILLS = ("client_kill", "client_killed")
"""What the nemesis calls that."""

Place = tuple[str, int]
"""Topic and partition."""
Late = tuple[str, str, float, float]
"""What was under way for long, though nothing was wrong: its sender and receiver, and from when until when."""


@dataclass(frozen=True)
class Bounds:
    """How long something may take, in simulated seconds, before it counts as stuck."""

    call: float = 300.0
    """Any call, from its beginning to its completion; a pause of its process comes on top."""
    transaction: float = 15.0
    """Past its own timeout: until its coordinator has ended an open transaction."""
    other_broker: float = 15.0
    """A send to a leader that is there, while another broker is not."""
    takeover: float = 12.0
    """Past its session timeout: until a member knows that its partitions are another's."""
    session: float = 8.0
    """Of members that leave it to the broker."""
    catch_up: float = 20.0
    """Of a group after the last fault, until it has been given what it could read then."""
    rebalance: float = 22.0
    """Of a group after the last fault, until each of its partitions is a member's."""
    heard: float = 5.0
    """Until a member that is awake has noticed that its session is over."""
    undisturbed: float = 10.0
    """Without a fault, until nothing of those before has an effect on who hears from whom."""
    awake: float = 2.0
    """Between two polls of a member that no coordinator takes for one that has left."""
    interval_sync: float = 5.0
    """With fsync=interval: until what was acknowledged is on the disk. A second, if the disk is not slow."""


@dataclass(frozen=True)
class Read:
    """The records of one partition that one call gave."""

    operation: Operation
    topic: str
    partition: int
    isolation: str
    records: list[tuple[int, str]]
    final: bool
    incarnation: int | None

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @cached_property
    def names(self) -> set[str]:
        return {name for _, name in self.records}


@dataclass
class Transaction:
    """A transaction as its producer, or who ended it for that, has seen it."""

    name: str
    transactional_id: str | None = None
    begin: Operation | None = None
    sends: list[Operation] = field(default_factory=list)
    offsets: list[Operation] = field(default_factory=list)
    commits: list[Operation] = field(default_factory=list)
    aborts: list[Operation] = field(default_factory=list)

    @property
    def committed(self) -> bool:
        """A commit was answered: it counts, whatever came after."""
        return any(commit.type == "ok" for commit in self.commits)

    @property
    def may_be_committed(self) -> bool:
        """A commit was asked for, and nobody knows that it came to nothing."""
        return self.committed or any(commit.type == "info" for commit in self.commits)

    @property
    def first_commit(self) -> float:
        """When a commit was first asked for that may have counted; infinite where none was."""
        return min((commit.began for commit in self.commits if commit.type != "fail"), default=float("inf"))

    @property
    def ends(self) -> list[Operation]:
        return sorted(self.commits + self.aborts, key=lambda operation: operation.invoked.index)


@dataclass
class Topic:
    """What was done to the topics of one name."""

    name: str
    creates: list[Operation] = field(default_factory=list)
    deletes: list[Operation] = field(default_factory=list)
    configs: list[tuple[float, dict[str, str | None]]] = field(default_factory=list)

    def set_to(self, config: str) -> list[str]:
        """All values that a configuration ever had, defaults left out."""
        return [str(configs[config]) for _, configs in self.configs if configs.get(config) is not None]

    @property
    def compacted(self) -> bool:
        return any("compact" in policy for policy in self.set_to("cleanup.policy"))

    @property
    def only_compacted(self) -> bool:
        """Compacted, and never a topic whose old segments are deleted."""
        return self.compacted and all(policy == "compact" for policy in self.set_to("cleanup.policy"))

    @property
    def retention_ms(self) -> list[int]:
        return [int(value) for value in self.set_to("retention.ms") if int(value) >= 0]

    @property
    def retention_bytes(self) -> list[int]:
        return [int(value) for value in self.set_to("retention.bytes") if int(value) >= 0]

    def incarnation(self, began: float, ended: float) -> int | None:
        """Which topic of this name a call from `began` to `ended` met; None where it may have met several."""
        if not self.deletes:
            return 0
        since, count = -1.0, 0
        others = []
        for create in self.creates:
            if create.type == "ok" and create.ended <= began:
                since, count = create.began, count + 1
            else:
                others.append(create)
        if any(since <= change.began < ended for changes in (self.deletes, others) for change in changes):
            return None
        return count


class Facts:
    """A history as judges read it."""

    def __init__(self, history: History, bounds: Bounds | None = None, late: Iterable[Late] = ()) -> None:
        self.history = history
        self.late = list(late)
        self.bounds = bounds or Bounds()
        self.operations = Operations(history)
        self.end = history.events[-1].at if history.events else 0.0
        self.quiet = next((operation.began for operation in self.operations.of("quiet")), None)
        self.sends = {operation.value["name"]: operation for operation in self.operations.of("send")}
        self.topics = self._topics()
        unsafe = [event for event in history if event.value.get("fsync", "batch") != "batch"]
        self.losses = [event for event in unsafe if event.f == "power_lost"]
        self._refused_syncs = [event for event in unsafe if event.f == "sync_refused"]
        faults = self.operations.of("fault")
        self.clock_jumped = any(fault.value.get("fault") in CLOCK_JUMPS for fault in faults)
        self.kills = [fault.invoked for fault in faults if fault.value.get("fault") in KILLS]
        self.transactions = self._transactions()
        self.reads = list(self._reads())
        self.finals: dict[tuple[str, int, str], Read] = {
            (read.topic, read.partition, read.isolation): read for read in self.reads if read.final
        }

    def topic(self, name: str) -> Topic:
        return self.topics.get(name) or Topic(name)

    def incarnation(self, operation: Operation, topic: str) -> int | None:
        return self.topic(topic).incarnation(operation.began, operation.ended)

    def transaction_of(self, name: str) -> Transaction | None:
        """That of a record, by the record's name."""
        send = self.sends.get(name)
        of = send.value.get("transaction") if send is not None else None
        return self.transactions[of] if of is not None else None

    def killed(self, process: str, since: float) -> float:
        """When a process was first killed after `since`, else infinite. `name#2` is a later life of `name`, of which a
        kill tells; `name/1` is a thread in `name`."""
        life = process.partition("/")[0]
        return min(
            (kill.at for kill in self.kills if kill.value["target"] == life and kill.at >= since), default=float("inf")
        )

    @cached_property
    def _troubles(self) -> list[tuple[float, float]]:
        """From when until when each fault lasted; what has no end lasts for ever."""
        open_: dict[str, float] = {}
        over: list[tuple[float, float]] = []
        for event in self.history:
            if event.f in ("broker_killed", "broker_stopped", "broker_started", "power_lost"):
                over.append((event.at, event.at))
            elif event.f == "quiet":
                over += [(began, event.at) for began in open_.values()]
                open_.clear()
            elif event.f in ("fault", "heal"):
                key = f"{event.value.get('fault')} {event.value.get('target')} {event.value.get('detail')}"
                began = open_.pop(key, event.at)
                if event.f == "heal" or event.value.get("fault") in AT_ONCE:
                    over.append((began, event.at))
                else:
                    open_[key] = began
        return over + [(began, float("inf")) for began in open_.values()]

    def troubled(self, start: float, end: float) -> bool:
        """Whether any fault lasted at any moment between the two."""
        return any(began <= end and over >= start for began, over in self._troubles)

    @cached_property
    def handovers(self) -> list[float]:
        """When coordinators may have begun to read their state: brokers that started, or any that moved or lost one."""
        ends = [event.at for event in self.history if event.f in ("broker_killed", "broker_stopped", "power_lost")]
        moves = [each.began for each in self.operations.of("fault") if each.value.get("fault") in HANDOVERS]
        return sorted(ends + moves)

    def was_late(self, process: str, start: float, end: float) -> bool:
        """Whether anything to or from a process, or the one that it is in, was under way for long, without a fault,
        between the two."""
        host = process.partition("#")[0]
        return any(
            began <= end and over >= start and any(host == name or host.startswith(f"{name}-") for name in ends)
            for *ends, began, over in self.late
        )

    def losses_of(self, topic: str, partition: int | None = None) -> list[Event]:
        """What may have taken along what a partition had not synced, with an fsync that does not wait for the disk: a
        loss of power, or a sync of its own log that the disk refused. None is any partition of the topic."""
        own = [
            event for event in self._refused_syncs
            if event.value["topic"] == topic and partition in (None, event.value["partition"])
        ]  # fmt: skip
        return self.losses + own

    def loss_between(self, start: float, end: float, topic: str, partition: int | None = None) -> bool:
        """Whether any of those was between the two."""
        return any(start <= loss.at <= end for loss in self.losses_of(topic, partition))

    def may_be_lost(self, send: Operation) -> bool:
        """Whether a loss of power, or a disk that refused to sync its log, may have taken an acknowledged record along,
        by what its fsync promises."""
        return any(
            send.began <= loss.at
            and (
                loss.value["fsync"] == "never"
                or (loss.at - send.ended <= self.bounds.interval_sync and not self._was_committed(send, loss.at))
            )
            for loss in self.losses_of(send.value["topic"], send.value.get("partition"))
        )

    def _was_committed(self, send: Operation, at: float) -> bool:
        """Whether a record's transaction was known to be committed by then: with that it is on the disk."""
        transaction = self.transaction_of(send.value["name"])
        commits = transaction.commits if transaction is not None else ()
        return any(commit.type == "ok" and commit.ended <= at for commit in commits)

    def removed_by_request(self, topic: str, partition: int, offset: int) -> bool:
        """Whether DeleteRecords may have removed what stood at `offset`."""
        return any(
            (request.value["topic"], request.value["partition"]) == (topic, partition)
            and request.type != "fail"
            and (request.value["before"] is None or request.value["before"] < 0 or offset < request.value["before"])
            for request in self.operations.of("delete_records")
        )

    def start_may_move(self, topic: str, partition: int) -> bool:
        """Whether anything may have removed the oldest records of a partition."""
        of = self.topic(topic)
        return bool(
            of.retention_ms
            or of.retention_bytes
            or of.deletes
            or self.losses_of(topic, partition)
            or self.clock_jumped
            or self.removed_by_request(topic, partition, 0)
        )

    def visible(self, read: Read, send: Operation) -> bool:
        """Whether an acknowledged record is one that a read of this isolation has to give, once it is there."""
        transaction = self.transaction_of(send.value["name"])
        return read.isolation == "read_uncommitted" or transaction is None or transaction.committed

    def _topics(self) -> dict[str, Topic]:
        topics: dict[str, Topic] = {}
        for operation in self.operations.of("create_topic", "delete_topic", "alter_config"):
            if operation.type == "fail":
                continue
            name = operation.value["topic"]
            topic = topics.setdefault(name, Topic(name))
            if operation.f == "create_topic":
                topic.creates.append(operation)
            elif operation.f == "delete_topic":
                topic.deletes.append(operation)
            topic.configs.append((operation.began, operation.value.get("configs") or {}))
        return topics

    def _transactions(self) -> dict[str, Transaction]:
        found: dict[str, Transaction] = {}
        calls = ("begin", "send", "send_offsets", "commit_transaction", "abort_transaction", "end_transaction")
        for operation in self.operations.of(*calls):
            name = operation.value.get("transaction")
            if name is None:
                continue
            transaction = found.setdefault(name, Transaction(name))
            transaction.transactional_id = operation.value.get("transactional_id") or transaction.transactional_id
            if operation.f == "begin":
                transaction.begin = operation
            elif operation.f == "send":
                transaction.sends.append(operation)
            elif operation.f == "send_offsets":
                transaction.offsets.append(operation)
            elif operation.f == "commit_transaction" or operation.value.get("commit"):
                transaction.commits.append(operation)
            else:
                transaction.aborts.append(operation)
        return found

    def _reads(self):
        for operation in self.operations.of("poll", "final_read"):
            if operation.type != "ok":
                continue
            final = operation.f == "final_read"
            for part in [operation.value] if final else operation.value["read"]:
                topic = part["topic"]
                # A poll gives what was fetched some time ago, perhaps of the topic that is no more.
                incarnation = self.incarnation(operation, topic) if final or not self.topic(topic).deletes else None
                records = [(offset, name) for offset, name in part["records"]]
                isolation = operation.value["isolation"]
                yield Read(operation, topic, part["partition"], isolation, records, final, incarnation)


def by_place(reads: list[Read]) -> dict[Place, list[Read]]:
    """Reads of each partition, in their order."""
    found: dict[Place, list[Read]] = defaultdict(list)
    for read in reads:
        found[read.place].append(read)
    return found


def told(events: list[Event], start: float, end: float, *names: str) -> list[Event]:
    """What happened to brokers between two moments."""
    names = names or ("broker_killed", "power_lost", "broker_started")
    return [event for event in events if event.f in names and start <= event.at <= end]
