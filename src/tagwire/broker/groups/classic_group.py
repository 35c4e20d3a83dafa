"""One group of the classic protocol, as a state machine: no IO, and the time is told to it.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance --leader assigned--> Stable
    any but Empty --member joins anew, leaves, or is not heard of--> PreparingRebalance --nobody left--> Empty

Every completed rebalance is a *generation*; a member that speaks of another one is refused, so that what it does can
never mix with what its successors do. A rebalance waits for every known member, and for every client that was given
a member id and has not come back with it; at the latest it ends after the longest rebalance timeout among the members.

A static member (one with an instance id) is known by that id: restarted within its session timeout, it takes its old
place under a new member id without a rebalance, and whoever still uses the old member id is fenced.

An assignment, a group that nobody is left in, and a static member's new place are *proposed* first: the group is as it
was until it is told that what it proposes is stored, and meanwhile takes nothing but heartbeats and offsets. So what
it is, outside of a rebalance, is what a restart would find.

Source: KIP-62, KIP-345, KIP-394, Kafka's GroupCoordinator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from tagwire.broker.groups.membership import (
    GroupMetadata,
    Joining,
    JoinReply,
    JoinResult,
    Member,
    Protocols,
    State,
    SyncReply,
    SyncResult,
    differs,
)
from tagwire.errors import Error, KafkaError

MAX_MEMBERS = 1000
"""Members one group can have, those included that were given an id and have not come back with it."""

MAX_GROUP_BYTES = 16 << 20
"""What the members of one group may take in memory together, with their metadata and their assignments."""

ID_BYTES = 200
"""About what an id takes in memory that was given to a client which has not come back with it."""

STORE_AGAIN_MS = 30_000
"""When it is tried again to store that nobody is left in a group."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a group becomes once it is stored.

    Attributes:
        metadata: what is to be stored.
        adopt: makes the group what is stored now; called with the time.
        refuse: says why it could not be stored; called with an error and the time.
        held_bytes: how much memory it takes beside the group's own.
    """

    metadata: GroupMetadata
    adopt: Callable[[int], None]
    refuse: Callable[[Error, int], None]
    held_bytes: int = 0


class ClassicGroup:
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
        proposal: what is to be stored before anything but heartbeats and commits goes on; see `adopt` and `refuse`.
    """

    def __init__(self, group_id: str, new_member_id: Callable[[str], str]) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.proposal: Proposal | None = None
        self._new_member_id = new_member_id
        self._static: dict[str, str] = {}
        self._expected: dict[str, int] = {}
        self._deadline_ms: int | None = None

    def restore(
        self, stored: GroupMetadata, now_ms: int, spoken: Mapping[str, Protocols] = MappingProxyType({})
    ) -> None:
        """Take over what was stored of it; its members get their session timeouts anew. `spoken` is what they speak,
        by member id, where more is known than the group's protocol."""
        self.generation, self.protocol, self.leader = stored.generation, stored.protocol, stored.leader
        self.protocol_type = stored.protocol_type
        self.members = {
            member.member_id: Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                spoken.get(member.member_id, ((stored.protocol or "", member.subscription),)),
                now_ms + member.session_timeout_ms,
                member.assignment,
                synced=True,
            )
            for member in stored.members
        }
        self._static = {m.instance_id: m.member_id for m in self.members.values() if m.instance_id is not None}
        self.state = State.STABLE if self.members else State.EMPTY

    def adopt(self, now_ms: int) -> None:
        """Become what was proposed: it is stored."""
        self._proposed().adopt(now_ms)

    def refuse(self, error: Error, now_ms: int) -> None:
        """Stay what it is: what was proposed is not stored, and whoever waits for it is told `error`."""
        self._proposed().refuse(error, now_ms)

    def _proposed(self) -> Proposal:
        proposal, self.proposal = self.proposal, None
        if proposal is None:
            raise RuntimeError(f"group {self.group_id!r} has proposed nothing")
        return proposal

    def _check_free(self) -> None:
        if self.proposal is not None:
            raise RuntimeError(f"group {self.group_id!r} cannot go on before its proposal is stored or refused")

    @property
    def held_bytes(self) -> int:
        """About how much memory its members take, those included that were given an id, and what it proposes."""
        members = sum(member.held_bytes for member in self.members.values())
        expected = sum(ID_BYTES + len(member_id) for member_id in self._expected)
        return members + expected + (self.proposal.held_bytes if self.proposal is not None else 0)

    def growth_of(self, joining: Joining) -> int:
        """How many bytes more it would hold if a client joined so."""
        member_id = self._static.get(joining.instance_id or "", joining.member_id)
        before = self.members[member_id].held_bytes if member_id in self.members else 0
        return joining.held_bytes - before

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

    def begin_rebalance(self, now_ms: int) -> None:
        """Have every member join again."""
        self._check_free()
        self._rebalance(now_ms)

    def dissolve(self) -> None:
        """Tell whoever waits for a response to join again: the group goes on as another one."""
        for member in self.members.values():
            member.complete_join(JoinResult(Error.REBALANCE_IN_PROGRESS, member.member_id))
            member.complete_sync(SyncResult(Error.REBALANCE_IN_PROGRESS))

    def tick(self, now_ms: int) -> None:
        """Give up whoever was not heard of in time, and end a rebalance whose time is up."""
        self._check_free()
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

    # Requests of members -----------------------------------------------------------------------------------------

    def join(self, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        """A client joins, or joins again. The response may be given at once, or at a later call of any method."""
        self._check_free()
        try:
            self._check_joining(joining)
            if joining.member_id == "":
                self._join_without_id(joining, now_ms, reply)
            elif joining.instance_id is None and self._expected.pop(joining.member_id, None) is not None:
                self._add(joining.member_id, joining, now_ms, reply)
            else:
                self._join_again(self._member(joining.member_id, joining.instance_id), joining, now_ms, reply)
        except KafkaError as refusal:
            reply(JoinResult(refusal.error, joining.member_id))

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
        """A member requests its assignment; the leader brings everyone's. None for a protocol means it does not say."""
        self._check_free()
        try:
            member = self._member_of(generation, member_id, instance_id)
            if differs(protocol_type, self.protocol_type) or differs(protocol, self.protocol):
                raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
            if self.state is State.PREPARING:
                raise KafkaError(Error.REBALANCE_IN_PROGRESS)
        except KafkaError as refusal:
            reply(SyncResult(refusal.error))
            return
        member.heard_of(now_ms)
        member.synced = True
        if self.state is State.STABLE:
            self._expect_the_rest()
            reply(self._assignment_of(member))
            return
        member.complete_sync(SyncResult(Error.REBALANCE_IN_PROGRESS))  # its earlier request, which it has given up
        member.on_sync = reply
        if member_id == self.leader:
            self._propose_assignments(assignments, now_ms)

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
        self._check_free()
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

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        now_ms: int,
        *,
        in_transaction: bool = False,
    ) -> None:
        """Refuse offsets from one who has no right to commit them. Without a generation, anyone may while the group is
        empty, whatever else a client says that takes no part in groups.

        Args:
            in_transaction: which may go on between joining and the assignment: producers take REBALANCE_IN_PROGRESS for
                their end.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS.
        """
        if generation < 0 and self.state is State.EMPTY:
            return
        self._member_of(generation, member_id, instance_id).heard_of(now_ms)
        if self.state is State.COMPLETING and not in_transaction:
            raise KafkaError(Error.REBALANCE_IN_PROGRESS)

    # Joining -------------------------------------------------------------------------------------------------------

    def _check_joining(self, joining: Joining) -> None:
        spoken = {name for name, _ in joining.protocols}
        if not joining.protocol_type or not spoken:
            raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
        # What a member spoke before counts, too, also where it is the only one: it has to leave to speak another.
        members = self.members.values()
        if members and (joining.protocol_type != self.protocol_type or not spoken & self._spoken_by_all(members)):
            raise KafkaError(Error.INCONSISTENT_GROUP_PROTOCOL)
        growth = self.growth_of(joining)
        if growth > 0 and self.held_bytes + growth > MAX_GROUP_BYTES:
            raise KafkaError(Error.GROUP_MAX_SIZE_REACHED)

    def _join_without_id(self, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        if joining.instance_id is not None and joining.instance_id in self._static:
            self._replace(self.members[self._static[joining.instance_id]], joining, now_ms, reply)
            return
        if len(self.members) + len(self._expected) >= MAX_MEMBERS:
            raise KafkaError(Error.GROUP_MAX_SIZE_REACHED)
        member_id = self._new_member_id(joining.instance_id or joining.client_id)
        if joining.takes_id and joining.instance_id is None:
            self._expected[member_id] = now_ms + joining.session_timeout_ms
            reply(JoinResult(Error.MEMBER_ID_REQUIRED, member_id))
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
            reply(self._joined(member))  # its response was lost
            return
        member.take(joining)
        member.complete_join(JoinResult(Error.UNKNOWN_MEMBER_ID))  # its earlier request, which it has given up
        member.on_join = reply
        self._rebalance(now_ms)

    def _replace(self, old: Member, joining: Joining, now_ms: int, reply: JoinReply) -> None:
        """A static member has come back and does not know its member id any more."""
        member_id = self._new_member_id(joining.instance_id or joining.client_id)
        others = [member for member in self.members.values() if member is not old]
        # What it tells of itself may differ, as Kafka has it: a consumer tells its last generation, which is none now.
        if self.state is State.STABLE and self._choose_protocol([*others, joining]) == self.protocol:
            renamed = replace(
                old.stored(self.protocol, old.assignment),
                member_id=member_id,
                client_id=joining.client_id,
                client_host=joining.client_host,
                session_timeout_ms=joining.session_timeout_ms,
                rebalance_timeout_ms=joining.rebalance_timeout_ms,
                subscription=dict(joining.protocols).get(self.protocol or "", b""),
            )
            stored = [member.stored(self.protocol, member.assignment) for member in others]
            leader = member_id if old.member_id == self.leader else self.leader
            self.proposal = Proposal(
                GroupMetadata(self.generation, self.protocol_type, self.protocol, leader, (*stored, renamed)),
                partial(self._take_place, old, member_id, joining, reply),
                lambda error, _: reply(JoinResult(error, joining.member_id)),
                max(self.growth_of(joining), 0),
            )
            return
        old.complete_join(JoinResult(Error.FENCED_INSTANCE_ID, old.member_id))
        old.complete_sync(SyncResult(Error.FENCED_INSTANCE_ID))
        self._rename(old, member_id, joining, now_ms)
        old.on_join = reply
        self._rebalance(now_ms)

    def _take_place(self, member: Member, member_id: str, joining: Joining, reply: JoinReply, now_ms: int) -> None:
        old_id, was_leader = member.member_id, member.member_id == self.leader
        self._rename(member, member_id, joining, now_ms)
        # Its assignment stands. A leader that cannot be told so would assign again: it is not told that it leads.
        skip = was_leader and joining.takes_skip
        reply(self._joined(member, leader=old_id if was_leader and not skip else None, skip_assignment=skip))

    def _rename(self, member: Member, member_id: str, joining: Joining, now_ms: int) -> None:
        del self.members[member.member_id]
        if member.member_id == self.leader:
            self.leader = member_id
        member.member_id = member_id
        member.take(joining)
        member.heard_of(now_ms)
        self.members[member_id] = member
        self._static[joining.instance_id or ""] = member_id

    # Rebalancing ---------------------------------------------------------------------------------------------------

    def _rebalance(self, now_ms: int) -> None:
        """Begin a rebalance, unless one is being prepared; end it, if everyone has joined."""
        if self.state is not State.PREPARING:
            for member in self.members.values():
                member.complete_sync(SyncResult(Error.REBALANCE_IN_PROGRESS))
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
        self._deadline_ms = None
        if not self.members:
            empty = GroupMetadata(self.generation + 1, self.protocol_type)
            self.proposal = Proposal(empty, partial(self._be_empty, empty), self._be_empty_later)
            return
        self.generation += 1
        if self.leader not in self.members or self.members[self.leader].on_join is None:
            self.leader = next(m.member_id for m in self.members.values() if m.on_join is not None)
        self.protocol = self._choose_protocol()
        self.state = State.COMPLETING
        self._deadline_ms = now_ms + self._longest_rebalance_ms()
        for member in self.members.values():
            member.heard_of(now_ms)
            member.synced, member.assignment = False, b""
            member.complete_join(self._joined(member))

    def _be_empty(self, empty: GroupMetadata, now_ms: int) -> None:
        self.state, self.generation, self.protocol, self.leader = State.EMPTY, empty.generation, None, None

    def _be_empty_later(self, error: Error, now_ms: int) -> None:
        self._deadline_ms = now_ms + STORE_AGAIN_MS

    def _propose_assignments(self, assignments: dict[str, bytes], now_ms: int) -> None:
        given = {member_id: assignments.get(member_id, b"") for member_id in self.members}
        size = sum(map(len, given.values()))
        if self.held_bytes + size > MAX_GROUP_BYTES:
            self._assign_nothing(Error.UNKNOWN_SERVER_ERROR, now_ms)
            return
        stored = [member.stored(self.protocol, given[member.member_id]) for member in self.members.values()]
        metadata = GroupMetadata(self.generation, self.protocol_type, self.protocol, self.leader, tuple(stored))
        self.proposal = Proposal(metadata, partial(self._assign, given), self._assign_nothing, size)

    def _assign(self, assignments: dict[str, bytes], now_ms: int) -> None:
        self.state = State.STABLE
        self._expect_the_rest()
        for member in self.members.values():
            member.assignment = assignments[member.member_id]
        for member in self.members.values():
            member.heard_of(now_ms)
            member.complete_sync(self._assignment_of(member))

    def _expect_the_rest(self) -> None:
        """Who has not asked for its assignment still has to, by the end of the rebalance's time: what it has nobody
        would read."""
        if all(member.synced for member in self.members.values()):
            self._deadline_ms = None

    def _assign_nothing(self, error: Error, now_ms: int) -> None:
        """Tell whoever waits for an assignment what is wrong with it, and begin anew, as Kafka does."""
        for member in self.members.values():
            member.complete_sync(SyncResult(error))
        self._rebalance(now_ms)

    def _remove(self, member: Member) -> None:
        member.complete_join(JoinResult(Error.UNKNOWN_MEMBER_ID, member.member_id))
        member.complete_sync(SyncResult(Error.UNKNOWN_MEMBER_ID))
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
    ) -> JoinResult:
        leader = leader or self.leader or ""
        everyone = self.members.values() if member.member_id == leader else ()
        return JoinResult(
            Error.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            leader,
            tuple((other.member_id, other.instance_id, other.metadata(self.protocol)) for other in everyone),
            skip_assignment,
        )

    def _assignment_of(self, member: Member) -> SyncResult:
        return SyncResult(Error.NONE, self.protocol_type, self.protocol, member.assignment)

    def _longest_rebalance_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @staticmethod
    def _spoken_by_all(members: Iterable[Member | Joining]) -> set[str]:
        return set.intersection(*({name for name, _ in member.protocols} for member in members))

    def _choose_protocol(self, members: Iterable[Member | Joining] | None = None) -> str:
        """The protocol that most of its members, or of others, like best among those that all speak."""
        speakers: list[Member | Joining] = list(self.members.values() if members is None else members)
        shared = self._spoken_by_all(speakers)
        votes = Counter(next(name for name, _ in member.protocols if name in shared) for member in speakers)
        return votes.most_common(1)[0][0]
