"""Which partitions have moved from whom to whom, so that of a topic none moves the other way."""

from __future__ import annotations

from tagwire.client.consuming.assignors.hash_order import HashedPartitions
from tagwire.partitions import TopicPartition


class PartitionMovements:
    """The movements of one run. Source: Kafka's AbstractStickyAssignor.PartitionMovements."""

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._between: dict[tuple[str, str, str], HashedPartitions] = {}

    def move(self, partition: TopicPartition, source: str, destination: str) -> None:
        """A partition moves; one that moves back to where it began has not moved."""
        if before := self._moved.pop(partition, None):
            moved = self._between[partition.topic, *before]
            moved.remove(partition)
            if not moved:
                del self._between[partition.topic, *before]
            source = before[0]
        if source != destination:
            self._moved[partition] = source, destination
            pair = partition.topic, source, destination
            self._between.setdefault(pair, HashedPartitions(partition.topic)).add(partition)

    def instead_of(self, partition: TopicPartition, source: str, destination: str) -> TopicPartition:
        """The partition to move: one of the same topic that came the opposite way, so that it goes back, or this."""
        if partition in self._moved:
            source = self._moved[partition][0]
        opposite = self._between.get((partition.topic, destination, source))
        return partition if opposite is None else opposite.first()
