"""What callers append and the sending thread drains: a batch per partition, closed when it is full or old.

The bytes of all incomplete batches are bounded (`buffer_memory`; BufferPool in Kafka). Whoever waits, for room or for
what was appended, does so by the `Completion`: threads block in it, tasks await it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from tagwire.client.config import ProduceSettings
from tagwire.client.producing.batch_delivery import BatchDelivery
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.producer_batch import Completion, ProducerBatch
from tagwire.errors import BufferFullError, RequestTimeoutError, TagwireError, TransactionStateError, afresh
from tagwire.partitions import TopicPartition
from tagwire.records import Record

NEVER: Final = float("inf")

RecordDelivery = TypeVar("RecordDelivery", bound=BatchDelivery)


PATIENCE: Final = 0.1
"""Seconds for which room is waited for without a place in line. Where everybody stood in line at once, threads would
take turns record by record, at a quarter of the rate."""


class Claim:
    """What somebody waits for room for: after `PATIENCE`, bytes that become free are held for who has waited longest,
    as in Java's BufferPool, so that many small records do not keep a large one out.

    Attributes:
        bytes: how many are needed.
        held: how many of them others may not have any more.
        joins: when it has a place in line (the driver's clock); NEVER for who may not wait, and takes what is free,
            whoever waits for it.
    """

    __slots__ = ("bytes", "held", "joins")

    def __init__(self, needed: int, joins: float) -> None:
        self.bytes = needed
        self.held = 0
        self.joins = joins


class RecordAccumulator(Generic[RecordDelivery]):
    """Open and closed batches (Kafka's RecordAccumulator); every method is for any thread, of `drain`, `ready_at` and
    `complete` those of the process that made it: the lock is taken without asking.

    Attributes:
        completion: held while batches change; notified whenever one is complete: delivered, or failed.
        refusal: why nothing may be appended; None while it is allowed.
        refused: how often it was forbidden. Who has waited since another number belongs to a transaction that is over.
        on_room: told how long a caller waited for room (seconds), and whether it found some.
        delivery: makes what `append` gives, of a batch and an index.

    Args:
        now: the driver's clock, seconds.
        wakeup: lets the sending thread look for something to do.
    """

    def __init__(
        self,
        settings: ProduceSettings,
        completion: Completion,
        now: Callable[[], float],
        wakeup: Callable[[], None],
        delivery: Callable[[ProducerBatch, int], RecordDelivery],
    ) -> None:
        self.delivery = delivery
        self.completion = completion
        self.refusal: TagwireError | None = None
        self.refused = 0
        self.on_room: Callable[[float, bool], None] = lambda waited, found: None
        self._lock = completion.lock
        self._settings = settings
        self._batch_bytes = settings.batch_bytes
        self._memory = settings.buffer_memory
        self._now = now
        self._wakeup = wakeup
        self._open: dict[TopicPartition, tuple[ProducerBatch, TopicPartitioner]] = {}
        self._closed: list[ProducerBatch] = []
        self._incomplete: dict[ProducerBatch, None] = {}
        self._bytes = 0
        self._claims: dict[Claim, None] = {}  # of those who wait, in the order in which they came
        self._claimed = 0  # what is held for them
        self._most_records = settings.buffer_records
        self._closed_records = 0  # of batches that are not open any more, and not complete
        self._sleeps_until = NEVER
        self._error: TagwireError | None = None

    def append(
        self,
        partitioner: TopicPartitioner,
        record: Record,
        size: int,
        partition: int | None,
        on_delivery: Callable[[RecordDelivery], object] | None = None,
        claim: Claim | None = None,
    ) -> RecordDelivery | None:
        """Adds a record of `size` bytes to the open batch of its partition; None where there is no `room`.

        Args:
            partition: where it goes; None as its key says.
            on_delivery: called when it is delivered, or failed.
            claim: the caller's, where it had to wait.

        Raises:
            KafkaError: the topic has no such partition.
        """
        with self._lock:
            may_be_full = self._bytes + self._claimed + size > self._memory or self._most_records is not None
            if self.refusal is not None or (may_be_full and not self.has_room(size, claim)):
                return None
            tp = partitioner.partition_for(record.key, partition)
            found = self._open.get(tp)
            if found is not None and found[0].size + size > self._batch_bytes:
                self._close(found[0], is_full=True)
                tp = partitioner.partition_for(record.key, partition)
                found = self._open.get(tp)
            batch = self._new_batch(tp, partitioner) if found is None else found[0]
            before, index = batch.size, batch.count
            try:
                batch.append(record, size)
            finally:
                self._bytes += batch.size - before
            delivery = self.delivery(batch, index)
            if on_delivery is not None:
                batch.callbacks[partial(on_delivery, delivery)] = index
            if batch.size >= self._batch_bytes:
                self._close(batch, is_full=True)
            return delivery

    def append_batch(self, batch: ProducerBatch, refused: int, claim: Claim | None = None) -> bool:
        """Adds an encoded batch, which is sent after what its partition was given before; False where there is no
        `room`. `claim` as of `append`. Raises as `require_since`."""
        with self.completion.held():
            self.require_since(refused)
            if self.refusal is not None or not self.has_room(batch.size, claim):
                return False
            found = self._open.get(batch.topic_partition)
            if found is not None:
                self._close(found[0], is_full=True)
            batch.created = self._now()  # what it waited for room counts for nothing of its time
            self._bytes += batch.size
            self._closed_records += batch.count
            self._incomplete[batch] = None
            self._closed.append(batch)
            self._wake_by(0.0)
            return True

    def claim(self, size: int, until: float) -> Claim:
        """What `room` is waited for by, to be given to `release` whatever comes of it. Who may not wait, because there
        is no time or it is the thread that makes room, stands in no line."""
        now = self._now()
        return Claim(min(size, self._memory), now + PATIENCE if now < until and self._may_wait() else NEVER)

    def release(self, claim: Claim) -> None:
        """Leaves the line, appended or not: what was held is the next one's."""
        with self.completion.held():
            if claim in self._claims:
                del self._claims[claim]
                if self._hold():
                    self.completion.notify_all()

    async def room(self, size: int, until: float, claim: Claim | None = None) -> None:
        """Waits until `size` bytes may be appended, by `claim`.

        Raises:
            TagwireError: `refusal`. BufferFullError: there was no room by then (the driver's clock).
        """
        with self.completion.held():
            waits, began = self._waits(size, claim), self._now()
        if waits:
            try:
                await self._await_room(size, until, claim)
            finally:
                with self.completion.held():
                    self.on_room(self._now() - began, self.has_room(size, claim))
        if (refusal := self.refusal) is not None:
            raise afresh(refusal)

    def _waits(self, size: int, claim: Claim | None) -> bool:
        return self.refusal is None and not self.has_room(size, claim)

    async def _await_room(self, size: int, until: float, claim: Claim | None) -> None:
        # Whoever waits is looked at again when any batch is complete, and when it has its place in line.
        while True:
            with self.completion.held():
                if not self._waits(size, claim):
                    return
                self.close_batches()  # what waits for more records would wait in vain
                now, wakes = self._now(), until
                if now >= until:
                    raise self._no_room(size)
                if claim is not None and claim not in self._claims:
                    wakes = min(until, claim.joins)
                    if now >= claim.joins:
                        self._claims[claim] = None
                        self._hold()
                        continue
                news = self.completion.news()
            await news.wait(wakes)

    async def flush(self, deadline: float) -> None:
        """Waits until every batch is complete.

        Raises:
            TagwireError: the first failure since the last call, or of what was waited for, which others who wait for
                the same are told, too. RequestTimeoutError: the deadline came first.
        """
        error = await self.await_completion(deadline)
        if error is not None:
            raise afresh(error)

    async def await_completion(self, deadline: float) -> TagwireError | None:
        """`flush`, which returns the failure that it raises. Raises RequestTimeoutError alone."""
        with self.completion.held():
            self.close_batches()
            batches = list(self._incomplete)
        for batch in batches:
            while True:
                with self.completion.held():
                    if all(leaf.is_done for leaf in batch.leaves()):
                        break
                    if self._now() >= deadline:
                        raise RequestTimeoutError(f"{len(self._incomplete)} batches were not delivered in time")
                    news = self.completion.news()
                await news.wait(deadline)
        with self.completion.held():
            error, self._error = self._error, None
            return error or next((leaf.error for batch in batches for leaf in batch.leaves() if leaf.error), None)

    def encoded(
        self, tp: TopicPartition, data: bytes, *, level: int | None = None, is_unsplittable: bool = False
    ) -> ProducerBatch:
        """A batch of its own of what is encoded already. Takes and raises what `ProducerBatch.encoded` does."""
        dialect = self._settings.dialect
        return ProducerBatch.encoded(
            tp, self.completion, self._now(), data, dialect=dialect, level=level, is_unsplittable=is_unsplittable
        )

    def drain(self, now: float, *, everything: bool = False) -> Sequence[ProducerBatch]:
        """The batches that are to be sent, each partition's in order; `everything`: also those that linger."""
        with self._lock:
            self._sleeps_until = 0.0  # awake
            if self._open:
                oldest = now if everything else now - self._settings.linger
                for batch, _ in [found for found in self._open.values() if found[0].created <= oldest]:
                    self._close(batch, is_full=False)
            if not self._closed:
                return ()
            drained, self._closed = self._closed, []
            return drained

    def ready_at(self) -> float:
        """When `drain` will have something (the driver's clock); the thread sleeps until then or until it is woken."""
        with self._lock:
            first = min([batch.created for batch, _ in self._open.values()]) if self._open else NEVER
            self._sleeps_until = 0.0 if self._closed else first + self._settings.linger
            return self._sleeps_until

    def complete(self, batches: Sequence[tuple[ProducerBatch, int, TagwireError | None]]) -> None:
        """Batches are delivered, at base offsets, or failed because of errors."""
        with self._lock:
            for batch, base_offset, error in batches:
                self._bytes -= batch.size
                self._closed_records -= batch.count
                self._incomplete.pop(batch, None)
                batch.complete(base_offset, error)
            if self._claims:
                self._hold()
            self.completion.notify_all()
        for batch, _, _ in batches:
            if batch.callbacks:  # whoever adds one from here on calls it
                batch.run_callbacks()

    def split(self, batch: ProducerBatch, parts: tuple[ProducerBatch, ...]) -> None:
        """From now on the parts are completed instead of the batch."""
        with self.completion.held():
            del self._incomplete[batch]
            self._incomplete.update(dict.fromkeys(parts))
            batch.replace_by(parts)

    def refuse(self, error: TagwireError | None) -> None:
        """From now on nothing may be appended because of `error`; None allows it."""
        with self.completion.held():
            self.refusal = error
            self.refused += error is not None
            self.completion.notify_all()

    def require_since(self, refused: int) -> None:
        """Raises TransactionStateError where it was forbidden since, and is allowed again; `completion` is held."""
        if self.refusal is None and self.refused != refused:
            raise TransactionStateError("the transaction has ended meanwhile, and another one has begun")

    def incomplete(self) -> list[ProducerBatch]:
        """Every batch that is neither delivered nor failed; nothing is left to drain."""
        with self.completion.held():
            self._closed_records += sum(batch.count for batch, _ in self._open.values())
            self._open.clear()
            self._closed.clear()
            return list(self._incomplete)

    def note_failure(self, error: TagwireError) -> None:
        """Remembers a failure for the next `flush`."""
        self._error = self._error or error

    def close_batches(self) -> None:
        """Lets every batch be drained; `completion` is held."""
        for batch, _ in list(self._open.values()):
            self._close(batch, is_full=False)

    def _new_batch(self, tp: TopicPartition, partitioner: TopicPartitioner) -> ProducerBatch:
        now = self._now()
        batch = ProducerBatch(
            tp, self.completion, now, partitioner.compression, self._settings.dialect, partitioner.level
        )
        self._wake_by(now + self._settings.linger)
        self._open[tp] = batch, partitioner
        self._incomplete[batch] = None
        return batch

    def _close(self, batch: ProducerBatch, *, is_full: bool) -> None:
        _, partitioner = self._open.pop(batch.topic_partition)
        if not batch.count:  # the call that began it was interrupted
            self._incomplete.pop(batch, None)
            return
        partitioner.batch_closed(batch.topic_partition.partition, self._batch_bytes if is_full else batch.size)
        self._closed.append(batch)
        self._closed_records += batch.count
        self._wake_by(0.0)

    def _wake_by(self, at: float) -> None:
        """Wakes the thread if it would sleep past then. A caller that is interrupted meanwhile has left nothing behind:
        the next one wakes it."""
        if at < self._sleeps_until:
            self._wakeup()
            self._sleeps_until = at

    @property
    def pending_records(self) -> int:
        """How many records are not delivered yet, nor failed."""
        with self._lock:
            return self._closed_records + sum(batch.count for batch, _ in self._open.values())

    @property
    def buffered_bytes(self) -> int:
        """Bytes of records that are not delivered yet."""
        return self._bytes

    def has_room(self, size: int, claim: Claim | None = None) -> bool:
        """Whether a record of `size` bytes may be appended, by `claim` or beside those that others have: one that is
        larger than all the room, if nothing is there beside it."""
        others = 0
        if claim is None or claim.joins != NEVER:
            if claim is None or claim not in self._claims:
                others = self._claimed
            elif claim.held < claim.bytes:
                return False
        if not self._bytes and not others:
            return True
        most = self._most_records
        return self._bytes + others + size <= self._memory and (most is None or self.pending_records < most)

    def _hold(self) -> bool:
        """Holds what is free for those who wait, the first of them first; whether anybody has more than before."""
        claimed = sum(claim.held for claim in self._claims)  # counted anew: a caller may have been interrupted
        free = self._memory - self._bytes - claimed
        is_more = False
        for claim in self._claims:
            more = min(claim.bytes - claim.held, free)
            if more > 0:
                claim.held += more
                claimed, free, is_more = claimed + more, free - more, True
        self._claimed = claimed
        return is_more

    def _may_wait(self) -> bool:
        try:
            self.completion.require_waitable()
        except TagwireError:
            return False
        return True

    def _no_room(self, size: int) -> BufferFullError:
        waits = self._settings.block_on_buffer_full
        within = f" within {self._settings.max_block:g} s" if waits else ""
        pending, most = self.pending_records, self._most_records
        if most is not None and pending >= most:
            return BufferFullError(
                f"{pending} records are not delivered yet, and buffer_records allows {most}; "
                f"there was no room for another{within}"
            )
        return BufferFullError(
            f"{self._bytes} bytes of records are not delivered yet, and buffer_memory allows {self._memory}; "
            f"there was no room for {size} more{within}"
        )
