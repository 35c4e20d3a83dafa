"""What a consumer wants, what is assigned to it, and how far each assigned partition is. Kafka's SubscriptionState."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.fetch_positions import UNKNOWN, FetchPosition, GivenPosition
from tagwire.errors import ConsumerStateError
from tagwire.partitions import TopicPartition


class SubscriptionType(Enum):
    """How a consumer came by its partitions (Kafka's SubscriptionState.SubscriptionType)."""

    NONE = "nothing is subscribed to or assigned"
    AUTO_TOPICS = "topics are subscribed to"
    AUTO_PATTERN = "a pattern is subscribed to"
    USER_ASSIGNED = "partitions are assigned by hand"


class AssignedPartition:
    """A partition that the consumer has.

    Attributes:
        fetch_position: how far it is fetched, and given out.
        consumed: up to where the application is done with it: what it was given before its last `poll`. None while it
            is not known where to begin.
        stored: what the application has said that is to be committed next, where it says so itself; None before.
        committed: the offset that this consumer committed last, or found committed; None before, and after a seek.
        sought: another object each time that the application has it go on elsewhere.
        is_located: whether it is known where to begin, or that the end or the beginning is to be looked up.
        is_announced: whether the listener has heard of it; it is not fetched before.
        is_fetched: whether the fetcher has it.
        is_released: whether it is about to be given up: it is not fetched any more.
        is_lost: whether it may be another consumer's already: nothing of it is committed any more.
    """

    __slots__ = (
        "committed",
        "consumed",
        "fetch_position",
        "is_announced",
        "is_fetched",
        "is_located",
        "is_lost",
        "is_released",
        "sought",
        "stored",
    )

    def __init__(self, partition: TopicPartition, *, is_announced: bool = True) -> None:
        self.fetch_position = FetchPosition(partition)
        self.consumed: GivenPosition | None = None
        self.stored: OffsetAndMetadata | None = None
        self.committed: int | None = None
        self.sought = object()
        self.is_announced = is_announced
        self.is_located = self.is_fetched = self.is_released = self.is_lost = False

    @property
    def partition(self) -> TopicPartition:
        """Which one."""
        return self.fetch_position.partition

    def has_committed(self, consumed: int) -> bool:
        """Whether that offset need not be committed: it is, or the application has committed more of what it was
        given."""
        return self.committed is not None and (
            self.committed == consumed or consumed < self.committed <= self.fetch_position.given.offset
        )

    @property
    def needs_position(self) -> bool:
        """Whether it has to be found out where to begin."""
        return self.is_announced and not self.is_located and not self.is_released

    @property
    def waits_for_fetcher(self) -> bool:
        """Whether it is to be fetched, and the fetcher does not have it yet."""
        return self.is_announced and self.is_located and not self.is_released and not self.is_fetched

    def begin_at(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Goes on from there, whatever was given out before."""
        self.fetch_position.seek(offset, leader_epoch)
        self.consumed = GivenPosition(offset, leader_epoch)
        self.is_located = True

    def seek(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """`begin_at`, as the application wants it: what was committed before says nothing of what follows."""
        self.begin_at(offset, leader_epoch)
        self.committed, self.sought = None, object()

    def note_committed(self, offset: int, sought: object) -> None:
        """Takes that an offset is committed, unless `seek` was called since: `sought` is of when that was asked for."""
        if sought is self.sought:
            self.committed = offset


class SubscriptionState:
    """Subscription and assignment. It is changed by one thread alone, the core's; others may look at it.

    Attributes:
        kind: how partitions are come by. topics, pattern: what is subscribed to.
        assigned: what the consumer has. Every change makes a new dict, so that who looks at it may keep it.
    """

    def __init__(self) -> None:
        self.kind = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: str | None = None
        self.assigned: Mapping[TopicPartition, AssignedPartition] = {}

    @property
    def is_any(self) -> bool:
        """Whether anything is wanted."""
        return self.kind is not SubscriptionType.NONE

    @property
    def is_member(self) -> bool:
        """Whether partitions come from the group."""
        return self.kind in (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN)

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Takes a subscription in the place of the one before. Raises ConsumerStateError where partitions are assigned
        by hand, or the other kind of subscription is in force."""
        self._become(SubscriptionType.AUTO_TOPICS if pattern is None else SubscriptionType.AUTO_PATTERN)
        self.topics, self.pattern = topics, pattern

    def assign_by_hand(self, partitions: Iterable[TopicPartition]) -> None:
        """Takes these partitions in the place of those before; what is known of those that stay is kept. Raises
        ConsumerStateError where there is a subscription."""
        self._become(SubscriptionType.USER_ASSIGNED)
        self.assigned = {
            partition: self.assigned.get(partition) or AssignedPartition(partition) for partition in partitions
        }

    def unsubscribe(self) -> None:
        """Forgets everything."""
        self.kind, self.topics, self.pattern, self.assigned = SubscriptionType.NONE, frozenset(), None, {}

    def add(self, partitions: Iterable[TopicPartition], *, is_announced: bool) -> None:
        """Takes partitions that the group has assigned."""
        added = {
            partition: AssignedPartition(partition, is_announced=is_announced)
            for partition in sorted(partitions)
            if partition not in self.assigned
        }
        self.assigned = {**self.assigned, **added}

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Forgets partitions."""
        gone = set(partitions)
        self.assigned = {partition: one for partition, one in self.assigned.items() if partition not in gone}

    def stored(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the application has stored and is not committed. Before it is known where a partition begins nothing of
        it counts: it would be of records that were given when it was assigned before."""
        return {
            partition: one.stored
            for partition, one in self.assigned.items()
            if one.stored is not None
            and one.fetch_position.given.offset != UNKNOWN
            and not one.is_lost
            and not one.has_committed(one.stored.offset)
        }

    def require(self, partition: TopicPartition) -> AssignedPartition:
        """What is known of an assigned partition. Raises KeyError for one that is not assigned."""
        found = self.assigned.get(partition)
        if found is None:
            raise KeyError(f"partition {partition} is not assigned to this consumer")
        return found

    def require_kind(self, kind: SubscriptionType) -> None:
        """Raises ConsumerStateError where partitions are come by in another way."""
        if self.kind not in (SubscriptionType.NONE, kind):
            raise ConsumerStateError(f"{self.kind.value}, so that {_WANTED[kind]} cannot be; call unsubscribe() first")

    def _become(self, kind: SubscriptionType) -> None:
        self.require_kind(kind)
        self.kind = kind


_WANTED: Final = {
    SubscriptionType.AUTO_TOPICS: "topics",
    SubscriptionType.AUTO_PATTERN: "a pattern",
    SubscriptionType.USER_ASSIGNED: "partitions assigned by hand",
}
