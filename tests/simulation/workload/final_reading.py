"""What is read at the end, when every fault is healed: each partition whole, as readers of both isolations see it, the
transactions that there are, and where groups stand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncReader
from tagwire.client.config import ISOLATIONS
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error, KafkaError, TagwireError, UnsupportedVersionError
from tagwire.partitions import EARLIEST, LATEST, MAX_TIMESTAMP, TopicPartition
from tagwire.records import Record
from tests.simulation.workload.log_auditing import LogAudit
from tests.simulation.workload.probing import PATIENCE, Probing
from tests.simulation.workload.records import name_of
from tests.simulation.workload.stage import always

MOMENTS = 4
"""Times at which a record is looked for in each partition."""


class FinalReading(Probing):
    """Reads every partition of every topic, as its records and as its log, and asks for transactions, groups and
    configurations."""

    async def live(self) -> None:
        async with AsyncAdmin(self.stage.properties(self.process, 20.0)) as admin:
            topics = [topic for topic in await admin.list_topics() if topic.name in self.stage.topics]
            await self._list_transactions(admin)
            for group in self.spec["groups"]:
                await self._describe_group(admin, group, topics)
            for topic in topics:
                await self._describe_configs(admin, topic.name)
        for topic in topics:
            if topic.error is Error.NONE:
                for partition in sorted(topic.partitions):
                    for isolation in ISOLATIONS:
                        await self._read(topic, partition, isolation)
        properties = self.stage.properties(self.process, 20.0)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            await self._bounds(client, topics)
            for topic in topics:
                if topic.error is Error.NONE:
                    for partition in sorted(topic.partitions):
                        await self._audit(client, admin, topic, partition)
        self.is_done = True

    async def _list_transactions(self, admin: AsyncAdmin) -> None:
        async def listed() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                found = await admin.list_transactions()
            return {"transactions": [[each.transactional_id, each.producer_id, each.state] for each in found]}

        try:
            await self.noted("list_transactions", {}, listed, lambda found: found, has_no_effect=always)
        except (TagwireError, TimeoutError):  # before Kafka 3.0 they cannot be listed
            return

    async def _describe_configs(self, admin: AsyncAdmin, topic: str) -> None:
        async def described() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                found = await admin.describe_configs(("topic", topic))
            return {"configs": {name: entry.value for entries in found.values() for name, entry in entries.items()}}

        with suppress(TagwireError, TimeoutError):
            await self.noted("describe_configs", {"topic": topic}, described, lambda found: found, has_no_effect=always)

    async def _describe_group(self, admin: AsyncAdmin, group: str, topics: list[TopicMetadata]) -> None:
        async def described() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                found = (await admin.describe_groups(group))[group]
                offsets = await admin.group_offsets(group)
            return {
                "state": found.state,
                "members": {each.member_id: [list(one) for one in sorted(each.assignment)] for each in found.members},
                "offsets": [[*partition, offsets[partition].offset] for partition in sorted(offsets)],
            }

        try:
            await self.noted("describe_group", {"group": group}, described, lambda found: found, has_no_effect=always)
        except (TagwireError, TimeoutError):  # it may have been deleted, or never have been
            return
        partitions = [[topic.name, partition] for topic in topics for partition in sorted(topic.partitions)]

        async def committed() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                found = {tuple(each): one.offset for each, one in (await admin.group_offsets(group)).items()}
            return {"offsets": [[*each, found.get(tuple(each))] for each in partitions]}

        asked = {"group": group, "partitions": partitions}
        with suppress(TagwireError, TimeoutError):
            await self.noted("committed", asked, committed, lambda found: found, has_no_effect=always)

    async def _bounds(self, client: AsyncClient, topics: list[TopicMetadata]) -> None:
        """Where partitions begin and end is the same whether one is asked about or all of them."""
        steady = [topic for topic in topics if topic.error is Error.NONE and topic.name in self.stage.topics]
        steady = [topic for topic in steady if self.stage.topics[topic.name]["kind"] == "steady"]
        places = [TopicPartition(topic.name, one) for topic in steady for one in sorted(topic.partitions)]
        for which in (EARLIEST, LATEST) if places else ():
            with suppress(TagwireError, TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    told = await client.list_offsets(dict.fromkeys(places, which))
                    due = [(await client.list_offsets({at: which}))[at] for at in places]
                about = f"where {len(places)} partitions {'begin' if which == EARLIEST else 'end'}"
                asked = {"node": -1, "api": "ListOffsets", "about": about, "answers": [due]}
                op = self.history.invoke(self.process, "probe", **asked)
                self.history.ok(op, answer=[told[at] for at in places])

    async def _audit(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, partition: int) -> None:
        audit = LogAudit(client, admin, topic, partition, self.random)

        async def told() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                return await audit.told()

        asked = {"topic": topic.name, "topic_id": str(topic.topic_id), "partition": partition}
        with suppress(TagwireError, TimeoutError):
            await self.noted("final_log", asked, told, lambda found: found, has_no_effect=always)

    async def _read(self, topic: TopicMetadata, partition: int, isolation: str) -> None:
        asked = {"topic": topic.name, "topic_id": str(topic.topic_id), "partition": partition, "isolation": isolation}
        at = TopicPartition(topic.name, partition)

        async def read() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                return await self._whole(at, isolation)

        try:
            await self.noted("final_read", asked, read, lambda found: found, has_no_effect=always)
        except (TagwireError, TimeoutError):
            return

    async def _whole(self, at: TopicPartition, isolation: str) -> dict[str, Any]:
        async with AsyncClient(self.stage.properties(self.process, 20.0)) as client:
            (start,) = (await client.list_offsets({at: EARLIEST})).values()
            (end,) = (await client.list_offsets({at: LATEST}, isolation=isolation)).values()
            records = await self._between(client, at, start, end, isolation)
            told = {"log_start": start, "end": end, "records": [[each.offset, name_of(each)] for each in records]}
            if records and self.stage.topics[at.topic]["kind"] == "steady":  # of which nothing goes meanwhile
                told |= await self._looked_up(client, at, records, (start, end), isolation)
        return told

    async def _between(
        self, client: AsyncClient, at: TopicPartition, start: int, end: int, isolation: str
    ) -> list[Record]:
        if start >= end:
            return []
        async with AsyncReader(client, {at: start}, end_offsets={at: end}, isolation=isolation) as reader:
            return [record async for record in reader.records()]

    async def _looked_up(
        self, client: AsyncClient, at: TopicPartition, records: list[Record], of: tuple[int, int], isolation: str
    ) -> dict[str, Any]:
        """What is found from an offset on, up to the next record, and at some times: indexes say where to look."""
        begin = self.random.randrange(*of)
        following = next((record.offset for record in records if record.offset >= begin), of[1] - 1)
        found = await self._between(client, at, begin, following + 1, isolation)
        timed = []
        times = [record.timestamp for record in records]
        some = {self.random.choice(records).timestamp for _ in range(MOMENTS)}
        for moment in sorted({*some, max(0, min(times) - 1), max(times)}):
            (told,) = (await client.list_offsets({at: moment}, isolation=isolation)).values()
            timed.append([moment, told, next(record.offset for record in records if record.timestamp >= moment)])
        sought = [begin, following, [[record.offset, name_of(record)] for record in found]]
        newest = await self._newest(client, at, records) if isolation == "read_uncommitted" else None
        return {"sought": sought, "timed": timed, "newest": newest}

    async def _newest(self, client: AsyncClient, at: TopicPartition, records: list[Record]) -> list[int] | None:
        """What is told to be the newest record, and the first of those that are; None where brokers do not say."""
        try:
            (told,) = (await client.list_offsets({at: MAX_TIMESTAMP})).values()
        except (KafkaError, UnsupportedVersionError):  # before Kafka 3.0
            return None
        newest = max(record.timestamp for record in records)
        return [told, next(record.offset for record in records if record.timestamp == newest)]
