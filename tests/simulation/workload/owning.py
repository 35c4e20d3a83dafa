"""A transactional producer made of single requests: what a client would never send can be sent, and at any moment.

Its transactions are of version 1, as those of most clients of other makes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from tagwire import messages
from tagwire.client.aio import AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records import Record, write
from tests.simulation.workload.probing import coordinator_of, error_of, produce_request
from tests.simulation.workload.stage import Actor

OF_VERSION_1: Final = {"EndTxn": 3, "Produce": 9, "TxnOffsetCommit": 3}
"""Of APIs whose newer versions are of transactions of version 2 (KIP-890): one that is not, and that every release
has."""


async def ask_in_version_1(client: AsyncClient, request: Any, node: int) -> Any:
    """The response to a request about a transaction of version 1."""
    version = OF_VERSION_1[type(request).__name__.removesuffix("Request")]
    return await client.request(request, node=node, version=version)


@dataclass(frozen=True)
class Owner:
    """Who owns a transactional id, and has added one partition to its transaction."""

    client: AsyncClient
    name: str
    topic: TopicMetadata
    partition: int
    coordinator: int
    producer_id: int
    epoch: int

    @classmethod
    async def begun(
        cls, asker: Actor, client: AsyncClient, name: str, topic: TopicMetadata, partition: int, timeout_ms: int
    ) -> Owner:
        """Takes a transactional id over and begins a transaction, which the asker's history tells.

        Raises:
            KafkaError: a broker refused. Other TagwireErrors: one was not heard.
        """
        coordinator = await coordinator_of(client, name, 1)
        found = await client.request(
            messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms), node=coordinator
        )
        _check(found)
        owned = {"producer_id": found.producer_id, "transaction_timeout": timeout_ms / 1000}
        asker.history.note(asker.process, "own", transactional_id=name, **owned)
        add = messages.AddPartitionsToTxnRequest
        added = await client.request(
            add(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=found.producer_id,
                v3_and_below_producer_epoch=found.producer_epoch,
                v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic.name, partitions=[partition])],
            ),
            node=coordinator,
        )
        _check(added)
        return cls(client, name, topic, partition, coordinator, found.producer_id, found.producer_epoch)

    def elsewhere(self, topic: TopicMetadata, partition: int) -> Self:
        """The same, where its transaction was not added."""
        return replace(self, topic=topic, partition=partition)

    async def produce(self, sequence: int = 0, size: int = 0, age: float = 0.0) -> str:
        """Sends one record, whose value has so many bytes at least, and which says to be so many seconds old; what was
        answered."""
        data = batch(self.name, self.producer_id, self.epoch, sequence, size, age)
        request = produce_request(self.topic, self.partition, data, self.name)
        return error_of(await ask_in_version_1(self.client, request, self.topic.partitions[self.partition].leader))

    async def commit_offset(self, group: str, offset: int) -> None:
        """Sends a group's offset of the partition with the transaction. Raises as `begun`."""
        await self.commit_offsets(group, {TopicPartition(self.topic.name, self.partition): offset})

    async def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Sends a group's offsets with the transaction, all of them in one request. Raises as `begun`."""
        add = messages.AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
        )
        _check(await self.client.request(add, node=self.coordinator))
        kind = messages.TxnOffsetCommitRequest
        topics = [
            kind.TxnOffsetCommitRequestTopic(
                name=at.topic,
                partitions=[
                    kind.TxnOffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset)
                ],
            )
            for at, offset in offsets.items()
        ]
        request = kind(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=topics,
        )
        _check(await ask_in_version_1(self.client, request, await coordinator_of(self.client, group, 0)))

    async def end(self, *, commit: bool) -> str:
        """What was answered to EndTxn."""
        request = messages.EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        return error_of(await ask_in_version_1(self.client, request, self.coordinator))


def batch(name: str, producer_id: int, epoch: int, sequence: int = 0, size: int = 0, age: float = 0.0) -> bytes:
    """A batch of one record of a transaction."""
    return write(
        [Record(b"key", name.encode().ljust(size), timestamp=int((time.time() - age) * 1000))],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )


def _check(response: Any) -> None:
    if (error := error_of(response)) != "NONE":
        raise KafkaError(Error[error], type(response).__name__)
