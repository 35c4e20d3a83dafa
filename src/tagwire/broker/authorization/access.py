"""What one client may do, as the rules of APIs ask for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Any, Final

from tagwire.broker.authorization.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from tagwire.broker.authorization.authorizer import Authorizer
from tagwire.broker.registry import Call
from tagwire.broker.session import AnyResponse, Session
from tagwire.errors import Error

AnyCall = Call[Any]
Handle = Callable[[AnyCall], Awaitable[AnyResponse]]

REFUSED: Final = {
    ResourceType.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""What a client is told that may not do what it asked for."""


@lru_cache(1024)
def java_host(host: str) -> str:
    """An address as Java's InetAddress.getHostAddress writes it: ACLs are made for it, and compared as text."""
    address, percent, scope = host.partition("%")
    try:
        parsed = ip_address(address)
    except ValueError:
        return host
    if isinstance(parsed, IPv4Address):
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + scope


@dataclass(frozen=True, slots=True)
class Access:
    """What the client of one connection may do.

    Attributes:
        authorizer: what decides.
        session: the connection.
    """

    authorizer: Authorizer
    session: Session

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether it may do an operation to a resource."""
        session = self.session
        return self.authorizer.allows(session.principal, java_host(session.client_host), operation, kind, name)

    def may_to_cluster(self, operation: Operation) -> bool:
        """Whether it may do an operation to the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_to_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether it may do an operation to any resource of a type."""
        session = self.session
        return self.authorizer.allows_on_any(session.principal, java_host(session.client_host), operation, kind)

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that it may do to a resource, a bit for each (KIP-430)."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.may(operation, kind, name))

    def cluster_operations(self) -> int:
        """The operations that it may do to the cluster; none where it may not describe it."""
        may_describe = self.may_to_cluster(Operation.DESCRIBE)
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME) if may_describe else 0
