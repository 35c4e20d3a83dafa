"""Hanging transactions: ones that are open in a partition, and of which their coordinator knows nothing (KIP-664).

Where the disk is not waited for, a loss of power takes the end of each log for itself: a coordinator may have forgotten
what a partition holds, or remember as over what has lost its marker there. Nobody would end that, and readers of
committed records would wait before it for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tagwire.broker.partition import Partition
from tagwire.broker.storage.producer_state import Producer
from tagwire.broker.transactions.transaction import State, Transaction
from tagwire.errors import StorageError
from tagwire.partitions import TopicPartition


@dataclass(slots=True)
class Hanging:
    """What partitions know of a producer, and its coordinator does not.

    Attributes:
        epoch: the newest of it.
        open: what it holds open, each partition with what that knows.
    """

    epoch: int = -1
    open: dict[TopicPartition, Producer] = field(default_factory=dict)


def hanging_transactions(partitions: Iterable[Partition], owners: dict[int, Transaction]) -> dict[int, Hanging]:
    """By producer id what hangs, and who has an epoch that its coordinator has not given.

    Args:
        partitions: all that there are; one that is offline tells nothing.
        owners: where transactional ids stand, by their producer ids.
    """
    found: dict[int, Hanging] = {}
    for partition in partitions:
        try:
            producers = partition.log.known_producers()
        except StorageError:
            continue
        where = TopicPartition(partition.topic, partition.index)
        for producer in producers.values():
            owner = owners.get(producer.producer_id)
            hangs = producer.transaction_start is not None and not _is_known(owner, producer, where)
            if hangs or (owner is not None and producer.epoch > owner.epoch):
                hanging = found.setdefault(producer.producer_id, Hanging())
                hanging.epoch = max(hanging.epoch, producer.epoch)
                if hangs:
                    hanging.open[where] = producer
    return found


def _is_known(owner: Transaction | None, producer: Producer, where: TopicPartition) -> bool:
    """Whether the coordinator ends, in its time, what a producer has open."""
    if owner is None or where not in owner.partitions:
        return False
    # An abort may be, and any end of a transaction of version 2 is, in the name of the next epoch; what has that in
    # version 2 was begun later. All else that an older one has left is not of this transaction.
    if owner.is_ending and owner.transaction_version > 1:
        return producer.epoch < owner.epoch
    return producer.epoch == owner.epoch or (owner.state is State.PREPARE_ABORT and producer.epoch < owner.epoch)
