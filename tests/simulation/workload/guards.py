"""Worlds whose brokers know who asks: everybody comes in with a name and a password, and ACLs decide who may do what.

The program's own actors are one user, who may do everything since ACLs say so; a superuser has made those.
"""

from __future__ import annotations

from typing import Any, Final

ROOT: Final = "root"
APPLICATION: Final = "application"
GUARDED: Final = ("ann", "bob", "cid")
"""Users about whom ACLs come and go."""

TOGGLED: Final = "fay"
"""One who has only what is about everybody, and for a moment what one request needs."""

MADE: Final = ("dot", "eve")
"""Users that the superuser makes and deletes."""

MECHANISM: Final = "SCRAM-SHA-256"
"""Of those that are made."""


def settings(mechanism: str) -> dict[str, Any]:
    """Of such a broker."""
    return {
        "sasl": tuple(sorted({mechanism, MECHANISM})),
        "users": {user: secret_of(user) for user in (ROOT, APPLICATION, *GUARDED, TOGGLED)},
        "authorizer": "StandardAuthorizer",
        "super_users": f"User:{ROOT}",
    }


def secret_of(user: str, number: int = 0) -> str:
    """A user's password; the next one of a user who is made."""
    return f"{user} {number}"


def login(mechanism: str, user: str, secret: str) -> dict[str, str]:
    """With which properties a client comes in."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": secret,
    }


# What ACLs are about, by its number in the protocol -------------------------------------------------------------------

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = range(2, 9)
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(9, 13)
DENY, ALLOW = 2, 3
CLUSTER_NAME: Final = "kafka-cluster"
EVERYTHING: Final = ((TOPIC, "*"), (GROUP, "*"), (TRANSACTIONAL_ID, "*"), (CLUSTER, CLUSTER_NAME))

Acl = list[Any]
"""[type, name, pattern, principal, host, operation, permission], as histories have it."""


def of_application() -> list[Acl]:
    """The ACLs by which the application may do everything."""
    return [[kind, name, LITERAL, f"User:{APPLICATION}", "*", ALL, ALLOW] for kind, name in EVERYTHING]
