"""A partition as the event loop sees it: its log, group commit, and whoever waits for records."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from tagwire.broker.group_commit import GroupCommit, MakeBatch
from tagwire.broker.storage.batch import Appended
from tagwire.broker.storage.log import PartitionLog


class Partition:
    """One partition of a topic.

    Attributes:
        topic, index: which one.
        log: where its records are.
        deleted: whether its topic has been deleted.
    """

    def __init__(self, topic: str, index: int, log: PartitionLog, commits: Executor, *, sync: bool) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.deleted = False
        self._commit = GroupCommit(log, commits, sync=sync, advanced=self._wake)
        self._watchers: set[asyncio.Event] = set()

    def append(self, make: MakeBatch) -> asyncio.Future[Appended]:
        """Add a batch; see `GroupCommit.append`."""
        return self._commit.append(make)

    def watch(self, event: asyncio.Event) -> None:
        """Set `event` whenever there is more to read, or nothing ever will be, until `unwatch`."""
        self._watchers.add(event)

    def unwatch(self, event: asyncio.Event) -> None:
        self._watchers.discard(event)

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
