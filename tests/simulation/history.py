"""What happened in a run: the calls and their answers, in the form of Jepsen's histories, and as JSON lines.

An event has a process (who: a producer, a member, an admin, a broker, the nemesis), a type, what was called (`f`), a
value and the time. `invoke` begins a call; its completion is `ok` (it took effect), `fail` (it is known to have had
none) or `info` (nobody knows: a lost answer, a timeout, a process that died). What nobody calls (a rebalance, a fault,
a sample) is one `info` event.
Unlike Jepsen's, a process may have several calls open, as a producer has sends: `call` is the index of the event that
began it.

What may stand in `value` says `FIELDS`, for each `f`. A completion repeats nothing: `Operation.value` is both together.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

Type = Literal["invoke", "ok", "fail", "info"]
Value = dict[str, Any]
"""JSON: strings, numbers, booleans, None, lists and dicts of these."""

FIELDS: dict[str, tuple[str, str]] = {
    # Producers. `name`: unique in the whole run, and carried by the record (one without a payload: in a header).
    # `kind`: plain, idempotent or transactional; `transaction`: a name of the workload's, unique in the run.
    # `source`: the name of the record that this one was made of, in a consume-transform-produce loop.
    "init_producer": ("kind acks transactional_id transaction_timeout", "producer_id epoch"),
    # One of another make has a transactional id, and leaves what it begins open for as long as it likes.
    "own": ("transactional_id producer_id transaction_timeout", ""),
    # `client_id`, `bytes`: of one whose rate is bounded, under which it is, and how long the record's value is.
    "send": (
        "topic partition key name tombstone kind acks transaction source client_id bytes",
        "topic_id partition offset",
    ),
    "begin": ("transaction transactional_id", ""),
    "commit_transaction": ("transaction transactional_id", ""),
    "abort_transaction": ("transaction transactional_id", ""),
    # `offsets`: [[topic, partition, offset], ...]; of `committed` and `list_offsets` with None where there is none.
    "send_offsets": ("transaction transactional_id group member generation offsets", ""),
    "end_transaction": ("transaction transactional_id producer_id epoch commit", ""),
    # Members. `partitions`: [[topic, partition], ...]; `topics` names; `times` in seconds.
    "subscribe": (
        "group instance_id topics pattern protocol assignor isolation reset auto_commit session_timeout"
        " max_poll_interval",
        "",
    ),
    "assign": ("group member generation partitions", "positions"),
    "revoke": ("group member generation partitions", ""),
    "lost": ("group member generation partitions", ""),
    "close": ("group", ""),
    # `read`: [{topic, topic_id, partition, records: [[offset, name], ...], position}, ...]: what was given,
    # in that order, and where the consumer stands then.
    "poll": ("group isolation", "member generation read"),
    "seek": ("group topic partition offset", ""),
    "pause": ("group partitions", ""),
    "resume": ("group partitions", ""),
    "commit": ("group member generation offsets", ""),
    "committed": ("group partitions", "offsets"),
    # `spec`: earliest, latest, max_timestamp or a number of milliseconds.
    "list_offsets": ("isolation spec partitions", "offsets"),
    # Admin.
    "create_topic": ("topic partitions configs", "topic_id"),
    "delete_topic": ("topic topic_id", ""),
    "create_partitions": ("topic count", ""),
    "delete_records": ("topic partition before", "log_start"),
    "alter_config": ("topic configs", ""),
    "alter_group_offsets": ("group offsets", ""),
    "delete_group_offsets": ("group partitions", ""),
    "delete_group": ("group", ""),
    "abort_producer": ("topic partition producer_id epoch", ""),
    # Client quotas. `entity`: [[type, name], ...], where "" is the default; `quotas`: {name: limit}, None for none; of
    # `describe_quotas`: [[entity, quotas], ...].
    "alter_quotas": ("entity quotas", ""),
    "describe_quotas": ("", "quotas"),
    # What a client has been told at most, in milliseconds, when its work is over.
    "throttled": ("client_id api most_ms", ""),
    # So many bytes of values, which a client under a quota has written or read when nothing else was wrong. `bound`: in
    # bytes a second, None where it has no quota; `ahead`: how many bytes may be on their way at once; `lifted`: after
    # how many seconds the quota was taken away, None where it was not; `slack`: seconds that the way takes at most.
    "took": ("client_id quota bound bytes ahead lifted slack", ""),
    # The exactly-once sink: `rows` are names of records, as the source gave them for this micro-batch of a query.
    # `is_disturbed`: whether its driver may be stopped meanwhile. `age`: of what is decided, since it was prepared.
    "sink_batch": ("sink query batch topic rows driver transaction_timeout is_disturbed", ""),
    "sink_decide": ("sink query batch age", ""),
    "sink_decided": ("sink query batch age", ""),
    # What a step of a driver ends with for which nobody waits any more: `error`, as of calls.
    "sink_told": ("sink query transaction_timeout error", ""),
    # What happens to brokers. `fsync`: batch, interval, never.
    "broker_started": ("node fsync release settings", "took"),
    "broker_stopped": ("node", ""),
    "broker_killed": ("node", ""),
    "power_lost": ("node fsync", ""),
    # The disk refused to sync a segment of a log: what was not synced of it is there or not.
    "sync_refused": ("node fsync topic partition", ""),
    "broker_paused": ("node seconds", ""),
    # A coordinator takes an EndTxn whose client has given it up.
    "late_end": ("node transactional_id producer_id epoch commit version", ""),
    # A coordinator takes what a member commits, in the generation, or member epoch, in which it was sent.
    "commit_taken": ("node group member generation offsets", ""),
    # Any other fault, and its end; `quiet`: from here on there are none, and all that waits has to go on.
    "fault": ("fault target seconds detail", ""),
    "heal": ("fault target detail", ""),
    "quiet": ("", ""),
    # Samples. `open`: [[producer_id, epoch, first offset, since which second], ...]; `synced`: the end of what is on
    # the disk; `size`: of the log, in bytes; `leader`: the node, of a cluster; `phase`: start, run or end.
    "partition_state": (
        "node leader topic topic_id partition log_start last_stable high_watermark log_end synced offline open size",
        "",
    ),
    "resources": ("node phase memory tasks threads descriptors", ""),
    # When everything is over: `more`: {class and attribute: [how many things it held, or its number, and the same
    # after a restart]}; `of_transactions`: what it held of those, in the same way.
    "kept": ("node more of_transactions", ""),
    "logged": ("node logger level message error", ""),
    # A whole partition after `quiet`, from its log start to its end by `isolation`; `records`: [[offset, name], ...].
    # `sought`: from an offset, up to another, the records that were given; `timed`: a time, the offset that was told
    # for it, and that of the first record that is not older; `newest`: the offset that was told for the newest record,
    # and the first of those that are.
    "final_read": ("topic topic_id partition isolation", "log_start end records sought timed newest"),
    # A partition as its leader has it at one moment; see `workload.log_auditing`. Nothing where it never stood still.
    "final_log": ("topic topic_id partition", "log_start batches end stable listed producers aborted epochs"),
    # What a request was answered that is to be refused: `answers` are names of errors, or numbers; `about`: what it is.
    "probe": ("node api about answers", "answer"),
    # ACLs: [type, name, pattern, principal, host, operation, permission], by their numbers; of filters None is all of
    # them. `deleted`: what they meant.
    "create_acls": ("acls", ""),
    "delete_acls": ("filters", "deleted"),
    "describe_acls": ("", "acls"),
    # A user's secret by its number, None for a user who is deleted; `answer`: whether they came in.
    "set_user": ("user secret", ""),
    "logged_in": ("user secret", "answer"),
    # What a user was answered. `needs`: [[alternatives, error], ...], in which order they are asked for: what the user
    # has to be allowed one of, each [operation, type, name], None for any name, and what is said where they are not;
    # `answers`: what is said to who is allowed all of it.
    "asked": ("user node api about needs answers", "answer"),
    # Of which names a user was told; `among`: [[name, alternatives], ...].
    "listed": ("user node api about needs among", "shown"),
    # When nobody asks for anything: `offsets`: [[group, topic, partition, offset], ...]; `transactions`:
    # [[transactional_id, producer_id, epoch, state], ...], None where brokers do not say; `producers`: [[topic,
    # partition, producer_id, epoch, last sequence], ...], likewise; `moment`: before or after the last restart, or
    # later.
    "remembered": ("moment", "offsets transactions producers"),
    # When everything is over: `faults` of a partition's files, in words; `aborted`: [[producer_id, first offset, last
    # offset, last stable offset], ...] of its transaction indexes;
    # `left`: offsets of what was noted of producers where segments began that are gone.
    "files": ("topic partition faults aborted left", ""),
    # After `quiet`: `transactions`: [[transactional_id, producer_id, state], ...]; `members`: {member: partitions}
    "list_transactions": ("", "transactions"),
    "describe_group": ("group", "state members offsets"),
    # After `quiet`, all that a topic is set to, with defaults.
    "describe_configs": ("topic", "configs"),
}
"""Of each `f`: what its invocation (or lone event) may tell, and what its completion may add.

`topic_id` is the id's text, where it is known. `error`, of a completion that is not `ok`: {type, code, message}, the
class of the exception with its module, the name of the protocol's error or None, and its text.
"""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_ASKED = {f: frozenset(asked.split()) for f, (asked, _) in FIELDS.items()}
_ANSWERED = {f: frozenset(f"{asked} {answered} error".split()) for f, (asked, answered) in FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history. `at`: simulated seconds since the run began; `call`: the event that began the call."""

    index: int
    at: float
    process: str
    type: Type
    f: str
    value: Value
    call: int

    def line(self) -> str:
        """JSON, the same bytes for the same event: fields in this order, those of `value` sorted."""
        return (
            f'{{"index":{self.index},"at":{_encode(round(self.at, 6))},"process":{_encode(self.process)},'
            f'"type":"{self.type}","f":"{self.f}","call":{self.call},"value":{_encode(self.value)}}}'
        )

    def __str__(self) -> str:
        told = " ".join(f"{name}={_short(part)}" for name, part in self.value.items() if part is not None)
        return f"{self.index:>6} {self.at:>10.3f}s  {self.process:<14} {self.type:<6} {self.f:<18} {told}"


def _short(part: object) -> str:
    text = part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))
    return text if len(text) <= 160 else f"{text[:120]}…{text[-30:]}"


@dataclass(frozen=True)
class Operation:
    """A call with its completion, which is None where none came before the history ended."""

    invoked: Event
    completed: Event | None

    @property
    def type(self) -> Type:
        """How it ended; a call that never did is `info`."""
        return "info" if self.completed is None else self.completed.type

    @property
    def f(self) -> str:
        return self.invoked.f

    @property
    def process(self) -> str:
        return self.invoked.process

    @cached_property
    def value(self) -> Value:
        """What was asked, and what was answered."""
        return self.invoked.value if self.completed is None else {**self.invoked.value, **self.completed.value}

    @property
    def events(self) -> list[Event]:
        return [self.invoked] if self.completed in (None, self.invoked) else [self.invoked, self.completed]

    @property
    def began(self) -> float:
        return self.invoked.at

    @property
    def ended(self) -> float:
        """When its answer came; infinite where none did."""
        return float("inf") if self.completed is None else self.completed.at


class History:
    """Events in the order in which they happened. `now` tells the time of those that are added."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)
        self._now = now
        self._indexes = itertools.count(self.events[-1].index + 1 if self.events else 0)
        self._open: dict[int, Event] = {event.index: event for event in self.events if event.type == "invoke"}

    @property
    def now(self) -> float:
        """The time that an event has that is added now."""
        return self._now()

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def invoke(self, process: str, f: str, **value: Any) -> int:
        """Begins a call; the number is for `ok`, `fail` or `info`, one of which ends it."""
        event = self._add(process, "invoke", f, value, None)
        self._open[event.index] = event
        return event.index

    def ok(self, call: int, **value: Any) -> Event:
        """The call took effect."""
        return self._complete(call, "ok", value)

    def fail(self, call: int, error: BaseException | None = None, **value: Any) -> Event:
        """The call is known to have had no effect."""
        return self._complete(call, "fail", value | ({} if error is None else {"error": told(error)}))

    def info(self, call: int, error: BaseException | None = None, **value: Any) -> Event:
        """Nobody knows whether the call had an effect."""
        return self._complete(call, "info", value | ({} if error is None else {"error": told(error)}))

    def note(self, process: str, f: str, **value: Any) -> Event:
        """What nobody called: a rebalance, a fault, a sample."""
        return self._add(process, "info", f, value, None)

    def lines(self) -> Iterator[str]:
        return (event.line() for event in self.events)

    def write(self, path: Path) -> None:
        """JSON lines, in UTF-8."""
        path.write_text("".join(f"{line}\n" for line in self.lines()), "utf-8")

    @classmethod
    def parse(cls, lines: Iterable[str]) -> History:
        """From the lines that `lines` gave."""
        return cls(events=[Event(**json.loads(line)) for line in lines if line.strip()])

    @classmethod
    def read(cls, path: Path) -> History:
        """From a file that `write` wrote."""
        return cls.parse(path.read_text("utf-8").splitlines())

    def _complete(self, call: int, type: Type, value: Value) -> Event:
        begun = self._open.pop(call, None)
        if begun is None:
            raise ValueError(f"call {call} is not open")
        return self._add(begun.process, type, begun.f, value, call)

    def _add(self, process: str, type: Type, f: str, value: Value, call: int | None) -> Event:
        known = (_ASKED if type == "invoke" else _ANSWERED).get(f)
        if known is None:
            raise ValueError(f"{f!r} is none of {', '.join(FIELDS)}")
        if unknown := sorted(value.keys() - known):
            raise ValueError(f"{type} {f} has no {', '.join(unknown)}; it has {', '.join(sorted(known))}")
        value = json.loads(json.dumps(value))  # as it is read again, and whatever becomes of the caller's lists
        index = next(self._indexes)
        event = Event(index, round(self._now(), 6), process, type, f, value, index if call is None else call)
        self.events.append(event)
        return event


def told(error: BaseException) -> Value:
    """An exception, as histories keep it: {type, code, message}."""
    code = getattr(getattr(error, "error", None), "name", None)
    return {"type": f"{type(error).__module__}.{type(error).__qualname__}", "code": code, "message": str(error)[:500]}


class Operations:
    """A history's calls, with their answers, in the order in which they were begun; lone events are calls, too."""

    def __init__(self, history: History) -> None:
        self.history = history
        completed = {event.call: event for event in history if event.type != "invoke"}
        self.all = [Operation(event, completed.get(event.index)) for event in history if event.call == event.index]
        self._by_f: dict[str, list[Operation]] = {}
        for operation in self.all:
            self._by_f.setdefault(operation.f, []).append(operation)

    def of(self, *names: str) -> list[Operation]:
        """Those whose `f` is one of `names`."""
        if len(names) == 1:
            return self._by_f.get(names[0], [])
        return sorted((o for name in names for o in self._by_f.get(name, [])), key=lambda o: o.invoked.index)
