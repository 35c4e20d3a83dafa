"""What a consumer commits, and when: at once, later, and by itself now and then."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Final

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.consuming.commits import OffsetCommits
from tagwire.client.consuming.consumer_settings import ConsumerSettings
from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.consuming.membership import Membership
from tagwire.client.consuming.pending_commit import AutomaticCommit, PendingCommit
from tagwire.client.consuming.subscription_state import SubscriptionState
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import NEVER, Tasks, Wait, sleep
from tagwire.client.topic_expansion import partitions_of
from tagwire.errors import ConsumerStateError, TagwireError
from tagwire.partitions import TopicPartition

logger = logging.getLogger("tagwire.client")

# Seconds between two automatic commits at least: with an interval of 0, which Kafka allows, its client commits inside
# of every poll, and here one that has nothing to commit would do nothing else than find that out.
_SHORTEST_INTERVAL: Final = 0.05

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], object]
"""Called by `poll` with the offsets of a `commit_async`, and None or why they were not committed."""


class ConsumerCommits:
    """The commits of a consumer. The core's host calls this, except where a method says otherwise.

    Attributes:
        done: callbacks about commits that are done, for the application, which takes them from the left.

    Args:
        tasks: where commits run beside each other.
        membership: whom the consumer is in its group; gives None while partitions are assigned by hand.
    """

    def __init__(
        self,
        network: NetworkClient,
        tasks: Tasks,
        settings: ConsumerSettings,
        subscription: SubscriptionState,
        membership: Callable[[], Membership | None],
    ) -> None:
        self.done: deque[Callable[[], object]] = deque()
        self._wanted: deque[tuple[PendingCommit, CommitCallback | None]] = deque()
        self._network = network
        self._tasks = tasks
        self._settings = settings
        self._subscription = subscription
        self._membership = membership
        group = settings.group
        self._coordinator = None if group is None else GroupCoordinator(network, group.group)
        self._commits = (
            None
            if group is None or self._coordinator is None
            else OffsetCommits(network, self._coordinator, group.group, membership)
        )

    @property
    def is_due(self) -> bool:
        """Whether there is something for `begin`."""
        return bool(self._wanted)

    def begin(self) -> None:
        """Begins the commits that are to be done beside."""
        while self._wanted:
            pending, callback = self._wanted.popleft()
            work = self._commit(pending, self._network.deadline())
            self._tasks.start(object(), work, partial(self._end, pending.offsets, callback))

    def close(self) -> None:
        """Closes connections."""
        if self._coordinator is not None:
            self._coordinator.close()

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: float) -> None:
        """Commits, after what was to be committed before. Raises as `OffsetCommits.commit`, and ConsumerStateError
        without a group."""
        self.begin()
        await self._commit(self._pending(offsets), deadline)

    async def commit_consumed(self, deadline: float) -> None:
        """Commits what the application is done with and is not committed when its turn comes. Raises as `commit`."""
        self.begin()
        by_hand = not self._settings.consume.auto_offset_store
        await self._commit(AutomaticCommit(self._subscription, stored=by_hand), deadline)

    def commit_later(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: CommitCallback | None
    ) -> None:
        """Has the next step begin a commit. The application calls this itself. Raises ConsumerStateError without a
        group."""
        self._group_commits()
        self._wanted.append((self._pending(offsets), callback))

    def is_committing(self, partition: TopicPartition) -> bool:
        """Whether a commit of it has begun and is not done."""
        return self._commits is not None and self._commits.is_committing({partition})

    async def finish(self, deadline: float) -> None:
        """Waits until all that were asked for are done, or the deadline is over: whoever leaves the group cannot
        commit any more."""
        self.begin()
        if self._commits is not None:
            await self._commits.finish(deadline)

    async def commit_now_and_then(self) -> None:
        """Commits what is consumed every `auto_commit_interval` seconds, for ever."""
        interval = max(self._settings.consume.auto_commit_interval, _SHORTEST_INTERVAL)
        while True:
            await sleep(self._network.now() + interval)
            await Wait(self._is_settled, NEVER)  # what is revoked is committed by then, and the rest can be after it
            try:
                await self.commit_consumed(self._network.deadline())
            except TagwireError as error:
                logger.warning("offsets were not committed automatically: %s", error)

    def _is_settled(self) -> bool:
        membership = self._membership()
        return membership is None or not membership.is_rebalancing

    async def settled(self, partitions: Set[TopicPartition], deadline: float) -> None:
        """Waits until what was to be committed of these before is. Raises RequestTimeoutError."""
        self.begin()
        if self._commits is not None:
            await self._commits.settled(partitions, deadline)

    async def committed(self, partitions: object, deadline: float) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Consumer.committed`, after what was to be committed before. Raises ConsumerStateError without a group."""
        commits = self._group_commits()
        named = arguments.topics_or_partitions("partitions", partitions)
        self.begin()
        return await commits.committed(await partitions_of(self._network, named, deadline), deadline)

    def _pending(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PendingCommit:
        return PendingCommit(offsets, self._subscription, self._membership)

    async def _commit(self, pending: PendingCommit | AutomaticCommit, deadline: float) -> None:
        began = self._network.now()
        committed = await self._group_commits().commit(pending, deadline)
        if not committed:
            return
        if (membership := self._membership()) is not None:
            membership.metrics.committed(self._network.now() - began)
        pending.note_committed(committed)
        for on_commit in self._settings.on_commit:
            self.done.append(partial(_tell_interceptor, on_commit, committed))

    def _end(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        callback: CommitCallback | None,
        _: None,
        error: Exception | None,
    ) -> None:
        if callback is not None:
            self.done.append(partial(callback, offsets, error))
        elif error is not None:
            logger.warning("offsets were not committed: %s", error)

    def require_group(self) -> None:
        """Raises ConsumerStateError without a group. For any thread."""
        self._group_commits()

    def _group_commits(self) -> OffsetCommits:
        if self._commits is None:
            raise ConsumerStateError("a consumer without a group has nothing committed: give it group=")
        return self._commits


def _tell_interceptor(
    on_commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> None:
    """What it raises is logged: an interceptor stops nothing, and the commit has been made."""
    try:
        on_commit(committed)
    except Exception:
        logger.warning("an interceptor, %r, raised about a commit", on_commit, exc_info=True)
