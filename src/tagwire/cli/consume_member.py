"""`tagwire consume --join`: reading as a member of a group, beside the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tagwire.client import Consumer, RebalanceListener, TopicPartition
from tagwire.errors import CommitFailedError

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Client

logger = logging.getLogger(__name__)

Passed = Callable[[Mapping[TopicPartition, int]], None]
"""What is told where each partition is printed up to."""


class _Commits(RebalanceListener):
    """Commits what was printed: after each batch, and once more before partitions go, where that failed."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._due: dict[TopicPartition, int] = {}

    def passed(self, printed: Mapping[TopicPartition, int]) -> None:
        self._due.update(printed)
        try:
            self._consumer.commit(self._due)
        except CommitFailedError as error:  # a rebalance: whoever has a partition then is given these records again
            logger.warning("%s", error)
        else:
            self._due.clear()

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if self._due:
            self.passed({})
        self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._due.pop(partition, None)


@contextmanager
def member_of(
    client: Client,
    topic: str,
    group: str,
    protocol: str | None,
    reset: str,
    options: Mapping[str, Any],
    *,
    commits: bool,
) -> Iterator[tuple[Iterator[pa.RecordBatch], Passed]]:
    """Batches of the partitions that `group` gives us, without end, and what is to be told of those printed.

    Args:
        protocol: "classic" or "consumer"; None is as the client is set up.
        reset: "earliest" or "latest": where a partition begins in which the group has committed nothing.
        options: what else the consumer is made with.
        commits: whether the group's offsets follow what was printed.
    """
    with Consumer(client, group=group, protocol=protocol, offset_reset=reset, auto_commit=False, **options) as consumer:
        committing = _Commits(consumer)
        consumer.subscribe(topic, committing if commits else None)
        yield consumer.batches(), committing.passed if commits else _leave


def _leave(_: Mapping[TopicPartition, int]) -> None:
    """The group stays where it is."""
