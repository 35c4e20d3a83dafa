"""Members of groups, of both protocols: they join, read, commit, seek, pause, doze too long, leave and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tagwire.client import EARLIEST, LATEST, Committed, Consumer, OffsetAndMetadata, RebalanceListener
from tagwire.client.aio import AsyncConsumer
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tests.simulation.history import History
from tests.simulation.workload.records import read_of
from tests.simulation.workload.stage import Actor, Phase, Spec, Stage, always

POLL = 0.5
AT_ONCE = 0.001
"""A poll that waits for nothing: where members stand whose partitions are new is not known yet."""


class Consuming(Actor):
    """Reads as a member of a group until everything is over.

    Its spec: group, protocol, topics or pattern, assignors, remote_assignor, instance_id, isolation, auto_commit,
    reset, session_timeout, max_poll_interval, max_poll_records, metadata_max_age, max_wait_ms, pace, quits (after how
    many seconds it leaves for good), and `steps`: how likely each step is, by the name of its method here.
    """

    writes = False

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.group: str = spec["group"]
        self._early = stage.random(f"{self.name}/early")
        self.is_new = False  # whether the last poll has brought partitions
        self.given: dict[TopicPartition, int] = {}  # where each partition stands, of those of which something came

    def options(self) -> dict[str, Any]:
        spec = self.spec
        chosen = {name: spec.get(name) for name in OPTIONS}
        return {
            **{name: value for name, value in chosen.items() if value is not None},
            "offset_reset": spec["reset"],
            "metadata_max_age": spec.get("metadata_max_age", 3.0),
            "max_wait_ms": spec.get("max_wait_ms", 300),
        }

    async def live(self) -> None:
        consumer = AsyncConsumer(self.stage.properties(self.process, self.spec["request_timeout"]), **self.options())
        self.member_of = consumer
        try:
            await self.subscribe(consumer)
            quits = self.history.now + self.spec["quits"] if self.spec.get("quits") else float("inf")
            while self.stage.phase is not Phase.OVER and self.history.now < quits:
                records = await self.poll(consumer)
                if self.is_loading:
                    if self.is_new and not records and "seek" in self.spec["steps"] and self._early.random() < 0.5:
                        await self._seek_at_once(consumer)
                    await self.step(consumer)
                    await self.breathe(self.spec["pace"])
                elif not self.spec["auto_commit"] and not records:  # it has caught up
                    await self.commit(consumer)
            self.is_done = True
            measured = consumer.metrics()["consumer-fetch-manager-metrics"]
            self.note_throttled(self.process, "Fetch", measured["fetch-throttle-time-max"])
        finally:
            await self.close(consumer)

    async def step(self, consumer: AsyncConsumer) -> None:
        """One of the steps that are drawn. One that fails is noted, and the member goes on."""
        steps: dict[str, float] = self.spec["steps"]
        (name,) = self.random.choices(list(steps), list(steps.values()))
        try:
            await getattr(self, f"_{name}")(consumer)
        except (TagwireError, KeyError):  # KeyError: the partition was taken away meanwhile
            return

    # Calls ---------------------------------------------------------------------------------------------------------

    async def subscribe(self, consumer: AsyncConsumer) -> None:
        spec = self.spec
        asked = subscribed(spec)
        listener = Noting(self)
        topics, pattern = spec.get("topics"), spec.get("pattern")
        await self.noted("subscribe", asked, lambda: consumer.subscribe(topics, listener, pattern=pattern))

    async def poll(self, consumer: AsyncConsumer) -> list[Record]:
        """What one poll gives."""
        asked = {"group": self.group, "isolation": self.spec["isolation"]}
        records: list[Record] = []
        self.is_new = False
        is_short = self.is_loading and "seek" in self.spec["steps"] and self._early.random() < 0.3
        timeout = AT_ONCE if is_short else POLL

        async def polled() -> dict[str, Any]:
            records.extend(await consumer.poll(timeout))
            positions = await consumer.positions()
            known = (partition for partition in _of(records) if partition in positions)
            self.given.update((partition, positions[partition].offset) for partition in known)
            member = consumer.group_metadata()
            return {
                "member": member.member_id,
                "generation": member.generation,
                "read": read_of(records, positions),
            }

        await self.noted("poll", asked, polled, lambda found: found, has_no_effect=always)
        return records

    async def commit(self, consumer: AsyncConsumer) -> None:
        offsets = await self.positions(consumer)
        if not offsets:
            return
        try:
            await self.noted("commit", self._as_member(consumer, offsets), lambda: consumer.commit(offsets))
        except TagwireError:
            return

    async def seek(self, consumer: AsyncConsumer, partition: TopicPartition, position: int | Committed) -> None:
        """Goes on elsewhere. Raises KeyError where the partition was taken away meanwhile."""
        names: dict[Any, str] = {EARLIEST: "earliest", LATEST: "latest"}
        offset = "committed" if isinstance(position, Committed) else names.get(position, position)
        asked = {"group": self.group, "topic": partition.topic, "partition": partition.partition, "offset": offset}
        await self.noted("seek", asked, lambda: consumer.seek(partition, position), has_no_effect=always)

    async def close(self, consumer: AsyncConsumer, *, leave: bool | None = None) -> None:
        await self.noted("close", {"group": self.group}, lambda: consumer.close(5.0, leave=leave))

    # Steps ---------------------------------------------------------------------------------------------------------

    async def _nothing(self, consumer: AsyncConsumer) -> None:
        """Polls again."""

    async def _commit(self, consumer: AsyncConsumer) -> None:
        await self.commit(consumer)

    async def _commit_async(self, consumer: AsyncConsumer) -> None:
        offsets = await self.positions(consumer)
        if offsets:
            await self._commit_beside(consumer, offsets)

    async def _commit_often(self, consumer: AsyncConsumer) -> None:
        """Commits again and again, as one does who commits after each record: all but the first wait."""
        for _ in range(self.random.randint(3, 8)):
            await self._commit_async(consumer)

    async def _commit_beside(self, consumer: AsyncConsumer, offsets: Mapping[TopicPartition, int]) -> None:
        op = self.history.invoke(self.process, "commit", **self._as_member(consumer, offsets))

        def done(_: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
            if error is None:
                self.history.ok(op)
            else:
                self.history.info(op, error)

        await consumer.commit_async(offsets, done)

    async def _committed(self, consumer: AsyncConsumer) -> None:
        partitions = sorted(consumer.assignment())
        if partitions:
            await self.noted(
                "committed",
                {"group": self.group, "partitions": [list(each) for each in partitions]},
                lambda: consumer.committed(partitions),
                lambda found: {
                    "offsets": [[*each, found[each].offset if each in found else None] for each in partitions]
                },
                has_no_effect=always,
            )

    async def _seek(self, consumer: AsyncConsumer) -> None:
        partitions = sorted(consumer.assignment())
        if partitions:
            partition = self.random.choice(partitions)
            if self.random.random() < 0.3:  # first where nothing is: what a broker says to that comes too late
                await self.seek(consumer, partition, self.given.get(partition, 0) + 100_000)
                await self.sleep(self.random.choice([0.0, 0.01, 0.2]))
            known = self.random.randint(0, self.given.get(partition, 0))
            await self.seek(consumer, partition, self.random.choice([EARLIEST, LATEST, known]))

    async def _seek_back(self, consumer: AsyncConsumer) -> None:
        """Reads something again, which may be gone."""
        read = sorted(partition for partition in consumer.assignment() if self.given.get(partition))
        if read:
            partition = self.random.choice(read)
            await self.seek(consumer, partition, self.random.randrange(self.given[partition]))

    async def _seek_at_once(self, consumer: AsyncConsumer) -> None:
        """Seeks while it is still looked up where its group stands."""
        for partition in sorted(consumer.assignment()):
            if partition not in self.given:
                try:
                    await self.seek(consumer, partition, 0)
                except (TagwireError, KeyError):
                    return

    async def _pause(self, consumer: AsyncConsumer) -> None:
        partitions = sorted(consumer.assignment())
        if partitions:
            chosen = self.random.sample(partitions, self.random.randint(1, len(partitions)))
            await consumer.pause(chosen)
            self.note_paused("pause", chosen)
            try:
                await self.poll(consumer)
                await self.breathe(self.spec["pace"])
            finally:  # a poll may fail, and the member reads on
                self.note_paused("resume", chosen)
                await consumer.resume([each for each in chosen if each in consumer.assignment()])

    async def _consume(self, consumer: AsyncConsumer) -> None:
        """Asks for more than there is, does not wait for it, and reads on: what it has gathered comes again."""
        with suppress(TimeoutError):
            await asyncio.wait_for(consumer.consume(1_000_000), self.random.choice([0.05, 0.3, 1.0]))

    async def _doze(self, consumer: AsyncConsumer) -> None:
        """Stays away from `poll` for about as long as a member may, or longer."""
        await self.sleep(self.spec["max_poll_interval"] * self.random.uniform(0.3, 1.6))

    async def _leave(self, consumer: AsyncConsumer) -> None:
        """Leaves the group and comes back."""
        await self.noted("close", {"group": self.group}, consumer.unsubscribe)
        await self.breathe(3 * self.spec["pace"])
        await self.subscribe(consumer)

    async def _rejoin(self, consumer: AsyncConsumer) -> None:
        await consumer.enforce_rebalance()

    # Parts ---------------------------------------------------------------------------------------------------------

    async def positions(self, consumer: AsyncConsumer) -> dict[TopicPartition, int]:
        """Where each partition stands that is assigned, as far as that is known."""
        found = await consumer.positions()
        return {partition: found[partition].offset for partition in sorted(found)}

    def note_paused(self, f: str, partitions: Sequence[TopicPartition]) -> None:
        """Notes that nothing of these is to be given from now on, or that it may be again."""
        self.history.note(self.process, f, group=self.group, partitions=[list(each) for each in sorted(partitions)])

    def _as_member(self, consumer: AsyncConsumer, offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
        member = consumer.group_metadata()
        told = [[*partition, offset] for partition, offset in offsets.items()]
        return {"group": self.group, "member": member.member_id, "generation": member.generation, "offsets": told}


class Member(Protocol):
    """An actor that is a member of a group, with its consumer.

    Attributes:
        given: where each partition stands, of those of which something came.
        is_new: whether partitions came with the last poll.
    """

    process: str
    history: History
    group: str
    given: dict[TopicPartition, int]
    is_new: bool
    member_of: AsyncConsumer | Consumer


class Noting(RebalanceListener):
    """Notes what comes and goes."""

    def __init__(self, actor: Member) -> None:
        self._actor = actor

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._actor.is_new = bool(partitions)
        self._note("assign", partitions)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("revoke", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, f: str, partitions: Sequence[TopicPartition]) -> None:
        actor = self._actor
        for partition in partitions:
            actor.given.pop(partition, None)
        member = actor.member_of.group_metadata()
        actor.history.note(
            actor.process,
            f,
            group=actor.group,
            member=member.member_id,
            generation=member.generation,
            partitions=[list(each) for each in sorted(partitions)],
        )


OPTIONS = (
    "group",
    "protocol",
    "instance_id",
    "assignors",
    "remote_assignor",
    "session_timeout",
    "heartbeat_interval",
    "max_poll_interval",
    "max_poll_records",
    "auto_commit",
    "auto_commit_interval",
    "isolation",
)

_TOLD = (
    "group",
    "instance_id",
    "topics",
    "pattern",
    "protocol",
    "isolation",
    "reset",
    "auto_commit",
    "session_timeout",
    "max_poll_interval",
)


def subscribed(spec: Spec) -> dict[str, Any]:
    """What histories tell of a member that subscribes."""
    return {name: spec.get(name) for name in _TOLD} | {"assignor": (spec.get("assignors") or [None])[0]}


def _of(records: Sequence[Record]) -> dict[TopicPartition, None]:
    return dict.fromkeys(TopicPartition(record.topic, record.partition) for record in records)
