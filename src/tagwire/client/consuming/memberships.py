"""Which membership a consumer has, by its `group.protocol`."""

from __future__ import annotations

from tagwire.client.consuming.assignors import ASSIGNORS
from tagwire.client.consuming.classic_membership import ClassicMembership
from tagwire.client.consuming.consumer_membership import ConsumerMembership
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.membership import Membership, RebalanceHandler
from tagwire.client.network_client import NetworkClient


def membership_of(network: NetworkClient, settings: GroupSettings, handler: RebalanceHandler) -> Membership:
    """A member that has not joined yet."""
    if settings.protocol == "consumer":
        return ConsumerMembership(network, settings, handler)
    return ClassicMembership(network, settings, [ASSIGNORS[name]() for name in settings.assignor_names], handler)
