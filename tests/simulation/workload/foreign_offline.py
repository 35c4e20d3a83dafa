"""A reader of another make that waits for records of a partition whose disk refuses what is written next: it is told
when the log goes offline, and not when its time is over."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final, Protocol

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, write
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.foreign_waiting import BEGUN_S
from tests.simulation.workload.probing import REFUSED, error_of, produce_request
from tests.simulation.workload.stage import Spec, Stage

TOPIC: Final = "foreign-offline"
LONG_MS: Final = 14_000
SOON_S: Final = 8.0
REFUSES: Final = ("sync", "write", "truncate")
"""What a disk is to refuse: one that syncs nothing has to fail to write, and to take back what it has written."""


class Breaks(Protocol):
    """What lets operations fail on files of a name, until what it returns is called."""

    def __call__(self, operations: tuple[str, ...], part: str) -> Any: ...


class ForeignOffline(Speaking):
    """Of a topic of its own, which it deletes then."""

    def __init__(self, stage: Stage, spec: Spec, breaks: Breaks) -> None:
        super().__init__(stage, spec)
        self._breaks = breaks

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
                    await self._waited(await client.topic(TOPIC))
            finally:
                await admin.delete_topics(TOPIC)

    async def _waited(self, topic: TopicMetadata) -> None:
        leader, loop = topic.partitions[0].leader, asyncio.get_running_loop()

        async def waits() -> tuple[str, float]:
            return error_of(await self.client.request(_fetch(topic), node=leader)), loop.time()

        async def fails() -> tuple[str, float]:
            await asyncio.sleep(BEGUN_S + self.stage.round_trip_s)
            heal = self._breaks(REFUSES, TOPIC)
            try:
                return error_of(await self.other.request(_produce(topic), node=leader)), loop.time()
            finally:
                heal()

        (told, at), (answer, failed) = await asyncio.gather(waits(), fails())
        if answer == "KAFKA_STORAGE_ERROR" and self.stage.round_trip_s < SOON_S / 2:
            about = f"{TOPIC}, which goes offline while its reader waits: what is told, and whether in {SOON_S:g} s"
            self.holds(leader, "Fetch", about, [told, at - failed < SOON_S], ["KAFKA_STORAGE_ERROR", True])


def _fetch(topic: TopicMetadata) -> Any:
    kind = messages.FetchRequest
    part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [kind.FetchTopic(topic=TOPIC, topic_id=topic.topic_id, partitions=[part])]
    return kind(max_wait_ms=LONG_MS, min_bytes=1, session_epoch=-1, topics=topics)


def _produce(topic: TopicMetadata) -> Any:
    return produce_request(topic, 0, write([Record(b"key", b"lost", timestamp=int(time.time() * 1000))]))
