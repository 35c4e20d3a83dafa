"""How stories are told: a history in few words, a second for each event, and what it shows."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.history import History

BOTH = ("read_uncommitted", "read_committed")


class Story:
    """Tells a history, in few words."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.history = History(lambda: self.clock)

    def call(self, process: str, f: str, end: str | None = "ok", answer: dict | None = None, **asked) -> None:
        call = self.begin(process, f, **asked)
        if end is not None:
            self.end(call, end, **(answer or {}))

    def begin(self, process: str, f: str, **asked) -> int:
        self.clock += 1
        return self.history.invoke(process, f, **asked)

    def end(self, call: int, outcome: str = "ok", /, **answer) -> None:
        self.clock += 1
        self.history._complete(call, outcome, answer)

    def note(self, process: str, f: str, **value) -> None:
        self.clock += 1
        self.history.note(process, f, **value)

    def wait(self, seconds: float) -> None:
        self.clock += seconds

    def send(
        self,
        name: str,
        offset: int | None = None,
        *,
        end: str | None = "ok",
        process: str = "p",
        topic: str = "t",
        partition: int = 0,
        kind: str = "idempotent",
        acks: str = "all",
        **more,
    ) -> None:
        answer = {"partition": partition, "offset": offset} if end == "ok" else {}
        asked = {"topic": topic, "name": name, "kind": kind, "acks": acks, "partition": partition, **more}
        self.call(process, "send", end, answer, **asked)

    def poll(
        self,
        *records: tuple[int, str],
        process: str = "c",
        topic: str = "t",
        partition: int = 0,
        isolation: str = "read_committed",
        group: str | None = None,
        epoch: int | None = None,
        **more,
    ) -> None:
        read = [{"topic": topic, "partition": partition, "records": records}]
        if epoch is not None:
            read[0] |= {"position": records[-1][0] + 1, "epoch": epoch}
        self.call(process, "poll", "ok", {"read": read, **more}, group=group, isolation=isolation)

    def final(
        self,
        *records: tuple[int, str],
        start: int = 0,
        end: int | None = None,
        topic: str = "t",
        partition: int = 0,
        isolations: tuple[str, ...] = BOTH,
    ) -> None:
        last = records[-1][0] + 1 if records else start
        answer = {"log_start": start, "end": last if end is None else end, "records": records}
        for isolation in isolations:
            self.call("reader", "final_read", "ok", answer, topic=topic, partition=partition, isolation=isolation)

    def transaction(
        self,
        name: str,
        *records: tuple[str, int],
        commit: str | None = None,
        abort: str | None = None,
        process: str = "p",
        **more,
    ) -> None:
        self.call(process, "begin", transaction=name, transactional_id="id")
        for record, offset in records:
            self.send(record, offset, process=process, kind="transactional", transaction=name, **more)
        for end, f in ((commit, "commit_transaction"), (abort, "abort_transaction")):
            if end is not None:
                self.call(process, f, end, transaction=name, transactional_id="id")

    def assign(
        self, process: str, generation: int | None = None, partition: int = 0, f: str = "assign", **more
    ) -> None:
        self.note(process, f, group="g", generation=generation, member=process, partitions=[["t", partition]], **more)

    def commit(self, offset: int, *, process: str = "c", end: str | None = "ok", **more) -> None:
        self.call(process, "commit", end, group="g", offsets=[["t", 0, offset]], **more)

    def committed(self, offset: int | None) -> None:
        self.call("admin", "committed", "ok", {"offsets": [["t", 0, offset]]}, group="g", partitions=[["t", 0]])

    def create(self, topic: str = "t", **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.call("admin", "create_topic", topic=topic, partitions=1, configs=named)

    def state(self, **value) -> None:
        self.note("broker-1", "partition_state", node=1, topic="t", partition=0, **value)


Telling = Callable[[Story], None]
PLANTED: dict[str, list[Telling]] = {}
INNOCENT: list[Telling] = []


def planted(name: str) -> Callable[[Telling], Telling]:
    def add(telling: Telling) -> Telling:
        PLANTED.setdefault(name, []).append(telling)
        return telling

    return add


def innocent(telling: Telling) -> Telling:
    INNOCENT.append(telling)
    return telling
