"""Sticky: evenly, and as it was before as far as that goes; members give up everything before they join."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tagwire.client.consuming.assignors.assignor import RebalanceProtocol, TopicRacks
from tagwire.client.consuming.assignors.hash_order import in_computed_order
from tagwire.client.consuming.assignors.sticky_assignment import Previous, assign_sticky
from tagwire.client.consuming.consumer_protocol import NO_GENERATION, Assignment, Subscription
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.errors import DecodeError
from tagwire.partitions import TopicPartition

_INT: Final = 4


class StickyAssignor:
    """Members tell what they had in their user data: `previous_assignment`, an array of topics with their partitions,
    and from version 1 on `generation`; no version is written. User data that cannot be read is taken for none.

    Source: Kafka's StickyAssignor, KIP-54, KIP-341.
    """

    name = "sticky"
    protocols = frozenset((RebalanceProtocol.EAGER,))

    def __init__(self) -> None:
        self._previous: Previous | None = None

    def subscription_user_data(
        self, topics: Collection[str], owned_partitions: Collection[TopicPartition]
    ) -> bytes | None:
        """What this member was assigned last; None before it was."""
        return None if self._previous is None else _encoded(self._previous)

    def assign(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        previous = {member: _previous(subscription.user_data) for member, subscription in subscriptions.items()}
        assigned = assign_sticky(topics, subscriptions, previous).partitions
        return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Remembers it for the next rebalance."""
        self._previous = Previous(assignment.partitions, metadata.generation)


def _encoded(previous: Previous) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in previous.partitions:
        topics.setdefault(topic, []).append(partition)
    parts = [len(topics).to_bytes(_INT, "big")]
    for topic in in_computed_order(topics):
        name = topic.encode()
        parts += (len(name).to_bytes(2, "big"), name, len(topics[topic]).to_bytes(_INT, "big"))
        parts += (partition.to_bytes(_INT, "big", signed=True) for partition in topics[topic])
    generation = NO_GENERATION if previous.generation is None else previous.generation
    return b"".join((*parts, generation.to_bytes(_INT, "big", signed=True)))


def _previous(user_data: bytes | None) -> Previous:
    if not user_data:
        return Previous()
    reader = _Reader(user_data)
    try:
        partitions = [
            TopicPartition(topic, reader.number(_INT))
            for _ in range(reader.count(2 + _INT))
            for topic in [reader.text()]
            for _ in range(reader.count(_INT))
        ]
    except DecodeError:
        return Previous((), NO_GENERATION)
    try:
        return Previous(tuple(partitions), reader.number(_INT))
    except DecodeError:
        return Previous(tuple(partitions), None)


class _Reader:
    """Reads user data from its start."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def count(self, smallest: int) -> int:
        """How many elements of at least so many bytes follow."""
        count = self.number(_INT)
        if not 0 <= count * smallest <= len(self._data) - self._at:
            raise DecodeError(f"{count} elements cannot follow", offset=self._at)
        return count

    def text(self) -> str:
        return self._take(self.number(2)).decode(errors="replace")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if not self._at <= end <= len(self._data):
            raise DecodeError(f"{size} bytes cannot follow", offset=self._at)
        self._at, start = end, self._at
        return self._data[start:end]
