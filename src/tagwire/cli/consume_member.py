"""`tagwire consume --join`: reading as a member of a group, beside the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tagwire.client import Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from tagwire.errors import CommitFailedError

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Client

logger = logging.getLogger(__name__)

Passed = Callable[[Mapping[TopicPartition, int] | None], None]
"""What is told where each partition is printed up to; None for all that was given out."""

_AT_REST_S = 1.0
"""Seconds without records after which what was passed without any is committed."""


class _Commits(RebalanceListener):
    """Commits what was printed: after each batch, and once more before partitions go, where that failed."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._due: dict[TopicPartition, int | OffsetAndMetadata] = {}
        self._committed: dict[TopicPartition, int | OffsetAndMetadata] = {}

    def passed(self, printed: Mapping[TopicPartition, int] | None) -> None:
        # The end of a transaction is passed, too: it would count as lag.
        self._due.update(self._consumer.positions() if printed is None else printed)
        self._commit()

    def _commit(self) -> None:
        due = {at: offset for at, offset in self._due.items() if self._committed.get(at) != offset}
        if not due:
            return
        try:
            self._consumer.commit(due)
        except CommitFailedError as error:  # a rebalance: whoever has a partition then is given these records again
            logger.warning("%s", error)
        else:
            self._committed.update(due)
            self._due.clear()

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._commit()
        self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._due.pop(partition, None)
            self._committed.pop(partition, None)


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
        passed = committing.passed if commits else _leave
        yield _batches(consumer, passed), passed


def _batches(consumer: Consumer, passed: Passed) -> Iterator[pa.RecordBatch]:
    """Batches without end; while there are none, `passed` is told of what holds no records for us."""
    while True:
        batch = consumer.poll_batch(_AT_REST_S)
        if batch is None:
            passed(None)
        else:
            yield batch


def _leave(_: Mapping[TopicPartition, int] | None) -> None:
    """The group stays where it is."""
