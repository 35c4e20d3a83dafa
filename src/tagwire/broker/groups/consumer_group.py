"""One group of KIP-848, as a state machine: no IO, and the time is told to it.

Members are told apart by epochs. The *group's epoch* grows with every change of what members are subscribed to, of
the topics, and of who is a member; for each one a *target* is computed, who is to have what; and every member comes to
it at its own pace, heartbeat by heartbeat: it gives up first what it is not to have any more, and gets what others
have given up. No partition is had by two at once, and nobody waits for everybody.

A step gives the *changes* that it makes and its result. The group becomes what they say when `apply` is called with
them, once they are stored, and is what it was if they never are. `apply` is what a restart calls, too.

Source: KIP-848, Kafka's GroupMetadataManager, ConsumerGroup and TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from tagwire.broker.groups.assignors import ASSIGNORS, MemberSpec
from tagwire.broker.groups.consumer_changes import (
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
    JOINING,
    LEAVING,
    LEAVING_STATIC,
    NO_PARTITIONS,
    ConsumerMember,
    MemberState,
    Partitions,
    Subscription,
    TopicIdPartition,
    by_topic,
    reconciled,
)
from tagwire.broker.groups.consumer_records import ConsumerGroupRecords, TopicsView
from tagwire.broker.groups.consumer_steps import Heartbeat, HeartbeatResult, Step
from tagwire.broker.groups.topic_regex import compiled
from tagwire.errors import Error, KafkaError

Result = TypeVar("Result")

MAX_MEMBERS = 1000
"""Members one group can have."""


@dataclass(slots=True)
class _Deadlines:
    """When a member is given up: unless it is heard of; unless it has given up its partitions by then, in that epoch;
    and, where it speaks the classic protocol, unless it has joined again, or synchronized."""

    session_ms: int
    revoke_ms: int | None = None
    revoke_epoch: int = 0
    join_ms: int | None = None
    sync_ms: int | None = None

    @property
    def next_ms(self) -> int:
        deadlines = (self.session_ms, self.revoke_ms, self.join_ms, self.sync_ms)
        return min(deadline for deadline in deadlines if deadline is not None)


class ConsumerGroup(ConsumerGroupRecords):
    """A group and its members.

    Args:
        group_id: its name.
        topics: the topics that there are.
        session_timeout_ms: how long a member may be silent.
        takes_rejoining: see `GroupSettings`.
    """

    def __init__(
        self, group_id: str, topics: TopicsView, session_timeout_ms: int, *, takes_rejoining: bool = True
    ) -> None:
        super().__init__(group_id, topics)
        self.session_timeout_ms = session_timeout_ms
        self._takes_rejoining = takes_rejoining
        self._deadlines: dict[str, _Deadlines] = {}
        self._seen_versions: tuple[int, int] | None = None
        # Of the member that was heard of last, as Kafka takes it; None before the first, after a restart.
        self._sees: Callable[[str], bool] | None = None
        self._acl_version = 0

    def apply(self, changes: Iterable[Change]) -> None:
        """Become what changes say that are stored."""
        super().apply(changes)
        for gone in self._deadlines.keys() - self.members.keys():
            del self._deadlines[gone]

    def restored(self, now_ms: int) -> None:
        """All that is stored of it has been applied, by a broker that starts: its members get their time anew."""
        self.replayed()
        for member in self.members.values():
            self.heard_of(member, now_ms)
            self._expect_revocation(member, now_ms)

    # Time ----------------------------------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` should be called next, if nothing else happens before; None for never."""
        return min((deadlines.next_ms for deadlines in self._deadlines.values()), default=None)

    def tick(self, now_ms: int) -> Step[None] | None:
        """What time makes of it: the first member whose time is up is given up; None where there is none."""
        for member_id, deadlines in self._deadlines.items():
            if deadlines.next_ms > now_ms:
                continue
            member = self.members[member_id]
            if deadlines.revoke_ms is not None and deadlines.revoke_epoch != member.current.epoch:
                deadlines.revoke_ms = None
                if deadlines.next_ms > now_ms:
                    continue
            return self.without([member], None)
        return None

    def postpone(self, until_ms: int) -> None:
        """Try nothing before a time that should have been done by now: it could not be stored."""
        for deadlines in self._deadlines.values():
            for name in ("session_ms", "revoke_ms", "join_ms", "sync_ms"):
                deadline = getattr(deadlines, name)
                if deadline is not None:
                    setattr(deadlines, name, max(deadline, until_ms))

    def heard_of(self, member: ConsumerMember, now_ms: int) -> None:
        """A member is there: it has its session timeout again."""
        classic = member.subscription.classic
        timeout_ms = self.session_timeout_ms if classic is None else classic.session_timeout_ms
        self._deadlines.setdefault(member.member_id, _Deadlines(0)).session_ms = now_ms + timeout_ms

    def expect_join(self, member: ConsumerMember, now_ms: int) -> None:
        """A classic member has been told to join again, and is given up if it does not; told again, it gets no more
        time."""
        deadlines = self._deadlines[member.member_id]
        if deadlines.join_ms is None:
            deadlines.join_ms = now_ms + member.subscription.rebalance_timeout_ms

    def expect_sync(self, member: ConsumerMember, now_ms: int) -> None:
        """A classic member has joined, and is given up if it does not synchronize."""
        deadlines = self._deadlines[member.member_id]
        deadlines.join_ms, deadlines.sync_ms = None, now_ms + member.subscription.rebalance_timeout_ms

    def synchronized(self, member: ConsumerMember) -> None:
        """A classic member has synchronized."""
        self._deadlines[member.member_id].sync_ms = None

    def _expect_revocation(self, member: ConsumerMember, now_ms: int) -> None:
        deadlines = self._deadlines[member.member_id]
        deadlines.revoke_ms = None
        if member.current.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
            deadlines.revoke_ms = now_ms + max(member.subscription.rebalance_timeout_ms, 0)
            deadlines.revoke_epoch = member.current.epoch

    # Heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat) -> Step[HeartbeatResult]:
        """A member joins, says that it is there and what has changed, or leaves.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
                GROUP_MAX_SIZE_REACHED, INVALID_REGULAR_EXPRESSION.
        """
        self._sees, self._acl_version = beat.sees, beat.acl_version
        if beat.epoch in (LEAVING, LEAVING_STATIC):
            return self._leave(beat)
        changes: list[Change] = []
        self.check_size(beat.member_id)
        if beat.instance_id is None:
            member = self.members.get(beat.member_id)
            if member is None and beat.epoch == JOINING:
                member = ConsumerMember(beat.member_id)
            elif member is None:
                raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"{beat.member_id!r} is no member of the group")
            if beat.epoch != JOINING or not self._takes_rejoining:  # who was fenced comes so, and is a member still
                self._check_epoch(member, beat)
        elif beat.epoch == JOINING:
            member = self.take_instance(beat.member_id, beat.instance_id, changes)
        else:
            member = self.check_member(beat.member_id, beat.instance_id)
            self._check_epoch(member, beat)
        before = member.subscription
        subscription = replace(
            before,
            instance_id=before.instance_id if beat.instance_id is None else beat.instance_id,
            rack_id=before.rack_id if beat.rack_id is None else beat.rack_id,
            client_id=beat.client_id,
            client_host=beat.client_host,
            topics=before.topics if beat.topics is None else beat.topics,
            regex=before.regex if beat.regex is None else beat.regex,
            rebalance_timeout_ms=before.rebalance_timeout_ms
            if beat.rebalance_timeout_ms == -1
            else beat.rebalance_timeout_ms,
            assignor=before.assignor if beat.assignor is None else beat.assignor,
            classic=None,
        )
        updated = self.advance(member, subscription, beat.owned, changes)
        is_new = updated.current.assigned != member.current.assigned
        assigned = updated.current.assigned if is_new or beat.is_full else None

        def then(now_ms: int) -> None:
            self.heard_of(updated, now_ms)
            if updated.current != member.current:
                self._expect_revocation(updated, now_ms)

        return Step(HeartbeatResult(updated.member_id, updated.current.epoch, assigned), changes, then=then)

    def check_size(self, member_id: str) -> None:
        """Refuse a member too many: KafkaError GROUP_MAX_SIZE_REACHED."""
        if len(self.members) >= MAX_MEMBERS and member_id not in self.members:
            raise KafkaError(Error.GROUP_MAX_SIZE_REACHED, f"the group has {MAX_MEMBERS} members")

    @staticmethod
    def _check_epoch(member: ConsumerMember, beat: Heartbeat) -> None:
        current = member.current
        if beat.epoch == current.epoch:
            return
        # A response may have been lost: who speaks of the epoch before, and has nothing that it has not now, goes on.
        is_before = beat.epoch == current.previous_epoch < current.epoch
        if is_before and beat.owned is not None and beat.owned <= current.assigned:
            return
        raise KafkaError(
            Error.FENCED_MEMBER_EPOCH,
            f"member epoch {beat.epoch} is not {current.epoch}: the member must give up its partitions and join again",
        )

    def take_instance(
        self, member_id: str, instance_id: str, changes: list[Change], *, is_classic: bool = False
    ) -> ConsumerMember:
        """The member that a static one becomes when it joins: in the place of the one before, if there was one.

        Raises:
            KafkaError: UNRELEASED_INSTANCE_ID: that one, which is of KIP-848 as well, has not left.
        """
        old = self.static_member(instance_id)
        if old is None:
            return self.members.get(member_id) or ConsumerMember(member_id)
        if not is_classic and not old.is_classic and old.current.epoch != LEAVING_STATIC:
            raise KafkaError(
                Error.UNRELEASED_INSTANCE_ID, f"instance id {instance_id!r} is that of member {old.member_id!r}"
            )
        new = ConsumerMember(member_id, old.subscription, replace(old.current, epoch=JOINING, previous_epoch=JOINING))
        changes += self._removal(old.member_id)
        changes += [
            SubscriptionChange(member_id, new.subscription),
            TargetChange(member_id, self.targets.get(old.member_id, NO_PARTITIONS)),
            CurrentChange(member_id, new.current),
        ]
        return new

    def _leave(self, beat: Heartbeat) -> Step[HeartbeatResult]:
        member = self.check_member(beat.member_id, beat.instance_id)
        result = HeartbeatResult(member.member_id, beat.epoch)
        if beat.epoch == LEAVING_STATIC:
            away = replace(member.current, epoch=LEAVING_STATIC, revoking=NO_PARTITIONS)
            return Step(result, [CurrentChange(member.member_id, away)])
        return self.without([member], result)

    # Steps ---------------------------------------------------------------------------------------------------------

    def advance(
        self,
        member: ConsumerMember,
        subscription: Subscription,
        owned: Partitions | None,
        changes: list[Change],
    ) -> ConsumerMember:
        """The member, after it has said `subscription` and that it has `owned`; the changes on the way are added.

        Raises:
            KafkaError: as `heartbeat`.
        """
        before = member.subscription
        updated = replace(member, subscription=subscription)
        if subscription != before:
            changes.append(SubscriptionChange(member.member_id, subscription))
        is_changed = (subscription.topics, subscription.regex or None) != (before.topics, before.regex or None)
        # Of a static member, the one that had its instance id: itself, or the one that it replaces.
        replaced = self._static.get(subscription.instance_id or "", member.member_id)
        epoch, target_epoch = self.epoch or 0, self.target_epoch
        target = self.targets.get(replaced, NO_PARTITIONS)
        if is_changed or self._seen_versions != self._versions or epoch > target_epoch or epoch == 0:
            members = [other for key, other in self.members.items() if key not in (member.member_id, replaced)]
            members.append(updated)
            regexes, known, is_changed = self._see(members, changes, is_changed=is_changed)
            if is_changed or epoch == 0:  # 0 is not told as a member's epoch: who says it joins
                epoch += 1
                changes.append(EpochChange(epoch))
            if epoch > target_epoch:
                targets, target_epoch = self._assigned(members, replaced, regexes, known), epoch
                target = targets[member.member_id]
                changed = [(key, value) for key, value in targets.items() if self.targets.get(key) != value]
                changes += [TargetChange(key, value) for key, value in changed]
                changes.append(TargetEpochChange(epoch))
        if not updated.current.is_reconciled_to(target_epoch):
            current = reconciled(updated.current, target_epoch, target, self.is_owned, owned)
            if current != updated.current:
                changes.append(CurrentChange(member.member_id, current))
                updated = replace(updated, current=current)
        return updated

    def without(self, members: Iterable[ConsumerMember], result: Result) -> Step[Result]:
        """What changes when some members are no longer any: one epoch, however many they are."""
        gone = frozenset(member.member_id for member in members)
        changes = [change for member_id in sorted(gone) for change in self._removal(member_id)]
        others = [other for other in self.members.values() if other.member_id not in gone]
        self._see(others, changes, is_changed=True)
        return Step(result, [*changes, EpochChange((self.epoch or 0) + 1)], gone)

    @staticmethod
    def _removal(member_id: str) -> list[Change]:
        return [CurrentChange(member_id, None), TargetChange(member_id, None), SubscriptionChange(member_id, None)]

    def _see(
        self, members: list[ConsumerMember], changes: list[Change], *, is_changed: bool
    ) -> tuple[Mapping[str, ResolvedRegex], Mapping[str, KnownTopic], bool]:
        """See which topics there are for members: what their regular expressions stand for, the topics that they are
        subscribed to, and whether anything is new; what is, is added to the changes."""
        versions = self._versions
        wanted = {member.subscription.regex for member in members if member.subscription.regex}
        regexes = {regex: self._resolved(regex) for regex in sorted(wanted)}
        for regex in self.regexes.keys() | regexes.keys():
            resolved, before = regexes.get(regex), self.regexes.get(regex)
            if resolved is not before:
                changes.append(RegexChange(regex, resolved))
                is_changed |= resolved is not None
        names = self._subscribed((member.subscription for member in members), regexes)
        topics = {name: self.topics.get(name) for name in names}
        known = {
            name: KnownTopic(topic.topic_id, len(topic.partitions))
            for name, topic in topics.items()
            if topic is not None
        }
        if known != self.known_topics:
            changes.append(TopicsChange(known))
            is_changed = True
        if not is_changed:
            self._seen_versions = versions
        return regexes, known, is_changed

    @property
    def _versions(self) -> tuple[int, int]:
        """Of the topics that there are, and of who may see them."""
        return self.topics.version, self._acl_version

    def _resolved(self, regex: str) -> ResolvedRegex:
        """What a regular expression stands for: what is known already, unless that is another thing now."""
        before = self.regexes.get(regex)
        if before is not None and (self._seen_versions == self._versions or self._sees is None):
            return before
        try:
            matching = compiled(regex).matching(topic.name for topic in self.topics)
        except KafkaError:
            if before is None:
                raise
            return before  # it takes too long with the topics that there are now: its members keep what they have
        topics = frozenset(name for name in matching if self._sees is None or self._sees(name))
        if before is not None and topics == before.topics:
            return before
        return ResolvedRegex(topics, self.topics.version)

    def _assigned(
        self,
        members: list[ConsumerMember],
        replaced: str,
        regexes: Mapping[str, ResolvedRegex],
        known: Mapping[str, KnownTopic],
    ) -> dict[str, Partitions]:
        """The targets of members, the last of which takes the place of member `replaced`."""
        joiner = members[-1].member_id
        specs = {
            member.member_id: MemberSpec(
                frozenset(
                    known[name].topic_id for name in self._topics_of(member.subscription, regexes) if name in known
                ),
                _sets(self.targets.get(replaced if member.member_id == joiner else member.member_id, NO_PARTITIONS)),
                member.subscription.instance_id,
            )
            for member in sorted(members, key=lambda member: member.member_id)
        }
        assign = ASSIGNORS[self._preferred_assignor(member.subscription for member in members)]
        topics = {known[name].topic_id: known[name].partitions for name in sorted(known)}
        return {
            member_id: frozenset(
                TopicIdPartition(topic_id, index) for topic_id, indexes in target.items() for index in indexes
            )
            for member_id, target in assign(topics, specs).items()
        }


def _sets(partitions: Partitions) -> dict[UUID, set[int]]:
    """Partitions as assignors take them."""
    return {topic_id: set(indexes) for topic_id, indexes in by_topic(partitions)}
