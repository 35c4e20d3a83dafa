"""The transaction coordinator: requests of producers, timeouts, and the markers that follow from them.

Everything runs on the event loop, one step at a time for each id: requests that come meanwhile wait. Each step is
stored before the response, and before a step that follows from it is taken. A transaction that was ending when the
broker stopped is brought to its end when it starts again, and one that hangs in a partition is aborted there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tagwire.broker.clock import wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.producer_ids import ProducerIds
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.batch import Appended, Batch, batch_of
from tagwire.broker.topics import Topics
from tagwire.broker.transactions.hanging import Hanging, hanging_transactions
from tagwire.broker.transactions.states import TransactionStates
from tagwire.broker.transactions.transaction import LAST_EPOCH, State, Transaction
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.records import batch_headers, write_end_transaction
from tagwire.records.internal_topics import OFFSETS

if TYPE_CHECKING:
    from tagwire.broker.groups.coordinator import Groups

logger = logging.getLogger("tagwire.broker")

MAX_TIMEOUT_MS = 900_000
"""The longest that a producer may keep a transaction open, as in Kafka by default."""

IDS_EXPIRE_AFTER_MS = 7 * 86_400_000
"""A transactional id that nobody used for this long is forgotten, as Kafka does by default."""

COORDINATOR_EPOCH = 0


class Transactions:
    """Every transactional id of one broker.

    Args:
        log: where they are stored.
        topics: the logs that are marked.
        groups: gives those whose offsets become part of transactions.
        producer_ids: where new ids come from.
        clock: milliseconds since 1970, what timeouts are measured by: they go on while the broker is stopped.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        topics: Topics,
        groups: Callable[[], Groups],
        producer_ids: ProducerIds,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        self._states = TransactionStates(log)
        self._topics = topics
        self._groups = groups
        self._producer_ids = producer_ids
        self._clock = clock
        self._serial = SerialTasks()
        # Of transactions that are ending: the partitions that have their marker, as long as others have not.
        self._marked: dict[str, set[TopicPartition]] = {}
        # What hung when the broker was started, and is not ended yet, by its producer id.
        self._hanging: dict[int, Hanging] = {}
        # Of what is tried again and again: what was logged of it last.
        self._problems: dict[str, str] = {}

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._states)

    def get(self, transactional_id: str) -> Transaction | None:
        return self._states.get(transactional_id)

    def load(self) -> None:
        """Take over what is stored.

        Raises:
            StorageError: it cannot be read.
        """
        self._states.load()
        self._hanging = hanging_transactions(self._topics.partitions(), self._by_producer())

    def start(self) -> None:
        """Abort what hangs, and bring to their end the transactions that were ending when the broker stopped.

        No request may come before: what hangs could be taken for part of the transaction that it begins.
        """
        for name, work in self._ends_of_hanging():
            self._serial.submit(name, work)
        for transaction in self:
            if transaction.is_ending:
                name = transaction.transactional_id
                self._serial.submit(name, self._logged(name, self._finish_if_ending(name)))

    async def close(self) -> None:
        """Finish what is under way."""
        await self._serial.close()

    # Requests of producers ---------------------------------------------------------------------------------------

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
        return await self._serial.run(
            transactional_id, self._initialize(transactional_id, timeout_ms, producer_id, epoch)
        )

    async def _initialize(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int
    ) -> tuple[int, int]:
        transaction, requester = self._states.get(transactional_id), (producer_id, epoch)
        if transaction is None:
            self._states.check_new(transactional_id)
            new_id = await self._producer_ids.take()
            await self._states.store(Transaction(transactional_id, new_id, 0, timeout_ms, self._clock()))
            return new_id, 0
        owner = None
        if producer_id >= 0:
            if requester == transaction.renewed and transaction.state is State.EMPTY:
                return transaction.producer_id, transaction.epoch  # sent again: the response was lost (KIP-360)
            if requester not in ((transaction.producer_id, transaction.epoch), transaction.renewed):
                raise KafkaError(Error.PRODUCER_FENCED, f"{transactional_id} is of another producer by now")
            owner = requester
        if transaction.is_ending:
            transaction = await self._finish(transaction)
        if transaction.state is State.ONGOING:
            transaction = await self._abort(transaction, owner)
        next_id, next_epoch = transaction.producer_id, transaction.epoch + 1
        if owner is not None and owner == transaction.renewed and transaction.transaction_version > 1:
            next_epoch = transaction.epoch  # the end of its transaction has given it another one (KIP-890)
        if next_epoch > LAST_EPOCH:
            next_id, next_epoch = await self._producer_ids.take(), 0
        await self._states.store(transaction.initialized(next_id, next_epoch, timeout_ms, self._clock(), owner))
        return next_id, next_epoch

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        transaction_version: int = 1,
    ) -> None:
        """Let a transaction write to partitions.

        Raises:
            KafkaError: as `Transaction.check_producer` and `added`; CONCURRENT_TRANSACTIONS while something of the
                producer hangs; COORDINATOR_NOT_AVAILABLE.
        """
        added = list(partitions)
        await self._serial.run(
            transactional_id, self._add(transactional_id, producer_id, epoch, added, transaction_version)
        )

    async def _add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: list[TopicPartition],
        transaction_version: int,
    ) -> None:
        transaction = self._owned(transactional_id, producer_id, epoch)
        self._check_nothing_hangs(producer_id)
        following = transaction.added(partitions, self._clock(), transaction_version)
        if following is not transaction:
            await self._states.store(following)

    async def add_offsets(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Let a transaction commit offsets of groups; as `add`."""
        await self.add(transactional_id, producer_id, epoch, [TopicPartition(OFFSETS, 0)])

    def add_and_append(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: list[TopicPartition],
        append: Callable[[], list[asyncio.Future[Appended]]],
    ) -> list[asyncio.Future[Appended]] | asyncio.Task[list[asyncio.Future[Appended]]]:
        """Append to partitions, which are added to their transaction first, of version 2 (KIP-890).

        What is appended stands in the order of the calls.

        Args:
            append: begins that.

        Returns:
            What `append` does; a task that gives it where they have to be added first. Awaiting that raises KafkaError
            as `add` does, and nothing is appended then.
        """
        transaction = self._states.get(transactional_id)
        is_added = transaction is not None and transaction.holds(producer_id, epoch, partitions)
        if is_added and not self._serial.is_busy(transactional_id):
            return append()

        async def add_and_append() -> list[asyncio.Future[Appended]]:
            await self._add(transactional_id, producer_id, epoch, partitions, 2)
            return append()

        return self._serial.submit(transactional_id, add_and_append())

    async def end(self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Commit or abort a transaction; readers see the outcome when this returns.

        Raises:
            KafkaError: as `Transaction.check_producer` and `ended`; CONCURRENT_TRANSACTIONS, as `add`;
                COORDINATOR_NOT_AVAILABLE.
        """
        await self._serial.run(transactional_id, self._end(transactional_id, producer_id, epoch, commit))

    async def _end(self, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> None:
        transaction = self._owned(transactional_id, producer_id, epoch)
        following = transaction.ended(commit=commit, now_ms=self._clock())
        if following is not transaction:
            self._check_nothing_hangs(transaction.producer_id)
            await self._finish(await self._states.store(following))

    async def end_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool
    ) -> tuple[int, int]:
        """As `end`, of a transaction of version 2: the producer id and epoch that its producer goes on with (KIP-890).

        Raises:
            KafkaError: as `Transaction.ended_with_epoch`; CONCURRENT_TRANSACTIONS, as `add`; COORDINATOR_NOT_AVAILABLE.
        """
        return await self._serial.run(
            transactional_id, self._end_with_epoch(transactional_id, producer_id, epoch, commit)
        )

    async def _end_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> tuple[int, int]:
        transaction = self._existing(transactional_id, epoch)
        following = transaction.ended_with_epoch(producer_id, epoch, commit=commit, now_ms=self._clock())
        if following is not transaction:
            self._check_nothing_hangs(transaction.producer_id)
            if following.epoch > LAST_EPOCH:
                following = replace(following, next_producer_id=await self._producer_ids.take())
            following = await self._finish(await self._states.store(following))
        return following.producer_id, following.epoch

    def check_batch(
        self, transactional_id: str | None, producer_id: int, epoch: int, partition: TopicPartition
    ) -> None:
        """Refuse a transactional batch that is not of an open transaction which was told of its partition. Any thread
        may ask.

        Raises:
            KafkaError: as `Transaction.check_open`; INVALID_PRODUCER_ID_MAPPING for an id that does not exist;
                COORDINATOR_LOAD_IN_PROGRESS while something of the producer hangs.
        """
        name = transactional_id or ""
        # What is being stored may end the transaction: no batch may slip in between that and its marker. It is looked
        # at first: it may be stored between the two.
        coming, transaction = self._states.coming(name), self._states.get(name)
        if transaction is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {transactional_id}")
        transaction.check_open(producer_id, epoch, partition)
        if coming is not None:
            coming.check_open(producer_id, epoch, partition)
        if producer_id in self._hanging:  # it would become part of the same transaction
            raise KafkaError(Error.COORDINATOR_LOAD_IN_PROGRESS, _not_aborted_yet(producer_id))

    # Timeouts ----------------------------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Abort what has been open for too long, finish what could not be finished, forget what nobody uses."""
        now = self._clock()
        for name, work in self._ends_of_hanging():
            await self._serial.run(name, work)
        for transaction in self:
            name = transaction.transactional_id
            if self._serial.is_busy(name):
                continue  # something is being done with it: that may take as long as a disk does
            if transaction.is_overdue(now):
                open_ms = now - transaction.started_ms
                logger.info("transaction %s is aborted: it was open for %d ms", told(name), open_ms)
                await self._serial.run(name, self._logged(name, self._abort_if_overdue(name)))
            elif transaction.is_ending:
                await self._serial.run(name, self._logged(name, self._finish_if_ending(name)))
            elif self._is_unused(transaction):
                await self._serial.run(name, self._logged(name, self._forget_if_unused(name)))

    async def _abort_if_overdue(self, transactional_id: str) -> None:
        transaction = self._states.get(transactional_id)
        if transaction is not None and transaction.is_overdue(self._clock()):
            await self._abort(transaction)

    async def _finish_if_ending(self, transactional_id: str) -> None:
        transaction = self._states.get(transactional_id)
        if transaction is not None and transaction.is_ending:
            await self._finish(transaction)

    async def _forget_if_unused(self, transactional_id: str) -> None:
        transaction = self._states.get(transactional_id)
        if transaction is not None and self._is_unused(transaction):
            await self._states.forget(transactional_id)

    def _is_unused(self, transaction: Transaction) -> bool:
        is_over = transaction.state is not State.ONGOING and not transaction.is_ending
        return is_over and transaction.updated_ms < self._clock() - IDS_EXPIRE_AFTER_MS

    # Hanging transactions ------------------------------------------------------------------------------------------

    def _check_nothing_hangs(self, producer_id: int) -> None:
        """Refuse what would have a share in what hangs of a producer, or commit it: CONCURRENT_TRANSACTIONS."""
        if producer_id in self._hanging:
            raise KafkaError(Error.CONCURRENT_TRANSACTIONS, _not_aborted_yet(producer_id))

    def _by_producer(self) -> dict[int, Transaction]:
        return {transaction.producer_id: transaction for transaction in self}

    def _ends_of_hanging(self) -> Iterator[tuple[str, Coroutine[object, None, None]]]:
        """What ends each, and the transactional id in whose turn; nobody's is that without a name."""
        owners = self._by_producer() if self._hanging else {}
        for producer_id, hanging in list(self._hanging.items()):
            name = owners[producer_id].transactional_id if producer_id in owners else ""
            yield name, self._logged(name, self._end_hanging(name, producer_id, hanging))

    async def _end_hanging(self, name: str, producer_id: int, hanging: Hanging) -> None:
        if producer_id not in self._hanging:
            return
        owner = self._states.get(name)
        if owner is not None and owner.producer_id == producer_id and owner.epoch <= hanging.epoch:
            await self._take_back(owner, hanging)
        else:
            await self._abort_open(hanging)
        del self._hanging[producer_id]
        for topic, index in sorted(hanging.open):
            problem = "a transaction is aborted that was open here, and of which its coordinator knew nothing"
            logger.warning("%s-%d: producer %d: %s", topic, index, producer_id, problem)

    async def _take_back(self, owner: Transaction, hanging: Hanging) -> None:
        """Abort what hangs of a producer that may be alive, in the name of an epoch that it does not have."""
        if owner.is_ending and owner.epoch == hanging.epoch:
            await self._abort_open(hanging)  # before the markers of what is decided: those would end it as well
            owner = await self._mark_all(owner)
        await self._states.store(owner.taken_back(hanging.epoch, hanging.open, self._clock()))
        name = owner.transactional_id
        self._marked.pop(name, None)
        self._serial.submit(name, self._logged(name, self._finish_if_ending(name)))

    async def _abort_open(self, hanging: Hanging) -> None:
        for where, producer in sorted(hanging.open.items()):
            coordinator_epoch = max(producer.coordinator_epoch, COORDINATOR_EPOCH)
            try:
                await self.mark(
                    where, producer.producer_id, producer.epoch, commit=False, coordinator_epoch=coordinator_epoch
                )
            except KafkaError as error:
                # A marker of a later epoch has ended it: batches of one are not taken while it hangs.
                if error.error is not Error.INVALID_PRODUCER_EPOCH:
                    raise

    # Steps ---------------------------------------------------------------------------------------------------------

    def _owned(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        transaction = self._existing(transactional_id, epoch)
        transaction.check_producer(producer_id, epoch)
        return transaction

    def _existing(self, transactional_id: str, epoch: int) -> Transaction:
        """The id, for whoever says to be at an epoch. The last one of all is no producer's: whatever it began could not
        be fenced any more."""
        if not transactional_id:
            raise KafkaError(Error.INVALID_REQUEST, "a transactional id cannot be empty")
        transaction = self._states.get(transactional_id)
        if transaction is None:
            raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {transactional_id}")
        if epoch > LAST_EPOCH:
            raise KafkaError(Error.PRODUCER_FENCED, f"no producer of {transactional_id} is at epoch {epoch}")
        return transaction

    async def _abort(self, transaction: Transaction, owner: tuple[int, int] | None = None) -> Transaction:
        """Abort an open transaction; its owner, if it asks for that, may ask again."""
        return await self._finish(await self._states.store(transaction.fenced(self._clock(), owner)))

    async def _finish(self, transaction: Transaction) -> Transaction:
        """Write the markers of a transaction whose outcome is decided, and store that they are written."""
        if transaction.commits:
            self._check_nothing_hangs(transaction.producer_id)
        return await self._mark_all(transaction)

    async def _mark_all(self, transaction: Transaction) -> Transaction:
        """As `_finish`, whatever hangs.

        A partition that cannot be marked keeps the others waiting for nothing: they are, and only once.
        """
        marked = self._marked.setdefault(transaction.transactional_id, set())
        failure: KafkaError | None = None
        for partition in sorted(transaction.partitions - marked):
            try:
                await self.mark(partition, transaction.producer_id, transaction.epoch, commit=transaction.commits)
                marked.add(partition)
            except KafkaError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        done = await self._states.store(transaction.completed(self._clock()))
        del self._marked[transaction.transactional_id]
        return done

    async def mark_for_another(
        self, where: TopicPartition, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int
    ) -> None:
        """As `mark`, for whoever asks for this one partition. It goes on when he goes away: what ends in the log has to
        end in memory.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED. StorageError: the disk refused.
        """
        await self._serial.run_concurrently(
            self._mark(where, producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
        )

    async def mark(
        self,
        where: TopicPartition,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int | None = None,
    ) -> None:
        """End a producer's transaction in one partition; of one that was deleted meanwhile, nothing is left to end.

        Args:
            coordinator_epoch: of whoever asks for it; None for this coordinator, after which there is none: a marker
                with a later epoch, which an administrator wrote, does not fence it.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, COORDINATOR_NOT_AVAILABLE.
        """
        try:
            await self._mark(where, producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
        except StorageError as error:
            raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    async def _mark(
        self, where: TopicPartition, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int | None
    ) -> None:
        partition = self._topics.partition(*where)
        if partition is not None:
            first = COORDINATOR_EPOCH if coordinator_epoch is None else coordinator_epoch
            try:
                await partition.append(_marker(producer_id, epoch, first, commit=commit), decides=True)
            except KafkaError as error:
                if coordinator_epoch is not None or error.error is not Error.TRANSACTION_COORDINATOR_FENCED:
                    raise
                known = (each for each in await partition.producers() if each.producer_id == producer_id)
                later = max((each.coordinator_epoch for each in known), default=first)
                await partition.append(_marker(producer_id, epoch, later, commit=commit), decides=True)
        if where[0] == OFFSETS:
            self._groups().end_transaction(producer_id, committed=commit)

    async def _logged(self, transactional_id: str, work: Coroutine[object, None, None]) -> None:
        try:
            await work
        except KafkaError as error:
            # It is tried again twice a second, for as long as a partition is offline.
            if self._problems.get(transactional_id) != str(error):
                self._problems[transactional_id] = str(error)
                logger.error("transaction %s: %s", told(transactional_id), error)
        else:
            self._problems.pop(transactional_id, None)


def _not_aborted_yet(producer_id: int) -> str:
    return f"what producer {producer_id} left open is not aborted yet"


def _marker(producer_id: int, epoch: int, coordinator_epoch: int, *, commit: bool) -> Callable[[], Batch]:
    """What gives the marker of a transaction's end."""
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
    return lambda: batch
