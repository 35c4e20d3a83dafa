"""A member of a group of KIP-848: what it said of itself, what it has, and how it comes to what it shall have.

A member's state is two values, as it is stored in two records: its *subscription*, and its *current assignment*. Both
are replaced, never changed. Source: Kafka's ConsumerGroupMember, CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from tagwire.errors import Error, KafkaError

JOINING = 0
LEAVING = -1
LEAVING_STATIC = -2
"""What a member says for its epoch: that it joins, that it leaves, that it leaves and means to come back."""

UNKNOWN_EPOCH = -1

MEMBER_BYTES = 1500
PARTITION_BYTES = 150
NAME_BYTES = 60
GRANT_BYTES = 50
"""About what a member, a partition, a name and the epoch of a partition take in memory beside their text."""


class TopicIdPartition(NamedTuple):
    """A partition of a topic that is named by its id: one of another topic of the same name is another one."""

    topic_id: UUID
    partition: int


Partitions = frozenset[TopicIdPartition]
NO_PARTITIONS: Partitions = frozenset()


def by_topic(partitions: Iterable[TopicIdPartition]) -> list[tuple[UUID, list[int]]]:
    """Partitions as messages list them: (topic id, indexes), in order."""
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return list(found.items())


class MemberState(IntEnum):
    """How far a member is on its way to its target, by the numbers of ConsumerGroupCurrentMemberAssignmentValue.

    STABLE: it is there, or was when its epoch was the newest. UNREVOKED_PARTITIONS: it has to give up partitions first.
    UNRELEASED_PARTITIONS: others have still to give up partitions that it is to get.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What a member said that speaks the classic protocol.

    Attributes:
        session_timeout_ms: how long it may be silent.
        protocols: what it can take part in, best first: (name, bytes of its ConsumerProtocolSubscription).
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return sum(NAME_BYTES + len(name) + len(data) for name, data in self.protocols)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member said of itself.

    Attributes:
        instance_id: its own name that outlives restarts (static membership); None for none.
        rack_id: where it is; None for unknown.
        client_id, client_host: who it is, for whoever describes the group.
        topics: the names that it is subscribed to.
        regex: the regular expression that it is subscribed to; None or "" for none.
        rebalance_timeout_ms: how long it may take to give partitions up; -1 until it has said.
        assignor: the name of the assignor that it would have; None for any.
        classic: what it said by the classic protocol; None for a member that speaks that of KIP-848.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        texts = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.regex, self.assignor)
        text = sum(len(text) for text in texts if text is not None)
        classic = self.classic.held_bytes if self.classic is not None else 0
        return MEMBER_BYTES + text + classic + sum(NAME_BYTES + len(name) for name in self.topics)


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """What a member has.

    Attributes:
        epoch: of the newest target it has come to; LEAVING_STATIC while it is away and means to come back.
        previous_epoch: the one before, that it may still speak of when a response was lost.
        state: how far it is.
        assigned: what it may read.
        revoking: what it has been told to give up, and may still have.
        granted: in which epoch it got each of these (KIP-1251); the one above where none is given.
    """

    epoch: int = 0
    previous_epoch: int = UNKNOWN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    revoking: Partitions = NO_PARTITIONS
    granted: Mapping[TopicIdPartition, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        own = max(self.epoch, 0)
        granted = {partition: self.granted.get(partition, own) for partition in self.owned}
        object.__setattr__(self, "granted", granted)

    @property
    def owned(self) -> Partitions:
        """What nobody else may have."""
        return self.assigned | self.revoking

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes, with the note of who owns each partition."""
        return (PARTITION_BYTES + GRANT_BYTES) * (len(self.assigned) + len(self.revoking))

    def had_in(self, partition: TopicIdPartition, epoch: int) -> bool:
        """Whether it had a partition in an epoch, and has it since."""
        return partition in self.granted and self.granted[partition] <= epoch <= self.epoch

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all of the target of an epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member, whose state is what is stored of it."""

    member_id: str
    subscription: Subscription = field(default_factory=Subscription)
    current: CurrentAssignment = field(default_factory=CurrentAssignment)

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.subscription.classic is not None


def reconciled(
    current: CurrentAssignment,
    epoch: int,
    target: Partitions,
    is_owned: Callable[[TopicIdPartition], bool],
    owned: Partitions | None,
) -> CurrentAssignment:
    """The next assignment on the way from the current one to a target.

    Args:
        epoch: of the target.
        is_owned: whether a member owns a partition, be it the one that this is about.
        owned: what the member says that it has; None if it does not say.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH: its state is one that only newer brokers know, and it may have partitions.
    """
    reached = current.epoch
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is None or owned & current.revoking:
            return current
        reached += 1
    elif current.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError(Error.FENCED_MEMBER_EPOCH, "the member's state is unknown here: it has to join again")
        reached = epoch
    kept = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or owned & revoking):
        unrevoked = MemberState.UNREVOKED_PARTITIONS
        return CurrentAssignment(reached, current.epoch, unrevoked, kept, revoking, current.granted)
    added = target - kept
    unreleased = frozenset(partition for partition in added if is_owned(partition))
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    granted = {partition: current.granted[partition] for partition in kept}
    return CurrentAssignment(epoch, current.epoch, state, kept | (added - unreleased), granted=granted)
