"""How records are partitioned: by the names that librdkafka and Java give it, or by a function of the user's.

| name | keys | without a key |
|------|------|---------------|
| murmur2_random | murmur2, as Java's, aiokafka's and kafka-python's producers | sticky |
| murmur2 | murmur2 | as an empty key |
| consistent_random | CRC-32, as librdkafka's producers unless told otherwise; an empty key is none | sticky |
| consistent | CRC-32 | as an empty key |
| fnv1a_random | FNV-1a, as Sarama's | sticky |
| fnv1a | FNV-1a | as an empty key |
| random | sticky | sticky |
| round_robin | one partition after the other, whatever the key (RoundRobinPartitioner of Kafka) | the same |

Sticky is KIP-794's, where librdkafka's "random" partitioners have a timer of their own (sticky.partitioning.linger.ms).

The names are those that librdkafka's property `partitioner` takes.

Source: KIP-794; Kafka's BuiltInPartitioner, RoundRobinPartitioner.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

from tagwire.client import arguments
from tagwire.client.config import MURMUR2_RANDOM, PARTITIONERS, ROUND_ROBIN
from tagwire.client.property_values import wrong
from tagwire.kernel.partitioning import murmur2
from tagwire.records import Record

Partitioner = Callable[[str, Record, int], int | None]
"""A partitioner of the user's: which partition of a topic gets a record, of as many as there are; None is any. It is
called in the thread, or the task, that sends."""

_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def _fnv1a(key: bytes) -> int:
    """The 32-bit FNV-1a hash without its sign, as Sarama and librdkafka take it."""
    found = _FNV_OFFSET
    for byte in key:
        found = ((found ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return 0x100000000 - found if found & 0x80000000 else found


def _murmur2(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


class Hashing(NamedTuple):
    """A partitioner by name.

    Attributes:
        hash: of a key; None where keys do not count.
        hashes_null, hashes_empty: whether a record without a key, or with an empty one, has a partition of its own.
    """

    hash: Callable[[bytes], int] | None
    hashes_null: bool = False
    hashes_empty: bool = True

    def partition_of(self, key: bytes | None, partitions: int) -> int | None:
        """The partition of a key; None is any."""
        if self.hash is None or (key is None and not self.hashes_null) or (not key and not self.hashes_empty):
            return None
        return self.hash(key or b"") % partitions

    @property
    def is_murmur2(self) -> bool:
        """Whether the kernel hashes a column of keys."""
        return self.hash is _murmur2 and not self.hashes_null


HASHINGS: Final = {
    MURMUR2_RANDOM: Hashing(_murmur2),
    "murmur2": Hashing(_murmur2, hashes_null=True),
    "consistent_random": Hashing(zlib.crc32, hashes_empty=False),
    "consistent": Hashing(zlib.crc32, hashes_null=True),
    "fnv1a_random": Hashing(_fnv1a),
    "fnv1a": Hashing(_fnv1a, hashes_null=True),
    "random": Hashing(None),
    ROUND_ROBIN: Hashing(None),
}


def check_partitioner(given: object) -> None:
    """Raises ConfigError for what is neither a partitioner's name nor a function."""
    if not callable(given) and given not in PARTITIONERS:
        allowed = f"{', '.join(PARTITIONERS)}, or a function of a topic, a record and how many partitions there are"
        raise wrong("partitioner", arguments.shown(given), allowed)


def deciding(partitioner: str | Partitioner, *, ignore_keys: bool) -> tuple[Hashing, Partitioner | None]:
    """What keys mean, and the function that is asked before.

    Args:
        ignore_keys: keys mean nothing (partitioner.ignore.keys of Kafka).
    """
    if callable(partitioner):
        return HASHINGS["random" if ignore_keys else MURMUR2_RANDOM], partitioner
    hashing = HASHINGS["random" if ignore_keys else partitioner]
    return hashing, _round_robin() if partitioner == ROUND_ROBIN else None


def _round_robin() -> Partitioner:
    """A function that gives one partition after the other, in each topic."""
    counts: dict[str, count[int]] = {}

    def next_partition(topic: str, record: Record, partitions: int) -> int:
        return next(counts.setdefault(topic, count())) % partitions

    return next_partition
