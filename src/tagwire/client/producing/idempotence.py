"""Whether batches are idempotent, and under which producer id: the part of Kafka's TransactionManager that a producer
without transactions uses. The other one is `transaction_manager`."""

from __future__ import annotations

from collections.abc import Iterable

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import MAX_IN_FLIGHT
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.partition_queue import PartitionQueue
from tagwire.client.producing.producer_id import NO_PRODUCER_ID, bump_epoch, producer_id_in
from tagwire.client.scheduling import sleep
from tagwire.errors import Error, KafkaError, TagwireError, UnsupportedVersionError
from tagwire.partitions import TopicPartition


class NonIdempotent:
    """A producer whose batches have no sequence numbers. Methods are for the sending thread.

    Attributes:
        producer: the producer id and epoch; `NO_PRODUCER_ID` where there is none, or none yet.
        needs_producer_id: whether one is needed before anything can be sent; `init_producer_id` gets it.
        max_in_flight: how many batches of a partition may be in flight.
        transactional_id: None without transactions.
        abort_reason: why batches that are not in flight are failed instead of sent; None while they are sent.
    """

    producer = NO_PRODUCER_ID
    max_in_flight = 1
    transactional_id: str | None = None
    abort_reason: TagwireError | None = None

    @property
    def needs_producer_id(self) -> bool:
        return False

    def produce_version(self, connection: BrokerConnection, api: int, highest: int | None) -> int:
        """The version of Produce to speak."""
        return connection.version(api, highest)

    async def init_producer_id(self, deadline: float) -> None:
        """Gets a producer id (InitProducerId). Raises TagwireError."""

    def partitions_to_add(
        self, partitions: Iterable[TopicPartition], connection: BrokerConnection
    ) -> list[TopicPartition]:
        """Of partitions that are about to be written to, on a connection, those that have to be added to the
        transaction before."""
        return []

    async def add_partitions(self, partitions: list[TopicPartition], deadline: float) -> None:
        """Adds partitions to the transaction. Raises TagwireError."""

    def handle_failed_batch(self, queue: PartitionQueue, error: TagwireError) -> TagwireError:
        """A batch of the partition, with a sequence number or in a transaction, is failed. Returns what to say of
        it."""
        return error

    def handle_sequence_error(self, queue: PartitionQueue, error: KafkaError) -> bool:
        """The broker refuses the sequence number of the partition's oldest batch. Whether it may get another one."""
        return False


class Idempotent(NonIdempotent):
    """A producer with a producer id of its own, which its first batch requests."""

    max_in_flight = MAX_IN_FLIGHT

    def __init__(self, network: NetworkClient) -> None:
        self._network = network

    @property
    def needs_producer_id(self) -> bool:
        return self.producer == NO_PRODUCER_ID

    async def init_producer_id(self, deadline: float) -> None:
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        retry = self._network.retry(deadline)
        while True:
            error: TagwireError
            response: messages.InitProducerIdResponse
            try:
                _, response = await self._network.request_any(request, min(deadline, self._network.deadline()))
                if not response.error_code:
                    break
                error = KafkaError(response.error_code, "ask for a producer id")
            except UnsupportedVersionError as unsupported:
                hint = "Producer(idempotence=False) does without, but a batch may then be appended twice"
                raise UnsupportedVersionError(f"{unsupported}; {hint}") from unsupported
            except TagwireError as failure:
                error = failure
            await sleep(retry.pause_until(error))
        self.producer = producer_id_in(response)

    def handle_failed_batch(self, queue: PartitionQueue, error: TagwireError) -> TagwireError:
        # Where the epoch was bumped since, for another partition, this one has not begun under it: they share it.
        if not queue.sequences.must_reset and queue.sequences.producer == self.producer:
            self.producer = bump_epoch(self.producer)
        queue.sequences.must_reset = True
        return error

    def handle_sequence_error(self, queue: PartitionQueue, error: KafkaError) -> bool:
        self.handle_failed_batch(queue, error)
        queue.sequences.has_gap = True
        is_current = queue.sequences.producer.producer_id == self.producer.producer_id
        if error.error is Error.INVALID_PRODUCER_EPOCH and is_current:  # somebody else has the id at a later epoch
            self.producer = NO_PRODUCER_ID
        return True
