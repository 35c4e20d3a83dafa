"""A member of a group of KIP-848: the broker assigns, by the responses to heartbeats, and the member moves by itself.

What it has too much it gives up first; what it then gets it takes; and with the next heartbeat it says what it has. A
member that the coordinator does not know, or whose epoch does not hold, loses everything and joins anew. Kafka's
classes: ConsumerMembershipManager, ConsumerHeartbeatRequestManager; KIP-848, KIP-1082.
"""

from __future__ import annotations

import base64
import logging
from functools import partial
from typing import Final

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.consuming.classic_membership import POLL_EXPIRED
from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.heartbeat_fields import (
    JOINING,
    HeartbeatFields,
    PartitionsById,
    check_response,
)
from tagwire.client.consuming.member_tasks import run_together
from tagwire.client.consuming.membership import RebalanceHandler
from tagwire.client.consuming.missing_topics import MISSING_TOPIC_INTERVAL, MissingTopics
from tagwire.client.consuming.topic_names import TopicNames
from tagwire.client.metrics.coordinator import CoordinatorMetrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.scheduling import NEVER, Wait
from tagwire.errors import (
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import CONSUMER_GROUP_HEARTBEAT_PATTERN
from tagwire.spec.api_keys import ApiKey

logger = logging.getLogger("tagwire.client")

_NO_COORDINATOR: Final = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
_FENCED: Final = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID)

NOT_SERVED: Final = (
    "the broker does not serve group.protocol=consumer (KIP-848; Kafka 4.0 and later, where group.version is not 0): "
    "set group.protocol=classic"
)


class ConsumerMembership:
    """A `Membership` by ConsumerGroupHeartbeat.

    Attributes:
        coordinator, last_error, metrics: see `Membership`.
        member_id: made here, and the member's for as long as it lives.
        epoch: of the member; 0 while it is none.

    Args:
        network: the consumer's. handler: what becomes of partitions.
    """

    def __init__(self, network: NetworkClient, settings: GroupSettings, handler: RebalanceHandler) -> None:
        self.coordinator = GroupCoordinator(network, settings.group)
        self.last_error: TagwireError | None = None
        self.metrics = CoordinatorMetrics(network.metrics, lambda: len(handler.owned))
        self.member_id = base64.urlsafe_b64encode(network.driver.random.randbytes(16)).decode().rstrip("=")
        self.epoch = JOINING
        self._held_epoch = -1  # the last of the member's
        self._network = network
        self._settings = settings
        self._handler = handler
        self._names = TopicNames(network)
        self._fields = HeartbeatFields(settings, self.member_id)
        self._topics: frozenset[str] = frozenset()
        self._unseen: frozenset[str] = frozenset()  # those of them that metadata is still to be looked at for
        self._missing = MissingTopics(settings.group)
        self._pattern: str | None = None
        self._admitted: set[str] = set()  # what was subscribed to since the member joined
        self._admits_all = False  # as a pattern may
        self._target: PartitionsById | None = None  # None where the coordinator has told none
        self._current: PartitionsById | None = None  # what of it is taken
        self._owned: PartitionsById = {}  # what the coordinator is told: what is being taken, too
        self._joined = object()  # another one each time that the member joins
        self._must_lose = False  # before it joins again
        self._may_be_known = False  # to the coordinator, which may have taken a heartbeat that it has not answered
        self._is_reconciling = False  # gives up or takes partitions; not what waits for a topic's name
        self._is_leaving = False
        self._is_stale = True  # the user has not polled for too long, or not yet
        self._polled_at = 0.0
        self._heartbeat_at = 0.0
        self._failures = 0
        self._rebalanced_from: float | None = None

    # What the consumer asks ----------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self._settings.group, self._held_epoch, self.member_id, self._settings.instance_id)

    @property
    def incarnation(self) -> object:
        return self._joined

    @property
    def is_rebalancing(self) -> bool:
        return self.epoch <= 0 or self._must_lose or self._is_reconciling

    @property
    def holds_partitions(self) -> bool:
        return self.epoch > 0 and not self._must_lose

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        self._unseen = (self._unseen & topics) | (topics - self._topics)
        self._topics, self._pattern = topics, pattern
        self._admit()
        self._heartbeat_at = min(self._heartbeat_at, self._network.now())

    def polled(self, now: float) -> bool:
        was_stale = self._is_stale
        self._polled_at, self._is_stale = now, False
        return was_stale

    def request_rejoin(self, reason: str) -> None:
        logger.warning("group %r: there is no rebalance to ask for with group.protocol=consumer", self._settings.group)

    def require_member(self) -> GroupMetadata:
        if self.epoch > 0:
            return self.metadata
        raise KafkaError(
            Error.UNKNOWN_MEMBER_ID,
            f"group {self._settings.group!r}: the member has not joined, and its partitions may be another's by now",
        )

    def commit_refused(self, error: KafkaError, sent: GroupMetadata) -> bool:
        if error.error not in (Error.STALE_MEMBER_EPOCH, *_FENCED):
            return False
        if sent.generation == self.epoch:
            self._heartbeat_at = self._network.now()  # it tells the epoch that holds, or that none does
        return error.error is Error.STALE_MEMBER_EPOCH and self.epoch > 0

    async def run(self) -> None:
        self._is_leaving = False
        try:
            await run_together(
                (self._heartbeats(), self._reconciliations(), self._looks()),
                self._network.now,
                until=lambda: self._is_leaving,
            )
        except TagwireError as error:
            logger.error("group %r: the membership ends: %s", self._settings.group, error)
            self.last_error = error
            self._drop()
            if self._handler.owned:
                await self._handler.lose(self._handler.owned)
            self._must_lose = False
            raise

    async def leave(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        self._is_leaving = True
        await self._tell_leaving(deadline, reason, leaves=leaves)
        self._must_lose = False  # the caller has released the partitions

    # The membership ------------------------------------------------------------------------------------------------

    @property
    def _is_wanted(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    def _admit(self) -> None:
        self._admitted |= self._topics
        self._admits_all |= self._pattern is not None

    def _drop(self) -> None:
        """The membership is over: what is owned is lost before the member joins again."""
        self.epoch, self._joined, self._must_lose = JOINING, object(), True
        self._may_be_known = False
        self._target = self._current = None
        self._owned = {}
        self._heartbeat_at = self._network.now()
        self._admitted, self._admits_all = set(), False
        self._admit()
        self._fields.reset()

    async def _tell_leaving(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        may_be_known = self._may_be_known
        self._drop()
        # A static member that is to stay says so, too: else its instance id would be taken until the session's end.
        if not may_be_known or (leaves is False and self._settings.instance_id is None):
            return
        logger.info("group %r: leaving: %s", self._settings.group, reason)
        message = self._fields.leave_request(for_good=bool(leaves))
        await self.coordinator.leave(
            lambda connection: message, lambda response: [response.error_code], deadline, "ConsumerGroupHeartbeat"
        )

    # Heartbeats ----------------------------------------------------------------------------------------------------

    @property
    def _sends_heartbeats(self) -> bool:
        return self._is_wanted and not self._is_stale and not self._must_lose

    async def _heartbeats(self) -> None:
        while True:
            await Wait(lambda: self._sends_heartbeats, NEVER)
            poll_until = self._polled_at + self._settings.max_poll_interval
            due = min(self._heartbeat_at, poll_until)
            await Wait(partial(self._is_due_before, due), due)
            now = self._network.now()
            if not self._sends_heartbeats:
                continue
            if now >= self._polled_at + self._settings.max_poll_interval:
                await self._expire_poll()
            elif now >= self._heartbeat_at:
                await self._heartbeat()

    def _is_due_before(self, due: float) -> bool:
        return not self._sends_heartbeats or self._heartbeat_at < due

    async def _expire_poll(self) -> None:
        logger.warning(POLL_EXPIRED, self._settings.group, self._settings.max_poll_interval)
        self._is_stale = True
        await self._tell_leaving(self._network.deadline(), "max.poll.interval.ms is over")

    async def _heartbeat(self) -> None:
        joined, epoch, sent_at = self._joined, self.epoch, self._network.now()
        may_be_known = self._may_be_known
        self._heartbeat_at = NEVER  # until there is a response, or something to say at once
        if epoch == JOINING and self._rebalanced_from is None:
            self._rebalanced_from = sent_at
        try:
            response = await self.coordinator.request(self._request, self._network.deadline())
            if response.error_code:
                raise KafkaError(response.error_code, self._refusal(response.error_message))
            if joined is not self._joined:
                return  # the member has left meanwhile
            assigned = check_response(response, self.member_id, epoch, self._settings.group)
        except TagwireError as error:
            if joined is self._joined:
                if isinstance(error, KafkaError):  # this one was not taken
                    self._may_be_known = may_be_known
                self._handle_failure(error)
            return
        self.last_error = None
        if epoch != JOINING:  # the coordinator knows the member still
            self._failures = 0
        self.metrics.heartbeat(self._network.now() - sent_at)
        self.epoch = self._held_epoch = response.member_epoch
        if assigned is not None and assigned != self._target:
            self._target = assigned
            if not self._is_reconciling:
                self._acknowledge_if_taken()
        # A coordinator that need not be heard of for longer than a rebalance may take has lost a digit.
        interval = min(response.heartbeat_interval_ms / 1000, self._settings.max_poll_interval)
        self._heartbeat_at = min(self._heartbeat_at, sent_at + interval)

    def _request(self, connection: BrokerConnection) -> messages.ConsumerGroupHeartbeatRequest:
        try:
            version = connection.version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        except UnsupportedVersionError as error:
            raise UnsupportedVersionError(f"group {self._settings.group!r}: {NOT_SERVED} ({error})") from None
        takes_pattern = version >= CONSUMER_GROUP_HEARTBEAT_PATTERN
        if self._pattern is not None and not takes_pattern:
            raise UnsupportedVersionError(
                f"group {self._settings.group!r}: {connection.broker} takes no pattern with group.protocol=consumer, "
                f"which needs ConsumerGroupHeartbeat v{CONSUMER_GROUP_HEARTBEAT_PATTERN} (Kafka 4.0): "
                "set group.protocol=classic, or subscribe to topics by their names"
            )
        self.metrics.heartbeat_sent()
        self._may_be_known = True
        return self._fields.request(self.epoch, self._topics, self._pattern, self._owned, takes_pattern=takes_pattern)

    def _refusal(self, told: str | None) -> str:
        return f"ConsumerGroupHeartbeat of group {self._settings.group!r}" + (f": {told}" if told else "")

    def _handle_failure(self, error: TagwireError) -> None:
        """Raises the error where no other heartbeat can mend it."""
        self.last_error = error
        self._fields.reset()
        kind = error.error if isinstance(error, KafkaError) else None
        if kind in _FENCED:
            logger.info("group %r: the membership does not hold, joining again: %s", self._settings.group, error)
            self.metrics.rebalance_failed()
            self._drop()
        elif kind is Error.UNSUPPORTED_VERSION:
            raise UnsupportedVersionError(f"group {self._settings.group!r}: {NOT_SERVED} ({error})")
        elif not (is_retriable(error) or isinstance(error, RequestTimeoutError)):
            raise error
        elif kind is None or kind in _NO_COORDINATOR:
            self.coordinator.mark_unknown(str(error))
        self._failures += 1
        pause = 0.0 if kind in _FENCED and self._failures == 1 else self._pause(self._failures)
        self._heartbeat_at = self._network.now() + pause

    def _pause(self, attempts: int) -> float:
        return pause_before(attempts, self._network.driver.random)

    # Topics --------------------------------------------------------------------------------------------------------

    async def _looks(self) -> None:
        """Looks at the metadata of what is subscribed to by name, as Kafka's client does: brokers may create it then,
        which a heartbeat has them not do, and what does not exist is told."""
        attempts = 0
        while True:
            await Wait(lambda: bool(self._unseen) and self._sends_heartbeats, NEVER)
            names = self._unseen
            try:
                cluster = await self._network.refresh(
                    names, self._network.deadline(), allow_auto_create=self._settings.allow_auto_create
                )
            except TagwireError as error:
                logger.debug("group %r: metadata of its topics: %s", self._settings.group, error)
                attempts, pause = attempts + 1, self._pause(attempts + 1)
            else:
                missing = self._missing.note(cluster, names)
                if names is self._unseen:
                    self._unseen = missing
                attempts, pause = 0, MISSING_TOPIC_INTERVAL
            left = self._unseen
            await Wait(partial(self._is_sought_else, left), self._network.now() + pause)

    def _is_sought_else(self, left: frozenset[str]) -> bool:
        return self._unseen is not left

    # Reconciliation ------------------------------------------------------------------------------------------------

    async def _reconciliations(self) -> None:
        """Takes what the coordinator assigns, and loses what it does not any more: one after the other."""
        attempts = 0
        while True:
            await Wait(lambda: self._must_lose or self._target != self._current, NEVER)
            if self._must_lose:
                if self._handler.owned:
                    await self._handler.lose(self._handler.owned)
                self._must_lose, attempts = False, 0
                continue
            try:
                is_complete = await self._reconcile()
            except TagwireError as error:
                if not (is_retriable(error) or isinstance(error, RequestTimeoutError)):
                    raise
                self.last_error, is_complete = error, False
            finally:
                self._is_reconciling = False
            attempts = 0 if is_complete else attempts + 1
            if not is_complete:
                # What has no name yet is waited for, unless the coordinator has another assignment meanwhile.
                target, until = self._target, self._network.now() + self._pause(attempts)
                await Wait(partial(self._is_overtaken, target), until)

    def _is_overtaken(self, target: PartitionsById | None) -> bool:
        return self._must_lose or self._target is not target

    async def _reconcile(self) -> bool:
        """Goes from what is owned to what is assigned. Whether that is all of it: topics whose names no broker tells
        yet are left for later, as Kafka's client leaves them."""
        joined = self._joined
        try:
            return await self._take_target(self._target)
        finally:
            self._is_reconciling = False
            if joined is self._joined:
                self._acknowledge_if_taken()

    def _acknowledge_if_taken(self) -> None:
        """Says at once what is owned when that is what is assigned, also where the same was said before: what was
        assigned and taken back meanwhile is the member's for the coordinator until it says so. Source: Kafka's
        LocalAssignment."""
        if self._target == self._current:
            self._fields.owned_unsaid()
            self._heartbeat_at = self._network.now()

    async def _take_target(self, assignment: PartitionsById | None) -> bool:
        joined, target = self._joined, assignment or {}
        if unknown := target.keys() - self._names.known.keys():
            await self._names.resolve(unknown, self._network.deadline())
            if self._target is not assignment:
                return True  # what is assigned by now is for another round
        resolved = {topic_id: indexes for topic_id, indexes in target.items() if topic_id in self._names.known}
        if joined is not self._joined or (resolved == self._current and resolved != target):
            return False
        if self._rebalanced_from is None:
            self._rebalanced_from = self._network.now()
        assigned = self._named(resolved)
        owned = self._handler.owned
        self._is_reconciling = True
        if revoked := owned - assigned:
            await self._handler.revoke(revoked)
        if joined is not self._joined:
            return True  # of another membership
        self._owned = resolved
        await self._handler.assign(assigned - owned)
        if joined is self._joined:
            self._current = resolved
            self._names.keep({*target, *(self._target or {})})
            self._heartbeat_at = self._network.now()
            if resolved == self._target:
                self.metrics.rebalanced(self._network.now() - self._rebalanced_from)
                self._rebalanced_from = None
        return resolved == target

    def _named(self, resolved: PartitionsById) -> set[TopicPartition]:
        """Raises RemoteProtocolError where a topic was not subscribed to."""
        names = {topic_id: self._names.known[topic_id] for topic_id in resolved}
        if not self._admits_all and (strange := sorted(set(names.values()) - self._admitted)):
            raise RemoteProtocolError(
                f"assignment of group {self._settings.group!r}: it names topic {strange[0]!r}, which the member has "
                "not subscribed to"
            )
        return {TopicPartition(names[topic_id], index) for topic_id, indexes in resolved.items() for index in indexes}
