"""Which partition a record goes to, as Kafka's Java producer decides: by murmur2 of the key, or sticky without one."""

from __future__ import annotations

import random
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash that Java producers partition by, as an unsigned number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        k = (k ^ (k >> 24)) * _MULTIPLIER & _MASK
        h = (h * _MULTIPLIER & _MASK) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ (h >> 13)) * _MULTIPLIER & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition, 0 to `partitions` - 1, that every Java producer gives to `key`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartition:
    """Where records without a key go: one partition until its batch is sent, then another.

    Filling one batch at a time makes fewer and larger batches than a partition per record (KIP-480).
    """

    def __init__(self, partitions: int, generator: random.Random | None = None) -> None:
        self._partitions = partitions
        self._random = generator or random.Random()
        self.current = self._random.randrange(partitions)

    def move_on(self) -> None:
        """Takes another partition, where there is another."""
        if self._partitions > 1:
            step = self._random.randrange(1, self._partitions)
            self.current = (self.current + step) % self._partitions
