"""The groups of a broker: found by name, kept by time, stored in __consumer_offsets, and there again after a restart.

Everything runs on the event loop. What a group answers after it has changed is held back until the change is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tagwire import messages
from tagwire.broker.clock import monotonic_ms, wall_ms
from tagwire.broker.groups import stored
from tagwire.broker.groups.group import Group
from tagwire.broker.groups.membership import JoinAnswer, Joining, State, SyncAnswer
from tagwire.broker.groups.offsets import CommittedOffset, GroupOffsets, TopicPartition
from tagwire.broker.state_log import StateLog
from tagwire.broker.storage.batch import origin_of
from tagwire.errors import DecodeError, Error, KafkaError, StorageError, UnsupportedVersionError
from tagwire.escaping import told
from tagwire.records import BatchOptions, Record, RecordBatch, write

logger = logging.getLogger("tagwire.broker")

OFFSETS_RETENTION_MS = 7 * 86_400_000
"""Offsets of a group without members are forgotten this long after they were committed, as Kafka does by default."""


class _Coordinated:
    """A group, its offsets, its timer, and the answers that are due."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.offsets = GroupOffsets()
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        self.due: list[tuple[asyncio.Future[Any], JoinAnswer | SyncAnswer]] = []
        self.stored = False


class Groups:
    """Every group of one broker.

    Args:
        log: where they are stored.
        most: how many may exist at a time; the next one is refused.
        clock: milliseconds that only grow; what timeouts are measured by.
    """

    def __init__(self, log: StateLog, most: int, clock: Callable[[], int] = monotonic_ms) -> None:
        self._log = log
        self._most = most
        self._clock = clock
        self._groups: dict[str, _Coordinated] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._in_transactions: dict[int, set[str]] = {}

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
        for group_id, entry in list(self._groups.items()):
            if entry.group.state is State.EMPTY and not entry.stored and not entry.offsets:
                del self._groups[group_id]

    def start(self) -> None:
        """Let time pass for the groups that were loaded."""
        for entry in self._groups.values():
            self._arm(entry)

    async def close(self) -> None:
        """Finish what is being stored. Whoever waits for an answer gets none."""
        for entry in self._groups.values():
            if entry.timer is not None:
                entry.timer.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

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
        key, value = found
        entry = self._entry(key.group)
        if isinstance(key, messages.GroupMetadataKey):
            entry.stored = value is not None
            if value is None:
                entry.group.restore(0, None, None, None, ())
            else:
                stored.restore_group(entry.group, value, self._clock())
            return
        partition = (key.topic, key.partition)
        if value is None:
            entry.offsets.delete([partition])
        elif producer_id is None:
            entry.offsets.commit({partition: stored.offset_of(value)})
        else:
            self._prepare(key.group, producer_id, {partition: stored.offset_of(value)})

    # Members -------------------------------------------------------------------------------------------------------

    async def join(self, group_id: str, joining: Joining) -> JoinAnswer:
        """A client joins. The answer may take as long as a rebalance."""
        if not group_id:
            return JoinAnswer(Error.INVALID_GROUP_ID, joining.member_id)
        if group_id not in self._groups:
            if joining.member_id:
                return JoinAnswer(Error.UNKNOWN_MEMBER_ID, joining.member_id)
            if len(self._groups) >= self._most:
                return JoinAnswer(Error.COORDINATOR_NOT_AVAILABLE, joining.member_id)
        entry = self._entry(group_id)
        future: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()
        entry.group.join(joining, self._clock(), lambda answer: entry.due.append((future, answer)))
        self._settle(entry)
        return await future

    async def sync(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        assignments: dict[str, bytes],
    ) -> SyncAnswer:
        """A member asks for its assignment. The answer comes when the leader has assigned."""
        entry = self._groups.get(group_id)
        if entry is None:
            return SyncAnswer(Error.UNKNOWN_MEMBER_ID if group_id else Error.INVALID_GROUP_ID)
        future: asyncio.Future[SyncAnswer] = asyncio.get_running_loop().create_future()
        entry.group.sync(
            member_id,
            instance_id,
            generation,
            protocol_type,
            protocol,
            assignments,
            self._clock(),
            lambda answer: entry.due.append((future, answer)),
        )
        self._settle(entry)
        return await future

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> Error:
        """A member says that it is there."""
        entry = self._groups.get(group_id)
        if entry is None:
            return Error.UNKNOWN_MEMBER_ID if group_id else Error.INVALID_GROUP_ID
        return entry.group.heartbeat(member_id, instance_id, generation, self._clock())

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> Error:
        """A member leaves, or is made to."""
        entry = self._groups.get(group_id)
        if entry is None:
            return Error.UNKNOWN_MEMBER_ID if group_id else Error.INVALID_GROUP_ID
        error = entry.group.leave(member_id, instance_id, self._clock())
        self._settle(entry)
        return error

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
        elif len(self._groups) >= self._most:
            raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, f"there are {self._most} groups")

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Store offsets that may be committed.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored.
        """
        await self._to_the_end(self._commit(group_id, offsets))

    async def _commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        await self._log.append(_offset_records(group_id, offsets))
        self._entry(group_id).offsets.commit(offsets)

    async def commit_in_transaction(
        self, group_id: str, producer_id: int, epoch: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Store offsets that may be committed as part of a producer's open transaction: they count once it commits.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored.
        """
        await self._to_the_end(self._commit_in_transaction(group_id, producer_id, epoch, offsets))

    async def _commit_in_transaction(
        self, group_id: str, producer_id: int, epoch: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        if not offsets:
            return
        rows = _offset_records(group_id, offsets)
        options = BatchOptions(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        await self._log.append_batch(write(rows, **options))
        self._prepare(group_id, producer_id, offsets)

    def _prepare(self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._entry(group_id).offsets.prepare(producer_id, offsets)
        self._in_transactions.setdefault(producer_id, set()).add(group_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A producer's transaction has ended, and the log says so: its offsets count now, or never will."""
        for group_id in self._in_transactions.pop(producer_id, ()):
            entry = self._groups.get(group_id)
            if entry is not None:
                entry.offsets.end_transaction(producer_id, committed=committed)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget offsets.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: that could not be stored.
        """
        await self._to_the_end(self._delete_offsets(group_id, list(partitions)))

    async def _delete_offsets(self, group_id: str, partitions: list[TopicPartition]) -> None:
        await self._log.append(_offset_records(group_id, dict.fromkeys(partitions)))
        self._entry(group_id).offsets.delete(partitions)

    # The groups themselves -----------------------------------------------------------------------------------------

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE.
        """
        if not group_id:
            raise KafkaError(Error.INVALID_GROUP_ID)
        entry = self._groups.get(group_id)
        if entry is None:
            raise KafkaError(Error.GROUP_ID_NOT_FOUND)
        if entry.group.state is not State.EMPTY:
            raise KafkaError(Error.NON_EMPTY_GROUP)
        await self._to_the_end(self._delete(entry))

    async def _delete(self, entry: _Coordinated) -> None:
        group_id = entry.group.group_id
        entry.group.state = State.DEAD
        del self._groups[group_id]
        records = _offset_records(group_id, dict.fromkeys(partition for partition, _ in entry.offsets))
        try:
            await self._log.append([*records, stored.no_group_record(group_id, wall_ms())])
        except BaseException:
            if group_id not in self._groups:  # the log still has it
                entry.group.state = State.EMPTY
                self._groups[group_id] = entry
            raise

    async def expire(self) -> None:
        """Forget what is too old: offsets of groups without members, and groups that have nothing left."""
        for entry in list(self._groups.values()):
            if entry.group.state is not State.EMPTY:
                continue
            old = entry.offsets.expired(wall_ms() - OFFSETS_RETENTION_MS)
            try:
                if old:
                    await self.delete_offsets(entry.group.group_id, old)
                if entry.group.state is State.EMPTY and entry.group.is_idle and not entry.offsets:
                    await self._to_the_end(self._delete(entry))
            except KafkaError as error:
                logger.error("%s", error)

    async def forget_topic(self, topic: str) -> None:
        """Delete the offsets that groups committed of a topic that is deleted."""
        for entry in list(self._groups.values()):
            gone = [partition for partition, _ in entry.offsets if partition[0] == topic]
            if gone:
                await self.delete_offsets(entry.group.group_id, gone)

    def _entry(self, group_id: str) -> _Coordinated:
        entry = self._groups.get(group_id)
        if entry is None:
            entry = self._groups[group_id] = _Coordinated(Group(group_id, _new_member_id))
        return entry

    def _settle(self, entry: _Coordinated) -> None:
        """Store a change, and give the answers that are due; what a change brought about only once it is stored."""
        due, entry.due = entry.due, []
        if entry.group.changed:
            entry.group.changed = False
            entry.stored = True
            self._background(self._store(entry, due))
        else:
            _give(due)
        self._arm(entry)

    async def _store(self, entry: _Coordinated, due: list[tuple[asyncio.Future[Any], Any]]) -> None:
        try:
            await self._log.append([stored.group_record(entry.group, wall_ms())])
        except KafkaError as error:
            logger.error("group %s: %s", told(entry.group.group_id), error)
            due = [(future, replace(answer, error=error.error)) for future, answer in due]
        _give(due)

    def _arm(self, entry: _Coordinated) -> None:
        """See to it that the group is told when its next deadline has come. A timer that is early does no harm."""
        deadline = entry.group.next_deadline_ms
        if deadline is None or (entry.timer is not None and entry.timer_ms <= deadline):
            return
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer_ms = deadline
        pause = max(deadline - self._clock(), 1) / 1000
        entry.timer = asyncio.get_running_loop().call_later(pause, self._ring, entry)

    def _ring(self, entry: _Coordinated) -> None:
        entry.timer = None
        entry.group.tick(self._clock())
        self._settle(entry)

    async def _to_the_end(self, work: Coroutine[Any, Any, None]) -> None:
        # Shielded: a client that goes away must not leave on the disk what this broker does not know.
        await asyncio.shield(self._background(work))

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _offset_records(group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | None]) -> list[Record]:
    now = wall_ms()
    return [stored.offset_record(group_id, where, offset, now) for where, offset in offsets.items()]


def _give(due: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in due:
        if not future.done():  # whoever waited may have gone
            future.set_result(answer)


def _new_member_id(name: str) -> str:
    return f"{name}-{uuid4()}"
