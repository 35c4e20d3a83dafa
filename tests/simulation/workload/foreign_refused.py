"""A producer of another make that has several batches under way when a disk refuses to write them, all of them at once:
none of them counts as written, and each that is sent again is, once and in its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, batch_headers, write
from tests.simulation.workload.foreign import OTHERWISE, REQUEST_S, Enough, Speaking
from tests.simulation.workload.probing import NOT_NOW, REFUSED, error_of, produce_request
from tests.simulation.workload.stage import Spec, Stage

TOPIC: Final = "foreign-refused"
UNDER_WAY: Final = 4
"""Batches that come while another one is on its way to the disk: a broker writes them together."""

BEGUN_S: Final = 0.05
"""By then, and a round trip, a broker has begun to write what comes first, on a disk that takes longer."""

Refuses = Callable[[str, int], Callable[[], None]]
"""What lets a disk take its time with files of a name, and refuse one write of them after so many; until what it
returns is called."""


class ForeignRefused(Speaking):
    """Of a topic of its own, which it deletes then."""

    def __init__(self, stage: Stage, spec: Spec, refuses: Refuses) -> None:
        super().__init__(stage, spec)
        self._refuses = refuses

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with (
            AsyncClient(properties) as client,
            AsyncClient(properties) as other,
            AsyncAdmin(properties) as admin,
        ):
            self.client, self.other = client, other
            await admin.create_topics([NewTopic(TOPIC, 1, -1, {})])
            try:
                with suppress(*REFUSED, Enough):
                    await self._together(await client.topic(TOPIC))
            finally:
                await admin.delete_topics(TOPIC)

    async def _together(self, topic: TopicMetadata) -> None:
        leader = topic.partitions[0].leader
        init = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        own = await self.said(leader, init, "a producer id", "NONE")

        def numbered(number: int) -> Any:
            return _batch(
                topic,
                b"%d" % number,
                producer_id=own.producer_id,
                producer_epoch=own.producer_epoch,
                base_sequence=number,
            )

        await self.said(leader, numbered(0), f"the first batch of a producer in {TOPIC}", "NONE")
        heal = self._refuses(TOPIC, 1)
        try:
            first = asyncio.create_task(self.other.request(_batch(topic, b"another"), node=leader))
            await asyncio.sleep(BEGUN_S + self.stage.round_trip_s)
            numbers = range(1, UNDER_WAY + 1)
            answers = await asyncio.gather(*(self.client.request(numbered(each), node=leader) for each in numbers))
            await first
        finally:
            heal()
        told = [error_of(each) for each in answers]
        about = f"{UNDER_WAY} batches of {TOPIC} at once, while its disk refuses a write"
        for answer in told:
            answers_due = ["NONE", "KAFKA_STORAGE_ERROR", "OUT_OF_ORDER_SEQUENCE_NUMBER", *OTHERWISE, *NOT_NOW]
            op = self.history.invoke(
                self.process, "probe", node=leader, api="Produce", about=about, answers=answers_due
            )
            self.history.ok(op, answer=answer)
        for number in numbers:
            await self.said(leader, numbered(number), f"{about}: number {number} once more", "NONE")
        await self._stand_in_turn(topic, leader, own.producer_id)

    async def _stand_in_turn(self, topic: TopicMetadata, leader: int, producer_id: int) -> None:
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        named = kind.FetchTopic(topic=TOPIC, topic_id=topic.topic_id, partitions=[part])
        response = await self.said(leader, kind(session_epoch=-1, topics=[named]), f"all of {TOPIC}", "NONE")
        data = memoryview(response.responses[0].partitions[0].records or b"")
        stand = [each.base_sequence for each in batch_headers(data) if each.producer_id == producer_id]
        about = f"numbers of a producer in {TOPIC}, each of which was acknowledged in the end"
        self.holds(leader, "Fetch", about, stand, list(range(UNDER_WAY + 1)))


def _batch(topic: TopicMetadata, value: bytes, **producer: int) -> Any:
    data = write([Record(b"key", value, timestamp=int(time.time() * 1000))], **producer)
    return produce_request(topic, 0, data)
