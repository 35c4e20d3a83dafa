"""Transactions: list, describe, abort those that hang, fence the producers of others (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.coordinators import TRANSACTION
from tagwire.client.option_types import of_type
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import LIST_TRANSACTIONS_DURATION

# How long a fenced producer's next transaction might take; nobody begins one with the epoch that fencing takes.
_FENCING_TIMEOUT_MS: Final = 60_000

_OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id as its coordinator lists it, with its state, such as "Ongoing"."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id.

    Attributes:
        timeout_ms: milliseconds after which its coordinator aborts the transaction.
        started_ms: when the transaction began, or the last one where none is open, in milliseconds since 1970 UTC; -1
            where there was none since the last producer took the id over.
        partitions: those the transaction has written to.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer as a partition knows it.

    Attributes:
        coordinator_epoch: of the last transaction marker; -1 where there was none.
        transaction_start: offset of the first record of its open transaction; -1 without one.
        last_timestamp: milliseconds since 1970 UTC.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class Transactions(AdminApi):
    """Transactions of a cluster."""

    async def list_transactions(
        self, *, states: arguments.Names = (), producer_ids: int | Sequence[int] = (), longer_than_ms: int = -1
    ) -> list[TransactionListing]:
        """As `Admin.list_transactions`."""
        of_type("longer_than_ms", longer_than_ms, Integral, "a number of milliseconds")
        request = messages.ListTransactionsRequest(
            state_filters=arguments.names("states", states),
            producer_id_filters=arguments.numbers("producer_ids", producer_ids),
            duration_filter=int(longer_than_ms),
        )

        async def ask(node: int, deadline: float) -> tuple[int, list[TransactionListing]]:
            connection = await self._network.connection(node, deadline)
            if longer_than_ms >= 0:
                self._require(connection, request.api_key, LIST_TRANSACTIONS_DURATION)
            response = await self._network.request(connection, request, deadline)
            return response.error_code, [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
                for each in response.transaction_states
                # Kafka's brokers look at no more than when the last one began.
                if longer_than_ms < 0 or each.transaction_state in _OPEN
            ]

        told = await self._of_every_broker("transactions", ask)
        found = {each.transactional_id: each for listed in told.values() for each in listed}
        return [found[name] for name in sorted(found)]

    async def describe_transactions(self, transactional_ids: arguments.Names) -> dict[str, TransactionDescription]:
        """As `Admin.describe_transactions`."""

        async def describe(node: int, own: list[str], deadline: float) -> list[ApiResult[str, TransactionDescription]]:
            request = messages.DescribeTransactionsRequest(transactional_ids=own)
            response = await self._request(node, request, deadline)
            return [
                ApiResult(
                    each.transactional_id,
                    each.error_code,
                    value=TransactionDescription(
                        each.transactional_id,
                        each.transaction_state,
                        each.producer_id,
                        each.producer_epoch,
                        each.transaction_timeout_ms,
                        each.transaction_start_time_ms,
                        tuple(
                            TopicPartition(topic.topic, index) for topic in each.topics for index in topic.partitions
                        ),
                    ),
                )
                for each in response.transaction_states
            ]

        async def send(left: list[str], deadline: float) -> ApiResults[str, TransactionDescription]:
            homes = await self._by_coordinator(left, TRANSACTION, deadline)
            async for result in self._beside([describe(node, own, deadline) for node, own in homes]):
                yield result

        return await self._drive(arguments.names("transactional_ids", transactional_ids), send, "describe transaction")

    async def describe_producers(
        self, partitions: arguments.TopicsOrPartitions
    ) -> dict[TopicPartition, list[ProducerState]]:
        """As `Admin.describe_producers`."""
        kind = messages.DescribeProducersRequest

        async def describe(
            node: int, topics: dict[str, list[int]], deadline: float
        ) -> list[ApiResult[TopicPartition, list[ProducerState]]]:
            request = kind(topics=[kind.TopicRequest(name=name, partition_indexes=own) for name, own in topics.items()])
            response = await self._request(node, request, deadline)
            return [
                ApiResult(
                    TopicPartition(topic.name, found.partition_index),
                    found.error_code,
                    found.error_message,
                    [
                        ProducerState(
                            each.producer_id,
                            each.producer_epoch,
                            each.last_sequence,
                            each.last_timestamp,
                            each.coordinator_epoch,
                            each.current_txn_start_offset,
                        )
                        for each in found.active_producers
                    ],
                )
                for topic in response.topics
                for found in topic.partitions
            ]

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, list[ProducerState]]:
            leaders = await self._by_leader(left, deadline)
            async for result in self._beside([describe(node, topics, deadline) for node, topics in leaders]):
                yield result

        return await self._drive(
            await self._partitions("partitions", partitions), send, "describe producers of partition"
        )

    async def abort_transaction(
        self, partition: tuple[str, int], producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """As `Admin.abort_transaction`."""
        kind = messages.WriteTxnMarkersRequest
        at = arguments.topic_partition("partition", partition)

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, None]:
            for node, topics in await self._by_leader(left, deadline):
                marker = kind.WritableTxnMarker(
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    transaction_result=False,
                    coordinator_epoch=max(coordinator_epoch, 0),
                    topics=[
                        kind.WritableTxnMarkerTopic(name=name, partition_indexes=own) for name, own in topics.items()
                    ],
                )
                request = kind(markers=[marker])
                response = await self._request(node, request, deadline)
                for written in response.markers:
                    for topic in written.topics:
                        for found in topic.partitions:
                            yield ApiResult(TopicPartition(topic.name, found.partition_index), found.error_code)

        await self._drive([at], send, f"abort the transaction of producer {producer_id} in partition")

    async def fence_producers(self, transactional_ids: arguments.Names) -> None:
        """As `Admin.fence_producers`."""

        async def fence(node: int, name: str, deadline: float) -> list[ApiResult[str, None]]:
            request = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
            response = await self._request(node, request, deadline)
            return [ApiResult(name, response.error_code)]

        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            homes = await self._by_coordinator(left, TRANSACTION, deadline)
            async for result in self._beside([fence(node, name, deadline) for node, own in homes for name in own]):
                yield result

        names = arguments.names("transactional_ids", transactional_ids)
        await self._drive(names, send, "fence the producer of transactional id")
