"""Clients to whom brokers tell late what has just changed, when everything is over: one asks about the newest
partition of a topic, and a member of a group is given a topic that no broker names yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer, AsyncProducer
from tagwire.errors import TagwireError
from tagwire.partitions import LATEST, TopicPartition
from tests.simulation.workload.foreign import REQUEST_S
from tests.simulation.workload.probing import REFUSED, Probing
from tests.simulation.workload.stage import Spec, Stage

NEAR_S: Final = 0.1
"""A round trip, spikes and all, of who is near enough to hear in time."""

GROWN: Final = "told-late-grown"
READ: Final = "told-late-read"
NEW: Final = "told-late-new"
GROUP: Final = "told-late"

LAGS_S: Final = (0.1, 0.3, 0.8)
"""How long brokers lag behind: not as long as a client takes for that."""

UNNAMED_S: Final = 12.0
COMMITS_EVERY_S: Final = 1.0
RECORDS: Final = 5

Lag = Callable[[str, int], Callable[[], None] | None]


class ToldLate(Probing):
    """Its spec: has_consumer_groups: whether brokers know KIP-848."""

    def __init__(self, stage: Stage, spec: Spec, lag: Lag) -> None:
        """lag: lets brokers tell of a topic as of when it had so many partitions, until what it gives is called."""
        super().__init__(stage, spec)
        self._lag = lag

    async def ask(self) -> None:
        if self.stage.round_trip_s + self.stage.spikes_s > NEAR_S:
            return
        async with AsyncAdmin(self.stage.properties(self.process, REQUEST_S)) as admin:
            self.admin = admin
            for act in (self._grows, self._is_given):
                with suppress(*REFUSED):
                    await act()

    async def _grows(self) -> None:
        """Who asks about a partition that there is waits for it to be told, whatever it knows of the topic."""
        await self.admin.create_topics([NewTopic(GROWN, 1, -1)])
        async with AsyncClient(self.stage.properties(f"{self.process}-client", REQUEST_S)) as client:
            for count, lag in enumerate(self.random.sample(LAGS_S, len(LAGS_S)), 2):
                await client.topic(GROWN)
                await self.admin.create_partitions({GROWN: count})
                ending = asyncio.create_task(self._ended_after(lag, self._lag(GROWN, count - 1)))
                at = TopicPartition(GROWN, count - 1)
                try:
                    answer: Any = [*(await client.list_offsets({at: LATEST})).values()]
                except TagwireError as error:
                    answer = f"{type(error).__name__}: {error}"
                await ending
                self._holds("ListOffsets", f"the end of {at}, which brokers tell of {lag:g} s later", answer, [0])

    @staticmethod
    async def _ended_after(seconds: float, stop: Callable[[], None] | None) -> None:
        await asyncio.sleep(seconds)
        if stop is not None:
            stop()

    async def _is_given(self) -> None:
        """A member goes on with what has a name: it reads, and commits by itself."""
        protocol = "consumer" if self.spec["has_consumer_groups"] and self.random.random() < 0.7 else "classic"
        await self.admin.create_topics([NewTopic(READ, 1, -1), NewTopic(NEW, 1, -1)])
        properties = self.stage.properties(f"{self.process}-member", REQUEST_S)
        stop = self._lag(NEW, 0)
        try:
            async with AsyncProducer(self.stage.properties(f"{self.process}-writer", REQUEST_S)) as producer:
                for number in range(RECORDS):
                    await (await producer.send(READ, b"%d" % number, partition=0))
            consumer = AsyncConsumer(
                properties,
                group=GROUP,
                protocol=protocol,
                offset_reset="earliest",
                auto_commit=True,
                auto_commit_interval=COMMITS_EVERY_S,
            )
            try:
                await consumer.subscribe([READ, NEW])
                given = await self._polled(consumer)
                at = TopicPartition(READ, 0)
                found: Any = (await self.admin.group_offsets(GROUP)).get(at)
                about = f"{at} by a member that was given {len(given)} records, while {NEW} has no name ({protocol})"
                due = given[-1].offset + 1 if given else None
                self._holds("OffsetFetch", about, found.offset if found is not None else None, due)
                self._holds("Fetch", f"{at} by a member, while {NEW} has no name ({protocol})", len(given), RECORDS)
            finally:
                await consumer.close()
        finally:
            if stop is not None:
                stop()

    async def _polled(self, consumer: AsyncConsumer) -> list[Any]:
        given: list[Any] = []
        until = time.monotonic() + UNNAMED_S
        while time.monotonic() < until:
            given += await consumer.poll(0.3)
        return given

    def _holds(self, api: str, about: str, answer: Any, due: Any) -> None:
        op = self.history.invoke(self.process, "probe", node=-1, api=api, about=about, answers=[due])
        self.history.ok(op, answer=answer)
