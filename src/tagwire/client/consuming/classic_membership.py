"""A member of a classic group: it joins, is assigned partitions by the leader or leads itself, and sends heartbeats.

Rebalances are eager, where everything is given up before the member joins, or cooperative (KIP-429), where only what
another member gets is given up, after which it joins again. The assignors decide: the group uses what all of the
member's have in common. Kafka's classes: AbstractCoordinator, ConsumerCoordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Final

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.consuming import group_requests as requests
from tagwire.client.consuming.assignors.assignor import Assignor, RebalanceProtocol
from tagwire.client.consuming.consumer_protocol import Assignment, Subscription, encode_subscription
from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.consuming.group_leader import group_assignment, member_subscriptions
from tagwire.client.consuming.group_requests import Generation
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.heartbeat import Heartbeat
from tagwire.client.consuming.member_tasks import run_together
from tagwire.client.consuming.membership import RebalanceHandler
from tagwire.client.consuming.static_leader import is_outgrown
from tagwire.client.consuming.topic_watch import TopicWatch
from tagwire.client.metrics.coordinator import CoordinatorMetrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.scheduling import NEVER, Wait, sleep
from tagwire.errors import ConfigError, Error, KafkaError, RemoteProtocolError, RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.spec.api_keys import ApiKey

logger = logging.getLogger("tagwire.client")

# Seconds that a JoinGroup may take beside the rebalance timeout, at whose end the coordinator responds.
JOIN_GRACE: Final = 5.0

_NO_COORDINATOR: Final = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)

# So often in a row an assignment may be of topics that are not subscribed to, before that is an error.
_STRANGE_ASSIGNMENTS: Final = 3

# What the next JoinGroup mends.
_REJOINS: Final = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.MEMBER_ID_REQUIRED,
)

POLL_EXPIRED: Final = (
    "group %r: the consumer did not poll for longer than max.poll.interval.ms (%g s), and leaves until it does: either "
    "take fewer records at a time, or let it take longer"
)


class MemberState(Enum):
    """Where a member is (Kafka's AbstractCoordinator.MemberState)."""

    UNJOINED = "has not joined"
    PREPARING_REBALANCE = "has sent JoinGroup"
    COMPLETING_REBALANCE = "has sent SyncGroup"
    STABLE = "has its assignment"


class ClassicMembership:
    """A `Membership` by JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

    Attributes:
        coordinator, last_error, metrics: see `Membership`.
        state: where it is.

    Args:
        network: the consumer's. assignors: those of the settings, in their order.
        handler: what becomes of partitions.

    Raises:
        ConfigError: the assignors have no way of rebalancing in common.
    """

    def __init__(
        self, network: NetworkClient, settings: GroupSettings, assignors: Sequence[Assignor], handler: RebalanceHandler
    ) -> None:
        self.coordinator = GroupCoordinator(network, settings.group)
        self.last_error: TagwireError | None = None
        self.metrics = CoordinatorMetrics(network.metrics, lambda: len(handler.owned))
        self.state = MemberState.UNJOINED
        self._network = network
        self._settings = settings
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._protocol = _shared_protocol(assignors)
        self._handler = handler
        self._topics = TopicWatch(network, settings)
        self._generation = Generation()
        self._metadata = self._member()
        self._incarnation = object()
        self._joined_topics: frozenset[str] = frozenset()
        self._rejoin_reason = ""
        self._is_rejoin_needed = True
        self._revoked_in = -1  # the generation in which partitions were given up, for others to have in the next
        self._is_rebalancing = False
        self._is_leaving = False
        self._is_stale = True  # the user has not polled for too long, or not yet
        self._heartbeat = Heartbeat(settings)
        self._strange_assignments = 0
        self._has_skipped = False  # it leads by an assignment that it has not made
        self._rebalanced_from: float | None = None

    # What the consumer asks ----------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        return self._metadata

    @property
    def incarnation(self) -> object:
        return self._incarnation

    @property
    def is_rebalancing(self) -> bool:
        return self._is_rebalancing or self._is_rejoin_needed

    @property
    def holds_partitions(self) -> bool:
        return self._generation.id >= 0 and not self._is_session_over()

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        self._topics.subscribe(topics, pattern)
        if pattern is None and topics != self._joined_topics:
            self.request_rejoin("the subscription has changed")

    def polled(self, now: float) -> bool:
        was_stale = self._is_stale
        self._is_stale = False
        self._heartbeat.polled(now)
        return was_stale

    def request_rejoin(self, reason: str) -> None:
        if not self._is_rejoin_needed:
            logger.info("group %r: joining again: %s", self._settings.group, reason)
            self._is_rejoin_needed, self._rejoin_reason = True, reason

    def require_member(self) -> GroupMetadata:
        if self._is_session_over():
            self._expire_session()
        if self.state is MemberState.STABLE:
            return self.metadata
        what = f"group {self._settings.group!r}: the member {self.state.value}"
        if self.state is MemberState.UNJOINED:
            raise KafkaError(Error.UNKNOWN_MEMBER_ID, f"{what}, and its partitions may be another's by now")
        raise KafkaError(Error.REBALANCE_IN_PROGRESS, f"{what}, and nothing can be committed until it has joined")

    def commit_refused(self, error: KafkaError, sent: GroupMetadata) -> bool:
        if sent == self._member() and error.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._reset(f"OffsetCommit: {error.error.name}", keeps_id=error.error is Error.ILLEGAL_GENERATION)
        return False

    async def run(self) -> None:
        self._is_leaving = False
        try:
            await run_together(
                (self._heartbeats(), self._rebalances(), self._watch_topics()),
                self._network.now,
                until=lambda: self._is_leaving,
            )
        except TagwireError as error:
            self.last_error = error
            self._reset(str(error), keeps_id=True)
            if self._handler.owned:
                await self._handler.lose(self._handler.owned)
            raise

    async def leave(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        self._is_leaving = True
        await self._tell_leaving(deadline, reason, leaves=leaves)

    # The membership ------------------------------------------------------------------------------------------------

    def _member(self) -> GroupMetadata:
        generation = self._generation
        return GroupMetadata(self._settings.group, generation.id, generation.member_id, self._settings.instance_id)

    def _reset(self, reason: str, *, keeps_id: bool) -> None:
        """The generation holds no more, and what is owned is lost. The id may still be one that the group has."""
        logger.info("group %r: generation %d holds no more: %s", self._settings.group, self._generation.id, reason)
        self.state, self._incarnation = MemberState.UNJOINED, object()
        self._generation = Generation(member_id=self._generation.member_id if keeps_id else "")
        self._is_rejoin_needed, self._rejoin_reason = True, reason

    def _lost_coordinator(self, error: TagwireError) -> None:
        """Raises `error` unless a coordinator may be found, or respond, later."""
        self.last_error = error
        if not (is_retriable(error) or isinstance(error, RequestTimeoutError)):
            raise error
        if not isinstance(error, KafkaError) or error.error in _NO_COORDINATOR:
            self.coordinator.mark_unknown(str(error))

    @property
    def _has_session(self) -> bool:
        """Whether the coordinator gives the member up unless it hears of it."""
        return self._generation.id >= 0 and not self._heartbeat.waits_to_join

    def _is_session_over(self) -> bool:
        return self._network.now() >= self._heartbeat.session_until and self._has_session

    def _expire_session(self) -> None:
        late = f"no heartbeat had a response for {self._settings.session_seconds:g} s (session.timeout.ms)"
        logger.warning("group %r: %s: the partitions are lost", self._settings.group, late)
        self.coordinator.mark_unknown(late)
        self._reset(late, keeps_id=True)

    async def _tell_leaving(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        """Leaves, where the group would else wait for the session to end, and forgets the generation. A static member
        does not say so, if nobody wants it to: it may come back."""
        if leaves is None:
            leaves = self._settings.instance_id is None
        member, state = self._generation.member_id, self.state
        self._reset(reason, keeps_id=False)
        if not member or not leaves:
            return
        if state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE):
            self.coordinator.close()  # what waits there for the other members would have the response come first
        await self.coordinator.leave(
            lambda connection: requests.leave_request(
                self._settings, member, reason, connection.version(ApiKey.LEAVE_GROUP)
            ),
            lambda response: [response.error_code, *(left.error_code for left in response.members)],
            deadline,
            "LeaveGroup",
        )

    # Heartbeats ----------------------------------------------------------------------------------------------------

    @property
    def _sends_heartbeats(self) -> bool:
        return self.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    async def _heartbeats(self) -> None:
        while True:
            await Wait(lambda: self._has_session, NEVER)
            times = self._heartbeat
            due = times.session_until
            if self._sends_heartbeats:
                due = min(due, times.due_at, times.poll_until)
            await Wait(lambda: not self._has_session, due)
            now = self._network.now()
            if self._is_session_over():
                self._expire_session()
            elif self._sends_heartbeats and now >= times.poll_until:
                await self._expire_poll()
            elif self._sends_heartbeats and now >= times.due_at:
                await self._send_heartbeat()

    async def _expire_poll(self) -> None:
        logger.warning(POLL_EXPIRED, self._settings.group, self._settings.max_poll_interval)
        self._is_stale = True
        await self._tell_leaving(self._network.deadline(), "consumer poll timeout has expired.")

    async def _send_heartbeat(self) -> None:
        sent, sent_at = self._generation, self._network.now()
        self._heartbeat.sent(sent_at)
        self.metrics.heartbeat_sent()
        try:
            response = await self.coordinator.request(
                lambda connection: requests.heartbeat_request(self._settings, sent),
                min(self._heartbeat.session_until, self._network.deadline()),
            )
            self.metrics.heartbeat(self._network.now() - sent_at)
            if response.error_code:
                raise KafkaError(response.error_code, f"Heartbeat of group {self._settings.group!r}")
        except TagwireError as error:
            if sent is not self._generation:
                return  # it was of another membership
            if not isinstance(error, KafkaError) or not self._is_refused(error):
                self._lost_coordinator(error)
                self._heartbeat.failed(self._network.now(), self._network.driver.random)
                return
        if sent is self._generation:
            self.last_error = None
            self._heartbeat.answered(sent_at)

    def _is_refused(self, error: KafkaError) -> bool:
        """Whether the coordinator knows the member, or has told that it does not: a heartbeat that need not be
        repeated."""
        if error.error is Error.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
            return True
        if error.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._reset(f"Heartbeat: {error.error.name}", keeps_id=error.error is Error.ILLEGAL_GENERATION)
            return True
        return False

    # Rebalances ----------------------------------------------------------------------------------------------------

    async def _rebalances(self) -> None:
        attempts = 0
        while True:
            await Wait(lambda: self._is_rejoin_needed and not self._is_stale and self._topics.is_wanted, NEVER)
            self._is_rebalancing = True
            try:
                await self._rebalance()
            except TagwireError as error:
                attempts += 1
                self._is_rejoin_needed = True
                if not (isinstance(error, KafkaError) and error.error is Error.MEMBER_ID_REQUIRED):
                    self.metrics.rebalance_failed()
                await self._pause(error, attempts)
            else:
                attempts, self.last_error = 0, None
            finally:
                self._is_rebalancing = False

    async def _pause(self, error: TagwireError, attempts: int) -> None:
        """Waits before the next attempt, if one is worth it: not before the first that says only to join again."""
        logger.info("group %r: could not join: %s", self._settings.group, error)
        now = self._network.now()
        if isinstance(error, KafkaError) and error.error in _REJOINS:
            self.last_error = error
            attempts -= 1
        else:
            self._lost_coordinator(error)
        self._heartbeat.join_failed(now, is_first=attempts == 1)
        if self._is_session_over():
            self._expire_session()
        if attempts:
            await sleep(now + pause_before(attempts, self._network.driver.random))

    async def _rebalance(self) -> None:
        await self._lose_what_ended()  # before anybody is asked, who may be away
        if self._topics.has_pattern:
            await self._topics.refresh(self._network.deadline())
        await self._prepare()
        if self._is_stale:
            return  # the user took too long for the revocation, and the member has left
        self._is_rejoin_needed = False
        assignment = await self._join()
        await self._complete(assignment)

    async def _prepare(self) -> None:
        """Gives up what a member may not have while it joins (ConsumerCoordinator.onJoinPrepare)."""
        await self._lose_what_ended()
        owned = self._handler.owned
        if self._protocol is RebalanceProtocol.EAGER:
            if owned:
                await self._handler.revoke(owned)
        elif unsubscribed := {partition for partition in owned if not self._topics.admits(partition.topic)}:
            await self._handler.revoke(unsubscribed)
        await self._lose_what_ended()  # meanwhile
        self._topics.follow()

    async def _lose_what_ended(self) -> None:
        """What is owned of a generation that holds no more is lost."""
        if (self._generation.id < 0 or not self._generation.member_id) and self._handler.owned:
            await self._handler.lose(self._handler.owned)

    async def _join(self) -> Assignment:
        """JoinGroup and SyncGroup. Raises KafkaError: the coordinator refuses; what that tells of the generation is
        taken."""
        group, before = self._settings.group, self._generation
        topics = self._joined_topics = self._topics.topics
        self.state = MemberState.PREPARING_REBALANCE
        logger.info("group %r: joining%s", group, f": {self._rejoin_reason}" if self._rejoin_reason else "")
        message = requests.join_request(self._settings, before.member_id, self._protocols(topics), self._rejoin_reason)
        patience = max(self._network.timeout, self._settings.max_poll_interval + JOIN_GRACE)
        began = self._network.now()
        if self._rebalanced_from is None:
            self._rebalanced_from = began

        def sent(connection: BrokerConnection) -> messages.JoinGroupRequest:
            if self._generation is not before:
                raise KafkaError(Error.ILLEGAL_GENERATION, f"group {group!r}: the generation ended before JoinGroup")
            self._heartbeat.join_sent()
            return message

        joined = await self.coordinator.request(sent, began + patience)
        if joined.error_code:
            error = KafkaError(joined.error_code, f"JoinGroup of group {group!r}")
            if error.error is Error.MEMBER_ID_REQUIRED:
                self._generation = Generation(member_id=joined.member_id)
            elif error.error is Error.UNKNOWN_MEMBER_ID:
                self._reset("JoinGroup: UNKNOWN_MEMBER_ID", keeps_id=False)
            raise error
        self.metrics.joined(self._network.now() - began)
        generation = requests.joined_generation(joined, before, list(self._assignors), group)
        self._begin(generation)
        assignments: dict[str, bytes] = {}
        if joined.leader == generation.member_id:
            subscriptions = member_subscriptions(joined.members, group)
            wanted = frozenset(topic for each in subscriptions.values() for topic in each.topics)
            racks = await self._topics.lead(wanted, self._network.deadline())
            self._report_refusal()
            if not joined.skip_assignment:  # a static leader that is back keeps what it had (KIP-814)
                assignor = self._assignors[generation.protocol]
                assignments = group_assignment(assignor, self._protocol, racks, subscriptions)
        began = self._network.now()
        synced = await self.coordinator.request(
            lambda connection: requests.sync_request(self._settings, generation, assignments), self._network.deadline()
        )
        if self._generation is not generation:
            raise KafkaError(Error.ILLEGAL_GENERATION, f"group {group!r}: the generation ended before SyncGroup did")
        if synced.error_code:
            error = KafkaError(synced.error_code, f"SyncGroup of group {group!r}")
            if error.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                self._reset(f"SyncGroup: {error.error.name}", keeps_id=error.error is Error.ILLEGAL_GENERATION)
            raise error
        assignment = requests.synced_assignment(synced, generation, group)
        self._has_skipped = joined.skip_assignment and joined.leader == generation.member_id
        now, self.state, self._metadata = self._network.now(), MemberState.STABLE, self._member()
        self.metrics.synced(now - began)
        self.metrics.rebalanced(now - self._rebalanced_from)
        self._rebalanced_from = None
        return assignment

    def _begin(self, generation: Generation) -> None:
        self._generation, self.state = generation, MemberState.COMPLETING_REBALANCE
        self._heartbeat.joined(self._network.now())

    def _protocols(self, topics: frozenset[str]) -> Iterable[tuple[str, bytes]]:
        """What is told to each assignor, should the group use it."""
        owned = tuple(self._handler.owned)
        for assignor in self._assignors.values():
            subscription = Subscription(
                tuple(topics),
                assignor.subscription_user_data(topics, owned),
                owned,
                self._generation.id,
                self._settings.rack or None,
            )
            yield assignor.name, encode_subscription(subscription)

    async def _complete(self, assignment: Assignment) -> None:
        """Takes the assignment (ConsumerCoordinator.onJoinComplete)."""
        generation, partitions = self._generation, set(assignment.partitions)
        if strange := self._strange(partitions):
            self._refuse_assignment(strange)
            return
        self._strange_assignments = 0
        self._topics.add(frozenset(partition.topic for partition in partitions))
        self._joined_topics |= {partition.topic for partition in partitions}
        owned = self._handler.owned
        if generation.id == self._revoked_in:
            # A static member that went meanwhile is given its old assignment back; what it gave up is nobody's.
            self._revoked_in = -1
            self.request_rejoin("need to revoke partitions and re-join")
        if revoked := owned - partitions:
            self._revoked_in = generation.id
            await self._handler.revoke(revoked)
            self.request_rejoin("need to revoke partitions and re-join")
        if self._generation is not generation:
            return
        self._assignors[generation.protocol].on_assignment(assignment, self.metadata)
        await self._handler.assign(partitions - owned)

    def _strange(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """What of an assignment is not of a topic that the member has subscribed to."""
        return sorted(partition for partition in partitions if not self._topics.admits(partition.topic))

    def _refuse_assignment(self, strange: list[TopicPartition]) -> None:
        """Joins again: the subscription may have changed meanwhile, or, of a static member, since it was here last.
        Raises RemoteProtocolError where that was tried and does not help."""
        self._strange_assignments += 1
        if self._strange_assignments > _STRANGE_ASSIGNMENTS and strange[0].topic not in self._joined_topics:
            self._strange_assignments = 0
            raise RemoteProtocolError(
                f"assignment of group {self._settings.group!r}: it names {strange[0]}, a topic that the member has not "
                "subscribed to"
            )
        self.request_rejoin("received assignment does not match the current subscription")

    # Topics --------------------------------------------------------------------------------------------------------

    async def _watch_topics(self) -> None:
        """Joins again where the topics of the pattern, or of the group that this member leads, have changed."""
        failures = 0
        while True:
            await Wait(lambda: self._is_watching, NEVER)
            try:
                if self._has_skipped:
                    await self._look_at_assignments()
                due = self._topics.refresh_at
                await Wait(partial(self._is_watched_before, due), due)
                if not self._is_watching or self._network.now() < self._topics.refresh_at:
                    continue
                await self._topics.refresh(self._network.deadline())
                self._report_refusal()
                failures = 0
            except TagwireError as error:
                self._lost_coordinator(error)
                failures += 1
                await sleep(self._network.now() + pause_before(failures, self._network.driver.random))
                continue
            if self._topics.has_changed:
                self.request_rejoin("cached metadata has changed")
            elif self._topics.topics != self._joined_topics:
                self.request_rejoin("the subscription has changed")

    def _report_refusal(self) -> None:
        """Nobody is given anything of a topic that the leader may not see: the user hears of it, and the group goes on
        with the others."""
        if (refusal := self._topics.new_refusal()) is not None:
            self._handler.report(refusal)

    async def _look_at_assignments(self) -> None:
        generation, partitions, deadline = self._generation, self._topics.partitions, self._network.deadline()
        outgrown = await is_outgrown(self.coordinator, self._settings.group, partitions, deadline)
        if self._generation is generation:
            self._has_skipped = False
            if outgrown:
                self.request_rejoin("partitions came while the leader was away")

    def _is_watched_before(self, due: float) -> bool:
        # Another pattern is looked for at once, however long what the one before matched would have held.
        return not self._is_watching or self._topics.refresh_at < due

    @property
    def _is_watching(self) -> bool:
        is_idle = self.state is MemberState.STABLE and not self._is_rejoin_needed and not self._is_rebalancing
        return is_idle and self._topics.is_watching


def _shared_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most cooperative way of rebalancing that all assignors have."""
    shared = frozenset(RebalanceProtocol).intersection(*(assignor.protocols for assignor in assignors))
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ConfigError(f"partition.assignment.strategy: {names}: have no way of rebalancing in common")
    return max(shared, key=lambda protocol: protocol.value)
