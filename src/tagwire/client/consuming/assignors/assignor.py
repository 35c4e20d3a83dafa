"""What an assignor is: the part of a classic group's leader that spreads partitions over members."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from tagwire.client.consuming.consumer_protocol import Assignment, Subscription
from tagwire.client.metadata import ClusterMetadata
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.partitions import TopicPartition

TopicRacks: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]
"""The racks of each partition's replicas, by topic and partition; none where brokers name no rack."""

_NO_RACKS: frozenset[str] = frozenset()


class RebalanceProtocol(Enum):
    """How members go through a rebalance (KIP-429): giving up everything before they join, or only what moves."""

    EAGER = 0
    COOPERATIVE = 1


class Assignor(Protocol):
    """Spreads partitions over the members of a group (Kafka's ConsumerPartitionAssignor).

    Attributes:
        name: what JoinGroup calls it.
        protocols: what it can be used with; the group uses the highest that all its assignors share.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> frozenset[RebalanceProtocol]: ...

    def subscription_user_data(
        self, topics: Collection[str], owned_partitions: Collection[TopicPartition]
    ) -> bytes | None:
        """What this member tells of itself beside its subscription, before it joins; None for nothing."""

    def assign(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Each member's assignment, by member id. Pure: what one call is told is forgotten by the next.

        Args:
            topics: those that exist; what a member subscribes to besides is left out.
            subscriptions: by member id, in the order in which JoinGroup names the members.
        """

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Told what this member was assigned, and in which generation."""


def topic_racks(metadata: ClusterMetadata) -> TopicRacks:
    """Where the replicas of a cluster's partitions are; topics without partitions are left out."""
    racks = {node.id: frozenset((node.rack,)) for node in metadata.brokers.values() if node.rack}
    found: dict[tuple[int, ...], frozenset[str]] = {}
    topics: dict[str, dict[int, frozenset[str]]] = {}
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            if partition.replicas not in found:
                found[partition.replicas] = _NO_RACKS.union(
                    *(racks.get(node, _NO_RACKS) for node in partition.replicas)
                )
            topics.setdefault(topic.name, {})[partition.index] = found[partition.replicas]
    return topics
