"""What a static leader looks at that is back in its group: whether any partition came while it was away.

It does not assign then, and has no metadata to compare with (KIP-814): by what partitions were assigned only what the
members have tells. Kafka's ConsumerCoordinator.onLeaderElected takes what there is now for that, so that partitions
that came meanwhile are nobody's until the next change.
"""

from __future__ import annotations

import logging
from typing import Final

from tagwire import messages
from tagwire.client.consuming.consumer_protocol import decode_assignment
from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.retry import is_retriable
from tagwire.errors import KafkaError, RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition

logger = logging.getLogger("tagwire.client")

_STABLE: Final = "Stable"


async def is_outgrown(
    coordinator: GroupCoordinator, group: str, partitions: frozenset[TopicPartition], deadline: float
) -> bool:
    """Whether some of a group's partitions are assigned to none of its members, as DescribeGroups tells.

    False also where nobody tells, for the broker refuses, does not serve it, or the group is not stable: then the
    group goes on as it is, or has everything assigned anew by itself.

    Raises:
        KafkaError, ConnectError, RequestTimeoutError, ...: it may be told later.
    """
    try:
        response = await coordinator.request(lambda _: messages.DescribeGroupsRequest(groups=[group]), deadline)
        assigned: set[TopicPartition] = set()
        for told in response.groups:
            if told.error_code:
                raise KafkaError(told.error_code, f"DescribeGroups of group {group!r}")
            if told.group_state != _STABLE:
                return False
            for member in told.members:
                assigned.update(decode_assignment(member.member_assignment).partitions)
    except TagwireError as error:
        if is_retriable(error) or isinstance(error, RequestTimeoutError):
            raise
        logger.info("group %r: what its members have is not told: %s", group, error)
        return False
    return bool(response.groups) and not partitions <= assigned
