"""What compaction is to take away in the end: records that delete, when their time is over, and the ends of
transactions of which nothing is left. A log that keeps them grows for ever."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, read, write
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, produce_request

TOPIC: Final = "foreign-tidied"
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1024",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "8000",
}
ROUND_S: Final = 12.0
"""By then a broker has compacted what it can, as often as plans have it do that."""

ROUNDS: Final = 4
"""Rounds after which nothing is left that is to go: one empties what is overwritten, one sees that a transaction has
nothing left and says from when its end may go, as of what deletes, and one takes it."""

OFTEN: Final = 3
"""How often in a round there is something to compact: more often than what deletes may go."""

FILLS: Final = 900
"""Bytes of a value that a segment has room for, and for no other of them."""


class Tidying(Speaking):
    """In a topic of its own, which it deletes then."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            with suppress(*REFUSED, Enough):
                await admin.create_topics([NewTopic(TOPIC, 1, -1, CONFIGS)])
                await self._tidied(await client.topic(TOPIC))
                await admin.delete_topics(TOPIC)

    async def _tidied(self, topic: TopicMetadata) -> None:
        owner: Owner | None = None
        for key in (b"a", b"b", b"c"):
            owner = await Owner.begun(self, self.client, TOPIC, topic, 0, int(2000 * PATIENCE))
            data = _written(key, b"of a transaction", owner)
            await self._append(topic, data, owner.name)
            if await owner.end(commit=True) != "NONE":
                return
        await self._append(topic, _written(b"gone", None))
        await self._append(topic, _written(b"b", b"overwritten"))
        for number in range(ROUNDS * OFTEN):
            for _ in range(2):  # so that what comes first is in a segment that is closed
                await self._append(topic, _written(b"%d" % number, bytes(FILLS)))
            await self.sleep(ROUND_S / OFTEN)
        leader = topic.partitions[0].leader
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = kind(
            session_epoch=-1, topics=[kind.FetchTopic(topic=TOPIC, topic_id=topic.topic_id, partitions=[part])]
        )
        response = await self.said(leader, fetch, f"all of {TOPIC}", "NONE")
        batches = list(read(response.responses[0].partitions[0].records or b""))
        assert owner is not None
        ends = sum(batch.is_control and batch.producer_id == owner.producer_id for batch in batches)
        values = [record.value for batch in batches if not batch.is_control for record in batch.records()]
        about = f"what deletes a record of {TOPIC}, when its time has been over for long"
        self.holds(leader, "Fetch", about, values.count(None), 0)
        about = f"ends of three transactions of {TOPIC}, of one of which nothing is left"
        self.holds(leader, "Fetch", about, min(ends, 3) == 3, False)

    async def _append(self, topic: TopicMetadata, data: bytes, transactional_id: str | None = None) -> None:
        request = produce_request(topic, 0, data, transactional_id)
        await self.said(topic.partitions[0].leader, request, f"a batch of {TOPIC}", "NONE")


def _written(key: bytes, value: bytes | None, owner: Owner | None = None) -> bytes:
    record = Record(key, value, timestamp=int(time.time() * 1000))
    options: dict[str, Any] = {}
    if owner is not None:
        options = {"producer_id": owner.producer_id, "producer_epoch": owner.epoch, "base_sequence": 0}
        options["transactional"] = True
    return write([record], **options)
