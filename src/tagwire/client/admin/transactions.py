"""Transactions: list, describe, abort those that hang, fence the producers of others (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.client.config import of_type
from tagwire.client.coordinators import TRANSACTION
from tagwire.partitions import TopicPartition

# How long a fenced producer's next transaction might take; nobody begins one with the epoch that fencing takes.
_FENCING_TIMEOUT_MS: Final = 60_000

# From this version on ListTransactions can be asked for long ones alone.
_DURATION_FROM: Final = 1


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
        started_ms: milliseconds since 1970 UTC; -1 while there is no transaction.
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


class Transactions(Asker):
    """Transactions of a cluster."""

    def list_transactions(
        self, *, states: arguments.Names = (), producer_ids: int | Sequence[int] = (), longer_than_ms: int = -1
    ) -> list[TransactionListing]:
        """Every transactional id, by name.

        Args:
            states: only those in these states, such as "Ongoing".
            producer_ids: only those of these producers.
            longer_than_ms: only transactions that have been open for longer; needs Kafka 3.8.

        Raises:
            KafkaError: a broker refuses. UnsupportedVersionError: a broker is too old for what is asked.
        """
        of_type("longer_than_ms", longer_than_ms, Integral, "a number of milliseconds")
        request = messages.ListTransactionsRequest(
            state_filters=arguments.names("states", states),
            producer_id_filters=arguments.numbers("producer_ids", producer_ids),
            duration_filter=int(longer_than_ms),
        )
        found: dict[str, TransactionListing] = {}

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection in self._every_broker(deadline):
                if longer_than_ms >= 0:
                    self._require(connection, request.api_key, _DURATION_FROM)
                answer = self._exchange(connection, request, deadline)
                if answer.error_code:
                    yield Outcome("transactions", answer.error_code)
                    return
                for each in answer.transaction_states:
                    found[each.transactional_id] = TransactionListing(
                        each.transactional_id, each.producer_id, each.transaction_state
                    )
            yield Outcome("transactions", 0)

        self._settle(["transactions"], ask, "list")
        return [found[name] for name in sorted(found)]

    def describe_transactions(self, transactional_ids: arguments.Names) -> dict[str, TransactionDescription]:
        """Transactional ids and the partitions of their open transactions.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND naming one that does not exist, or another refusal.
        """

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection, own in self._by_coordinator(left, TRANSACTION, deadline):
                request = messages.DescribeTransactionsRequest(transactional_ids=own)
                for each in self._exchange(connection, request, deadline).transaction_states:
                    partitions = tuple(
                        TopicPartition(topic.topic, index) for topic in each.topics for index in topic.partitions
                    )
                    found = TransactionDescription(
                        each.transactional_id,
                        each.transaction_state,
                        each.producer_id,
                        each.producer_epoch,
                        each.transaction_timeout_ms,
                        each.transaction_start_time_ms,
                        partitions,
                    )
                    yield Outcome(each.transactional_id, each.error_code, value=found)

        return self._settle(arguments.names("transactional_ids", transactional_ids), ask, "describe transaction")

    def describe_producers(self, partitions: arguments.TopicsOrPartitions) -> dict[TopicPartition, list[ProducerState]]:
        """The producers that partitions know, which tells whose transaction holds readers up. A topic's name stands
        for all of its partitions.

        Raises:
            KafkaError: naming the partition.
        """
        kind = messages.DescribeProducersRequest

        def ask(left: list[TopicPartition], deadline: float) -> Iterator[Outcome]:
            for connection, topics in self._by_leader(left, deadline):
                request = kind(
                    topics=[kind.TopicRequest(name=name, partition_indexes=own) for name, own in topics.items()]
                )
                for topic in self._exchange(connection, request, deadline).topics:
                    for found in topic.partitions:
                        producers = [
                            ProducerState(
                                each.producer_id,
                                each.producer_epoch,
                                each.last_sequence,
                                each.last_timestamp,
                                each.coordinator_epoch,
                                each.current_txn_start_offset,
                            )
                            for each in found.active_producers
                        ]
                        at = TopicPartition(topic.name, found.partition_index)
                        yield Outcome(at, found.error_code, found.error_message, producers)

        return self._settle(self._places("partitions", partitions), ask, "describe producers of partition")

    def abort_transaction(
        self, partition: tuple[str, int], producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Ends a transaction that hangs in one partition: its coordinator knows nothing of it any more.

        The three numbers are those of `describe_producers`; a `coordinator_epoch` of -1 there is 0 here. A transaction
        that its coordinator does know is ended by `fence_producers`.

        Raises:
            KafkaError: naming the partition; INVALID_PRODUCER_EPOCH for a producer that has moved on.
        """
        kind = messages.WriteTxnMarkersRequest
        at = arguments.topic_partition("partition", partition)

        def ask(left: list[TopicPartition], deadline: float) -> Iterator[Outcome]:
            for connection, topics in self._by_leader(left, deadline):
                marker = kind.WritableTxnMarker(
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    transaction_result=False,
                    coordinator_epoch=max(coordinator_epoch, 0),
                    topics=[
                        kind.WritableTxnMarkerTopic(name=name, partition_indexes=own) for name, own in topics.items()
                    ],
                )
                for answer in self._exchange(connection, kind(markers=[marker]), deadline).markers:
                    for topic in answer.topics:
                        for found in topic.partitions:
                            yield Outcome(TopicPartition(topic.name, found.partition_index), found.error_code)

        self._settle([at], ask, f"abort the transaction of producer {producer_id} in partition")

    def fence_producers(self, transactional_ids: arguments.Names) -> None:
        """Aborts the open transactions of transactional ids, and shuts out the producers that opened them.

        Raises:
            KafkaError: naming the transactional id.
        """

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            for connection, own in self._by_coordinator(left, TRANSACTION, deadline):
                for name in own:
                    request = messages.InitProducerIdRequest(
                        transactional_id=name, transaction_timeout_ms=_FENCING_TIMEOUT_MS
                    )
                    yield Outcome(name, self._exchange(connection, request, deadline).error_code)

        names = arguments.names("transactional_ids", transactional_ids)
        self._settle(names, ask, "fence the producer of transactional id")
