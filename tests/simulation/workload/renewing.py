"""A topic that is deleted and made anew when a broker is about to end: after that it begins where the new one did."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from tagwire.client import EARLIEST, NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.partitions import TopicPartition
from tagwire.records import Record, write
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.probing import REFUSED, produce_request
from tests.simulation.workload.stage import is_refusal

TOPIC: Final = "foreign-renewed"
AT: Final = TopicPartition(TOPIC, 0)
DELETED: Final = 3
"""Records of the first one that are deleted: more than the second one has."""


class Renewing(Speaking):
    """Makes it, deletes records of it and then the topic, and makes it anew."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            with suppress(*REFUSED, Enough):
                await self._create(admin)
                await self._append(DELETED + 1)
                await admin.delete_records({AT: DELETED})
                await _delete(self, admin)
                await self._create(admin)
                await self._append(1)

    async def _create(self, admin: AsyncAdmin) -> None:
        asked = {"topic": TOPIC, "partitions": 1, "configs": {}}
        new = NewTopic(TOPIC, 1, -1, {})
        await self.noted("create_topic", asked, lambda: admin.create_topics([new]), has_no_effect=is_refusal)

    async def _append(self, count: int) -> None:
        topic = (await self.client.metadata([TOPIC])).topics[TOPIC]
        data = write([Record(b"key", b"%d" % number, timestamp=int(time.time() * 1000)) for number in range(count)])
        request = produce_request(topic, 0, data)
        await self.said(topic.partitions[0].leader, request, f"{count} records of {TOPIC}", "NONE")


class Renewed(Speaking):
    """Looks where it begins, and deletes it."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            with suppress(*REFUSED):
                (begins,) = (await client.list_offsets({AT: EARLIEST})).values()
                node = (await client.topic(TOPIC)).partitions[0].leader
                about = f"where {TOPIC} begins, of which no record was deleted since it was made anew"
                if any(event.process == "renewing" and event.type == "ok" for event in self.history.events):
                    self.holds(node, "ListOffsets", about, begins, 0)
                await _delete(self, admin)


async def _delete(by: Speaking, admin: AsyncAdmin) -> None:
    await by.noted("delete_topic", {"topic": TOPIC}, lambda: admin.delete_topics(TOPIC), has_no_effect=is_refusal)
