"""What a Consumer does for the application, for whichever face: one whose callers' threads wait, or one whose tasks do.

Its coroutines await a `CoreHost` alone, and what a listener of tasks gives: with a host that is a thread, which blocks,
they go to their end at once (`scheduling.completed`); with an event loop they are awaited. One of them runs at a time,
but for those that a listener calls inside of a `poll`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.config import seconds
from tagwire.client.consuming.consumer_commits import CommitCallback
from tagwire.client.consuming.consumer_settings import ConsumerSettings
from tagwire.client.consuming.consumer_work import ConsumerWork, Move
from tagwire.client.consuming.given_offsets import to_commit, to_store
from tagwire.client.consuming.given_records import GivenRecords
from tagwire.client.consuming.listener import RebalanceEvent, RebalanceKind, RebalanceListener
from tagwire.client.core_host import CoreHost
from tagwire.client.decoded_values import Undecoded
from tagwire.client.fetch_positions import UNKNOWN
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.metrics.consumer import ConsumerMetrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_ranges import Lag
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.property_values import wrong
from tagwire.client.scheduling import NEVER, Tasks, Work
from tagwire.errors import ConsumerStateError, TagwireError, WakeupError, afresh
from tagwire.partitions import TopicPartition
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("tagwire.client")

Result = TypeVar("Result")

# A poll that waits counts as one after another: so often within the longest time that may pass between two.
_POLLS_WITHIN_INTERVAL: Final = 3

# What the broker is told of why a member leaves (KIP-800).
_UNSUBSCRIBED: Final = "the consumer unsubscribed"
_CLOSED: Final = "the consumer is being closed"

# Why another user is refused.
_ONE_AT_A_TIME: Final = (
    "the consumer is used by two threads or tasks at a time: only wakeup() may be called beside another call; "
    "give each its own consumer"
)
_IS_CLOSING: Final = "another thread or task is closing the consumer"
_IN_USE: Final = "another thread or task uses the consumer: nothing is closed; wakeup() ends its call, then close it"


class ConsumerCore:
    """The rules of a Consumer. `start` comes first.

    Attributes:
        work, tasks: what the host is to do all the time, and what runs beside it.

    Args:
        network: connections of its own.
    """

    def __init__(self, network: NetworkClient, settings: ConsumerSettings) -> None:
        self.tasks = Tasks()
        self.work = ConsumerWork(network, self.tasks, settings)
        self._given = GivenRecords(self.work, settings)
        self._measured = ConsumerMetrics(network.metrics)
        self._network = network
        self._settings = settings
        self._listener: RebalanceListener | None = None
        # Whether the listener is being called: what it calls itself tells it of nothing more.
        self._is_telling = False
        self._is_closing = self._is_closed = False
        self._reads_batches: bool | None = None
        self._users: dict[str, Hashable] = {}

    def start(self, host: CoreHost) -> None:
        """Takes what runs `work` and `tasks`, once."""
        self._host = host

    async def exclusively(self, user: Hashable, call: Coroutine[Any, Any, Result]) -> Result:
        """What one of the calls below gives or raises; all of them go through here.

        Args:
            user: who calls, such as the thread: a call inside of one of the same user's is allowed.

        Raises:
            ConsumerStateError: another user's call is not over, or the consumer is closed.
        """
        try:
            with self._claimed(user, _ONE_AT_A_TIME):
                if self._is_closed:
                    raise ConsumerStateError("the consumer is closed")
                return await call
        finally:
            call.close()

    @contextmanager
    def _claimed(self, user: Hashable, refusal: str) -> Iterator[None]:
        """In the `with` block nobody else uses the consumer. Raises ConsumerStateError where somebody does."""
        is_within = self._users.get("user") == user
        if self._users.setdefault("user", user) != user:
            raise ConsumerStateError(refusal)
        try:
            yield
        finally:
            if not is_within:
                self._users.clear()

    # Subscription --------------------------------------------------------------------------------------------------

    async def subscribe(self, topics: object, pattern: str | None, listener: RebalanceListener | None) -> None:
        """As `Consumer.subscribe`."""
        named = frozenset(() if topics is None else arguments.names("topics", topics))
        if (pattern is None) == (not named):
            raise wrong("topics", arguments.shown(topics), "one topic or more, or pattern= instead of them")
        if pattern is not None:
            arguments.name("pattern", pattern)
        await self._do(lambda _: self.work.subscribe(named, pattern, has_listener=listener is not None))
        self._listener = listener

    async def assign(self, partitions: object) -> None:
        """As `Consumer.assign`."""
        self._given.note_consumed()
        if self._settings.auto_commit:
            await self._commit_quietly(self._network.deadline())
        await self._move(lambda deadline, move: self.work.assign_by_hand(partitions, deadline, move))

    async def unsubscribe(self) -> None:
        """As `Consumer.unsubscribe`."""
        await self._give_up(self._network.deadline(), _UNSUBSCRIBED)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """As `Consumer.assignment`."""
        return frozenset(self.work.subscription.assigned)

    async def rejoin(self, reason: str) -> None:
        """As `Consumer.enforce_rebalance`."""
        await self._do(lambda _: self.work.rejoin(reason))

    def metrics(self) -> MetricValues:
        """As `Consumer.metrics`."""
        return self.work.metrics

    def group_metadata(self) -> GroupMetadata:
        """As `Consumer.group_metadata`."""
        return self.work.group_metadata

    # Records -------------------------------------------------------------------------------------------------------

    async def poll(self, timeout: float | None, most: int | None = None) -> list[Record]:
        """As `Consumer.poll`; without a timeout it waits for ever."""
        limit = self._settings.consume.max_poll_records if most is None else most
        await self._begin_poll()
        return await self._poll(self._until(timeout), lambda _: self._given.records(limit)) or []

    async def read(self) -> Iterator[Record]:
        """The next records one after the other, when there are any. Raises as `poll`."""
        return self._given.read(await self.poll(None, 1 if self._given.makes_records else None))

    async def consume(self, count: int, timeout: float | None) -> list[Record]:
        """As `Consumer.consume`."""
        wanted = arguments.whole(count)
        if wanted is None or wanted < 1:
            raise wrong("count", arguments.shown(count), "a number of records from 1 on")
        await self._begin_poll()
        deadline, given = self._until(timeout), self._given
        while (missing := wanted - len(given.gathered)) > 0:
            try:
                more = await self._poll(deadline, lambda _, missing=missing: self._given.records(missing))  # type: ignore[misc]
            except TagwireError as error:
                if not given.gathered:
                    raise
                self._given.put_off(error)
                break
            except Exception:  # a listener's, or a callback's: what is gathered is fetched again
                if given.gathered:
                    await self.rewind()
                raise
            if not more:
                break
            given.gathered += more  # a listener may have dropped some of it meanwhile
        return self._given.gather()

    async def poll_batch(self, timeout: float | None) -> pa.RecordBatch | None:
        """As `Consumer.poll_batch`."""
        await self._begin_poll(as_batches=True)
        deadline = self._until(timeout)
        held_until = min(deadline, self._network.now() + self._settings.fetch.max_wait_ms / 1000)
        return await self._poll(
            deadline, lambda now: self._given.batch(flush=now >= held_until or not self._given.has_more), held_until
        )

    def wakeup(self, wake: Callable[[], None]) -> None:
        """As `Consumer.wakeup`; for any thread, from which `wake` lets the host look for something to do."""
        self.work.is_woken = True  # at once: the next call may be the same task's
        wake()

    async def rewind(self) -> None:
        """A call that gives records was interrupted: what it took and did not give is to be fetched again."""
        self._given.forget()
        await self._do(lambda _: self.work.rewind())

    async def _begin_poll(self, *, as_batches: bool = False) -> None:
        if not self.work.subscription.is_any:
            raise ConsumerStateError("nothing is subscribed to or assigned: call subscribe() or assign() first")
        self._measured.poll_began()
        self._given.note_consumed()
        self._given.gathered.clear()
        if self._reads_batches is not as_batches:
            if self._reads_batches is not None:  # what is made in the other way is to be made anew
                await self.rewind()
            self._reads_batches = as_batches

    async def _poll(
        self, deadline: float, take: Callable[[float], Result | None], held_until: float = NEVER
    ) -> Result | None:
        """What `take` gives, called with the time, as soon as it gives anything; None where there is nothing by the
        deadline.

        Args:
            held_until: when `take` gives also what it might have waited for more with.
        """
        work = self.work
        while True:
            now = self._network.now()
            if work.polled(now):
                self._host.wakeup()
            if work.events or work.commits.done or work.failures or work.breakdown is not None:
                await self._attend()
            if work.is_woken:
                work.is_woken = False
                raise WakeupError("wakeup() was called")
            try:
                found = take(now) if work.is_member else None
            except Undecoded as due:
                await self._host.aside(due.call)
                continue
            except TagwireError:
                self._host.wakeup()  # of a partition whose error is taken, more may be fetched
                raise
            if work.waits_for_room:
                self._host.wakeup()
            if found is not None or now >= deadline:
                self._measured.poll_ended()
                return found
            until = min(deadline, now + self._settings.consume.max_poll_interval / _POLLS_WITHIN_INTERVAL)
            if now < held_until < NEVER and self._given.holds_back:
                until = min(until, held_until)
            await self._host.wait_for(self._has_news, until)

    def _has_news(self) -> bool:
        return self.work.has_news

    def _until(self, timeout: float | None) -> float:
        seconds("timeout", timeout)
        return NEVER if timeout is None else self._network.now() + timeout

    # What has happened meanwhile -----------------------------------------------------------------------------------

    async def _attend(self) -> None:
        """Does the application's part of rebalances and commits. Raises what a poll is to raise."""
        failed: list[BaseException] = []
        while self.work.events and not self._is_telling:
            try:
                await self._rebalance(self.work.events[0])
            except Exception as error:  # the rebalance goes on; it is the listener's, and raised after it
                failed.append(error)
        try:
            self._call_back()
        except Exception as error:
            failed.append(error)
        if failed:
            raise failed[0]
        if self.work.failures:
            failure = self.work.failures.popleft()
            failure.is_taken = True
            self._host.wakeup()
            raise failure.error
        if self.work.breakdown is not None:
            raise afresh(self.work.breakdown)

    async def _rebalance(self, event: RebalanceEvent) -> None:
        is_begun = False
        try:
            if event.kind is RebalanceKind.REVOKED and self._settings.auto_commit:
                await self._commit_quietly(self._network.deadline())
            is_begun = True
            await self._tell_listener(event.kind, event.partitions)
        except Exception:
            is_begun = True
            raise
        finally:
            if is_begun:  # else it was interrupted, or cancelled, and all of it is the next call's
                try:
                    if event.kind is RebalanceKind.REVOKED:
                        await self._commit_stored(self._network.deadline())
                finally:
                    await self._rebalanced(event)

    async def _rebalanced(self, event: RebalanceEvent) -> None:
        # After the listener: what it commits ends where this begins.
        if event.kind is not RebalanceKind.ASSIGNED:
            self._given.drop(event.partitions)
        event.is_done = True
        if event in self.work.events:  # the listener may have unsubscribed
            self.work.events.remove(event)
        await self._do(lambda _: self.work.settled(event))

    async def _tell_listener(self, kind: RebalanceKind, partitions: Collection[TopicPartition]) -> None:
        if self._is_telling or self._listener is None or not (partitions or kind is RebalanceKind.ASSIGNED):
            return
        began = self._network.now()
        self._is_telling = True
        try:
            found = getattr(self._listener, kind.value)(list(partitions))
            if isawaitable(found):
                await found
        finally:
            self._is_telling = False
        self.work.told(kind, self._network.now() - began)

    def _call_back(self) -> None:
        """Calls back about commits that are done. Raises what the first of them does that raises, after all of them."""
        failed: list[Exception] = []
        while self.work.commits.done:
            try:
                self.work.commits.done.popleft()()
            except Exception as error:
                failed.append(error)
        if failed:
            raise failed[0]

    # Positions -----------------------------------------------------------------------------------------------------

    async def seek(self, partition: object, position: object) -> None:
        """As `Consumer.seek`."""
        await self._seek({arguments.topic_partition("partition", partition): position})

    async def seek_to(self, partitions: object, offset: int) -> None:
        """As `Consumer.seek_to_beginning` and `seek_to_end`: `EARLIEST` or `LATEST`."""
        await self._seek(dict.fromkeys(self._assigned(partitions), offset))

    async def _seek(self, positions: Mapping[TopicPartition, object]) -> None:
        await self._move(lambda _, move: self.work.seek(positions, move))

    async def _move(self, function: Callable[[float, Move], Work[None]]) -> None:
        """`_do`, of what makes partitions go on elsewhere: not later on, where this is given up before it has."""
        move = Move()
        try:
            await self._do(lambda deadline: function(deadline, move))
        finally:
            move.is_given_up = True
            self._given.drop(move.moved)

    async def pause(self, partitions: object, *, is_paused: bool) -> None:
        """As `Consumer.pause` and `resume`."""
        named = self._assigned(partitions)
        unread = self._given.drop(named) if is_paused else {}
        await self._do(lambda _: self.work.pause(named, unread, is_paused=is_paused))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """As `Consumer.paused`."""
        assigned = self.work.subscription.assigned
        return frozenset(partition for partition, one in assigned.items() if one.fetch_position.is_paused)

    async def position(self, partition: object, timeout: float | None) -> int:
        """As `Consumer.position`."""
        named = arguments.topic_partition("partition", partition)
        one = self.work.subscription.require(named)
        if self._given.position(one).offset == UNKNOWN:
            await self._do(lambda deadline: self.work.await_position(named, deadline), timeout)
            await self._attend()
        return self._given.position(one).offset

    async def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Consumer.positions`."""
        return self._positions()

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {partition: OffsetAndMetadata(*position) for partition, position in self._given.positions().items()}

    async def lag(self) -> dict[TopicPartition, Lag]:
        """As `Consumer.lag`."""
        positions = {partition: position.offset for partition, position in self._positions().items()}
        return await self._do(lambda deadline: self.work.lag(positions, deadline))

    async def partitions_for(self, topic: str, timeout: float | None) -> dict[int, PartitionMetadata]:
        """As `Consumer.partitions_for`."""
        name = arguments.name("topic", topic)
        return await self._do(lambda deadline: self.work.partitions_for(name, deadline), timeout)

    async def list_offsets(self, partitions: object, timeout: float | None) -> dict[TopicPartition, int]:
        """As `Consumer.offsets_for_times`, `beginning_offsets` and `end_offsets`: offsets by {partition: which}."""
        return await self._do(lambda deadline: self.work.list_offsets(partitions, deadline), timeout)

    def _assigned(self, partitions: object) -> list[TopicPartition]:
        """The partitions that are named; all that are assigned where none are. Raises KeyError for one that is not."""
        if partitions is None:
            return list(self.work.subscription.assigned)
        named = arguments.topics_or_partitions("partitions", partitions)
        found = []
        for each in named:
            if not isinstance(each, TopicPartition):
                raise wrong("partitions", arguments.shown(each), 'partitions, such as ("orders", 0)')
            self.work.subscription.require(each)
            found.append(each)
        return found

    # Commits -------------------------------------------------------------------------------------------------------

    async def commit(self, offsets: object, timeout: float | None) -> None:
        """As `Consumer.commit`."""
        wanted = self._done_with() if offsets is None else to_commit(offsets)
        began = self._network.now()
        await self._do(lambda deadline: self.work.commits.commit(wanted, deadline), timeout)
        self._measured.commit_sync(self._network.now() - began)
        self._call_back()

    async def commit_async(self, offsets: object, callback: CommitCallback | None) -> None:
        """As `Consumer.commit_async`."""
        self.work.commits.commit_later(self._done_with() if offsets is None else to_commit(offsets), callback)
        self._host.wakeup()

    def store_offsets(self, done: object) -> None:
        """As `Consumer.store_offsets`; for any thread."""
        if self._settings.consume.auto_offset_store:
            raise ConsumerStateError(
                "what was given out counts as done with when the consumer polls again: make it with "
                "auto_offset_store=False to say that yourself"
            )
        self.work.commits.require_group()
        offsets = to_store(done)
        assigned = {partition: self.work.subscription.require(partition) for partition in offsets}
        for partition, one in assigned.items():
            one.stored = offsets[partition]

    def _done_with(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets commits."""
        return self._positions() if self._settings.consume.auto_offset_store else self.work.subscription.stored()

    async def committed(self, partitions: object, timeout: float | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Consumer.committed`."""
        given = list(self.work.subscription.assigned) if partitions is None else partitions
        began = self._network.now()
        found = await self._do(lambda deadline: self.work.commits.committed(given, deadline), timeout)
        self._measured.committed(self._network.now() - began)
        return found

    async def _commit_quietly(self, deadline: float) -> None:
        try:
            await self._host.result(lambda: self.work.commits.commit_consumed(deadline), deadline)
        except TagwireError as error:
            logger.warning("offsets were not committed automatically: %s", error)

    async def _commit_stored(self, deadline: float) -> None:
        """Commits what the listener has stored of partitions that go: it is the last that can say what is done with."""
        if self._settings.auto_commit and not self._settings.consume.auto_offset_store:
            await self._commit_quietly(deadline)

    # The end -------------------------------------------------------------------------------------------------------

    @contextmanager
    def closing(self, user: Hashable, timeout: float | None) -> Iterator[None]:
        """In the `with` block nobody begins a call, until the connections have ended, which it could then not use.

        Raises:
            ConsumerStateError: another user's call is not over. ConfigError: no timeout. Nothing has ended then, as
                with Kafka's Consumer.close.
        """
        seconds("timeout", timeout)
        with self._claimed(user, _IS_CLOSING if self._is_closing else _IN_USE):
            yield

    async def close(self, timeout: float, *, leaves: bool | None) -> None:
        """As `Consumer.close`; the host is stopped afterwards."""
        deadline = self._until(timeout)
        self._is_closing = True
        try:
            await self._give_up(deadline, _CLOSED, leaves=leaves)
        finally:
            self._is_closed = True

    async def _give_up(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        """Commits, tells the listener, and leaves the group."""
        self._given.note_consumed()
        failed: Exception | None = None
        try:
            if self._settings.auto_commit:
                await self._commit_quietly(deadline)
            if self.work.subscription.is_member:
                kind = RebalanceKind.REVOKED if self.work.is_member else RebalanceKind.LOST
                assigned = self.work.subscription.assigned
                known = [partition for partition, one in assigned.items() if one.is_announced]
                await self._tell_listener(kind, known)
        except Exception as error:
            failed = error
        if self._is_closed:  # by the listener: there is nothing left to give up
            if failed is not None:
                raise failed
            return
        await self._commit_stored(deadline)
        self._given.forget()
        try:
            await self._host.result(lambda: self.work.leave(deadline, reason, leaves=leaves), deadline)
        finally:  # it is left also where nobody waits for that any more
            self.work.events.clear()
            while self.work.failures:  # of what is not wanted any more
                self.work.failures.popleft().is_taken = True
        self._host.wakeup()
        self._call_back()
        if failed is not None:
            raise failed

    async def _do(self, function: Callable[[float], Work[Result]], timeout: float | None = None) -> Result:
        """What the coroutine that `function` begins gives; it is handed its deadline."""
        seconds("timeout", timeout)
        deadline = self._network.deadline() if timeout is None else self._network.now() + timeout
        return await self._host.result(lambda: function(deadline), deadline)
