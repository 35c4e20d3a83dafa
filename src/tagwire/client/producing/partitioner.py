"""Which partition a record goes to, as Kafka's Java producer decides: by murmur2 of the key, or sticky without one."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from tagwire.client.config import MURMUR2_RANDOM
from tagwire.client.metadata import NO_NODE, TopicMetadata
from tagwire.client.producing.partitioners import HASHINGS, Hashing, Partitioner
from tagwire.errors import EncodeError, Error, KafkaError
from tagwire.kernel import partitioning as kernel
from tagwire.partitions import TopicPartition
from tagwire.records import Record


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
    not batches, gives every partition as much, however slow its leader is, and where batches of some partitions wait
    because their leaders do not keep up, those get less (KIP-794).

    Attributes:
        current: the partition that gets the next record without a key.

    Args:
        partitions: how many there are, or the numbers of those that have a leader.
    """

    def __init__(self, partitions: int | Sequence[int], generator: random.Random | None = None) -> None:
        self._partitions = range(partitions) if isinstance(partitions, int) else partitions
        self._random = generator or random.Random()
        self.current = self._random.choice(self._partitions)
        self._bytes = 0
        self._load: tuple[Mapping[int, int], Collection[int]] = {}, ()

    def update(self, appended_bytes: int, batch_bytes: int) -> None:
        """The current partition got a batch of `appended_bytes`; switches to another one if it had `batch_bytes`."""
        self._bytes += appended_bytes
        if self._bytes >= batch_bytes:
            self.switch()

    def update_load(self, waiting: Mapping[int, int], unavailable: Collection[int] = ()) -> None:
        """Takes how much each partition has to do; for any thread (BuiltInPartitioner.updatePartitionLoadStats).

        Args:
            waiting: {partition: batches that wait to be sent}, none where it is not named. The more, the less likely
                is the partition the next one.
            unavailable: partitions whose leaders have not taken a batch for too long; they are not the next one.
        """
        self._load = waiting, unavailable

    def switch(self) -> None:
        """Switches to another partition, where there is another; by load it may be the same one again."""
        self._bytes = 0
        weighed = self._weighed(*self._load)
        if weighed is not None:
            partitions, bounds = weighed
            self.current = partitions[bisect_right(bounds, self._random.randrange(bounds[-1]))]
        elif len(self._partitions) > 1:
            at = self._partitions.index(self.current)
            step = self._random.randrange(1, len(self._partitions))
            self.current = self._partitions[(at + step) % len(self._partitions)]

    def _weighed(
        self, waiting: Mapping[int, int], unavailable: Collection[int]
    ) -> tuple[Sequence[int], Sequence[int]] | None:
        """The partitions that may be next, and where the share of each ends; None where all have the same."""
        if not (waiting or unavailable) or len(self._partitions) < 2:
            return None
        usable = [partition for partition in self._partitions if partition not in unavailable]
        sizes = [waiting.get(partition, 0) for partition in usable]
        is_even = len(usable) == len(self._partitions) and len(set(sizes)) == 1
        if not usable or is_even:
            return None
        most = max(sizes) + 1
        return usable, list(accumulate(most - size for size in sizes))


class TopicPartitioner:
    """Which partitions the records of a topic go to (Kafka's BuiltInPartitioner).

    Attributes:
        compression, level: of the topic's batches. sticky: which partition gets records without a key.
        asks: whether a function of the user's decides.

    Args:
        batch_bytes: how much goes to one partition before another gets records without a key.
        hashing: what keys mean. function: a partitioner of the user's, which is asked first.
    """

    def __init__(
        self,
        topic: TopicMetadata,
        compression: str,
        batch_bytes: int,
        level: int | None = None,
        hashing: Hashing = HASHINGS[MURMUR2_RANDOM],
        function: Partitioner | None = None,
    ) -> None:
        self.name = topic.name
        self.compression = compression
        self.level = level
        self._batch_bytes = batch_bytes
        self._hashing = hashing
        self._function = function
        self.asks = function is not None
        self._hashes_null = hashing.hashes_null
        self._topic_partitions = [TopicPartition(topic.name, index) for index in range(len(topic.partitions))]
        self._led = _led(topic)
        self.sticky = StickyPartition(self._led or len(self._topic_partitions))

    def __len__(self) -> int:
        return len(self._topic_partitions)

    def is_of(self, topic: TopicMetadata) -> bool:
        """Whether it is as one that was made of this would be: of as many partitions, the same ones with a leader."""
        return len(topic.partitions) == len(self) and _led(topic) == self._led

    @property
    def hashes_by_column(self) -> bool:
        """Whether keys go where the kernel's murmur2 says, and rows without one anywhere."""
        return self._hashing.is_murmur2

    def asked(self, record: Record) -> int | None:
        """What the user's function says of a record; None is any partition.

        Raises:
            EncodeError: it gives no number. KafkaError: one that the topic has not. Whatever it raises.
        """
        assert self._function is not None
        found = self._function(self.name, record, len(self))
        if found is None:
            return None
        if not isinstance(found, int) or isinstance(found, bool):
            raise EncodeError(
                f"the partitioner gave {type(found).__name__} for a record of {self.name}: it gives a partition's "
                "number, or None for any"
            )
        return self.checked(found).partition

    def partition_of_key(self, key: bytes | None) -> int | None:
        """The partition that a key means; None is any."""
        return self._hashing.partition_of(key, len(self._topic_partitions))

    def partition_for(self, key: bytes | None, partition: int | None) -> TopicPartition:
        """Where a record goes: to `partition`, if it is given. Raises KafkaError for one that does not exist."""
        if partition is not None:
            return self.checked(partition)
        if key is None and not self._hashes_null:
            return self._topic_partitions[self.sticky.current]
        found = self._hashing.partition_of(key, len(self._topic_partitions))
        return self._topic_partitions[self.sticky.current if found is None else found]

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


def _led(topic: TopicMetadata) -> list[int]:
    return [index for index, partition in topic.partitions.items() if partition.leader != NO_NODE]
