"""What a consumer does beside the application: it is a member, finds where to begin, fetches, commits.

This is the work of a host, a thread of the consumer's own or the event loop, which alone calls it, except where a
method says otherwise. The application's side is `ConsumerCore`: what was fetched, partitions that come and go, and
errors are put down for it, and it takes them when it polls. Kafka's AsyncKafkaConsumer with its background thread is
the model.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Set
from contextlib import asynccontextmanager
from typing import Final

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.consuming.consumer_commits import ConsumerCommits
from tagwire.client.consuming.consumer_settings import ConsumerSettings
from tagwire.client.consuming.listener import RebalanceEvent, RebalanceKind
from tagwire.client.consuming.membership import Membership
from tagwire.client.consuming.memberships import membership_of
from tagwire.client.consuming.subscription_state import AssignedPartition, SubscriptionState, SubscriptionType
from tagwire.client.core_host import broken_down
from tagwire.client.fetch_positions import UNKNOWN, FetchBuffer, GivenPosition
from tagwire.client.fetching import Fetcher
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_ranges import Committed, Lag, position_of, resolved
from tagwire.client.offset_reset import NO_RESET
from tagwire.client.offsets import list_offsets, offsets_of
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.retry import is_retriable
from tagwire.client.scheduling import NEVER, Tasks, Wait, Work, sleep
from tagwire.client.topic_expansion import by_partition, partitions_of
from tagwire.errors import (
    ConsumerStateError,
    NoOffsetError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.partitions import LATEST, TopicPartition

logger = logging.getLogger("tagwire.client")

# Seconds after which what failed for now is tried again.
_PAUSE: Final = 0.1

# Seconds that leaving has also where the commit before it took all the time there was: its partitions would be nobody's
# until the end of its session. Less than what hosts allow beyond a deadline. Kafka's client sends both, and waits for
# neither then.
_LAST_MOMENT: Final = 0.5


class Failure:
    """An error that `poll` is to raise.

    Attributes:
        is_taken: whether it has. What failed is tried again then.
    """

    __slots__ = ("error", "is_taken")

    def __init__(self, error: TagwireError) -> None:
        self.error = error
        self.is_taken = False


class Move:
    """What the application asks for that makes partitions go on elsewhere.

    Attributes:
        is_given_up: whether nobody waits for it any more, such as a task that was cancelled: nothing moves then.
        moved: the partitions that go on elsewhere since, or are gone.
    """

    __slots__ = ("is_given_up", "moved")

    def __init__(self) -> None:
        self.is_given_up = False
        self.moved: Collection[TopicPartition] = ()


class ConsumerWork:
    """The consumer beside the application.

    Attributes:
        subscription: what is wanted, what is assigned, and how far that is. Others may look at it.
        fetched: what was fetched, for the application.
        commits: the commits.
        events, failures: for the application, which takes them from the left.
        breakdown: what went wrong as nothing should, and ended this; the application raises it.
        is_woken: whether `wakeup` was called; the application takes that back.
        on_news: called as soon as records have come, in the midst of a step.
        has_listener: whether the application wants to hear of partitions that come and go before they are fetched.

    Args:
        network: the consumer's own.
        tasks: where what the application asks for runs, beside this.
    """

    def __init__(self, network: NetworkClient, tasks: Tasks, settings: ConsumerSettings) -> None:
        self.subscription = SubscriptionState()
        self.fetched = FetchBuffer()
        self.events: deque[RebalanceEvent] = deque()
        self.failures: deque[Failure] = deque()
        self.is_woken = False
        self.has_listener = False
        self.on_news: Callable[[], None] = lambda: None
        self._network = network
        self._tasks = tasks
        self._settings = settings
        self._membership: Membership | None = None
        self._leaving = 0  # how many `leave` are still to forget what is wanted
        self._has_begun = False  # with what goes on for ever
        self._has_more = False  # whether the last step of the tasks may have made more of them ready
        self.breakdown: TagwireError | None = None
        self.commits = ConsumerCommits(network, tasks, settings, self.subscription, lambda: self._membership)
        self._fetcher = Fetcher(
            network,
            self.fetched,
            settings.fetch,
            settings.decoding.dialect,
            patience=NEVER,
            max_buffered=settings.fetch.max_bytes,
            creates_topics=self._creates_assigned,
        )

    # What the thread or the loop calls -----------------------------------------------------------------------------

    def step(self) -> None:
        """Does what can be done now."""
        self.commits.begin()
        if not self._has_begun:
            self._has_begun = True
            self._start("positions", self._find_positions)
            if self._settings.auto_commit:
                self._start("commits", self.commits.commit_now_and_then)
        if self._membership is not None and "membership" not in self._tasks:
            self._start("membership", self._be_member)
        if self._fetcher.take_responses():
            self.on_news()  # whoever waits for records goes on before the next are asked for
        self._hand_to_fetcher()
        self._fetcher.step()
        self._has_more = self._tasks.step(self._network.now())
        if self._has_more:
            self._hand_to_fetcher()
            self._fetcher.step()

    def until(self) -> float:
        """When the next step is due, should nothing happen before."""
        now = self._network.now()
        # What the tasks wait for changes by their own steps, by the fetcher's after them, and with a wake-up.
        if (self._has_more and self._tasks.is_any_over(now)) or self._fetcher.is_due or self.commits.is_due:
            return now
        return min(self._tasks.until, self._fetcher.until())

    def failed(self, error: BaseException) -> None:
        """Leaves the error to every `poll` from now on."""
        self.breakdown = self.breakdown or broken_down("consumer", error)

    def close(self) -> None:
        """Ends everything where it is. Nobody is told."""
        self._tasks.close()
        self._fetcher.close()
        self.commits.close()
        if self._membership is not None:
            self._membership.coordinator.close()
        self._network.close()

    def _start(self, name: str, work: Callable[[], Work[None]]) -> None:
        if self.breakdown is None:
            self._tasks.start(name, work(), lambda _, error: None if error is None else self.failed(error))

    # What the application waits for --------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether there is something for the application. It may look too."""
        return bool(
            self.is_woken
            or self.events
            or self.failures
            or self.commits.done
            or self.breakdown is not None
            or (self.fetched.has_any and self.is_member)
        )

    @property
    def waits_for_room(self) -> bool:
        """Whether less is fetched than could be, until the application has taken some of what was. It looks after it
        has taken some, and wakes whoever runs this."""
        return self._fetcher.is_held_back

    async def settled(self, event: RebalanceEvent) -> None:
        """Waits until what the application has done its part of has come to its end."""
        await Wait(lambda: event.is_settled, NEVER)

    def polled(self, now: float) -> bool:
        """The application polls. It calls this itself; whether there is something to do now, for which it wakes
        whoever runs this."""
        membership = self._membership
        return membership is not None and membership.polled(now)

    def told(self, kind: RebalanceKind, seconds: float) -> None:
        """The listener took so long. The application calls this itself."""
        if (membership := self._membership) is not None:
            metrics = membership.metrics
            {
                RebalanceKind.ASSIGNED: metrics.assigned,
                RebalanceKind.REVOKED: metrics.revoked,
                RebalanceKind.LOST: metrics.lost,
            }[kind](seconds)

    @property
    def metrics(self) -> MetricValues:
        """What the consumer measures, for either side."""
        return self._network.metrics.values("consumer", self._fetcher.metrics)

    # What the membership calls -------------------------------------------------------------------------------------

    @property
    def owned(self) -> Set[TopicPartition]:
        """As `RebalanceHandler.owned`."""
        return frozenset(partition for partition, one in self.subscription.assigned.items() if not one.is_released)

    async def revoke(self, partitions: Set[TopicPartition]) -> None:
        """As `RebalanceHandler.revoke`."""
        released = self._release(partitions)
        async with self._announced(RebalanceKind.REVOKED, _known(released)):
            self.subscription.remove(partitions)

    async def lose(self, partitions: Set[TopicPartition]) -> None:
        """As `RebalanceHandler.lose`."""
        released = self._release(partitions)
        for one in released:
            one.is_lost = True
        async with self._announced(RebalanceKind.LOST, _known(released)):
            self.subscription.remove(partitions)

    async def assign(self, partitions: Set[TopicPartition]) -> None:
        """As `RebalanceHandler.assign`."""
        self.subscription.add(partitions, is_announced=not self.has_listener)
        if self.has_listener:
            async with self._announced(RebalanceKind.ASSIGNED, partitions):
                for one in self.subscription.assigned.values():
                    one.is_announced = True

    def report(self, error: TagwireError) -> None:
        """As `RebalanceHandler.report`."""
        self.failures.append(Failure(error))

    def _release(self, partitions: Collection[TopicPartition]) -> list[AssignedPartition]:
        released = [self.subscription.assigned[each] for each in partitions if each in self.subscription.assigned]
        for one in released:
            one.is_released = True
        self._fetcher.remove(one.partition for one in released)
        return released

    @asynccontextmanager
    async def _announced(self, kind: RebalanceKind, partitions: Collection[TopicPartition]) -> AsyncIterator[None]:
        """Has the application hear of partitions, and waits until it has, in its next `poll`."""
        event = RebalanceEvent(kind, sorted(partitions))
        self.events.append(event)
        try:
            await Wait(lambda: event.is_done, NEVER)
            yield
        finally:
            event.is_settled = True

    async def _be_member(self) -> None:
        while (membership := self._membership) is not None:
            try:
                await membership.run()
                return
            except TagwireError as error:
                await self._tell(error)

    # Positions -----------------------------------------------------------------------------------------------------

    async def _find_positions(self) -> None:
        assigned = self.subscription

        def can_begin(one: AssignedPartition) -> bool:
            # What is on its way to be committed is where it begins; those that need not wait for that do not.
            return one.needs_position and not self.commits.is_committing(one.partition)

        while True:
            await Wait(lambda: any(can_begin(one) for one in assigned.assigned.values()), NEVER)
            wanted = [one for one in assigned.assigned.values() if can_begin(one)]
            try:
                await self._find(wanted)
            except TagwireError as error:
                if not is_retriable(error) and not isinstance(error, RequestTimeoutError):
                    await self._tell(error)
                else:
                    logger.info("positions of %s are not known yet: %s", ", ".join(map(_name, wanted)), error)
                    await sleep(self._network.now() + _PAUSE)

    async def _find(self, wanted: Collection[AssignedPartition]) -> None:
        """Begins at what the group has committed, or where the settings say that it begins without that."""
        found: Mapping[TopicPartition, OffsetAndMetadata] = {}
        if self._settings.group is not None:
            found = await self.commits.committed([one.partition for one in wanted], self._network.deadline())
        without: list[TopicPartition] = []
        for one in wanted:
            committed = found.get(one.partition)
            if not one.needs_position or self.subscription.assigned.get(one.partition) is not one:
                continue  # `seek` was called meanwhile, or it is gone
            if committed is not None:
                one.begin_at(committed.offset, committed.leader_epoch)
                one.committed = committed.offset
            elif self._settings.consume.offset_reset == NO_RESET:
                without.append(one.partition)
            else:
                one.is_located = True
        self._hand_to_fetcher()
        if without:
            why = "has no group" if self._settings.group is None else "is of a group that has committed nothing there"
            raise NoOffsetError(
                f"nothing says where to begin in {', '.join(map(str, without))}: the consumer {why}, and "
                "auto.offset.reset is none; seek, or set it to earliest or latest"
            )

    def _hand_to_fetcher(self) -> None:
        for one in self.subscription.assigned.values():
            if not one.is_fetched and one.waits_for_fetcher:
                one.is_fetched = True
                self._fetcher.add((one.fetch_position,))

    async def _tell(self, error: TagwireError) -> None:
        """Has `poll` raise an error, and waits until it has."""
        failure = Failure(error)
        self.failures.append(failure)
        await Wait(lambda: failure.is_taken, NEVER)

    # What the application asks for: subscription -------------------------------------------------------------------

    async def subscribe(self, topics: frozenset[str], pattern: str | None, *, has_listener: bool) -> None:
        """Wants topics, or a pattern of them, in the place of what was wanted before."""
        if self._settings.group is None:
            raise ConsumerStateError(
                "a consumer without a group cannot subscribe: give it group=, or assign partitions"
            )
        await self._left()
        kind = SubscriptionType.AUTO_TOPICS if pattern is None else SubscriptionType.AUTO_PATTERN
        self.subscription.require_kind(kind)
        membership = self._membership or membership_of(self._network, self._settings.group, self)
        membership.subscribe(topics, pattern)  # what is no pattern is refused, and nothing has changed
        self.subscription.subscribe(topics, pattern)
        self._membership, self.has_listener = membership, has_listener

    async def assign_by_hand(self, partitions: object, deadline: float, move: Move) -> None:
        """Takes partitions in the place of those before, from any form that `Consumer.assign` takes."""
        await self._left()
        starts: Mapping[TopicPartition, object] = {}
        if isinstance(partitions, Mapping):
            starts = await by_partition(
                self._network, arguments.by_topic_or_partition("partitions", partitions, '"earliest"'), deadline
            )
            named = list(starts)
        else:
            named = await partitions_of(
                self._network, arguments.topics_or_partitions("partitions", partitions), deadline
            )
        self.subscription.require_kind(SubscriptionType.USER_ASSIGNED)
        offsets = await self._resolved(starts)
        if move.is_given_up:
            return
        gone = self.subscription.assigned.keys() - set(named)
        move.moved = gone | offsets.keys()
        self._release(gone)
        self.subscription.assign_by_hand(named)
        self._begin(offsets)

    def _creates_assigned(self) -> bool:
        """Whether brokers may create a topic that is assigned by hand; the membership asks about others."""
        by_hand = self.subscription.kind is SubscriptionType.USER_ASSIGNED
        return by_hand and self._settings.consume.allow_auto_create

    async def leave(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        """Forgets what is wanted and assigned; the application has done its part.

        Args:
            leaves: whether the group is told; None as the membership does.
        """
        self._release(list(self.subscription.assigned))
        self._leaving += 1
        try:
            await self.commits.finish(deadline)
        finally:
            self._leaving -= 1
        membership, self._membership = self._membership, None
        self.subscription.unsubscribe()
        if membership is not None:
            last = max(deadline, self._network.now() + _LAST_MOMENT)
            await membership.leave(last, reason, leaves=leaves)

    async def _left(self) -> None:
        """Waits until what was wanted before is forgotten: who called `leave` may have given up waiting for it."""
        await Wait(lambda: not self._leaving, NEVER)

    async def rejoin(self, reason: str) -> None:
        """Has the group rebalance. Raises ConsumerStateError where the consumer is no member."""
        if self._membership is None:
            raise ConsumerStateError("the consumer is no member of a group: subscribe first")
        self._membership.request_rejoin(reason)

    @property
    def is_member(self) -> bool:
        """Whether what is assigned is the consumer's: of one that assigns by hand it always is. For either side."""
        membership = self._membership
        return membership is None or membership.holds_partitions

    @property
    def group_metadata(self) -> GroupMetadata:
        """The group and the member. Raises ConsumerStateError without a group. For either side."""
        if self._settings.group is None:
            raise ConsumerStateError("the consumer has no group: give it group=")
        if (membership := self._membership) is not None:
            return membership.metadata
        return GroupMetadata(self._settings.group.group, instance_id=self._settings.group.instance_id)

    # What the application asks for: positions ----------------------------------------------------------------------

    async def seek(self, positions: Mapping[TopicPartition, object], move: Move) -> None:
        """Goes on at a position in each partition. Raises KeyError for one that is not assigned, and as
        `Client.list_offsets`."""
        for partition in positions:
            self.subscription.require(partition)
        offsets = await self._resolved(positions)
        if not move.is_given_up:
            move.moved = offsets.keys()
            self._begin(offsets)

    async def rewind(self) -> None:
        """Fetches anew what the application is not done with."""
        for one in self.subscription.assigned.values():
            offset, leader_epoch = one.consumed or one.fetch_position.began
            if offset != UNKNOWN:
                one.fetch_position.seek(offset, leader_epoch)

    async def _resolved(self, positions: Mapping[TopicPartition, object]) -> dict[TopicPartition, GivenPosition]:
        """(offset, leader epoch) of each. Raises ConfigError for what means nothing."""
        known = {
            partition: GivenPosition(arguments.offset(f"position: {partition}", given.offset), given.leader_epoch)
            for partition, given in positions.items()
            if isinstance(given, OffsetAndMetadata)
        }
        wanted = {
            partition: position_of(f"position: {partition}", given)
            for partition, given in positions.items()
            if partition not in known
        }
        if committed := {partition for partition, given in wanted.items() if isinstance(given, Committed)}:
            await self.commits.settled(committed, self._network.deadline())
        fetch = self._settings.fetch
        found = await resolved(self._network, wanted, fetch.isolation, fetch.group)
        return known | {partition: GivenPosition(offset) for partition, offset in found.items()}

    def _begin(self, offsets: Mapping[TopicPartition, GivenPosition]) -> None:
        for partition, offset in offsets.items():
            if (one := self.subscription.assigned.get(partition)) is not None:
                one.seek(*offset)
        for failure in [one for one in self.failures if isinstance(one.error, NoOffsetError)]:
            failure.is_taken = True  # what was asked for before is looked for again, as far as it is still missing
            self.failures.remove(failure)

    async def pause(
        self,
        partitions: Collection[TopicPartition],
        unread: Mapping[TopicPartition, GivenPosition],
        *,
        is_paused: bool,
    ) -> None:
        """Has nothing more of these given out, or has it again.

        Args:
            unread: where to go on in those of which something was taken that was not given out.
        """
        for partition in partitions:
            if (one := self.subscription.assigned.get(partition)) is not None:
                one.fetch_position.is_paused = is_paused
                if partition in unread:
                    one.fetch_position.seek(*unread[partition])

    async def await_position(self, partition: TopicPartition, deadline: float) -> None:
        """Waits until it is known where to begin, or there is an error for the application. Raises KeyError,
        RequestTimeoutError, and what is wrong with the partition, which `poll` raises in its turn."""
        one = self.subscription.require(partition)
        one.is_announced = True  # who asks has heard of it, and may be the listener that is being told
        position = one.fetch_position

        def refusal() -> TagwireError | None:
            failure = position.failure
            return None if failure is None or failure.is_taken else failure.error

        def is_over() -> bool:
            is_known = position.given.offset != UNKNOWN
            return is_known or refusal() is not None or bool(self.failures) or self.breakdown is not None

        await Wait(is_over, deadline)
        if not is_over():
            raise RequestTimeoutError(f"where to begin in {partition} was not found out in time")
        if position.given.offset == UNKNOWN and (error := refusal()) is not None:
            raise error

    async def lag(self, positions: Mapping[TopicPartition, int], deadline: float) -> dict[TopicPartition, Lag]:
        """How far these positions are from the ends as the last responses told them; where none did, from what
        ListOffsets tells."""
        ends = {
            partition: one.fetch_position.readable_end
            for partition, one in self.subscription.assigned.items()
            if partition in positions
        }
        unknown = {partition: LATEST for partition, end in ends.items() if end == UNKNOWN}
        ends |= await list_offsets(self._network, unknown, deadline, self._settings.fetch.isolation)
        return {
            partition: Lag(end, positions[partition], max(0, end - positions[partition]))
            for partition, end in sorted(ends.items())
        }

    async def partitions_for(self, topic: str, deadline: float) -> dict[int, PartitionMetadata]:
        """The partitions of a topic, by number. Raises as `Client.topic`."""
        return dict((await self._network.topic(topic, deadline)).partitions)

    async def list_offsets(self, partitions: object, deadline: float) -> dict[TopicPartition, int]:
        """As `Client.list_offsets`."""
        return await offsets_of(self._network, partitions, self._settings.fetch.isolation, deadline)


def _known(released: Collection[AssignedPartition]) -> list[TopicPartition]:
    """Those that the listener has heard of."""
    return [one.partition for one in released if one.is_announced]


def _name(one: AssignedPartition) -> str:
    return str(one.partition)
