"""One group of the classic protocol, as a state machine: no IO, and the time is told to it.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance --leader assigned--> Stable
    any but Empty --member joins anew, leaves, or is not heard of--> PreparingRebalance --nobody left--> Empty

Every completed rebalance is a *generation*; a member that speaks of another one is refused, so that what it does can
never mix with what its successors do. A rebalance waits for every known member, and for every client that was given
a member id and has not come back with it; at the latest it ends after the longest rebalance timeout among the members.

A static member (one with an instance id) is known by that id: restarted within its session timeout, it takes its old
place under a new member id without a rebalance, and whoever still uses the old member id is fenced.

Source: facts/kafka_protocol.md 4 and 7, facts/brokers.md B.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tagwire.broker.groups.membership import (
    JoinAnswer,
    Joining,
    JoinReply,
    Member,
    State,
    SyncAnswer,
    SyncReply,
)
from tagwire.errors import Error, KafkaError

MAX_MEMBERS = 1000
"""Members one group can have, those included that were given an id and have not come back with it."""

MIN_SESSION_TIMEOUT_MS = 1
MAX_SESSION_TIMEOUT_MS = 1_800_000


class Group:
    """A group and its members.

    Args:
        group_id: its name.
        new_member_id: makes a member id that no other member of any group has, from a client or instance id.

    Attributes:
        state: where it stands.
        generation: counts its completed rebalances.
        protocol_type, protocol: what its members take part in; None in an empty group.
        leader: member id of the one that assigns.
        members: by member id.
        changed: set whenever members, assignment or generation have become others, and ought to be stored.
    """

    def __init__(self, group_id: str, new_member_id: Callable[[str], str]) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.changed = False
        self._new_member_id = new_member_id
        self._static: dict[str, str] = {}
        self._expected: dict[str, int] = {}
        self._deadline_ms: int | None = None

    def restore(
        self,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        leader: str | None,
        members: Iterable[Member],
    ) -> None:
        """Take over what was stored of it."""
        self.generation, self.protocol_type, self.protocol, self.leader = generation, protocol_type, protocol, leader
        self.members = {member.member_id: member for member in members}
        self._static = {m.instance_id: m.member_id for m in self.members.values() if m.instance_id is not None}
        self.state = State.STABLE if self.members else State.EMPTY

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` should be called next, if nothing else happens before; None for never."""
        deadlines = [member.expires_ms for member in self.members.values() if not member.is_waiting]
        deadlines += self._expected.values()
        if self._deadline_ms is not None:
            deadlines.append(self._deadline_ms)
        return min(deadlines, default=None)

    @property
    def is_idle(self) -> bool:
        """Whether it has no members, and nobody was given an id who could come back with it."""
        return not self.members and not self._expected

    def tick(self, now_ms: int) -> None:
        """Give up whoever was not heard of in time, and end a rebalance whose time is up."""
        for member_id in [member_id for member_id, expires in self._expected.items() if expires <= now_ms]:
            del self._expected[member_id]
        silent = [m for m in self.members.values() if not m.is_waiting and m.expires_ms <= now_ms]
        for member in silent:
            self._remove(member)
        if silent:
            self._someone_left(now_ms)
        if self._deadline_ms is not None and self._deadline_ms <= now_ms:
            self._time_is_up(now_ms)
        elif self.state is State.PREPARING:
            self._complete_if_all_joined(now_ms)

    # What members ask --------------------------------------------------------------------------------------------

    def join(self, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        """A client joins, or joins again. The answer may be given at once, or at a later call of any method."""
        try:
            self._check_joining(joining)
            if joining.member_id == "":
                self._join_without_id(joining, now_ms, reply)
            elif self._expected.pop(joining.member_id, None) is not None:
                self._add(joining.member_id, joining, now_ms, reply)
            else:
                self._join_again(self._member(joining.member_id, joining.instance_id), joining, now_ms, reply)
        except KafkaError as refusal:
            reply(JoinAnswer(refusal.error, joining.member_id))

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        assignments: dict[str, bytes],
        now_ms: int,
        reply: SyncReply,
    ) -> None:
        """A member asks for its assignment; the leader brings everyone's. None for a protocol means it does not say."""
        try:
            member = self._member_of(generation, member_id, instance_id)
            if (protocol_type or self.protocol_type, protocol or self.protocol) != (self.protocol_type, self.protocol):
                raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
            if self.state is State.PREPARING:
                raise KafkaError(Error.REBALANCE_IN_PROGRESS)
        except KafkaError as refusal:
            reply(SyncAnswer(refusal.error))
            return
        member.heard_of(now_ms)
        member.synced = True
        if self.state is State.STABLE:
            reply(self._assignment_of(member))
            return
        member.answer_sync(SyncAnswer(Error.REBALANCE_IN_PROGRESS))  # it asked before, and has forgotten
        member.on_sync = reply
        if member_id == self.leader:
            self._assign(assignments, now_ms)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> Error:
        """A member says that it is there."""
        try:
            member = self._member_of(generation, member_id, instance_id)
        except KafkaError as refusal:
            return refusal.error
        member.heard_of(now_ms)
        return Error.REBALANCE_IN_PROGRESS if self.state is State.PREPARING else Error.NONE

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> Error:
        """A member leaves, or is made to: by its instance id alone, if `member_id` is ""."""
        if self._expected.pop(member_id, None) is not None:
            if self.state is State.PREPARING:
                self._complete_if_all_joined(now_ms)
            return Error.NONE
        try:
            if member_id == "" and instance_id is not None:
                member_id = self._static.get(instance_id, "")
            member = self._member(member_id, instance_id)
        except KafkaError as refusal:
            return refusal.error
        self._remove(member)
        self._someone_left(now_ms)
        return Error.NONE

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> None:
        """Refuse offsets from one who has no right to commit them. Without a member id and generation, anyone may
        while the group is empty.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS.
        """
        if generation < 0 and member_id == "" and instance_id is None and self.state is State.EMPTY:
            return
        self._member_of(generation, member_id, instance_id).heard_of(now_ms)
        if self.state is State.COMPLETING:
            raise KafkaError(Error.REBALANCE_IN_PROGRESS)

    # Joining -------------------------------------------------------------------------------------------------------

    def _check_joining(self, joining: Joining) -> None:
        if not MIN_SESSION_TIMEOUT_MS <= joining.session_timeout_ms <= MAX_SESSION_TIMEOUT_MS:
            raise KafkaError(Error.INVALID_SESSION_TIMEOUT)
        others = [m for m in self.members.values() if m.member_id != joining.member_id]
        if joining.instance_id is not None:
            others = [member for member in others if member.instance_id != joining.instance_id]
        spoken = {name for name, _ in joining.protocols}
        if not joining.protocol_type or not spoken:
            raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
        if others and (joining.protocol_type != self.protocol_type or not spoken & self._spoken_by_all(others)):
            raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)

    def _join_without_id(self, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        if joining.instance_id is not None and joining.instance_id in self._static:
            self._replace(self.members[self._static[joining.instance_id]], joining, now_ms, reply)
            return
        if len(self.members) + len(self._expected) >= MAX_MEMBERS:
            raise KafkaError(Error.GROUP_MAX_SIZE_REACHED)
        member_id = self._new_member_id(joining.instance_id or joining.client_id)
        if joining.takes_id and joining.instance_id is None:
            self._expected[member_id] = now_ms + joining.session_timeout_ms
            reply(JoinAnswer(Error.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(member_id, joining, now_ms, reply)

    def _add(self, member_id: str, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        member = Member(
            member_id,
            joining.instance_id,
            joining.client_id,
            joining.client_host,
            joining.session_timeout_ms,
            joining.rebalance_timeout_ms,
            joining.protocols,
            now_ms + joining.session_timeout_ms,
            on_join=reply,
        )
        self.protocol_type = joining.protocol_type
        self.members[member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member_id
        self._rebalance(now_ms)

    def _join_again(self, member: Member, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        same = member.protocols == joining.protocols
        is_leader = member.member_id == self.leader
        member.heard_of(now_ms)
        if same and (self.state is State.COMPLETING or (self.state is State.STABLE and not is_leader)):
            member.take(joining)
            reply(self._joined(member))  # its answer was lost
            return
        member.take(joining)
        member.answer_join(JoinAnswer(Error.UNKNOWN_MEMBER_ID))  # it asked before, and has forgotten
        member.on_join = reply
        self._rebalance(now_ms)

    def _replace(self, old: Member, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        """A static member has come back and does not know its member id any more."""
        old.answer_join(JoinAnswer(Error.FENCED_INSTANCE_ID, old.member_id))
        old.answer_sync(SyncAnswer(Error.FENCED_INSTANCE_ID))
        del self.members[old.member_id]
        old_id, was_leader = old.member_id, old.member_id == self.leader
        same = old.metadata(self.protocol) == dict(joining.protocols).get(self.protocol or "")
        member = old
        member.member_id = self._new_member_id(joining.instance_id or joining.client_id)
        member.take(joining)
        member.heard_of(now_ms)
        self.members[member.member_id] = member
        self._static[joining.instance_id or ""] = member.member_id
        if was_leader:
            self.leader = member.member_id
        if self.state is State.STABLE and same and self._choose_protocol() == self.protocol:
            self.changed = True
            # Its assignment stands. A leader that cannot be told so would assign again: it is not told that it leads.
            skip = was_leader and joining.takes_skip
            reply(self._joined(member, leader=old_id if was_leader and not skip else None, skip_assignment=skip))
            return
        member.on_join = reply
        self._rebalance(now_ms)

    # Rebalancing ---------------------------------------------------------------------------------------------------

    def _rebalance(self, now_ms: int) -> None:
        """Begin a rebalance, unless one is being prepared; end it, if everyone has joined."""
        if self.state is not State.PREPARING:
            for member in self.members.values():
                member.answer_sync(SyncAnswer(Error.REBALANCE_IN_PROGRESS))
            self.state = State.PREPARING
            self._deadline_ms = now_ms + self._longest_rebalance_ms()
        self._complete_if_all_joined(now_ms)

    def _someone_left(self, now_ms: int) -> None:
        if self.state is State.PREPARING:
            self._complete_if_all_joined(now_ms)
        elif self.state is not State.EMPTY:
            self._rebalance(now_ms)

    def _complete_if_all_joined(self, now_ms: int) -> None:
        if not self._expected and all(member.on_join for member in self.members.values()):
            self._begin_generation(now_ms)

    def _time_is_up(self, now_ms: int) -> None:
        if self.state is State.PREPARING:
            self._expected.clear()
            for member in list(self.members.values()):
                # A static member keeps its place for as long as its session lasts.
                if member.on_join is None and member.instance_id is None:
                    self._remove(member)
            if self.members and not any(member.on_join for member in self.members.values()):
                self._deadline_ms = now_ms + self._longest_rebalance_ms()
                return
            self._begin_generation(now_ms)
            return
        for member in list(self.members.values()):
            if not member.synced:
                self._remove(member)
        self._deadline_ms = None
        self._rebalance(now_ms)

    def _begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self._deadline_ms = None
        if not self.members:
            self.state, self.protocol, self.leader = State.EMPTY, None, None
            self.changed = True
            return
        if self.leader not in self.members or self.members[self.leader].on_join is None:
            self.leader = next(m.member_id for m in self.members.values() if m.on_join is not None)
        self.protocol = self._choose_protocol()
        self.state = State.COMPLETING
        self._deadline_ms = now_ms + self._longest_rebalance_ms()
        for member in self.members.values():
            member.heard_of(now_ms)
            member.synced, member.assignment = False, b""
            member.answer_join(self._joined(member))

    def _assign(self, assignments: dict[str, bytes], now_ms: int) -> None:
        self.state = State.STABLE
        self._deadline_ms = None
        self.changed = True
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        for member in self.members.values():
            member.heard_of(now_ms)
            member.answer_sync(self._assignment_of(member))

    def _remove(self, member: Member) -> None:
        member.answer_join(JoinAnswer(Error.UNKNOWN_MEMBER_ID, member.member_id))
        member.answer_sync(SyncAnswer(Error.UNKNOWN_MEMBER_ID))
        del self.members[member.member_id]
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)

    # Who and what --------------------------------------------------------------------------------------------------

    def _member(self, member_id: str, instance_id: str | None) -> Member:
        if instance_id is not None:
            if instance_id not in self._static:
                raise KafkaError(Error.UNKNOWN_MEMBER_ID)
            if self._static[instance_id] != member_id:
                raise KafkaError(Error.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(Error.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def _member_of(self, generation: int, member_id: str, instance_id: str | None) -> Member:
        member = self._member(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(Error.ILLEGAL_GENERATION)
        return member

    def _joined(
        self,
        member: Member,
        *,
        leader: str | None = None,
        skip_assignment: bool = False,
    ) -> JoinAnswer:
        leader = leader or self.leader or ""
        everyone = self.members.values() if member.member_id == leader else ()
        return JoinAnswer(
            Error.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            leader,
            tuple((other.member_id, other.instance_id, other.metadata(self.protocol)) for other in everyone),
            skip_assignment,
        )

    def _assignment_of(self, member: Member) -> SyncAnswer:
        return SyncAnswer(Error.NONE, self.protocol_type, self.protocol, member.assignment)

    def _longest_rebalance_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @staticmethod
    def _spoken_by_all(members: Iterable[Member]) -> set[str]:
        return set.intersection(*({name for name, _ in member.protocols} for member in members))

    def _choose_protocol(self) -> str:
        """The protocol that most members like best among those that all speak."""
        shared = self._spoken_by_all(self.members.values())
        votes = Counter(
            next(name for name, _ in member.protocols if name in shared) for member in self.members.values()
        )
        return votes.most_common(1)[0][0]
