"""From when on what compaction is to take away may go: a record that deletes stays for as long as is said, from when
what it deletes is gone, and of each log from when that itself is compacted."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, RecordBatch, read, write
from tests.simulation.workload.foreign import OTHERWISE, REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, produce_request
from tests.simulation.workload.tidying import FILLS, ROUND_S

TOPICS: Final = {False: "foreign-tidied-later", True: "foreign-tidied-slowly"}
"""By whether the disk is slow."""

PARTITIONS: Final = 6
RETENTION_S: Final = 5.0
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1024",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": str(int(1000 * RETENTION_S)),
}
LOOK_S: Final = 0.5
OPEN_S: Final = 12.0
"""By then what deletes has been compacted, and its time would be over, if it were counted from that."""


class TidyingLater(Speaking):
    """In a topic of its own, which it deletes then. Its spec: is_slow: whether the disk is."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            name = TOPICS[self.spec["is_slow"]]
            await admin.create_topics([NewTopic(name, PARTITIONS, -1, CONFIGS)])
            try:
                with suppress(*REFUSED, Enough):
                    act = self._late if self.spec["is_slow"] else self._kept
                    await act(await client.topic(name))
            finally:
                await admin.delete_topics(name)

    async def _kept(self, topic: TopicMetadata) -> None:
        """A transaction is open before a record that deletes, in the same segment, so that this is compacted up to
        there for longer than that record has to stay."""
        owner = await Owner.begun(self, self.client, topic.name, topic, 0, int(2000 * PATIENCE))
        for key, value in ((b"a", b"1"), (b"a", b"2"), (b"gone", b"value")):
            await self._append(topic, 0, key, value)
        if await owner.produce(0) != "NONE":
            return
        await self._append(topic, 0, b"gone", None)
        await self._fill(topic, 0)
        await self.sleep(OPEN_S)
        if await owner.end(commit=True) != "NONE":
            return
        await self._fill(topic, 0)
        await self._stays(topic)

    async def _late(self, topic: TopicMetadata) -> None:
        for key, value in ((b"gone", None), (b"0", bytes(FILLS)), (b"1", bytes(FILLS))):
            # At once, so that many of them are due in one round.
            await asyncio.gather(*(self._append(topic, index, key, value) for index in range(PARTITIONS)))
        await self.sleep(ROUND_S)
        await self._each_of_its_own(topic)

    async def _each_of_its_own(self, topic: TopicMetadata) -> None:
        """On a slow disk no two logs of a broker are compacted at once."""
        leaders: dict[int, list[int]] = {}
        for index in range(PARTITIONS):
            horizons = [batch.delete_horizon for batch in await self._batches(topic, index)]
            leaders.setdefault(topic.partitions[index].leader, []).extend(filter(None, horizons))
        for leader, moments in leaders.items():
            if len(moments) > 1:
                about = f"when what deletes may go from {len(moments)} logs of {topic.name}: how many moments that are"
                self.holds(leader, "Fetch", about, len(set(moments)), len(moments))

    async def _stays(self, topic: TopicMetadata) -> None:
        """Whoever has read what is deleted learns of it, if it comes back soon."""
        began = time.time()
        while time.time() - began < ROUND_S:
            before = time.time()
            values = [
                record.value
                for batch in await self._batches(topic, 0)
                if not batch.is_control
                for record in batch.records()
                if record.key == b"gone"
            ]
            if b"value" not in values:
                if before - began < RETENTION_S:
                    about = f"a record of {topic.name} that deletes what has just gone"
                    self.holds(topic.partitions[0].leader, "Fetch", about, values, [None])
                return
            await self.sleep(LOOK_S)

    async def _batches(self, topic: TopicMetadata, index: int) -> list[RecordBatch]:
        kind, leader = messages.FetchRequest, topic.partitions[index].leader
        part = kind.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        named = kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])
        about = f"all of {topic.name}-{index}"
        response = await self.said(leader, kind(session_epoch=-1, topics=[named]), about, "NONE")
        return list(read(response.responses[0].partitions[0].records or b""))

    async def _fill(self, topic: TopicMetadata, index: int) -> None:
        """Closes the segment that is written to."""
        for number in range(2):
            await self._append(topic, index, b"%d" % number, bytes(FILLS))

    async def _append(self, topic: TopicMetadata, index: int, key: bytes, value: bytes | None) -> None:
        request = produce_request(topic, index, write([Record(key, value, timestamp=int(time.time() * 1000))]))
        about = f"a batch of {topic.name}-{index}"
        await self.said(topic.partitions[index].leader, request, about, "NONE", otherwise=OTHERWISE)
