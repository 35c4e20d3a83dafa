"""Batches on their way to a partition, and what becomes of each record in them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tagwire import records
from tagwire.client.config import seconds
from tagwire.errors import EncodeError, RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.record import Headers

logger = logging.getLogger("tagwire.client")

# What a record takes beside its key, value and headers, at most: length, attributes, timestamp and offset deltas, and
# the lengths of key, value and headers (docs/record-formats.md#record-batches).
RECORD_OVERHEAD = 36
HEADER_OVERHEAD = 10

_SAMPLES: Final = {str: "'trace-id'", int: "7"}

NO_OFFSET = -1
NO_SEQUENCE: Final = -1


class Identity(NamedTuple):
    """Who numbers batches: a producer id and its epoch."""

    producer_id: int = -1
    epoch: int = -1


NOBODY: Final = Identity()


class Decided(threading.Condition):
    """Notified whenever a batch is decided.

    Args:
        lock: what is held meanwhile.
        require_waitable: raises TagwireError where waiting for that would not end.
    """

    def __init__(self, lock: threading.Lock, require_waitable: Callable[[], None]) -> None:
        super().__init__(lock)
        self.require_waitable = require_waitable


class Batch:
    """Records for one partition, sent together as one record batch.

    Attributes:
        size: bytes the records take before compression, at most.
        created: `time.monotonic` of the first record.
        data: the encoded batch, once it is closed; from `number` on as it is sent.
        identity, sequence: how it is numbered; `NOBODY` and `NO_SEQUENCE` before.
        may_be_stored: whether it was sent and nobody knows what became of that.
        order: its place among the batches of its partition; parts of one that was split keep theirs within its place.
        attempts: how many times it was sent. retry_at: `time.monotonic` before which it is not sent again.
        last_error: why it was not delivered when it was last sent. error: why it was given up.
        parts: what a batch that was too large was split into; they are decided instead of it.
    """

    __slots__ = (
        "at",
        "attempts",
        "base_offset",
        "callbacks",
        "changed",
        "compression",
        "count",
        "created",
        "data",
        "dialect",
        "done",
        "error",
        "identity",
        "is_sealed",
        "last_error",
        "may_be_stored",
        "order",
        "parts",
        "records",
        "retry_at",
        "sequence",
        "size",
    )

    def __init__(
        self,
        at: TopicPartition,
        changed: Decided,
        compression: str = "none",
        dialect: str | None = None,
    ) -> None:
        self.at = at
        self.changed = changed
        self.compression = compression
        self.dialect = dialect
        self.created = time.monotonic()
        self.records: list[Record] = []
        self.size = 0
        self.count = 0
        self.data: bytes | bytearray = b""
        self.is_sealed = False
        self.order: tuple[int, ...] = ()
        self.identity = NOBODY
        self.sequence = NO_SEQUENCE
        self.may_be_stored = False
        self.attempts = 0
        self.retry_at = 0.0
        self.done = False
        self.base_offset = NO_OFFSET
        self.last_error: TagwireError | None = None
        self.error: TagwireError | None = None
        self.parts: tuple[Batch, ...] = ()
        self.callbacks: list[tuple[Callable[[Delivery], object], Delivery]] = []

    @classmethod
    def encoded(
        cls,
        at: TopicPartition,
        changed: Decided,
        data: bytes,
        *,
        dialect: str | None = None,
        is_sealed: bool = False,
    ) -> Batch:
        """A batch that is encoded already, or a message set of a dialect; `is_sealed` keeps it from being split.

        Raises:
            EncodeError: `data` is not exactly one whole batch of magic 2, or not whole messages.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise EncodeError(f"batch for {at} is {type(data).__name__}, not bytes")
        try:
            headers = list(records.batch_headers(data, dialect))
            count = sum(header.count for header in headers)
        except TagwireError as error:
            raise EncodeError(f"batch for {at}: {error}") from error
        whole = bool(headers) and headers[-1].position + headers[-1].size == len(data)
        if dialect is None and (not whole or len(headers) != 1 or headers[0].magic != 2):
            raise EncodeError(f"batch for {at}: {len(data)} bytes are not exactly one record batch")
        if not whole:
            raise EncodeError(f"batch for {at}: {len(data)} bytes are not whole messages")
        batch = cls(at, changed, headers[0].compression, dialect)
        batch.data = bytearray(data)
        offset = 0  # where brokers expect batches that come in
        view = memoryview(batch.data)
        for header in headers:
            records.assign_offsets(view[header.position : header.position + header.size], offset, -1, dialect)
            offset += header.count
        batch.size, batch.count, batch.is_sealed = len(data), count, is_sealed
        return batch

    def add(self, record: Record, size: int) -> Delivery:
        """Adds a record that `size_of` has measured."""
        self.records.append(record)
        self.size += size
        self.count += 1
        return Delivery(self, self.count - 1)

    def encode(self) -> None:
        """Makes `data` of the records, once. Raises EncodeError for one that cannot be written."""
        if self.records:
            self.data = records.write(self.records, compression=self.compression, dialect=self.dialect)
            self.records = []

    def number(self, identity: Identity, sequence: int, *, transactional: bool) -> None:
        """Makes the batch the producer's, from `sequence` on: until it is decided it is sent exactly like this."""
        numbered = self.data if isinstance(self.data, bytearray) else bytearray(self.data)
        records.set_producer(numbered, *identity, sequence, transactional=transactional)
        self.data, self.identity, self.sequence = numbered, identity, sequence

    def forget_number(self) -> None:
        """The batch is to be numbered anew."""
        self.identity, self.sequence = NOBODY, NO_SEQUENCE

    def split(self) -> tuple[Batch, ...]:
        """Two batches of the same records and sequence numbers, to be sent instead of this one."""
        whole = list(records.read(bytes(self.data), self.dialect))
        rows = [row for batch in whole for row in batch.records()]
        parts: list[Batch] = []
        for own in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            part = Batch(self.at, self.changed, self.compression, self.dialect)
            part.created, part.records, part.count = self.created, own, len(own)
            part.order = (*self.order, len(parts))
            part.size = self.size * len(own) // len(rows)
            part.encode()
            if self.sequence != NO_SEQUENCE:
                before = sum(other.count for other in parts)
                part.number(
                    self.identity,
                    records.next_sequence(self.sequence, before),
                    transactional=whole[0].is_transactional,
                )
            parts.append(part)
        parts[0].size = self.size - parts[1].size
        return tuple(parts)

    def part_of(self, index: int) -> tuple[Batch, int]:
        """The batch that decides about record `index` of this one, and the record's place in it."""
        batch = self
        while batch.parts:
            for part in batch.parts:
                if index < part.count:
                    break
                index -= part.count
            batch = part
        return batch, index

    def leaves(self) -> list[Batch]:
        """The batches that decide about this one: itself, or what it was split into."""
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]

    def settle(self, base_offset: int, error: TagwireError | None) -> None:
        """Delivered at `base_offset`, -1 where nobody was asked; or given up because of `error`."""
        self.base_offset, self.error = base_offset, error
        self.records, self.data = [], b""
        self.done = True

    def tell(self) -> None:
        """Calls back whoever waits for a record of a batch that is decided."""
        with self.changed:  # each is called by one thread
            callbacks, self.callbacks = self.callbacks, []
        for function, delivery in callbacks:
            try:
                function(delivery)
            except Exception:
                logger.exception("a callback of a delivery, %r, raised", function)


class Delivery:
    """What becomes of one record, or of one batch handed over whole."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def leaf(self) -> Batch:
        """The batch that decides about it."""
        return self._batch.part_of(self._index)[0]

    @property
    def topic(self) -> str:
        return self._batch.at.topic

    @property
    def partition(self) -> int:
        return self._batch.at.partition

    @property
    def done(self) -> bool:
        """Whether it is decided: delivered, or given up."""
        return self.leaf.done

    @property
    def error(self) -> TagwireError | None:
        """Why it was given up; None otherwise."""
        return self.leaf.error

    @property
    def offset(self) -> int:
        """Where the record stands in its partition; of a whole batch, where its first record stands.

        -1 before it is delivered, and where brokers do not tell: with acks=0, and of a batch that a broker says it had
        already. Raises `error` where there is one.
        """
        batch, index = self._batch.part_of(self._index)
        if batch.error is not None:
            raise batch.error
        return batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET

    def result(self, timeout: float | None = None) -> Delivery:
        """Itself, as soon as it is decided.

        Args:
            timeout: seconds to wait at most; None for as long as the producer tries.

        Raises:
            TagwireError: `error`; or this is a callback, which the producer waits for, or a process that was forked.
            RequestTimeoutError: it is not decided by then, and may still be delivered.
        """
        wait_until_done([self._batch], timeout)
        if self.error is not None:
            raise self.error
        return self

    def add_done_callback(self, function: Callable[[Delivery], object]) -> None:
        """Calls `function` with this delivery when it is decided, now if it is: in the producer's thread, which waits
        meanwhile. What it raises is logged."""
        with self._batch.changed:
            batch = self.leaf
            batch.callbacks.append((function, self))
            decided = batch.done
        if decided:
            batch.tell()

    def __repr__(self) -> str:
        batch = self._batch
        state = f"failed: {self.error}" if self.error else f"@{self.offset}" if self.done else "on its way"
        return f"<Delivery {batch.at} {state}>"


class RowsDelivery:
    """What becomes of the rows of one `send_arrow`, all together.

    Attributes:
        rows: how many there are.
    """

    def __init__(self, rows: int, batches: Sequence[Batch]) -> None:
        self.rows = rows
        self._batches = batches

    @property
    def done(self) -> bool:
        """Whether all of it is decided: delivered, or given up."""
        return all(leaf.done for batch in self._batches for leaf in batch.leaves())

    @property
    def error(self) -> TagwireError | None:
        """Why the first batch that was given up was; None otherwise."""
        leaves = (leaf for batch in self._batches for leaf in batch.leaves())
        return next((leaf.error for leaf in leaves if leaf.error is not None), None)

    @property
    def offsets(self) -> dict[TopicPartition, tuple[int, int]]:
        """The first and the last offset in each partition, of what is delivered and whose offsets are known."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for batch in self._batches:
            for leaf in batch.leaves():
                if leaf.done and leaf.base_offset >= 0:
                    last = leaf.base_offset + leaf.count - 1
                    first, latest = found.get(leaf.at, (leaf.base_offset, last))
                    found[leaf.at] = min(first, leaf.base_offset), max(latest, last)
        return found

    def result(self, timeout: float | None = None) -> RowsDelivery:
        """Itself, as soon as all of it is decided; as `Delivery.result`."""
        wait_until_done(self._batches, timeout)
        if self.error is not None:
            raise self.error
        return self

    def __repr__(self) -> str:
        state = f"failed: {self.error}" if self.error else "delivered" if self.done else "on their way"
        return f"<RowsDelivery {self.rows} rows {state}>"


def wait_until_done(batches: Sequence[Batch], timeout: float | None) -> None:
    """Waits until these are decided. Raises RequestTimeoutError when they are not by then, and TagwireError where that
    would never be."""
    seconds("timeout", timeout)
    deadline = None if timeout is None else time.monotonic() + timeout
    for batch in batches:
        if not all(leaf.done for leaf in batch.leaves()):
            batch.changed.require_waitable()
        with batch.changed:
            while not all(leaf.done for leaf in batch.leaves()):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise RequestTimeoutError(f"{batch.at}: not delivered within {timeout:g} s; it is tried further")
                batch.changed.wait(left)


def size_of(key: bytes | None, value: bytes | None, headers: Headers, names: type = str) -> int:
    """Bytes a record takes in a batch, at most; `names`: str or int, what header keys are. Raises EncodeError for a
    key, value or header that cannot be written."""
    size = RECORD_OVERHEAD
    if value is not None:
        if type(value) is not bytes and not isinstance(value, bytes):
            raise _not_bytes(value, "value")
        size += len(value)
    if key is not None:
        if type(key) is not bytes and not isinstance(key, bytes):
            raise _not_bytes(key, "key")
        size += len(key)
    if headers:
        try:
            for name, content in headers:
                if not isinstance(name, names):
                    raise TypeError(f"a key is {type(name).__name__}")
                size += HEADER_OVERHEAD
                if isinstance(name, str):
                    size += len(name) if name.isascii() else len(name.encode())
                if content is not None:
                    if not isinstance(content, bytes):
                        raise _not_bytes(content, "value of a header")
                    size += len(content)
        except (TypeError, ValueError) as error:
            raise EncodeError(
                f"headers of a record must be pairs of {names.__name__} and bytes or None, such as "
                f"[({_SAMPLES[names]}, b'01J2')]: {error}"
            ) from None
    return size


def _not_bytes(value: object, what: str) -> EncodeError:
    write = ': write "...".encode()' if isinstance(value, str) else ""
    return EncodeError(f"{what} must be bytes or None, not {type(value).__name__}{write}")
