"""Sends batches to the leaders of their partitions, in order, again while that is worth it (Kafka's Sender).

One request carries a batch of each of many partitions; several requests may be in flight to one leader. What an error
means is in `produce_errors`, the rules of sequence numbers are in `sequence_numbers`.

Nothing here waits for a broker: what is missing before a batch can be sent (its leader, the connection, a producer id)
is got beside (`tagwire.client.scheduling`), and only the batches that need it stay in their queues meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ProduceSettings
from tagwire.client.core_host import broken_down
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.metadata import NO_TOPIC_ID, PartitionMetadata, nodes_of
from tagwire.client.metrics import ProducerMetrics
from tagwire.client.metrics.producer import SentBatch
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.idempotence import NonIdempotent
from tagwire.client.producing.partition_queue import PartitionQueue
from tagwire.client.producing.produce_errors import NOT_APPENDED, Outcome, outcome_of
from tagwire.client.producing.produce_response import PartitionResponse, by_partition, counted, refusal_of
from tagwire.client.producing.producer_batch import NO_OFFSET, NO_SEQUENCE, ProducerBatch
from tagwire.client.producing.producer_id import ProducerIdAndEpoch
from tagwire.client.producing.producer_metadata import ProducerMetadata
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.client.property_values import MAX_INT
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.scheduling import Tasks, Work
from tagwire.errors import (
    EncodeError,
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc.dialects import say_dialect
from tagwire.rpc.version_gates import PRODUCE_TOPIC_IDS, PRODUCE_ZSTD
from tagwire.spec.api_keys import ApiKey

# Batches are put together into one request up to here; a larger batch goes alone.
REQUEST_BYTES: Final = 8 * 1024 * 1024

# A thread that has nothing to wait for looks around this often (seconds).
LONGEST_SLEEP: Final = 60.0

MAX_OFFSET: Final = 2**63 - 1

_TOPIC_UNKNOWN: Final = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.INCONSISTENT_TOPIC_ID)


@dataclass(frozen=True, slots=True, eq=False)
class _InFlightRequest:
    """A Produce request in flight. `topics`: the topics' names by what the response calls them."""

    node: int
    connection: BrokerConnection
    pending: InFlightRequest[messages.ProduceResponse]
    batches: list[ProducerBatch]
    topics: Mapping[str | UUID, str]
    deadline: float


class Sender:
    """The work of a producer's thread, which is the only one to call it.

    Attributes:
        metrics: what the producer measures.
    """

    def __init__(
        self,
        network: NetworkClient,
        tasks: Tasks,
        settings: ProduceSettings,
        metadata: ProducerMetadata,
        accumulator: RecordAccumulator[Any],
        idempotence: NonIdempotent,
    ) -> None:
        self._network = network
        self._tasks = tasks
        self._settings = settings
        self._metadata = metadata
        self._accumulator = accumulator
        self._idempotence = idempotence
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._in_flight: list[_InFlightRequest] = []
        self._looked_at = 0.0
        self._goes_on = False
        self._sent_at: dict[int, float] = {}
        self._loaded: frozenset[str] = frozenset()
        self._failure: TagwireError | None = None
        self.metrics = ProducerMetrics(
            network.metrics,
            settings.buffer_memory,
            lambda: accumulator.buffered_bytes,
            lambda: len(self._in_flight),
        )
        accumulator.on_room = self.metrics.waited_for_room

    # What the thread calls -----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Takes the responses that are there and sends what can be sent."""
        self._take_responses()
        self._tasks.step(self._network.now())
        abort_reason = self._idempotence.abort_reason
        for batch in self._accumulator.drain(self._network.now(), everything=abort_reason is not None):
            self._queue(batch.topic_partition).append(batch)
            self._metadata.used(batch.topic_partition.topic)
        if abort_reason is not None:
            self._abort_undrained(abort_reason)
        if self._metadata.is_refresh_due and "metadata" not in self._tasks:
            self._tasks.start("metadata", self._metadata.refresh(), _leave_to_sending)
        if self._has_queued():
            self._fail_expired()
            self._goes_on = True
            while self._goes_on:
                self._goes_on = False
                self._send_round()
                if self._goes_on:
                    self._take_responses()
            if self._settings.adaptive_partitioning:
                self._tell_load()
        elif self._loaded:
            self._tell_load()

    def until(self) -> float:
        """When the next step is due, should no response come before: a request's time is up, or a batch may be sent."""
        now = self._network.now()
        if self._tasks.is_any_over(now):
            return now
        until = min(self._accumulator.ready_at(), self._tasks.until, now + LONGEST_SLEEP)
        for request in self._in_flight:
            if request.pending.done:
                return now
            until = min(until, request.deadline)
        for queue in self._queues.values():
            if queue.batches:
                head = queue.batches[0]
                until = min(until, self._expiry(head))
                if head.retry_at > self._looked_at:  # what could be sent then waits for responses about others
                    until = min(until, head.retry_at)
        return until

    def failed(self, error: BaseException) -> None:
        """Fails everything."""
        reason = self._failure = broken_down("producer", error)
        self._accumulator.refuse(reason)
        self._accumulator.note_failure(reason)
        self._accumulator.complete([(batch, NO_OFFSET, reason) for batch in self._accumulator.incomplete()])

    def close(self) -> None:
        """What is not delivered by now is failed."""
        self._tasks.close()
        self._network.close()
        reason = TagwireError("the producer was closed before this was delivered")
        self._accumulator.refuse(self._failure or TagwireError("the producer is closed"))
        self._accumulator.complete([(batch, NO_OFFSET, reason) for batch in self._accumulator.incomplete()])

    # What callers ask of the thread --------------------------------------------------------------------------------

    def sequences(self) -> dict[TopicPartition, int]:
        """The next sequence number of each partition that has got any under the current producer id and epoch."""
        producer = self._idempotence.producer
        return {
            tp: queue.sequences.next_sequence
            for tp, queue in self._queues.items()
            if queue.sequences.producer == producer and queue.is_empty and not queue.sequences.must_reset
        }

    def resume(self, producer: ProducerIdAndEpoch, sequences: Mapping[TopicPartition, int]) -> None:
        """Goes on counting where another producer left off."""
        for tp, sequence in sequences.items():
            self._queue(tp).sequences.resume(producer, sequence)

    # Sending -------------------------------------------------------------------------------------------------------

    def _queue(self, tp: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = PartitionQueue()
        return queue

    def _has_queued(self) -> bool:
        return any(queue.batches for queue in self._queues.values())

    def _send_round(self) -> None:
        """Sends at most one batch of each partition. Whatever may let others be sent now (one was sent or failed, or
        what they lacked was there at once) has another round follow."""
        ready = self._ready()
        if not ready:
            return
        if self._idempotence.needs_producer_id:
            deadline = self._deadline(ready)
            self._start("producer id", lambda: self._idempotence.init_producer_id(deadline), lambda: self._ready())
            return
        by_node: dict[int, list[ProducerBatch]] = defaultdict(list)
        leaderless: dict[str, list[ProducerBatch]] = defaultdict(list)
        for batch in ready:
            tp = batch.topic_partition
            partition = self._network.known_partition(tp)
            (leaderless[tp.topic] if partition is None else by_node[partition.leader]).append(batch)
        for node, found in by_node.items():
            self._send_to(node, found)
        for topic, batches in leaderless.items():  # last: where that fails, all of the topic are sent later
            self._find_leaders(topic, batches)

    def _tell_load(self) -> None:
        """Lets records without a key avoid partitions whose batches wait (KIP-794; partitionReady of Kafka's
        RecordAccumulator)."""
        waiting: dict[str, dict[int, int]] = {}
        slow: set[int] = set()
        now, patience = self._network.now(), self._settings.availability_timeout
        for tp, queue in self._queues.items():
            if not queue.batches:
                continue
            waiting.setdefault(tp.topic, {})[tp.partition] = len(queue.batches)
            partition = self._network.known_partition(tp) if patience else None
            if partition is not None:
                taken_at = max(self._sent_at.get(partition.leader, 0.0), queue.batches[0].created)
                if now - taken_at > patience:
                    slow.add(partition.leader)
        for name in waiting.keys() | self._loaded:
            partitioner, topic = self._metadata.get(name), self._network.known_topic(name)
            if partitioner is not None:
                partitions = {} if topic is None or not slow else topic.partitions
                unavailable = {index for index, one in partitions.items() if one.leader in slow}
                partitioner.sticky.update_load(waiting.get(name, {}), unavailable)
        self._loaded = frozenset(waiting)

    def _ready(self) -> list[ProducerBatch]:
        """The batches that may be sent now, one of each partition."""
        self._looked_at = now = self._network.now()
        idempotence = self._idempotence
        for queue in self._queues.values():
            if queue.batches and queue.sequences.has_gap:
                for batch in queue.unsendable():
                    unknown = TagwireError(f"{batch.topic_partition}: nobody knows if it is appended")
                    self._fail_batch(batch, batch.last_error or unknown)
        found: list[ProducerBatch] = []
        for queue in self._queues.values():
            if queue.batches:
                head = queue.next_batch(now, idempotence.max_in_flight, idempotence.producer)
                if head is not None:
                    found.append(head)
        return found

    def _deadline(self, batches: Iterable[ProducerBatch]) -> float:
        first = min([batch.created for batch in batches])
        return min(self._network.deadline(), first + self._settings.timeout)

    def _start(self, key: Hashable, work: Callable[[], Work[None]], waiting: Callable[[], list[ProducerBatch]]) -> None:
        """Begins to get what batches lack, unless that has begun. Where it fails, those that are `waiting` by then
        are sent later."""
        if key not in self._tasks:
            self._tasks.start(key, work(), lambda found, error: self._retry_or_fail_all(waiting(), _expected(error)))
            self._goes_on |= key not in self._tasks

    def _find_leaders(self, topic: str, batches: list[ProducerBatch]) -> None:
        """Begins to look up who leads the partitions of these batches of a topic."""

        def found(partitions: Mapping[int, PartitionMetadata | KafkaError] | None, error: Exception | None) -> None:
            missing = _expected(error)
            self._metadata.take_news(topic)
            for batch in self._ready():
                tp = batch.topic_partition
                if tp.topic == topic:
                    refusal = (partitions or {}).get(tp.partition)
                    if isinstance(refusal, KafkaError) and refusal.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        self._fail_batch(batch, refusal)  # the topic was made anew with fewer
                    elif isinstance(reason := missing or refusal, TagwireError):
                        self._retry_or_fail(batch, reason)  # for a topic that is not there, too: it may be again

        key = "leaders", topic
        if key not in self._tasks:
            wanted = {batch.topic_partition.partition for batch in batches}
            work = self._network.partitions(topic, wanted, self._deadline(batches), suggests=False)
            self._tasks.start(key, work, found)
            self._goes_on |= key not in self._tasks

    def _led_by(self, node: int) -> list[ProducerBatch]:
        """The batches that can be sent to a broker now."""
        led = ((batch, self._network.known_partition(batch.topic_partition)) for batch in self._ready())
        return [batch for batch, partition in led if partition is not None and partition.leader == node]

    def _send_to(self, node: int, batches: list[ProducerBatch]) -> None:
        free = self._settings.in_flight
        for request in self._in_flight:
            free -= request.node == node
        if free <= 0:
            return
        connection = self._network.ready_connection(node)
        if connection is None:
            deadline = self._deadline(batches)
            self._start(
                ("connection", node),
                lambda: _done(self._network.connection(node, deadline)),
                lambda: self._led_by(node),
            )
            return
        connection.node = node
        if connection.throttled_until > self._network.now():  # it throttles us; others may not
            for batch in batches:
                batch.retry_at = connection.throttled_until
            return
        if not connection.has_room:
            return
        batches = self._in_transaction(batches, connection)
        for batches_together in list(_by_request(self._encoded(batches, connection)))[:free]:
            if not connection.has_room:
                return
            self._send(node, connection, batches_together)

    def _in_transaction(self, batches: list[ProducerBatch], connection: BrokerConnection) -> list[ProducerBatch]:
        """The batches whose partitions are in the transaction; the others are added to it."""
        if not self._is_transactional:
            return batches
        new = self._idempotence.partitions_to_add([batch.topic_partition for batch in batches], connection)
        if new:
            waiting = [batch for batch in batches if batch.topic_partition in new]
            deadline = self._deadline(waiting)
            self._start(
                "partitions",
                lambda: self._idempotence.add_partitions(new, deadline),
                lambda: [batch for batch in self._ready() if batch.topic_partition in new],
            )
        return [batch for batch in batches if batch.topic_partition not in new]

    def _encoded(self, batches: Iterable[ProducerBatch], connection: BrokerConnection) -> Iterator[ProducerBatch]:
        """The batches as they are to be sent; one that cannot be is failed."""
        for batch in batches:
            try:
                batch.encode()
                speaks = connection.version(ApiKey.PRODUCE) if batch.compression == "zstd" else PRODUCE_ZSTD
                if speaks < PRODUCE_ZSTD:
                    raise UnsupportedVersionError(
                        f"{connection.broker} serves Produce up to v{speaks}; zstd needs v{PRODUCE_ZSTD}"
                    )
            except (EncodeError, UnsupportedVersionError) as error:
                self._fail_batch(batch, error)
            else:
                yield batch

    def _send(self, node: int, connection: BrokerConnection, batches: list[ProducerBatch]) -> None:
        now = self._network.now()
        # A batch that expires in flight is not waited for any longer; what it stands with is sent again.
        deadline = max(now, self._deadline(batches))
        self._goes_on = True
        try:
            ids = {batch.topic_partition.topic: self._topic_id(batch.topic_partition.topic) for batch in batches}
            highest = None if NO_TOPIC_ID not in ids.values() else PRODUCE_TOPIC_IDS - 1
            version = self._idempotence.produce_version(connection, ApiKey.PRODUCE, highest)
            for batch in batches:
                queue = self._queues[batch.topic_partition]
                queue.sequences.assign(batch, transactional=self._is_transactional)
                queue.sent(batch)
            message = self._produce_request(batches, ids)
            if self._settings.dialect is not None:
                say_dialect(message, self._settings.dialect, ApiKey.PRODUCE, version)
            pending = self._network.send(connection, message, version)
        except TagwireError as error:
            self._retry_or_fail_all(batches, error)
            return
        topics: dict[str | UUID, str] = {
            topic_id if version >= PRODUCE_TOPIC_IDS else name: name for name, topic_id in ids.items()
        }
        self._sent_at[node] = now
        self._in_flight.append(_InFlightRequest(node, connection, pending, batches, topics, deadline))
        self.metrics.sent(
            [
                SentBatch(batch.topic_partition.topic, batch.count, len(batch.data), batch.ratio, now - batch.created)
                for batch in batches
            ]
        )

    @property
    def _is_transactional(self) -> bool:
        return self._idempotence.transactional_id is not None

    def _topic_id(self, name: str) -> UUID:
        topic = self._network.known_topic(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    def _produce_request(self, batches: list[ProducerBatch], ids: Mapping[str, UUID]) -> messages.ProduceRequest:
        kind = messages.ProduceRequest
        topics: dict[str, list[messages.ProduceRequest.PartitionProduceData]] = {}
        for batch in batches:
            tp = batch.topic_partition
            topics.setdefault(tp.topic, []).append(kind.PartitionProduceData(index=tp.partition, records=batch.data))
        return kind(
            transactional_id=self._idempotence.transactional_id,
            acks=self._settings.acks,
            timeout_ms=int(min(self._network.timeout * 1000, MAX_INT)),
            topic_data=[
                kind.TopicProduceData(name=name, topic_id=ids[name], partition_data=data)
                for name, data in topics.items()
            ],
        )

    # Responses -----------------------------------------------------------------------------------------------------

    def _take_responses(self) -> None:
        if not self._in_flight:
            return
        now = self._network.now()
        for request in [request for request in self._in_flight if request.pending.done or request.deadline <= now]:
            self._in_flight.remove(request)
            if not request.pending.done:
                request.connection.expire(request.pending)
            try:
                response: messages.ProduceResponse | None = request.pending.result()
            except TagwireError as error:
                for batch in request.batches:
                    batch.may_be_appended |= request.pending.is_written
                self._retry_or_fail_all(request.batches, error)
            else:
                throttled = 0 if response is None else response.throttle_time_ms
                self.metrics.responded(now - request.pending.sent_at, throttled)
                self._handle_response(request, response)

    def _handle_response(self, request: _InFlightRequest, response: messages.ProduceResponse | None) -> None:
        """None is what there is with acks=0."""
        responses = {} if response is None else by_partition(response, request.topics)
        delivered = []
        for batch in request.batches:
            found = responses.get(batch.topic_partition)
            if response is None:
                delivered.append((batch, NO_OFFSET))
            elif found is None:
                batch.may_be_appended = True
                untold = f"the response to Produce does not say once what became of {batch.topic_partition}"
                self._fail_batch(batch, RemoteProtocolError(untold))
            elif found.error_code == Error.NONE and not 0 <= found.base_offset <= MAX_OFFSET - batch.count:
                impossible = f"{batch.topic_partition} is said to be written at offset {found.base_offset}"
                self._fail_batch(batch, RemoteProtocolError(impossible))
            elif found.error_code == Error.NONE:
                delivered.append((batch, found.base_offset))
            elif self._handle_error(batch, found, request.node, response) is Outcome.DELIVERED:
                delivered.append((batch, NO_OFFSET))
        for batch, _ in delivered:
            self._queues[batch.topic_partition].acked(batch)
        if delivered:
            self._accumulator.complete([(batch, offset, None) for batch, offset in delivered])

    def _handle_error(
        self, batch: ProducerBatch, found: PartitionResponse, node: int, response: messages.ProduceResponse
    ) -> Outcome:
        error = refusal_of(batch, found)
        queue = self._queues[batch.topic_partition]
        outcome = outcome_of(batch, error.error, is_oldest=queue.is_oldest(batch))
        if outcome is Outcome.SPLIT:
            self.metrics.split()
            self._accumulator.split(batch, queue.split(batch, transactional=self._is_transactional))
        elif outcome is Outcome.RETRY_IN_ORDER:
            self._retry_or_fail(batch, error, again=True)
        elif outcome is Outcome.NEW_SEQUENCE:
            if self._idempotence.handle_sequence_error(queue, error) and not batch.may_be_appended:
                self._retry_or_fail(batch, error, again=True)
            else:
                self._fail_batch(batch, error)
        elif outcome is Outcome.RETRY:
            batch.may_be_appended |= error.error not in NOT_APPENDED
            if error.error in _TOPIC_UNKNOWN:
                queue.sequences.lost()
            leader = found.current_leader
            is_leader_known = error.refreshes_metadata and (
                self._network.update_leader(
                    batch.topic_partition, leader.leader_id, leader.leader_epoch, nodes_of(response.node_endpoints)
                )
                or self._is_led_elsewhere(batch.topic_partition, node)
            )
            self._retry_or_fail(batch, error, is_leader_known=is_leader_known)
        return outcome

    def _is_led_elsewhere(self, tp: TopicPartition, node: int) -> bool:
        """Whether another than this node is known to lead by now: the batch before has heard of it."""
        known = self._network.known_partition(tp)
        return known is not None and known.leader != node

    def _retry_or_fail_all(self, batches: Iterable[ProducerBatch], error: TagwireError | None) -> None:
        if error is not None:
            for batch in batches:
                self._retry_or_fail(batch, error)

    def _retry_or_fail(
        self, batch: ProducerBatch, error: TagwireError, *, again: bool = False, is_leader_known: bool = False
    ) -> None:
        """Lets the batch be sent again later, or fails it.

        Args:
            again: it is worth it whatever the error. is_leader_known: it is known who leads now.
        """
        now = self._network.now()
        batch.attempts += 1
        batch.last_error = error
        is_worth_it = again or is_retriable(error) or isinstance(error, RequestTimeoutError)
        # What was not sent uses nothing of `retries` up: an election would, in less than a second.
        is_in_time = batch.sends <= self._settings.retries and now < self._expiry(batch)
        if not is_worth_it or not is_in_time or self._idempotence.abort_reason is not None:
            self._fail_batch(batch, error)
            return
        self.metrics.retried(batch.topic_partition.topic, batch.count)
        self._queues[batch.topic_partition].reenqueue(batch)
        batch.retry_at = now if is_leader_known else now + pause_before(batch.attempts, self._network.driver.random)
        if not is_leader_known and (not isinstance(error, KafkaError) or error.refreshes_metadata):
            self._network.forget([batch.topic_partition.topic])

    def _fail_batch(self, batch: ProducerBatch, error: TagwireError) -> None:
        queue = self._queues[batch.topic_partition]
        self._goes_on = True
        self.metrics.failed(batch.topic_partition.topic, batch.count)
        queue.remove(batch)
        if batch.base_sequence != NO_SEQUENCE or self._is_transactional:
            error = self._idempotence.handle_failed_batch(queue, error)
        self._accumulator.note_failure(error)
        self._accumulator.complete([(batch, NO_OFFSET, error)])

    def _expiry(self, batch: ProducerBatch) -> float:
        return batch.created + self._settings.timeout

    def _fail_expired(self) -> None:
        """Fails the batches in the queues whose time is up."""
        now = self._network.now()
        for tp, queue in self._queues.items():
            while queue.batches and self._expiry(queue.batches[0]) <= now:
                batch = queue.batches[0]
                late = f"{counted(batch)} for {tp} could not be delivered within {self._settings.timeout:g} s"
                self._fail_batch(batch, batch.last_error or RequestTimeoutError(late))

    def _abort_undrained(self, reason: TagwireError) -> None:
        """Fails all that is not in flight."""
        aborted = [batch for queue in self._queues.values() for batch in queue.batches]
        for queue in self._queues.values():
            if any(batch.base_sequence != NO_SEQUENCE for batch in queue.batches):
                self._idempotence.handle_failed_batch(queue, reason)
            queue.batches.clear()
        if aborted:
            self._accumulator.complete([(batch, NO_OFFSET, reason) for batch in aborted])


async def _done(work: Work[Any]) -> None:
    await work


def _leave_to_sending(found: None, error: Exception | None) -> None:
    """What goes wrong with a topic shows when something is sent to it."""
    _expected(error)


def _expected(error: Exception | None) -> TagwireError | None:
    """The error, where it is one that work may end with. Raises any other."""
    if error is None or isinstance(error, TagwireError):
        return error
    raise error


def _by_request(batches: Iterable[ProducerBatch]) -> Iterator[list[ProducerBatch]]:
    """Batches for one leader, as many together as fit into a request."""
    group: list[ProducerBatch] = []
    size = 0
    for batch in batches:
        if group and size + len(batch.data) > REQUEST_BYTES:
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch.data)
    if group:
        yield group
