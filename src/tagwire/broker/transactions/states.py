"""The states of transactional ids, as stored in __transaction_state: none takes effect before it is stored.

States are immutable, and `store` and `forget` are the only ways to others: what is in memory is what a restart would
find. Source: Kafka's TransactionStateManager. It prepares a transition, appends it, and completes it then.
"""

from __future__ import annotations

from collections.abc import Iterator

from tagwire.broker.clock import wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.transactions import stored
from tagwire.broker.transactions.transaction import Transaction
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, UnsupportedVersionError
from tagwire.records import Record

MAX_TRANSACTIONAL_IDS = 10_000
"""Transactional ids that may exist at a time; the next one is refused."""

MAX_HELD_BYTES = 1 << 26
"""What transactional ids and the partitions of their transactions may take in memory together; more is refused."""


class TransactionStates:
    """The transactional ids of one broker. Of each id, one state is stored at a time; that is the caller's part.

    Args:
        log: where they are stored.

    Attributes:
        held_bytes: about how much memory they take.
    """

    def __init__(self, log: CoordinatorLog) -> None:
        self._log = log
        self._known: dict[str, Transaction] = {}
        self._coming: dict[str, Transaction] = {}
        self.held_bytes = 0

    def __iter__(self) -> Iterator[Transaction]:
        return iter([transaction for _, transaction in sorted(self._known.items())])

    def get(self, transactional_id: str) -> Transaction | None:
        """Where an id stands; any thread may ask."""
        return self._known.get(transactional_id)

    def coming(self, transactional_id: str) -> Transaction | None:
        """The state of an id that is being stored; any thread may ask."""
        return self._coming.get(transactional_id)

    def load(self) -> None:
        """Take over what is stored.

        Raises:
            StorageError: it cannot be read.
        """
        for batch in self._log.replay():
            if batch.is_control:  # a marker that an administrator had written here
                continue
            try:
                for record in batch.records():
                    self._take(record)
            except (DecodeError, UnsupportedVersionError, ValueError) as error:
                raise StorageError(f"{self._log.name}, {batch!r}: {error}") from None

    def _take(self, record: Record) -> None:
        found = stored.read_record(record)
        if found is not None:
            self._adopt(*found)

    async def store(self, following: Transaction) -> Transaction:
        """Make `following` the state of its id; it is stored when this returns.

        Partitions follow from it: it is on the disk before they have anything of it, with fsync="interval" too. That
        all of them have their markers may be forgotten: they get them once more.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: it could not be stored, or there are too many; nothing has changed.
        """
        name = following.transactional_id
        self._check_room(following)
        self._coming[name] = following
        try:
            record = stored.transaction_record(following, wall_ms())
            await self._log.append([record], decides=not following.is_complete)
        finally:
            del self._coming[name]
        self._adopt(name, following)
        return following

    async def forget(self, transactional_id: str) -> None:
        """Delete an id.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: that could not be stored; nothing has changed.
        """
        await self._log.append([stored.no_transaction_record(transactional_id, wall_ms())])
        self._adopt(transactional_id, None)

    def check_new(self, transactional_id: str) -> None:
        """Refuse an id that there is no room for: KafkaError COORDINATOR_NOT_AVAILABLE."""
        self._check_room(Transaction(transactional_id, -1, 0, 0, 0))

    def _check_room(self, following: Transaction) -> None:
        if following.transactional_id not in self._known:
            count = len(self._known) + sum(1 for name in self._coming if name not in self._known)
            if count >= MAX_TRANSACTIONAL_IDS:
                problem = f"there are {MAX_TRANSACTIONAL_IDS} transactional ids"
                raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, problem)
        growth = self._growth(following)
        coming = sum(max(self._growth(other), 0) for other in self._coming.values())
        if growth > 0 and self.held_bytes + coming + growth > MAX_HELD_BYTES:
            problem = f"transactional ids and their partitions hold {self.held_bytes} bytes, {MAX_HELD_BYTES} at most"
            raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, problem)

    def _growth(self, following: Transaction) -> int:
        known = self._known.get(following.transactional_id)
        return following.held_bytes - (known.held_bytes if known is not None else 0)

    def _adopt(self, transactional_id: str, transaction: Transaction | None) -> None:
        before = self._known.get(transactional_id)
        self.held_bytes -= before.held_bytes if before is not None else 0
        if transaction is None:
            self._known.pop(transactional_id, None)
        else:  # in one step: threads that look meanwhile find one or the other
            self._known[transactional_id] = transaction
            self.held_bytes += transaction.held_bytes
