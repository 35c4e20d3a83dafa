"""Which partition a record goes to, as Kafka's Java producer decides: by murmur2 of the key, or sticky without one."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tagwire.client.metadata import NO_NODE, TopicMetadata
from tagwire.errors import EncodeError, Error, KafkaError
from tagwire.kernel import partitioning as kernel
from tagwire.partitions import TopicPartition


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash that Java producers partition by, as an unsigned number. Raises EncodeError for what is
    not bytes."""
    if not isinstance(data, bytes):
        raise _not_bytes(data)
    return kernel.murmur2(data)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition, 0 to `partitions` - 1, that every Java producer gives to `key`. Raises EncodeError for a key that
    is not bytes."""
    if not isinstance(key, bytes):
        raise _not_bytes(key)
    return (kernel.murmur2(key) & 0x7FFFFFFF) % partitions


def _not_bytes(given: object) -> EncodeError:
    return EncodeError(f"what is hashed must be bytes, not {type(given).__name__}")


class StickyPartition:
    """Where records without a key go: one partition until a batch's worth of bytes went there, then another.

    Filling one batch at a time makes fewer and larger batches than a partition per record (KIP-480); counting bytes,
    not batches, gives every partition as much, however slow its leader is (KIP-794).

    Args:
        partitions: how many there are, or the numbers of those that have a leader.
    """

    def __init__(self, partitions: int | Sequence[int], generator: random.Random | None = None) -> None:
        self._partitions = range(partitions) if isinstance(partitions, int) else partitions
        self._random = generator or random.Random()
        self._index = self._random.randrange(len(self._partitions))
        self._bytes = 0

    @property
    def current(self) -> int:
        """The partition that gets the next record without a key."""
        return self._partitions[self._index]

    def update(self, appended_bytes: int, batch_bytes: int) -> None:
        """The current partition got a batch of `appended_bytes`; switches to another one if it had `batch_bytes`."""
        self._bytes += appended_bytes
        if self._bytes >= batch_bytes:
            self.switch()

    def switch(self) -> None:
        """Switches to another partition, where there is another."""
        self._bytes = 0
        if len(self._partitions) > 1:
            step = self._random.randrange(1, len(self._partitions))
            self._index = (self._index + step) % len(self._partitions)


class TopicPartitioner:
    """Which partitions the records of a topic go to (Kafka's BuiltInPartitioner).

    Attributes:
        compression: of the topic's batches. sticky: which partition gets records without a key.

    Args:
        batch_bytes: how much goes to one partition before another gets records without a key.
    """

    def __init__(self, topic: TopicMetadata, compression: str, batch_bytes: int) -> None:
        self.name = topic.name
        self.compression = compression
        self._batch_bytes = batch_bytes
        self._topic_partitions = [TopicPartition(topic.name, index) for index in range(len(topic.partitions))]
        led = [index for index, partition in topic.partitions.items() if partition.leader != NO_NODE]
        self.sticky = StickyPartition(led or len(self._topic_partitions))

    def __len__(self) -> int:
        return len(self._topic_partitions)

    def partition_for(self, key: bytes | None, partition: int | None) -> TopicPartition:
        """Where a record goes: to `partition`, if it is given. Raises KafkaError for one that does not exist."""
        if partition is not None:
            return self.checked(partition)
        if key is None:
            return self._topic_partitions[self.sticky.current]
        return self._topic_partitions[partition_of(key, len(self._topic_partitions))]

    def checked(self, partition: int) -> TopicPartition:
        """The partition of this number. Raises KafkaError."""
        if 0 <= partition < len(self._topic_partitions):
            return self._topic_partitions[partition]
        raise KafkaError(
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            f"partition {self.name}-{partition}: topic {self.name!r} has {len(self._topic_partitions)} partitions",
        )

    def batch_closed(self, partition: int, size: int) -> None:
        """A batch of `size` bytes is closed, and gets no more records."""
        if partition == self.sticky.current:
            self.sticky.update(size, self._batch_bytes)
