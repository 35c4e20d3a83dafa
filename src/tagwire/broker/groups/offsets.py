"""The offsets a group has committed, and those it would commit with transactions that are still open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on in a partition.

    Attributes:
        offset: the next record to read.
        leader_epoch: the leader epoch of the record before it; -1 for unknown.
        metadata: whatever the client noted.
        committed_ms: when it was committed.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


class GroupOffsets:
    """A group's offsets. Iterating gives (partition, offset) of what is committed."""

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self._pending: dict[int, dict[TopicPartition, CommittedOffset]] = {}

    def __bool__(self) -> bool:
        return bool(self._committed or self._pending)

    def __iter__(self) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        return iter(sorted(self._committed.items()))

    def get(self, partition: TopicPartition) -> CommittedOffset | None:
        return self._committed.get(partition)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets that are stored."""
        self._committed.update(offsets)

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget offsets whose deletion is stored, those in open transactions too."""
        for partition in list(partitions):
            self._committed.pop(partition, None)
            for pending in self._pending.values():
                pending.pop(partition, None)

    def prepare(self, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets that are stored as part of a producer's open transaction."""
        self._pending.setdefault(producer_id, {}).update(offsets)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit a producer's prepared offsets, or forget them."""
        offsets = self._pending.pop(producer_id, {})
        if committed:
            self._committed.update(offsets)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether an open transaction would commit an offset of this partition."""
        return any(partition in pending for pending in self._pending.values())

    def expired(self, before_ms: int) -> list[TopicPartition]:
        """The partitions whose offsets were committed before a time."""
        return [partition for partition, offset in self._committed.items() if offset.committed_ms < before_ms]
