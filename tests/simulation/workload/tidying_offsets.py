"""What compaction is to take away of what groups have committed: the ends of transactions of which nothing is left."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import TopicPartition
from tagwire.records import read
from tests.simulation.workload.foreign import COMMIT_BY_NAME, REQUEST_S, Enough
from tests.simulation.workload.foreign_offsets import Committing, commit
from tests.simulation.workload.owning import OF_VERSION_1, Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, coordinator_of
from tests.simulation.workload.tidying import OFTEN, ROUND_S, ROUNDS

OFFSETS: Final = "__consumer_offsets"
GROUP: Final = "foreign-tidied-offsets"
TRANSACTIONS: Final = 3
FILLS: Final = 4000
"""Characters of metadata, of which a segment has room for a few."""

AT_ONCE: Final = 4


class TidyingOffsets(Committing):
    """Where what coordinators keep is compacted often, and what deletes stays there for seconds."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            topics = await self.topics_of(admin, "steady")
            if topics:
                topic = self.random.choice(topics)
                with suppress(*REFUSED, Enough):
                    await self._tidied(topic, self.random.choice(sorted(topic.partitions)))

    async def _tidied(self, topic: TopicMetadata, index: int) -> None:
        owner = await Owner.begun(self, self.client, GROUP, topic, index, int(2000 * PATIENCE))
        for number in range(TRANSACTIONS):
            await owner.commit_offset(GROUP, number)
            end = messages.EndTxnRequest(
                transactional_id=owner.name,
                producer_id=owner.producer_id,
                producer_epoch=owner.epoch,
                committed=self.random.random() < 0.5,
            )
            about = f"{GROUP}, whose transactions follow each other"
            await self.said(owner.coordinator, end, about, "NONE", version=OF_VERSION_1["EndTxn"])
        at, node = TopicPartition(topic.name, index), await coordinator_of(self.client, GROUP, 0)
        for number in range(ROUNDS * OFTEN):
            for _ in range(AT_ONCE):  # so that what comes first is in a segment that is closed
                request = commit(GROUP, at, TRANSACTIONS + number)
                request.topics[0].partitions[0].committed_metadata = "." * FILLS
                await self.said(node, request, GROUP, "NONE", version=COMMIT_BY_NAME)
            await self.sleep(ROUND_S / OFTEN)
        ends = await self._ends_of(owner.producer_id)
        about = f"ends of {TRANSACTIONS} transactions of one producer in {OFFSETS}, of which nothing is left"
        self.holds(node, "Fetch", about, ends >= TRANSACTIONS, False)

    async def _ends_of(self, producer_id: int) -> int:
        """How many ends of its transactions are left, before whatever is open: none of what follows that is taken away,
        however long a clock that was set back keeps it open."""
        kept = await self.client.topic(OFFSETS)
        kind, leader, offset, count = messages.FetchRequest, kept.partitions[0].leader, 0, 0
        while True:
            part = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            named = kind.FetchTopic(topic=OFFSETS, topic_id=kept.topic_id, partitions=[part])
            request = kind(session_epoch=-1, isolation_level=1, topics=[named])
            response: Any = await self.said(leader, request, f"all of {OFFSETS}", "NONE")
            batches = list(read(response.responses[0].partitions[0].records or b""))
            if not batches:
                return count
            count += sum(batch.is_control and batch.producer_id == producer_id for batch in batches)
            offset = batches[-1].next_offset
