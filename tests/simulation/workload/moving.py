"""Consume, transform, produce: what is read, what is made of it and how far it was read are one transaction."""

from __future__ import annotations

from tagwire.client import Committed, GroupMetadata
from tagwire.client.aio import AsyncConsumer, AsyncProducer
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tests.simulation.workload.consuming import Consuming
from tests.simulation.workload.records import name_of
from tests.simulation.workload.stage import Phase, Spec, Stage
from tests.simulation.workload.transacting import Transacting


class Moving(Transacting):
    """Writes a record to `target` for each that it reads as a member of a group.

    Its spec: that of `Transacting` without a count, and `consumer`, that of a `Consuming` which commits nothing by
    itself; target, a topic; holds: how likely it is that it works for long, and polls meanwhile with all of its
    partitions paused, so that it stays a member.
    """

    writes = False

    async def live(self) -> None:
        self.sent = self.begun = 0
        reading = _Reading(self.stage, {"name": self.name, **self.spec["consumer"]}, self.process)
        properties = self.stage.properties(self.process, self.spec["request_timeout"])
        producer = AsyncProducer(properties, **self.options())
        try:
            await self.initialize(producer)
            consumer = AsyncConsumer(properties, **reading.options())
            reading.member_of = consumer
            try:
                await reading.subscribe(consumer)
                while self.stage.phase is not Phase.OVER:
                    await self._move(reading, consumer, producer)
                    if self.is_loading:
                        await self.breathe(self.spec["pace"])
                self.is_done = True
            finally:
                await reading.close(consumer)
        finally:
            await producer.close(self.spec["timeout"] + 5)

    async def _move(self, reading: _Reading, consumer: AsyncConsumer, producer: AsyncProducer) -> None:
        """One transaction, of what one poll gives. Where it is aborted, the member reads the same again."""
        records = await reading.poll(consumer)
        if not records:
            return
        self.begin(producer)
        is_held = False
        try:
            for record in records:
                await self.send(producer, self.spec["target"], None, None, source=name_of(record))
            if self.is_loading and self.random.random() < self.spec["doze"]:
                await self.sleep(self.spec["transaction_timeout"] * self.random.uniform(0.5, 2))
            offsets, member = await reading.positions(consumer), consumer.group_metadata()
            is_held = self.is_loading and self.random.random() < self.spec.get("holds", 0.0)
            if is_held:
                await self._hold(consumer, reading)
            await self._send_offsets(offsets, member, producer)
            if self.is_loading:
                await self.end(producer)
            else:
                await self._until_known("commit_transaction", producer.commit_transaction)
        except TagwireError:
            await self.abort(producer)
        if self.was_aborted or is_held:
            await reading.rewind(consumer)

    async def _hold(self, consumer: AsyncConsumer, reading: _Reading) -> None:
        """Works for a while, paused. What is given all the same, of partitions that come meanwhile, is read again when
        the transaction is over."""
        try:
            for _ in range(self.random.randint(1, 8)):
                paused = sorted(consumer.assignment())
                await consumer.pause(paused)
                reading.note_paused("pause", paused)
                await reading.poll(consumer)
        finally:  # a poll may fail, and the loop reads on
            paused = sorted(consumer.assignment())
            reading.note_paused("resume", paused)
            await consumer.resume(paused)

    async def _send_offsets(
        self, offsets: dict[TopicPartition, int], member: GroupMetadata, producer: AsyncProducer
    ) -> None:
        asked = {
            **self._named(),
            "group": member.group,
            "member": member.member_id,
            "generation": member.generation,
            "offsets": [[*partition, offset] for partition, offset in offsets.items()],
        }
        await self.noted("send_offsets", asked, lambda: producer.send_offsets(offsets, member))


class _Reading(Consuming):
    """The member of a loop: the loop commits for it."""

    def __init__(self, stage: Stage, spec: Spec, process: str) -> None:
        super().__init__(stage, spec)
        self.process = process

    async def rewind(self, consumer: AsyncConsumer) -> None:
        """Goes back to where the group is."""
        for partition in sorted(consumer.assignment()):
            try:
                await self.seek(consumer, partition, Committed())
            except KeyError:  # taken away meanwhile
                continue
