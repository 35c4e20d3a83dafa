"""What an attempt of a task does in an exactly-once query: writes in a transaction of its own, and leaves it open.

A worker keeps transactional ids for each cluster and query, and uses one again only when a driver has said that the
micro-batch it served is done. Each use begins with InitProducerId, so that id, producer id and epoch name exactly one
transaction, whoever else may still believe to have the id.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagwire.errors import TransactionStateError
from tagwire.spark.sink.decisions import Decision, TaskTransaction
from tagwire.spark.sink.ids import new_task_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from tagwire.client import Producer
    from tagwire.spark.sink.driver import Prepared

_PoolKey = tuple[int, tuple[tuple[str, str], ...], str]


@dataclass
class _Held:
    """An id of this worker, and the micro-batch it serves."""

    transactional_id: str
    query_id: str
    batch_id: int

    def is_free(self, done: Decision | None) -> bool:
        return done is not None and done.query_id == self.query_id and done.batch_id >= self.batch_id


_pools: dict[_PoolKey, list[_Held]] = {}


def write_transaction(
    properties: Mapping[str, str],
    own_id: str,
    prepared: Prepared,
    batch: tuple[str, int],
    send: Callable[[Producer], int],
) -> TaskTransaction:
    """Writes what `send` sends in a transaction of its own, which stays open.

    Args:
        properties: of the client.
        own_id: the query's name.
        prepared: as the driver handed it over.
        batch: Spark's query id and the micro-batch.
        send: sends, waits until all is acknowledged, and tells the number of rows.

    Raises:
        TagwireError: something was not acknowledged, or the producer is no longer the one that began: the attempt has
            failed, and what it has written will be aborted.
    """
    with _identified(properties, own_id, prepared.decided, batch) as transactional_id:
        producer = _producer(properties, transactional_id, prepared.timeout_ms)
        try:
            producer.init_transactions()
            begun = producer.identity
            producer.begin_transaction()
            rows = send(producer)
            now = producer.identity
            if (now.producer_id, now.epoch) != (begun.producer_id, begun.epoch):
                raise TransactionStateError(
                    f"{transactional_id}: producer {begun.producer_id} at epoch {begun.epoch} has become "
                    f"{now.producer_id} at {now.epoch}; what it has written is not one transaction"
                )
            return TaskTransaction(transactional_id, begun.producer_id, begun.epoch, begun.transactions, rows)
        finally:
            producer.close(0, abort=False)


@contextmanager
def _identified(
    properties: Mapping[str, str], own_id: str, done: Decision | None, batch: tuple[str, int]
) -> Iterator[str]:
    """An id that no other attempt uses: one whose micro-batch is done, or a new one."""
    pool = _pools.setdefault((os.getpid(), tuple(sorted(properties.items())), own_id), [])
    held = next((one for one in pool if one.is_free(done)), None)
    if held is None:
        held = _Held(new_task_id(own_id), *batch)
        pool.append(held)
    held.query_id, held.batch_id = batch
    yield held.transactional_id


def _producer(properties: Mapping[str, str], transactional_id: str, timeout_ms: int) -> Producer:
    from tagwire.client import Client, Producer

    return Producer(
        Client.from_properties(properties),
        transactional_id=transactional_id,
        transaction_timeout=timeout_ms / 1000,
        acks="all",
    )
