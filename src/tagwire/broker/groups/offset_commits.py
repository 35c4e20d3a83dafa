"""The offsets of a broker's groups: who may commit them, how they are stored, and when they are forgotten.

Offsets need not wait for each other: they are noted in the order in which they are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import islice

from tagwire.broker.clock import monotonic_ms, wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups import stored
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import TopicIdPartition
from tagwire.broker.groups.consumer_records import TopicsView
from tagwire.broker.groups.group_settings import GroupSettings
from tagwire.broker.groups.group_table import Coordinated, GroupTable
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.errors import Error, KafkaError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.records import BatchOptions, Record, write
from tagwire.rpc.version_gates import OFFSET_COMMIT_MEMBER_EPOCH

logger = logging.getLogger("tagwire.broker")

MOST_EMPTIED = 1000
"""How many groups are remembered whose last offsets were deleted."""


MOST_IN_A_BATCH = 1000
"""How many offsets of topics that are gone are deleted in one batch; of one group all of them are."""

MOST_NAMED = 10
"""How many groups an error names whose offsets could not be deleted."""


class OffsetCommits(GroupTable):
    """What the groups of one broker commit; the arguments are those of `Groups`."""

    def __init__(
        self,
        log: CoordinatorLog,
        topics: TopicsView,
        settings: GroupSettings,
        most: int,
        clock: Callable[[], int] = monotonic_ms,
        most_bytes: int = 1 << 28,
    ) -> None:
        super().__init__(log, most, clock, most_bytes)
        self._topics = topics
        self.settings = settings
        self._emptied: set[str] = set()
        self._in_transactions: dict[int, set[str]] = {}
        self._may_miss_topics = True
        # What is being stored: of which group and partitions.
        self._under_way: dict[object, tuple[str, Set[TopicPartition]]] = {}

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int | None,
        partitions: Iterable[TopicPartition],
    ) -> None:
        """Refuse a commit by one who has no right to it.

        Args:
            generation: or the member's epoch, in a group of KIP-848.
            version: of OffsetCommit; None for a commit in a transaction.
            partitions: that offsets are committed of; they exist.

        Raises:
            KafkaError: as the `check_commit` of the group; INVALID_GROUP_ID; where there is no such group
                GROUP_ID_NOT_FOUND, or before version 9 and in a transaction ILLEGAL_GENERATION.
        """
        if not group_id:
            raise KafkaError(Error.INVALID_GROUP_ID)
        group = self.get(group_id)
        if isinstance(group, ConsumerGroup):
            named = self._by_id(partitions) if self.settings.takes_older_epochs else None
            group.check_commit(member_id, generation, version, named)
        elif group is not None:
            now = self._clock()
            group.check_commit(member_id, instance_id, generation, now, in_transaction=version is None)
        elif generation >= 0:
            is_told = version is not None and version >= OFFSET_COMMIT_MEMBER_EPOCH
            raise KafkaError(Error.GROUP_ID_NOT_FOUND if is_told else Error.ILLEGAL_GENERATION)

    def _by_id(self, partitions: Iterable[TopicPartition]) -> Iterator[TopicIdPartition]:
        for name, index in partitions:
            topic = self._topics.get(name)
            if topic is not None:
                yield TopicIdPartition(topic.topic_id, index)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Refuse committed offsets to a member that is not what it says; whoever says nothing gets them.

        Raises:
            KafkaError: as `ConsumerGroup.check_fetch`.
        """
        group = self.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(member_id, epoch)

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Store offsets that may be committed.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: they could not be stored, or there is too much already.
        """
        await self._serial.run_concurrently(self._commit(group_id, offsets))

    async def _commit(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            return
        growth = self.offsets(group_id).growth_of(offsets)
        with self._room_for(group_id, growth), self._storing(group_id, offsets):
            await self._log.append(offset_records(group_id, offsets))
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
        rows = offset_records(group_id, offsets)
        options = BatchOptions(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        growth = sum(offset.held_bytes for offset in offsets.values())
        with self._room_for(group_id, growth), self._storing(group_id, offsets):
            await self._log.append_batch(write(rows, **options), check)
        self._count(self._prepare(group_id, producer_id, offsets))

    @contextmanager
    def _storing(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Iterator[None]:
        """Note offsets that are on their way to the log, for whoever looks for what is to be forgotten."""
        which = object()
        self._under_way[which] = group_id, offsets.keys()
        try:
            yield
        finally:
            del self._under_way[which]

    def _prepare(
        self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Coordinated:
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
        self._note_emptied(group_id)

    async def _delete_offsets(self, group_id: str, partitions: list[TopicPartition]) -> None:
        await self._delete_of_groups({group_id: partitions})

    async def _delete_of_groups(self, gone: Mapping[str, list[TopicPartition]]) -> None:
        """Forget offsets of several groups, in one batch."""
        rows = [row for group_id, found in gone.items() for row in offset_records(group_id, dict.fromkeys(found))]
        await self._log.append(rows)
        for group_id, partitions in gone.items():
            entry = self._groups.get(group_id)
            if entry is not None:
                entry.offsets.delete(partitions)
                self._count(entry)

    def _note_emptied(self, group_id: str) -> None:
        if group_id not in self._groups and len(self._emptied) < MOST_EMPTIED:
            self._emptied.add(group_id)

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
        gone = {
            group_id: {partition for partition in entry.offsets.partitions() if is_gone(partition)}
            for group_id, entry in self._groups.items()
        }
        for group_id, storing in self._under_way.values():
            gone.setdefault(group_id, set()).update(filter(is_gone, storing))
        # All at once: what is committed from now on is of the next topics of these names, and is written behind them.
        await asyncio.gather(*(self._forget_in(found) for found in _in_batches(gone)))

    async def _forget_in(self, gone: Mapping[str, list[TopicPartition]]) -> None:
        try:
            await self._serial.run_concurrently(self._delete_of_groups(gone))
        except KafkaError as error:
            self._may_miss_topics = True
            logger.error("groups %s: %s", ", ".join(map(told, islice(gone, MOST_NAMED))), error)
            return
        for group_id in gone:
            self._note_emptied(group_id)


def offset_records(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> list[Record]:
    """The records of committed offsets; None deletes one."""
    now = wall_ms()
    return [stored.offset_record(group_id, where, offset, now) for where, offset in offsets.items()]


def _in_batches(gone: Mapping[str, Set[TopicPartition]]) -> Iterator[dict[str, list[TopicPartition]]]:
    """The partitions of each group, of as many groups together as one batch takes."""
    batch: dict[str, list[TopicPartition]] = {}
    count = 0
    for group_id, partitions in gone.items():
        if batch and count + len(partitions) > MOST_IN_A_BATCH:
            yield batch
            batch, count = {}, 0
        if partitions:
            batch[group_id] = sorted(partitions)
            count += len(partitions)
    if batch:
        yield batch
