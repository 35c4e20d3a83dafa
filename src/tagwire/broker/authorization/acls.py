"""What an ACL is, and which of them a filter means. Source: KIP-11, KIP-140, KIP-290; Kafka's AclBinding and
AclBindingFilter."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, Protocol, TypeVar

from tagwire.broker.authorization.host_networks import network_of
from tagwire.errors import Error, KafkaError

Code = TypeVar("Code", bound=IntEnum)

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource of its type. As a host: every host."""

ANYBODY: Final = "User:*"
"""The principal that stands for every principal."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The one name that a resource of type CLUSTER has."""


class ResourceType(IntEnum):
    """What an ACL is about. Source: Kafka's ResourceType."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL's name is meant; ANY and MATCH are of filters alone. Source: KIP-290."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done to a resource. Source: Kafka's AclOperation."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """What an ACL says. Source: Kafka's AclPermissionType."""

    ANY = 1
    DENY = 2
    ALLOW = 3


_ANY: Final = 1

OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}
"""The operations that a client is told it may do, by the resource it asks about. Source: KIP-430, Kafka's AclEntry."""


class Acl(NamedTuple):
    """One ACL."""

    kind: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclFilter(NamedTuple):
    """Which ACLs are meant; None and ANY are everything. MATCH means those that decide about a resource."""

    kind: ResourceType
    name: str | None
    pattern: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    @property
    def only(self) -> Acl | None:
        """The one ACL that can be meant; None where it may be several."""
        name, principal, host = self.name, self.principal, self.host
        if name is None or principal is None or host is None:
            return None
        if self.pattern <= PatternType.MATCH or _ANY in (self.kind, self.operation, self.permission):
            return None
        return Acl(self.kind, name, self.pattern, principal, host, self.operation, self.permission)

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.kind in (ResourceType.ANY, acl.kind)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == acl.name
        if acl.pattern is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, WILDCARD)


class WrittenAcl(Protocol):
    """An ACL as CreateAcls has it."""

    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class WrittenFilter(Protocol):
    """A filter as DescribeAcls and DeleteAcls have it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acl_of(written: WrittenAcl, *, with_networks: bool = True) -> Acl:
    """The ACL of a request.

    Args:
        with_networks: whether a host may be a network; else it is any text, as before Kafka 4.4.

    Raises:
        KafkaError: INVALID_REQUEST: no such ACL can be. Source: Kafka's AclApis and AclControlManager.
    """
    kind = _code(ResourceType, written.resource_type, "resource type", ResourceType.TOPIC)
    pattern = _code(PatternType, written.resource_pattern_type, "pattern type", PatternType.LITERAL)
    operation = _code(Operation, written.operation, "operation", Operation.ALL)
    permission = _code(Permission, written.permission_type, "permission type", Permission.DENY)
    if kind is ResourceType.CLUSTER and written.resource_name != CLUSTER_NAME:
        raise _invalid(f"the only valid name of the cluster is {CLUSTER_NAME}")
    if not written.resource_name:
        raise _invalid("the resource has no name")
    if ":" not in written.principal:
        raise _invalid(f"principal {written.principal[:100]!r} is not TYPE:NAME")
    if not written.host:
        raise _invalid("the host is empty; every host is *")
    if with_networks and "/" in written.host and network_of(written.host) is None:
        raise _invalid(f"host {written.host[:100]!r} is no network, such as 10.0.0.0/8 or 2001:db8::/32")
    return Acl(kind, written.resource_name, pattern, written.principal, written.host, operation, permission)


def filter_of(written: WrittenFilter) -> AclFilter:
    """The filter of a request.

    Raises:
        KafkaError: INVALID_REQUEST: it names a type that there is not.
    """
    return AclFilter(
        _code(ResourceType, written.resource_type_filter, "resource type", ResourceType.ANY),
        written.resource_name_filter,
        _code(PatternType, written.pattern_type_filter, "pattern type", PatternType.ANY),
        written.principal_filter,
        written.host_filter,
        _code(Operation, written.operation, "operation", Operation.ANY),
        _code(Permission, written.permission_type, "permission type", Permission.ANY),
    )


def _code(kind: type[Code], number: int, what: str, lowest: Code) -> Code:
    try:
        code = kind(number)
    except ValueError:
        raise _invalid(f"{what} {number} is none") from None
    if code < lowest:
        raise _invalid(f"{what} {code.name} is of filters alone")
    return code


def _invalid(problem: str) -> KafkaError:
    return KafkaError(Error.INVALID_REQUEST, problem)
