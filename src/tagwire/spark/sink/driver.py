"""What the driver of an exactly-once query does before and after the tasks of a micro-batch: docs/exactly-once.md.

Before: it fences older drivers of the query, reads what was decided last, carries that out, and ends what else is
open. After: it decides, in a transaction whose commit is the commit point, and carries the decision out. Every step may
be cut short and done again by the next driver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from tagwire.errors import (
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.spark.sink.decisions import (
    PARTITION,
    TOPIC,
    Decision,
    TaskTransaction,
    ensure_topic,
    last_decisions,
)
from tagwire.spark.sink.transactional_ids import decisions_id, task_prefix

if TYPE_CHECKING:
    from tagwire.client import Client, Producer
    from tagwire.client.producing import ProducerIdentity

log = logging.getLogger(__name__)

Seen = TypeVar("Seen")

DECISION_TIMEOUT: Final = 60.0
"""Seconds after which a coordinator aborts a decision whose driver has died, at most."""

PATIENCE: Final = 180.0
"""Seconds that a step goes on asking brokers that are away, or busy with the same transaction."""

DEFAULT_MAX_TIMEOUT_MS: Final = 900_000
"""transaction.max.timeout.ms, where the broker does not tell: it needs permission to describe configs."""

LOOK_AGAIN_SECONDS: Final = 60.0
"""How long a client that is kept between micro-batches is believed about what a cluster is set up as."""

_MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
_ONGOING: Final = "Ongoing"
_FENCED: Final = frozenset(
    {
        Error.PRODUCER_FENCED,
        Error.INVALID_PRODUCER_EPOCH,
        Error.INVALID_PRODUCER_ID_MAPPING,  # a newer driver got another producer id: epochs of the old one were used up
    }
)
_ENDED_OTHERWISE: Final = _FENCED | {Error.INVALID_TXN_STATE}


class UndecidedError(TagwireError):
    """A micro-batch was not committed; nothing of it will be seen, and the query may run it again."""


class OvertakenError(TagwireError):
    """A micro-batch is decided, and another driver of the query has begun since then: that one carries the decision
    out, or has done so already. This one knows of nothing that is lost."""


class LostTransactionError(TagwireError):
    """A transaction of a decided micro-batch was aborted: its rows are lost. The text names batch, ids and rows."""


@dataclass(frozen=True)
class Prepared:
    """What a driver hands to the tasks of a micro-batch, and they to the driver that decides.

    Attributes:
        exactly_once_id: option exactlyOnceId, or the query id of the checkpoint.
        identity: producer id and epoch of the driver's transactional id; a later epoch has fenced this driver.
        decided: the last micro-batch that is decided, and carried out, of each of Spark's queries under that name.
        timeout_ms: of the tasks' transactions.
        at: when, in seconds of the driver's machine (`time.monotonic`).
    """

    exactly_once_id: str
    identity: ProducerIdentity
    decided: Mapping[str, int]
    timeout_ms: int
    at: float


class Driver:
    """One call of the driver's: made, used, closed.

    Args:
        client_of: gives a client for as long as it is entered.
        exactly_once_id: option exactlyOnceId, or the query id of the checkpoint.
        timeout_ms: of the tasks' transactions, as the option says; None is the broker's maximum.
        settled_batch: option exactlyOnceSettled: the micro-batch whose lost rows were written by other means.
    """

    def __init__(
        self,
        client_of: Callable[[], AbstractContextManager[Client]],
        exactly_once_id: str,
        timeout_ms: int | None = None,
        settled_batch: str | None = None,
    ) -> None:
        self._client_of = client_of
        self._exactly_once_id = exactly_once_id
        self._timeout_ms = timeout_ms
        self._settled_batch = settled_batch

    def prepare(self) -> Prepared:
        """Before the tasks of a micro-batch: fences, reads, carries out, cleans up.

        Raises:
            LostTransactionError: what was decided cannot be carried out any more.
            UndecidedError, OvertakenError: another driver of the query began meanwhile.
            TopicUnfitError: decisions cannot be kept. TagwireError: brokers refused or stayed away.
        """
        at = time.monotonic()
        with self._client_of() as client:
            _now_and_then(client, ensure_topic)
            timeout_ms = self._timeout_ms or _now_and_then(client, _max_timeout)
            with self._driver_producer(client, timeout_ms) as producer:
                producer.init_transactions()
                decided = last_decisions(client, self._exactly_once_id, time.monotonic() + PATIENCE)
                left = [one for one in decided.values() if not one.done]
                orphaned = self._orphaned(client, producer.identity, left)
                for decision in left:
                    self._carry_out(client, producer, decision)
                _fence(client, orphaned)
                batches = {query_id: decision.batch_id for query_id, decision in decided.items()}
                return Prepared(self._exactly_once_id, producer.identity, batches, timeout_ms, at)

    def decide(self, prepared: Prepared, decision: Decision) -> None:
        """Commits a micro-batch: see `_check` for what has to hold. It is committed once the transaction that writes
        the decision is, whatever is raised afterwards.

        Raises:
            UndecidedError: it is not committed: another driver of the query has begun, a transaction is not as it was
                left, or too much time has gone by.
            RequestTimeoutError, ProducerFencedError, ...: whether it is committed is not known; the next driver finds
                out.
            OvertakenError: it is committed; a driver that began since then carries it out.
            LostTransactionError: it is committed, and a transaction was aborted.
        """
        with self._client_of() as client, self._driver_producer(client, prepared.timeout_ms) as producer:
            producer.init_transactions(resume=prepared.identity)
            self._write(producer, decision, lambda: self._check(client, prepared, decision))
            self._carry_out(client, producer, decision)

    def abandon(self, prepared: Prepared, query_id: str, batch_id: int, written: Iterable[TaskTransaction]) -> None:
        """Gives up a micro-batch that failed, unless it was decided: then nothing is ended, and the next driver carries
        the decision out.

        What this driver may have decided is settled before it is read: where nobody has fenced it yet, it does so
        itself. A driver that began since then has fenced it, and is left alone.
        """
        with self._client_of() as client, self._driver_producer(client, prepared.timeout_ms) as producer:
            if not self._is_fenced(client, prepared.identity):
                producer.init_transactions()
            decided = last_decisions(client, self._exactly_once_id, time.monotonic() + PATIENCE).get(query_id)
            if decided is not None and decided.batch_id >= batch_id:
                return
            _end_all(client, tuple(written), commit=False)

    # Steps ---------------------------------------------------------------------------------------------------------

    def _orphaned(self, client: Client, identity: ProducerIdentity, left: Iterable[Decision]) -> list[str]:
        """The transactional ids of task attempts whose open transactions belong to no decision.

        A driver that has fenced this one may already have tasks, whose transactions must not be aborted: so the
        epoch of the driver's transactional id is read after the open transactions were listed.

        Raises:
            UndecidedError: this driver is fenced.
        """
        from tagwire.client import Admin

        decided = {one.transactional_id for decision in left for one in decision.transactions}
        prefix = task_prefix(self._exactly_once_id)
        with Admin(client) as admin:
            try:
                listed = admin.list_transactions(states=[_ONGOING])
            except UnsupportedVersionError:
                return []  # before Kafka 3.0 they cannot be listed; they time out
        orphaned = {one.transactional_id for one in listed if one.transactional_id.startswith(prefix)} - decided
        if orphaned and self._is_fenced(client, identity):
            raise self._fenced_error()
        return sorted(orphaned)

    def _is_fenced(self, client: Client, identity: ProducerIdentity) -> bool:
        """Whether another driver has begun, as far as brokers tell: before Kafka 3.0 they do not."""
        from tagwire.client import Admin

        driver_id = decisions_id(self._exactly_once_id)
        with Admin(client) as admin:
            try:
                now = admin.describe_transactions([driver_id])[driver_id]
            except UnsupportedVersionError:
                return False
        return (now.producer_id, now.producer_epoch) != (identity.producer_id, identity.epoch)

    def _check(self, client: Client, prepared: Prepared, decision: Decision) -> None:
        """Every transaction is open as its task left it, and will stay so for as long as it may take to end it."""
        age, allowed = time.monotonic() - prepared.at, prepared.timeout_ms / 1000
        if age > allowed / 2:
            raise UndecidedError(
                f"micro-batch {decision.batch_id} took {age:.0f} s, more than half of the {allowed:.0f} s that its "
                "transactions may be open; make batches smaller, or raise kafka.transaction.timeout.ms"
            )
        if len({one.transactional_id for one in decision.transactions}) < len(decision.transactions):
            raise UndecidedError(f"micro-batch {decision.batch_id}: two of its transactions have the same id")
        for listed, found in _described(client, decision.transactions):
            if found != (_ONGOING, listed.producer_id, listed.epoch):
                state, producer_id, epoch = found
                raise UndecidedError(
                    f"micro-batch {decision.batch_id}: transaction {listed} is {state}, producer {producer_id} at "
                    f"epoch {epoch}: it cannot be committed any more"
                )

    def _write(self, producer: Producer, decision: Decision, check: Callable[[], None] | None = None) -> None:
        """Writes a decision; the request to commit it is repeated until a coordinator responds.

        Args:
            check: called when all but the commit is done, which then has to come within `_decision_timeout`: of a
                driver that sleeps for longer the coordinator aborts the decision, and refuses the commit.
        """
        from tagwire.client.retry import is_retriable

        producer.begin_transaction()
        producer.send(TOPIC, decision.encode(), key=decision.key(self._exactly_once_id), partition=PARTITION)
        try:
            producer.flush()
        except KafkaError as error:
            if error.error in _FENCED:
                raise self._fenced_error() from error
            raise
        if check is not None:
            try:
                check()
            except TagwireError:
                with suppress(TagwireError):  # then its time runs out
                    producer.abort_transaction()
                raise
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                producer.commit_transaction()
                return
            except TagwireError as error:
                unknown = is_retriable(error) or isinstance(error, RequestTimeoutError)
                if not unknown or time.monotonic() > deadline:
                    raise

    def _carry_out(self, client: Client, producer: Producer, decision: Decision) -> None:
        """Commits all that a decision lists, each exactly as its task began it, and says that it is done.

        A driver that has begun since then has done all that before its tasks took the same transactional ids: what
        this one finds ended otherwise is not lost for that.
        """
        ended_otherwise = _end_all(client, decision.transactions, commit=True)
        lost = list(ended_otherwise)
        if lost and self._is_fenced(client, producer.identity):
            raise self._overtaken_error(decision)
        for transaction, error in ended_otherwise.items():
            log.error("transaction %s of micro-batch %d: %s", transaction, decision.batch_id, error)
        name = f"{decision.query_id}/{decision.batch_id}"
        if lost and name != self._settled_batch:
            raise LostTransactionError(
                f"micro-batch {decision.batch_id} of query {decision.query_id} was decided, but of its "
                f"{len(decision.transactions)} transactions {len(lost)} were aborted: {', '.join(map(str, lost))}. "
                f"Their rows are lost; docs/exactly-once.md says how to go on (option exactlyOnceSettled={name})"
            )
        try:
            self._write(producer, decision.carried_out())
        except UndecidedError as error:
            raise self._overtaken_error(decision) from error
        except KafkaError as error:
            if error.error in _FENCED:
                raise self._overtaken_error(decision) from error
            raise

    def _fenced_error(self) -> UndecidedError:
        return UndecidedError(f"another driver of query {self._exactly_once_id} has begun")

    def _overtaken_error(self, decision: Decision) -> OvertakenError:
        return OvertakenError(
            f"micro-batch {decision.batch_id} of query {decision.query_id} is decided; another driver of query "
            f"{self._exactly_once_id} has begun, and carries that out"
        )

    @contextmanager
    def _driver_producer(self, client: Client, timeout_ms: int) -> Iterator[Producer]:
        """The producer of the driver's transactional id. Closing it does not end its transaction.

        Args:
            timeout_ms: of the tasks' transactions.
        """
        from tagwire.client import Producer

        producer = Producer(
            client,
            transactional_id=decisions_id(self._exactly_once_id),
            transaction_timeout=_decision_timeout(timeout_ms),
            acks="all",
            compression="zstd",  # a decision lists every task
        )
        try:
            yield producer
        finally:
            producer.close(abort=False)


def _decision_timeout(timeout_ms: int) -> float:
    """Seconds that a decision may take, so that it is over before the transactions that it lists may be: they have half
    of their time left when it is checked."""
    return min(DECISION_TIMEOUT, timeout_ms / 1000 / 4)


_seen: WeakKeyDictionary[Client, dict[Callable[[Client], Any], tuple[float, Any]]] = WeakKeyDictionary()
"""What each client saw of its cluster's settings last, and when."""


def _now_and_then(client: Client, look: Callable[[Client], Seen]) -> Seen:
    """What `look` sees, or has seen by this client within `LOOK_AGAIN_SECONDS`. What it raises is not kept."""
    seen = _seen.setdefault(client, {})
    now = time.monotonic()
    if look not in seen or now - seen[look][0] >= LOOK_AGAIN_SECONDS:
        seen[look] = now, look(client)
    found: Seen = seen[look][1]
    return found


def _fence(client: Client, orphaned: list[str]) -> None:
    """Aborts the open transactions of these ids, and fences their producers."""
    from tagwire.client import Admin

    if orphaned:
        with Admin(client) as admin:
            admin.fence_producers(orphaned)


def _end_all(
    client: Client, transactions: Sequence[TaskTransaction], *, commit: bool
) -> dict[TaskTransaction, KafkaError]:
    """Ends them beside each other. Those that ended otherwise, each with what its coordinator says.

    Raises:
        TagwireError: of one, or several, it is not known whether it is ended. All others are by then.
    """
    from tagwire.client.producing import OpenTransaction, end_transactions

    named = [OpenTransaction(one.transactional_id, one.producer_id, one.epoch, one.protocol) for one in transactions]
    ended_otherwise: dict[TaskTransaction, KafkaError] = {}
    unknown: list[Exception] = []
    for transaction, ended in zip(transactions, end_transactions(client, named, commit=commit, timeout=PATIENCE)):
        if isinstance(ended, KafkaError) and ended.error in _ENDED_OTHERWISE:
            ended_otherwise[transaction] = ended
        elif isinstance(ended, Exception):
            unknown.append(ended)
    if unknown:
        for transaction, error in ended_otherwise.items():
            log.error("transaction %s: %s", transaction, error)
        for another in unknown[1:]:
            log.error("%s", another)
        raise unknown[0]
    return ended_otherwise


def _described(
    client: Client, transactions: Iterable[TaskTransaction]
) -> Iterator[tuple[TaskTransaction, tuple[str, int, int]]]:
    """State, producer and epoch of each transaction; nothing before Kafka 3.0, which has no DescribeTransactions."""
    from tagwire.client import Admin

    listed = {one.transactional_id: one for one in transactions}
    with Admin(client) as admin:
        try:
            found: Mapping = admin.describe_transactions(list(listed))
        except UnsupportedVersionError:
            return
        except KafkaError as error:
            if error.error is Error.TRANSACTIONAL_ID_NOT_FOUND:
                raise UndecidedError(f"a transaction is gone: {error}") from error
            raise
    for name, one in listed.items():
        now = found[name]
        yield one, (now.state, now.producer_id, now.producer_epoch)


def _max_timeout(client: Client) -> int:
    """The longest that a transaction may be open, as the broker is set up."""
    from tagwire.client import Admin

    node = str(next(iter(client.metadata([]).brokers)))
    with Admin(client) as admin:
        try:
            (configs,) = admin.describe_configs([("broker", node)]).values()
            return int(configs[_MAX_TIMEOUT].value or DEFAULT_MAX_TIMEOUT_MS)
        except (KafkaError, UnsupportedVersionError, KeyError):
            return DEFAULT_MAX_TIMEOUT_MS
