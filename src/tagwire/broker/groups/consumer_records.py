"""One group of KIP-848, as it is stored: what its records say, and what follows from that alone.

It becomes what *changes* say when they are applied, those of one step once they are stored, all of them after a
restart. Source: Kafka's ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol
from uuid import UUID

from tagwire.broker.groups.assignors import ASSIGNORS
from tagwire.broker.groups.consumer_changes import (
    TOPIC_BYTES,
    Change,
    CurrentChange,
    EpochChange,
    KnownTopic,
    RegexChange,
    ResolvedRegex,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    TopicsChange,
)
from tagwire.broker.groups.consumer_member import (
    PARTITION_BYTES,
    ConsumerMember,
    CurrentAssignment,
    Partitions,
    Subscription,
    TopicIdPartition,
)
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import OFFSET_COMMIT_MEMBER_EPOCH

MAX_GROUP_BYTES = 16 << 20
"""What one group may take in memory, with all that its members said and have."""

DEFAULT_ASSIGNOR = next(iter(ASSIGNORS))

"""The first version of OffsetCommit whose responses can say STALE_MEMBER_EPOCH."""

_NOBODY: Final = ConsumerMember("", Subscription())


class ConsumerGroupState(Enum):
    """Where a group stands. The values are the names that ConsumerGroupDescribe and ListGroups tell."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class SizedTopic(Protocol):
    """A topic, as far as a group looks at it."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> tuple[object, ...]: ...


class TopicsView(Protocol):
    """The topics that there are. `version` is another one whenever anything else is."""

    @property
    def version(self) -> int: ...
    def get(self, name: str) -> SizedTopic | None: ...
    def by_id(self, topic_id: UUID) -> SizedTopic | None: ...
    def __iter__(self) -> Iterator[SizedTopic]: ...


class ConsumerGroupRecords:
    """A group and its members, as they are stored.

    Args:
        group_id: its name.
        topics: the topics that there are.

    Attributes:
        epoch: the group's; None before the first.
        target_epoch: the epoch that the targets are for.
        members: by member id.
        targets: what each is to have, by member id.
        known_topics: the topics that members are subscribed to and that exist, when the epoch was last seen to.
        regexes: the topics that the regular expressions of members stand for.
        held_bytes: about how much memory it takes.
    """

    def __init__(self, group_id: str, topics: TopicsView) -> None:
        self.group_id = group_id
        self.topics = topics
        self.epoch: int | None = None
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.held_bytes = 0
        self.known_topics: Mapping[str, KnownTopic] = {}
        self._static: dict[str, str] = {}
        self._owners: dict[TopicIdPartition, str] = {}

    # What it is ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        """Where it stands."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if (self.epoch or 0) > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_nothing(self) -> bool:
        """Whether nothing of it is stored."""
        return self.epoch is None and not self.members

    def is_classic_without(self, gone: frozenset[str]) -> bool:
        """Whether it has other members than some, and all of them speak the classic protocol."""
        others = [member for member_id, member in self.members.items() if member_id not in gone]
        return bool(others) and all(member.is_classic for member in others)

    @property
    def assignor(self) -> str:
        """The name of the assignor that most members would have."""
        return self._preferred_assignor(member.subscription for member in self.members.values())

    @staticmethod
    def _preferred_assignor(subscriptions: Iterable[Subscription]) -> str:
        votes: dict[str, int] = {}
        for subscription in subscriptions:
            name = subscription.assignor
            if name is not None and name in ASSIGNORS:
                votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name], default=DEFAULT_ASSIGNOR)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member that has an instance id."""
        return self.members.get(self._static.get(instance_id, ""))

    def subscribed_topics(self) -> set[str]:
        """The names of all topics that members are subscribed to, whether they exist or not."""
        return self._subscribed((member.subscription for member in self.members.values()), self.regexes)

    def is_owned(self, partition: TopicIdPartition) -> bool:
        """Whether a member has a partition, or has not said yet that it has given it up."""
        return partition in self._owners

    def check_member(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member that says who it is: KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        if instance_id is not None:
            member = self.static_member(instance_id)
            if member is not None and member.member_id != member_id:
                raise KafkaError(
                    Error.FENCED_INSTANCE_ID, f"instance id {instance_id!r} is that of member {member.member_id!r}"
                )
        else:
            member = self.members.get(member_id)
        if member is None:
            raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"{member_id!r} is no member of group {self.group_id!r}")
        return member

    def check_commit(
        self,
        member_id: str,
        epoch: int,
        version: int | None,
        partitions: Iterable[TopicIdPartition] | None = None,
    ) -> None:
        """Refuse offsets from one who has no right to commit them.

        Args:
            epoch: the member's, or its generation; negative for nobody's, which may commit while there are no members.
            version: of OffsetCommit; None for a commit in a transaction.
            partitions: whose offsets they are: a member of KIP-848 may speak of an older epoch, in which it had them
                already (KIP-1251); None where it may not.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH; ILLEGAL_GENERATION for a classic member, or in a
                transaction; UNSUPPORTED_VERSION.
        """
        if epoch < 0 and not self.members:
            return
        member = self.check_member(member_id, None)
        if version is not None and version < OFFSET_COMMIT_MEMBER_EPOCH and not member.is_classic:
            problem = f"members of KIP-848 commit by version {OFFSET_COMMIT_MEMBER_EPOCH} or later"
            raise KafkaError(Error.UNSUPPORTED_VERSION, problem)
        is_older = partitions is not None and not member.is_classic and epoch < member.current.epoch
        if is_older and all(member.current.had_in(partition, epoch) for partition in partitions or ()):
            return
        try:
            self._check_epoch_is(member, epoch)
        except KafkaError as error:
            if version is None and error.error is Error.STALE_MEMBER_EPOCH:
                raise KafkaError(Error.ILLEGAL_GENERATION, error.message) from None
            raise

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse committed offsets to a member that is not what it says: KafkaError UNKNOWN_MEMBER_ID,
        STALE_MEMBER_EPOCH, ILLEGAL_GENERATION for a classic member. Whoever says nothing gets them."""
        if member_id is not None or epoch >= 0:
            self._check_epoch_is(self.check_member(member_id or "", None), epoch)

    @staticmethod
    def _check_epoch_is(member: ConsumerMember, epoch: int) -> None:
        if epoch != member.current.epoch:
            error = Error.ILLEGAL_GENERATION if member.is_classic else Error.STALE_MEMBER_EPOCH
            raise KafkaError(error, f"epoch {epoch} is not the member's, {member.current.epoch}")

    def _subscribed(self, subscriptions: Iterable[Subscription], regexes: Mapping[str, ResolvedRegex]) -> set[str]:
        names: set[str] = set()
        for subscription in subscriptions:
            names |= self._topics_of(subscription, regexes)
        return names

    @staticmethod
    def _topics_of(subscription: Subscription, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
        resolved = regexes.get(subscription.regex or "")
        return subscription.topics | resolved.topics if resolved is not None else subscription.topics

    # Becoming what is stored ---------------------------------------------------------------------------------------

    def apply(self, changes: Iterable[Change]) -> None:
        """Become what changes say that are stored."""
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case EpochChange(epoch):
                self.epoch = epoch
            case TargetEpochChange(epoch):
                self.target_epoch = epoch or 0
            case TopicsChange(topics):
                self.held_bytes += _topics_bytes(topics or {}) - _topics_bytes(self.known_topics)
                self.known_topics = topics or {}
            case RegexChange(regex, resolved):
                before = self.regexes.pop(regex, None)
                self.held_bytes -= before.held_bytes if before is not None else 0
                if resolved is not None:
                    self.regexes[regex] = resolved
                    self.held_bytes += resolved.held_bytes
            case TargetChange(member_id, partitions):
                self.held_bytes -= PARTITION_BYTES * len(self.targets.pop(member_id, ()))
                if partitions is not None:
                    self.targets[member_id] = partitions
                    self.held_bytes += PARTITION_BYTES * len(partitions)
            case SubscriptionChange(member_id, subscription):
                self._take_subscription(member_id, subscription)
            case CurrentChange(member_id, current):
                self._take_current(member_id, current)

    def _take_subscription(self, member_id: str, subscription: Subscription | None) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self.held_bytes -= _member_bytes(member)
            instance_id = member.subscription.instance_id
            if instance_id is not None and self._static.get(instance_id) == member_id:
                del self._static[instance_id]
        if subscription is None:
            self.members.pop(member_id, None)
            self._release(member_id, member.current.owned if member is not None else ())
            return
        member = self.members[member_id] = replace(member or ConsumerMember(member_id), subscription=subscription)
        self.held_bytes += _member_bytes(member)
        if subscription.instance_id is not None:
            self._static[subscription.instance_id] = member_id

    def _take_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        member = self.members.get(member_id)
        if member is None and current is None:
            return
        if member is None:
            member = ConsumerMember(member_id)
        else:
            self.held_bytes -= _member_bytes(member)
            self._release(member_id, member.current.owned)
        member = self.members[member_id] = replace(member, current=current or CurrentAssignment())
        self.held_bytes += _member_bytes(member)
        self._owners.update(dict.fromkeys(member.current.owned, member_id))

    def _release(self, member_id: str, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            if self._owners.get(partition) == member_id:
                del self._owners[partition]

    def replayed(self) -> None:
        """All that is stored of it has been applied. Compaction may have left of one member what is older than what it
        left of another: who owns what is known now."""
        self._owners = {
            partition: member.member_id for member in self.members.values() for partition in member.current.owned
        }

    def check_growth(self, changes: Iterable[Change]) -> int:
        """How many bytes more it would hold after changes: KafkaError GROUP_MAX_SIZE_REACHED if that is too much."""
        sizes: dict[tuple[object, ...], tuple[int, int]] = {}
        for change in changes:
            key, before, after = self._sizes(change)
            sizes[key] = sizes.get(key, (before, 0))[0], after
        growth = sum(after - before for before, after in sizes.values())
        if growth > 0 and self.held_bytes + growth > MAX_GROUP_BYTES:
            problem = f"the group holds {self.held_bytes} bytes, and may hold {MAX_GROUP_BYTES}"
            raise KafkaError(Error.GROUP_MAX_SIZE_REACHED, f"{problem}: no room for {growth} more")
        return growth

    def _sizes(self, change: Change) -> tuple[tuple[object, ...], int, int]:
        """What a change is about, and how many bytes that takes before it and after it."""
        member = self.members.get(getattr(change, "member_id", ""), _NOBODY)
        match change:
            case SubscriptionChange(member_id, said):
                return (SubscriptionChange, member_id), member.subscription.held_bytes, said.held_bytes if said else 0
            case CurrentChange(member_id, current):
                return (CurrentChange, member_id), member.current.held_bytes, current.held_bytes if current else 0
            case TargetChange(member_id, target):
                before = len(self.targets.get(member_id, ()))
                return (TargetChange, member_id), PARTITION_BYTES * before, PARTITION_BYTES * len(target or ())
            case RegexChange(regex, resolved):
                known = self.regexes.get(regex)
                before, after = known.held_bytes if known else 0, resolved.held_bytes if resolved else 0
                return (RegexChange, regex), before, after
            case TopicsChange(topics):
                return (TopicsChange,), _topics_bytes(self.known_topics), _topics_bytes(topics or {})
        return (type(change),), 0, 0

    def tombstones(self) -> list[Change]:
        """What deletes all that is stored of it."""
        changes: list[Change] = []
        changes += [CurrentChange(member_id, None) for member_id in self.members]
        changes += [TargetChange(member_id, None) for member_id in self.targets]
        changes.append(TargetEpochChange(None))
        changes += [SubscriptionChange(member_id, None) for member_id in self.members]
        changes += [RegexChange(regex, None) for regex in self.regexes]
        return [*changes, TopicsChange(None), EpochChange(None)]


def _member_bytes(member: ConsumerMember) -> int:
    return member.subscription.held_bytes + member.current.held_bytes


def _topics_bytes(topics: Mapping[str, KnownTopic]) -> int:
    return sum(TOPIC_BYTES + len(name) for name in topics)
