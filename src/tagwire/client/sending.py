"""Produce: closed batches to the leaders of their partitions, in order, tried again while that is worth it.

At most one batch of a partition is on its way at a time, so that none can overtake one that has to be tried again. One
request carries batches of many partitions, and several requests may be on their way to one leader.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tagwire import messages
from tagwire.client.client import Client
from tagwire.client.config import ProduceSettings
from tagwire.client.delivery import NO_OFFSET, Batch
from tagwire.client.metadata import TopicPartition
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.transport import Link, Pending, wait_any
from tagwire.errors import (
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)

# max.in.flight.requests.per.connection of Java's producer.
MAX_IN_FLIGHT: Final = 5

# Batches are put together into one request up to here; a larger batch goes alone.
REQUEST_BYTES: Final = 8 * 1024 * 1024

PRODUCE: Final = 0
ZSTD_FROM: Final = 7  # the first version of Produce that may carry Zstandard (facts/kafka_protocol.md 5.1)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A Produce request under way."""

    node: int
    link: Link
    pending: Pending
    batches: list[Batch]
    deadline: float


class Sender:
    """Sends what is enqueued, whenever it is told to `pump`.

    Attributes:
        waiting_bytes: of all batches that are not decided yet.
    """

    def __init__(self, client: Client, settings: ProduceSettings) -> None:
        self._client = client
        self._settings = settings
        self._queues: dict[TopicPartition, deque[Batch]] = {}  # a batch leaves its queue when it is decided
        self._muted: set[TopicPartition] = set()
        self._under_way: list[_Request] = []
        self._error: TagwireError | None = None
        self.waiting_bytes = 0

    @property
    def idle(self) -> bool:
        """Whether everything enqueued is decided."""
        return not self._queues

    def enqueue(self, batch: Batch) -> None:
        """Takes a closed batch; the batches of a partition go out in the order they come in."""
        self._queues.setdefault(batch.at, deque()).append(batch)
        self.waiting_bytes += batch.size

    def pump(self, *, block: bool) -> None:
        """Takes the answers that are there and sends what can go; with `block`, waits for something to happen."""
        self._collect()
        self._send_ready()
        if block and self._queues:
            self._wait()
            self._collect()
            self._send_ready()

    def note(self, error: TagwireError) -> None:
        """Remembers a failure for `raise_first`."""
        self._error = self._error or error

    def raise_first(self) -> None:
        """Raises the first failure since the last call, if there was one."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _send_ready(self) -> None:
        now = time.monotonic()
        ready: dict[int, list[Batch]] = defaultdict(list)
        for at, queue in list(self._queues.items()):
            batch = queue[0]
            if at in self._muted or batch.retry_at > now:
                continue
            try:
                ready[self._client.leader(at, self._client.deadline())].append(batch)
            except KafkaError as error:
                missing = error.error is Error.UNKNOWN_TOPIC_OR_PARTITION  # which was waited for already
                self._give_up(batch, error) if missing else self._put_off(batch, error)
            except TagwireError as error:
                self._put_off(batch, error)
        for node, batches in ready.items():
            free = MAX_IN_FLIGHT - sum(request.node == node for request in self._under_way)
            for _, group in zip(range(free), _groups(batches)):
                self._send(node, group)

    def _send(self, node: int, batches: list[Batch]) -> None:
        deadline = self._client.deadline()
        try:
            link = self._client.link(node, deadline)
            if self._settings.compression == "zstd" and link.version(PRODUCE) < ZSTD_FROM:
                raise UnsupportedVersionError(
                    f"{link.broker} serves Produce up to v{link.version(PRODUCE)}; zstd needs v{ZSTD_FROM}"
                )
            pending = self._client.send(link, self._message(batches), deadline)
        except TagwireError as error:
            self._put_off_all(batches, error)
            return
        self._under_way.append(_Request(node, link, pending, batches, deadline))
        self._muted.update(batch.at for batch in batches)

    def _message(self, batches: list[Batch]) -> Any:
        kind = messages.ProduceRequest
        topics: dict[str, list[Any]] = {}
        for batch in batches:
            partition = kind.PartitionProduceData(index=batch.at.partition, records=batch.data)
            topics.setdefault(batch.at.topic, []).append(partition)
        return kind(
            acks=self._settings.acks,
            timeout_ms=int(self._client.timeout * 1000),
            topic_data=[kind.TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )

    def _wait(self) -> None:
        """Until an answer has come, a request's time is up, or a batch may be tried again."""
        if any(request.pending.done for request in self._under_way):
            return
        now = time.monotonic()
        times = [queue[0].retry_at for at, queue in self._queues.items() if at not in self._muted]
        times = [at for at in times if at > now] + [request.deadline for request in self._under_way]
        until = min(times, default=now)
        if self._under_way:
            wait_any({request.link for request in self._under_way}, until)
        else:
            time.sleep(max(0.0, until - now))

    def _collect(self) -> None:
        for link in {request.link for request in self._under_way}:
            link.poll()
        now = time.monotonic()
        for request in [request for request in self._under_way if request.pending.done or request.deadline <= now]:
            self._under_way.remove(request)
            self._muted.difference_update(batch.at for batch in request.batches)
            try:
                self._settle(request.batches, request.link.wait(request.pending, request.deadline))
            except TagwireError as error:
                self._put_off_all(request.batches, error)

    def _settle(self, batches: list[Batch], response: Any) -> None:
        answers = {} if response is None else _by_partition(response)
        for batch in batches:
            answer = answers.get(batch.at)
            if response is None:
                self._delivered(batch, NO_OFFSET)
            elif answer is None:
                self._give_up(
                    batch, RemoteProtocolError(f"the answer to Produce does not say what became of {batch.at}")
                )
            elif answer.error_code:
                self._put_off(batch, _refusal(batch, answer))
            else:
                self._delivered(batch, answer.base_offset)

    def _delivered(self, batch: Batch, base_offset: int) -> None:
        self._leave(batch)
        batch.delivered(base_offset)

    def _put_off_all(self, batches: list[Batch], error: TagwireError) -> None:
        for batch in batches:
            self._put_off(batch, error)

    def _put_off(self, batch: Batch, error: TagwireError) -> None:
        """Lets the batch be tried again later, or gives it up."""
        now = time.monotonic()
        batch.attempts += 1
        worth_it = is_retriable(error) or isinstance(error, RequestTimeoutError)
        in_time = batch.attempts <= self._settings.retries and now < batch.created + self._settings.timeout
        if not worth_it or not in_time:
            self._give_up(batch, error)
            return
        batch.retry_at = now + pause_before(batch.attempts)
        if not isinstance(error, KafkaError) or error.refreshes_metadata:
            self._client.forget([batch.at.topic])

    def _give_up(self, batch: Batch, error: TagwireError) -> None:
        self._leave(batch)
        batch.failed(error)
        self.note(error)

    def _leave(self, batch: Batch) -> None:
        queue = self._queues[batch.at]
        queue.remove(batch)
        self.waiting_bytes -= batch.size
        if not queue:
            del self._queues[batch.at]


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Batches for one leader, as many together as fit into a request."""
    group: list[Batch] = []
    size = 0
    for batch in batches:
        if group and size + batch.size > REQUEST_BYTES:
            yield group
            group, size = [], 0
        group.append(batch)
        size += batch.size
    if group:
        yield group


def _by_partition(response: Any) -> dict[TopicPartition, Any]:
    return {
        TopicPartition(topic.name, partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }


def _refusal(batch: Batch, answer: Any) -> KafkaError:
    count = "1 record" if batch.count == 1 else f"{batch.count} records"
    said = [answer.error_message] if answer.error_message else []
    said += [f"record {entry.batch_index}: {entry.batch_index_error_message}" for entry in answer.record_errors[:1]]
    return KafkaError(answer.error_code, "; ".join([f"{count}, {batch.size} bytes, for {batch.at}", *said]))
