"""A client of another make that waits for records, while somebody writes to a transaction: what comes meanwhile is no
reader's of committed records, and takes the place of nothing that was there."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import LATEST, TopicPartition
from tagwire.records import batch_headers
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED

BEGUN_S: Final = 1.0
"""By then, and a round trip, a request that was begun is with the broker."""

WAIT_MS: Final = 4000
MUCH: Final = 1 << 20
COMMITTED: Final = 1


class ForeignWaiting(Speaking):
    """Of a topic of which nothing is deleted. Who writes has a connection of its own: requests of one are answered in
    their order."""

    other: AsyncClient

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with (
            AsyncClient(properties) as client,
            AsyncClient(properties) as other,
            AsyncAdmin(properties) as admin,
        ):
            self.client, self.other = client, other
            topics = await self.topics_of(admin, "steady")
            if topics:
                topic = self.random.choice(topics)
                with suppress(*REFUSED, Enough):
                    await self._wait(topic, self.random.choice(sorted(topic.partitions)))

    async def _wait(self, topic: TopicMetadata, index: int) -> None:
        at = TopicPartition(topic.name, index)
        owner = await Owner.begun(self, self.other, "foreign-waiting", topic, index, int(2000 * PATIENCE))
        (end,) = (await self.client.list_offsets({at: LATEST})).values()
        (stable,) = (await self.client.list_offsets({at: LATEST}, isolation="read_committed")).values()
        if stable != end:
            return
        node, said = topic.partitions[index].leader, int(time.time() * 1000)
        response, answer = await asyncio.gather(
            self.client.request(_fetch(topic, index, end, 1, COMMITTED), node=node), self._late(owner, 0)
        )
        about = f"{at} @{end} by a reader of committed records, while a transaction is written"
        self.holds(node, "Fetch", about, len(_records(response)), 0)
        if answer != "NONE":
            return
        await self._by_time(node, at, said, end)
        await self._from_the_end(node, at, end)
        response, answer = await asyncio.gather(
            self.client.request(_fetch(topic, index, end, MUCH), node=node), self._late(owner, 1)
        )
        first = next((batch.base_offset for batch in batch_headers(_records(response))), end)
        about = f"{at} @{end} by who waits for more than there is, while more is written"
        self.holds(node, "Fetch", about, first, end)
        await owner.end(commit=False)

    async def _from_the_end(self, node: int, at: TopicPartition, stable: int) -> None:
        """Who reads committed records and goes to the end is before what is open."""
        properties = self.stage.properties(self.process, REQUEST_S)
        for begins in (False, True):
            async with AsyncConsumer(properties, isolation="read_committed", metadata_max_age=300.0) as consumer:
                await consumer.assign({at: LATEST} if begins else [at])
                if not begins:
                    await consumer.seek_to_end([at])
                how = "begins" if begins else "seeks"
                about = f"where a reader of committed records that {how} at the end of {at} is, while one is open"
                self.holds(node, "ListOffsets", about, await consumer.position(at), stable)

    async def _late(self, owner: Owner, sequence: int) -> str:
        """What is answered to a record that comes when the reader waits."""
        await asyncio.sleep(BEGUN_S + self.stage.round_trip_s)
        return await owner.produce(sequence)

    async def _by_time(self, node: int, at: TopicPartition, moment: int, stable: int) -> None:
        """Who reads committed records alone is told of no time of a record that is open."""
        kind = messages.ListOffsetsRequest
        wanted = kind.ListOffsetsPartition(partition_index=at.partition, timestamp=moment)
        topics = [kind.ListOffsetsTopic(name=at.topic, partitions=[wanted])]
        about = f"the first record of {at} at {moment} or later, for a reader of committed records"
        found = await self.said(node, kind(replica_id=-1, isolation_level=COMMITTED, topics=topics), about, "NONE")
        told = found.topics[0].partitions[0].offset
        self.holds(node, "ListOffsets", f"{about}, who may read up to {stable}", told < stable, True)


def _fetch(topic: TopicMetadata, index: int, offset: int, least: int, isolation: int = 0) -> Any:
    kind = messages.FetchRequest
    part = kind.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=2 * MUCH)
    return kind(
        max_wait_ms=WAIT_MS,
        min_bytes=least,
        isolation_level=isolation,
        session_epoch=-1,
        topics=[kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])],
    )


def _records(response: Any) -> memoryview:
    return memoryview(next((part.records or b"" for of in response.responses for part in of.partitions), b""))
