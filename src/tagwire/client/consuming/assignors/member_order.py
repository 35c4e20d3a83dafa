"""In which order members come, for assignors that number them: those whose names outlive a restart first."""

from __future__ import annotations

from collections.abc import Mapping

from tagwire.client.consuming.assignors.hash_order import string_order
from tagwire.client.consuming.consumer_protocol import Subscription


def in_member_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Member ids: static members by their instance id, then the others by their member id.

    Source: Kafka's AbstractPartitionAssignor.MemberInfo, KIP-345.
    """

    def order(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].instance_id
        return instance is None, string_order(member if instance is None else instance)

    return sorted(subscriptions, key=order)
