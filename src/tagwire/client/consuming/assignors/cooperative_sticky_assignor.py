"""Cooperative sticky: as sticky, but members keep what they have until it is to move, and it moves in two steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tagwire.client.consuming.assignors.assignor import RebalanceProtocol, TopicRacks
from tagwire.client.consuming.assignors.sticky_assignment import Previous, assign_sticky
from tagwire.client.consuming.consumer_protocol import NO_GENERATION, Assignment, Subscription
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.partitions import TopicPartition

_INT: Final = 4


class CooperativeStickyAssignor:
    """Leaves a partition out that another member still has; who has it gives it up and joins again, and the next
    assignment gives it to its new member. The generation stands in the subscription from version 2 on (KIP-792), before
    that in the user data, which has it always.

    Source: Kafka's CooperativeStickyAssignor, KIP-429.
    """

    name = "cooperative-sticky"
    protocols = frozenset((RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER))

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str], owned_partitions: Collection[TopicPartition]) -> bytes:
        """The generation that this member was in last."""
        return self._generation.to_bytes(_INT, "big", signed=True)

    def assign(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        previous = {member: _previous(subscription) for member, subscription in subscriptions.items()}
        sticky = assign_sticky(topics, subscriptions, previous)
        transferring = sticky.transferring
        if transferring is None:
            transferring = _transferring(subscriptions, sticky.partitions)
        return {
            member: Assignment(tuple(one for one in partitions if transferring.get(one) != member))
            for member, partitions in sticky.partitions.items()
        }

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Remembers the generation."""
        self._generation = metadata.generation


def _previous(subscription: Subscription) -> Previous:
    if subscription.generation > NO_GENERATION:
        return Previous(subscription.owned_partitions, subscription.generation)
    data = subscription.user_data
    if data is None:
        return Previous(subscription.owned_partitions, None)
    told = int.from_bytes(data[:_INT], "big", signed=True) if len(data) >= _INT else NO_GENERATION
    return Previous(subscription.owned_partitions, told)


def _transferring(
    subscriptions: Mapping[str, Subscription], assigned: Mapping[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Partitions that one member is to give up and another to get."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in assigned.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update((partition, member) for partition in partitions if partition not in owned)
        revoked |= owned.difference(partitions)
    return {partition: member for partition, member in added.items() if partition in revoked}
