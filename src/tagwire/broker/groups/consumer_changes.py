"""What changes in a group of KIP-848, one record of __consumer_offsets each, and how much memory it takes.

A group becomes what its changes say, in their order: those of one step once they are stored, all of them after a
restart. So what it is, is what a restart would find. None for a value says that the record deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from tagwire.broker.groups.consumer_member import NAME_BYTES, CurrentAssignment, Partitions, Subscription

TOPIC_BYTES = 200
"""About what is noted of a topic takes in memory beside its name."""


@dataclass(frozen=True, slots=True)
class EpochChange:
    """The group's epoch (ConsumerGroupMetadata)."""

    epoch: int | None


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic that members are subscribed to, as it was when the group's epoch was last seen to."""

    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicsChange:
    """The topics that members are subscribed to and that exist, by name (ConsumerGroupPartitionMetadata)."""

    topics: Mapping[str, KnownTopic] | None


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """A member and what it said of itself (ConsumerGroupMemberMetadata)."""

    member_id: str
    subscription: Subscription | None


@dataclass(frozen=True, slots=True)
class TargetEpochChange:
    """For which of the group's epochs the targets are (ConsumerGroupTargetAssignmentMetadata)."""

    epoch: int | None


@dataclass(frozen=True, slots=True)
class TargetChange:
    """What a member is to have (ConsumerGroupTargetAssignmentMember)."""

    member_id: str
    partitions: Partitions | None


@dataclass(frozen=True, slots=True)
class CurrentChange:
    """What a member has (ConsumerGroupCurrentMemberAssignment)."""

    member_id: str
    current: CurrentAssignment | None


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched, and in which version of the topics."""

    topics: frozenset[str]
    version: int

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return TOPIC_BYTES + sum(NAME_BYTES + len(name) for name in self.topics)


@dataclass(frozen=True, slots=True)
class RegexChange:
    """What a regular expression stands for (ConsumerGroupRegularExpression)."""

    regex: str
    resolved: ResolvedRegex | None


Change = (
    EpochChange | TopicsChange | SubscriptionChange | TargetEpochChange | TargetChange | CurrentChange | RegexChange
)


def deletes(change: Change) -> bool:
    """Whether a change deletes what it is about."""
    match change:
        case EpochChange(value) | TargetEpochChange(value) | TopicsChange(value):
            return value is None
        case SubscriptionChange(_, value) | TargetChange(_, value) | CurrentChange(_, value) | RegexChange(_, value):
            return value is None
