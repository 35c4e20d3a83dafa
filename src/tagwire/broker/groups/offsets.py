"""The committed offsets of a group, and those pending in open transactions.

Of several offsets of a partition that count the one that was written last holds, as in Kafka: what a transaction has
written takes the place of no later commit when it ends. A restart, which may find one of them alone, gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tagwire.partitions import TopicPartition

OFFSET_BYTES = 500
"""About what an offset takes in memory beside its metadata."""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset of a group in a partition.

    Attributes:
        offset: the next record to read.
        leader_epoch: the leader epoch of the record before it; -1 for unknown.
        metadata: whatever the client noted.
        committed_ms: when it was committed.
        expires_ms: when it is too old, where its client said so, as one could before version 5 of OffsetCommit; None
            for what holds for all.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None = None

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return OFFSET_BYTES + len(self.metadata)


class GroupOffsets:
    """A group's offsets. Iterating gives (partition, offset) of what is committed.

    Attributes:
        held_bytes: about how much memory they take.
    """

    def __init__(self) -> None:
        self.held_bytes = 0
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._pending: dict[int, dict[TopicPartition, OffsetAndMetadata]] = {}
        # Of what is pending and may still count: the number of its writing.
        self._turns: dict[int, dict[TopicPartition, int]] = {}
        self._turn = 0

    def __bool__(self) -> bool:
        return bool(self._committed or self._pending)

    def __iter__(self) -> Iterator[tuple[TopicPartition, OffsetAndMetadata]]:
        return iter(sorted(self._committed.items()))

    def get(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        return self._committed.get(partition)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that an offset is committed of, or would be by an open transaction."""
        return sorted({*self._committed, *(partition for pending in self._pending.values() for partition in pending)})

    def growth_of(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> int:
        """How many bytes more they would hold if `offsets` were committed."""
        before = [self._committed[partition].held_bytes for partition in offsets if partition in self._committed]
        return sum(offset.held_bytes for offset in offsets.values()) - sum(before)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note offsets that are stored."""
        self._put(self._committed, offsets)
        self._overtake(dict.fromkeys(offsets, self._turn + 1))

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget offsets whose deletion is stored, those in open transactions too."""
        gone = list(partitions)
        self._drop(self._committed, gone)
        for producer_id, pending in list(self._pending.items()):
            self._drop(pending, gone)
            for partition in gone:
                self._turns[producer_id].pop(partition, None)
            if not pending:
                del self._pending[producer_id], self._turns[producer_id]

    def prepare(self, producer_id: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note offsets that are stored as part of a producer's open transaction."""
        self._put(self._pending.setdefault(producer_id, {}), offsets)
        self._turn += 1
        self._turns.setdefault(producer_id, {}).update(dict.fromkeys(offsets, self._turn))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit a producer's prepared offsets, but for those of which later ones count already, or forget them."""
        offsets, turns = self._pending.pop(producer_id, {}), self._turns.pop(producer_id, {})
        self._drop(dict(offsets), offsets)
        if committed:
            self._put(self._committed, {partition: offsets[partition] for partition in turns})
            self._overtake(turns)

    def _overtake(self, turns: Mapping[TopicPartition, int]) -> None:
        """What was written before these will not count when its transaction ends."""
        for pending in self._turns.values():
            for partition, turn in turns.items():
                if pending.get(partition, turn) < turn:
                    del pending[partition]

    def _put(
        self,
        into: dict[TopicPartition, OffsetAndMetadata],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        self._drop(into, offsets)
        into.update(offsets)
        self.held_bytes += sum(offset.held_bytes for offset in offsets.values())

    def _drop(self, of: dict[TopicPartition, OffsetAndMetadata], partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            offset = of.pop(partition, None)
            self.held_bytes -= offset.held_bytes if offset is not None else 0

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether an open transaction would commit an offset of this partition."""
        return any(partition in pending for pending in self._pending.values())

    def expired(self, now_ms: int, before_ms: int) -> list[TopicPartition]:
        """The partitions whose offsets were committed before a time, or are too old now as their clients have it; but
        for those that an open transaction would commit: to forget these would forget its offsets, too."""
        old = [
            partition
            for partition, offset in self._committed.items()
            if (offset.committed_ms < before_ms if offset.expires_ms is None else offset.expires_ms <= now_ms)
        ]
        return [partition for partition in old if not self.is_unstable(partition)]
