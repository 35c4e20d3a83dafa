"""What a consumer and its membership of a group ask of each other, whichever protocol the group speaks.

Both are run by one thread or one event loop, as coroutines (`tagwire.client.scheduling`); neither blocks.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.metrics.coordinator import CoordinatorMetrics
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.errors import KafkaError, TagwireError
from tagwire.partitions import TopicPartition


class RebalanceHandler(Protocol):
    """What becomes of partitions that a member gains and loses: the consumer. Kafka's classes for it are
    SubscriptionState and ConsumerRebalanceListenerInvoker.

    Heartbeats go on while a call of these is awaited, which may last until the user polls the next time; by
    `Membership.leave` it may be ended where it waits.
    """

    @property
    def owned(self) -> Set[TopicPartition]:
        """The partitions that the member has: assigned, and neither revoked nor lost."""

    async def revoke(self, partitions: Set[TopicPartition]) -> None:
        """Gives up owned partitions in good order: stops fetching them at once, commits automatically where that is
        on, tells the listener, and then forgets them."""

    async def lose(self, partitions: Set[TopicPartition]) -> None:
        """Gives up partitions that may be another member's by now: stops fetching at once, commits nothing, tells the
        listener."""

    async def assign(self, partitions: Set[TopicPartition]) -> None:
        """Takes partitions beside those that are owned. With none it tells that a rebalance has changed nothing."""

    def report(self, error: TagwireError) -> None:
        """Has the user's next poll raise what ends no membership."""


class Membership(Protocol):
    """A membership of a group: `ClassicMembership`, or `ConsumerMembership` of KIP-848. Kafka's classes are
    ConsumerCoordinator and ConsumerMembershipManager."""

    @property
    def coordinator(self) -> GroupCoordinator:
        """The broker that coordinates the group, for the requests of commits as well."""

    @property
    def metrics(self) -> CoordinatorMetrics:
        """What the member measures; how long commits and the listener took is the consumer's to record."""

    @property
    def metadata(self) -> GroupMetadata:
        """The group, and the member as which the consumer came by what it has. Once that membership has ended its
        generation or member epoch stays until the next begins: with -1 a coordinator would take offsets of a
        transaction as of nobody's, and would not find out that the partitions are another's by now."""

    @property
    def incarnation(self) -> object:
        """Another object each time that the membership has ended: partitions may have been others' meanwhile."""

    @property
    def is_rebalancing(self) -> bool:
        """Whether the member is joining, or is giving up or taking partitions."""

    @property
    def holds_partitions(self) -> bool:
        """Whether what the consumer owns is the member's still. Where not, nothing more of it may be given out:
        `RebalanceHandler.lose` follows at the user's next poll."""

    @property
    def last_error(self) -> TagwireError | None:
        """Why the member is in no group yet, or was not reached at last; None after a success."""

    async def run(self) -> None:
        """Joins, sends heartbeats and rejoins until `leave`. Where it raises, partitions were lost, and it may be
        run again.

        Raises:
            KafkaError: the coordinator refuses for good, such as with GROUP_AUTHORIZATION_FAILED, FENCED_INSTANCE_ID,
                INCONSISTENT_GROUP_PROTOCOL.
            UnsupportedVersionError: the broker lacks the group's protocol.
            AuthenticationError, RemoteProtocolError, DecodeError: nothing of the coordinator can be trusted, or of the
                member that assigns.
        """

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """What the member wants from now on; with neither it does not join again. A pattern has to match the whole name
        of a topic: in a classic group it is Python's, and matched here; KIP-848's brokers match it as RE2 does.

        Raises ConfigError: it is no pattern."""

    def polled(self, now: float) -> bool:
        """The user has polled (seconds of the driver's clock): without that for `max_poll_interval`, the member
        leaves until the next time. Whether it has waited for that, and goes on in its next step."""

    def request_rejoin(self, reason: str) -> None:
        """Has a rebalance begin (Kafka's enforceRebalance)."""

    def require_member(self) -> GroupMetadata:
        """What a commit is sent as.

        Raises:
            KafkaError: REBALANCE_IN_PROGRESS while the member joins, UNKNOWN_MEMBER_ID where it is no member: nothing
                may be committed, for the partitions may be another's.
        """

    def commit_refused(self, error: KafkaError, sent: GroupMetadata) -> bool:
        """Takes what the refusal of a commit tells of the membership.

        Args:
            sent: what the commit was sent as.

        Returns:
            Whether the same commit may succeed once `metadata` has changed (STALE_MEMBER_EPOCH).
        """

    async def leave(self, deadline: float, reason: str, *, leaves: bool | None = None) -> None:
        """Ends `run`, and tells the coordinator. The caller has released the partitions. No error is raised: by its
        session timeout the coordinator learns of it all the same.

        Args:
            leaves: whether the group is left now. None is True but for a static member, who may come back. One that
                does not leave says nothing, but of KIP-848 a static one says that it means to come back: nobody could
                have its instance id before the session's end otherwise (KIP-1092).
        """
