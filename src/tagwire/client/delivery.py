"""Batches on their way to a partition, and what becomes of each record in them."""

from __future__ import annotations

import time

from tagwire import records
from tagwire.client.metadata import TopicPartition
from tagwire.errors import EncodeError, TagwireError
from tagwire.records import Record
from tagwire.records.record import Headers

# What a record takes beside its key, value and headers, at most: length, attributes, timestamp and offset deltas, and
# the lengths of key, value and headers (facts/kafka_protocol.md 5.3).
RECORD_OVERHEAD = 36
HEADER_OVERHEAD = 10

NO_OFFSET = -1


class Batch:
    """Records for one partition, sent together as one record batch.

    Attributes:
        size: bytes the records take before compression, at most.
        created: `time.monotonic` of the first record.
        data: the encoded batch, once it is closed.
        attempts: how many times it was sent.
        error: why it was given up.
    """

    __slots__ = (
        "at",
        "attempts",
        "base_offset",
        "count",
        "created",
        "data",
        "done",
        "error",
        "records",
        "retry_at",
        "size",
    )

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.created = time.monotonic()
        self.records: list[Record] = []
        self.size = 0
        self.count = 0
        self.data = b""
        self.attempts = 0
        self.retry_at = 0.0
        self.done = False
        self.base_offset = NO_OFFSET
        self.error: TagwireError | None = None

    def add(self, record: Record, size: int) -> Delivery:
        """Adds a record that `size_of` has measured."""
        self.records.append(record)
        self.size += size
        self.count += 1
        return Delivery(self, self.count - 1)

    def close(self, compression: str) -> None:
        """Encodes the records. Raises EncodeError for one that cannot be written."""
        self.data = records.write(self.records, compression=compression)
        self.size = len(self.data)
        self.records = []

    def delivered(self, base_offset: int) -> None:
        """The broker has it; `base_offset` is -1 where nobody was asked."""
        self.done, self.base_offset, self.data = True, base_offset, b""

    def failed(self, error: TagwireError) -> None:
        """It is given up."""
        self.done, self.error, self.data = True, error, b""


class Delivery:
    """What becomes of one record, or of one batch handed over whole."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def topic(self) -> str:
        return self._batch.at.topic

    @property
    def partition(self) -> int:
        return self._batch.at.partition

    @property
    def done(self) -> bool:
        """Whether it is decided: delivered, or given up."""
        return self._batch.done

    @property
    def error(self) -> TagwireError | None:
        """Why it was given up; None otherwise."""
        return self._batch.error

    @property
    def offset(self) -> int:
        """Where the record stands in its partition; of a whole batch, where its first record stands.

        -1 before it is delivered, and always with acks=0, where brokers do not tell. Raises `error` where there is one.
        """
        if self._batch.error is not None:
            raise self._batch.error
        base = self._batch.base_offset
        return base + self._index if base >= 0 else NO_OFFSET

    def __repr__(self) -> str:
        batch = self._batch
        state = f"failed: {batch.error}" if batch.error else f"@{self.offset}" if batch.done else "on its way"
        return f"<Delivery {batch.at} {state}>"


def whole_batch(at: TopicPartition, data: bytes) -> Batch:
    """A batch that is encoded already. Raises EncodeError unless `data` is exactly one whole batch of magic 2."""
    try:
        headers = list(records.batch_headers(data))
    except TagwireError as error:
        raise EncodeError(f"batch for {at}: {error}") from error
    if len(headers) != 1 or headers[0].size != len(data) or headers[0].magic != 2:
        raise EncodeError(f"batch for {at}: {len(data)} bytes are not exactly one record batch")
    batch = Batch(at)
    batch.data, batch.size, batch.count = data, len(data), headers[0].count
    return batch


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes a record takes in a batch, at most. Raises EncodeError for a key, value or header that cannot be
    written."""
    size = RECORD_OVERHEAD + _length(key, "key") + _length(value, "value")
    if headers:
        try:
            for name, content in headers:
                if not isinstance(name, str):
                    raise TypeError(f"a key is {type(name).__name__}")
                size += HEADER_OVERHEAD + len(name.encode()) + _length(content, "value of a header")
        except (TypeError, ValueError) as error:
            raise EncodeError(f"headers of a record must be pairs of str and bytes or None: {error}") from None
    return size


def _length(value: bytes | None, what: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, bytes):
        raise EncodeError(f"{what} must be bytes or None, not {type(value).__name__}")
    return len(value)
