"""What compaction is to leave alone for a while: records that are younger than min.compaction.lag.ms, however many
segments they fill, and what is in the segment that is written to."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, read, write
from tests.simulation.workload.foreign import OTHERWISE, REQUEST_S, Enough, Speaking
from tests.simulation.workload.probing import REFUSED, produce_request
from tests.simulation.workload.tidying import FILLS, ROUND_S

TOPIC: Final = "foreign-young"
LAG_MS: Final = 6 * 3_600_000
"""More than clocks differ by."""

OLD_S: Final = 24 * 3600.0
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1024",
    "min.cleanable.dirty.ratio": "0.0",
    "min.compaction.lag.ms": str(LAG_MS),
}


class TidyingYoung(Speaking):
    """In a topic of its own, which it deletes then."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            await admin.create_topics([NewTopic(TOPIC, 1, -1, CONFIGS)])
            try:
                with suppress(*REFUSED, Enough):
                    await self._left_alone(await client.topic(TOPIC))
            finally:
                await admin.delete_topics(TOPIC)

    async def _left_alone(self, topic: TopicMetadata) -> None:
        """Old ones first, as of who sends what happened long ago: of their keys the last stay. Then young ones."""
        for value in (b"old", b"older than nothing"):
            await self._append(topic, b"a", value, OLD_S)
        await self._fill(topic, OLD_S)
        young = [b"%d" % number for number in range(1, 4)]
        for value in young:
            await self._append(topic, b"b", value, 0)
        await self._fill(topic, 0)
        await self.sleep(ROUND_S)
        leader, records = topic.partitions[0].leader, await self._records(topic)
        told = [record.value.decode() for record in records if record.key == b"b"]
        about = f"values of a key of {TOPIC}, whose min.compaction.lag.ms is not over"
        self.holds(leader, "Fetch", about, told, [each.decode() for each in young])
        told = [record.value.decode() for record in records if record.key == b"a"]
        about = f"values of a key of {TOPIC}, whose min.compaction.lag.ms is over"
        self.holds(leader, "Fetch", about, told, ["older than nothing"])

    async def _records(self, topic: TopicMetadata) -> list[Record]:
        """All of them; a response holds those of one segment."""
        kind, found, offset = messages.FetchRequest, list[Record](), 0
        while True:
            part = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            named = kind.FetchTopic(topic=TOPIC, topic_id=topic.topic_id, partitions=[part])
            request = kind(session_epoch=-1, topics=[named])
            response = await self.said(topic.partitions[0].leader, request, f"all of {TOPIC}", "NONE")
            batches = list(read(response.responses[0].partitions[0].records or b""))
            if not batches:
                return found
            found += [record for batch in batches for record in batch.records()]
            offset = batches[-1].next_offset

    async def _fill(self, topic: TopicMetadata, age: float) -> None:
        """Closes the segment that is written to."""
        for number in range(2):
            await self._append(topic, b"%d at %g" % (number, age), bytes(FILLS), age)

    async def _append(self, topic: TopicMetadata, key: bytes, value: bytes, age: float) -> None:
        data = write([Record(key, value, timestamp=int((time.time() - age) * 1000))])
        request = produce_request(topic, 0, data)
        await self.said(topic.partitions[0].leader, request, f"a batch of {TOPIC}", "NONE", otherwise=OTHERWISE)
