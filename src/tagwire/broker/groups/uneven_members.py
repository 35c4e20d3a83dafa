"""Spreading partitions over members that are subscribed to different topics.

What nobody has goes to whoever has the least and is subscribed; then, topic by topic, partitions move from who has the
most to who has the least, until no topic changes any more. With subscriptions that overlap, but are not the same, that
comes near an even spread and need not reach it. Source: Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final
from uuid import UUID

MOST_ROUNDS: Final = 16
"""Rounds over all topics after which an uneven spread is left as it is."""


def spread_over_uneven_members(
    topics: Mapping[UUID, int], subscribed: Mapping[str, Set[UUID]], target: dict[str, dict[UUID, set[int]]]
) -> None:
    """Completes and evens what members are to have.

    Args:
        topics: how many partitions each has.
        subscribed: topics by member id, in the order in which members are served.
        target: what each has of these; changed.
    """
    _Spreading(topics, subscribed, target).run()


class _Spreading:
    def __init__(
        self, topics: Mapping[UUID, int], subscribed: Mapping[str, Set[UUID]], target: dict[str, dict[UUID, set[int]]]
    ) -> None:
        self._topics, self._target = topics, target
        self._members = list(subscribed)
        self._subscribers: dict[UUID, list[int]] = {}
        for index, wanted in enumerate(subscribed.values()):
            for topic in wanted & topics.keys():
                self._subscribers.setdefault(topic, []).append(index)
        self._owners: dict[UUID, list[int]] = {topic: [-1] * topics[topic] for topic in self._subscribers}
        self._sizes = [sum(map(len, target[member].values())) for member in self._members]
        for index, member in enumerate(self._members):
            for topic, partitions in target[member].items():
                for partition in partitions:
                    self._owners[topic][partition] = index

    def run(self) -> None:
        for topic in self._in_order(self._subscribers):
            unassigned = [partition for partition, owner in enumerate(self._owners[topic]) if owner < 0]
            ranges = _LoadRanges(self._subscribers[topic], self._sizes)
            for partition in unassigned:
                self._assign(topic, partition, ranges.next_least_loaded())
        self._balance(self._in_order(topic for topic, members in self._subscribers.items() if len(members) > 1))

    def _in_order(self, topics: Iterable[UUID]) -> list[UUID]:
        """Topics of which each member has many partitions first, as they leave the least choice."""

        def order(topic: UUID) -> tuple[float, int, int, int]:
            count, half = len(self._subscribers[topic]), 1 << 63
            high, low = topic.int >> 64, topic.int & (1 << 64) - 1
            return -self._topics[topic] / count, count, high ^ half, low ^ half  # the ids' halves are signed in Java

        return sorted(topics, key=order)

    def _balance(self, topics: list[UUID]) -> None:
        last_changed: UUID | None = None
        for _ in range(MOST_ROUNDS):
            for topic in topics:
                if topic == last_changed:
                    return  # a whole round since then has changed nothing
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: UUID) -> bool:
        """Moves partitions of one topic; whether one has moved."""
        subscribers, owners = self._subscribers[topic], self._owners[topic]
        sizes = [self._sizes[member] for member in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        ranges = _LoadRanges(subscribers, self._sizes)
        to_give: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            to_give.setdefault(owner, []).append(partition)
        changed = False
        while (giver := ranges.next_most_loaded(to_give)) is not None:
            partition, taker = to_give[giver].pop(), ranges.next_least_loaded()
            if ranges.are_balanced:
                break
            self._assign(topic, partition, taker)
            changed = True
        return changed

    def _assign(self, topic: UUID, partition: int, member: int) -> None:
        owner = self._owners[topic][partition]
        if owner >= 0:
            self._target[self._members[owner]][topic].remove(partition)
            self._sizes[owner] -= 1
        self._target[self._members[member]].setdefault(topic, set()).add(partition)
        self._owners[topic][partition] = member
        self._sizes[member] += 1


class _LoadRanges:
    """Members by how many partitions they have, of which those with the least and those with the most are two ranges.

    A range is served member by member; when all of it were served, all of it has one more, or one less, and takes in
    the neighbours that have as many. Source: Kafka's MemberAssignmentBalancer.

    Args:
        members: of one topic, by index.
        sizes: how many partitions each member has, by index; changed by the caller as the ranges are served.
    """

    def __init__(self, members: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda member: (sizes[member], member))
        self._least_end = self._next_least = 0
        self._least_size = sizes[self._sorted[0]] - 1
        self._most_start = self._most_end = len(members)
        self._most_size = sizes[self._sorted[-1]] + 1
        self._next_most = len(members) - 1

    @property
    def are_balanced(self) -> bool:
        """Whether what is moved between the ranges makes nothing more even."""
        return self._most_size - self._least_size <= 1

    def next_least_loaded(self) -> int:
        """The member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_size += 1
            while self._least_end < len(self._sorted) and self._size_at(self._least_end) == self._least_size:
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most_loaded(self, to_give: Mapping[int, list[int]]) -> int | None:
        """The member that gives the next partition; None where nobody has one that it could give."""
        while True:
            if self._next_most < self._most_start:
                if self._most_end <= self._most_start > 0:
                    self._most_size = self._size_at(self._most_start - 1)
                else:
                    self._most_size -= 1
                while self._most_start > 0 and self._size_at(self._most_start - 1) == self._most_size:
                    self._most_start -= 1
                self._next_most = self._most_end - 1
            if self._next_most < 0:
                return None
            member = self._sorted[self._next_most]
            if to_give.get(member):
                self._next_most -= 1
                return member
            self._most_end -= 1
            self._sorted[self._next_most] = self._sorted[self._most_end]
            self._sorted[self._most_end] = member
            self._next_most -= 1

    def _size_at(self, place: int) -> int:
        return self._sizes[self._sorted[place]]
