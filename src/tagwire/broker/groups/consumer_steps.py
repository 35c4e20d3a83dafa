"""What members of KIP-848 say and are told, and the steps that a group takes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from tagwire.broker.groups.consumer_changes import Change
from tagwire.broker.groups.consumer_member import JOINING, Partitions

Result = TypeVar("Result")


NOBODY: Final[frozenset[str]] = frozenset()


def every_topic(name: str) -> bool:
    """What a member sees where nobody is kept from anything."""
    return True


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a member says in a ConsumerGroupHeartbeat; None where it does not say, and all is as before.

    Attributes:
        epoch: the member's; or JOINING, LEAVING, LEAVING_STATIC.
        rebalance_timeout_ms: -1 where it does not say.
        owned: the partitions that it has.
        sees: whether it may describe a topic: what a regular expression stands for is among these.
        acl_version: another one whenever `sees` may say something else.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    sees: Callable[[str], bool] = field(default=every_topic, compare=False)
    acl_version: int = field(default=0, compare=False)

    @property
    def is_full(self) -> bool:
        """Whether it says all that there is to say, as one does that joins, or that does not know what was heard."""
        subscribes = self.topics is not None or self.regex is not None
        return self.epoch == JOINING or (self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None)


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """What a member is told: `assigned` is None where nothing is new."""

    member_id: str
    epoch: int
    assigned: Partitions | None = None


@dataclass(slots=True)
class Step(Generic[Result]):
    """What a request or time makes of a group.

    Attributes:
        result: what to tell whoever requested it, once the changes are stored.
        changes: what is to be stored.
        gone: the ids of the members that are none any more.
        then: what else is done once it is, with the time: what a restart need not know.
    """

    result: Result
    changes: list[Change] = field(default_factory=list)
    gone: frozenset[str] = NOBODY
    then: Callable[[int], None] = lambda now_ms: None
