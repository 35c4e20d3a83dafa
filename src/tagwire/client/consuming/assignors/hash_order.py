"""The order in which Java's HashMap gives its keys.

Where members have equal rights, Kafka's assignors take them as a HashMap gives them, so that who has the one partition
too many follows from the members' ids. Taking them in the same order makes the leader's language make no difference.
Not followed: the order inside a bucket of eight keys and more, which Java keeps as a tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tagwire.partitions import TopicPartition

_SMALLEST_TABLE: Final = 16
_INT: Final = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """Java's String.hashCode, as an unsigned number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (value * 31 + (units[i] << 8 | units[i + 1])) & _INT
    return value


def string_order(text: str) -> bytes:
    """A sort key by which strings come as Java's String.compareTo has them: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def in_hash_order(keys: Iterable[str]) -> list[str]:
    """Keys that were put into a HashMap in this order, in the order in which it gives them."""
    distinct = dict.fromkeys(keys)
    table = _table_for(len(distinct), _SMALLEST_TABLE)
    return sorted(distinct, key=lambda key: _bucket(string_hash(key), table))


def in_computed_order(keys: Iterable[str]) -> list[str]:
    """As `in_hash_order`, of keys that were put there by `computeIfAbsent`: it puts a key before the others of its
    bucket, and enlarges the table one key later."""
    distinct = list(dict.fromkeys(keys))
    distinct.reverse()
    table = _table_for(len(distinct) - 1, _SMALLEST_TABLE)
    return sorted(distinct, key=lambda key: _bucket(string_hash(key), table))


class HashedPartitions:
    """Partitions of one topic in a Java HashSet; asked only which comes first."""

    def __init__(self, topic: str) -> None:
        self._topic_hash = string_hash(topic)
        self._table = _SMALLEST_TABLE
        self._partitions: dict[TopicPartition, None] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: TopicPartition) -> None:
        self._partitions[partition] = None
        self._table = _table_for(len(self._partitions), self._table)

    def remove(self, partition: TopicPartition) -> None:
        del self._partitions[partition]

    def first(self) -> TopicPartition:
        """The one that Java's iterator gives first."""
        return min(self._partitions, key=lambda partition: _bucket(self._hash(partition), self._table))

    def _hash(self, partition: TopicPartition) -> int:
        return (31 * (31 + partition.partition) + self._topic_hash) & _INT


def _table_for(count: int, table: int) -> int:
    while count * 4 > table * 3:
        table *= 2
    return table


def _bucket(value: int, table: int) -> int:
    return (value ^ value >> 16) & (table - 1)
