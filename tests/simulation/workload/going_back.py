"""A member with automatic commits that goes back: where it stands when it ends is where its group goes on."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import LATEST, TopicPartition
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking, produce
from tests.simulation.workload.probing import REFUSED, coordinator_of

GROUP: Final = "going-back"
POLLS: Final = 20
POLL_S: Final = 1.0


class GoingBack(Speaking):
    """Reads two records, commits, goes back before the first, reads that once more, and ends."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin = client, admin
            topics = await self.topics_of(admin, "steady")
            if topics:
                topic = self.random.choice(topics)
                with suppress(*REFUSED, Enough):
                    await self._returns(topic, self.random.choice(sorted(topic.partitions)))

    async def _returns(self, topic: TopicMetadata, index: int) -> None:
        at = TopicPartition(topic.name, index)
        (end,) = (await self.client.list_offsets({at: LATEST})).values()
        about = f"two records of {at}"
        await self.said(topic.partitions[index].leader, produce(topic, index, -1, -1, -1), about, "NONE")
        consumer = AsyncConsumer(
            self.stage.properties(f"{self.process}-consumer", REQUEST_S),
            group=GROUP,
            auto_commit=True,
            max_poll_records=1,
            offset_reset="earliest",
        )
        try:
            await consumer.assign([at])
            await consumer.seek(at, end)
            await self._given(consumer, 2)
            await consumer.commit()
            await consumer.seek(at, end)
            await self._given(consumer, 1)
            stands = (await consumer.positions())[at].offset
        finally:
            await consumer.close()
        found = await self.admin.group_offsets(GROUP)
        about = f"{GROUP}, whose member went back to @{end} of {at} and read on"
        node = await coordinator_of(self.client, GROUP, 0)
        self.holds(node, "OffsetFetch", about, found[at].offset if at in found else None, stands)

    async def _given(self, consumer: AsyncConsumer, count: int) -> None:
        """Reads so many records, one after the other. Raises Enough where they do not come."""
        for _ in range(POLLS):
            count -= len(await consumer.poll(POLL_S))
            if count <= 0:
                return
        raise Enough
