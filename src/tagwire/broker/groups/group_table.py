"""The table of a broker's groups: found by name, stored in __consumer_offsets, kept within bounds, woken by time.

What members request of a group, and what time does to it, is done one step at a time: what a step proposes is stored
before the group becomes it, and requests that come meanwhile wait.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from tagwire.broker.clock import monotonic_ms, wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups import stored
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.consumer_changes import Change
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.membership import State
from tagwire.broker.groups.offsets import GroupOffsets
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.errors import Error, KafkaError, TagwireError
from tagwire.escaping import told
from tagwire.records import Record

logger = logging.getLogger("tagwire.broker")

GROUP_BYTES = 2000
"""About what a group takes in memory beside its members and offsets."""

MAX_NAME_IN_A_MEMBER_ID = 200

AnyGroup = ClassicGroup | ConsumerGroup


class Coordinated:
    """A group, its offsets, its timer, whether there is a record of it and when that was written, and what of it is
    counted as held."""

    def __init__(self, group: AnyGroup) -> None:
        self.group = group
        self.offsets = GroupOffsets()
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        self.stored = False
        self.stored_ms = -1
        self.counted_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        group = self.group
        return group.state is State.EMPTY if isinstance(group, ClassicGroup) else not group.members

    @property
    def is_idle(self) -> bool:
        """Whether nobody is a member, or could become one with an id that was given."""
        return self.is_empty and (not isinstance(self.group, ClassicGroup) or self.group.is_idle)

    @property
    def emptied_ms(self) -> int:
        """When the last member of a classic group was gone; -1 for unknown, as where it never had one."""
        return self.stored_ms if self.stored and self.is_empty and isinstance(self.group, ClassicGroup) else -1

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is left of it, in memory or stored."""
        return self.is_idle and not self.stored and not self.offsets


class GroupTable(ABC):
    """Every group of one broker, and what they take.

    Args:
        log: where they are stored.
        most: how many may exist at a time; the next one is refused.
        clock: milliseconds that only grow; what timeouts are measured by.
        most_bytes: how much memory they may take together: what would need more is refused.

    Attributes:
        held_bytes: about how much memory they take.
    """

    def __init__(
        self, log: CoordinatorLog, most: int, clock: Callable[[], int] = monotonic_ms, most_bytes: int = 1 << 28
    ) -> None:
        self._log = log
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._groups: dict[str, Coordinated] = {}
        self._serial = SerialTasks()
        self._closed = False
        # Of what is being stored: whose it is, and what it will take.
        self._coming: Counter[str] = Counter()
        self._coming_bytes = 0
        self.held_bytes = 0

    def __iter__(self) -> Iterator[AnyGroup]:
        return iter([entry.group for _, entry in sorted(self._groups.items())])

    def get(self, group_id: str) -> AnyGroup | None:
        entry = self._groups.get(group_id)
        return entry.group if entry else None

    def offsets(self, group_id: str) -> GroupOffsets:
        """What a group has committed; nothing, if there is no such group."""
        entry = self._groups.get(group_id)
        return entry.offsets if entry else GroupOffsets()

    def _entry(self, group_id: str) -> Coordinated:
        entry = self._groups.get(group_id)
        if entry is None:
            entry = self._groups[group_id] = Coordinated(ClassicGroup(group_id, new_member_id))
        return entry

    # Room ----------------------------------------------------------------------------------------------------------

    def _check_room(self, group_id: str, growth: int) -> None:
        """Refuse a group too many, and `growth` bytes too much: KafkaError COORDINATOR_NOT_AVAILABLE."""
        if group_id not in self._groups and group_id not in self._coming:
            count = len(self._groups) + sum(1 for coming in self._coming if coming not in self._groups)
            if count >= self._most:
                raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, f"there are {self._most} groups")
        held = self.held_bytes + self._coming_bytes
        if growth > 0 and held + growth > self._most_bytes:
            problem = f"groups hold {held} bytes, and may hold {self._most_bytes}: no room for {growth} more"
            logger.info("group %s: %s", told(group_id), problem)
            raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, problem)

    @contextmanager
    def _room_for(self, group_id: str, growth: int) -> Iterator[None]:
        """Room for what is being stored, as `_check_room`."""
        self._check_room(group_id, growth)
        growth = max(growth, 0)
        self._coming[group_id] += 1
        self._coming_bytes += growth
        try:
            yield
        finally:
            self._coming_bytes -= growth
            self._coming[group_id] -= 1
            if not self._coming[group_id]:
                del self._coming[group_id]

    def _count(self, entry: Coordinated) -> None:
        """See how much a group holds now, and let go of one of which nothing is left."""
        group = entry.group
        if self._groups.get(group.group_id) is not entry:
            return
        held = GROUP_BYTES + len(group.group_id) + group.held_bytes + entry.offsets.held_bytes
        if entry.is_nothing:
            held = 0
            del self._groups[group.group_id]
            if entry.timer is not None:
                entry.timer.cancel()
        self.held_bytes += held - entry.counted_bytes
        entry.counted_bytes = held

    # Storing -------------------------------------------------------------------------------------------------------

    async def _settle(self, entry: Coordinated) -> Error:
        """Store what a classic group proposes, and let it become that; or tell it, and the caller, why it cannot."""
        refused = Error.NONE
        group = entry.group
        assert isinstance(group, ClassicGroup)
        while (proposal := group.proposal) is not None:
            group_id = group.group_id
            try:
                self._check_room(group_id, proposal.held_bytes)
                self._count(entry)
                now = wall_ms()
                await self._log.append([stored.group_record(group_id, proposal.metadata, now)])
            except TagwireError as error:
                logger.error("group %s: %s", told(group_id), error)
                refused = error.error if isinstance(error, KafkaError) else Error.UNKNOWN_SERVER_ERROR
                group.refuse(refused, self._clock())
            else:
                entry.stored, entry.stored_ms = True, now
                group.adopt(self._clock())
        self._count(entry)
        self._arm(entry)
        return refused

    async def _store_changes(self, group: ConsumerGroup, changes: Sequence[Change], before: Sequence[Record]) -> None:
        """Store changes of a group of KIP-848, and other records before them, in one batch; the group then becomes it.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored, or there is too much already;
                GROUP_MAX_SIZE_REACHED: too much in this group.
        """
        if changes or before:
            group_id = group.group_id
            with self._room_for(group_id, group.check_growth(changes)):
                await self._log.append([*before, *stored.change_records(group_id, changes)])
            group.apply(changes)

    # Time ----------------------------------------------------------------------------------------------------------

    def _arm(self, entry: Coordinated) -> None:
        """See to it that the group is told when its next deadline has come. A timer that is early does no harm."""
        deadline = entry.group.next_deadline_ms
        if self._closed or deadline is None or (entry.timer is not None and entry.timer_ms <= deadline):
            return
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer_ms = deadline
        pause = max(deadline - self._clock(), 1) / 1000
        entry.timer = asyncio.get_running_loop().call_later(pause, self._ring, entry)

    def _ring(self, entry: Coordinated) -> None:
        entry.timer = None
        group_id = entry.group.group_id
        self._serial.submit(group_id, self._tick(group_id))

    @abstractmethod
    async def _tick(self, group_id: str) -> None:
        """Do what time makes due of a group."""


def new_member_id(name: str) -> str:
    """A member id that no other member of any group has, from a client or instance id."""
    return f"{name[:MAX_NAME_IN_A_MEMBER_ID]}-{uuid4()}"
