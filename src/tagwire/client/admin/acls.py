"""ACLs: who may do what to which resources; list, create, delete. Source: KIP-11, KIP-140, KIP-290."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, in_order
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError, KafkaError
from tagwire.escaping import told
from tagwire.rpc.version_gates import CREATE_ACLS_USER_RESOURCE
from tagwire.suggestions import did_you_mean

ANY: Final = "any"
MATCH: Final = "match"
LITERAL: Final = "literal"
ALLOW: Final = "allow"
CLUSTER: Final = "cluster"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of the type "cluster". Source: Resource.CLUSTER_NAME."""

RESOURCE_TYPES: Final = {
    ANY: 1,
    "topic": 2,
    "group": 3,
    CLUSTER: 4,
    "transactional_id": 5,
    "delegation_token": 6,
    "user": 7,
}
"""By Kafka's names, in small letters. Source: ResourceType."""

PATTERN_TYPES: Final = {ANY: 1, MATCH: 2, LITERAL: 3, "prefixed": 4}
"""Source: PatternType."""

OPERATIONS: Final = {
    ANY: 1,
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster_action": 9,
    "describe_configs": 10,
    "alter_configs": 11,
    "idempotent_write": 12,
    "create_tokens": 13,
    "describe_tokens": 14,
    "two_phase_commit": 15,
}
"""Source: AclOperation."""

PERMISSIONS: Final = {ANY: 1, "deny": 2, ALLOW: 3}
"""Source: AclPermissionType."""

_USER: Final = RESOURCE_TYPES["user"]


@dataclass(frozen=True, order=True, slots=True)
class ResourcePattern:
    """Resources that an ACL is about.

    Attributes:
        resource_type: one of `RESOURCE_TYPES`; not "any".
        name: of the resource; "*" with the pattern type "literal" is all of them, and a cluster's is "kafka-cluster".
        pattern_type: "literal", or "prefixed" for all whose names begin with `name`.
    """

    resource_type: str
    name: str
    pattern_type: str = LITERAL

    def __str__(self) -> str:
        return f"{self.resource_type} {self.name!r}" + ("" if self.pattern_type == LITERAL else f" {self.pattern_type}")


@dataclass(frozen=True, order=True, slots=True)
class AccessControlEntry:
    """Who may do what, or may not.

    Attributes:
        principal: "User:alice"; "User:*" is everybody.
        operation: one of `OPERATIONS`; not "any".
        permission: "allow", or "deny", which goes before whatever is allowed.
        host: the address that the principal comes from, or from Kafka 4.4 on its network (KIP-1276); "*" is any.
    """

    principal: str
    operation: str
    permission: str = ALLOW
    host: str = "*"

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} to {self.principal} from {self.host}"


@dataclass(frozen=True, order=True, slots=True)
class AclBinding:
    """An ACL: an entry, and what it is about."""

    pattern: ResourcePattern
    entry: AccessControlEntry

    def __str__(self) -> str:
        return f"{self.entry}: {self.pattern}"


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """Which patterns are meant; what is left out is any.

    Attributes:
        pattern_type: "literal" or "prefixed" is patterns of this type with the very name; "any" is either; "match" is
            every pattern that a resource of this name falls under, "*" and prefixes among them.
    """

    resource_type: str = ANY
    name: str | None = None
    pattern_type: str = ANY


@dataclass(frozen=True, slots=True)
class AccessControlEntryFilter:
    """Which entries are meant; what is left out is any."""

    principal: str | None = None
    operation: str = ANY
    permission: str = ANY
    host: str | None = None


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Which ACLs are meant; without arguments all of them."""

    pattern: ResourcePatternFilter = field(default_factory=ResourcePatternFilter)
    entry: AccessControlEntryFilter = field(default_factory=AccessControlEntryFilter)

    def __str__(self) -> str:
        pattern, entry = self.pattern, self.entry
        found = [
            pattern.resource_type,
            "" if pattern.name is None else repr(pattern.name),
            "" if pattern.pattern_type == ANY else pattern.pattern_type,
            "" if entry.principal is None else f"of {entry.principal}",
            "" if entry.operation == ANY else entry.operation,
            "" if entry.permission == ANY else entry.permission,
            "" if entry.host is None else f"from {entry.host}",
        ]
        return " ".join(part for part in found if part)


class Acls(AdminApi):
    """ACLs of a cluster."""

    async def describe_acls(self, acl_filter: AclBindingFilter | None = None) -> list[AclBinding]:
        """As `Admin.describe_acls`."""
        wanted = _filter("acl_filter", AclBindingFilter() if acl_filter is None else acl_filter)
        pattern, entry = wanted.pattern, wanted.entry
        request = messages.DescribeAclsRequest(
            resource_type_filter=RESOURCE_TYPES[pattern.resource_type],
            resource_name_filter=pattern.name,
            pattern_type_filter=PATTERN_TYPES[pattern.pattern_type],
            principal_filter=entry.principal,
            host_filter=entry.host,
            operation=OPERATIONS[entry.operation],
            permission_type=PERMISSIONS[entry.permission],
        )

        async def send(left: list[AclBindingFilter], deadline: float) -> ApiResults[AclBindingFilter, list[AclBinding]]:
            connection = await self._network.connection(None, deadline)
            if request.resource_type_filter == _USER:
                self._require(connection, request.api_key, CREATE_ACLS_USER_RESOURCE)
            response = await self._network.request(connection, request, deadline)
            found = [
                _binding(
                    resource.resource_type,
                    resource.resource_name,
                    resource.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for resource in response.resources
                for acl in resource.acls
            ]
            yield ApiResult(wanted, response.error_code, response.error_message, found)

        return sorted((await self._drive([wanted], send, "describe ACLs:"))[wanted])

    async def create_acls(self, acls: AclBinding | Iterable[AclBinding]) -> None:
        """As `Admin.create_acls`."""
        kind = messages.CreateAclsRequest
        wanted = [_checked(each) for each in arguments.several("acls", acls, AclBinding, _BINDING)]

        async def send(left: list[AclBinding], deadline: float) -> ApiResults[AclBinding, None]:
            request = kind(
                creations=[
                    kind.AclCreation(
                        resource_type=RESOURCE_TYPES[each.pattern.resource_type],
                        resource_name=each.pattern.name,
                        resource_pattern_type=PATTERN_TYPES[each.pattern.pattern_type],
                        principal=each.entry.principal,
                        host=each.entry.host,
                        operation=OPERATIONS[each.entry.operation],
                        permission_type=PERMISSIONS[each.entry.permission],
                    )
                    for each in left
                ]
            )
            connection = await self._network.connection(None, deadline)
            if any(creation.resource_type == _USER for creation in request.creations):
                self._require(connection, request.api_key, CREATE_ACLS_USER_RESOURCE)
            response = await self._network.request(connection, request, deadline)
            for each, result in in_order("create ACLs", left, response.results):
                yield ApiResult(each, result.error_code, result.error_message)

        await self._drive(wanted, send, "create ACL", changes=True)

    async def delete_acls(
        self, filters: AclBindingFilter | Iterable[AclBindingFilter]
    ) -> dict[AclBindingFilter, list[AclBinding]]:
        """As `Admin.delete_acls`."""
        kind = messages.DeleteAclsRequest
        wanted = [
            _filter("one of filters", each)
            for each in arguments.several(
                "filters", filters, AclBindingFilter, "an AclBindingFilter, or a list of them"
            )
        ]

        async def send(left: list[AclBindingFilter], deadline: float) -> ApiResults[AclBindingFilter, list[AclBinding]]:
            request = kind(
                filters=[
                    kind.DeleteAclsFilter(
                        resource_type_filter=RESOURCE_TYPES[each.pattern.resource_type],
                        resource_name_filter=each.pattern.name,
                        pattern_type_filter=PATTERN_TYPES[each.pattern.pattern_type],
                        principal_filter=each.entry.principal,
                        host_filter=each.entry.host,
                        operation=OPERATIONS[each.entry.operation],
                        permission_type=PERMISSIONS[each.entry.permission],
                    )
                    for each in left
                ]
            )
            connection = await self._network.connection(None, deadline)
            if any(each.resource_type_filter == _USER for each in request.filters):
                self._require(connection, request.api_key, CREATE_ACLS_USER_RESOURCE)
            response = await self._network.request(connection, request, deadline)
            for each, result in in_order("delete ACLs", left, response.filter_results):
                code, message = result.error_code, result.error_message
                found = []
                for acl in result.matching_acls:
                    binding = _binding(
                        acl.resource_type,
                        acl.resource_name,
                        acl.pattern_type,
                        acl.principal,
                        acl.host,
                        acl.operation,
                        acl.permission_type,
                    )
                    found.append(binding)
                    if acl.error_code and not code:
                        code, message = acl.error_code, _of_one(binding, acl.error_code, acl.error_message)
                yield ApiResult(each, code, message, sorted(found))

        return await self._drive(wanted, send, "delete ACLs:", changes=True)


_BINDING: Final = 'AclBinding(ResourcePattern("topic", "orders"), AccessControlEntry("User:alice", "read")), or a list'

_TYPES: Final = {number: name for name, number in RESOURCE_TYPES.items()}
_PATTERNS: Final = {number: name for name, number in PATTERN_TYPES.items()}
_OPERATIONS: Final = {number: name for name, number in OPERATIONS.items()}
_PERMISSIONS: Final = {number: name for name, number in PERMISSIONS.items()}


def _binding(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> AclBinding:
    """What a response tells of; a number that no name is known for stays one."""
    pattern = ResourcePattern(
        _TYPES.get(resource_type, str(resource_type)), name, _PATTERNS.get(pattern_type, str(pattern_type))
    )
    done, allowed = _OPERATIONS.get(operation, str(operation)), _PERMISSIONS.get(permission, str(permission))
    return AclBinding(pattern, AccessControlEntry(principal, done, allowed, host))


def _of_one(binding: AclBinding, code: int, message: str | None) -> str:
    return str(KafkaError(code, f"{binding}{f': {told(message)}' if message else ''}"))


def _checked(given: AclBinding) -> AclBinding:
    """The same, if there can be such an ACL. Raises ConfigError."""
    pattern, entry = given.pattern, given.entry
    if not isinstance(pattern, ResourcePattern) or not isinstance(entry, AccessControlEntry):
        raise wrong("acls", "an AclBinding of something else", _BINDING)
    _one_of("resource_type", pattern.resource_type, RESOURCE_TYPES, but=(ANY,))
    _one_of("pattern_type", pattern.pattern_type, PATTERN_TYPES, but=(ANY, MATCH))
    _one_of("operation", entry.operation, OPERATIONS, but=(ANY,))
    _one_of("permission", entry.permission, PERMISSIONS, but=(ANY,))
    if not arguments.name("name of a resource", pattern.name):
        raise ConfigError("name of a resource: it is empty")
    if pattern.resource_type == CLUSTER and pattern.name != CLUSTER_NAME:
        raise wrong("name of a cluster", repr(told(pattern.name)), repr(CLUSTER_NAME))
    kind, colon, name = arguments.name("principal", entry.principal).partition(":")
    if not (kind and colon and name):
        raise wrong("principal", repr(told(entry.principal)), '"User:alice", a type and a name')
    if not arguments.name("host", entry.host):
        raise ConfigError('host: it is empty; "*" is any')
    return given


def _filter(option: str, given: object) -> AclBindingFilter:
    """The same, if it is a filter. Raises ConfigError."""
    if (
        not isinstance(given, AclBindingFilter)
        or not isinstance(given.pattern, ResourcePatternFilter)
        or not isinstance(given.entry, AccessControlEntryFilter)
    ):
        raise wrong(option, arguments.shown(given), 'AclBindingFilter(ResourcePatternFilter("topic", "orders"))')
    pattern, entry = given.pattern, given.entry
    _one_of("resource_type", pattern.resource_type, RESOURCE_TYPES)
    _one_of("pattern_type", pattern.pattern_type, PATTERN_TYPES)
    _one_of("operation", entry.operation, OPERATIONS)
    _one_of("permission", entry.permission, PERMISSIONS)
    for name, text in (("name of a resource", pattern.name), ("principal", entry.principal), ("host", entry.host)):
        if text is not None:
            arguments.name(name, text)
    return given


def _one_of(option: str, given: object, known: Collection[str], but: Collection[str] = ()) -> None:
    allowed = [name for name in known if name not in but]
    if given not in allowed:
        meant = did_you_mean(given, allowed) if isinstance(given, str) else ""
        raise ConfigError(f"{option}={arguments.shown(given)}: allowed is {', '.join(allowed)}{meant}")
