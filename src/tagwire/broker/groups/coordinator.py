"""The groups of a broker, and what is requested of them: of classic ones, and of those of KIP-848.

Everything runs on the event loop, and is there again after a restart. A group may change its protocol while its
members go on: a classic one when a member of KIP-848 joins, one of KIP-848 when its last such member has gone, or when
it is empty and somebody joins by the classic protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar
from uuid import uuid4

from tagwire.broker.clock import monotonic_ms, wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups import classic_members, conversion, stored
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.consumer_changes import Change, deletes
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import JOINING
from tagwire.broker.groups.consumer_records import ConsumerGroupState, TopicsView
from tagwire.broker.groups.consumer_steps import NOBODY, Heartbeat, HeartbeatResult, Step
from tagwire.broker.groups.group_settings import GroupSettings
from tagwire.broker.groups.group_table import AnyGroup, Coordinated, new_member_id
from tagwire.broker.groups.membership import GroupMetadata, Joining, JoinReply, JoinResult, State, SyncResult
from tagwire.broker.groups.offset_commits import OffsetCommits, offset_records
from tagwire.broker.groups.stored_changes import StoredChange
from tagwire.broker.groups.subscriptions import subscribed_topics
from tagwire.broker.storage.batch import origin_of
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, UnsupportedVersionError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.records import Record, RecordBatch

logger = logging.getLogger("tagwire.broker")

Given = TypeVar("Given")

OFFSETS_RETENTION_MS = 7 * 86_400_000
"""Offsets of a group without members are forgotten this long after they were committed and the last member of a
classic group was gone, and those of topics that no member is subscribed to this long after they were committed, as
Kafka does by default (KIP-211)."""

MIN_SESSION_TIMEOUT_MS: Final = 1
MAX_SESSION_TIMEOUT_MS: Final = 1_800_000
"""How long a member of the classic protocol may be silent, in whichever group."""

STORE_AGAIN_MS: Final = 1000
"""When it is tried again to store what time has made of a group."""

LOOKED_AT_ONCE: Final = 100
"""How many groups are looked at for what is too old, before requests have their turn again."""

DEFAULTS: Final = GroupSettings()


class Groups(OffsetCommits):
    """Every group of one broker.

    Args:
        log: where they are stored.
        topics: the topics that there are.
        settings: the timeouts of members of KIP-848, and which groups may change their protocol.
        most: how many may exist at a time; the next one is refused.
        clock: milliseconds that only grow; what timeouts are measured by.
        most_bytes: how much memory they may take together: what would need more is refused.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        topics: TopicsView,
        settings: GroupSettings = DEFAULTS,
        *,
        most: int,
        clock: Callable[[], int] = monotonic_ms,
        most_bytes: int = 1 << 28,
    ) -> None:
        super().__init__(log, topics, settings, most, clock, most_bytes)

    # Starting and stopping -----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take over what is stored.

        Raises:
            StorageError: it cannot be read.
        """
        for batch in self._log.replay():
            try:
                self._take_batch(batch)
            except (DecodeError, UnsupportedVersionError) as error:
                raise StorageError(f"{self._log.name}, {batch!r}: {error}") from None
        now = self._clock()
        for entry in list(self._groups.values()):
            group = entry.group
            if isinstance(group, ConsumerGroup):
                group.restored(now)
                entry.stored = not group.is_nothing
                if group.is_nothing:
                    entry.group = ClassicGroup(group.group_id, new_member_id)
            self._count(entry)

    def start(self) -> None:
        """Let time pass for the groups that were loaded."""
        for entry in self._groups.values():
            self._arm(entry)

    async def close(self) -> None:
        """Finish what is being stored. Whoever waits for a response gets none."""
        self._closed = True
        for entry in self._groups.values():
            if entry.timer is not None:
                entry.timer.cancel()
        await self._serial.close()

    def _take_batch(self, batch: RecordBatch) -> None:
        origin = origin_of(batch, batch.data)
        if batch.is_control:
            if origin is not None and origin.marker is not None:
                self.end_transaction(origin.producer_id, committed=origin.marker.commit)
            return
        for record in batch.records():
            self._take(record, origin.producer_id if origin is not None and origin.transactional else None)

    def _take(self, record: Record, producer_id: int | None) -> None:
        found = stored.read_record(record)
        if found is None:
            return
        entry = self._groups.get(found.group_id)
        if isinstance(found, StoredChange):
            self._take_change(entry, found)
            return
        entry = entry or self._entry(found.group_id)
        if isinstance(found, stored.StoredGroup):
            self._take_classic(entry, found)
        elif found.offset is None:
            entry.offsets.delete([found.partition])
        elif producer_id is None:
            entry.offsets.commit({found.partition: found.offset})
        else:
            self._prepare(found.group_id, producer_id, {found.partition: found.offset})

    def _take_classic(self, entry: Coordinated, found: stored.StoredGroup) -> None:
        metadata = found.metadata
        if isinstance(entry.group, ConsumerGroup):
            if metadata is None:
                return  # it became one of KIP-848, and goes on as that
            entry.group = ClassicGroup(entry.group.group_id, new_member_id)
        entry.stored, entry.stored_ms = metadata is not None, found.stored_ms
        entry.group.restore(metadata or GroupMetadata(), self._clock())

    def _take_change(self, entry: Coordinated | None, found: StoredChange) -> None:
        if deletes(found.change) and (entry is None or isinstance(entry.group, ClassicGroup)):
            return
        entry = entry or self._entry(found.group_id)
        if isinstance(entry.group, ClassicGroup):
            entry.group = self._new_consumer_group(found.group_id)
        entry.group.apply([found.change])

    def _new_consumer_group(self, group_id: str) -> ConsumerGroup:
        settings = self.settings
        return ConsumerGroup(
            group_id, self._topics, settings.session_timeout_ms, takes_rejoining=settings.takes_rejoining
        )

    # Members of KIP-848 --------------------------------------------------------------------------------------------

    async def consumer_heartbeat(self, group_id: str, beat: Heartbeat) -> HeartbeatResult:
        """A member of KIP-848 joins, says that it is there, or leaves. What that changes is stored when this returns.

        Raises:
            KafkaError: as `ConsumerGroup.heartbeat`; GROUP_ID_NOT_FOUND: there is no such group, or it is a classic one
                that may not change; COORDINATOR_NOT_AVAILABLE: it could not be stored, or there is too much already.
        """
        return await self._serial.run(group_id, self._consumer_heartbeat(group_id, beat))

    async def _consumer_heartbeat(self, group_id: str, beat: Heartbeat) -> HeartbeatResult:
        entry = self._groups.get(group_id)
        if entry is not None and isinstance(entry.group, ConsumerGroup):
            return await self._take_step(entry.group, entry.group.heartbeat(beat))
        if beat.epoch != JOINING:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r} of KIP-848")
        group = self._new_consumer_group(group_id)
        before: list[Record] = []
        changes: list[Change] = []
        if entry is not None:
            before = [stored.no_group_record(group_id, wall_ms())] if entry.stored else []
            changes = self._upgraded(entry)
            group.apply(changes)
        step = group.heartbeat(beat)
        self._check_room(group_id, group.held_bytes)
        return await self._take_step(group, step, [*before, *stored.change_records(group_id, changes)])

    def _upgraded(self, entry: Coordinated) -> list[Change]:
        group = entry.group
        if entry.is_empty or not isinstance(group, ClassicGroup):
            return []
        if not self.settings.may_upgrade:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"group {group.group_id!r} is a classic one, and stays so")
        return conversion.upgraded(group, self._topics)

    async def _take_step(self, group: ConsumerGroup, step: Step[Given], before: Sequence[Record] = ()) -> Given:
        """Store what a step changes, and let the group become that, in the place of a classic one if need be."""
        if step.gone and self._becomes_classic(group, step.gone):
            await self._downgrade(group, step.gone)
            return step.result
        await self._store_changes(group, step.changes, before)
        entry, now = self._entry(group.group_id), self._clock()
        entry.stored = not group.is_nothing
        if entry.group is not group:
            if isinstance(entry.group, ClassicGroup):
                entry.group.dissolve()
            entry.group = group
            for member in group.members.values():
                group.heard_of(member, now)
        step.then(now)
        self._count(entry)
        self._arm(entry)
        if self._becomes_classic(group, NOBODY):  # a static member goes on as a classic one
            try:
                await self._downgrade(group, NOBODY)
            except KafkaError as error:  # it is tried again at the next step
                logger.error("group %s: %s", told(group.group_id), error)
        return step.result

    def _becomes_classic(self, group: ConsumerGroup, gone: frozenset[str]) -> bool:
        return self.settings.may_downgrade and group.is_classic_without(gone)

    async def _downgrade(self, group: ConsumerGroup, gone: frozenset[str]) -> None:
        """Let the members of a group go on in a classic one, but those that are gone.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: that could not be stored.
        """
        metadata, spoken = conversion.downgraded(group, gone)
        group_id, now = group.group_id, wall_ms()
        records = stored.change_records(group_id, group.tombstones())
        await self._log.append([*records, stored.group_record(group_id, metadata, now)])
        entry, classic = self._entry(group_id), ClassicGroup(group_id, new_member_id)
        classic.restore(metadata, self._clock(), spoken)
        if gone or group.state is not ConsumerGroupState.STABLE:
            classic.begin_rebalance(self._clock())
        entry.group, entry.stored_ms = classic, now
        self._count(entry)
        self._arm(entry)

    async def _become_classic(self, entry: Coordinated, group: ConsumerGroup) -> None:
        """Let an empty group of KIP-848 go, for a classic one of its name."""
        await self._log.append(stored.change_records(group.group_id, group.tombstones()))
        entry.group, entry.stored = ClassicGroup(group.group_id, new_member_id), False

    # Members of the classic protocol -------------------------------------------------------------------------------

    async def join(self, group_id: str, joining: Joining) -> JoinResult:
        """A client joins. The response may take as long as a rebalance."""
        if not group_id:
            return JoinResult(Error.INVALID_GROUP_ID, joining.member_id)
        if not MIN_SESSION_TIMEOUT_MS <= joining.session_timeout_ms <= MAX_SESSION_TIMEOUT_MS:
            return JoinResult(Error.INVALID_SESSION_TIMEOUT, joining.member_id)
        future: asyncio.Future[JoinResult] = asyncio.get_running_loop().create_future()
        await self._serial.run(group_id, self._join(group_id, joining, partial(_give, future)))
        return await future

    async def _join(self, group_id: str, joining: Joining, reply: JoinReply) -> None:
        entry = self._groups.get(group_id)
        if entry is None and joining.member_id:
            reply(JoinResult(Error.UNKNOWN_MEMBER_ID, joining.member_id))
            return
        try:
            if entry is not None and isinstance(entry.group, ConsumerGroup):
                if not entry.group.members and joining.member_id:
                    raise KafkaError(Error.UNKNOWN_MEMBER_ID)
                if entry.group.members:
                    step = classic_members.join(entry.group, joining, str(uuid4()))
                    reply(await self._take_step(entry.group, step))
                    return
                await self._become_classic(entry, entry.group)
                self._count(entry)
            self._check_room(group_id, _growth(self._groups.get(group_id), joining))
        except KafkaError as refusal:
            reply(JoinResult(refusal.error, joining.member_id))
            return
        entry = self._entry(group_id)
        assert isinstance(entry.group, ClassicGroup)
        entry.group.join(joining, self._clock(), reply)
        await self._settle(entry)

    async def sync(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        assignments: dict[str, bytes],
    ) -> SyncResult:
        """A member's request for its assignment. The response comes when the leader has assigned."""
        if not group_id:
            return SyncResult(Error.INVALID_GROUP_ID)
        future: asyncio.Future[SyncResult] = asyncio.get_running_loop().create_future()

        def sync(group: AnyGroup) -> None:
            said = member_id, instance_id, generation, protocol_type, protocol
            if isinstance(group, ClassicGroup):
                group.sync(*said, assignments, self._clock(), partial(_give, future))
                return
            try:
                _give(future, classic_members.sync(group, *said, self._clock()))
            except KafkaError as refusal:
                _give(future, SyncResult(refusal.error))

        if not await self._serial.run(group_id, self._sync(group_id, sync)):
            return SyncResult(Error.UNKNOWN_MEMBER_ID)
        return await future

    async def _sync(self, group_id: str, sync: Callable[[AnyGroup], None]) -> bool:
        entry = self._groups.get(group_id)
        if entry is None:
            return False
        sync(entry.group)
        if isinstance(entry.group, ClassicGroup):
            await self._settle(entry)
        else:
            self._arm(entry)
        return True

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> Error:
        """A member says that it is there."""
        entry = self._groups.get(group_id)
        if entry is None:
            return Error.UNKNOWN_MEMBER_ID if group_id else Error.INVALID_GROUP_ID
        if isinstance(entry.group, ClassicGroup):
            return entry.group.heartbeat(member_id, instance_id, generation, self._clock())
        try:
            error = classic_members.heartbeat(entry.group, member_id, instance_id, generation, self._clock())
        except KafkaError as refusal:
            return refusal.error
        self._arm(entry)
        return error

    async def leave(self, group_id: str, member_id: str, instance_id: str | None) -> Error:
        """As `leave_all`, of one member."""
        (error,) = await self.leave_all(group_id, [(member_id, instance_id)])
        return error

    async def leave_all(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[Error]:
        """Members, by their ids and instance ids, leave, or are made to: together, so that others hear of it once. That
        nobody is left is stored when this returns, or said not to be."""
        if not group_id:
            return [Error.INVALID_GROUP_ID] * len(members)
        return await self._serial.run(group_id, self._leave(group_id, members))

    async def _leave(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[Error]:
        entry = self._groups.get(group_id)
        if entry is None or isinstance(entry.group, ClassicGroup):
            return [await self._leave_classic(group_id, *member) for member in members]
        step = classic_members.leave(entry.group, members)
        if not step.gone:
            return step.result
        try:
            return await self._take_step(entry.group, step)
        except KafkaError as refusal:
            return [error or refusal.error for error in step.result]

    async def _leave_classic(self, group_id: str, member_id: str, instance_id: str | None) -> Error:
        entry = self._groups.get(group_id)
        if entry is None:  # maybe since the last one left
            return Error.UNKNOWN_MEMBER_ID
        assert isinstance(entry.group, ClassicGroup)
        error = entry.group.leave(member_id, instance_id, self._clock())
        refused = await self._settle(entry)
        return error or refused

    # The groups themselves -----------------------------------------------------------------------------------------

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_NOT_AVAILABLE.
        """
        await self._serial.run(group_id, self._delete(group_id))

    async def _delete(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        was_emptied = group_id in self._emptied
        self._emptied.discard(group_id)
        if entry is None and was_emptied:
            return
        if entry is None:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND)
        if not entry.is_empty:
            raise KafkaError(Error.NON_EMPTY_GROUP)
        await self._forget(entry)

    async def _forget(self, entry: Coordinated) -> None:
        """Delete what there is of an empty group; what is committed meanwhile stays, here and on the disk."""
        group_id, partitions = entry.group.group_id, entry.offsets.partitions()
        records = offset_records(group_id, dict.fromkeys(partitions))
        if entry.stored and isinstance(entry.group, ClassicGroup):
            records.append(stored.no_group_record(group_id, wall_ms()))
        elif isinstance(entry.group, ConsumerGroup):
            records += stored.change_records(group_id, entry.group.tombstones())
        await self._log.append(records)
        found = self._groups.get(group_id)  # another one, if its offsets were deleted and others committed meanwhile
        if found is not None:
            found.offsets.delete(partitions)
            found.stored = False
            found.group = ClassicGroup(group_id, new_member_id)
            self._count(found)

    async def expire(self) -> None:
        """Forget what is too old: offsets of what no member wants, and groups that have nothing left."""
        self._emptied.clear()
        for number, (group_id, entry) in enumerate(list(self._groups.items()), 1):
            if number % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not _expired_offsets(entry) and not _is_left_over(entry):
                continue  # as nearly all of them, each minute: a task takes ten times as long as the look
            try:
                await self._serial.run(group_id, self._expire(group_id))
            except KafkaError as error:
                logger.error("group %s: %s", told(group_id), error)

    async def _expire(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        if entry is None:
            return
        old = _expired_offsets(entry)
        if old and group_id not in self._coming:  # one that is being stored may take the place of what is too old
            await self._delete_offsets(group_id, old)
        if _is_left_over(entry):
            await self._forget(entry)

    # Time ----------------------------------------------------------------------------------------------------------

    async def _tick(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        if entry is None:
            return
        group = entry.group
        if isinstance(group, ClassicGroup):
            group.tick(self._clock())
            await self._settle(entry)
            return
        try:
            while isinstance(group, ConsumerGroup) and (step := group.tick(self._clock())) is not None:
                await self._take_step(group, step)
                group = entry.group
        except KafkaError as error:
            logger.error("group %s: %s", told(group_id), error)
            if isinstance(group, ConsumerGroup):
                group.postpone(self._clock() + STORE_AGAIN_MS)
        self._arm(entry)


def _expired_offsets(entry: Coordinated) -> list[TopicPartition]:
    """The partitions whose offsets are too old: of a group without members, or of topics that no member wants any more
    (KIP-211; ClassicGroup.offsetExpirationCondition)."""
    now_ms = wall_ms()
    before_ms = now_ms - OFFSETS_RETENTION_MS
    if entry.is_empty:
        return entry.offsets.expired(now_ms, before_ms if entry.emptied_ms < before_ms else 0)
    if isinstance(entry.group, ClassicGroup) and entry.group.state is not State.STABLE:
        return []
    old = entry.offsets.expired(now_ms, before_ms)
    wanted = subscribed_topics(entry.group) if old else None
    return [] if wanted is None else [partition for partition in old if partition.topic not in wanted]


def _is_left_over(entry: Coordinated) -> bool:
    """Whether a group has neither members nor offsets any more, and still stands on the disk."""
    return entry.is_empty and entry.stored and entry.is_idle and not entry.offsets


def _growth(entry: Coordinated | None, joining: Joining) -> int:
    """How many bytes more a group would hold if a client joined so."""
    if entry is None or not isinstance(entry.group, ClassicGroup):
        return joining.held_bytes
    return entry.group.growth_of(joining)


def _give(future: asyncio.Future[Given], response: Given) -> None:
    if not future.done():  # whoever waited may have gone
        future.set_result(response)
