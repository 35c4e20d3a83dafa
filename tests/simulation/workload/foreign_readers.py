"""Readers of another make: who looks for offsets by their time, has read another log, knows no zstd, or waits for a
transaction's end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import LATEST, TopicPartition
from tagwire.records import Record, batch_headers, write
from tests.simulation.workload.foreign import OTHERWISE, REQUEST_S, Enough, Speaking
from tests.simulation.workload.foreign_waiting import BEGUN_S
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, produce_request

TOPIC, COMPRESSED, TURNS = "foreign-read", "foreign-read-compressed", "foreign-read-in-turn"
OFTEN_INDEXED: Final = {"index.interval.bytes": "1"}
PARTITIONS: Final = 6
"""Of a topic of which one node leads some."""

SMALL, LARGE = 700, 600
"""What a response has room for, and the value of a record, of which it holds one."""

COMPRESSIONS: Final = ("producer", "gzip", "zstd", "zstd")
MOST: Final = 6
"""Partitions of the plan in which is looked for offsets."""

MUCH: Final = 1 << 20
COMMITTED: Final = 1
LONG_MS: Final = 14_000
SOON_S: Final = 8.0
SHOWN: Final = 3000
"""Bytes of a record: many more than a marker has, and fewer than a segment."""

BEFORE_ZSTD: Final = 9
OF_LAST_EPOCH: Final = 12
"""The version of Fetch in which a reader says of which epoch its last record was, and names topics."""

EPOCH_OF_OFFSET: Final = 4
"""The version of ListOffsets that tells leader epochs."""


class ForeignReaders(Speaking):
    """Of topics of its own, which it deletes then, and of the plan's."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with (
            AsyncClient(properties) as client,
            AsyncClient(properties) as other,
            AsyncAdmin(properties) as admin,
        ):
            self.client, self.other = client, other
            with suppress(*REFUSED, Enough):
                await self._found(await self.topics_of(admin, "steady"))
            compression = self.random.choice(COMPRESSIONS)
            new = {TOPIC: {}, COMPRESSED: {"compression.type": compression}, TURNS: OFTEN_INDEXED}
            counts = {TURNS: PARTITIONS}
            topics = [NewTopic(name, counts.get(name, 1), -1, configs) for name, configs in new.items()]
            await admin.create_topics(topics)
            try:
                with suppress(*REFUSED, Enough):
                    await self._compressed(await client.topic(COMPRESSED), compression)
                with suppress(*REFUSED, Enough):
                    await self._in_turn(await client.topic(TURNS))
                for act in (self._diverged, self._shown):
                    with suppress(*REFUSED, Enough):
                        await act(await client.topic(TOPIC))
            finally:
                for name in new:
                    await admin.delete_topics(name)

    async def _found(self, topics: list[TopicMetadata]) -> None:
        """An offset is told with the leader epoch of the record that is there."""
        places = [(topic, index) for topic in topics for index, one in topic.partitions.items() if one.leader >= 0]
        kind = messages.ListOffsetsRequest
        for topic, index in self.random.sample(places, min(MOST, len(places))):
            leader, at = topic.partitions[index].leader, f"{topic.name}-{index}"
            wanted = kind.ListOffsetsPartition(partition_index=index, timestamp=0)
            named = kind.ListOffsetsTopic(name=topic.name, partitions=[wanted])
            about = f"the first record of {at}, and its leader epoch"
            found = await self.said(leader, kind(replica_id=-1, topics=[named]), about, "NONE", version=EPOCH_OF_OFFSET)
            told = found.topics[0].partitions[0]
            if told.offset < 0:
                continue
            read = await self.said(leader, _fetch(topic, index, told.offset), about, "NONE")
            first = next(batch_headers(_records(read)), None)
            if first is not None:
                self.holds(leader, "ListOffsets", about, told.leader_epoch, first.partition_leader_epoch)

    async def _compressed(self, topic: TopicMetadata, compression: str) -> None:
        """Who asks in a version before zstd is told where that is needed; others are given what there is."""
        leader = topic.partitions[0].leader
        await self._append(topic)
        due = "UNSUPPORTED_COMPRESSION_TYPE" if compression == "zstd" else "NONE"
        about = f"records of {COMPRESSED}, whose compression.type is {compression}"
        await self.said(leader, _fetch(topic, 0, 0), about, "NONE")
        await self.said(leader, _fetch(topic, 0, 0), f"{about}, before zstd", due, version=BEFORE_ZSTD)

    async def _append(self, topic: TopicMetadata, index: int = 0, size: int = 100, moment: float | None = None) -> None:
        data = write([Record(b"key", bytes(size), timestamp=int((moment or time.time()) * 1000))])
        request = produce_request(topic, index, data)
        about = f"a record of {topic.name}"
        await self.said(topic.partitions[index].leader, request, about, "NONE", otherwise=OTHERWISE)

    async def _in_turn(self, topic: TopicMetadata) -> None:
        """In a fetch session whose responses have room for one partition each has its turn, though one has always
        more (KIP-227)."""
        by_leader: dict[int, list[int]] = {}
        for index, known in topic.partitions.items():
            by_leader.setdefault(known.leader, []).append(index)
        leader, indexes = max(by_leader.items(), key=lambda each: len(each[1]))
        if leader < 0 or len(indexes) < 2:
            return
        first, rounds, moment = min(indexes), 2 * len(indexes), float(int(time.time()))
        for index in indexes:
            for _ in range(rounds if index == first else 1):
                await self._append(topic, index, LARGE, moment)
        (found,) = (await self.client.list_offsets({TopicPartition(TURNS, first): int(moment * 1000)})).values()
        about = f"the first of {rounds} records of {TURNS}-{first} that are of one moment"
        self.holds(leader, "ListOffsets", about, found, 0)
        kind, about = messages.FetchRequest, f"{len(indexes)} partitions of {TURNS} in a session, a record at a time"

        def fetch(session: int, number: int, offsets: dict[int, int]) -> Any:
            parts = [
                kind.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MUCH)
                for index, offset in offsets.items()
            ]
            topics = [kind.FetchTopic(topic=TURNS, topic_id=topic.topic_id, partitions=parts)] if parts else []
            named = {"session_id": session, "session_epoch": number, "topics": topics}
            return kind(max_wait_ms=0, min_bytes=1, max_bytes=SMALL, **named)

        given: dict[int, int] = {}
        response = await self.said(leader, fetch(0, 0, dict.fromkeys(sorted(indexes), 0)), about, "NONE")
        session = response.session_id
        for number in range(1, rounds + 1 if session else 0):
            moved = {}
            for part in (part for of in response.responses for part in of.partitions):
                batches = list(batch_headers(memoryview(part.records or b"")))
                if batches:
                    given[part.partition_index] = moved[part.partition_index] = batches[-1].next_offset
            response = await self.said(leader, fetch(session, number, moved), about, "NONE")
        if session:
            self.holds(leader, "Fetch", f"{about}: which were given any", sorted(given), sorted(indexes))
            await self.said(leader, fetch(session, -1, {}), about, "NONE")

    async def _diverged(self, topic: TopicMetadata) -> None:
        """Who has read more of an epoch than there is of it is told up to where, and nothing else."""
        leader, epoch = topic.partitions[0].leader, topic.partitions[0].leader_epoch
        await self._append(topic)
        (end,) = (await self.client.list_offsets({TopicPartition(TOPIC, 0): LATEST})).values()
        kind = messages.OffsetForLeaderEpochRequest

        def end_of(epoch: int) -> Any:
            part = kind.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            return kind(topics=[kind.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])])

        def told(response: Any) -> list[int]:
            found = response.topics[0].partitions[0]
            return [found.error_code, found.leader_epoch, found.end_offset]

        about = f"where {TOPIC} ends in leader epoch"
        await self.said(leader, end_of(epoch), f"{about} {epoch}", [0, epoch, end], of=told)
        for none in (-1, epoch + 1):
            await self.said(leader, end_of(none), f"{about} {none}, which it has not", [0, -1, -1], of=told)

        def diverging(response: Any) -> list[int]:
            found = response.responses[0].partitions[0]
            return [found.error_code, found.diverging_epoch.epoch, found.diverging_epoch.end_offset]

        about = f"{TOPIC} by who has read of leader epoch {epoch} up to"
        for offset, answer in ((end, [0, -1, -1]), (end + 1, [0, epoch, end])):
            request = _fetch(topic, 0, offset, last_fetched_epoch=epoch)
            await self.said(leader, request, f"{about} @{offset}", answer, of=diverging, version=OF_LAST_EPOCH)

    async def _shown(self, topic: TopicMetadata) -> None:
        """Who waits for committed records is woken by the marker that shows them, though it is smaller than they."""
        leader, loop = topic.partitions[0].leader, asyncio.get_running_loop()
        owner = await Owner.begun(self, self.other, TOPIC, topic, 0, int(2000 * PATIENCE))
        (start,) = (await self.client.list_offsets({TopicPartition(TOPIC, 0): LATEST})).values()
        if await owner.produce(0, size=SHOWN) != "NONE":
            return

        async def waits() -> float:
            request = _fetch(topic, 0, start, least=SHOWN, isolation=COMMITTED, wait_ms=LONG_MS)
            await self.client.request(request, node=leader)
            return loop.time()

        async def ends() -> tuple[str, float]:
            await asyncio.sleep(BEGUN_S + self.stage.round_trip_s)
            return await owner.end(commit=self.random.random() < 0.7), loop.time()

        told, (answer, ended) = await asyncio.gather(waits(), ends())
        if answer == "NONE" and self.stage.round_trip_s < SOON_S / 2:
            about = f"{SHOWN} bytes of {TOPIC}, of a transaction that ends while its reader waits"
            self.holds(leader, "Fetch", f"{about}: told within {SOON_S:g} s", told - ended < SOON_S, True)


def _fetch(
    topic: TopicMetadata,
    index: int,
    offset: int,
    *,
    least: int = 0,
    isolation: int = 0,
    wait_ms: int = 0,
    last_fetched_epoch: int = -1,
) -> Any:
    kind = messages.FetchRequest
    part = kind.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=MUCH, last_fetched_epoch=last_fetched_epoch
    )
    return kind(
        max_wait_ms=wait_ms,
        min_bytes=least,
        isolation_level=isolation,
        session_epoch=-1,
        topics=[kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])],
    )


def _records(response: Any) -> memoryview:
    return memoryview(next((part.records or b"" for of in response.responses for part in of.partitions), b""))
