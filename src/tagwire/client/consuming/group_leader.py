"""What the leader of a classic group does between JoinGroup and SyncGroup: it assigns the partitions to the members.

Kafka's ConsumerCoordinator.onLeaderElected is the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tagwire import messages
from tagwire.client.consuming.assignors.assignor import Assignor, RebalanceProtocol, TopicRacks
from tagwire.client.consuming.consumer_protocol import (
    Assignment,
    Subscription,
    decode_subscription,
    encode_assignment,
)
from tagwire.errors import DecodeError, LocalProtocolError
from tagwire.partitions import TopicPartition

# Of this one the owned partitions of members that missed a generation do not count: it looks for itself (KIP-792).
_LOOKS_FOR_ITSELF = "cooperative-sticky"


def member_subscriptions(
    members: Iterable[messages.JoinGroupResponse.JoinGroupResponseMember], group: str
) -> dict[str, Subscription]:
    """What each member wants, by member id, in the order of the response.

    Raises DecodeError naming the member whose subscription is none.
    """
    found = {}
    for member in members:
        try:
            found[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
        except DecodeError as error:
            raise error.under(f"subscription of member {member.member_id!r} of group {group!r}") from None
    return found


def group_assignment(
    assignor: Assignor, protocol: RebalanceProtocol, topics: TopicRacks, subscriptions: Mapping[str, Subscription]
) -> dict[str, bytes]:
    """The bytes of every member's assignment, by member id. Raises LocalProtocolError where the assignor breaks the
    rules of cooperative rebalances."""
    assignments = assignor.assign(topics, subscriptions)
    if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != _LOOKS_FOR_ITSELF:
        _check_cooperative(assignor.name, subscriptions, assignments)
    return {member: encode_assignment(assignments.get(member, Assignment())) for member in subscriptions}


def _check_cooperative(
    name: str, subscriptions: Mapping[str, Subscription], assignments: Mapping[str, Assignment]
) -> None:
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member, subscription in subscriptions.items():
        owned = set(subscription.owned_partitions)
        assigned = set(assignments[member].partitions) if member in assignments else set()
        added |= assigned - owned
        revoked |= owned - assigned
    if moved := sorted(added & revoked):
        raise LocalProtocolError(
            f"assignor {name!r} gives {moved[0]} to a member while another has it still, which cooperative rebalances "
            "do not allow"
        )
