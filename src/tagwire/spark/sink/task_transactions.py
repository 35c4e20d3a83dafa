"""The transaction of a task attempt in an exactly-once query: it writes, and leaves the transaction open.

A worker keeps a pool of transactional ids for each cluster and query. It uses one again only when a driver has said
that the micro-batch it served is done, and the coordinator that its last transaction was committed. Each use begins
with InitProducerId, so that transactional id, producer id and epoch name exactly one transaction, even to a zombie
driver. An id whose transaction was aborted or left open is never used again: a driver that has seen it open may abort
it at any time later. Nor is one whose InitProducerId had no answer: it may come late, and abort what was begun since.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tagwire.errors import (
    ConfigError,
    ConnectionLostError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TransactionStateError,
    UnsupportedVersionError,
)
from tagwire.spark.sink.client_cache import cached_client
from tagwire.spark.sink.decisions import TaskTransaction
from tagwire.spark.sink.transactional_ids import new_task_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from tagwire.client import Client, Producer
    from tagwire.spark.sink.driver import Prepared

_PoolKey = tuple[int, tuple[tuple[str, str], ...], str]

_COMMITTED: Final = ("PrepareCommit", "CompleteCommit")

_UNANSWERED: Final = 3
"""With so many ids an attempt of a task tries to begin before it fails."""


@dataclass
class _PooledId:
    """A transactional id of this worker that no attempt uses now, and the micro-batch it served last."""

    transactional_id: str
    query_id: str
    batch_id: int

    def is_free(self, decided: Mapping[str, int]) -> bool:
        return decided.get(self.query_id, -1) >= self.batch_id


_pools: dict[_PoolKey, list[_PooledId]] = {}


def write_transaction(
    properties: Mapping[str, str], prepared: Prepared, batch: tuple[str, int], send: Callable[[Producer], int]
) -> TaskTransaction:
    """Writes what `send` sends in a transaction of its own, which stays open.

    Args:
        properties: of the client.
        prepared: as the driver handed it over.
        batch: Spark's query id and the micro-batch.
        send: sends, waits until all is acknowledged, and tells the number of rows.

    Raises:
        TagwireError: something was not acknowledged, or the producer is no longer the one that began: the attempt has
            failed, and what it has written will be aborted.
    """
    pool = _pools.setdefault((os.getpid(), tuple(sorted(properties.items())), prepared.exactly_once_id), [])
    with cached_client(properties) as client:
        transactional_id, producer = _initialized(client, pool, prepared)
        try:
            begun = producer.identity
            producer.begin_transaction()
            rows = send(producer)
            now = producer.identity
            if (now.producer_id, now.epoch) != (begun.producer_id, begun.epoch):
                raise TransactionStateError(
                    f"{transactional_id}: producer {begun.producer_id} at epoch {begun.epoch} has become "
                    f"{now.producer_id} at {now.epoch}; what it has written is not one transaction"
                )
            return TaskTransaction(transactional_id, begun.producer_id, begun.epoch, begun.transaction_version, rows)
        finally:
            producer.close(0, abort=False)
            pool.append(_PooledId(transactional_id, *batch))


def _initialized(client: Client, pool: list[_PooledId], prepared: Prepared) -> tuple[str, Producer]:
    """An id of the pool or a new one, and its producer. One whose request had no answer is given up for another."""
    unanswered = 0
    while True:
        transactional_id = _take_id(client, pool, prepared)
        producer = _producer(client, transactional_id, prepared.timeout_ms)
        try:
            _init(producer, prepared.timeout_ms)
        except BaseException as error:
            producer.close(0, abort=False)
            unanswered += 1
            if not isinstance(error, RequestTimeoutError | ConnectionLostError) or unanswered == _UNANSWERED:
                raise
        else:
            return transactional_id, producer


def _init(producer: Producer, timeout_ms: int) -> None:
    try:
        producer.init_transactions(once=True)
    except KafkaError as error:
        if error.error is Error.INVALID_TRANSACTION_TIMEOUT:
            raise ConfigError(
                f"option kafka.transaction.timeout.ms={timeout_ms}: the brokers allow less (transaction.max.timeout.ms)"
            ) from error
        raise


def _take_id(client: Client, pool: list[_PooledId], prepared: Prepared) -> str:
    """An id that no other attempt uses: one whose micro-batch is done, or a new one. It is not in the pool while it is
    used: an attempt that sleeps before its InitProducerId would abort what another has begun meanwhile."""
    while (pooled := next((one for one in pool if one.is_free(prepared.decided)), None)) is not None:
        pool.remove(pooled)
        if _is_committed(client, pooled.transactional_id):
            return pooled.transactional_id
    return new_task_id(prepared.exactly_once_id)


def _is_committed(client: Client, transactional_id: str) -> bool:
    """Whether the last that was written under an id was committed."""
    from tagwire.client import Admin

    with Admin(client) as admin:
        try:
            found = admin.describe_transactions([transactional_id])
        except UnsupportedVersionError:
            return True  # before Kafka 3.0 drivers cannot list what is open, and end none by its id
        except KafkaError as error:
            if error.error is Error.TRANSACTIONAL_ID_NOT_FOUND:  # not used for days, and forgotten
                return False
            raise
    return found[transactional_id].state in _COMMITTED


def _producer(client: Client, transactional_id: str, timeout_ms: int) -> Producer:
    from tagwire.client import Producer

    return Producer(client, transactional_id=transactional_id, transaction_timeout=timeout_ms / 1000, acks="all")
