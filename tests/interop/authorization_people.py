"""Principals, each with ACLs of its own, that the matrix of authorization asks as."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tagwire import messages

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3

OPERATIONS: Final = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
_OF_TOPICS: Final = (
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
)
_OF_GROUPS: Final = ("ALL", "READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
_OF_IDS: Final = ("ALL", "WRITE", "DESCRIBE")
_OF_CLUSTER: Final = (
    "ALL",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
)

SUPER: Final = "admin"
CLUSTER_NAME: Final = "kafka-cluster"

Grant = tuple[int, str, int, str, int, str]
"""Type of resource, its name, type of pattern, operation, permission, host."""


def _grant(
    kind: int, operation: str, name: str = "m-", pattern: int = PREFIXED, permission: int = ALLOW, host: str = "*"
) -> Grant:
    if kind == CLUSTER:
        name, pattern = CLUSTER_NAME, LITERAL
    return kind, name, pattern, operation, permission, host


def _everything(*but: Grant, host: str = "*") -> list[Grant]:
    kinds = (TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID)
    return [*(_grant(kind, "ALL", "*", LITERAL, host=host) for kind in kinds), *but]


GRANTS: Final[dict[str, list[Grant]]] = {
    SUPER: [],
    "nobody": [],
    **{f"topic-{each}": [_grant(TOPIC, each)] for each in _OF_TOPICS},
    **{f"group-{each}": [_grant(GROUP, each)] for each in _OF_GROUPS},
    **{f"id-{each}": [_grant(TRANSACTIONAL_ID, each)] for each in _OF_IDS},
    **{f"cluster-{each}": [_grant(CLUSTER, each)] for each in _OF_CLUSTER},
    "everything": _everything(),
    "elsewhere": _everything(host="10.9.9.9"),
    "here": _everything(host="127.0.0.1"),
    "no-topics": _everything(_grant(TOPIC, "ALL", "*", LITERAL, DENY)),
    "no-o-topics": _everything(_grant(TOPIC, "ALL", "o-", PREFIXED, DENY)),
    "no-reading": _everything(_grant(TOPIC, "READ", "m-t", LITERAL, DENY)),
    "no-describing": _everything(_grant(TOPIC, "DESCRIBE", "m-t", LITERAL, DENY)),
    "no-writing": [_grant(TOPIC, "WRITE"), _grant(TOPIC, "WRITE", "*", LITERAL, DENY)],
    "no-cluster": _everything(_grant(CLUSTER, "ALL", permission=DENY)),
    "no-groups": _everything(_grant(GROUP, "ALL", "m-", PREFIXED, DENY)),
    "one-topic": [_grant(TOPIC, "ALL", "m-t", LITERAL)],
    "reader": [_grant(TOPIC, "READ"), _grant(GROUP, "READ")],
    "reader-of-all": [_grant(TOPIC, "READ", "*", LITERAL), _grant(GROUP, "READ", "*", LITERAL)],
    "group-deleter": [_grant(TOPIC, "READ"), _grant(GROUP, "DELETE")],
    "transactor": [
        _grant(TOPIC, "WRITE"),
        _grant(TOPIC, "READ"),
        _grant(GROUP, "READ"),
        _grant(TRANSACTIONAL_ID, "WRITE"),
    ],
    "creator": [_grant(CLUSTER, "CREATE"), _grant(TOPIC, "DESCRIBE")],
    "describing-creator": [_grant(TOPIC, "CREATE"), _grant(TOPIC, "DESCRIBE_CONFIGS"), _grant(TOPIC, "DESCRIBE")],
}
"""What each principal is granted; a super user needs nothing."""

FOR_EVERYBODY: Final = _grant(TOPIC, "DESCRIBE", "p-t", LITERAL)
"""What User:* is granted."""

PASSWORDS: Final = {name: f"secret-of-{name}" for name in GRANTS}


def creations() -> Iterable[Any]:
    """The ACLs of all of them, as CreateAcls has them."""
    for name, grants in {**GRANTS, "*": [FOR_EVERYBODY]}.items():
        for kind, resource, pattern, operation, permission, host in grants:
            yield messages.CreateAclsRequest.AclCreation(
                resource_type=kind,
                resource_name=resource,
                resource_pattern_type=pattern,
                principal=f"User:{name}",
                host=host,
                operation=OPERATIONS[operation],
                permission_type=permission,
            )
