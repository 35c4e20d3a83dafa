"""The transactional ids of a broker: found by name, stored in __transaction_state, and there again after a restart.

Everything runs on the event loop, one step at a time for each id. Each step is stored before it is answered, and
before a step that follows from it is taken. A transaction that was ending when the broker stopped is brought to its end
when it starts again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tagwire.broker.clock import wall_ms
from tagwire.broker.groups.coordinator import Groups
from tagwire.broker.producer_ids import ProducerIds
from tagwire.broker.state_log import StateLog
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.topics import Topics
from tagwire.broker.transactions import stored
from tagwire.broker.transactions.transaction import LAST_EPOCH, State, TopicPartition, Transaction
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, UnsupportedVersionError
from tagwire.escaping import told
from tagwire.records import Record, batch_headers, write_end_transaction
from tagwire.records.internal_topics import OFFSETS

logger = logging.getLogger("tagwire.broker")

MAX_TIMEOUT_MS = 900_000
"""The longest that a producer may keep a transaction open, as in Kafka by default."""

MAX_TRANSACTIONAL_IDS = 10_000
"""Transactional ids that may exist at a time; the next one is refused."""

IDS_EXPIRE_AFTER_MS = 7 * 86_400_000
"""A transactional id that nobody used for this long is forgotten, as Kafka does by default."""

COORDINATOR_EPOCH = 0

Result = TypeVar("Result")


class Transactions:
    """Every transactional id of one broker.

    Args:
        log: where they are stored.
        topics: the logs that are marked.
        groups: whose offsets become part of transactions.
        producer_ids: where new ids come from.
        clock: milliseconds since 1970, what timeouts are measured by: they go on while the broker is stopped.
    """

    def __init__(
        self,
        log: StateLog,
        topics: Topics,
        groups: Groups,
        producer_ids: ProducerIds,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        self._log = log
        self._topics = topics
        self._groups = groups
        self._producer_ids = producer_ids
        self._clock = clock
        self._known: dict[str, Transaction] = {}
        # Held by whoever waits for its turn: a lock that nobody waits for is gone.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[Transaction]:
        return iter([transaction for _, transaction in sorted(self._known.items())])

    def get(self, transactional_id: str) -> Transaction | None:
        return self._known.get(transactional_id)

    def load(self) -> None:
        """Take over what is stored.

        Raises:
            StorageError: it cannot be read.
        """
        for batch in self._log.replay():
            try:
                for record in batch.records():
                    self._take(record)
            except (DecodeError, UnsupportedVersionError, ValueError) as error:
                raise StorageError(f"{self._log.name}, {batch!r}: {error}") from None

    def _take(self, record: Record) -> None:
        found = stored.read_record(record)
        if found is None:
            return
        transactional_id, transaction = found
        if transaction is None:
            self._known.pop(transactional_id, None)
        else:
            self._known[transactional_id] = transaction

    def start(self) -> None:
        """Bring to their end the transactions that were ending when the broker stopped."""
        for transaction in self:
            if transaction.is_ending:
                self._background(self._in_turn(transaction.transactional_id, self._logged(self._finish(transaction))))

    async def close(self) -> None:
        """Finish what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # What producers ask --------------------------------------------------------------------------------------------

    async def initialize(self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int) -> tuple[int, int]:
        """A process takes a transactional id over, or goes on with it after an error: its producer id and epoch.

        An open transaction is aborted first. `producer_id` and `epoch` are those it had, -1 for none.

        Raises:
            KafkaError: INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE.
        """
        if not transactional_id:
            raise KafkaError(Error.INVALID_REQUEST, "a transactional id cannot be empty")
        if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
            problem = f"a transaction timeout of {timeout_ms} ms is not 1 to {MAX_TIMEOUT_MS}"
            raise KafkaError(Error.INVALID_TRANSACTION_TIMEOUT, problem)
        return await self._begin(transactional_id, self._initialize(transactional_id, timeout_ms, producer_id, epoch))

    async def _initialize(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int
    ) -> tuple[int, int]:
        transaction = self._known.get(transactional_id)
        if transaction is None:
            if len(self._known) >= MAX_TRANSACTIONAL_IDS:
                raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, f"there are {MAX_TRANSACTIONAL_IDS} ids")
            new_id = await self._producer_ids.take()
            transaction = Transaction(transactional_id, new_id, 0, timeout_ms, self._clock())
            await self._store(transaction)
            self._known[transactional_id] = transaction
            return transaction.producer_id, transaction.epoch
        if producer_id >= 0 and (producer_id, epoch) != (transaction.producer_id, transaction.epoch):
            if (producer_id, epoch) == transaction.renewed and transaction.state is State.EMPTY:
                return transaction.producer_id, transaction.epoch  # the answer was lost: it is asked again (KIP-360)
            raise KafkaError(Error.PRODUCER_FENCED, f"{transactional_id} is of another producer by now")
        if transaction.is_ending:
            await self._finish(transaction)
        if transaction.state is State.ONGOING:
            await self._abort(transaction)
        next_id, next_epoch = transaction.producer_id, transaction.epoch + 1
        if next_epoch > LAST_EPOCH:
            next_id, next_epoch = await self._producer_ids.take(), 0
        transaction.initialize(next_id, next_epoch, timeout_ms, self._clock())
        await self._store(transaction)
        transaction.renewed = (producer_id, epoch) if producer_id >= 0 else None
        return next_id, next_epoch

    async def add(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> None:
        """Let a transaction write to partitions.

        Raises:
            KafkaError: as `Transaction.check_producer` and `add`; COORDINATOR_NOT_AVAILABLE.
        """
        added = list(partitions)
        await self._begin(transactional_id, self._add(transactional_id, producer_id, epoch, added))

    async def _add(self, transactional_id: str, producer_id: int, epoch: int, partitions: list[TopicPartition]) -> None:
        transaction = self._owned(transactional_id, producer_id, epoch)
        if transaction.add(partitions, self._clock()):
            await self._store(transaction)

    async def add_offsets(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Let a transaction commit offsets of groups; as `add`."""
        await self.add(transactional_id, producer_id, epoch, [(OFFSETS, 0)])

    async def end(self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Commit or abort a transaction; readers see the outcome when this returns.

        Raises:
            KafkaError: as `Transaction.check_producer` and `end`; COORDINATOR_NOT_AVAILABLE.
        """
        await self._begin(transactional_id, self._end(transactional_id, producer_id, epoch, commit))

    async def _end(self, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> None:
        transaction = self._owned(transactional_id, producer_id, epoch)
        if transaction.end(commit=commit, now_ms=self._clock()):
            await self._decided(transaction)

    def check_batch(
        self, transactional_id: str | None, producer_id: int, epoch: int, partition: TopicPartition
    ) -> None:
        """Refuse a transactional batch that is not of an open transaction which was told of its partition.

        Raises:
            KafkaError: as `Transaction.check_open`; INVALID_PRODUCER_ID_MAPPING for an id that does not exist.
        """
        transaction = self._known.get(transactional_id or "")
        if transaction is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {transactional_id}")
        transaction.check_open(producer_id, epoch, partition)

    # What time asks ------------------------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Abort what has been open for too long, finish what could not be finished, forget what nobody uses."""
        now = self._clock()
        for transaction in self:
            name = transaction.transactional_id
            if name in self._turns:
                continue  # something is being done with it: that may take as long as a disk does
            if transaction.is_overdue(now):
                open_ms = now - transaction.started_ms
                logger.info("transaction %s is aborted: it was open for %d ms", told(name), open_ms)
                await self._begin(name, self._logged(self._abort_overdue(transaction)))
            elif transaction.is_ending:
                await self._begin(name, self._logged(self._finish(transaction)))
            elif transaction.state is not State.ONGOING and transaction.updated_ms < now - IDS_EXPIRE_AFTER_MS:
                await self._begin(name, self._logged(self._forget(transaction)))

    async def _abort_overdue(self, transaction: Transaction) -> None:
        if transaction.is_overdue(self._clock()):
            await self._abort(transaction)

    async def _forget(self, transaction: Transaction) -> None:
        await self._log.append([stored.no_transaction_record(transaction.transactional_id, wall_ms())])
        self._known.pop(transaction.transactional_id, None)

    # Steps ---------------------------------------------------------------------------------------------------------

    def _owned(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        transaction = self._known.get(transactional_id)
        if transaction is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {transactional_id}")
        transaction.check_producer(producer_id, epoch)
        return transaction

    async def _abort(self, transaction: Transaction) -> None:
        transaction.fence(self._clock())
        await self._decided(transaction)

    async def _decided(self, transaction: Transaction) -> None:
        try:
            await self._store(transaction)
        except KafkaError:
            transaction.state = State.ONGOING  # what is not stored is not decided: no marker may tell of it
            raise
        await self._finish(transaction)

    async def _finish(self, transaction: Transaction) -> None:
        """Write the markers of a transaction whose outcome is decided, and store that they are written."""
        if not transaction.is_ending:
            return
        for partition in sorted(transaction.partitions):
            await self.mark(partition, transaction.producer_id, transaction.epoch, commit=transaction.commits)
        transaction.complete(self._clock())
        await self._store(transaction)

    async def mark(
        self,
        where: TopicPartition,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int = COORDINATOR_EPOCH,
    ) -> None:
        """End a producer's transaction in one partition; of one that was deleted meanwhile, nothing is left to end.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, COORDINATOR_NOT_AVAILABLE.
        """
        partition = self._topics.partition(*where)
        if partition is not None:
            data = memoryview(
                write_end_transaction(
                    commit=commit,
                    coordinator_epoch=coordinator_epoch,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    timestamp=wall_ms(),
                )
            )
            batch = batch_of(next(batch_headers(data)), data)
            try:
                await partition.append(lambda: batch)
            except StorageError as error:
                raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        if where[0] == OFFSETS:
            self._groups.end_transaction(producer_id, committed=commit)

    async def _store(self, transaction: Transaction) -> None:
        await self._log.append([stored.transaction_record(transaction, wall_ms())])

    async def _begin(self, transactional_id: str, work: Coroutine[Any, Any, Result]) -> Result:
        # Shielded: a client that goes away must not leave half a step behind.
        return await asyncio.shield(self._background(self._in_turn(transactional_id, work)))

    async def _in_turn(self, transactional_id: str, work: Coroutine[Any, Any, Result]) -> Result:
        turn = self._turns.setdefault(transactional_id, asyncio.Lock())
        async with turn:
            return await work

    def _background(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @staticmethod
    async def _logged(work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KafkaError as error:
            logger.error("%s", error)
