"""What clients are told that they may do: operations of a resource, a bit for each (KIP-430).

Without an authorizer that is all that there are for such a resource. Source: Kafka's AuthHelper.authorizedOperations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tagwire.broker.authorization.access import AnyCall, Handle
from tagwire.broker.authorization.acls import OPERATIONS, ResourceType
from tagwire.broker.session import AnyResponse
from tagwire.errors import Error
from tagwire.spec.api_keys import ApiKey


class Allowed(Protocol):
    """What one client may do."""

    def operations(self, kind: ResourceType, name: str) -> int:
        """To a resource."""

    def cluster_operations(self) -> int:
        """To the cluster."""


class _Everything:
    """What every client may do where nothing decides."""

    def operations(self, kind: ResourceType, name: str) -> int:
        return sum(1 << operation for operation in OPERATIONS[kind])

    def cluster_operations(self) -> int:
        return self.operations(ResourceType.CLUSTER, "")


def by_metadata(call: AnyCall, response: Any, allowed: Allowed) -> None:
    """Where it is asked for: of each topic, and of the cluster."""
    if call.request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name:
                topic.topic_authorized_operations = allowed.operations(ResourceType.TOPIC, topic.name)
    if call.request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed.cluster_operations()


def by_describe_topic_partitions(call: AnyCall, response: Any, allowed: Allowed) -> None:
    """Always."""
    for topic in response.topics:
        topic.topic_authorized_operations = allowed.operations(ResourceType.TOPIC, topic.name)


def by_describe_cluster(call: AnyCall, response: Any, allowed: Allowed) -> None:
    """Where it is asked for, and the cluster is told."""
    if call.request.include_cluster_authorized_operations and response.error_code == Error.NONE:
        response.cluster_authorized_operations = allowed.cluster_operations()


def by_groups(call: AnyCall, response: Any, allowed: Allowed) -> None:
    """Where it is asked for, of each group that is told."""
    if call.request.include_authorized_operations:
        for group in response.groups:
            if group.error_code == Error.NONE:
                group.authorized_operations = allowed.operations(ResourceType.GROUP, group.group_id)


TOLD: Final[Mapping[int, Callable[[AnyCall, Any, Allowed], None]]] = {
    ApiKey.METADATA: by_metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: by_describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: by_describe_cluster,
    ApiKey.DESCRIBE_GROUPS: by_groups,
    ApiKey.CONSUMER_GROUP_DESCRIBE: by_groups,
}
"""API key -> what tells them in its response."""


async def telling_everything(call: AnyCall, handle: Handle) -> AnyResponse:
    """The response of an API of `TOLD`, with all operations that there are."""
    response = await handle(call)
    TOLD[call.request.api_key](call, response, _Everything())
    return response
