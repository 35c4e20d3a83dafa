"""A partition that is written to all the time, while one node after another begins to lead it, with disks that take
their time: each leader epoch begins where its first batch stands."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.records import Record, write
from tests.simulation.workload.forsaking import REQUEST_S, Ending
from tests.simulation.workload.probing import PATIENCE, REFUSED, produce_request

MOVES: Final = 6
MOVED_EVERY_S: Final = 0.7
WRITERS: Final = 3
"""So many, that one is on its way to the disk whenever another is done."""


class WrittenWhileMoved(Ending):
    """Its spec: topic, partition; audits: whether it looks at the log, and writes nothing."""

    async def ask(self) -> None:
        name, index = self.spec["topic"], self.spec["partition"]
        properties = self.stage.properties(self.process, REQUEST_S)
        with suppress(*REFUSED):
            async with asyncio.timeout(2 * PATIENCE):
                if self.spec["audits"]:
                    async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
                        await self.audit(client, admin, await client.topic(name), index)
                else:
                    until = time.monotonic() + MOVES * MOVED_EVERY_S
                    await asyncio.gather(*(self._write(name, index, until) for _ in range(WRITERS)))

    async def _write(self, name: str, index: int, until: float) -> None:
        """Sends record after record, each to whoever leads by then, over connections of its own."""
        async with AsyncClient(self.stage.properties(self.process, REQUEST_S)) as client:
            while time.monotonic() < until:
                with suppress(*REFUSED):
                    topic = (await client.metadata([name])).topics[name]
                    await client.request(_one(topic, index), node=topic.partitions[index].leader)


def _one(topic: TopicMetadata, index: int) -> Any:
    data = write([Record(b"moved", b"one", timestamp=int(time.time() * 1000))])
    return produce_request(topic, index, data)
