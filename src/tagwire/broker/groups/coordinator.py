"""The groups of a broker: found by name, kept by time, stored in __consumer_offsets, and there again after a restart.

Everything runs on the event loop. What members request of a group, and what time does to it, is done one step at
a time: what a step proposes is stored before the group becomes it, and requests that come meanwhile wait. Offsets need
not wait for each other: they are noted in the order in which they are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import partial
from typing import TypeVar
from uuid import uuid4

from tagwire.broker.clock import monotonic_ms, wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups import stored
from tagwire.broker.groups.group import Group
from tagwire.broker.groups.membership import GroupMetadata, Joining, JoinReply, JoinResult, State, SyncResult
from tagwire.broker.groups.offsets import GroupOffsets, OffsetAndMetadata
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.batch import origin_of
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, TagwireError, UnsupportedVersionError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.records import BatchOptions, Record, RecordBatch, write

logger = logging.getLogger("tagwire.broker")

Given = TypeVar("Given")

OFFSETS_RETENTION_MS = 7 * 86_400_000
"""Offsets of a group without members are forgotten this long after they were committed, as Kafka does by default."""


GROUP_BYTES = 2000
"""About what a group takes in memory beside its members and offsets."""

MOST_EMPTIED = 1000
"""How many groups are remembered whose last offsets were deleted."""

MAX_NAME_IN_A_MEMBER_ID = 200


class _Coordinated:
    """A group, its offsets, its timer, whether there is a record of it, and what of it is counted as held."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.offsets = GroupOffsets()
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        self.stored = False
        self.counted_bytes = 0

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is left of it, in memory or stored."""
        group = self.group
        return group.state is State.EMPTY and group.is_idle and not self.stored and not self.offsets


class Groups:
    """Every group of one broker.

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
        self._groups: dict[str, _Coordinated] = {}
        self._emptied: set[str] = set()
        self._serial = SerialTasks()
        self._closed = False
        self._in_transactions: dict[int, set[str]] = {}
        # Of offsets that are being stored: whose they are, and what they will take.
        self._coming: Counter[str] = Counter()
        self._coming_bytes = 0
        self._may_miss_topics = True
        self.held_bytes = 0

    def __iter__(self) -> Iterator[Group]:
        return iter([entry.group for _, entry in sorted(self._groups.items())])

    def get(self, group_id: str) -> Group | None:
        entry = self._groups.get(group_id)
        return entry.group if entry else None

    def offsets(self, group_id: str) -> GroupOffsets:
        """What a group has committed; nothing, if there is no such group."""
        entry = self._groups.get(group_id)
        return entry.offsets if entry else GroupOffsets()

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
        for entry in list(self._groups.values()):
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
        entry = self._entry(found.group_id)
        if isinstance(found, stored.StoredGroup):
            entry.stored = found.metadata is not None
            entry.group.restore(found.metadata or GroupMetadata(), self._clock())
        elif found.offset is None:
            entry.offsets.delete([found.partition])
        elif producer_id is None:
            entry.offsets.commit({found.partition: found.offset})
        else:
            self._prepare(found.group_id, producer_id, {found.partition: found.offset})

    # Members -------------------------------------------------------------------------------------------------------

    async def join(self, group_id: str, joining: Joining) -> JoinResult:
        """A client joins. The response may take as long as a rebalance."""
        if not group_id:
            return JoinResult(Error.INVALID_GROUP_ID, joining.member_id)
        future: asyncio.Future[JoinResult] = asyncio.get_running_loop().create_future()
        await self._serial.run(group_id, self._join(group_id, joining, partial(_give, future)))
        return await future

    async def _join(self, group_id: str, joining: Joining, reply: JoinReply) -> None:
        entry = self._groups.get(group_id)
        if entry is None and joining.member_id:
            reply(JoinResult(Error.UNKNOWN_MEMBER_ID, joining.member_id))
            return
        try:
            self._check_room(group_id, entry.group.growth_of(joining) if entry is not None else joining.held_bytes)
        except KafkaError as refusal:
            reply(JoinResult(refusal.error, joining.member_id))
            return
        entry = self._entry(group_id)
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

        def sync(group: Group) -> None:
            group.sync(
                member_id,
                instance_id,
                generation,
                protocol_type,
                protocol,
                assignments,
                self._clock(),
                partial(_give, future),
            )

        if not await self._serial.run(group_id, self._sync(group_id, sync)):
            return SyncResult(Error.UNKNOWN_MEMBER_ID)
        return await future

    async def _sync(self, group_id: str, sync: Callable[[Group], None]) -> bool:
        entry = self._groups.get(group_id)
        if entry is None:
            return False
        sync(entry.group)
        await self._settle(entry)
        return True

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> Error:
        """A member says that it is there."""
        entry = self._groups.get(group_id)
        if entry is None:
            return Error.UNKNOWN_MEMBER_ID if group_id else Error.INVALID_GROUP_ID
        return entry.group.heartbeat(member_id, instance_id, generation, self._clock())

    async def leave(self, group_id: str, member_id: str, instance_id: str | None) -> Error:
        """A member leaves, or is made to. That nobody is left is stored when this returns, or said not to be."""
        if not group_id:
            return Error.INVALID_GROUP_ID
        return await self._serial.run(group_id, self._leave(group_id, member_id, instance_id))

    async def _leave(self, group_id: str, member_id: str, instance_id: str | None) -> Error:
        entry = self._groups.get(group_id)
        if entry is None:
            return Error.UNKNOWN_MEMBER_ID
        error = entry.group.leave(member_id, instance_id, self._clock())
        refused = await self._settle(entry)
        return error or refused

    # Offsets -------------------------------------------------------------------------------------------------------

    def check_commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Refuse a commit by one who has no right to it.

        Raises:
            KafkaError: as `Group.check_commit`; INVALID_GROUP_ID; ILLEGAL_GENERATION when there is no such group.
        """
        if not group_id:
            raise KafkaError(Error.INVALID_GROUP_ID)
        entry = self._groups.get(group_id)
        if entry is not None:
            entry.group.check_commit(member_id, instance_id, generation, self._clock())
        elif generation >= 0:
            raise KafkaError(Error.ILLEGAL_GENERATION)

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Store offsets that may be committed.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored, or there is too much already.
        """
        await self._serial.run_concurrently(self._commit(group_id, offsets))

    async def _commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            return
        with self._room_for(group_id, self.offsets(group_id).growth_of(offsets)):
            await self._log.append(_offset_records(group_id, offsets))
        entry = self._entry(group_id)
        entry.offsets.commit(offsets)
        self._count(entry)

    async def commit_in_transaction(
        self,
        group_id: str,
        producer_id: int,
        epoch: int,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Store offsets that may be committed as part of a producer's open transaction: they count once it commits.

        Args:
            check: raises KafkaError, as this then does, if the transaction is not open any more; see `append_batch`.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored, or there is too much already.
        """
        await self._serial.run_concurrently(self._commit_in_transaction(group_id, producer_id, epoch, offsets, check))

    async def _commit_in_transaction(
        self,
        group_id: str,
        producer_id: int,
        epoch: int,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        check: Callable[[], None],
    ) -> None:
        if not offsets:
            return
        rows = _offset_records(group_id, offsets)
        options = BatchOptions(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        with self._room_for(group_id, sum(offset.held_bytes for offset in offsets.values())):
            await self._log.append_batch(write(rows, **options), check)
        self._count(self._prepare(group_id, producer_id, offsets))

    def _prepare(
        self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> _Coordinated:
        entry = self._entry(group_id)
        entry.offsets.prepare(producer_id, offsets)
        self._in_transactions.setdefault(producer_id, set()).add(group_id)
        return entry

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A producer's transaction has ended, and the log says so: its offsets count now, or never will."""
        for group_id in self._in_transactions.pop(producer_id, ()):
            entry = self._groups.get(group_id)
            if entry is not None:
                entry.offsets.end_transaction(producer_id, committed=committed)
                self._count(entry)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget offsets. A group of which nothing is left then is gone, but may still be deleted until `expire`.

        Kafka's lasts that long, and clients delete offsets first and then the group.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: that could not be stored.
        """
        await self._serial.run_concurrently(self._delete_offsets(group_id, list(partitions)))
        if group_id not in self._groups and len(self._emptied) < MOST_EMPTIED:
            self._emptied.add(group_id)

    async def _delete_offsets(self, group_id: str, partitions: list[TopicPartition]) -> None:
        await self._log.append(_offset_records(group_id, dict.fromkeys(partitions)))
        entry = self._groups.get(group_id)
        if entry is not None:
            entry.offsets.delete(partitions)
            self._count(entry)

    # The groups themselves -----------------------------------------------------------------------------------------

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE.
        """
        if not group_id:
            raise KafkaError(Error.INVALID_GROUP_ID)
        await self._serial.run(group_id, self._delete(group_id))

    async def _delete(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        was_emptied = group_id in self._emptied
        self._emptied.discard(group_id)
        if entry is None and was_emptied:
            return
        if entry is None:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND)
        if entry.group.state is not State.EMPTY:
            raise KafkaError(Error.NON_EMPTY_GROUP)
        await self._forget(entry)

    async def _forget(self, entry: _Coordinated) -> None:
        """Delete what there is of an empty group; what is committed meanwhile stays, here and on the disk."""
        group_id, partitions = entry.group.group_id, entry.offsets.partitions()
        records = _offset_records(group_id, dict.fromkeys(partitions))
        if entry.stored:
            records.append(stored.no_group_record(group_id, wall_ms()))
        await self._log.append(records)
        found = self._groups.get(group_id)  # another one, if its offsets were deleted and others committed meanwhile
        if found is not None:
            found.offsets.delete(partitions)
            found.stored = False
            found.group = Group(group_id, _new_member_id)
            self._count(found)

    async def expire(self) -> None:
        """Forget what is too old: offsets of groups without members, and groups that have nothing left."""
        self._emptied.clear()
        for group_id in list(self._groups):
            try:
                await self._serial.run(group_id, self._expire(group_id))
            except KafkaError as error:
                logger.error("group %s: %s", told(group_id), error)

    async def _expire(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        if entry is None or entry.group.state is not State.EMPTY:
            return
        old = entry.offsets.expired(wall_ms() - OFFSETS_RETENTION_MS)
        if old:
            await self._delete_offsets(group_id, old)
        if entry.stored and entry.group.is_idle and not entry.offsets:
            await self._forget(entry)

    async def forget_topics(self, topics: Set[str]) -> None:
        """Delete the offsets that groups committed of topics that are deleted; what cannot be stored is left for
        `forget_missing`."""
        await self._forget_offsets(lambda partition: partition[0] in topics)

    async def forget_missing(self, exists: Callable[[TopicPartition], bool]) -> None:
        """Delete what `forget_topics` left, before a crash too: a new topic must not inherit offsets of its name."""
        if self._may_miss_topics:
            self._may_miss_topics = False
            await self._forget_offsets(lambda partition: not exists(partition))

    async def _forget_offsets(self, is_gone: Callable[[TopicPartition], bool]) -> None:
        for entry in list(self._groups.values()):
            gone = [partition for partition in entry.offsets.partitions() if is_gone(partition)]
            try:
                if gone:
                    await self.delete_offsets(entry.group.group_id, gone)
            except KafkaError as error:
                self._may_miss_topics = True
                logger.error("group %s: %s", told(entry.group.group_id), error)

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

    def _count(self, entry: _Coordinated) -> None:
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

    # Steps ---------------------------------------------------------------------------------------------------------

    def _entry(self, group_id: str) -> _Coordinated:
        entry = self._groups.get(group_id)
        if entry is None:
            entry = self._groups[group_id] = _Coordinated(Group(group_id, _new_member_id))
        return entry

    async def _settle(self, entry: _Coordinated) -> Error:
        """Store what a group proposes, and let it become that; or tell it, and the caller, why that cannot be."""
        refused = Error.NONE
        while (proposal := entry.group.proposal) is not None:
            group_id = entry.group.group_id
            try:
                self._check_room(group_id, proposal.held_bytes)
                self._count(entry)
                await self._log.append([stored.group_record(group_id, proposal.metadata, wall_ms())])
            except TagwireError as error:
                logger.error("group %s: %s", told(group_id), error)
                refused = error.error if isinstance(error, KafkaError) else Error.UNKNOWN_SERVER_ERROR
                entry.group.refuse(refused, self._clock())
            else:
                entry.stored = True
                entry.group.adopt(self._clock())
        self._count(entry)
        self._arm(entry)
        return refused

    def _arm(self, entry: _Coordinated) -> None:
        """See to it that the group is told when its next deadline has come. A timer that is early does no harm."""
        deadline = entry.group.next_deadline_ms
        if self._closed or deadline is None or (entry.timer is not None and entry.timer_ms <= deadline):
            return
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer_ms = deadline
        pause = max(deadline - self._clock(), 1) / 1000
        entry.timer = asyncio.get_running_loop().call_later(pause, self._ring, entry)

    def _ring(self, entry: _Coordinated) -> None:
        entry.timer = None
        group_id = entry.group.group_id
        self._serial.submit(group_id, self._tick(group_id))

    async def _tick(self, group_id: str) -> None:
        entry = self._groups.get(group_id)
        if entry is not None:
            entry.group.tick(self._clock())
            await self._settle(entry)


def _offset_records(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> list[Record]:
    now = wall_ms()
    return [stored.offset_record(group_id, where, offset, now) for where, offset in offsets.items()]


def _give(future: asyncio.Future[Given], response: Given) -> None:
    if not future.done():  # whoever waited may have gone
        future.set_result(response)


def _new_member_id(name: str) -> str:
    return f"{name[:MAX_NAME_IN_A_MEMBER_ID]}-{uuid4()}"
