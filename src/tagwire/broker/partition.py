"""A partition as the event loop sees it: its log, group commit, and whoever waits for records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Literal

from tagwire.broker.group_commit import GroupCommit, MakeBatch
from tagwire.broker.leadership import Leadership
from tagwire.broker.storage.batch import Appended, Batch
from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.producer_state import Producer
from tagwire.partitions import TopicPartition

Fsync = Literal["batch", "interval", "never"]
"""When what is appended is on the disk: before it is acknowledged, within a second, when the system likes."""


class Partition:
    """One partition of a topic.

    Attributes:
        topic, index: which one.
        log: where its records are.
        deleted: whether its topic has been deleted.
        leadership: who leads and holds it.
    """

    def __init__(
        self,
        topic: str,
        index: int,
        log: PartitionLog,
        commits: Executor,
        starts: OffsetCheckpoint,
        leadership: Leadership,
        *,
        fsync: Fsync,
    ) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.deleted = False
        self.leadership = leadership
        self._commits = commits
        self._starts = starts
        self._fsync = fsync
        self._commit = self._committing()
        self._watchers: dict[asyncio.Event, None] = {}  # in the order in which they came

    def _committing(self) -> GroupCommit:
        return GroupCommit(self.log, self._commits, sync=self._fsync == "batch", advanced=self._wake)

    def append(self, make: MakeBatch, *, decides: bool = False, by_leader: bool = False) -> asyncio.Future[Appended]:
        """Add a batch; see `GroupCommit.append`.

        Args:
            decides: other logs follow from it: it is on the disk first, with fsync="interval" too.
            by_leader: only the leader of now adds it: NOT_LEADER_OR_FOLLOWER if another epoch has begun before its turn
                comes, as in Kafka, whose leader holds on to its epoch while it appends (Partition).
        """
        if by_leader:
            make = partial(_in_epoch, self.leadership.epoch, make)
        return self._commit.append(make, sync=decides and self._fsync == "interval")

    def check_leader(self, node_id: int, epoch: int = -1) -> None:
        """Refuse what only the leader does, and what is offline; see `Leadership.check_leader`.

        Raises:
            StorageError: the log is offline.
            KafkaError: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
        """
        self.log.check_online()
        self.leadership.check_leader(node_id, epoch)

    def check_replica(self, node_id: int, epoch: int = -1) -> None:
        """Refuse what any replica does, and what is offline; raises as `check_leader`."""
        self.log.check_online()
        self.leadership.check_replica(node_id, epoch)

    async def lead(self, following: Leadership) -> None:
        """Let another node lead it, or the same one anew, in an epoch of its own, or other nodes hold it.

        `following` has the epoch that there is. What is appended from then on is of the new one, which is on the disk
        when this returns; whoever waits for records is told to look again.

        Raises:
            StorageError: the disk refused, or the log is offline; nothing has changed.
        """
        if following.leader != self.leadership.leader:
            loop = asyncio.get_running_loop()
            epoch = await loop.run_in_executor(self._commits, self.log.begin_epoch, self.leadership.epoch + 1)
            following = replace(following, epoch=epoch)
        self.leadership = following
        self._wake()

    def reopened(self, log: PartitionLog) -> None:
        """Go on with another log of the same directory, in its leader epoch."""
        self.log = log
        self._commit = self._committing()
        self.leadership = replace(self.leadership, epoch=log.leader_epoch)
        self._wake()

    def watch(self, event: asyncio.Event) -> None:
        """Set `event` whenever there is more to read, or nothing will be here, until `unwatch`."""
        self._watchers[event] = None

    def unwatch(self, event: asyncio.Event) -> None:
        self._watchers.pop(event, None)

    async def delete_records(self, before: int) -> int:
        """Delete the records before an offset, -1 for all that can be read; the offset the log then starts at.

        It is on the disk when this returns. Whole segments before it are gone then; what else is before it is not read
        any more.

        Raises:
            OffsetOutOfRangeError: `before` is past the end of the log.
            StorageError: the disk refused, and nothing was deleted, or the log is offline.
        """
        return await asyncio.get_running_loop().run_in_executor(self._commits, self._delete_records, before)

    def _delete_records(self, before: int) -> int:
        self.log.delete_before(self.log.check_deletion(before), self._remember_start)
        return self.log.start_offset

    def _remember_start(self, offset: int) -> None:
        self._starts.raise_to({TopicPartition(self.topic, self.index): offset})

    async def producers(self) -> list[Producer]:
        """What is known of the producers that number their batches.

        Raises:
            StorageError: the log is offline.
        """
        known = await asyncio.get_running_loop().run_in_executor(self._commits, self.log.known_producers)
        return list(known.values())

    async def settle(self) -> None:
        """Wait until every append has been carried out."""
        await self._commit.idle()

    def mark_deleted(self) -> None:
        """Tell whoever waits for records that none will come."""
        self.deleted = True
        self._wake()

    def _wake(self) -> None:
        for event in self._watchers:
            event.set()


def _in_epoch(epoch: int, make: MakeBatch) -> Batch:
    return replace(make(), leader_epoch=epoch)


def remember_starts(starts: Mapping[Partition, int]) -> None:
    """Write down where the logs of partitions are to start, all at once. It is on the disk when this returns.

    Raises:
        OSError: the disk refused, of some or all.
    """
    by_file: dict[OffsetCheckpoint, dict[TopicPartition, int]] = {}
    for partition, start in starts.items():
        by_file.setdefault(partition._starts, {})[TopicPartition(partition.topic, partition.index)] = start
    for file, offsets in by_file.items():
        file.raise_to(offsets)
