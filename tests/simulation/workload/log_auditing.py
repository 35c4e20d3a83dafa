"""A partition as its leader has it at one moment: every batch by its header, and what the leader says of them: who
writes, what is open, what was aborted, where leader epochs end."""

from __future__ import annotations

import time
from random import Random
from struct import Struct
from typing import Any

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error, KafkaError, UnsupportedVersionError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import RecordBatch, read
from tagwire.records.control import control_type
from tests.simulation.workload.stage import Spec

TRIES = 4
"""How often it is begun again, since something was written meanwhile."""

LOOKS = 4
"""From how many offsets readers of committed records look."""

FETCH_BYTES = 1 << 20

SIZES = (1, 1000, FETCH_BYTES)
"""Of what they look at: a batch, some, all there is."""

KNOWN = 5
"""Batches of a producer that a broker recognizes when they come again, as Kafka's does."""

RECENT_S = 10_000

_LEADER_EPOCH_AT = 12
_EPOCH = Struct(">h")
_EPOCH_AT = 51
"""In a batch's header: docs/record-formats.md#record-batches."""


class LogAudit:
    """Of one partition. Ask it of the partition's leader, of whom `topic` tells."""

    def __init__(
        self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, partition: int, random: Random
    ) -> None:
        self._client = client
        self._admin = admin
        self._topic = topic
        self._at = TopicPartition(topic.name, partition)
        self._leader = topic.partitions[partition].leader
        self._random = random
        self._newest: dict[int, list[tuple[int, bytes, int]]] = {}

    @property
    def leader(self) -> int:
        """Who leads it."""
        return self._leader

    async def again(self, since_s: float) -> list[tuple[int, Any]]:
        """Batches that a broker has to know still, as their producers sent them, each with its first offset: of each
        producer that is in no transaction the oldest of its last five, or, of what was written more than `since_s`
        seconds ago, the last one: a broker that was started since has its snapshots, which tell of that alone.

        Raises:
            TagwireError: as `told`.
        """
        (start,) = (await self._client.list_offsets({self._at: EARLIEST})).values()
        await self._batches(start)
        kind = messages.ProduceRequest
        found = []
        for sent in filter(None, self._newest.values()):
            base, data, _ = next((each for each in sent if each[2] < since_s), sent[-1])
            part = kind.PartitionProduceData(index=self._at.partition, records=data)
            topic = kind.TopicProduceData(name=self._at.topic, topic_id=self._topic.topic_id, partition_data=[part])
            found.append((base, kind(acks=-1, timeout_ms=5000, topic_data=[topic])))
        return found

    async def told(self) -> Spec:
        """All of it, as a history's `final_log` has it.

        Raises:
            TagwireError: the broker refused, or was not heard.
        """
        for _ in range(TRIES):
            (start,) = (await self._client.list_offsets({self._at: EARLIEST})).values()
            batches, last = await self._batches(start)
            told = {
                "log_start": start,
                "batches": batches,
                "end": last.high_watermark,
                "stable": last.last_stable_offset,
                "listed": (await self._client.list_offsets({self._at: LATEST}, isolation="read_committed"))[self._at],
                "producers": await self._producers(),
                "aborted": await self._aborted(start, last.high_watermark, last.last_stable_offset),
                "epochs": await self._epoch_ends(sorted({batch[2] for batch in batches})),
            }
            now = await self._fetch(last.high_watermark)
            if (now.high_watermark, now.log_start_offset) == (last.high_watermark, start):
                return told
        return {}

    async def _fetch(self, offset: int, isolation: int = 0, size: int = FETCH_BYTES) -> Any:
        kind = messages.FetchRequest
        wanted = kind.FetchPartition(partition=self._at.partition, fetch_offset=offset, partition_max_bytes=size)
        topic = kind.FetchTopic(topic=self._at.topic, topic_id=self._topic.topic_id, partitions=[wanted])
        request = kind(max_wait_ms=0, min_bytes=0, max_bytes=size, isolation_level=isolation, topics=[topic])
        response = await self._client.request(request, node=self._leader)
        found = response.responses[0].partitions[0] if response.responses else response
        if found.error_code:
            raise KafkaError(Error(found.error_code), f"{self._at.topic}-{self._at.partition} is audited")
        return found

    def _note(self, batch: RecordBatch, age: int) -> None:
        if batch.producer_id < 0 or batch.is_control:
            return
        sent = self._newest.setdefault(batch.producer_id, [])
        if batch.is_transactional or age > RECENT_S or batch.timestamp_type != "CreateTime":
            sent.clear()
            return
        data = bytearray(batch.bytes_in(None))
        if sent and _EPOCH.unpack_from(data, _EPOCH_AT) != _EPOCH.unpack_from(sent[-1][1], _EPOCH_AT):
            sent.clear()
        data[:8], data[_LEADER_EPOCH_AT : _LEADER_EPOCH_AT + 4] = bytes(8), b"\xff" * 4
        sent.append((batch.base_offset, bytes(data), age))
        del sent[:-KNOWN]

    async def _batches(self, offset: int) -> tuple[list[list[Any]], Any]:
        """[first offset, last, leader epoch, producer id, its epoch, first sequence, how many, what, age in seconds]
        of each batch; what: "", "t" in a transaction, "commit", "abort", "emptied" for a marker without its record."""
        found: list[list[Any]] = []
        self._newest.clear()
        while True:
            last = await self._fetch(offset)
            came = False
            for batch in read(memoryview(last.records or b"")):
                came, offset = True, batch.next_offset
                what = "t" if batch.is_transactional else ""
                if batch.is_control:
                    marker = next(iter(batch.records()), None)  # compaction may have emptied it
                    what = "emptied" if marker is None else control_type(marker.key).lower()
                age = round(time.time() - batch.max_timestamp / 1000)
                self._note(batch, age)
                found.append(
                    [
                        batch.base_offset,
                        batch.last_offset,
                        batch.partition_leader_epoch,
                        batch.producer_id,
                        batch.producer_epoch,
                        batch.base_sequence,
                        batch.last_offset_delta + 1,
                        what,
                        age,
                    ]
                )
            if not came:
                return found, last

    async def _producers(self) -> list[list[int]] | None:
        """[producer id, epoch, last sequence, first offset of its open transaction or -1]; None where the broker does
        not say."""
        try:
            found = (await self._admin.describe_producers([self._at]))[self._at]
        except UnsupportedVersionError:
            return None
        return sorted(
            [each.producer_id, each.producer_epoch, each.last_sequence, each.transaction_start] for each in found
        )

    async def _aborted(self, start: int, end: int, stable: int) -> list[Any]:
        """[from which offset, up to which, [[producer id, first offset], ...]] of some fetches of committed records."""
        looks = {start, *(self._random.randrange(start, end) for _ in range(LOOKS - 1))} if end > start else set()
        looks |= {stable} if stable < end else set()
        told = []
        for offset in sorted(looks):
            found = await self._fetch(offset, isolation=1, size=self._random.choice(SIZES))
            upto = max((batch.next_offset for batch in read(memoryview(found.records or b""))), default=offset)
            aborted = sorted([each.producer_id, each.first_offset] for each in found.aborted_transactions or ())
            told.append([offset, upto, aborted])
        return told

    async def _epoch_ends(self, epochs: list[int]) -> list[list[int]]:
        """[leader epoch, the epoch and the end that are told for it]."""
        if not epochs:
            return []
        kind = messages.OffsetForLeaderEpochRequest
        told = []
        for epoch in epochs:
            wanted = kind.OffsetForLeaderPartition(partition=self._at.partition, leader_epoch=epoch)
            topic = kind.OffsetForLeaderTopic(topic=self._at.topic, partitions=[wanted])
            response = await self._client.request(kind(topics=[topic]), node=self._leader)
            found = response.topics[0].partitions[0]
            told.append([epoch, found.leader_epoch, found.end_offset])
        return told
