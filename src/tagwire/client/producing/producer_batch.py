"""A batch of one partition, from its first record until the broker has it or it is failed (Kafka's ProducerBatch)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

from tagwire import records
from tagwire.client.producing.producer_id import NO_PRODUCER_ID, ProducerIdAndEpoch
from tagwire.errors import EncodeError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.compression import MAX_DECOMPRESSED

logger = logging.getLogger("tagwire.client")

NO_OFFSET: Final = -1
NO_SEQUENCE: Final = -1


class News(Protocol):
    """That some batches are complete, for one who waits."""

    async def wait(self, until: float) -> None:
        """Waits until then, or until some second of the driver's clock; nothing is held meanwhile. Raises TagwireError
        where waiting would not end."""


class Completion(Protocol):
    """What is held while batches change hands, and tells whoever waits that some are complete: delivered, or failed.

    Attributes:
        lock: what `held` gives, without asking.
    """

    lock: AbstractContextManager[object]

    def held(self) -> AbstractContextManager[object]:
        """What `with` holds while batches change. Raises TagwireError where nobody may ever let go of it."""

    def news(self) -> News:
        """What is waited for from now on, for one who has looked in vain. It is held."""

    def notify_all(self) -> None:
        """Some batches are complete. It is held."""

    def require_waitable(self) -> None:
        """Raises TagwireError where waiting would not end. Asked before the lock is taken: in a process that was forked
        off it may be held for ever."""


class ProducerBatch:
    """Records for one partition, sent together as one record batch.

    Attributes:
        size: bytes the records take before compression, at most.
        created: when its first record was appended, seconds of the driver's clock.
        data: the encoded batch, once it is closed; with a base sequence, exactly as it is sent.
        producer, base_sequence: under which producer id and epoch it is sent, and from which sequence number on
            (`sequence_numbers`); `NO_PRODUCER_ID` and `NO_SEQUENCE` before.
        may_be_appended: whether it was sent, and nobody knows whether the leader has appended it.
        is_unsplittable: whether it is sent as the caller has encoded it, or not at all.
        order: its position among the batches of its partition; parts of one that was split share its position.
        sends: how often it was sent. attempts: how often it could not be delivered, also where what it lacked to be
            sent was not had. retry_at: before which it is not tried again.
        last_error: why it was not delivered when it was last sent. error: why it was failed.
        ratio: bytes that are sent, by record bytes before compression; None where those are not known.
        is_done: whether it is complete: delivered, or failed.
        parts: what a batch that was too large was split into; they are completed instead of it.
        callbacks: what to call when a record is complete, each a callable of its own, with the record's index.
    """

    __slots__ = (
        "attempts",
        "base_offset",
        "base_sequence",
        "callbacks",
        "completion",
        "compression",
        "count",
        "created",
        "data",
        "dialect",
        "error",
        "is_done",
        "is_unsplittable",
        "last_error",
        "level",
        "may_be_appended",
        "order",
        "parts",
        "producer",
        "ratio",
        "records",
        "retry_at",
        "sends",
        "size",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        completion: Completion,
        now: float,
        compression: str = "none",
        dialect: str | None = None,
        level: int | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.completion = completion
        self.compression = compression
        self.dialect = dialect
        self.level = level
        self.created = now
        self.records: list[Record] = []
        self.size = 0
        self.count = 0
        self.data: bytes | bytearray = b""
        self.is_unsplittable = False
        self.order: tuple[int, ...] = ()
        self.producer = NO_PRODUCER_ID
        self.base_sequence = NO_SEQUENCE
        self.may_be_appended = False
        self.ratio: float | None = None
        self.sends = 0
        self.attempts = 0
        self.retry_at = 0.0
        self.is_done = False
        self.base_offset = NO_OFFSET
        self.last_error: TagwireError | None = None
        self.error: TagwireError | None = None
        self.parts: tuple[ProducerBatch, ...] = ()
        self.callbacks: dict[Callable[[], object], int] = {}

    @classmethod
    def encoded(
        cls,
        topic_partition: TopicPartition,
        completion: Completion,
        now: float,
        data: bytes,
        *,
        dialect: str | None = None,
        level: int | None = None,
        is_unsplittable: bool = False,
    ) -> ProducerBatch:
        """A batch that is encoded already, or a message set of a dialect. A batch that was another producer's is so no
        longer.

        Args:
            level: of its compression, for its parts where it is split.

        Raises:
            EncodeError: `data` is not exactly one whole batch of magic 2, or not whole messages; or it is of a caller
                (`is_unsplittable`), and its checksum does not hold: the one with our producer id would.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise EncodeError(f"batch for {topic_partition} is {type(data).__name__}, not bytes")
        try:
            most = MAX_DECOMPRESSED  # as brokers and readers take it
            headers = list(records.batch_headers(data, dialect, verify=is_unsplittable, max_decompressed=most))
            count = sum(header.count for header in headers)
        except TagwireError as error:
            raise EncodeError(f"batch for {topic_partition}: {error}") from error
        whole = bool(headers) and headers[-1].position + headers[-1].size == len(data)
        if dialect is None and (not whole or len(headers) != 1 or headers[0].magic != 2):
            raise EncodeError(f"batch for {topic_partition}: {len(data)} bytes are not exactly one record batch")
        if not whole:
            raise EncodeError(f"batch for {topic_partition}: {len(data)} bytes are not whole messages")
        if any(header.crc_ok is False for header in headers):
            raise EncodeError(f"batch for {topic_partition}: its checksum does not hold")
        batch = cls(topic_partition, completion, now, headers[0].compression, dialect, level)
        batch.data = bytearray(data)
        if dialect is None and (headers[0].producer_id != NO_PRODUCER_ID.producer_id or headers[0].is_transactional):
            records.set_producer(batch.data, *NO_PRODUCER_ID, NO_SEQUENCE, transactional=False)
        offset = 0  # where brokers expect batches that come in
        view = memoryview(batch.data)
        for header in headers:
            entry = view[header.position : header.position + header.size]
            records.assign_offsets(entry, offset, -1, dialect, max_decompressed=MAX_DECOMPRESSED)
            offset += header.count
        batch.size, batch.count, batch.is_unsplittable = len(data), count, is_unsplittable
        return batch

    def append(self, record: Record, size: int) -> None:
        """Adds a record of `size` bytes (`record_size`)."""
        self.size += size
        self.count += 1
        self.records.append(record)  # an interrupt comes before all of this, or after it

    def encode(self) -> None:
        """Makes `data` of the records, once. Raises EncodeError for one that cannot be written."""
        if self.records:
            self.data = records.write(
                self.records, compression=self.compression, level=self.level, dialect=self.dialect
            )
            self.ratio = 1.0 if self.compression == "none" else len(self.data) / self.size
            self.records = []

    def set_producer_state(self, producer: ProducerIdAndEpoch, base_sequence: int, *, transactional: bool) -> None:
        """Writes producer id, epoch and base sequence into the batch. `sequence_numbers` says which, and when."""
        data = self.data if isinstance(self.data, bytearray) else bytearray(self.data)
        records.set_producer(data, *producer, base_sequence, transactional=transactional)
        self.data, self.producer, self.base_sequence = data, producer, base_sequence

    def reset_producer_state(self) -> None:
        """The batch is to get another base sequence."""
        self.producer, self.base_sequence = NO_PRODUCER_ID, NO_SEQUENCE

    def split(self) -> tuple[ProducerBatch, ...]:
        """Two batches of the same records, without a base sequence."""
        rows = [record for batch in records.read(bytes(self.data), self.dialect) for record in batch.records()]
        parts: list[ProducerBatch] = []
        for own in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            part = ProducerBatch(
                self.topic_partition, self.completion, self.created, self.compression, self.dialect, self.level
            )
            part.records, part.count = own, len(own)
            part.order = (*self.order, len(parts))
            part.size = self.size * len(own) // len(rows)
            part.encode()
            parts.append(part)
        parts[0].size = self.size - parts[1].size
        return tuple(parts)

    def replace_by(self, parts: tuple[ProducerBatch, ...]) -> None:
        """From now on the parts are completed instead of this batch."""
        self.parts, self.data = parts, b""
        callbacks, self.callbacks = self.callbacks, {}
        for function, index in callbacks.items():
            part, own_index = self.part_of(index)
            part.callbacks[function] = own_index

    def part_of(self, index: int) -> tuple[ProducerBatch, int]:
        """The batch that record `index` of this one is sent in, and the record's index there."""
        batch = self
        while batch.parts:
            for part in batch.parts:
                if index < part.count:
                    break
                index -= part.count
            batch = part
        return batch, index

    def leaves(self) -> list[ProducerBatch]:
        """The batches that are sent: itself, or what it was split into."""
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]

    def complete(self, base_offset: int, error: TagwireError | None) -> None:
        """Delivered at `base_offset`, -1 where the broker does not tell; or failed because of `error`."""
        self.base_offset, self.error = base_offset, error
        self.records, self.data = [], b""
        self.is_done = True

    def run_callbacks(self) -> None:
        """Calls whoever waits for a record of a batch that is complete."""
        with self.completion.held():  # each is called by one thread
            callbacks, self.callbacks = self.callbacks, {}
        for function in callbacks:
            run_callback(function)


def run_callback(function: Callable[[], object]) -> None:
    """Calls whoever waits for a delivery. What it raises is logged."""
    try:
        function()
    except Exception:
        logger.exception("a callback of a delivery, %r, raised", function)
