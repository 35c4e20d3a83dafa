"""What callers hand over and the sending thread takes: a batch per partition, closed when it is full or old.

The bytes of all records that are not decided yet are bounded: whoever hands over more waits until there is room.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from tagwire.client.config import ProduceSettings
from tagwire.client.producing.delivery import Batch, Decided, Delivery
from tagwire.client.producing.partitioner import TopicPlaces
from tagwire.errors import RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record

NEVER: Final = float("inf")


class Gathering:
    """Open and closed batches; every method is for any thread.

    Attributes:
        changed: notified whenever a batch is decided.
        refusal: what handing over raises; None while it is allowed.

    Args:
        wake: lets the sending thread look for something to do.
        require_waitable: raises TagwireError where waiting for that thread would not end.
    """

    def __init__(
        self, settings: ProduceSettings, wake: Callable[[], None], require_waitable: Callable[[], None]
    ) -> None:
        self._lock = threading.Lock()  # of `changed`, which takes longer to enter
        self.changed = Decided(self._lock, require_waitable)
        self.refusal: TagwireError | None = None
        self._settings = settings
        self._batch_bytes = settings.batch_bytes
        self._memory = settings.buffer_memory
        self._wake = wake
        self._open: dict[TopicPartition, tuple[Batch, TopicPlaces]] = {}
        self._closed: list[Batch] = []
        self._undecided: dict[Batch, None] = {}
        self._bytes = 0
        self._sleeps_until = NEVER
        self._error: TagwireError | None = None

    def add(self, topic: TopicPlaces, record: Record, size: int, partition: int | None) -> Delivery:
        """Takes a record of `size` bytes.

        Raises:
            TagwireError: `refusal`. RequestTimeoutError: there was no room for `max_block` seconds.
            KafkaError: the topic has no such partition.
        """
        with self._lock:
            if self.refusal is not None or self._bytes + size > self._memory:
                self._wait_for_room(size)
            at = topic.place(record.key, partition)
            found = self._open.get(at)
            if found is not None and found[0].size + size > self._batch_bytes:
                self._close(found[0], is_full=True)
                at = topic.place(record.key, partition)
                found = self._open.get(at)
            batch = self._begin(at, topic) if found is None else found[0]
            self._bytes += size
            delivery = batch.add(record, size)
            if batch.size >= self._batch_bytes:
                self._close(batch, is_full=True)
            return delivery

    def put(self, batch: Batch) -> None:
        """Takes an encoded batch, which goes out after what its partition was given before. Raises as `add`."""
        with self.changed:
            self._wait_for_room(batch.size)
            found = self._open.get(batch.at)
            if found is not None:
                self._close(found[0], is_full=True)
            self._bytes += batch.size
            self._undecided[batch] = None
            self._closed.append(batch)
            self._ring(0.0)

    def take(self, now: float, *, everything: bool = False) -> Sequence[Batch]:
        """The batches that are to be sent, each partition's in order; `everything`: also those that are not due."""
        with self.changed:
            self._sleeps_until = 0.0  # awake
            oldest = now if everything else now - self._settings.linger
            for batch, _ in [found for found in self._open.values() if found[0].created <= oldest]:
                self._close(batch, is_full=False)
            taken, self._closed = self._closed, []
            return taken

    def due(self) -> float:
        """When `take` will have something (`time.monotonic`); the thread sleeps until then or until it is woken."""
        with self.changed:
            first = min((batch.created for batch, _ in self._open.values()), default=NEVER)
            self._sleeps_until = 0.0 if self._closed else first + self._settings.linger
            return self._sleeps_until

    def decided(self, batches: Sequence[tuple[Batch, int, TagwireError | None]]) -> None:
        """Batches are delivered, at offsets, or given up because of errors."""
        with self.changed:
            for batch, base_offset, error in batches:
                self._bytes -= batch.size
                self._undecided.pop(batch, None)
                batch.settle(base_offset, error)
            self.changed.notify_all()
        for batch, _, _ in batches:
            batch.tell()

    def split(self, batch: Batch, parts: tuple[Batch, ...]) -> None:
        """From now on the parts are decided instead of the batch."""
        with self.changed:
            del self._undecided[batch]
            self._undecided.update(dict.fromkeys(parts))
            batch.parts, batch.data = parts, b""
            callbacks, batch.callbacks = batch.callbacks, []
            for function, delivery in callbacks:
                delivery.leaf.callbacks.append((function, delivery))

    def refuse(self, error: TagwireError | None) -> None:
        """From now on handing over raises `error`; None allows it."""
        with self.changed:
            self.refusal = error
            self.changed.notify_all()

    def rest(self) -> list[Batch]:
        """Everything that is not decided."""
        with self.changed:
            self._open.clear()
            self._closed.clear()
            return list(self._undecided)

    def note(self, error: TagwireError) -> None:
        """Remembers a failure for the next `flush`."""
        self._error = self._error or error

    def flush(self, deadline: float) -> None:
        """Waits until everything that was handed over is decided.

        Raises:
            TagwireError: the first failure since the last call. RequestTimeoutError: the deadline came first.
        """
        error = self.drain(deadline)
        if error is not None:
            raise error

    def drain(self, deadline: float) -> TagwireError | None:
        """`flush`, which returns the first failure since the last call. Raises RequestTimeoutError alone."""
        with self.changed:
            self.close_all()
            waited_for = list(self._undecided)
            for batch in waited_for:
                while not all(leaf.done for leaf in batch.leaves()):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise RequestTimeoutError(f"{len(self._undecided)} batches were not delivered in time")
                    self.changed.wait(None if deadline == NEVER else left)
            error, self._error = self._error, None
            return error

    def close_all(self) -> None:
        """Lets everything go out; `changed` is held."""
        for batch, _ in list(self._open.values()):
            self._close(batch, is_full=False)

    def _begin(self, at: TopicPartition, topic: TopicPlaces) -> Batch:
        batch = Batch(at, self.changed, topic.compression, self._settings.dialect)
        self._ring(batch.created + self._settings.linger)
        self._open[at] = batch, topic
        self._undecided[batch] = None
        return batch

    def _close(self, batch: Batch, *, is_full: bool) -> None:
        _, topic = self._open.pop(batch.at)
        topic.closed(batch.at.partition, self._batch_bytes if is_full else batch.size)
        self._closed.append(batch)
        self._ring(0.0)

    def _ring(self, at: float) -> None:
        """Wakes the thread if it would sleep past then. A caller that is interrupted meanwhile has left nothing behind:
        the next one wakes it."""
        if at < self._sleeps_until:
            self._wake()
            self._sleeps_until = at

    def _wait_for_room(self, size: int) -> None:
        """One record may be larger than all the room there is, if nothing else is there."""
        until = time.monotonic() + self._settings.max_block
        while self.refusal is None and self._bytes and self._bytes + size > self._memory:
            self.changed.require_waitable()
            self.close_all()  # what waits for more records would wait in vain
            left = until - time.monotonic()
            if left <= 0:
                raise RequestTimeoutError(
                    f"{self._bytes} bytes of records are on their way, and buffer_memory allows {self._memory}; "
                    f"there was no room for {size} more within {self._settings.max_block:g} s"
                )
            self.changed.wait(left)
        if self.refusal is not None:
            raise self.refusal
