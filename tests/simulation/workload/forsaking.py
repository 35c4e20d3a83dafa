"""Transactions when everything is over: one is left open while a broker's clock has been set back, and is ended for its
age; one is written to while it is being ended, with a disk that takes its time."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import LATEST, TopicPartition
from tests.simulation.workload.log_auditing import LogAudit
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing
from tests.simulation.workload.stage import always, is_refusal

TIMEOUT_MS: Final = 4000
ENDED_S: Final = 10.0
"""By then it is over, and its coordinator has said so."""

GROUP: Final = "forsaken-offsets"
PENDING_S: Final = 1.5
LARGE: Final = 150_000
"""More bytes than either end reads at once."""

NEAR_S: Final = 0.05
"""A round trip of who is near enough to send so much within a request's time, whatever the network's buffers are."""

REQUEST_S: Final = 55.0

OLD_S: Final = 100_000.0
"""A producer whose records say to be so old is forgotten soon, unless it has a transaction open."""

RACES_S: Final = (0.0, 0.02, 0.1, 0.3)
"""When it is written to, after its end was asked for."""


class Ending(Probing):
    """One who has a partition of a topic of which nothing is deleted."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        with suppress(*REFUSED):
            async with (
                asyncio.timeout(2 * PATIENCE),
                AsyncClient(properties) as client,
                AsyncAdmin(properties) as admin,
            ):
                topics = await self.topics_of(admin, "steady")
                if topics:
                    topic = self.random.choice(topics)
                    index = self.random.choice(sorted(topic.partitions))
                    await self.end(client, admin, topic, index)

    async def end(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> None:
        """What it does there."""
        raise NotImplementedError

    async def tell(self, node: int, api: str, about: str, answers: list[Any], answer: Any) -> None:
        """Notes what was found out, and what it may be."""
        op = self.history.invoke(self.process, "probe", node=node, api=api, about=about, answers=answers)
        self.history.ok(op, answer=answer)

    async def audit(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> dict[str, Any]:
        """The log, which is noted, too."""
        asked = {"topic": topic.name, "topic_id": str(topic.topic_id), "partition": index}
        audit = LogAudit(client, admin, topic, index, self.random)
        with suppress(*REFUSED):
            return await self.noted("final_log", asked, audit.told, lambda found: found, has_no_effect=always)
        return {}


class Forsaking(Ending):
    """Leaves a transaction open: nothing of it is stable, nor do its offsets count; then its coordinator aborts it. A
    later one ends before it, and its records may be deleted while it is open.

    Its spec: ages: whether records may say to be old.
    """

    async def end(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> None:
        began = time.monotonic()
        owner = await Owner.begun(self, client, "forsaken", topic, index, TIMEOUT_MS)
        age = self.random.choice([0.0, OLD_S]) if self.spec["ages"] else 0.0
        if await owner.produce(age=age) != "NONE":
            return
        await owner.commit_offset(GROUP, 0)
        with suppress(*REFUSED):
            later = await Owner.begun(self, client, "begun-later", topic, index, int(2000 * PATIENCE))
            await later.produce()
            await later.end(commit=self.random.random() < 0.3)
        await self.audit(client, admin, topic, index)
        await self._pending(topic, index, owner.coordinator, began + TIMEOUT_MS / 1000)
        if self.random.random() < 0.5:
            await self._delete(client, admin, topic, index)
        await asyncio.sleep(ENDED_S)
        with suppress(*REFUSED):
            found = (await admin.describe_transactions([owner.name]))[owner.name]
            about = f"a transaction that {owner.name} left open"
            await self.tell(owner.coordinator, "DescribeTransactions", about, ["CompleteAbort"], str(found.state))
        await self.audit(client, admin, topic, index)

    async def _delete(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> None:
        """Deletes all that there is, what is open as well."""
        at = TopicPartition(topic.name, index)
        (end,) = (await client.list_offsets({at: LATEST})).values()
        asked = {"topic": topic.name, "partition": index, "before": end}
        await self.noted(
            "delete_records",
            asked,
            lambda: admin.delete_records({at: end}),
            lambda found: {"log_start": found[at]},
            has_no_effect=is_refusal,
        )
        await self.audit(client, admin, topic, index)

    async def _pending(self, topic: TopicMetadata, index: int, node: int, until: float) -> None:
        """Who reads for a group that has an offset pending waits for what becomes of it."""
        consumer = AsyncConsumer(
            self.stage.properties(f"{self.process}-consumer", 20.0),
            group=GROUP,
            auto_commit=False,
            offset_reset="earliest",
        )
        try:
            await consumer.assign([(topic.name, index)])
            records = await consumer.poll(PENDING_S)
        except REFUSED:
            return
        finally:
            await consumer.close()
        if time.monotonic() >= until:
            return  # far from its broker, it took so long that the transaction may be over
        about = f"records of {topic.name}-{index} while an offset of {GROUP} is pending"
        await self.tell(node, "Fetch", about, [0], len(records))


class Racing(Ending):
    """Writes to a transaction while it is being ended: what is taken is part of it, and nothing stays open."""

    async def end(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> None:
        owner = await Owner.begun(self, client, "raced", topic, index, int(2000 * PATIENCE))
        answers = ["NONE", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_TIMESTAMP", "KAFKA_STORAGE_ERROR"]
        leader = topic.partitions[index].leader
        about = f"a large batch of {topic.name}-{index}"
        try:
            answer = await owner.produce(size=LARGE if self.stage.round_trip_s <= NEAR_S else 0)
        except REFUSED as error:
            answer = type(error).__name__
        await self.tell(leader, "Produce", about, answers, answer)
        first = int(answer == "NONE")

        async def late(number: int, after: float) -> None:
            await asyncio.sleep(after)
            with suppress(*REFUSED):
                await owner.produce(first + number)

        ended, *_ = await asyncio.gather(owner.end(commit=True), *(late(*each) for each in enumerate(RACES_S)))
        if ended != "NONE":
            return
        told = await self.audit(client, admin, topic, index)
        of = [row[7] for row in told.get("batches", ()) if row[3] == owner.producer_id]
        if of:
            about = f"what stands last of a transaction of {topic.name}-{index} that was committed"
            await self.tell(owner.coordinator, "EndTxn", about, ["commit", "abort"], of[-1])
