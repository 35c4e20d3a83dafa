"""The judge finds nothing in what a correct broker may do: histories of a model, one step after another."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.history import History, Operation, Operations
from tests.simulation.judge import judge
from tests.simulation.stories import BOTH, Story

PARTITIONS = 2
PRODUCERS = ("plain", "idempotent", "tx-1", "tx-2")
MEMBERS = ("m-1", "m-2")

STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(PRODUCERS), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("unanswered_send"), st.sampled_from(PRODUCERS), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS[2:]), st.sampled_from(["ok", "info"]), st.booleans()),
    st.tuples(st.just("poll"), st.sampled_from(MEMBERS), st.integers(1, 4)),
    st.tuples(st.just("commit"), st.sampled_from(MEMBERS), st.sampled_from(["ok", "info"])),
    st.tuples(st.just("rebalance"), st.permutations(MEMBERS)),
    st.tuples(st.just("committed")),
    st.tuples(st.just("sample")),
    st.tuples(st.just("kill")),
)


@dataclass
class Model:
    """Two partitions, four producers and a group, as a broker keeps them that never does wrong."""

    story: Story = field(default_factory=Story)
    log: list[list[tuple[str | None, str | None]]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    """Of each partition: name and transaction of each offset; a marker has no name."""
    open: dict[str, str] = field(default_factory=dict)
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    owners: dict[int, str] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    generation: int = 0
    names: int = 0

    def transaction(self, producer: str) -> str | None:
        if not producer.startswith("tx"):
            return None
        if producer not in self.open:
            self.names += 1
            self.open[producer] = f"{producer}.{self.names}"
            self.story.call(producer, "begin", transaction=self.open[producer], transactional_id=producer)
        return self.open[producer]

    def send(self, producer: str, partition: int, end: str = "ok") -> None:
        transaction = self.transaction(producer)
        self.names += 1
        name, kind = f"r{self.names}", "transactional" if transaction else producer
        self.log[partition].append((name, transaction))
        offset = len(self.log[partition]) - 1
        self.story.send(
            name, offset, end=end, process=producer, kind=kind, partition=partition, transaction=transaction
        )
        if end == "info" and kind == "plain":
            self.log[partition].append((name, None))  # it was sent again, and stands twice

    def unanswered_send(self, producer: str, partition: int) -> None:
        self.send(producer, partition, "info")

    def end(self, producer: str, end: str, commit: bool) -> None:
        transaction = self.open.pop(producer, None)
        if transaction is None:
            return
        counts = (self.committed if commit else self.aborted).add
        f = "commit_transaction" if commit else "abort_transaction"
        self.story.call(producer, f, end, transaction=transaction, transactional_id=producer)
        counts(transaction)
        for log in self.log:
            if any(of == transaction for _, of in log):
                log.append((None, transaction))

    def stable(self, partition: int) -> int:
        still = self.open.values()
        log = self.log[partition]
        return next((offset for offset, (_, of) in enumerate(log) if of in still), len(log))

    def records(self, partition: int, start: int, isolation: str) -> list[tuple[int, str]]:
        end = self.stable(partition) if isolation == "read_committed" else len(self.log[partition])
        hidden = self.aborted if isolation == "read_committed" else ()
        found = enumerate(self.log[partition][:end])
        return [(offset, name) for offset, (name, of) in found if name and of not in hidden and offset >= start]

    def poll(self, member: str, most: int) -> None:
        for partition, owner in self.owners.items():
            if owner == member:
                records = self.records(partition, self.positions[partition], "read_committed")[:most]
                self.story.poll(*records, process=member, partition=partition, group="g", generation=self.generation)
                if records:
                    self.positions[partition] = records[-1][0] + 1

    def commit(self, member: str, end: str) -> None:
        offsets = [
            ["t", partition, self.positions[partition]] for partition, owner in self.owners.items() if owner == member
        ]
        self.story.call(member, "commit", end, group="g", member=member, generation=self.generation, offsets=offsets)
        self.offsets |= {partition: offset for _, partition, offset in offsets}

    def rebalance(self, order: list[str]) -> None:
        for partition, owner in self.owners.items():
            self.story.assign(owner, self.generation, partition, f="revoke")
        self.generation += 1
        for partition in range(PARTITIONS):
            self.owners[partition] = order[partition]
            self.positions[partition] = self.offsets.get(partition, 0)
            self.story.assign(order[partition], self.generation, partition)

    def committed_offsets(self) -> None:
        for partition in range(PARTITIONS):
            found = {"offsets": [["t", partition, self.offsets.get(partition)]]}
            self.story.call("admin", "committed", "ok", found, group="g", partitions=[["t", partition]])

    def sample(self) -> None:
        for partition, log in enumerate(self.log):
            still = [[7, 0, self.stable(partition), 0.0]] if self.stable(partition) < len(log) else []
            bounds = {"log_start": 0, "last_stable": self.stable(partition), "high_watermark": len(log)}
            told = {"topic": "t", "partition": partition, "log_end": len(log), "synced": len(log), "open": still}
            self.story.note("broker", "partition_state", node=1, **bounds, **told)

    def kill(self) -> None:
        self.story.note("world", "broker_killed", node=1)
        self.story.note("world", "broker_started", node=1, fsync="batch")

    def finish(self) -> History:
        for producer in list(self.open):
            self.end(producer, "info", False)
        self.story.note("world", "quiet")
        for partition, log in enumerate(self.log):
            for isolation in BOTH:
                records = self.records(partition, 0, isolation)
                self.story.final(*records, end=len(log), partition=partition, isolations=(isolation,))
        return History.parse(self.story.history.lines())


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_nothing_is_found_in_the_history_of_a_correct_broker(steps):
    model = Model()
    model.rebalance(list(MEMBERS))
    for name, *arguments in steps:
        getattr(model, {"committed": "committed_offsets"}.get(name, name))(*arguments)
    assert [anomaly.story() for anomaly in judge(model.finish())] == []


@given(st.lists(STEPS, max_size=40), st.data())
@settings(max_examples=100, deadline=None)
def test_a_record_that_a_correct_broker_would_have_is_missed(steps, data):
    model = Model()
    model.rebalance(list(MEMBERS))
    for name, *arguments in [*steps, ("send", "idempotent", 0)]:
        getattr(model, {"committed": "committed_offsets"}.get(name, name))(*arguments)
    stored = {o.value["name"] for o in _sends(model) if o.type == "ok" and o.value["kind"] == "idempotent"}
    lost = data.draw(st.sampled_from(sorted(stored)))
    for log in model.log:
        log[:] = [(None, None) if name == lost else (name, of) for name, of in log]
    assert "lost-write" in {anomaly.name for anomaly in judge(model.finish())}


def _sends(model: Model) -> list[Operation]:
    return Operations(model.story.history).of("send")
