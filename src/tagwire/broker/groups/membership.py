"""A group's members, the results of JoinGroup and SyncGroup, and the metadata that is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tagwire.errors import Error

Protocols = tuple[tuple[str, bytes], ...]

MEMBER_BYTES = 1000
"""About what a member takes in memory beside its strings and bytes."""


class State(Enum):
    """Where a group stands. The values are the names that DescribeGroups and ListGroups tell."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Joining:
    """What a client says when it joins.

    Attributes:
        member_id: the id it was given before; "" for none.
        instance_id: its own name that outlives restarts (static membership); None for none.
        client_id, client_host: who it is, for whoever describes the group.
        session_timeout_ms: how long it may be silent.
        rebalance_timeout_ms: how long it may take to join again, and then to synchronize.
        protocol_type, protocols: what it can take part in, best first: (name, the bytes its leader gets).
        takes_id: whether it may be told its id first, and has to come back with it (JoinGroup from version 4).
        takes_skip: whether a leader can be told not to assign (JoinGroup from version 9).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    takes_id: bool = True
    takes_skip: bool = True

    @property
    def held_bytes(self) -> int:
        """About how much memory a member takes that joins so, before it is assigned anything."""
        texts = len(self.member_id) + len(self.instance_id or "") + len(self.client_id) + len(self.client_host)
        return MEMBER_BYTES + texts + sum(len(name) + len(data) for name, data in self.protocols)


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The outcome of joining. `members` has (member id, instance id, metadata) of all, for the leader alone."""

    error: Error = Error.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The outcome of synchronizing: the member's assignment."""

    error: Error = Error.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member as it is stored: `subscription` is what it told about itself for the group's protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group as it is stored, between two rebalances."""

    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[MemberMetadata, ...] = ()


def differs(said: str | None, chosen: str | None) -> bool:
    """Whether a member takes another protocol, or type of one, to be chosen than is. None where it does not say, or
    nothing is chosen yet; "" says something."""
    return said is not None and chosen is not None and said != chosen


JoinReply = Callable[[JoinResult], None]
SyncReply = Callable[[SyncResult], None]


@dataclass(slots=True)
class Member:
    """One member of a group.

    Attributes:
        expires_ms: when it is given up unless it is heard of; it does not count while a response is due to it.
        assignment: what the leader assigned to it in this generation.
        on_join, on_sync: where the response goes that is due to it.
        synced: whether it sent SyncGroup in this generation.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    expires_ms: int
    assignment: bytes = b""
    on_join: JoinReply | None = field(default=None, repr=False)
    on_sync: SyncReply | None = field(default=None, repr=False)
    synced: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether a response is due to it."""
        return self.on_join is not None or self.on_sync is not None

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        texts = len(self.member_id) + len(self.instance_id or "") + len(self.client_id) + len(self.client_host)
        payload = sum(len(name) + len(data) for name, data in self.protocols)
        return MEMBER_BYTES + texts + payload + len(self.assignment)

    def stored(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        """It, as it is stored in a group of `protocol` with an assignment."""
        return MemberMetadata(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.metadata(protocol),
            assignment,
        )

    def heard_of(self, now_ms: int) -> None:
        self.expires_ms = now_ms + self.session_timeout_ms

    def metadata(self, protocol: str | None) -> bytes:
        """What it told about itself for `protocol`; b"" when it does not speak it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def take(self, joining: Joining) -> None:
        """Take over what it said when it joined again."""
        self.client_id, self.client_host = joining.client_id, joining.client_host
        self.session_timeout_ms = joining.session_timeout_ms
        self.rebalance_timeout_ms = joining.rebalance_timeout_ms
        self.protocols = joining.protocols

    def complete_join(self, response: JoinResult) -> None:
        """Give the response that is due to its joining, if one is."""
        reply, self.on_join = self.on_join, None
        if reply is not None:
            reply(response)

    def complete_sync(self, response: SyncResult) -> None:
        """Give the response that is due to its synchronizing, if one is."""
        reply, self.on_sync = self.on_sync, None
        if reply is not None:
            reply(response)
